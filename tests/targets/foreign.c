/* SPDX-License-Identifier: MIT */
/*
 * foreign code32|dispatched|all_dispatched: a process of two kinds of code, as Wine has them. code32: its only thread
 * is in 32-bit code nearly all the time. dispatched: its system calls are handed to it as SIGSYS but for those that
 * libraries make, or all are. Handlers for the faults that come of all that are to stay, and to work.
 * foreign try32: ends at once, killed where the machine runs no 32-bit code.
 */
#include "target.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK        65536
#define CODE_32      0x23 /* the kernel's selectors */
#define CODE_64      0x33
#define BACK_ADDRESS 9
#define BACK         15
#define DISPATCH     59 /* PR_SET_SYSCALL_USER_DISPATCH */
#define BLOCK_THEM   1

static sigjmp_buf back;
static volatile sig_atomic_t handled;
static volatile char selector;

static void on_fault(int number)
{
	(void)number;
	handled++;
	siglongjmp(back, 1);
}

/* 32-bit: mov $0x100000, ecx; 1: dec ecx; jnz 1b; ljmp CODE_64:BACK, and there, 64-bit: jmp *r8 */
static const unsigned char text[] = {0xb9, 0, 0, 0x10, 0,       0x49, 0x75, 0xfd, 0xea,
				     0,    0, 0, 0,    CODE_64, 0,    0x41, 0xff, 0xe0};

static unsigned char *low_memory(size_t size, int protection)
{
	void *memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (memory == MAP_FAILED)
		target_fail("mmap");
	return memory;
}

static KEEP void run_32(const unsigned char *code, const unsigned char *stack)
{
	const struct {
		uint32_t offset;
		uint16_t selector;
	} __attribute__((packed)) far = {(uint32_t)(uintptr_t)code, CODE_32};

	__asm__ volatile("mov %%rsp, %%r9\n\t"
			 "mov %[stack], %%rsp\n\t"
			 "lea 1f(%%rip), %%r8\n\t"
			 "ljmp *(%[far])\n"
			 "1:\t"
			 "mov %%r9, %%rsp"
			 :
			 : [far] "D"(&far), [stack] "S"(stack)
			 : "rcx", "r8", "r9", "memory", "cc");
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static KEEP void work_in_32(uint64_t duration_ms)
{
	unsigned char *code = low_memory(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	const unsigned char *stack = low_memory(STACK, PROT_READ | PROT_WRITE);
	uint64_t end = now_ms() + duration_ms;

	const uint32_t back_at = (uint32_t)(uintptr_t)code + BACK;

	memcpy(code, text, sizeof(text));
	memcpy(code + BACK_ADDRESS, &back_at, sizeof(back_at));
	do {
		run_32(code, stack + STACK - 512);
		free(target_filled(100, 1));
	} while (now_ms() < end);
	if (duration_ms && sigsetjmp(back, 1) == 0) {
		volatile int *nowhere = NULL;

		OPAQUE(nowhere);
		*nowhere = 1;
	}
}

/* Not through the C library: its own calls are let through by where they are made. */
static long call_from_elsewhere(const unsigned char *code)
{
	long (*call)(void);

	memcpy(&call, &code, sizeof(call));
	return call();
}

/* mov $39, eax (getpid); syscall; ret */
static const unsigned char getpid_text[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};

static KEEP void work_dispatched(unsigned long libraries)
{
	unsigned char *code = low_memory(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	uint64_t end = now_ms() + 3000;

	memcpy(code, getpid_text, sizeof(getpid_text));
	selector = BLOCK_THEM;
	/* All but those made in the upper half of the address space, where the C library is; or all. */
	if (prctl(DISPATCH, 1, libraries, libraries, &selector) != 0)
		target_fail("PR_SET_SYSCALL_USER_DISPATCH");
	while (now_ms() < end)
		if (sigsetjmp(back, 0) == 0) {
			call_from_elsewhere(code);
			target_fail("a system call was made");
		}
	selector = 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};

	if (argc != 2)
		target_fail("usage: foreign try32|code32|dispatched|all_dispatched");
	if (strcmp(argv[1], "try32") == 0) {
		work_in_32(0);
		return 0;
	}
	if (sigaction(SIGSEGV, &action, NULL) != 0 || sigaction(SIGSYS, &action, NULL) != 0)
		target_fail("sigaction");
	target_ready();
	if (strcmp(argv[1], "code32") == 0)
		work_in_32(3000);
	else
		work_dispatched(strcmp(argv[1], "dispatched") == 0 ? (unsigned long)1 << 46 : 0);
	target_say("handled", (uint64_t)handled);
	target_done();
	return 0;
}

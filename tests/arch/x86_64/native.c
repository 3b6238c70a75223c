// SPDX-License-Identifier: MIT
/* native.c: the trampoline into generated code and back (native.h). */
#include "native.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#define PAGE 4096

_Static_assert(offsetof(struct native_state, flags) == 128, "the trampoline's offsets");
_Static_assert(offsetof(struct native_state, xmm0) == 160, "the trampoline's offsets");

/* The trampoline has no register to spare, so its state is found by pc-relative addresses. */
__attribute__((visibility("hidden"))) struct native_state native_current;
void native_enter(void);
void native_exit_through(void);
void native_exit_taken(void);

__asm__(".pushsection .text\n"
	".globl native_enter, native_exit_through, native_exit_taken\n"
	".hidden native_enter, native_exit_through, native_exit_taken\n"
	".type native_enter, @function\n"
	"native_enter:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	pushfq\n"
	"	mov %rsp, native_current+144(%rip)\n"
	"	pushq native_current+128(%rip)\n"
	"	popfq\n"
	"	movups native_current+160(%rip), %xmm0\n"
	"	mov native_current+0(%rip), %rax\n"
	"	mov native_current+8(%rip), %rdx\n"
	"	mov native_current+16(%rip), %rcx\n"
	"	mov native_current+24(%rip), %rbx\n"
	"	mov native_current+32(%rip), %rsi\n"
	"	mov native_current+40(%rip), %rdi\n"
	"	mov native_current+48(%rip), %rbp\n"
	"	mov native_current+56(%rip), %rsp\n"
	"	mov native_current+64(%rip), %r8\n"
	"	mov native_current+72(%rip), %r9\n"
	"	mov native_current+80(%rip), %r10\n"
	"	mov native_current+88(%rip), %r11\n"
	"	mov native_current+96(%rip), %r12\n"
	"	mov native_current+104(%rip), %r13\n"
	"	mov native_current+112(%rip), %r14\n"
	"	mov native_current+120(%rip), %r15\n"
	"	jmp *native_current+136(%rip)\n"
	"native_exit_taken:\n"
	"	movq $1, native_current+152(%rip)\n"
	"	jmp 1f\n"
	"native_exit_through:\n"
	"	movq $0, native_current+152(%rip)\n"
	/* mov leaves the flags as they are until there is a stack to save them on. */
	"1:	mov %rax, native_current+0(%rip)\n"
	"	mov %rdx, native_current+8(%rip)\n"
	"	mov %rcx, native_current+16(%rip)\n"
	"	mov %rbx, native_current+24(%rip)\n"
	"	mov %rsi, native_current+32(%rip)\n"
	"	mov %rdi, native_current+40(%rip)\n"
	"	mov %rbp, native_current+48(%rip)\n"
	"	mov %rsp, native_current+56(%rip)\n"
	"	mov %r8, native_current+64(%rip)\n"
	"	mov %r9, native_current+72(%rip)\n"
	"	mov %r10, native_current+80(%rip)\n"
	"	mov %r11, native_current+88(%rip)\n"
	"	mov %r12, native_current+96(%rip)\n"
	"	mov %r13, native_current+104(%rip)\n"
	"	mov %r14, native_current+112(%rip)\n"
	"	mov %r15, native_current+120(%rip)\n"
	"	movups %xmm0, native_current+160(%rip)\n"
	"	mov native_current+144(%rip), %rsp\n"
	"	pushfq\n"
	"	popq native_current+128(%rip)\n"
	"	popfq\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	".size native_enter, . - native_enter\n"
	".popsection\n");

void native_run(struct native_state *state, const uint8_t *entry)
{
	native_current = *state;
	native_current.entry = (uint64_t)(uintptr_t)entry;
	native_enter();
	*state = native_current;
}

void native_arena_init(struct native_arena *arena)
{
	uint8_t *map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	arena->code = map;
	arena->copy = map + 512;
	/* Off the page of the code, or every write would make the processor drop what it has decoded. */
	arena->data = map + PAGE;
	arena->stack = map + PAGE + 1024;
}

void native_arena_deinit(struct native_arena *arena)
{
	munmap(arena->code, 2 * PAGE);
}

static void write_exit(uint8_t *at, void (*where)(void))
{
	static const uint8_t jump[6] = {0xff, 0x25, 0, 0, 0, 0};
	uint64_t address = (uint64_t)(uintptr_t)where;

	memcpy(at, jump, sizeof(jump));
	memcpy(at + sizeof(jump), &address, sizeof(address));
}

void native_arena_load(struct native_arena *arena, const uint8_t *bytes, size_t size)
{
	memcpy(arena->code, bytes, size);
	write_exit(arena->code + size, native_exit_through);
	write_exit(arena->code + size + NATIVE_TAKEN_DISP, native_exit_taken);
}

uint64_t native_arena_taken(const struct native_arena *arena, size_t size)
{
	return (uint64_t)(uintptr_t)(arena->code + size + NATIVE_TAKEN_DISP);
}

uint64_t native_random(void)
{
	static const uint64_t corners[] = {0,          1,         0x7f,       0x80,       0xff,
					   0x7fff,     0x8000,    0xffff,     0x7fffffff, 0x80000000,
					   0xffffffff, INT64_MAX, 1ULL << 63, UINT64_MAX};
	static uint64_t x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	if ((x >> 40) % 4 == 0)
		return corners[(x >> 20) % (sizeof(corners) / sizeof(corners[0]))];
	return x * 0x2545f4914f6cdd1dULL;
}

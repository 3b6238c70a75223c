/* SPDX-License-Identifier: MIT */
/*
 * reaches: blocks that are held in all ways, or in none. Each has a size of its own, by which it is known: "CASE=SIZE" is
 * said of each. With the argument "lsan", in a build with -fsanitize=leak, it then has LeakSanitizer look.
 *
 * Each case is planted by a thread of its own, whose stack and registers hold nothing of it afterwards but what the case
 * is about.
 */
#include "target.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern "C" int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

#define FIRST    1032u /* beyond thread caches; with all of it usable */
#define STEP     64u
#define SCRUBBED 32768u

static unsigned planted;
static std::atomic<unsigned> parked;

KEEP static void *plant(const char *name, bool by_calloc = false)
{
	size_t size = FIRST + STEP * planted++;
	void *block = by_calloc ? calloc(1, size) : malloc(size);

	memset(block, 0, size);
	target_say(name, size);
	return block;
}

/* What a case may have left of its pointers in registers, and below the stack pointer. */
KEEP static void scrub()
{
	volatile char dead[SCRUBBED];

	for (volatile char &byte : dead)
		byte = 0;
	__asm__ volatile("xor %%eax, %%eax; xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi\n"
			 "xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d\n"
			 "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3\n"
			 "pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7\n"
			 "pxor %%xmm8, %%xmm8; pxor %%xmm9, %%xmm9; pxor %%xmm10, %%xmm10; pxor %%xmm11, %%xmm11\n"
			 "pxor %%xmm12, %%xmm12; pxor %%xmm13, %%xmm13; pxor %%xmm14, %%xmm14; pxor %%xmm15, %%xmm15\n"
			 :
			 :
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

KEEP static void park()
{
	scrub();
	parked++;
	for (;;)
		pause();
}

static void put(void *place, void *pointer)
{
	*static_cast<void **>(place) = pointer;
}

/* --- globals, blocks and mappings ------------------------------------------------------------------------------------ */

/* Volatile: nobody reads them. */
static void *volatile held,
	*volatile into, *volatile low_tagged, *volatile high_tagged, *volatile xored, *volatile parent, *volatile stale;
static char unaligned[16];

KEEP static void plant_plain()
{
	void *tree, *ring[2], *old, *freed, *packed;

	held = plant("global");
	plant("lost");
	tree = plant("lost_tree_head");
	put(tree, plant("lost_tree_child"));
	ring[0] = plant("cycle_1");
	ring[1] = plant("cycle_2");
	put(ring[0], ring[1]);
	put(ring[1], ring[0]);
	into = static_cast<char *>(plant("interior")) + 200;
	put(static_cast<char *>(into) - 200, plant("interior_child"));
	low_tagged = static_cast<char *>(plant("low_tag")) + 1;
	high_tagged = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(plant("high_tag")) | uintptr_t{0xab} << 56);
	xored = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(plant("xored")) ^ 0x5555555555555555);
	packed = plant("unaligned");
	memcpy(unaligned + 4, &packed, sizeof(packed));
	OPAQUE(packed);
	old = parent = plant("old_block");
	put(old, plant("held_by_old_block"));
	freed = stale = plant("freed");
	put(static_cast<char *>(freed) + 64, plant("held_by_freed"));
	free(freed);
}

static void *page(int flags)
{
	return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

/* As the operand of an instruction: mov $block, %rax. */
static void put_in_code(void *block)
{
	char *code = static_cast<char *>(page(MAP_PRIVATE));

	code[0] = 0x48;
	code[1] = static_cast<char>(0xb8);
	memcpy(code + 2, &block, sizeof(block));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
}

/* A message to itself that is under way: a byte, and then a pointer. */
static void plant_in_pipe()
{
	char message[1 + sizeof(void *)] = {1};
	void *block = plant("pipe");
	int ends[2];

	memcpy(message + 1, &block, sizeof(block));
	if (pipe(ends) != 0 || write(ends[1], message, sizeof(message)) != sizeof(message))
		target_fail("can't write to a pipe");
	memset(message, 0, sizeof(message));
}

/* What the kernel alone knows of. */
KEEP static void plant_in_kernel()
{
	epoll_event event = {};
	sigevent signal = {};
	timer_t timer;

	event.data.ptr = plant("epoll");
	epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, eventfd(0, 0), &event);
	signal.sigev_notify = SIGEV_SIGNAL;
	signal.sigev_signo = SIGUSR2;
	signal.sigev_value.sival_ptr = plant("timer");
	timer_create(CLOCK_MONOTONIC, &signal, &timer);
	plant_in_pipe();
}

KEEP static void plant_mappings()
{
	void *none = page(MAP_PRIVATE), *not_forked = page(MAP_PRIVATE);

	put(page(MAP_PRIVATE), plant("mapping"));
	put(page(MAP_SHARED), plant("shared_memory"));
	put(none, plant("prot_none"));
	put_in_code(plant("in_code"));
	mprotect(none, 4096, PROT_NONE);
	madvise(not_forked, 4096, MADV_DONTFORK);
	put(not_forked, plant("not_forked"));
}

/* --- C++ --------------------------------------------------------------------------------------------------------------- */

struct Element {
	~Element()
	{
		OPAQUE(*this);
	}
	char bytes[8];
};

struct First {
	virtual ~First() = default;
	long first = 1;
};

struct Second {
	virtual ~Second() = default;
	long second = 2;
};

/* plant() does not come to these. */
static constexpr size_t BOTH = FIRST + STEP * 40, ARRAY = FIRST + STEP * 41, TEXT = FIRST + STEP * 42;

struct Both : First, Second {
	char fill[BOTH - sizeof(First) - sizeof(Second)] = {};
};
static_assert(sizeof(Both) == BOTH, "its size is the case's");

static Second *volatile base;
static Element *volatile array;
alignas(std::string) static char text_place[sizeof(std::string)];

KEEP static void plant_objects()
{
	std::string *text;

	base = new Both;
	target_say("second_base", BOTH);
	array = new Element[(ARRAY - 8) / sizeof(Element)];
	target_say("array_with_cookie", ARRAY);
	/* Of the old ABI: three words before the characters. */
	text = new (text_place) std::string(TEXT - 25, 'x');
	OPAQUE(text);
	target_say("old_string", TEXT);
}

/* --- threads ----------------------------------------------------------------------------------------------------------- */

static thread_local void *volatile of_thread;

static void *plant_in_thread(void *what)
{
	reinterpret_cast<void (*)()>(what)();
	park();
	return nullptr;
}

static void *hold_in_tls(void *)
{
	of_thread = plant("tls");
	park();
	return nullptr;
}

static void *hold_on_stack(void *)
{
	void *volatile local = plant("stack");

	park();
	return local;
}

/* A pointer in what has been the frame of a function, far below the stack pointer. */
KEEP static void leave_behind()
{
	void *volatile local[64];

	local[0] = plant("dead_stack");
	OPAQUE(local[0]);
}

KEEP static void leave_deep()
{
	char deep[2 * SCRUBBED];

	char *at = deep;

	memset(at, 0, sizeof(deep));
	leave_behind();
	OPAQUE(at);
}

#define FOREVER "1: mov $34, %%eax; syscall; jmp 1b" /* pause() */

static void *hold_in_register(void *)
{
	void *block = plant("register");

	scrub();
	parked++;
	__asm__ volatile("mov %0, %%r15; movq $0, %1; xor %%ebx, %%ebx; xor %%ebp, %%ebp\n"
			 "xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d\n" FOREVER
			 :
			 : "a"(block), "m"(block)
			 : "r15", "memory");
	return nullptr;
}

static void *hold_in_vector(void *)
{
	void *block = plant("vector_register");

	scrub();
	parked++;
	__asm__ volatile("movq %0, %%xmm15; movq $0, %1; xor %%ebx, %%ebx; xor %%ebp, %%ebp\n"
			 "xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d; xor %%r15d, %%r15d\n" FOREVER
			 :
			 : "a"(block), "m"(block)
			 : "xmm15", "memory");
	return nullptr;
}

static void *hold_while_allocating(void *)
{
	void *volatile local = plant("thread_in_malloc");

	scrub();
	parked++;
	for (unsigned i = 0;; i++)
		free(target_filled(16 + i % 64 * 8, 1));
	return local;
}

/* --- other stacks ------------------------------------------------------------------------------------------------------ */

#define STACK (FIRST + 1024 * 64 + 8) /* 8 more than a multiple of 16, as all */

static void on_signal(int)
{
	void *volatile local = plant("alternate_stack_frame");

	park();
	free(local);
}

KEEP static void give_to_kernel()
{
	stack_t stack = {};

	stack.ss_size = STACK + 512;
	stack.ss_sp = malloc(stack.ss_size);
	target_say("signal_stack", stack.ss_size);
	*static_cast<void **>(stack.ss_sp) = plant("signal_stack_block");
	if (sigaltstack(&stack, nullptr) != 0)
		target_fail("no alternate stack");
}

/* Where its alternate stack is only the kernel knows. */
static void *hold_in_kernel(void *)
{
	give_to_kernel();
	park();
	return nullptr;
}

static void *hold_on_alternate_stack(void *)
{
	void *volatile local = plant("interrupted_frame");
	stack_t stack = {};
	struct sigaction action = {};

	stack.ss_size = STACK;
	stack.ss_sp = malloc(STACK);
	target_say("alternate_stack", STACK);
	sigaltstack(&stack, nullptr);
	memset(&stack, 0, sizeof(stack));
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	pthread_kill(pthread_self(), SIGUSR1);
	return local;
}

static ucontext_t running, away, left, left_away;

static void run_on()
{
	void *volatile local = plant("coroutine_frame");

	park();
	free(local);
}

static void go_away()
{
	/* memcheck may see only the innermost frame here, and merges blocks whose frames are the same: not with run_on()'s. */
	void *volatile local = plant("coroutine_away", true);

	swapcontext(&away, &left_away);
	free(local);
}

static void begin(ucontext_t *context, ucontext_t *next, void (*function)(), const char *name, size_t size)
{
	getcontext(context);
	context->uc_stack.ss_sp = malloc(size);
	context->uc_stack.ss_size = size;
	context->uc_link = next;
	target_say(name, size);
	makecontext(context, function, 0);
}

static void *hold_in_coroutine(void *)
{
	void *volatile local = plant("left_for_coroutine");

	begin(&running, &left, run_on, "coroutine_stack", STACK + 1024);
	swapcontext(&left, &running);
	return local;
}

static void *hold_in_coroutine_away(void *)
{
	begin(&away, &left_away, go_away, "coroutine_away_stack", STACK + 2048);
	swapcontext(&left_away, &away);
	park();
	return nullptr;
}

/* --- */

static void start(void *(*run)(void *), void (*what)())
{
	unsigned before = parked;
	pthread_t thread;

	if (pthread_create(&thread, nullptr, run, reinterpret_cast<void *>(what)) != 0)
		target_fail("no thread");
	while (parked == before)
		usleep(1000);
}

int main(int argc, char **)
{
	target_ready();
	for (void (*what)() : {plant_plain, plant_mappings, plant_in_kernel, plant_objects, leave_deep})
		start(plant_in_thread, what);
	for (void *(*run)(void *) :
	     {hold_in_tls, hold_on_stack, hold_in_register, hold_in_vector, hold_while_allocating, hold_in_kernel,
	      hold_on_alternate_stack, hold_in_coroutine, hold_in_coroutine_away})
		start(run, nullptr);
	scrub();
	if (argc > 1 && __lsan_do_recoverable_leak_check)
		__lsan_do_recoverable_leak_check();
	target_done();
	_exit(0);
}

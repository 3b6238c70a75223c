/* SPDX-License-Identifier: MIT */
/*
 * tinystacks goroutine|signal|coroutine|segment|local|thread: the main thread runs on a stack that ends right below its
 * stack pointer, as memwatch comes and goes or is killed, and watches over what lies below:
 *
 *      goroutine   2 KiB among other objects of the heap, as Go's runtime has them
 *      signal      an alternate signal stack of the smallest size, in static memory
 *      coroutine   a context of 3 KiB in an array of the program's own
 *      segment     memory of its own with unmapped memory below it, of which little is left (split stacks)
 *      local       an alternate signal stack that is a variable of the function that was interrupted
 *      thread      not the main thread but another one runs on such a stack of the heap; the main thread has ended
 */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BELOW     32768u /* bytes that are watched */
#define ABOVE     4096u
#define PAGE      4096u
#define MARK      0x5a
#define COROUTINE 3072u
#define GOROUTINE 2048u
#define SEGMENT   8192u
#define SMALLEST  16384u /* of the alternate stacks: what the kernel asks for is more than MINSIGSTKSZ on some CPUs */

struct watched {
	unsigned char below[BELOW];
	unsigned char stack[SMALLEST];
	unsigned char above[ABOVE];
};

static struct watched static_memory;
static ucontext_t outside, inside;
static atomic_bool over;
static const unsigned char *from, *to;
static volatile uint64_t rounds;

/* Nothing is called: a stack of 2 KiB has no room for much, and memwatch is to find the thread here. */
static inline __attribute__((always_inline)) bool are_marked(const unsigned char *at, const unsigned char *end)
{
	for (; at < end; at++)
		if (*(const volatile unsigned char *)at != MARK)
			return false;
	return true;
}

static KEEP void watch_over(void)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (!are_marked(from, to)) {
			static const char text[] = "failed what lies below a stack was overwritten\n";

			_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) > 0 ? 1 : 97);
		}
		rounds++;
	}
}

static void on_signal(int number)
{
	(void)number;
	watch_over();
}

/* `size` bytes of the stack, `below` of what lies below it. */
static void run_context(unsigned char *stack, size_t size, size_t below)
{
	from = stack - below;
	to = stack;
	if (getcontext(&inside))
		target_fail("getcontext");
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = size;
	inside.uc_link = &outside;
	makecontext(&inside, watch_over, 0);
	if (swapcontext(&outside, &inside))
		target_fail("swapcontext");
	if (!atomic_load(&over))
		target_fail("a function has returned by itself");
}

static void run_handler(struct watched *memory)
{
	size_t size = getauxval(AT_MINSIGSTKSZ);
	struct sigaction action;
	stack_t stack = {.ss_flags = 0};

	if (size < 2048)
		size = 2048;
	if (size > SMALLEST)
		target_fail("the kernel asks for larger signal stacks");
	memset(memory, MARK, sizeof(*memory));
	/* At the low end of it, which lies right above what is watched. */
	stack.ss_sp = memory->stack;
	stack.ss_size = size;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	from = memory->below;
	to = memory->stack;
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1))
		target_fail("a handler on an alternate stack");
	if (!are_marked(memory->stack + size, memory->above + sizeof(memory->above)))
		target_fail("what lies above a stack was overwritten");
}

static void by_goroutine(void)
{
	struct watched *memory = malloc(sizeof(*memory));

	if (!memory)
		target_fail("malloc");
	memset(memory, MARK, sizeof(*memory));
	run_context(memory->stack, GOROUTINE, BELOW);
}

static void by_coroutine(void)
{
	memset(&static_memory, MARK, sizeof(static_memory));
	run_context(static_memory.stack, COROUTINE, BELOW);
}

static void by_segment(void)
{
	char *at = mmap(NULL, PAGE + SEGMENT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + PAGE, SEGMENT, PROT_READ | PROT_WRITE))
		target_fail("mmap of a stack");
	run_context((unsigned char *)at + PAGE, GOROUTINE, 0);
}

/* The rest of the thread's stack is below the variable. */
static KEEP void by_local(void)
{
	struct watched memory;

	OPAQUE(from);
	run_handler(&memory);
}

static void *hear(void *unused)
{
	target_wait();
	atomic_store(&over, true);
	return unused;
}

static void *run_thread(void *unused)
{
	by_goroutine();
	target_say("intact", 1);
	target_done();
	_exit(0);
	return unused;
}

static void run(const char *mode)
{
	if (strcmp(mode, "goroutine") == 0)
		by_goroutine();
	else if (strcmp(mode, "signal") == 0)
		run_handler(&static_memory);
	else if (strcmp(mode, "coroutine") == 0)
		by_coroutine();
	else if (strcmp(mode, "segment") == 0)
		by_segment();
	else if (strcmp(mode, "local") == 0)
		by_local();
	else
		target_fail("no such mode");
}

int main(int argc, char **argv)
{
	pthread_t thread;

	bool other = argc > 1 && strcmp(argv[1], "thread") == 0;

	target_ready();
	if ((other && pthread_create(&thread, NULL, run_thread, NULL)) || pthread_create(&thread, NULL, hear, NULL))
		target_fail("pthread_create");
	if (other)
		pthread_exit(NULL);
	run(argc > 1 ? argv[1] : "");
	target_say("intact", 1);
	target_say("alive", rounds > 0);
	target_done();
	return 0;
}

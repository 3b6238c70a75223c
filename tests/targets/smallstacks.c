/* SPDX-License-Identifier: MIT */
/*
 * smallstacks signal|coroutine|thread: allocations with little stack, and unmapped memory on both sides of it: in
 * handlers on an alternate stack of 8 KiB, in coroutines, in threads with the smallest stack there is.
 */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE       4096u
#define ROUNDS     2000
#define SIGNAL     (2 * PAGE)
#define COROUTINES 32
#define COROUTINE  (3 * PAGE)
#define THREADS    400

static ucontext_t scheduler, contexts[COROUTINES];
static uint64_t leaks;

/* Memory with a hole before and behind it. */
static char *stack_of(size_t size)
{
	char *at = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + PAGE, size, PROT_READ | PROT_WRITE))
		target_fail("mmap of a stack");
	return at + PAGE;
}

static KEEP void small_leak(void)
{
	void *block = malloc(63);

	OPAQUE(block);
	__atomic_add_fetch(&leaks, 1, __ATOMIC_RELAXED);
}

static KEEP void small_pair(unsigned i)
{
	char *block = malloc(1 + i % 300), *more;

	memset(block, 'p', 1 + i % 300);
	more = realloc(block, 400);
	OPAQUE(more);
	if (more[i % 300] != 'p')
		target_fail("a block lost what was written there");
	free(more);
}

static KEEP void small_descend(unsigned depth, unsigned i)
{
	volatile unsigned mark = depth;

	if (depth > 0) {
		small_descend(depth - 1, i);
	} else {
		small_pair(i);
		if (i % 4 == 0)
			small_leak();
	}
	if (mark != depth)
		target_fail("a stack frame was overwritten");
}

static void on_signal(int number)
{
	small_descend(3, (unsigned)number * 2);
}

static void by_signal(void)
{
	struct sigaction action;
	stack_t stack = {.ss_size = SIGNAL};

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL); /* 12: a leak each time */
	stack.ss_sp = stack_of(SIGNAL);
	if (sigaltstack(&stack, NULL))
		target_fail("sigaltstack");
	target_ready();
	for (unsigned i = 0; i < ROUNDS; i++)
		raise(SIGUSR2);
}

static void coroutine(int number)
{
	for (unsigned i = 0; i < ROUNDS / 8; i++) {
		small_descend(i % 6, i);
		swapcontext(&contexts[number], &scheduler);
	}
}

/* Half the stacks are blocks of the heap, as many a library has it. */
static void by_coroutine(void)
{
	target_ready();
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = i % 2 ? malloc(COROUTINE) : stack_of(COROUTINE);
		contexts[i].uc_stack.ss_size = COROUTINE;
		contexts[i].uc_link = &scheduler;
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	for (unsigned round = 0; round <= ROUNDS / 8; round++)
		for (int i = 0; i < COROUTINES; i++)
			swapcontext(&scheduler, &contexts[i]);
}

static void *thread(void *unused)
{
	for (unsigned i = 0; i < 16; i++)
		small_descend(i % 5, i);
	return unused;
}

static void by_thread(void)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN))
		target_fail("pthread_attr_setstacksize");
	target_ready();
	for (int i = 0; i < THREADS; i += 4) {
		pthread_t threads[4];

		for (int j = 0; j < 4; j++)
			if (pthread_create(&threads[j], &attributes, thread, NULL))
				target_fail("pthread_create");
		for (int j = 0; j < 4; j++)
			pthread_join(threads[j], NULL);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "signal";

	if (strcmp(mode, "signal") == 0)
		by_signal();
	else if (strcmp(mode, "coroutine") == 0)
		by_coroutine();
	else
		by_thread();
	target_say("small_leak.impacting.count", leaks);
	target_say("small_leak.impacting.bytes", leaks * 63);
	target_say("small_pair.impacting.count", 0);
	target_done();
	return 0;
}

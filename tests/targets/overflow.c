/* SPDX-License-Identifier: MIT */
/*
 * overflow [ROUNDS]: recursion that allocates at every level until the stack ends, over and over; a handler on an
 * alternate stack allocates as well and jumps out of it, whatever was being done. To be run with libbump.so preloaded,
 * whose functions may be left at any time.
 */
#include "target.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STACK (96u << 10)

static sigjmp_buf back;
static uint64_t overflows, handled;
static volatile uint64_t deepest, most = UINT64_MAX;

static KEEP void overflow_handled(void)
{
	void *block = malloc(91);

	OPAQUE(block);
	handled++;
}

static void on_fault(int number)
{
	(void)number;
	overflow_handled();
	siglongjmp(back, 1);
}

static KEEP void overflow_descend(uint64_t depth, size_t size)
{
	volatile char room[200];
	void *block = malloc(size);

	OPAQUE(block);
	room[depth % 200] = 1;
	if (depth > deepest)
		deepest = depth;
	if (depth < most)
		overflow_descend(depth + 1, size);
	if (room[depth % 200] != 1)
		target_fail("a stack frame was overwritten");
	free(block);
}

static void *work(void *argument)
{
	static char memory[65536];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	volatile uint64_t rounds = *(uint64_t *)argument;

	sigaltstack(&stack, NULL);
	for (volatile uint64_t i = 0; i < rounds; i++) {
		if (sigsetjmp(back, 1) == 0)
			overflow_descend(0, 16 + i % 5);
		overflows++;
	}
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	const _Atomic uint64_t *entered = dlsym(RTLD_DEFAULT, "bump_entered");
	const _Atomic uint64_t *allocations = dlsym(RTLD_DEFAULT, "bump_allocations");
	uint64_t entered_before, allocations_before;
	struct sigaction action;
	pthread_attr_t attributes;
	pthread_t thread;

	if (!entered || !allocations)
		target_fail("libbump.so is not preloaded");
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_fault;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGSEGV, &action, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	target_ready();
	entered_before = *entered;
	allocations_before = *allocations;
	if (pthread_create(&thread, &attributes, work, &rounds))
		target_fail("pthread_create");
	pthread_join(thread, NULL);
	if (overflows != rounds || handled != rounds)
		target_fail("an overflow was lost");
	if (deepest < STACK / 2000)
		target_fail("the stack ended early");
	target_say("entered", *entered - entered_before);
	target_say("completed", *allocations - allocations_before);
	target_say("overflows", rounds);
	target_say("overflow_handled.impacting.count", rounds);
	target_say("overflow_handled.impacting.bytes", rounds * 91);
	target_done();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * preempted [mapped|guarded|local] (needs libbump.so preloaded): threads of the program's own making, which a signal's
 * handler takes the CPU from wherever they are, in the middle of malloc as well, by switching to the stack of another.
 *
 * Their stacks are in the program's own data; mapped, in one mapping beside others, as a large malloc gives it;
 * guarded, the same with a guard page (MADV_GUARD_INSTALL) below each, and used from end to end; local, in a variable
 * of a function, on the stack of the first thread.
 *
 * They go on until the harness says so. What each has allocated it has written into, and reads again when it has been
 * away.
 */
#include "target.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define COUNT  6
#define STACK  65536
#define PAGE   4096u
#define BLOCKS 8
#define PAUSE  20000   /* ns from round to round: libbump never gives anything back */
#define MOST   1000000 /* rounds, for the same reason */

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static ucontext_t contexts[COUNT];
static char data[COUNT * STACK] __attribute__((aligned(16))), *stacks = data;
static volatile sig_atomic_t current, rounds[COUNT], wrong, enough;

static void on_tick(int number)
{
	int from = current;

	(void)number;
	current = (from + 1) % COUNT;
	if (swapcontext(&contexts[from], &contexts[current]) != 0)
		_exit(3);
}

static KEEP void preempted_round(unsigned depth, unsigned self)
{
	char *blocks[BLOCKS];

	if (depth > 0) {
		preempted_round(depth - 1, self);
		return;
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(16 + i);
		OPAQUE(blocks[i]);
		memset(blocks[i], (int)(self + i), 16 + i);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		for (unsigned j = 0; j < 16 + i; j++)
			wrong |= blocks[i][j] != (char)(self + i);
		free(blocks[i]);
	}
}

static void spend(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < PAUSE);
}

static void work(unsigned self)
{
	while (!enough) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

		if (rounds[self] < MOST / COUNT) {
			preempted_round(self, self);
			rounds[self]++;
		}
		spend();
		if (self == 0 && poll(&input, 1, 0) == 1)
			enough = 1;
	}
}

static void set_tick(int how)
{
	sigset_t tick;

	sigemptyset(&tick);
	sigaddset(&tick, SIGPROF);
	sigprocmask(how, &tick, NULL);
}

/* Begun with the tick blocked: swapcontext sets the mask first, and one that came then would find the old stack. */
static void begin(void)
{
	set_tick(SIG_UNBLOCK);
	work((unsigned)current);
	/* The first one ends the program. */
	for (;;)
		pause();
}

static void answer(void)
{
	uint64_t all = 0;

	for (int i = 0; i < COUNT; i++)
		all += (uint64_t)rounds[i];
	if (wrong)
		target_fail("a block has another content");
	target_say("rounds", all);
	target_done();
}

static void map_stacks(void)
{
	stacks = mmap(NULL, sizeof(data), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED)
		target_fail("there is no memory");
}

/* Before Linux 6.13 there are no guards. */
static void guard_stacks(void)
{
	memset(stacks, 'g', sizeof(data));
	for (size_t i = 0; i < COUNT; i++)
		(void)madvise(stacks + i * STACK, PAGE, MADV_GUARD_INSTALL);
}

static void run(void)
{
	struct sigaction action = {.sa_handler = on_tick};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};

	set_tick(SIG_BLOCK);
	for (int i = 1; i < COUNT; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack = (stack_t){.ss_sp = stacks + (size_t)i * STACK, .ss_size = STACK};
		makecontext(&contexts[i], begin, 0);
	}
	set_tick(SIG_UNBLOCK);
	sigaction(SIGPROF, &action, NULL);
	target_ready();
	setitimer(ITIMER_PROF, &often, NULL);
	work(0);
	setitimer(ITIMER_PROF, &never, NULL);
	target_wait();
	answer();
}

static KEEP void run_on_local_stacks(void)
{
	char local[COUNT * STACK] __attribute__((aligned(16)));

	stacks = local;
	OPAQUE(stacks);
	run();
}

int main(int argc, char **argv)
{
	const char *place = argc > 1 ? argv[1] : "";

	if (strcmp(place, "local") == 0) {
		run_on_local_stacks();
		return 0;
	}
	if (strcmp(place, "mapped") == 0 || strcmp(place, "guarded") == 0)
		map_stacks();
	if (strcmp(place, "guarded") == 0)
		guard_stacks();
	run();
	return 0;
}

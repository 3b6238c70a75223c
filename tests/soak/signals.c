/* SPDX-License-Identifier: MIT */
/*
 * signals.c: a program with int3s and faults of its own, whose handlers see exactly what they should see; its actions
 * are what it has set; timers interrupt its allocations.
 */
#include "fleet.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK (64 << 10)

static volatile uint64_t breakpoints, raised, faults, ticks, nudges;
static volatile char *forbidden;
static sigjmp_buf after_fault;

static void on_trap(int number, siginfo_t *info, void *context)
{
	const unsigned char *pc = (const unsigned char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (number != SIGTRAP)
		fleet_wrong("a handler of SIGTRAP got another signal");
	if (info->si_code == SI_TKILL) {
		raised++;
		return;
	}
	if (info->si_code != SI_KERNEL || pc[-1] != 0xcc)
		fleet_wrong("a SIGTRAP that is none of the program's");
	breakpoints++;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	if (info->si_addr != (const void *)forbidden)
		fleet_wrong("a fault at another address");
	faults++;
	siglongjmp(after_fault, 1);
}

static void on_tick(int number)
{
	(void)number;
	ticks++;
}

/* Comes only while the thread waits for it, so it may allocate. */
static void on_nudge(int number)
{
	struct blocks blocks;

	(void)number;
	blocks_init(&blocks, nudges + 3);
	blocks_step(&blocks, 12);
	blocks_deinit(&blocks);
	nudges++;
}

static void set(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR2);
	if (sigaction(number, &action, NULL) != 0)
		fleet_wrong("an action can't be set");
}

/* The action of SIGTRAP is what was set, also after it was another. */
static void check_action(void)
{
	struct sigaction found, ignore = {.sa_handler = SIG_IGN};
	uint64_t before = raised;

	if (sigaction(SIGTRAP, NULL, &found) != 0 || found.sa_sigaction != on_trap)
		fleet_wrong("another handler of SIGTRAP than was set");
	if (!(found.sa_flags & SA_ONSTACK) || !sigismember(&found.sa_mask, SIGUSR2) ||
	    sigismember(&found.sa_mask, SIGUSR1))
		fleet_wrong("another action of SIGTRAP than was set");
	if (sigaction(SIGTRAP, &ignore, &found) != 0 || found.sa_sigaction != on_trap)
		fleet_wrong("another action of SIGTRAP was replaced than was set");
	raise(SIGTRAP);
	if (sigaction(SIGTRAP, &found, &ignore) != 0 || ignore.sa_handler != SIG_IGN)
		fleet_wrong("SIGTRAP is not ignored");
	if (raised != before)
		fleet_wrong("an ignored SIGTRAP came");
	raise(SIGTRAP);
	if (raised != before + 1)
		fleet_wrong("a raised SIGTRAP did not come once");
}

static void break_work(unsigned number)
{
	stack_t stack = {.ss_size = STACK};
	struct blocks blocks;

	stack.ss_sp = malloc(STACK);
	if (!stack.ss_sp || sigaltstack(&stack, NULL) != 0)
		fleet_wrong("no stack for signals");
	blocks_init(&blocks, number + 51);
	for (uint64_t round = 1;; round++) {
		blocks_step(&blocks, 10);
		__asm__ volatile("int3" : : : "memory");
		if (breakpoints != round)
			fleet_wrong("a breakpoint was not told of once");
		check_action();
		fleet_advance(number);
	}
}

static void fault_work(unsigned number)
{
	static volatile uint64_t round;
	static struct blocks blocks;

	blocks_init(&blocks, number + 61);
	for (;;) {
		blocks_step(&blocks, 10);
		if (sigsetjmp(after_fault, 1) == 0) {
			*forbidden = 1;
			fleet_wrong("a write to a forbidden page went well");
		}
		if (faults != ++round)
			fleet_wrong("a fault was not told of once");
		fleet_advance(number);
	}
}

static void ticked_work(unsigned number)
{
	struct blocks blocks;
	sigset_t ticks_only, found;

	sigemptyset(&ticks_only);
	sigaddset(&ticks_only, SIGRTMIN);
	if (pthread_sigmask(SIG_UNBLOCK, &ticks_only, NULL) != 0)
		fleet_wrong("the mask can't be set");
	blocks_init(&blocks, number + 71);
	for (uint64_t round = 0;; round++) {
		uint64_t before = ticks;

		blocks_step(&blocks, 20);
		if (pthread_sigmask(SIG_BLOCK, NULL, &found) != 0 || sigismember(&found, SIGTRAP) ||
		    sigismember(&found, SIGRTMIN) || !sigismember(&found, SIGUSR1))
			fleet_wrong("another mask than was set");
		/* Some ticks must come in time. */
		while (round % 200 == 0 && ticks == before)
			fleet_rest(1000);
		fleet_advance(number);
	}
}

static void nudged_work(unsigned number)
{
	sigset_t waiting;

	pthread_sigmask(SIG_BLOCK, NULL, &waiting);
	sigdelset(&waiting, SIGUSR1);
	for (uint64_t round = 1;; round++) {
		pthread_kill(pthread_self(), SIGUSR1);
		sigsuspend(&waiting);
		if (nudges != round)
			fleet_wrong("a signal that was waited for did not come once");
		fleet_advance(number);
	}
}

unsigned fleet_signals(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	struct itimerspec every = {{0, 3000000}, {0, 3000000}};
	struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct sigaction nudge = {.sa_handler = on_nudge};
	sigset_t blocked;
	timer_t timer;

	forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set(SIGTRAP, on_trap, SA_ONSTACK);
	set(SIGSEGV, on_fault, SA_NODEFER);
	sigaction(SIGRTMIN, &tick, NULL);
	sigaction(SIGUSR1, &nudge, NULL);
	/* Threads inherit the mask: ticks come to the one that wants them. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigaddset(&blocked, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	if (forbidden == MAP_FAILED || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
	    timer_settime(timer, 0, &every, NULL) != 0)
		fleet_wrong("no timer");
	fleet_thread(break_work, 0);
	fleet_thread(fault_work, 1);
	fleet_thread(ticked_work, 2);
	fleet_thread(nudged_work, 3);
	return 4;
}

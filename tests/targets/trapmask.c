/* SPDX-License-Identifier: MIT */
/*
 * trapmask WHAT: a program that blocks, ignores, handles and raises SIGTRAP around its allocations, and looks
 * itself at what became of its masks and its action. WHAT is
 *   some       SIGTRAP and SIGINT blocked, then all but SIGTRAP, each for one pair
 *   handler, ignore, inner_handler, inner_ignore
 *              an action for SIGTRAP, set before or inside the window, must be there inside and after it
 *   pending    what is raised while blocked arrives once, when it is unblocked
 */
#include "target.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 200
#define PAIRS  5

static volatile sig_atomic_t arrived;
static uint64_t pairs;

static void on_trap(int signal_number)
{
	(void)signal_number;
	arrived++;
}

static KEEP void trapmask_pair(void)
{
	void *block = malloc(58);

	OPAQUE(block);
	free(block);
	pairs++;
}

/* Allocates with exactly these signals blocked. */
static void pair_with(const sigset_t *blocked)
{
	sigset_t before, inside, after;

	if (sigprocmask(SIG_SETMASK, blocked, &before) != 0)
		target_fail("sigprocmask");
	if (sigismember(&before, SIGTRAP))
		target_fail("the old mask is not what it was");
	trapmask_pair();
	sigprocmask(SIG_SETMASK, &before, &inside);
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < 32; i++) {
		if (i != SIGKILL && i != SIGSTOP && sigismember(&inside, i) != sigismember(blocked, i))
			target_fail(i == SIGTRAP ? "SIGTRAP's bit of the mask changed" : "the mask changed");
		if (sigismember(&after, i) != sigismember(&before, i))
			target_fail("the mask is not put back");
	}
}

static void some(void)
{
	sigset_t mask;

	for (int i = 0; i < ROUNDS; i++) {
		sigemptyset(&mask);
		sigaddset(&mask, SIGTRAP);
		sigaddset(&mask, SIGINT);
		pair_with(&mask);
		sigfillset(&mask);
		sigdelset(&mask, SIGTRAP);
		pair_with(&mask);
	}
}

static void act(void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	sigaddset(&action.sa_mask, SIGUSR2);
	if (sigaction(SIGTRAP, &action, NULL) != 0)
		target_fail("sigaction");
}

static void check_action(void (*handler)(int), const char *what)
{
	struct sigaction action;

	sigaction(SIGTRAP, NULL, &action);
	if (action.sa_handler != handler || !(action.sa_flags & SA_RESTART) ||
	    sigismember(&action.sa_mask, SIGUSR2) != 1 || sigismember(&action.sa_mask, SIGUSR1) != 0)
		target_fail(what);
}

static void disposition(void (*handler)(int))
{
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	for (int i = 0; i < ROUNDS; i++) {
		pair_with(i % 2 ? &all : &none);
		check_action(handler, "the action changed inside the window");
	}
}

static void pending(void)
{
	sigset_t trap, before, waiting;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_sigmask(SIG_BLOCK, &trap, &before);
		raise(SIGTRAP);
		for (int k = 0; k < PAIRS; k++)
			trapmask_pair();
		sigpending(&waiting);
		if (arrived != i)
			target_fail("a blocked SIGTRAP arrived");
		if (sigismember(&waiting, SIGTRAP) != 1)
			target_fail("a pending SIGTRAP is gone");
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (arrived != i + 1)
			target_fail("a SIGTRAP did not arrive once when it was unblocked");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "some";
	bool inner = strncmp(what, "inner_", 6) == 0;
	const char *name = inner ? what + 6 : what;
	void (*handler)(int) = strcmp(name, "ignore") == 0 ? SIG_IGN : on_trap;
	bool acts = strcmp(name, "some") != 0;

	if (acts && !inner)
		act(handler);
	target_ready();
	if (acts && inner) {
		trapmask_pair();
		act(handler);
	}
	if (!acts)
		some();
	else if (strcmp(name, "pending") == 0)
		pending();
	else
		disposition(handler);
	target_say("trapmask_pair.size.count", pairs);
	target_say("trapmask_pair.transient.count", pairs);
	target_say("heap.size.count", pairs);
	target_say("heap.aofi.count", 0);
	target_done();
	if (acts)
		check_action(handler, "the action changed after the window");
	if (arrived != (strcmp(name, "pending") == 0 ? ROUNDS : 0))
		target_fail("a SIGTRAP arrived that nobody raised");
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * interrupted: a signal has interrupted malloc behind its first instruction, and its handler is at work while memwatch
 * comes: it will go back to the middle of what a jump at malloc's entry would replace.
 */
#include "target.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
#define REPLACED  5 /* bytes of a jump */
#define ROUNDS    50

static uintptr_t entry;
static volatile int interrupted;

static void on_step(int signal_number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	uintptr_t pc = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];

	(void)signal_number, (void)info;
	if (interrupted || pc <= entry || pc >= entry + REPLACED)
		return;
	interrupted = 1;
	at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	target_ready();
}

static KEEP void *stepped(void)
{
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
	return malloc(77);
}

static KEEP void interrupted_leak(void)
{
	void *block = malloc(41);

	OPAQUE(block);
}

int main(void)
{
	struct sigaction action;
	char *block;

	/* Behind an endbr64 where one stands. */
	entry = (uintptr_t)dlsym(RTLD_DEFAULT, "malloc");
	if (memcmp((void *)entry, "\xf3\x0f\x1e\xfa", 4) == 0)
		entry += 4;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_step;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &action, NULL);
	free(malloc(1)); /* what malloc does once is done */
	block = stepped();
	if (!interrupted || !block)
		target_fail("malloc was not interrupted");
	memset(block, 7, 77);
	free(block);
	for (int i = 0; i < ROUNDS; i++)
		interrupted_leak();
	target_say("interrupted_leak.impacting.count", ROUNDS);
	target_say("interrupted_leak.impacting.bytes", ROUNDS * 41);
	target_done();
	return 0;
}

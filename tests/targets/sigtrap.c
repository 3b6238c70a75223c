/* SPDX-License-Identifier: MIT */
/* sigtrap: a program that owns SIGTRAP: raises it, has int3 in its own code, and counts what arrives. */
#include "target.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 300

static volatile sig_atomic_t raised, trapped, other;

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)context;
	if (info->si_code == SI_TKILL && info->si_pid == getpid())
		raised++;
	else if (info->si_code == SI_KERNEL)
		trapped++;
	else
		other++;
}

static KEEP void sigtrap_leak(void)
{
	void *block = malloc(31);

	OPAQUE(block);
}

int main(void)
{
	struct sigaction action, after;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &action, NULL);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		raise(SIGTRAP);
		sigtrap_leak();
		__asm__ volatile("int3");
		if (i % 2)
			__asm__ volatile(".byte 0xcd, 0x03"); /* int $3 in two bytes */
	}
	sigaction(SIGTRAP, NULL, &after);
	if (after.sa_sigaction != on_trap)
		target_fail("the SIGTRAP handler was changed");
	target_say("raised", (uint64_t)raised);
	target_say("trapped", (uint64_t)trapped);
	if (raised != ROUNDS || trapped != ROUNDS + ROUNDS / 2 || other != 0)
		target_fail("traps were lost, doubled or changed");
	target_say("sigtrap_leak.impacting.count", ROUNDS);
	target_say("sigtrap_leak.impacting.bytes", ROUNDS * 31);
	target_done();
	return 0;
}

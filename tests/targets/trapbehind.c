/* SPDX-License-Identifier: MIT */
/* trapbehind: a program with an int3 of its own where a call of malloc returns to. */
#include "target.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 300

static volatile sig_atomic_t trapped, other;

/* Nothing stands between the call and the trap. */
void *trapbehind_take(size_t size);
__asm__(".text\n"
	".type trapbehind_take, @function\n"
	"trapbehind_take:\n"
	".cfi_startproc\n"
	"	sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"	call malloc@PLT\n"
	"	int3\n"
	"	add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size trapbehind_take, . - trapbehind_take\n");

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)context;
	if (info->si_code == SI_KERNEL)
		trapped++;
	else
		other++;
}

int main(void)
{
	struct sigaction action;
	void *block;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &action, NULL);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		block = trapbehind_take(34);
		if (!block)
			target_fail("the trap took malloc's answer");
		memset(block, i, 34);
		if (i % 3 == 0)
			free(block);
	}
	target_say("trapped", (uint64_t)trapped);
	if (trapped != ROUNDS || other != 0)
		target_fail("traps were lost, doubled or changed");
	target_say("trapbehind_take.size.count", ROUNDS);
	target_say("trapbehind_take.impacting.count", ROUNDS - ROUNDS / 3);
	target_say("trapbehind_take.impacting.bytes", (ROUNDS - ROUNDS / 3) * 34);
	target_say("heap.size.count", ROUNDS);
	target_say("heap.aofi.count", 0);
	target_done();
	return 0;
}

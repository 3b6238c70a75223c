// SPDX-License-Identifier: MIT
/*
 * strip.c: actions of other signals whose mask holds SIGTRAP, as that of every handler does which is not to be
 * interrupted (trap.h).
 *
 * The kernel blocks what is in it for the handler's time. A breakpoint that strikes there, with nobody tracing, makes
 * the kernel forget what SIGTRAP leads to, and kill. So while memwatch is attached the kernel's actions lack it: they
 * are gone through at attach, and the C library's system call that sets them is carried out by what rescue.c has put in
 * (stub/rescue/rescue.c), which takes it out and shows it to the program when that asks. A mark of each such action
 * (memwatch/rescue.h) says what is to be put back, by whoever is the one to do it.
 *
 * A mark stands before the kernel has its action: an action without it would stay as it is.
 */
#include "engine/trap/rescues.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <sys/syscall.h>

#define MASK_SIZE    8 /* the kernel's sigset_t */
#define UNCHANGEABLE (UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1))

struct mw_error *trap_sigaction(const struct mw_inject *inject, unsigned signal, bool set,
				struct mw_rescue_action *action)
{
	const uint64_t arguments[6] = {signal, 0, 0, MASK_SIZE};
	struct mw_rescue_action given = {.handler = 0};
	int64_t result = -1;

	if (set)
		given = *action;
	MW_TRY(mw_inject_call_with(inject, SYS_rt_sigaction, arguments, set ? 1 : 2, &given, sizeof(given), &result));
	if (result != 0)
		return mw_error_create(MW_ERROR_SYSTEM, (int)-result, "process %d can't %s its action for signal %u",
				       (int)inject->tid, set ? "set" : "tell", signal);
	if (!set)
		*action = given;
	return NULL;
}

static struct mw_error *strip(struct trap_process *process, const struct mw_inject *inject, unsigned signal)
{
	const size_t offset = (signal - 1) * sizeof(uint64_t);
	struct mw_rescue_action now;
	uint64_t mark;

	MW_TRY(trap_sigaction(inject, signal, false, &now));
	if (!(now.mask & MW_RESCUE_TRAP_BIT))
		return NULL;
	now.mask &= ~MW_RESCUE_TRAP_BIT;
	mark = mw_rescue_mark(&now);
	MW_TRY(trap_rescue_write(process, inject->tid, offsetof(struct mw_rescue, marks.stripped) + offset, &mark,
				 sizeof(mark)));
	return trap_sigaction(inject, signal, true, &now);
}

struct mw_error *trap_actions_strip(struct trap_process *process, const struct mw_inject *inject)
{
	struct mw_status status;
	uint64_t left;

	MW_TRY(mw_status_read(inject->tid, &status));
	left = status.sig_caught & ~(UNCHANGEABLE | MW_RESCUE_TRAP_BIT);
	for (unsigned signal = 1; signal <= MW_RESCUE_SIGNALS; signal++)
		if (left >> (signal - 1) & 1)
			MW_TRY(strip(process, inject, signal));
	return NULL;
}

struct mw_error *trap_actions_restore(const struct mw_inject *inject, const struct mw_rescue_marks *marks)
{
	for (unsigned signal = 1; signal <= MW_RESCUE_SIGNALS; signal++) {
		const uint64_t stripped = marks->stripped[signal - 1], coming = marks->coming[signal - 1];
		struct mw_rescue_action now;

		if (!(stripped | coming))
			continue;
		MW_TRY(trap_sigaction(inject, signal, false, &now));
		if (!mw_rescue_is_stripped(&now, stripped, coming))
			continue;
		now.mask |= MW_RESCUE_TRAP_BIT;
		MW_TRY(trap_sigaction(inject, signal, true, &now));
	}
	return NULL;
}

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
#include "engine/trap/trap.h"
#include "proc/status.h"
#include "target/remote.h"

#include <sys/syscall.h>

#define MASK_SIZE    8 /* the kernel's sigset_t */
#define RED_ZONE     128
#define UNCHANGEABLE (UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1))

/* rt_sigaction in the target; its structure lies below the thread's stack meanwhile. */
struct mw_error *trap_sigaction(const struct mw_inject *inject, uint8_t dwarf_sp, unsigned signal, bool set,
				struct mw_rescue_action *action)
{
	struct mw_tracee_regs regs;
	struct mw_rescue_action scratch;
	int64_t result = -1;
	struct mw_error *err = NULL, *after;
	mw_addr at;

	MW_TRY(mw_tracee_get_regs(inject->tid, &regs));
	at = (regs.general.gpr[dwarf_sp] - RED_ZONE - 2 * sizeof(scratch)) & ~(mw_addr)15;
	MW_TRY(mw_remote_read_all(inject->tid, at, &scratch, sizeof(scratch)));
	if (set)
		MW_TRY(mw_remote_poke(inject->tid, at, action, sizeof(*action)));
	const uint64_t arguments[6] = {signal, set ? at : 0, set ? 0 : at, MASK_SIZE, 0, 0};

	err = mw_inject_call(inject, SYS_rt_sigaction, arguments, &result);
	if (!err && result != 0)
		err = mw_error_create(MW_ERROR_SYSTEM, (int)-result, "process %d can't %s its action for signal %u",
				      (int)inject->tid, set ? "set" : "tell", signal);
	if (!err && !set)
		err = mw_remote_read_all(inject->tid, at, action, sizeof(*action));
	after = mw_remote_poke(inject->tid, at, &scratch, sizeof(scratch));
	mw_error_destroy(after);
	return err;
}

static struct mw_error *strip(struct trap_process *process, const struct mw_inject *inject, unsigned signal)
{
	const size_t offset = (signal - 1) * sizeof(uint64_t);
	struct mw_rescue_action now;
	uint64_t mark;

	MW_TRY(trap_sigaction(inject, process->arch->dwarf_sp, signal, false, &now));
	if (!(now.mask & MW_RESCUE_TRAP_BIT))
		return NULL;
	now.mask &= ~MW_RESCUE_TRAP_BIT;
	mark = mw_rescue_mark(&now);
	MW_TRY(trap_rescue_write(process, inject->tid, offsetof(struct mw_rescue, marks.stripped) + offset, &mark,
				 sizeof(mark)));
	return trap_sigaction(inject, process->arch->dwarf_sp, signal, true, &now);
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

struct mw_error *trap_actions_restore(const struct mw_inject *inject, uint8_t dwarf_sp,
				      const struct mw_rescue_marks *marks)
{
	for (unsigned signal = 1; signal <= MW_RESCUE_SIGNALS; signal++) {
		const uint64_t stripped = marks->stripped[signal - 1], coming = marks->coming[signal - 1];
		struct mw_rescue_action now;

		if (!(stripped | coming))
			continue;
		MW_TRY(trap_sigaction(inject, dwarf_sp, signal, false, &now));
		if (!mw_rescue_is_stripped(&now, stripped, coming))
			continue;
		now.mask |= MW_RESCUE_TRAP_BIT;
		MW_TRY(trap_sigaction(inject, dwarf_sp, signal, true, &now));
	}
	return NULL;
}

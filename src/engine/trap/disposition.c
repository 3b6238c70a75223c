// SPDX-License-Identifier: MIT
/*
 * disposition.c: what the target wants done with SIGTRAP (trap.h).
 *
 * The kernel leads SIGTRAP to what rescue.c has put in; the program's own action is read at attach, and kept there as
 * the program changes it. The C library's system call that sets actions is a breakpoint: the thread goes on in code of
 * ours that carries it out (stub/rescue/rescue.c), so that it is done or not done, but never half, if memwatch is
 * killed. A child that lives in the process's memory (vfork) has actions of its own, but the same breakpoints: its
 * action for SIGTRAP stays as well.
 *
 * The kernel sets a trap's action back to the default when the trap strikes a thread that blocks or ignores it, as our
 * breakpoints may. Then it is put back at once, by a system call in the thread that was interrupted.
 *
 * A program that is run begins with what is ignored, and with no other action. It has found ours, so where the one
 * before it ignored SIGTRAP that is put in by a system call in the new one, before its first instruction.
 */
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "proc/maps.h"
#include "proc/status.h"

struct mw_error *trap_disposition_put_back(struct trap_thread *thread, bool *was_dropped)
{
	struct trap_process *process = thread->process;
	struct mw_status status;

	*was_dropped = false;
	/* One that shares the memory only has actions of its own. */
	if (!process->rescue.base || thread->relation != TRAP_THREAD)
		return NULL;
	MW_TRY(mw_status_read(thread->tid, &status));
	*was_dropped = !(status.sig_caught & MW_RESCUE_TRAP_BIT);
	return *was_dropped ? trap_rescue_lead(process, thread->tid) : NULL;
}

void trap_disposition_look(struct trap_process *process)
{
	if (process->signals.trap_action_changes)
		mw_error_destroy(trap_rescue_look(process, trap_live_tid(process)));
}

static bool ignores(const struct trap_process *process)
{
	return process->signals.trap_action_known &&
	       process->signals.trap_action.handler == (uint64_t)(uintptr_t)SIG_IGN;
}

bool trap_disposition_ignores(struct trap_process *process)
{
	trap_disposition_look(process);
	return ignores(process);
}

bool trap_disposition_is_default(const struct trap_process *process)
{
	return process->signals.trap_action_known && !process->signals.trap_action_changes &&
	       process->signals.trap_action.handler == 0;
}

void trap_disposition_act(struct trap_hit *hit)
{
	struct trap_process *process = hit->process;
	const struct mw_arch *arch = process->arch;
	struct mw_regs *regs = &hit->regs.general;

	process->signals.trap_action_changes |= (int)arch->argument(regs, 0) == SIGTRAP && arch->argument(regs, 1) != 0;
	arch->spare(regs, hit->breakpoint->addr + hit->breakpoint->plan.length, 0);
	regs->pc = trap_rescue_act(process);
}

/* Would the thread that runs another program have ignored SIGTRAP in that? */
static struct mw_error *is_to_ignore(struct trap_thread *thread, bool *out)
{
	struct trap_process *process = thread->process;
	bool resets = false;
	struct mw_status status;

	*out = false;
	if (!process->rescue.led || thread->own_action)
		return NULL;
	/* The process itself has left the memory in which that stands: what was seen last has to do. */
	if (thread->relation == TRAP_SHARING_CHILD) {
		MW_TRY(trap_rescue_look(process, trap_live_tid(process)));
		MW_TRY(trap_rescue_resets(process, thread, &resets));
	}
	if (!ignores(process) || resets)
		return NULL;
	MW_TRY(mw_status_read(thread->tid, &status));
	*out = !(status.sig_ignored & MW_RESCUE_TRAP_BIT);
	return NULL;
}

struct mw_error *trap_disposition_after_exec(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	struct mw_rescue_action ignore = {.handler = (uint64_t)(uintptr_t)SIG_IGN};
	struct mw_inject inject;
	struct mw_maps maps = {0};
	struct mw_error *err;
	bool wanted;

	MW_TRY(is_to_ignore(thread, &wanted));
	if (!wanted || (!process->engine->options.unsafe &&
			!trap_seccomp_policy_may(process, thread->tid, MW_CALL_BIT(SIGACTION))))
		return NULL;
	/* From the exec's own stop no system call can be made. */
	MW_TRY(mw_tracee_to_border(thread->tid));
	err = mw_maps_read(thread->tid, &maps);
	if (!err)
		err = mw_inject_init(&inject, thread->tid, &maps);
	mw_maps_deinit(&maps);
	/* One of another machine's code may have no such instruction. */
	if (err && mw_error_kind(err) == MW_ERROR_UNSUPPORTED) {
		mw_error_destroy(err);
		return NULL;
	}
	MW_TRY(err);
	return trap_sigaction(&inject, SIGTRAP, true, &ignore);
}

// SPDX-License-Identifier: MIT
/*
 * seccomp_policy.c: what the threads of a process may do for us under their seccomp filters (trap.h).
 *
 * One thread has the rescue mapped. All of them return from its handler, may be interrupted where the kernel drops the
 * action for SIGTRAP, which they then set again, and are stopped: so all must live through that.
 */
#include "engine/trap/rescues.h"

static const struct mw_seccomp_policy_need one = {.harmless = MW_CALLS_MAP | MW_CALL_BIT(MPROTECT_CODE) |
							      MW_CALL_BIT(SIGACTION) | MW_CALLS_BACK,
						  .made = MW_CALLS_BACK};
static const struct mw_seccomp_policy_need all = {.harmless = MW_CALL_BIT(SIGACTION) | MW_CALLS_BACK,
						  .made = MW_CALLS_BACK | MW_CALL_BIT(RESTART)};

static struct mw_error *suits(struct trap_process *process, pid_t tid, const struct mw_seccomp_policy_need *need,
			      bool *out)
{
	struct mw_permit permit;

	MW_TRY(mw_seccomp_policy_look(&process->policy, tid, true, &permit));
	*out = mw_permit_suits(&permit, need);
	return NULL;
}

bool trap_seccomp_policy_may(struct trap_process *process, pid_t tid, uint32_t calls)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);
	bool may = false;

	mw_error_destroy(suits(process, tid, &need, &may));
	return may;
}

bool trap_seccomp_policy_may_install(struct trap_process *process, pid_t tid)
{
	return trap_seccomp_policy_may(process, tid, one.harmless);
}

/* What all may do; one in a wait that nothing interrupts, a vfork's maker, can't be looked at, and is as the others. */
static struct mw_error *look_at_all(struct trap_process *process, struct mw_permit *everyone)
{
	void *value;

	*everyone = (struct mw_permit){.known = true, .harmless = MW_CALLS_ALL, .made = MW_CALLS_ALL};
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;
		struct mw_permit permit;
		struct mw_error *err;

		if (!thread->stopped)
			continue;
		err = mw_error_unless_gone(mw_seccomp_policy_look(&process->policy, thread->tid, true, &permit));
		if (err)
			return err;
		everyone->known &= permit.known;
		everyone->harmless &= permit.harmless;
		everyone->made &= permit.made;
	}
	return NULL;
}

struct mw_error *trap_seccomp_policy_check(struct trap_process *process, pid_t tid)
{
	struct mw_permit everyone, permit;

	MW_TRY(look_at_all(process, &everyone));
	process->may_heal = (MW_CALLS_HEAL & ~everyone.made) == 0;
	if (process->engine->options.unsafe)
		return NULL;
	if (!everyone.known)
		return mw_seccomp_policy_unreadable("trap", process->pid);
	if (!mw_permit_suits(&everyone, &all))
		return mw_seccomp_policy_refuse("trap", process->pid, &everyone, &all);
	MW_TRY(mw_seccomp_policy_look(&process->policy, tid, true, &permit));
	return mw_permit_suits(&permit, &one) ? NULL : mw_seccomp_policy_refuse("trap", process->pid, &permit, &one);
}

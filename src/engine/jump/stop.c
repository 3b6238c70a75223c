// SPDX-License-Identifier: MIT
/* stop.c: have all threads of a process stand, and one of them do what is wanted of it (jump.h). */
#include "engine/jump/lifecycle.h"
#include "engine/jump/recorder.h"

#include "base/clock.h"

#include <time.h>

#define REST_NS 5000000

/*
 * It may have become another program before it was traced. Addresses are nobody's any more then, or that one's: it is
 * treated as if the exec had been seen.
 */
static struct mw_error *check_program(struct jump_process *process)
{
	if (!process->recorder.memory.here || !jump_has_execed(process) ||
	    jump_memory_stands(process, jump_live_tid(process)))
		return NULL;
	process->quiesce.execed = true;
	return mw_error_create(MW_ERROR_GONE, 0, "process %d has exec'd another program", process->pid);
}

struct mw_error *jump_stop(struct jump_process *process, uint64_t patience_ns)
{
	const struct timespec rest = {.tv_nsec = REST_NS};
	uint64_t begin = mw_clock_ns();

	for (;;) {
		struct mw_error *err;

		process->quiesce.forked = jump_child_forked;
		process->quiesce.context = process;
		err = mw_quiesce_begin(&process->quiesce, process->pid);
		if (!err)
			err = mw_quiesce_await_injector(&process->quiesce);
		if (!err)
			err = check_program(process);
		if (!err)
			return NULL;
		mw_error_destroy(mw_quiesce_end(&process->quiesce));
		if (mw_error_kind(err) == MW_ERROR_GONE || mw_clock_ns() - begin >= patience_ns)
			return err;
		jump_account_stop(process);
		mw_error_destroy(err);
		nanosleep(&rest, NULL);
	}
}

/*
 * Which thread of a process makes system calls for us: one that lives through them under its seccomp
 * filters, should memwatch be killed amidst one.
 *
 * To put something in, or to plant more, there must be such a thread, or the user's word (--unsafe). To take it out
 * again any will do (mw_seccomp_policy_pick_best).
 */

/* … none where that isn't known: mw_inject_init() says that better. */
static struct mw_error *find(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
			     const struct mw_maps *maps, const struct mw_seccomp_policy_need *need, pid_t *tid,
			     struct mw_permit *permit)
{
	MW_TRY(mw_seccomp_policy_pick(policy, quiesce, maps, need, tid, permit));
	if (!*tid && !permit->known)
		*tid = mw_quiesce_pick(quiesce);
	return NULL;
}

struct mw_error *jump_injector_find(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
				    const struct mw_maps *maps, uint32_t calls, pid_t *tid)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);
	struct mw_permit permit;

	return find(policy, quiesce, maps, &need, tid, &permit);
}

struct mw_error *jump_injector_wanted(struct jump_process *process, uint32_t calls, const struct mw_maps *maps,
				      pid_t *tid)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);
	const struct mw_seccomp_policy_need restart = {.made = MW_CALL_BIT(RESTART)};
	struct mw_permit permit, everyone = {.harmless = MW_CALLS_ALL};

	MW_TRY(find(&process->policy, &process->quiesce, maps, &need, tid, &permit));
	if (process->engine->options.unsafe) {
		if (!*tid)
			*tid = mw_quiesce_pick(&process->quiesce);
		return NULL;
	}
	if (!*tid)
		return mw_seccomp_policy_refuse("jump", process->pid, &permit, &need);
	/* Stopped are all of them. */
	MW_TRY(mw_seccomp_policy_everyone(&process->policy, &process->quiesce, &everyone.made));
	return mw_permit_suits(&everyone, &restart)
		       ? NULL
		       : mw_seccomp_policy_refuse("jump", process->pid, &everyone, &restart);
}

// SPDX-License-Identifier: MIT
/*
 * hand.c: which thread of a process makes system calls for us (jump.h): one that lives through them under its seccomp
 * filters, should memwatch be killed amidst one.
 *
 * To put something in, or to plant more, there must be such a thread, or the user's word (--unsafe). To take it out
 * again any will do (mw_cage_pick_best).
 */
#include "engine/jump/jump.h"

/* … none where that isn't known: mw_inject_init() says that better. */
static struct mw_error *find(struct mw_cage *cage, const struct mw_quiesce *quiesce, const struct mw_maps *maps,
			     const struct mw_cage_need *need, pid_t *tid, struct mw_permit *permit)
{
	MW_TRY(mw_cage_pick(cage, quiesce, maps, need, tid, permit));
	if (!*tid && !permit->known)
		*tid = mw_quiesce_pick(quiesce);
	return NULL;
}

struct mw_error *jump_hand_find(struct mw_cage *cage, const struct mw_quiesce *quiesce, const struct mw_maps *maps,
				uint32_t calls, pid_t *tid)
{
	const struct mw_cage_need need = mw_cage_need_of(calls);
	struct mw_permit permit;

	return find(cage, quiesce, maps, &need, tid, &permit);
}

struct mw_error *jump_hand_wanted(struct jump_process *process, uint32_t calls, const struct mw_maps *maps, pid_t *tid)
{
	const struct mw_cage_need need = mw_cage_need_of(calls);
	const struct mw_cage_need restart = {.made = MW_CALL_BIT(RESTART)};
	struct mw_permit permit, everyone = {.harmless = MW_CALLS_ALL};

	MW_TRY(find(&process->cage, &process->quiesce, maps, &need, tid, &permit));
	if (process->engine->options.unsafe) {
		if (!*tid)
			*tid = mw_quiesce_pick(&process->quiesce);
		return NULL;
	}
	if (!*tid)
		return mw_cage_refuse("jump", process->pid, &permit, &need);
	/* Stopped are all of them. */
	MW_TRY(mw_cage_everyone(&process->cage, &process->quiesce, &everyone.made));
	return mw_permit_suits(&everyone, &restart) ? NULL : mw_cage_refuse("jump", process->pid, &everyone, &restart);
}

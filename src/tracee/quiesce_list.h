/* SPDX-License-Identifier: MIT */
/* quiesce_list.h: what the parts of quiesce share: its list of threads, and how those that run are heard of. */
#ifndef MW_TRACEE_QUIESCE_LIST_H
#define MW_TRACEE_QUIESCE_LIST_H

#include "base/vector.h"
#include "tracee/quiesce.h"

#include <string.h>

/* The place of the first whose id is `tid` or more. */
static inline size_t mw_quiesce_place(const struct mw_quiesce *quiesce, pid_t tid)
{
	size_t low = 0, high = quiesce->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (quiesce->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first with a greater id, or NULL: to go through a list that changes meanwhile. */
static inline struct mw_quiet_thread *mw_quiesce_after(const struct mw_quiesce *quiesce, pid_t tid)
{
	size_t at = mw_quiesce_place(quiesce, tid + 1);

	return at < quiesce->count ? &quiesce->threads[at] : NULL;
}

/* The thread with this id, or NULL. Pointers hold until the next addition or removal. */
static inline struct mw_quiet_thread *mw_quiesce_find(const struct mw_quiesce *quiesce, pid_t tid)
{
	size_t at = mw_quiesce_place(quiesce, tid);

	return at < quiesce->count && quiesce->threads[at].tid == tid ? &quiesce->threads[at] : NULL;
}

/* Add one, or find it where it is there. NULL without memory. */
static inline struct mw_quiet_thread *mw_quiesce_add(struct mw_quiesce *quiesce, pid_t tid)
{
	size_t at = mw_quiesce_place(quiesce, tid);

	if (at == quiesce->count || quiesce->threads[at].tid != tid) {
		if (!MW_VECTOR_ROOM(quiesce->threads, quiesce->count, quiesce->capacity))
			return NULL;
		memmove(quiesce->threads + at + 1, quiesce->threads + at,
			(quiesce->count - at) * sizeof(*quiesce->threads));
		quiesce->threads[at] = (struct mw_quiet_thread){.tid = tid};
		quiesce->count++;
	}
	return &quiesce->threads[at];
}

/* Add one that is traced as its maker is, and whose first stop is to come. Errors: MEMORY. */
MW_MUST_CHECK static inline struct mw_error *mw_quiesce_add_newborn(struct mw_quiesce *quiesce, pid_t tid,
								    bool by_vfork)
{
	struct mw_quiet_thread *thread = mw_quiesce_add(quiesce, tid);

	if (!thread)
		return mw_error_nomem();
	thread->newborn = true;
	thread->by_vfork = by_vfork;
	return NULL;
}

static inline void mw_quiesce_remove(struct mw_quiesce *quiesce, pid_t tid)
{
	struct mw_quiet_thread *thread = mw_quiesce_find(quiesce, tid);

	if (thread) {
		quiesce->count--;
		memmove(thread, thread + 1, (size_t)(quiesce->threads + quiesce->count - thread) * sizeof(*thread));
	}
}

/* quiesce_stop.c */
/* Hear of what has happened to those that run, and act on it. Errors: MEMORY, SYSTEM, those of `forked`. */
struct mw_error *mw_quiesce_listen(struct mw_quiesce *quiesce, bool *heard) MW_MUST_CHECK;
/* Detach from a stopped thread, and take it off the list. One that was killed stays until its end is heard of. */
struct mw_error *mw_quiesce_let_go(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread) MW_MUST_CHECK;
/* Resume a stopped thread; where it is in a group stop, leave it there. */
struct mw_error *mw_quiesce_go_on(struct mw_quiet_thread *thread) MW_MUST_CHECK;
/* List the threads that are traced, but whose maker was killed before it could tell of them. Errors: MEMORY. */
struct mw_error *mw_quiesce_list_orphans(struct mw_quiesce *quiesce) MW_MUST_CHECK;

#endif

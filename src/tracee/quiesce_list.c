// SPDX-License-Identifier: MIT
/* quiesce_list.c: find the threads of a process and seize them (quiesce_list.h). */
#include "tracee/quiesce_list.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/vector.h"
#include "proc/status.h"
#include "tracee/orphans.h"
#include "tracee/preflight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* In /proc/TID/stat: threads of the kernel's that a process has (io_uring). Nobody can trace them, they run no code. */

#define MOST_LISTS 64 /* of threads are read before those are interrupted that are known */

/* The place of the first whose id is `tid` or more. */
static size_t place(const struct mw_quiesce *quiesce, pid_t tid)
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

struct mw_quiet_thread *mw_quiesce_after(const struct mw_quiesce *quiesce, pid_t tid)
{
	size_t at = place(quiesce, tid + 1);

	return at < quiesce->count ? &quiesce->threads[at] : NULL;
}

struct mw_quiet_thread *mw_quiesce_find(const struct mw_quiesce *quiesce, pid_t tid)
{
	size_t at = place(quiesce, tid);

	return at < quiesce->count && quiesce->threads[at].tid == tid ? &quiesce->threads[at] : NULL;
}

struct mw_error *mw_quiesce_add(struct mw_quiesce *quiesce, pid_t tid, struct mw_quiet_thread **out)
{
	size_t at = place(quiesce, tid);

	if (at == quiesce->count || quiesce->threads[at].tid != tid) {
		if (!MW_VECTOR_ROOM(quiesce->threads, quiesce->count, quiesce->capacity))
			return mw_error_nomem();
		memmove(quiesce->threads + at + 1, quiesce->threads + at,
			(quiesce->count - at) * sizeof(*quiesce->threads));
		memset(&quiesce->threads[at], 0, sizeof(*quiesce->threads));
		quiesce->threads[at].tid = tid;
		quiesce->count++;
	}
	*out = &quiesce->threads[at];
	return NULL;
}

void mw_quiesce_remove(struct mw_quiesce *quiesce, pid_t tid)
{
	size_t at = place(quiesce, tid);

	if (at == quiesce->count || quiesce->threads[at].tid != tid)
		return;
	quiesce->count--;
	memmove(quiesce->threads + at, quiesce->threads + at + 1, (quiesce->count - at) * sizeof(*quiesce->threads));
}

/* The kernel denied us a thread. NULL where that is in order; *ended where it is about to be no more. */
static struct mw_error *judge_denied(struct mw_quiesce *quiesce, pid_t tid, int errnum, bool *ended)
{
	struct mw_quiet_thread *thread;
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);

	if (err) {
		mw_error_destroy(err);
		*ended = true;
		return NULL;
	}
	if (mw_state_is_end(status.state)) {
		/* A main thread that has ended stays. */
		*ended |= tid != quiesce->pid;
		return NULL;
	}
	if (mw_stat_kernel_worker(tid))
		return NULL;
	if (status.tracer != gettid())
		return mw_preflight_explain_denied(tid, errnum);
	/* Made by one that is seized already, and seized with that. */
	MW_TRY(mw_quiesce_add(quiesce, tid, &thread));
	thread->newborn = true;
	return NULL;
}

static struct mw_error *seize_one(struct mw_quiesce *quiesce, pid_t tid, bool *ended)
{
	struct mw_quiet_thread *thread;
	struct mw_error *err;

	MW_TRY(mw_fault("quiesce.seize"));
	/* Room first: a seized thread that is not in the list would never be let go. */
	MW_TRY(mw_quiesce_add(quiesce, tid, &thread));
	err = mw_tracee_seize(tid);
	if (!err)
		return NULL;
	mw_quiesce_remove(quiesce, tid);
	if (mw_error_kind(err) == MW_ERROR_GONE || mw_error_kind(err) == MW_ERROR_DENIED) {
		bool gone = mw_error_kind(err) == MW_ERROR_GONE;
		int errnum = mw_error_errno(err);

		mw_error_destroy(err);
		*ended |= gone;
		return gone ? NULL : judge_denied(quiesce, tid, errnum, ended);
	}
	return err;
}

/* Has the process as many threads? */
static bool has_threads(pid_t pid, size_t count)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(pid, &status);
	bool has = !err && status.threads == count;

	mw_error_destroy(err);
	return has;
}

/*
 * Seize those of one list that are new. It is complete where none of those in it is on its way out, which may have made
 * another before, and where it has as many as there are.
 */
static struct mw_error *seize_listed(struct mw_quiesce *quiesce, bool *fresh, bool *complete)
{
	pid_t *tids = NULL;
	size_t count = 0;
	bool ended = false;
	struct mw_error *err = mw_tasks_read(quiesce->pid, &tids, &count);

	for (size_t i = 0; i < count && !err; i++) {
		if (mw_quiesce_find(quiesce, tids[i]))
			continue;
		err = seize_one(quiesce, tids[i], &ended);
		*fresh |= mw_quiesce_find(quiesce, tids[i]) != NULL;
	}
	free(tids);
	*complete = !err && !ended && has_threads(quiesce->pid, count);
	return err;
}

struct mw_error *mw_quiesce_seize(struct mw_quiesce *quiesce, bool *fresh)
{
	*fresh = false;
	for (unsigned i = 0; i < MOST_LISTS; i++) {
		bool any = false, complete;
		struct mw_error *err = seize_listed(quiesce, &any, &complete);

		*fresh |= any;
		/* With some of them seized, what became of it will be heard by waiting. */
		if (err && mw_error_kind(err) == MW_ERROR_GONE && quiesce->count > 0) {
			mw_error_destroy(err);
			return NULL;
		}
		MW_TRY(err);
		/* What a seized one makes is seized with that: the lists come to have nothing new. */
		if (!any && complete)
			break;
	}
	if (quiesce->count == 0)
		return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", (int)quiesce->pid);
	return NULL;
}

void mw_quiesce_adopt(struct mw_quiesce *quiesce, pid_t tid)
{
	pid_t *children = NULL;
	size_t count = 0;

	mw_error_destroy(mw_children_read(quiesce->pid, tid, &children, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_quiet_thread *child;
		bool ended = false;

		if (mw_quiesce_find(quiesce, children[i]) || mw_shares_memory(tid, children[i]) != 1)
			continue;
		mw_error_destroy(seize_one(quiesce, children[i], &ended));
		child = mw_quiesce_find(quiesce, children[i]);
		if (child && !child->newborn)
			child->sharing = true;
	}
	free(children);
}

/* Has thread `maker` made a process by fork or vfork of which this is so? */
static bool any_child(const struct mw_quiesce *quiesce, pid_t maker,
		      bool (*is_so)(const struct mw_quiesce *quiesce, pid_t maker, pid_t child))
{
	pid_t *children = NULL;
	size_t count = 0;
	bool any = false;

	mw_error_destroy(mw_children_read(quiesce->pid, maker, &children, &count));
	for (size_t i = 0; i < count && !any; i++)
		any = is_so(quiesce, maker, children[i]);
	free(children);
	return any;
}

static bool stands_for_us(const struct mw_quiesce *quiesce, pid_t maker, pid_t pid)
{
	const struct mw_quiet_thread *child = mw_quiesce_find(quiesce, pid);

	(void)maker;
	return child && child->sharing && child->stopped;
}

static bool runs_in_its_memory(const struct mw_quiesce *quiesce, pid_t maker, pid_t pid)
{
	(void)quiesce;
	return mw_state_read(pid) == 'R' && mw_shares_memory(maker, pid) == 1;
}

bool mw_quiesce_awaits_child(const struct mw_quiesce *quiesce, pid_t tid)
{
	return any_child(quiesce, tid, stands_for_us);
}

bool mw_quiesce_child_runs(const struct mw_quiesce *quiesce, pid_t tid)
{
	return any_child(quiesce, tid, runs_in_its_memory);
}

struct mw_error *mw_quiesce_list_orphans(struct mw_quiesce *quiesce)
{
	pid_t *tids = NULL;
	size_t count = 0;
	struct mw_error *first = NULL;

	mw_error_destroy(mw_tasks_read(quiesce->pid, &tids, &count));
	for (size_t i = 0; i < count && !first; i++) {
		struct mw_quiet_thread *thread;
		struct mw_status status;
		struct mw_error *err;

		if (mw_quiesce_find(quiesce, tids[i]))
			continue;
		err = mw_status_read(tids[i], &status);
		if (!err && status.tracer == gettid()) {
			first = mw_quiesce_add(quiesce, tids[i], &thread);
			if (!first)
				thread->newborn = true;
		}
		mw_error_destroy(err);
	}
	free(tids);
	return first;
}

bool mw_quiesce_holds(const struct mw_quiesce *quiesce, pid_t tid)
{
	return mw_quiesce_find(quiesce, tid) != NULL;
}

static bool is_known(void *context, pid_t pid)
{
	return mw_quiesce_holds(context, pid);
}

static void let_go(void *context, pid_t pid)
{
	const struct mw_quiesce *quiesce = context;

	if (quiesce->forked)
		mw_error_destroy(quiesce->forked(quiesce->context, pid));
	mw_error_destroy(mw_tracee_detach(pid, 0));
}

void mw_quiesce_free_orphans(struct mw_quiesce *quiesce)
{
	const struct mw_orphans orphans = {.known = is_known, .stopped = let_go, .context = quiesce};

	mw_orphans_find(&orphans);
}

pid_t mw_quiesce_pick(const struct mw_quiesce *quiesce)
{
	pid_t second = 0;

	for (size_t i = 0; i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];

		if (!thread->stopped || thread->in_event || thread->sharing || thread->newborn)
			continue;
		if (!thread->group_stopped)
			return thread->tid;
		second = thread->tid;
	}
	/* A process that is stopped can perform one as well, and is stopped after it. */
	return second;
}

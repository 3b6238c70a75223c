// SPDX-License-Identifier: MIT
/*
 * quiesce_stop.c: why did a thread stop, and what is to be done (quiesce_list.h).
 *
 *      a stop that is             is made
 *      an interrupt's             the one to stand in
 *      for a signal               pass it on, with another interrupt set: the kernel builds the handler's frame, or
 *                                 drops what is ignored, and stops again before any code runs. Until then the stop
 *                                 is only looked at (mw_tracee_wait): the signal is the thread's, whoever is killed
 *      for a clone or fork        likewise; the newborn has a stop of its own
 *      for a vfork                stand in it: the thread would but wait for its child
 *      for an exit, an exec       let go
 */
#include "tracee/quiesce_list.h"

#include "base/cleanup.h"
#include "proc/status.h"
#include "tracee/inject.h"
#include "tracee/seccomp_policy.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

struct mw_error *mw_quiesce_let_go(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread)
{
	struct mw_error *err = mw_tracee_detach(thread->tid, 0);

	if (err && mw_error_kind(err) == MW_ERROR_GONE) {
		mw_error_destroy(err);
		thread->stopped = false;
		thread->interrupted = true;
		return NULL;
	}
	mw_quiesce_remove(quiesce, thread->tid);
	return err;
}

/* Let it go on to the next stop, which comes before it runs any code. */
static struct mw_error *pass(struct mw_quiet_thread *thread, int signal)
{
	thread->stopped = false;
	thread->interrupted = true;
	MW_TRY(mw_tracee_interrupt(thread->tid));
	return mw_tracee_resume(thread->tid, signal);
}

struct mw_error *mw_quiesce_go_on(struct mw_quiet_thread *thread)
{
	/* It may have been at work for us since it stopped. */
	if (!thread->in_event)
		thread->group_stopped = !thread->urged && mw_tracee_is_group_stopped(thread->tid);
	thread->stopped = false;
	thread->in_event = false;
	if (thread->group_stopped)
		return mw_error_unless_gone(mw_tracee_listen(thread->tid));
	return mw_error_unless_gone(mw_tracee_resume(thread->tid, 0));
}

/* A thread has told of one that it made, which stops by itself. */
static struct mw_error *child_born(struct mw_quiesce *quiesce, pid_t parent, bool by_vfork)
{
	unsigned long tid;

	MW_TRY(mw_tracee_event_message(parent, &tid));
	if (tid == 0 || mw_quiesce_find(quiesce, (pid_t)tid))
		return NULL;
	return mw_quiesce_add_newborn(quiesce, (pid_t)tid, by_vfork);
}

/* A thread whose memory is the process's for sure: that of a main thread which has ended is none. */
static pid_t live_tid(const struct mw_quiesce *quiesce)
{
	for (size_t i = 0; i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];

		if (!thread->sharing && !thread->newborn)
			return thread->tid;
	}
	return 0;
}

/* The first stop of a thread or process. True where it was a forked child, which has been let go. */
static bool settle_newborn(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread, struct mw_error **err)
{
	pid_t tid = thread->tid, other = live_tid(quiesce);
	int shares;

	thread->newborn = false;
	if (mw_is_thread_of(quiesce->pid, tid))
		return false;
	shares = other ? mw_shares_memory(other, tid) : -1;
	if (shares < 0)
		shares = thread->by_vfork;
	thread->sharing = shares != 0;
	if (thread->sharing)
		return false;
	*err = quiesce->forked ? quiesce->forked(quiesce->context, tid) : NULL;
	mw_error_keep_first(err, mw_quiesce_let_go(quiesce, thread));
	return true;
}

static struct mw_error *on_interrupt(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread, int signal, bool ours)
{
	struct mw_error *err = NULL;

	if (thread->newborn && settle_newborn(quiesce, thread, &err))
		return err;
	thread->group_stopped = mw_tracee_is_group_stop(signal);
	/* Where it stands is looked at, and where it returns to: a killed memwatch may have had it perform a call. */
	MW_TRY(mw_error_unless_gone(mw_remote_syscall_finish(thread->tid)));
	/* A call that a group stop ends with EINTR would end so without us. */
	if (ours && !thread->group_stopped)
		MW_TRY(mw_tracee_mend_interrupted_call(thread->tid));
	return quiesce->holding ? NULL : mw_quiesce_go_on(thread);
}

static struct mw_error *on_exec(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread)
{
	bool sharing = thread->sharing;
	pid_t tid = thread->tid;

	MW_TRY(mw_quiesce_let_go(quiesce, thread));
	if (sharing)
		return NULL;
	quiesce->execed = true;
	/* All its other threads have ended before, and been waited for. */
	for (pid_t last = 0; (thread = mw_quiesce_after(quiesce, last));) {
		last = thread->tid;
		if (!thread->sharing && last != tid)
			mw_quiesce_remove(quiesce, last);
	}
	return NULL;
}

static void note_exit(struct mw_quiesce *quiesce, const struct mw_quiet_thread *thread, int status)
{
	if (thread->tid == quiesce->pid || (quiesce->count == 1 && !thread->sharing && !thread->newborn))
		quiesce->exit_status = status;
}

/* Let it go before it is a zombie: a main thread that ends stays one, and could not be let go while others live. */
static struct mw_error *on_exit_event(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread)
{
	unsigned long status;

	if (mw_error_none(mw_tracee_event_message(thread->tid, &status)))
		note_exit(quiesce, thread, (int)status);
	return mw_quiesce_let_go(quiesce, thread);
}

static struct mw_error *on_stop(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread, int status)
{
	bool ours = thread->interrupted;
	pid_t tid = thread->tid;
	struct mw_error *err;

	/* Whatever the stop is for, an interrupt that was on its way has arrived with it. */
	thread->stopped = true;
	thread->interrupted = thread->group_stopped = false;
	switch (status >> 16) {
	case 0:
		return pass(thread, WSTOPSIG(status));
	case PTRACE_EVENT_STOP:
		return on_interrupt(quiesce, thread, WSTOPSIG(status), ours);
	case PTRACE_EVENT_VFORK:
		thread->in_event = true;
		return child_born(quiesce, tid, true);
	case PTRACE_EVENT_EXEC:
		return on_exec(quiesce, thread);
	case PTRACE_EVENT_EXIT:
		return on_exit_event(quiesce, thread);
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
		err = child_born(quiesce, tid, false);
		thread = mw_quiesce_find(quiesce, tid);
		mw_error_keep_first(&err, pass(thread, 0));
		return err;
	default:
		return pass(thread, 0);
	}
}

/* A tid that is no tracee any more. A thread that executes another program gets the main thread's id. */
static struct mw_error *on_vanished(struct mw_quiesce *quiesce, pid_t tid)
{
	struct mw_status status;

	mw_quiesce_remove(quiesce, tid);
	if (tid == quiesce->pid || mw_quiesce_find(quiesce, quiesce->pid) ||
	    !mw_error_none(mw_status_read(quiesce->pid, &status)) || status.tracer != gettid())
		return NULL;
	return mw_quiesce_add(quiesce, quiesce->pid) ? NULL : mw_error_nomem();
}

struct mw_error *mw_quiesce_list_orphans(struct mw_quiesce *quiesce)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;

	mw_error_destroy(mw_tasks_read(quiesce->pid, &tids, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_status status;

		if (mw_quiesce_find(quiesce, tids[i]) || !mw_error_none(mw_status_read(tids[i], &status)) ||
		    status.tracer != gettid())
			continue;
		MW_TRY(mw_quiesce_add_newborn(quiesce, tids[i], false));
	}
	return NULL;
}

struct mw_error *mw_quiesce_listen(struct mw_quiesce *quiesce, bool *heard)
{
	struct mw_error *first = NULL;
	struct mw_quiet_thread *thread;

	*heard = false;
	for (pid_t tid = 0; (thread = mw_quiesce_after(quiesce, tid));) {
		int status;
		pid_t got;

		tid = thread->tid;
		if (thread->stopped)
			continue;
		got = mw_tracee_wait(tid, &status, WNOHANG);
		if (got == 0 || (got < 0 && errno == EINTR))
			continue;
		*heard = true;
		if (got < 0) {
			mw_error_keep_first(&first, on_vanished(quiesce, tid));
		} else if (WIFSTOPPED(status)) {
			mw_error_keep_first(&first, on_stop(quiesce, thread, status));
		} else {
			note_exit(quiesce, thread, status);
			mw_quiesce_remove(quiesce, tid);
		}
	}
	if (quiesce->count == 0 && !quiesce->execed) {
		mw_error_keep_first(&first, mw_quiesce_list_orphans(quiesce));
		quiesce->gone = quiesce->count == 0;
	}
	return first;
}

// SPDX-License-Identifier: MIT
/*
 * quiesce.c: a process stands still (quiesce.h).
 *
 *      a stop that is             is made
 *      an interrupt's             the one to stand in
 *      for a signal               pass it on, with another interrupt set: the kernel builds the handler's frame, or
 *                                 drops what is ignored, and stops again before any code runs
 *      for a clone or fork        likewise; the newborn has a stop of its own
 *      for a vfork                stand in it: the thread would but wait for its child
 *      for an exit, an exec       let go
 *
 * Each tid is waited for by itself: what is not ours stays to be heard of by others. A killed thread leaves whatever
 * stop it was in, so any request may find it gone; then its end is waited for, as nobody else can reap it.
 */
#include "target/quiesce.h"

#include "base/clock.h"
#include "base/fault.h"
#include "proc/status.h"
#include "target/quiesce_list.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASLEEP_PATIENCE_NS 2000000000u /* for threads in waits that nothing interrupts */
#define PATIENCE_NS        5000000000u /* for any */
#define FIRST_NAP_NS       20000
#define LONGEST_NAP_NS     500000
#define LOOK_AFTER_NS      2000000u /* of silence: see what those do that have not stopped */

static struct mw_error *ignore_gone(struct mw_error *err)
{
	if (err && mw_error_kind(err) == MW_ERROR_GONE) {
		mw_error_destroy(err);
		return NULL;
	}
	return err;
}

static void keep_first(struct mw_error **first, struct mw_error *err)
{
	err = ignore_gone(err);
	if (*first)
		mw_error_destroy(err);
	else
		*first = err;
}

static bool is_group_stop(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* Detach from a stopped thread. One that has been killed stays in the list until its end is heard of. */
static struct mw_error *let_go(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread)
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

static struct mw_error *go_on(struct mw_quiet_thread *thread)
{
	thread->stopped = false;
	thread->in_event = false;
	if (thread->group_stopped)
		return ignore_gone(mw_tracee_listen(thread->tid));
	return ignore_gone(mw_tracee_resume(thread->tid, 0));
}

/* A thread has told of one that it made, which stops by itself. */
static struct mw_error *child_born(struct mw_quiesce *quiesce, pid_t parent, bool by_vfork)
{
	struct mw_quiet_thread *child;
	unsigned long tid;

	MW_TRY(mw_tracee_event_message(parent, &tid));
	if (tid == 0 || mw_quiesce_find(quiesce, (pid_t)tid))
		return NULL;
	MW_TRY(mw_quiesce_add(quiesce, (pid_t)tid, &child));
	child->newborn = true;
	child->by_vfork = by_vfork;
	return NULL;
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
	if (syscall(SYS_tgkill, quiesce->pid, tid, 0) == 0)
		return false;
	shares = other ? mw_shares_memory(other, tid) : -1;
	if (shares < 0)
		shares = thread->by_vfork;
	thread->sharing = shares != 0;
	if (thread->sharing)
		return false;
	*err = quiesce->forked ? quiesce->forked(quiesce->context, tid) : NULL;
	keep_first(err, let_go(quiesce, thread));
	return true;
}

static struct mw_error *on_interrupt(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread, int signal, bool ours)
{
	struct mw_error *err = NULL;

	if (thread->newborn && settle_newborn(quiesce, thread, &err))
		return err;
	thread->group_stopped = is_group_stop(signal);
	/* A call that a group stop ends with EINTR would end so without us. */
	if (ours && !thread->group_stopped)
		MW_TRY(mw_tracee_mend_interrupted_call(thread->tid));
	return quiesce->holding ? NULL : go_on(thread);
}

static struct mw_error *on_exec(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread)
{
	bool sharing = thread->sharing;
	pid_t tid = thread->tid;

	MW_TRY(let_go(quiesce, thread));
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
	struct mw_error *err = mw_tracee_event_message(thread->tid, &status);

	if (!err)
		note_exit(quiesce, thread, (int)status);
	mw_error_destroy(err);
	return let_go(quiesce, thread);
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
		keep_first(&err, pass(thread, 0));
		return err;
	default:
		return pass(thread, 0);
	}
}

/* A tid that is no tracee any more. A thread that executes another program gets the main thread's id. */
static struct mw_error *on_vanished(struct mw_quiesce *quiesce, pid_t tid)
{
	struct mw_quiet_thread *thread;
	struct mw_status status;
	struct mw_error *err;
	bool leader;

	mw_quiesce_remove(quiesce, tid);
	if (tid == quiesce->pid || mw_quiesce_find(quiesce, quiesce->pid))
		return NULL;
	err = mw_status_read(quiesce->pid, &status);
	leader = !err && status.tracer == gettid();
	mw_error_destroy(err);
	return leader ? mw_quiesce_add(quiesce, quiesce->pid, &thread) : NULL;
}

/* Hear of what has happened to those that run. */
static struct mw_error *listen_once(struct mw_quiesce *quiesce, bool *heard)
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
		got = waitpid(tid, &status, __WALL | WNOHANG);
		if (got == 0 || (got < 0 && errno == EINTR))
			continue;
		*heard = true;
		if (got < 0) {
			keep_first(&first, on_vanished(quiesce, tid));
		} else if (WIFSTOPPED(status)) {
			keep_first(&first, on_stop(quiesce, thread, status));
		} else {
			note_exit(quiesce, thread, status);
			mw_quiesce_remove(quiesce, tid);
		}
	}
	if (quiesce->count == 0 && !quiesce->execed) {
		keep_first(&first, mw_quiesce_list_orphans(quiesce));
		quiesce->gone = quiesce->count == 0;
	}
	return first;
}

static struct mw_error *interrupt_all(struct mw_quiesce *quiesce)
{
	for (size_t i = 0; i < quiesce->count; i++) {
		struct mw_quiet_thread *thread = &quiesce->threads[i];

		if (thread->stopped || thread->interrupted || thread->newborn)
			continue;
		MW_TRY(ignore_gone(mw_tracee_interrupt(thread->tid)));
		thread->interrupted = true;
	}
	return NULL;
}

static size_t count_running(const struct mw_quiesce *quiesce)
{
	size_t running = 0;

	for (size_t i = 0; i < quiesce->count; i++)
		running += !quiesce->threads[i].stopped;
	return running;
}

/* Are those that have not stopped in waits that nothing interrupts, for longer than we wait for that? */
static bool all_asleep(struct mw_quiesce *quiesce, uint64_t waited_ns)
{
	struct mw_quiet_thread *thread;

	for (pid_t tid = 0; (thread = mw_quiesce_after(quiesce, tid));) {
		struct mw_status status;
		struct mw_error *err;
		bool asleep;

		tid = thread->tid;
		if (thread->stopped)
			continue;
		err = mw_status_read(tid, &status);
		asleep = !err && status.state == 'D';
		mw_error_destroy(err);
		if (!asleep)
			return false;
		mw_quiesce_adopt(quiesce, tid);
		if (waited_ns < ASLEEP_PATIENCE_NS && !mw_quiesce_awaits_child(quiesce, tid))
			return false;
	}
	return true;
}

static void nap(long *length_ns)
{
	struct timespec length = {.tv_nsec = *length_ns};

	nanosleep(&length, NULL);
	*length_ns = *length_ns * 2 > LONGEST_NAP_NS ? LONGEST_NAP_NS : *length_ns * 2;
}

/* Have all stop, or know why they don't. */
static struct mw_error *hold(struct mw_quiesce *quiesce)
{
	struct mw_error *first = NULL;
	uint64_t begin = mw_clock_ns(), last = begin;
	long length_ns = FIRST_NAP_NS;

	quiesce->holding = true;
	if (!quiesce->since_ns)
		quiesce->since_ns = begin;
	for (;;) {
		uint64_t now;
		bool heard;

		keep_first(&first, interrupt_all(quiesce));
		keep_first(&first, listen_once(quiesce, &heard));
		if (count_running(quiesce) == 0)
			break;
		now = mw_clock_ns();
		if (now - begin > PATIENCE_NS)
			break;
		if (heard) {
			last = now;
			length_ns = FIRST_NAP_NS;
			continue;
		}
		if (now - last > LOOK_AFTER_NS) {
			keep_first(&first, mw_quiesce_list_orphans(quiesce));
			if (all_asleep(quiesce, now - begin))
				break;
			last = now;
		}
		nap(&length_ns);
	}
	quiesce->standing = true;
	return first;
}

/* They run again. */
static void account(struct mw_quiesce *quiesce)
{
	if (quiesce->since_ns)
		quiesce->stood_ns += mw_clock_ns() - quiesce->since_ns;
	quiesce->since_ns = 0;
	quiesce->standing = false;
}

/* Seize and hold, until there is nobody else. */
static struct mw_error *hold_everybody(struct mw_quiesce *quiesce)
{
	bool fresh;

	MW_TRY(mw_quiesce_seize(quiesce, &fresh));
	MW_TRY(mw_fault("quiesce.stop"));
	while (fresh) {
		MW_TRY(hold(quiesce));
		if (quiesce->count == 0 || quiesce->execed)
			break;
		MW_TRY(mw_quiesce_seize(quiesce, &fresh));
	}
	return NULL;
}

struct mw_error *mw_quiesce_begin(struct mw_quiesce *quiesce, pid_t pid)
{
	struct mw_error *err;

	*quiesce = (struct mw_quiesce){
		.pid = pid, .exit_status = -1, .forked = quiesce->forked, .context = quiesce->context};
	err = hold_everybody(quiesce);
	if (!err && quiesce->execed)
		err = mw_error_create(MW_ERROR_GONE, 0, "process %d runs another program now", (int)pid);
	else if (!err && quiesce->gone)
		err = mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", (int)pid);
	else if (!err && count_running(quiesce) == quiesce->count)
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "process %d does not stop", (int)pid);
	if (err)
		mw_error_destroy(mw_quiesce_end(quiesce));
	return err;
}

struct mw_error *mw_quiesce_take(struct mw_quiesce *quiesce, pid_t pid)
{
	struct mw_quiet_thread *thread;

	*quiesce = (struct mw_quiesce){.pid = pid,
				       .exit_status = -1,
				       .forked = quiesce->forked,
				       .context = quiesce->context,
				       .since_ns = mw_clock_ns(),
				       .holding = true,
				       .standing = true};
	MW_TRY(mw_quiesce_add(quiesce, pid, &thread));
	thread->stopped = true;
	return NULL;
}

struct mw_error *mw_quiesce_breathe(struct mw_quiesce *quiesce, uint64_t ns)
{
	struct mw_error *first = NULL;
	uint64_t begin = mw_clock_ns();
	long length_ns = FIRST_NAP_NS;
	bool sharing = false;

	for (size_t i = 0; i < quiesce->count; i++)
		sharing |= quiesce->threads[i].sharing || quiesce->threads[i].newborn;
	quiesce->holding = false;
	for (size_t i = 0; i < quiesce->count; i++) {
		struct mw_quiet_thread *thread = &quiesce->threads[i];

		/* A vfork's maker would sleep where nothing can stop it. */
		if (thread->stopped && !(thread->in_event && sharing))
			keep_first(&first, go_on(thread));
	}
	account(quiesce);
	while (quiesce->count > 0 && mw_clock_ns() - begin < ns) {
		bool heard;

		keep_first(&first, listen_once(quiesce, &heard));
		if (heard)
			length_ns = FIRST_NAP_NS;
		nap(&length_ns);
	}
	keep_first(&first, hold(quiesce));
	return first;
}

struct mw_error *mw_quiesce_end(struct mw_quiesce *quiesce)
{
	struct mw_error *first = NULL;
	uint64_t begin = mw_clock_ns();
	long length_ns = FIRST_NAP_NS;

	quiesce->holding = true;
	while (quiesce->count > 0) {
		struct mw_quiet_thread *thread;
		bool heard;

		for (pid_t tid = 0; (thread = mw_quiesce_after(quiesce, tid));) {
			tid = thread->tid;
			if (thread->stopped)
				keep_first(&first, let_go(quiesce, thread));
		}
		account(quiesce);
		keep_first(&first, interrupt_all(quiesce));
		keep_first(&first, listen_once(quiesce, &heard));
		if (heard)
			continue;
		if (mw_clock_ns() - begin > PATIENCE_NS)
			break;
		if (quiesce->count > 0)
			nap(&length_ns);
	}
	if (quiesce->gone || quiesce->execed)
		mw_quiesce_free_orphans(quiesce);
	if (quiesce->count > 0) {
		keep_first(&first,
			   mw_error_create(MW_ERROR_SYSTEM, 0,
					   "thread %d is in a wait that nothing interrupts: it can't be let go yet",
					   (int)quiesce->threads[0].tid));
		return first;
	}
	free(quiesce->threads);
	quiesce->threads = NULL;
	quiesce->capacity = 0;
	return first;
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

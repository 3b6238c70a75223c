// SPDX-License-Identifier: MIT
/*
 * quiesce.c: stop a whole process (quiesce.h).
 *
 * Each tid is waited for by itself: what is not ours stays to be heard of by others. A killed thread leaves whatever
 * stop it was in, so any request may find it gone; then its end is waited for, as nobody else can reap it.
 */
#include "tracee/quiesce.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "proc/peek.h"
#include "proc/status.h"
#include "tracee/preflight.h"
#include "tracee/quiesce_list.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ASLEEP_PATIENCE_NS 2000000000u  /* for threads in waits that nothing interrupts */
#define PATIENCE_NS        5000000000u  /* for any */
#define STARVED_NS         60000000000u /* … to be let go, where the machine is so loaded that it gets no CPU */
#define FIRST_BREATH_NS    100000u
#define LONGEST_BREATH_NS  500000000u /* where CPUs are scarce, shorter ones are over before anybody has had one */
#define FIRST_NAP_NS       20000
#define LONGEST_NAP_NS     500000
#define LOOK_AFTER_NS      2000000u /* of silence: see what those do that have not stopped */
#define LOOKS              20       /* in a row at which nobody lacks a CPU */
#define MOST_LISTS         64       /* of threads are read before those are interrupted that are known */

/* The kernel denied us a thread. NULL where that is in order; *ended where it is about to be no more. */
static struct mw_error *judge_denied(struct mw_quiesce *quiesce, pid_t tid, int errnum, bool *ended)
{
	struct mw_status status;

	if (!mw_error_none(mw_status_read(tid, &status))) {
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
	return mw_quiesce_add_newborn(quiesce, tid, false);
}

static struct mw_error *seize_one(struct mw_quiesce *quiesce, pid_t tid, bool *ended)
{
	struct mw_error *err;

	MW_TRY(mw_fault("quiesce.seize"));
	/* Room first: a seized thread that is not in the list would never be let go. */
	if (!mw_quiesce_add(quiesce, tid))
		return mw_error_nomem();
	err = mw_tracee_seize(tid);
	if (!err)
		return NULL;
	mw_quiesce_remove(quiesce, tid);
	if (mw_error_kind(err) == MW_ERROR_DENIED) {
		int errnum = mw_error_errno(err);

		mw_error_destroy(err);
		return judge_denied(quiesce, tid, errnum, ended);
	}
	*ended |= mw_error_kind(err) == MW_ERROR_GONE;
	return mw_error_unless_gone(err);
}

/* Has the process as many threads? */
static bool has_threads(pid_t pid, size_t count)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(pid, &status)) && status.threads == count;
}

/*
 * Seize those of one list that are new. It is complete where none of those in it is on its way out, which may have made
 * another before, and where it has as many as there are.
 */
static struct mw_error *seize_listed(struct mw_quiesce *quiesce, bool *fresh, bool *complete)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;
	bool ended = false;

	*complete = false;
	MW_TRY(mw_tasks_read(quiesce->pid, &tids, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_error *err;

		if (mw_quiesce_find(quiesce, tids[i]))
			continue;
		err = seize_one(quiesce, tids[i], &ended);
		*fresh |= mw_quiesce_find(quiesce, tids[i]) != NULL;
		MW_TRY(err);
	}
	*complete = !ended && has_threads(quiesce->pid, count);
	return NULL;
}

/*
 * Seize all threads that there are; *fresh says whether there was any that had not been. A list of threads that come
 * and go may lack some: only one that is read while all known ones stand and that has nothing new is to be believed.
 */
static struct mw_error *seize(struct mw_quiesce *quiesce, bool *fresh)
{
	*fresh = false;
	for (unsigned i = 0; i < MOST_LISTS; i++) {
		bool any = false, complete;
		struct mw_error *err = seize_listed(quiesce, &any, &complete);

		*fresh |= any;
		/* With some of them seized, what became of it will be heard by waiting. */
		if (err)
			return quiesce->count > 0 ? mw_error_unless_gone(err) : err;
		/* What a seized one makes is seized with that: the lists come to have nothing new. */
		if (!any && complete)
			break;
	}
	if (quiesce->count == 0)
		return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", (int)quiesce->pid);
	return NULL;
}

/* Is there a process that thread `tid` has made by fork or vfork of which `is` is true? */
static bool any_child(struct mw_quiesce *quiesce, pid_t tid,
		      bool (*is)(struct mw_quiesce *quiesce, pid_t maker, pid_t child))
{
	MW_FREE pid_t *children = NULL;
	size_t count = 0;
	bool any = false;

	mw_error_destroy(mw_children_read(quiesce->pid, tid, &children, &count));
	for (size_t i = 0; i < count && !any; i++)
		any = is(quiesce, tid, children[i]);
	return any;
}

/* Seize one that still lives in its maker's memory. Best effort; goes on to the next. */
static bool adopt(struct mw_quiesce *quiesce, pid_t maker, pid_t pid)
{
	struct mw_quiet_thread *child;
	bool ended = false;

	if (mw_quiesce_find(quiesce, pid) || mw_shares_memory(maker, pid) != 1)
		return false;
	mw_error_destroy(seize_one(quiesce, pid, &ended));
	child = mw_quiesce_find(quiesce, pid);
	if (child && !child->newborn)
		child->sharing = true;
	return false;
}

/* Does it stand, in its maker's memory? Then that waits for it. */
static bool stands_in_memory(struct mw_quiesce *quiesce, pid_t maker, pid_t pid)
{
	const struct mw_quiet_thread *child = mw_quiesce_find(quiesce, pid);

	(void)maker;
	return child && child->sharing && child->stopped;
}

/* Does it run, or want to, in its maker's memory? */
static bool runs_in_memory(struct mw_quiesce *quiesce, pid_t maker, pid_t pid)
{
	(void)quiesce;
	return mw_state_read(pid) == 'R' && mw_shares_memory(maker, pid) == 1;
}

bool mw_quiesce_holds(const struct mw_quiesce *quiesce, pid_t tid)
{
	return mw_quiesce_find(quiesce, tid) != NULL;
}

static bool is_known(void *context, pid_t pid)
{
	return mw_quiesce_holds(context, pid);
}

static void clean_and_detach(void *context, pid_t pid)
{
	const struct mw_quiesce *quiesce = context;

	if (quiesce->forked)
		mw_error_destroy(quiesce->forked(quiesce->context, pid));
	mw_error_destroy(mw_tracee_detach(pid, 0));
}

pid_t mw_quiesce_pick(const struct mw_quiesce *quiesce)
{
	pid_t second = 0;

	for (size_t i = 0; i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];

		if (!mw_quiet_thread_can_call(thread))
			continue;
		if (!thread->group_stopped)
			return thread->tid;
		second = thread->tid;
	}
	/* A process that is stopped can perform one as well, and is stopped after it. */
	return second;
}

static struct mw_error *interrupt_all(struct mw_quiesce *quiesce)
{
	for (size_t i = 0; i < quiesce->count; i++) {
		struct mw_quiet_thread *thread = &quiesce->threads[i];

		if (thread->stopped || thread->interrupted || thread->newborn)
			continue;
		MW_TRY(mw_error_unless_gone(mw_tracee_interrupt(thread->tid)));
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

/*
 * Its threads have been killed, those that stand as well: they are to be heard of again. The end of a first thread is
 * not told before that of all others.
 */
static void hear_of_killed(struct mw_quiesce *quiesce)
{
	for (size_t i = 0; i < quiesce->count; i++) {
		struct mw_quiet_thread *thread = &quiesce->threads[i];

		if (thread->stopped && mw_orphans_unheard(thread->tid, WSTOPPED | WEXITED)) {
			thread->stopped = false;
			thread->interrupted = true;
		}
	}
}

/* Are those that have not stopped in waits that nothing interrupts, for longer than we wait for that? */
static bool all_asleep(struct mw_quiesce *quiesce, uint64_t waited_ns)
{
	struct mw_quiet_thread *thread;

	for (pid_t tid = 0; (thread = mw_quiesce_after(quiesce, tid));) {
		char state;

		tid = thread->tid;
		if (thread->stopped)
			continue;
		state = mw_state_read(tid);
		if (state == 'Z')
			hear_of_killed(quiesce);
		if (state != 'D')
			return false;
		(void)any_child(quiesce, tid, adopt);
		if (waited_ns < ASLEEP_PATIENCE_NS && !any_child(quiesce, tid, stands_in_memory))
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

		mw_error_keep_first(&first, interrupt_all(quiesce));
		mw_error_keep_first(&first, mw_quiesce_listen(quiesce, &heard));
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
			mw_error_keep_first(&first, mw_quiesce_list_orphans(quiesce));
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

	MW_TRY(seize(quiesce, &fresh));
	MW_TRY(mw_fault("quiesce.stop"));
	while (fresh) {
		MW_TRY(hold(quiesce));
		if (quiesce->count == 0 || quiesce->execed)
			break;
		MW_TRY(seize(quiesce, &fresh));
	}
	return NULL;
}

static struct mw_error *say_gone(const struct mw_quiesce *quiesce)
{
	if (quiesce->execed)
		return mw_error_create(MW_ERROR_GONE, 0, "process %d has exec'd another program", (int)quiesce->pid);
	if (quiesce->gone)
		return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", (int)quiesce->pid);
	return NULL;
}

/* Seize and hold this one alone. */
static struct mw_error *hold_one(struct mw_quiesce *quiesce, pid_t tid)
{
	bool ended = false;

	MW_TRY(seize_one(quiesce, tid, &ended));
	return quiesce->count ? hold(quiesce) : mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", (int)tid);
}

/* `tid` 0: all threads. */
static struct mw_error *begin_with(struct mw_quiesce *quiesce, pid_t pid, pid_t tid)
{
	struct mw_error *err;

	/* Who could not be let go the last time is still seized, and not stopped as far as is known. */
	if (quiesce->pid != pid)
		mw_quiesce_deinit(quiesce);
	for (size_t i = 0; i < quiesce->count; i++)
		quiesce->threads[i].stopped = quiesce->threads[i].interrupted = false;
	*quiesce = (struct mw_quiesce){.pid = pid,
				       .exit_status = -1,
				       .peeks = quiesce->peeks,
				       .threads = quiesce->threads,
				       .count = quiesce->count,
				       .capacity = quiesce->capacity,
				       .forked = quiesce->forked,
				       .context = quiesce->context};
	/* Anew, as it is to be known before anybody stands who may provide pages of it. */
	mw_peek_hold(pid);
	if (quiesce->peeks)
		mw_peek_let_go(pid);
	quiesce->peeks = true;
	err = tid ? hold_one(quiesce, tid) : hold_everybody(quiesce);
	if (!err)
		err = say_gone(quiesce);
	if (!err && count_running(quiesce) == quiesce->count)
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "process %d does not stop", (int)pid);
	if (err)
		mw_error_destroy(mw_quiesce_end(quiesce));
	return err;
}

struct mw_error *mw_quiesce_begin(struct mw_quiesce *quiesce, pid_t pid)
{
	return begin_with(quiesce, pid, 0);
}

struct mw_error *mw_quiesce_begin_one(struct mw_quiesce *quiesce, pid_t pid, pid_t tid)
{
	return begin_with(quiesce, pid, tid);
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
	thread = mw_quiesce_add(quiesce, pid);
	if (!thread)
		return mw_error_nomem();
	thread->stopped = true;
	return NULL;
}

/* Is there a child that lives in the same memory, or may be one? */
static bool has_child(const struct mw_quiesce *quiesce)
{
	for (size_t i = 0; i < quiesce->count; i++)
		if (quiesce->threads[i].sharing || quiesce->threads[i].newborn)
			return true;
	return false;
}

struct mw_error *mw_quiesce_run_briefly(struct mw_quiesce *quiesce, uint64_t ns)
{
	struct mw_error *first = NULL;
	uint64_t begin = mw_clock_ns();
	long length_ns = FIRST_NAP_NS;
	bool sharing = has_child(quiesce);

	quiesce->holding = false;
	for (size_t i = 0; i < quiesce->count; i++) {
		struct mw_quiet_thread *thread = &quiesce->threads[i];

		/* A vfork's maker would sleep where nothing can stop it. */
		if (thread->stopped && !(thread->in_event && sharing))
			mw_error_keep_first(&first, mw_quiesce_go_on(thread));
	}
	account(quiesce);
	while (quiesce->count > 0 && mw_clock_ns() - begin < ns) {
		bool heard;

		mw_error_keep_first(&first, mw_quiesce_listen(quiesce, &heard));
		if (heard)
			length_ns = FIRST_NAP_NS;
		nap(&length_ns);
	}
	mw_error_keep_first(&first, hold(quiesce));
	return first;
}

/* Does one of those that have not stopped wait where nothing interrupts it? */
static bool any_asleep(const struct mw_quiesce *quiesce)
{
	for (size_t i = 0; i < quiesce->count; i++)
		if (!quiesce->threads[i].stopped && mw_state_read(quiesce->threads[i].tid) == 'D')
			return true;
	return false;
}

/*
 * Could one of those that have not stopped get on if it had a CPU, or the vforked child that it waits for? That one may
 * never have been ours. One look does not do: while a child ends and wakes its maker, neither may seem to. One that
 * polls for something is seen to run now and then.
 */
static bool any_starved(struct mw_quiesce *quiesce)
{
	for (size_t i = 0; i < quiesce->count; i++) {
		pid_t tid = quiesce->threads[i].tid;

		if (!quiesce->threads[i].stopped &&
		    (mw_state_read(tid) == 'R' || any_child(quiesce, tid, runs_in_memory)))
			return true;
	}
	return false;
}

struct mw_error *mw_quiesce_end(struct mw_quiesce *quiesce)
{
	struct mw_error *first = NULL;
	uint64_t begin = mw_clock_ns(), last = begin, looked = begin;
	unsigned looks = 0;
	long length_ns = FIRST_NAP_NS;

	quiesce->holding = true;
	while (quiesce->count > 0) {
		struct mw_quiet_thread *thread;
		uint64_t now;
		bool heard;

		for (pid_t tid = 0; (thread = mw_quiesce_after(quiesce, tid));) {
			tid = thread->tid;
			if (thread->stopped)
				mw_error_keep_first(&first, mw_quiesce_let_go(quiesce, thread));
		}
		account(quiesce);
		/* It may have been killed before all newborn threads were known; those would stand for ever. */
		if (quiesce->count == 0 && !quiesce->execed)
			mw_error_keep_first(&first, mw_quiesce_list_orphans(quiesce));
		if (quiesce->count == 0)
			break;
		mw_error_keep_first(&first, interrupt_all(quiesce));
		mw_error_keep_first(&first, mw_quiesce_listen(quiesce, &heard));
		now = mw_clock_ns();
		if (heard) {
			last = now;
			looks = 0;
			continue;
		}
		if (now - last > ASLEEP_PATIENCE_NS && now - looked > LOOK_AFTER_NS) {
			looked = now;
			looks = now - begin < STARVED_NS && any_starved(quiesce) ? 0 : looks + 1;
			if (looks >= LOOKS && (now - last > PATIENCE_NS || any_asleep(quiesce)))
				break;
		}
		if (quiesce->count > 0)
			nap(&length_ns);
	}
	/* Forked children whose maker was killed before it could tell of them. */
	if (quiesce->gone || quiesce->execed)
		mw_orphans_find(
			&(const struct mw_orphans){.known = is_known, .stopped = clean_and_detach, .context = quiesce});
	if (quiesce->count > 0) {
		mw_error_keep_first(
			&first,
			mw_error_create(MW_ERROR_SYSTEM, 0,
					"thread %d is in an uninterruptible wait: it can't be detached from yet",
					(int)quiesce->threads[0].tid));
		return first;
	}
	mw_quiesce_deinit(quiesce);
	return first;
}

void mw_quiesce_deinit(struct mw_quiesce *quiesce)
{
	if (quiesce->peeks)
		mw_peek_let_go(quiesce->pid);
	quiesce->peeks = false;
	free(quiesce->threads);
	quiesce->threads = NULL;
	quiesce->count = quiesce->capacity = 0;
}

struct mw_error *mw_quiesce_await_injector(struct mw_quiesce *quiesce)
{
	uint64_t begin = mw_clock_ns();

	for (uint64_t breath_ns = FIRST_BREATH_NS; !mw_quiesce_pick(quiesce);) {
		MW_TRY(say_gone(quiesce));
		if (mw_clock_ns() - begin > PATIENCE_NS)
			return mw_error_create(MW_ERROR_SYSTEM, 0,
					       "process %d waits for a vfork child that shares its memory: no thread "
					       "of it can be used",
					       (int)quiesce->pid);
		/* With the child gone its maker needs but a moment; it may make another. */
		if (!has_child(quiesce))
			breath_ns = FIRST_BREATH_NS;
		MW_TRY(mw_quiesce_run_briefly(quiesce, breath_ns));
		breath_ns = breath_ns * 2 < LONGEST_BREATH_NS ? breath_ns * 2 : LONGEST_BREATH_NS;
	}
	return say_gone(quiesce);
}

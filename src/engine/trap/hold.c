// SPDX-License-Identifier: MIT
/* hold.c: stop all threads of a process, and let them all go on (trap.h). */
#include "base/clock.h"
#include "base/fault.h"
#include "engine/trap/threads.h"
#include "proc/stat.h"
#include "proc/status.h"
#include "tracee/preflight.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_NS 2000000000u /* for threads that are neither stopped nor in an uninterruptible wait */
/* Nothing is heard of the process any more: two waits in vain; or for so long, with so many events of others, where
 * those come without an end. Then it is looked at what it waits for. */
#define QUIET_NS 50000000u
#define OTHERS   100
/* For a thread that waits for a vforked child to come to its exec or end, and does not stop meanwhile. The child may go
 * on for long: then it is held as well. */
#define CHILD_PATIENCE_NS 250000000u
#define MOST_LISTS        64 /* of threads are read before those are interrupted that are known */

/* A thread that is there in /proc but can't be seized: is that in order? */
static bool may_be_passed_over(pid_t tid, bool *ended)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);
	bool dead = err || mw_state_is_end(status.state);

	mw_error_destroy(err);
	*ended |= dead;
	/* Or ours already: its birth will be announced. One that another traces would run into our breakpoints. */
	return dead || status.tracer == gettid() || mw_stat_kernel_worker(tid);
}

struct mw_error *trap_seize(pid_t tid)
{
	struct mw_error *err = mw_tracee_seize(tid), *unread;
	struct mw_status status;

	if (!err)
		return NULL;
	unread = mw_status_read(tid, &status);
	if (!unread && status.tracer == gettid() && status.state == 'D') {
		mw_error_destroy(err);
		err = NULL;
	}
	mw_error_destroy(unread);
	return err;
}

/* `*ended` where it is about to be no more, and may have made another before. */
static struct mw_error *seize_one(struct trap_process *process, pid_t tid, bool *ended)
{
	struct trap_thread *thread;
	struct mw_error *err;
	bool first = tid == process->pid;

	MW_TRY(mw_fault("attach.seize"));
	err = trap_seize(tid);
	if (err) {
		int errnum = mw_error_errno(err);

		if (mw_error_kind(err) == MW_ERROR_GONE || (!first && may_be_passed_over(tid, ended))) {
			*ended |= mw_error_kind(err) == MW_ERROR_GONE;
			mw_error_destroy(err);
			return NULL;
		}
		if (errnum == EPERM || errnum == EACCES) {
			struct mw_status status;
			struct mw_error *unread = mw_status_read(tid, &status);
			bool zombie = !unread && status.state == 'Z' && status.threads > 1;

			mw_error_destroy(unread);
			mw_error_destroy(err);
			/* A main thread that has ended while others go on. */
			return zombie ? NULL : mw_preflight_explain_denied(tid, errnum);
		}
		return err;
	}
	return trap_thread_add(process, tid, TRAP_THREAD, &thread);
}

/*
 * Seize those of one list that are new. It is complete where none of those in it is on its way out, and where it has as
 * many as there are.
 */
static struct mw_error *seize_listed(struct trap_process *process, bool *any, bool *complete)
{
	pid_t *tids = NULL;
	size_t count = 0;
	bool ended = false;
	struct mw_status status;
	struct mw_error *err = mw_tasks_read(process->pid, &tids, &count);

	for (size_t i = 0; i < count && !err; i++) {
		if (mw_map_get(&process->engine->threads, (uint64_t)tids[i]))
			continue;
		err = seize_one(process, tids[i], &ended);
		*any |= mw_map_get(&process->engine->threads, (uint64_t)tids[i]) != NULL;
	}
	free(tids);
	MW_TRY(err);
	MW_TRY(mw_status_read(process->pid, &status));
	*complete = !ended && status.threads == count;
	return NULL;
}

struct mw_error *trap_seize_all(struct trap_process *process, bool *fresh)
{
	bool complete = false;

	*fresh = false;
	/* Threads that appear meanwhile were either made by one that is seized, and are seized then, or are in the next
	 * list. */
	for (unsigned i = 0; i < MOST_LISTS && !complete; i++) {
		bool any = false;
		struct mw_error *err = seize_listed(process, &any, &complete);

		*fresh |= any;
		/* With some of them seized, what became of it will be heard by waiting. */
		if (err && mw_error_kind(err) == MW_ERROR_GONE && process->threads.count > 0) {
			mw_error_destroy(err);
			return NULL;
		}
		MW_TRY(err);
		complete &= !any;
	}
	if (process->threads.count == 0)
		return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
	return NULL;
}

static struct mw_error *interrupt_all(struct trap_process *process)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		if (!trap_is_to_stop(thread) || thread->interrupted)
			continue;
		MW_TRY(trap_interrupt(thread));
	}
	return NULL;
}

/* Has a stopped thread executed a breakpoint of ours whose trap is still to come? Then it must come first. */
static bool trap_on_its_way(struct trap_thread *thread)
{
	const struct trap_process *process = thread->process;
	struct mw_tracee_regs regs;
	struct mw_error *err;

	if (process->planted.breakpoints.count == 0)
		return false;
	err = mw_tracee_get_regs(thread->tid, &regs);
	if (err) {
		mw_error_destroy(err);
		return false;
	}
	return mw_map_get(&process->planted.breakpoints, regs.general.pc - process->arch->breakpoint_advance) &&
	       mw_tracee_trap_queued(thread->tid);
}

static size_t count_running(const struct trap_process *process)
{
	size_t running = 0;
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		running += !thread->stopped && !thread->ending;
	}
	return running;
}

/* Are all threads that are not stopped in waits that nothing interrupts (vfork, a dead disk)? */
static bool all_asleep(const struct trap_process *process)
{
	bool asleep = true;
	void *value;

	for (size_t i = 0; asleep && mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		if (!thread->stopped && !thread->ending)
			asleep = mw_state_read(thread->tid) == 'D';
	}
	return asleep;
}

static bool is_stuck(const struct trap_process *process, uint64_t held_ns)
{
	bool exposed;

	if (held_ns > PATIENCE_NS)
		return true;
	/* A process would be refused for such a one, which need but wait for its disk. */
	if (!process->windowed && !process->ended && trap_any_exposed(process))
		return false;
	return all_asleep(process) &&
	       (!trap_sharing_awaited(process, &exposed) || (!exposed && held_ns > CHILD_PATIENCE_NS));
}

/* Let those report whose trap is on its way; `*any` where there are such. */
static struct mw_error *await_traps(struct trap_process *process, bool *any)
{
	void *value;

	*any = false;
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		if (!thread->stopped || !trap_on_its_way(thread))
			continue;
		thread->group_stopped = false;
		*any = true;
		MW_TRY(trap_resume(thread));
	}
	return NULL;
}

/* A held thread whose signal has been served, or that has none, need not be found again by every wait. */
static void reap_held(struct trap_engine *engine, pid_t tid)
{
	struct trap_thread *thread = mw_map_get(&engine->threads, (uint64_t)tid);

	if (thread && thread->stopped && thread->signal == 0)
		trap_reap(thread);
}

struct mw_error *trap_hold(struct trap_process *process)
{
	struct trap_engine *engine = process->engine;
	uint64_t begin = mw_clock_ns(), heard = begin;
	unsigned quiet = 0, others = 0;

	process->holding = true;
	for (;;) {
		uint64_t now = mw_clock_ns();
		bool silent = quiet >= 2 || (others >= OTHERS && now - heard > QUIET_NS);
		bool stuck = silent && is_stuck(process, now - begin);
		const struct trap_thread *thread;
		bool traps;
		int status;
		pid_t tid;

		if (stuck && now - begin > PATIENCE_NS)
			MW_TRY(mw_fault("hold.patience"));
		MW_TRY(interrupt_all(process));
		if (stuck || count_running(process) == 0) {
			MW_TRY(await_traps(process, &traps));
			if (!traps)
				return NULL;
		}
		MW_TRY(trap_wait(engine, &tid, &status));
		if (tid == 0) {
			quiet++;
			continue;
		}
		thread = mw_map_get(&engine->threads, (uint64_t)tid);
		/* One that is not known yet may be anybody's child. */
		if (thread && thread->process == process) {
			quiet = others = 0;
			heard = mw_clock_ns();
		} else {
			others++;
		}
		MW_TRY(engine->dispatch(engine, tid, status));
		reap_held(engine, tid);
	}
}

struct mw_error *trap_release(struct trap_process *process)
{
	void *value;

	process->holding = false;
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		if (!thread->stopped)
			continue;
		/* It may have been at work for us since it stopped. */
		if (!thread->in_event && thread->signal == 0)
			thread->group_stopped = mw_tracee_is_group_stopped(thread->tid);
		MW_TRY(trap_resume(thread));
	}
	return NULL;
}

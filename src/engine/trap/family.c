// SPDX-License-Identifier: MIT
/* family.c: the threads of a process, and the children it makes (trap.h). */
#include "base/clock.h"
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_SNAPSHOT 2048u

struct mw_error *trap_thread_ended(struct trap_thread *thread, int status)
{
	struct trap_process *process = thread->process;
	bool leader = thread->tid == process->pid && thread->relation == TRAP_THREAD;
	struct mw_error *err = trap_calls_drop(thread, 0);

	trap_thread_remove(thread);
	if (leader) {
		process->window.has_exit_status = true;
		process->window.exit_status = status;
	}
	/* The leader's end is heard of last, when no thread is left. */
	if (leader || process->threads.count == 0) {
		/* A vfork child may live on in the memory: it is not to run into breakpoints that nobody serves. */
		if (!err && process->threads.count > 0)
			err = trap_process_detach(process, MW_END_EXIT);
		trap_process_end(process, MW_END_EXIT);
	}
	return err;
}

/* The first thread is about to be killed by the end of its process, and may not be heard of before it is gone. */
static bool whole_process_ends(struct trap_process *process)
{
	struct mw_status status;
	struct mw_error *err;

	if (process->end_sampled)
		return false;
	err = mw_status_read(process->pid, &status);
	process->end_sampled = !err && status.sig_pending & UINT64_C(1) << (SIGKILL - 1);
	mw_error_destroy(err);
	return process->end_sampled;
}

/* The thread will be gone: its name is final, and its memory can be looked at for the last time. */
struct mw_error *trap_thread_exiting(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	const struct mw_engine_options *options = &process->engine->options;
	uint64_t now;

	thread->ending = true;
	/* Its number may be another's soon. */
	if (thread->relation == TRAP_SHARING_CHILD)
		return mw_error_unless_gone(trap_rescue_resets(process, thread, &(bool){false}));
	if (thread->relation != TRAP_THREAD || !process->windowed)
		return NULL;
	if (thread->numbered)
		MW_TRY(trap_thread_number(thread));
	now = trap_now(process);
	if (options->sample &&
	    (thread->tid == process->pid || process->threads.count == 1 || whole_process_ends(process))) {
		options->sample(options->sample_context, process->pid, thread->tid, now, true);
		process->last_sample_ns = now;
	}
	return NULL;
}

struct mw_error *trap_child_born(struct trap_thread *parent, int event)
{
	struct trap_engine *engine = parent->process->engine;
	struct trap_thread *child = NULL;
	unsigned long tid;
	int status;

	MW_TRY(mw_tracee_event_message(parent->tid, &tid));
	if (tid == 0 || mw_map_get(&engine->threads, tid))
		return NULL;
	MW_TRY(trap_thread_add(parent->process, (pid_t)tid, TRAP_NEWBORN, &child));
	child->vfork_child = event == PTRACE_EVENT_VFORK;
	memcpy(child->calls, parent->calls, sizeof(child->calls));
	/* It begins with everything blocked, and gets its maker's mask then. */
	child->trap_blocked = parent->trap_blocked;
	child->call_count = parent->call_count;
	return trap_orphan_take(engine, (pid_t)tid, &status) ? engine->dispatch(engine, (pid_t)tid, status) : NULL;
}

/* A copy of the process: take our breakpoints and exchanged return addresses out of it and let it go. */
static struct mw_error *clean_child(struct trap_thread *child)
{
	struct trap_process *process = child->process;
	pid_t tid = child->tid;
	struct mw_error *err = mw_journal_clean_copy(&process->journal, tid);

	for (size_t i = 0; i < child->call_count && !err; i++)
		if (child->calls[i].exchanged)
			err = mw_remote_poke(tid, child->calls[i].sp - sizeof(mw_addr), &child->calls[i].ret,
					     sizeof(child->calls[i].ret));
	if (!err)
		err = mw_journal_clean_copy(&process->acts.journal, tid);
	if (!err)
		err = trap_rescue_clean_child(process, tid);
	if (!err)
		err = trap_mask_restore(child);
	trap_thread_remove(child);
	mw_error_keep_first(&err, mw_tracee_detach(tid, 0));
	err = mw_error_unless_gone(err);
	return err ? mw_error_prefix(err, "child %d", tid) : NULL;
}

static enum trap_relation relation_of(const struct trap_thread *newborn)
{
	const struct trap_process *process = newborn->process;
	int shares;

	if (syscall(SYS_tgkill, process->pid, newborn->tid, 0) == 0)
		return TRAP_THREAD;
	shares = mw_shares_memory(trap_live_tid(process), newborn->tid);
	if (shares < 0)
		shares = newborn->vfork_child;
	return shares ? TRAP_SHARING_CHILD : TRAP_FORKED_CHILD;
}

struct mw_error *trap_newborn_stopped(struct trap_thread *thread)
{
	thread->relation = relation_of(thread);
	if (thread->relation == TRAP_FORKED_CHILD)
		return clean_child(thread);
	thread->call_count = 0;
	MW_TRY(mw_error_unless_gone(trap_mask_look(thread)));
	return thread->relation == TRAP_SHARING_CHILD ? mw_error_unless_gone(trap_rescue_lead_cleared(thread)) : NULL;
}

/* The first exec of a launched command: its window begins with its first instruction. */
static struct mw_error *begin_launched(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	const struct mw_engine_options *options = &process->engine->options;

	/* From the exec's own stop no system call can be made. */
	MW_TRY(mw_tracee_to_border(thread->tid));
	MW_TRY(trap_rescue_install(process, thread->tid));
	MW_TRY(trap_plant(process, thread->tid));
	process->start_ns = mw_clock_ns();
	process->window.started_realtime_ns = mw_clock_realtime_ns();
	process->windowed = true;
	if (options->sample)
		options->sample(options->sample_context, process->pid, thread->tid, 0, false);
	return NULL;
}

/* Forget all threads of the process itself. */
static struct mw_error *drop_threads(struct trap_process *process)
{
	for (;;) {
		struct trap_thread *chosen = NULL;
		void *value;

		for (size_t i = 0; mw_map_next(&process->threads, &i, &value);)
			if (((struct trap_thread *)value)->relation == TRAP_THREAD)
				chosen = value;
		if (!chosen)
			return NULL;
		MW_TRY(trap_calls_drop(chosen, 0));
		trap_thread_remove(chosen);
	}
}

/* The thread that runs another program has the first one's id from then on, and its own mask. */
static struct mw_error *take_over_mask(struct trap_thread *thread)
{
	const struct trap_thread *former;
	unsigned long tid;

	MW_TRY(mw_tracee_event_message(thread->tid, &tid));
	former = mw_map_get(&thread->process->threads, tid);
	if (former)
		thread->trap_blocked = former->trap_blocked;
	return NULL;
}

struct mw_error *trap_exec(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	pid_t tid = thread->tid;

	if (thread->relation == TRAP_SHARING_CHILD) {
		/* It has memory of its own now, but keeps its mask. */
		MW_TRY(mw_error_unless_gone(trap_mask_restore(thread)));
		MW_TRY(mw_error_unless_gone(trap_disposition_after_exec(thread)));
		trap_thread_remove(thread);
		return mw_error_unless_gone(mw_tracee_detach(tid, 0));
	}
	if (process->launched && !process->windowed)
		return begin_launched(thread);
	/* All threads are gone but this one, which is the leader now, and has memory of its own. */
	MW_TRY(mw_error_unless_gone(take_over_mask(thread)));
	MW_TRY(mw_error_unless_gone(trap_mask_restore(thread)));
	MW_TRY(mw_error_unless_gone(trap_disposition_after_exec(thread)));
	MW_TRY(drop_threads(process));
	MW_TRY(mw_error_unless_gone(mw_tracee_detach(tid, 0)));
	/* Others may live on in the memory that it left, with our breakpoints in it. */
	if (process->threads.count > 0)
		MW_TRY(trap_process_detach(process, MW_END_EXEC));
	trap_process_end(process, MW_END_EXEC);
	return NULL;
}

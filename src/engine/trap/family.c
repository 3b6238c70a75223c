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

/*
 * Tracees that stop before anybody has told of them. Mostly the news of the birth is on its way. Where it never comes,
 * as who made the child was killed in the middle of that, the child must neither stay stopped nor keep our breakpoints.
 */
#define PATIENCE_NS UINT64_C(500000000)   /* for the news of a birth */
#define LONG_NS     UINT64_C(10000000000) /* … where the maker is there, and may not have had a CPU */

struct mw_error *trap_orphan_keep(struct trap_engine *engine, pid_t tid, int status)
{
	struct trap_orphan *orphan = mw_map_get(&engine->orphans, (uint64_t)tid);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		free(mw_map_remove(&engine->orphans, (uint64_t)tid));
		return NULL;
	}
	if (!orphan) {
		orphan = calloc(1, sizeof(*orphan));
		if (!orphan)
			return mw_error_nomem();
		orphan->tid = tid;
		orphan->since_ns = engine->stop_ns;
	}
	orphan->status = status;
	return mw_map_set(&engine->orphans, (uint64_t)tid, orphan);
}

/* It has been announced. False: it has not stopped yet. */
static bool trap_orphan_take(struct trap_engine *engine, pid_t tid, int *status)
{
	struct trap_orphan *orphan = mw_map_remove(&engine->orphans, (uint64_t)tid);

	if (!orphan)
		return false;
	*status = orphan->status;
	free(orphan);
	return true;
}

/* A copy of the process has its breakpoints: how many of them. */
static size_t common(const struct trap_process *process, pid_t tid)
{
	size_t count = 0;

	for (size_t i = 0; i < process->journal.count; i++) {
		const struct mw_patch *patch = &process->journal.items[i];
		uint8_t now[MW_OOL_MAX];

		count += !patch->forgotten && mw_remote_read(tid, patch->addr, now, patch->size) == patch->size &&
			 memcmp(now, patch->planted, patch->size) == 0;
	}
	return count;
}

/* Whose is it? One that has ended may have left children. NULL: nobody's that we know. */
static struct trap_process *owner(const struct trap_engine *engine, pid_t tid, bool *maker_lives)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);
	struct trap_process *copied = NULL;
	size_t most = 0;

	*maker_lives = false;
	if (err) {
		mw_error_destroy(err);
		return NULL;
	}
	for (size_t i = 0; i < engine->process_count; i++) {
		struct trap_process *process = engine->processes[i];
		size_t count;

		if (!process->ended && status.tgid == process->pid)
			return process;
		*maker_lives |= !process->ended && status.ppid == process->pid;
		count = common(process, tid);
		if (count > most) {
			most = count;
			copied = process;
		}
	}
	return copied;
}

/* It is treated as one that was just announced; nobody's is let go as it is. */
static struct mw_error *adopt(struct trap_engine *engine, pid_t tid, struct trap_process *process)
{
	struct trap_thread *thread;
	int status;

	if (!trap_orphan_take(engine, tid, &status))
		return NULL;
	if (!process)
		return mw_error_unless_gone(mw_tracee_detach(tid, 0));
	MW_TRY(trap_thread_add(process, tid, TRAP_NEWBORN, &thread));
	return engine->dispatch(engine, tid, status);
}

struct mw_error *trap_orphans_resolve(struct trap_engine *engine)
{
	uint64_t now = mw_clock_ns();
	void *value;

	for (size_t i = 0; mw_map_next(&engine->orphans, &i, &value);) {
		struct trap_orphan *orphan = value;
		struct trap_process *process;
		bool maker_lives;

		if (now - orphan->since_ns <= PATIENCE_NS || now - orphan->looked_ns <= PATIENCE_NS)
			continue;
		orphan->looked_ns = now;
		process = owner(engine, orphan->tid, &maker_lives);
		/* That changes the map. */
		if (!maker_lives || now - orphan->since_ns > LONG_NS)
			return adopt(engine, orphan->tid, process);
	}
	return NULL;
}

bool trap_is_known(void *context, pid_t tid)
{
	const struct trap_engine *engine = context;

	return mw_map_get(&engine->threads, (uint64_t)tid) || mw_map_get(&engine->orphans, (uint64_t)tid);
}

/* The status of the first stop is nothing that anybody asks for then. */
static void found(void *context, pid_t pid)
{
	struct trap_engine *engine = context;
	int status;

	if (waitpid(pid, &status, __WALL | WNOHANG) == pid)
		mw_error_destroy(trap_orphan_keep(engine, pid, status));
}

/* Stops that have been waited for, and not been served yet. */
static struct mw_error *keep_heard(struct trap_engine *engine)
{
	struct mw_error *first = NULL;

	for (size_t i = 0; i < engine->heard.count; i++) {
		size_t at = (engine->heard.first + i) % TRAP_HEARD;
		pid_t tid = engine->heard.items[at].tid;

		if (!trap_is_known(engine, tid))
			mw_error_keep_first(&first, trap_orphan_keep(engine, tid, engine->heard.items[at].status));
	}
	engine->heard.count = 0;
	return first;
}

struct mw_error *trap_orphans_free(struct trap_engine *engine)
{
	const struct mw_orphans orphans = {.known = trap_is_known, .stopped = found, .context = engine};
	struct mw_error *first = keep_heard(engine);
	void *value;

	mw_orphans_find(&orphans);
	for (size_t i = 0; mw_map_next(&engine->orphans, &i, &value); i = 0) {
		pid_t tid = ((const struct trap_orphan *)value)->tid;
		bool maker_lives;

		mw_error_keep_first(&first, adopt(engine, tid, owner(engine, tid, &maker_lives)));
	}
	return first;
}

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

// SPDX-License-Identifier: MIT
/* thread.c: the threads of a process, and what a single one is made to do (trap.h). */
#include "engine/trap/threads.h"
#include "proc/status.h"

#include <stdlib.h>

#define FIRST_SNAPSHOT 2048u

struct mw_error *trap_thread_add(struct trap_process *process, pid_t tid, enum trap_relation relation,
				 struct trap_thread **out)
{
	struct trap_engine *engine = process->engine;
	struct trap_thread *thread = calloc(1, sizeof(*thread));
	struct mw_error *err;

	if (!thread)
		return mw_error_nomem();
	thread->tid = tid;
	thread->process = process;
	thread->relation = relation;
	thread->snapshot_size = FIRST_SNAPSHOT;
	thread->last_free.hook = thread->last_free.last = TRAP_NO_HOOK;
	err = mw_map_set(&engine->threads, (uint64_t)tid, thread);
	if (!err) {
		err = mw_map_set(&process->threads, (uint64_t)tid, thread);
		if (err)
			mw_map_remove(&engine->threads, (uint64_t)tid);
	}
	if (err) {
		free(thread);
		return err;
	}
	*out = thread;
	return NULL;
}

void trap_thread_remove(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;

	trap_unreaped_no_more(thread);
	mw_map_remove(&process->threads, (uint64_t)thread->tid);
	mw_map_remove(&process->engine->threads, (uint64_t)thread->tid);
	free(thread);
}

struct mw_error *trap_thread_number(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	char name[17];

	mw_comm_read(thread->relation == TRAP_SHARING_CHILD ? thread->tid : process->pid, thread->tid, name);
	MW_TRY(process->sink.thread(process->sink.context, thread->tid, name, !thread->numbered, &thread->number));
	thread->numbered = true;
	return NULL;
}

pid_t trap_stopped_tid(const struct trap_process *process)
{
	pid_t sharing = 0;
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		if (thread->stopped && thread->relation == TRAP_THREAD)
			return thread->tid;
		if (thread->stopped && thread->relation == TRAP_SHARING_CHILD)
			sharing = thread->tid;
	}
	return sharing;
}

pid_t trap_live_tid(const struct trap_process *process)
{
	void *value;
	pid_t any = process->pid;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		/* One that has ended has no memory any more. */
		if (thread->relation != TRAP_THREAD || thread->ending)
			continue;
		if (thread->tid == process->pid)
			return process->pid;
		any = thread->tid;
	}
	return any;
}

bool trap_is_to_stop(const struct trap_thread *thread)
{
	return !thread->stopped && !thread->ending && thread->relation != TRAP_NEWBORN;
}

struct mw_error *trap_interrupt(struct trap_thread *thread)
{
	MW_TRY(mw_error_unless_gone(mw_tracee_interrupt(thread->tid)));
	thread->interrupted = thread->interrupt_due = true;
	return NULL;
}

struct mw_error *trap_resume(struct trap_thread *thread)
{
	int signal = thread->signal;

	thread->stopped = false;
	thread->signal = 0;
	trap_unreaped_no_more(thread);
	if (thread->group_stopped) {
		thread->group_stopped = false;
		return mw_error_unless_gone(mw_tracee_listen(thread->tid));
	}
	return mw_error_unless_gone(mw_tracee_resume(thread->tid, signal));
}

/* A held signal would be lost, and a system call's own stops taken for ours. */
bool trap_is_usable(const struct trap_thread *thread)
{
	return thread->stopped && !thread->in_event && thread->signal == 0 &&
	       (thread->relation == TRAP_THREAD || thread->relation == TRAP_SHARING_CHILD);
}

// SPDX-License-Identifier: MIT
/*
 * sharing.c: other processes that live in a process's memory already when it is attached to: children of vfork() and
 * posix_spawn() that have not come to their exec or end, and whatever else was cloned with its memory (trap.h).
 *
 * They run into our breakpoints, but have actions of their own, in which SIGTRAP kills. So they are held and served as
 * threads are, and their SIGTRAP is led where the process's is. Those that are born later inherit all that.
 */
#include "engine/trap/threads.h"
#include "proc/status.h"

#include <stdlib.h>

#define MOST_ROUNDS 16 /* children's children */
#define TRAP_BIT    (UINT64_C(1) << (SIGTRAP - 1))

/* The first that shares the memory, is a child of this thread and is none of ours; 0: there is none. */
static pid_t find_child(const struct trap_process *process, const struct trap_thread *thread)
{
	pid_t group = thread->relation == TRAP_SHARING_CHILD ? thread->tid : process->pid, child = 0;
	pid_t *found = NULL;
	size_t count = 0;

	mw_error_destroy(mw_children_read(group, thread->tid, &found, &count));
	for (size_t i = 0; i < count && !child; i++)
		if (!mw_map_get(&process->engine->threads, (uint64_t)found[i]) &&
		    mw_shares_memory(thread->tid, found[i]) == 1)
			child = found[i];
	free(found);
	return child;
}

/* Does one of the process's own threads stand still, by which its signals can be led? */
static bool has_injector(const struct trap_process *process)
{
	bool has = false;
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		has |= thread->stopped && !thread->ending && thread->relation == TRAP_THREAD;
	}
	return has;
}

/* Of one that has not stopped: its mask could not be changed. */
static bool blocks_trap(const struct trap_thread *thread)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(thread->tid, &status);
	bool blocks = !err && status.sig_blocked & TRAP_BIT;

	mw_error_destroy(err);
	return blocks;
}

/* It waits for a vforked child, and nothing can be done to it until that has come to its exec or end: would SIGTRAP
 * kill it then if memwatch is no more? */
static bool is_exposed(const struct trap_process *process, const struct trap_thread *thread)
{
	return thread->relation == TRAP_SHARING_CHILD || !has_injector(process) || blocks_trap(thread);
}

bool trap_sharing_awaited(const struct trap_process *process, bool *exposed)
{
	bool awaited = false;
	void *value;

	*exposed = false;
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		if (!trap_is_to_stop(thread) || !find_child(process, thread))
			continue;
		awaited = true;
		*exposed |= is_exposed(process, thread);
	}
	return awaited;
}

/* Is one of its children held by us, in its memory? */
static bool has_held_child(const struct trap_process *process, const struct trap_thread *thread)
{
	pid_t group = thread->relation == TRAP_SHARING_CHILD ? thread->tid : process->pid;
	pid_t *found = NULL;
	size_t count = 0;
	bool held = false;

	mw_error_destroy(mw_children_read(group, thread->tid, &found, &count));
	for (size_t i = 0; i < count && !held; i++) {
		const struct trap_thread *child = mw_map_get(&process->threads, (uint64_t)found[i]);

		held = child && child->relation == TRAP_SHARING_CHILD;
	}
	free(found);
	return held;
}

bool trap_any_exposed(const struct trap_process *process)
{
	bool exposed = false;
	void *value;

	for (size_t i = 0; !exposed && mw_map_next(&process->threads, &i, &value);)
		exposed = trap_is_to_stop(value) && blocks_trap(value) && !has_held_child(process, value);
	return exposed;
}

/* One after the other: who is added may change the order of all. */
static struct mw_error *seize_one(struct trap_process *process, bool *any)
{
	void *value;

	*any = false;
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;
		pid_t child = thread->relation == TRAP_NEWBORN ? 0 : find_child(process, thread);
		struct trap_thread *added;
		struct mw_error *err;

		if (!child)
			continue;
		err = trap_seize(child);
		/* It has ended or become a program of its own, or is another tracer's. */
		if (err && mw_error_kind(err) != MW_ERROR_MEMORY) {
			mw_error_destroy(err);
			continue;
		}
		MW_TRY(err);
		*any = true;
		return trap_thread_add(process, child, TRAP_SHARING_CHILD, &added);
	}
	return NULL;
}

struct mw_error *trap_sharing_seize(struct trap_process *process)
{
	for (unsigned round = 0; round < MOST_ROUNDS; round++) {
		bool any, fresh = false;

		do {
			MW_TRY(seize_one(process, &any));
			fresh |= any;
		} while (any);
		if (!fresh)
			return NULL;
		/* They may have made others. */
		MW_TRY(trap_hold(process));
	}
	return NULL;
}

struct mw_error *trap_sharing_each(struct trap_process *process,
				   struct mw_error *(*each)(struct trap_process *process, pid_t tid))
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		if (thread->relation == TRAP_SHARING_CHILD && trap_is_usable(thread))
			MW_TRY(mw_error_unless_gone(each(process, thread->tid)));
	}
	return NULL;
}

static struct mw_error *refuse(const struct trap_thread *thread, const char *why)
{
	struct mw_error *err =
		mw_error_create(MW_ERROR_UNSUPPORTED, 0, "thread %d %s, and would die if memwatch is killed meanwhile",
				(int)thread->tid, why);

	return mw_error_hint(err, "Try again in a moment; or accept the risk with --unsafe");
}

struct mw_error *trap_sharing_check(const struct trap_process *process)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;
		bool waits;

		if (!trap_is_to_stop(thread))
			continue;
		waits = has_held_child(process, thread);
		if (waits ? is_exposed(process, thread) : blocks_trap(thread))
			return refuse(thread, waits ? "waits for a program to be started (vfork, posix_spawn)"
						    : "does not stop (it waits for a disk, or gets no CPU)");
	}
	return NULL;
}

// SPDX-License-Identifier: MIT
/*
 * orphans.c: tracees that stop before anybody has told of them (trap.h).
 *
 * Mostly the news of the birth is on its way. Where it never comes, as who made the child was killed in the middle of
 * that, the child must neither stay stopped nor keep our breakpoints.
 */
#include "base/clock.h"
#include "engine/trap/threads.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

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

bool trap_orphan_take(struct trap_engine *engine, pid_t tid, int *status)
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

// SPDX-License-Identifier: MIT
/*
 * detach.c: take everything out of a process, and leave it as it was (jump.h).
 *
 *      guard off                      whatever comes is passed on, nobody waits any more
 *      all threads stand              bytes back, threads out of copies of instructions
 *      let them run for a moment      until none is in our code or returns there
 *      unmap, let go
 *      read what is left in the rings
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"
#include "engine/jump/recorder.h"

#include "proc/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS UINT64_C(3000000000) /* to have it stopped */

/* One that only says that the process is gone is none. */
static struct mw_error *first_of(struct mw_error *first, struct mw_error *second)
{
	return mw_error_first(first, mw_error_unless_gone(second));
}

static void look(struct jump_process *process, void *context)
{
	(void)context;
	if (process->drain)
		jump_drain_tidy(process->drain);
	if (process->recorder.shared.base)
		process->recorder.open_elsewhere =
			__atomic_load_n(&jump_control(&process->recorder.shared)->open, __ATOMIC_RELAXED);
}

/* What has to stay mapped stays unused, and is known. */
static bool must_stay(struct jump_process *process, const char *taken, size_t left)
{
	if (taken)
		snprintf(process->why_left, sizeof(process->why_left),
			 "another tool has changed the code of %.64s: what our jump there leads to stays, unused",
			 taken);
	else if (left)
		snprintf(process->why_left, sizeof(process->why_left),
			 "%zu calls were still going on: the code that they return to stays in the process, unused",
			 left);
	return taken || left;
}

/* The functions' bytes are put back, and calls in flight let come back. */
static struct mw_error *restore(struct jump_process *process, struct mw_maps *maps, const char **taken, size_t *left)
{
	struct mw_error *err;

	/* What has come by where none of ours stood any more, nobody knows. */
	process->patches.disturbed =
		mw_journal_disturbed(&process->patches.journal, mw_quiesce_pick(&process->quiesce));
	err = jump_unpatch(process, false, taken);
	if (!err)
		err = jump_await_calls(process, maps, look, NULL, left);
	if (!jump_unwinder_patched(process) || !jump_still_there(process))
		return err;
	err = first_of(err, jump_unpatch(process, true, taken));
	return err || *left ? err : jump_await_calls(process, maps, look, NULL, left);
}

static struct mw_error *take_out(struct jump_process *process)
{
	struct mw_maps maps = {0};
	struct mw_inject inject;
	const char *taken = NULL;
	size_t left = 0;
	pid_t tid = 0;
	struct mw_error *err = restore(process, &maps, &taken, &left);

	if (!err && jump_still_there(process) && !must_stay(process, taken, left)) {
		/* A vfork may have come while calls went on. */
		err = mw_quiesce_await_injector(&process->quiesce);
		if (!err)
			err = mw_seccomp_policy_pick_best(&process->quiesce, &maps, MW_CALLS_MAP, &tid);
		if (!err)
			err = mw_inject_init(&inject, tid, &maps);
		if (!err)
			err = jump_memory_unmap(process, &inject);
	}
	mw_maps_deinit(&maps);
	return err;
}

static bool is_as_long_as_wanted(const struct jump_process *process)
{
	uint64_t wanted = process->engine->options.duration_ns;

	return process->windowed && wanted && jump_now(process) >= wanted;
}

/* What has been reported is of the window: where memwatch gets no CPU in between, it is not over before that. */
void jump_window_close(struct jump_process *process)
{
	uint64_t now = jump_now(process);

	if (!process->windowed || process->window.length_ns)
		return;
	if (is_as_long_as_wanted(process))
		now = process->engine->options.duration_ns;
	else if (process->drain && jump_drain_emitted(process->drain) > now)
		now = jump_drain_emitted(process->drain);
	process->window.length_ns = now;
}

/* Nothing is recorded any more but by calls that are on their way: what they tell is no later. */
static void end_time(struct jump_process *process)
{
	if (!process->windowed || process->window.length_ns)
		return;
	jump_window_close(process);
	if (process->drain)
		jump_drain_end(process->drain, process->window.length_ns);
}

/* Everything is read, and the window's books are closed. */
static struct mw_error *close_window(struct jump_process *process, enum mw_window_end end)
{
	struct mw_error *err = NULL;

	process->ended = process->window.over = true;
	process->window.gone = end == MW_END_EXIT || end == MW_END_EXEC;
	/* What became of it after its window is not why that ended. */
	process->window.ended = process->window.length_ns && process->engine->windows_ended ? process->engine->end
				: is_as_long_as_wanted(process)                             ? MW_END_DURATION
											    : end;
	end_time(process);
	if (process->drain && process->windowed) {
		/* After an exec it is another program that has a name. */
		if (end != MW_END_EXEC)
			err = jump_drain_rename(process->drain);
		if (!err)
			err = jump_drain_finish(process->drain);
		jump_stats_take(process);
	}
	return err;
}

struct mw_error *jump_process_end(struct jump_process *process, enum mw_window_end end)
{
	struct mw_error *err;

	if (process->ended)
		return NULL;
	err = close_window(process, end);
	/* Children may have outlived it. */
	if (process->installed && process->recorder.memory.there)
		jump_children_sweep(process);
	jump_memory_close(process);
	return err;
}

static struct mw_error *remove_all(struct jump_process *process)
{
	struct mw_error *err, *released;

	/* Who has asked about a stack of its own making, and was not answered yet? */
	if (process->windowed && process->recorder.shared.base)
		mw_error_destroy(jump_answer(process));
	jump_look_for_frames(process);
	/* What fails once, as a thread can't be stopped yet, must not leave our code in there. */
	err = jump_stop(process, PATIENCE_NS);
	if (!err)
		err = take_out(process);
	if (err && mw_error_kind(err) != MW_ERROR_GONE)
		err = mw_error_prefix(err, "memwatch's code in process %d could not be removed", process->pid);
	if (process->quiesce.gone)
		jump_exit_status(process, process->quiesce.exit_status);
	released = mw_quiesce_end(&process->quiesce);
	jump_account_stop(process);
	return first_of(first_of(NULL, err), released);
}

struct mw_error *jump_window_end(struct jump_process *process)
{
	if (process->ended || process->window_closed)
		return NULL;
	if (!process->recorder.mapped && !process->patches.journal.count)
		return NULL;
	/* In this order: a guard that is off while recording is on is a forked child's. */
	if (process->recorder.shared.base)
		__atomic_store_n(&jump_control(&process->recorder.shared)->recording, 0, __ATOMIC_RELEASE);
	MW_TRY(jump_guard_set(process, jump_live_tid(process), MW_STUB_GUARD_ENDING));
	end_time(process);
	process->window_closed = true;
	return NULL;
}

struct mw_error *jump_process_detach(struct jump_process *process, enum mw_window_end end)
{
	struct mw_error *err = NULL, *guarded;

	if (process->ended)
		return NULL;
	if (process->quiesce.standing)
		err = first_of(err, mw_quiesce_end(&process->quiesce));
	guarded = jump_window_end(process);
	/* What stands in the way of both is reported better by the second. */
	if (process->recorder.mapped || process->patches.journal.count)
		err = first_of(err, remove_all(process));
	/* Another program's names are not told as its. */
	if (process->quiesce.execed)
		end = MW_END_EXEC;
	return first_of(jump_process_end(process, end), first_of(err, guarded));
}

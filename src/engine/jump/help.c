// SPDX-License-Identifier: MIT
/* help.c: what the drain asks of the process (jump.h, drain.h). */
#include "engine/jump/lifecycle.h"
#include "engine/jump/recorder.h"
#include "engine/jump/walking.h"

#include "base/clock.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ABOVE      (UINT64_C(8) << 20)  /* so much above the piece of stack that was sent may be stack too */
#define SEEK_NS    UINT64_C(1000000000) /* to spend on looking for threads, */
#define SEEK_SHARE 8                    /* … and one part in so many of the time since */

/* The piece of stack that the recorder sent, and memory that does not change so soon. */
struct piece {
	const struct jump_process *process;
	mw_addr start;
	const uint8_t *bytes;
	size_t size;
	pid_t tid;
};

static bool read_piece(void *context, mw_addr addr, void *out, size_t size)
{
	const struct piece *piece = context;
	uint64_t into = addr - piece->start;

	if (into < piece->size && size <= piece->size - into) {
		memcpy(out, piece->bytes + into, size);
		return true;
	}
	/* What lies above on the stack has changed since. */
	if (into < piece->size + ABOVE)
		return false;
	return mw_remote_read(piece->tid, addr, out, size) == size;
}

static bool piece_ends(void *context, mw_addr addr)
{
	const struct piece *piece = context;

	return mw_peek_ends(piece->tid, addr);
}

static void help_walk(void *context, const struct mw_ring_slow *slow, const uint8_t *bytes, size_t size,
		      struct mw_raw_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	struct jump_process *process = context;
	struct piece piece = {
		.process = process, .start = slow->start, .bytes = bytes, .size = size, .tid = jump_live_tid(process)};
	const struct mw_memory_view memory = {.context = &piece, .read = read_piece, .ends = piece_ends};
	struct mw_regs regs = {.pc = slow->pc};

	if (capacity > process->engine->options.depth)
		capacity = process->engine->options.depth;
	memcpy(regs.gpr, slow->gpr, sizeof(regs.gpr));
	process->unwinder->ops->walk(process->unwinder, &regs, &memory, process->engine->frames, capacity, count, cut);
	if (process->unwinder->dead_end)
		jump_learn_end(process, process->unwinder->dead_end);
	for (uint32_t i = 0; i < *count; i++) {
		const struct mw_unwound_frame *frame = &process->engine->frames[i];

		frames[i] = (struct mw_raw_frame){.addr = frame->pc, .module = frame->module};
		/* The recorder's walks will end there. */
		if (frame->undescribed && mw_row_kind(jump_learn(process, frame->pc)) == MW_ROW_FOREIGN) {
			*count = i + 1;
			*cut = MW_STACK_BROKEN;
		}
	}
}

static void help_check(void *context, struct mw_raw_frame *frames, uint32_t *count, enum mw_stack_cut *cut)
{
	struct jump_process *process = context;
	uint32_t good = jump_learned_check(process, frames, *count);

	if (good < *count) {
		*count = good;
		*cut = MW_STACK_BROKEN;
	} else if (*cut == MW_STACK_BROKEN && good > 0) {
		jump_learn_later(process, frames[good - 1].addr);
	}
}

static uint32_t help_module(void *context, mw_addr pc)
{
	const struct jump_process *process = context;
	const struct mw_module *module = mw_modules_find(process->survey.modules, pc - 1);

	return module ? module->number : MW_MODULE_NONE;
}

/* What is found so once, the recorder knows from then on. */
static bool help_begins(void *context, mw_addr pc, mw_addr inner)
{
	struct jump_process *process = context;

	if (!process->unwinder->ops->begins || !process->unwinder->ops->begins(process->unwinder, pc, inner))
		return false;
	jump_learn_end(process, pc);
	return true;
}

static bool lives(const struct jump_process *process, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", process->pid, tid);
	return tid > 0 && access(path, F_OK) == 0;
}

/* Which thread of the process is `tid` in its innermost namespace? 0: none. */
static pid_t find_thread(const struct jump_process *process, uint32_t tid)
{
	pid_t *tids = NULL, found = 0;
	size_t count = 0;
	struct mw_error *err = mw_tasks_read(process->pid, &tids, &count);

	for (size_t i = 0; !err && i < count && !found; i++) {
		struct mw_status status;
		struct mw_error *unread = mw_status_read(tids[i], &status);

		if (!unread && status.ns_pid == (pid_t)tid)
			found = tids[i];
		mw_error_destroy(unread);
	}
	mw_error_destroy(err);
	free(tids);
	return found;
}

/* The same, within what time there is for it: a target may tell any number of numbers that are no thread's. */
static pid_t seek_thread(struct jump_process *process, uint32_t tid)
{
	uint64_t begin = mw_clock_ns();
	pid_t found;

	if (!process->ids.seek_since_ns)
		process->ids.seek_since_ns = begin;
	if (process->ids.seek_ns > SEEK_NS + (begin - process->ids.seek_since_ns) / SEEK_SHARE)
		return 0;
	found = find_thread(process, tid);
	process->ids.seek_ns += mw_clock_ns() - begin;
	return found;
}

/* The same, kept as long as it lives: to look through all threads takes its time. `anew`: the number may be another's.
 */
static pid_t translate(struct jump_process *process, uint32_t tid, bool anew)
{
	pid_t known = (pid_t)(uintptr_t)mw_map_get(&process->ids.tids, tid);

	if (!process->ids.other_namespace)
		return (pid_t)tid;
	if (known && (!anew || lives(process, known)))
		return known;
	known = seek_thread(process, tid);
	/* Where it can't be kept, it is looked for again. */
	if (known)
		mw_error_destroy(mw_map_set(&process->ids.tids, tid,
					    (void *)(uintptr_t)known)); // NOLINT(performance-no-int-to-ptr)
	return known;
}

pid_t jump_thread_of(struct jump_process *process, uint32_t tid)
{
	return translate(process, tid, false);
}

static bool help_thread(void *context, uint32_t tid, pid_t *out, char name[17])
{
	struct jump_process *process = context;
	pid_t found = translate(process, tid, true);

	*out = found ? found : (pid_t)tid;
	if (found && lives(process, found) && !(process->ended && process->window.ended == MW_END_EXEC)) {
		mw_comm_read(process->pid, found, name);
		/* Read before that is asked: a name that came by an exec is another program's. */
		if (process->ended || !jump_has_execed(process))
			return true;
	}
	/* A thread is born with its maker's name. */
	snprintf(name, 17, "%s", process->name);
	return false;
}

static bool help_thread_lives(void *context, uint32_t tid)
{
	struct jump_process *process = context;

	/* When the whole process has ended, what its threads were at is of no matter; others may live in its memory. */
	return lives(process, translate(process, tid, false)) || jump_has_exited(process);
}

static bool help_fill(void *context, uint32_t first, uint32_t count)
{
	return jump_memory_fill_rings(context, first, count);
}

struct jump_drain_help jump_help(struct jump_process *process)
{
	return (struct jump_drain_help){.context = process,
					.thread = help_thread,
					.module = help_module,
					.begins = help_begins,
					.walk = help_walk,
					.check = help_check,
					.thread_lives = help_thread_lives,
					.fill = help_fill};
}

// SPDX-License-Identifier: MIT
/*
 * suspended.c: what threads of the program's own making will come back to (jump.h).
 *
 * A signal handler that switches to another stack (swapcontext) leaves behind what the signal has struck, and may come
 * back to it at any time. The place to go back to, or the mark of a call, lies in memory then: all that may be a stack
 * is looked through. That takes time, so there has to be a reason: the recorder's count of what has come in and not
 * left, which calls that a handler has jumped out of for good (longjmp) are in as well; or, for the few instructions
 * before it is counted and after, that the program has been seen on a stack that is not a thread's own, or that it has
 * handlers and a frame of a signal's is somewhere. That is looked for while the process runs.
 */
#include "engine/jump/search.h"

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/status.h"
#include "proc/touched.h"
#include "target/remote.h"

#include <stdlib.h>

#define OWN_SIGNALS (UINT64_C(3) << 31) /* 32 and 33 */
#define TURN_NS     UINT64_C(100000000) /* of CPU time: in that all threads of the program's own making have had one */
#define DOUBT_NS    UINT64_C(300000000)
#define ALTSTACK    65536u /* bytes: few are longer */
#define MOST_LOOKS  64u    /* through so much of one, a search */

/* Nobody comes back to calls of a thread that has ended. */
static uint32_t open_calls(const struct jump_process *process)
{
	uint32_t open = process->open_elsewhere;

	for (uint32_t i = 0; i < process->shared.geometry.slot_count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->shared, i);

		if (__atomic_load_n(&slot->tid, __ATOMIC_RELAXED) != MW_RING_NO_TID)
			open += __atomic_load_n(&slot->open, __ATOMIC_RELAXED);
	}
	return open;
}

/* Does the frame of a signal above `at` name an alternate stack that both lie on? Its own may be partly overwritten. */
static bool is_below_first(struct jump_search *search, mw_addr at)
{
	const struct mw_arch *arch = search->process->survey.arch;
	uint64_t *words = search->altstack_looks++ < MOST_LOOKS ? malloc(ALTSTACK) : NULL;
	size_t count = words ? mw_touched_peek(search->tid, at, words, ALTSTACK) / sizeof(*words) : 0;
	mw_addr start = 0;
	uint64_t size = 0;
	bool found = false;

	for (size_t i = MW_KEPT_BELOW; i < count && !found; i++)
		found = arch->is_struck_pc(words, count, i) &&
			arch->kept_altstack(&words[i - MW_KEPT_BELOW], &start, &size) && at - start < size &&
			at + i * sizeof(*words) - start < size;
	free(words);
	return found;
}

/*
 * A signal's frame on the alternate stack that it names is the last handler's, which has returned where no thread is on
 * that stack: the next signal will begin at the same place. So have all that have struck that handler.
 */
static bool is_stale(struct jump_search *search, mw_addr at)
{
	const struct mw_arch *arch = search->process->survey.arch;
	uint64_t words[MW_KEPT_BELOW], size;
	mw_addr start;

	if (search->counted || mw_remote_read(search->tid, at - sizeof(words), words, sizeof(words)) != sizeof(words))
		return false;
	return (arch->kept_altstack(words, &start, &size) && at - start < size) || is_below_first(search, at);
}

/* What a signal has struck is kept with its stack pointer right before the program counter. */
static enum jump_told judge(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	const struct jump_process *process = search->process;
	mw_addr at = start + i * sizeof(*search->words);

	if (is_stale(search, at) || (i > 0 && jump_search_below(search, search->words[i - 1])))
		return JUMP_TOLD_NOTHING;
	/* Programs that make stacks may keep copies of contexts to go back to; others do so to tell of them. */
	return process->own_stacks || process->survey.arch->is_kept_in_place(at, search->words, count, i)
		       ? JUMP_TOLD
		       : JUMP_TOLD_DOUBTFUL;
}

static enum jump_told comes_back(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	const uint64_t *words = search->words;

	/* A call that was jumped out of leaves its mark. */
	if (i + JUMP_CALL_WORDS <= count && jump_call_stands(search->process, start, words, i))
		return jump_search_below(search, start + i * sizeof(*words)) ? JUMP_TOLD_NOTHING : JUMP_TOLD;
	return jump_struck_in_ours(search->process, start, words, count, i) ? judge(search, start, count, i)
									    : JUMP_TOLD_NOTHING;
}

/* Has a signal struck anything? */
static enum jump_told is_frame(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	return i > 0 && search->process->survey.arch->is_struck_pc(search->words, count, i) &&
			       !is_stale(search, start + i * sizeof(*search->words))
		       ? JUMP_TOLD
		       : JUMP_TOLD_NOTHING;
}

static enum jump_told goes_back(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	return jump_struck_overwritten(search->process, start, search->words, count, i) ? judge(search, start, count, i)
											: JUMP_TOLD_NOTHING;
}

pid_t jump_any_stopped(const struct jump_process *process)
{
	for (size_t i = 0; i < process->quiesce.count; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];

		if (thread->stopped && !thread->newborn)
			return thread->tid;
	}
	return 0;
}

size_t jump_suspended(struct jump_process *process, const struct mw_maps *maps, bool copy)
{
	uint32_t count = copy ? 0 : open_calls(process);
	struct jump_search search = {
		.process = process, .tells = comes_back, .counted = count > 0, .tid = jump_any_stopped(process)};
	uint64_t since = process->quiesce.since_ns;
	size_t unknown;
	bool all;

	if (count == 0 && !jump_may_be_suspended(process))
		return 0;
	/* Nobody has run since. */
	if (since && process->seen.clear_ns == since)
		return 0;
	/* It is looked again when one has stopped. */
	if (!search.tid)
		return count ? count : 1;
	jump_memory_bounds(process, &search.low, &search.high);
	all = jump_search(&search, maps);
	if (all && search.found + search.doubtful == 0)
		process->seen.clear_ns = since;
	/* What is counted and can't be looked for may be there, and so may be what a program leaves on such stacks. */
	unknown = count ? count : process->own_stacks;
	if (!all && search.found + search.doubtful == 0)
		return unknown;
	/* Where nothing is counted, what looks as if it had long been left has been, if it stays. */
	if (count == 0 && search.found == 0 && mw_clock_ns() - process->seen.since_ns > DOUBT_NS &&
	    (search.below == 0 || jump_search_cpu_ns(process->pid) - process->seen.since_cpu_ns > TURN_NS))
		return 0;
	return search.found + search.doubtful;
}

/* Two signals are the C library's own. */
static bool handles_signals(const struct jump_process *process)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(jump_live_tid(process), &status);
	bool handles = !err && status.sig_caught & ~OWN_SIGNALS;

	mw_error_destroy(err);
	return handles;
}

bool jump_suspended_goes_back(struct jump_process *process, const struct mw_maps *maps)
{
	struct jump_search search = {.process = process,
				     .tells = goes_back,
				     .brief = !jump_may_be_suspended(process),
				     .tid = jump_any_stopped(process)};

	jump_overwritten_bounds(process, &search.low, &search.high);
	/* Signals may have come since frames of theirs were looked for. */
	if (search.low >= search.high || (search.brief && !handles_signals(process)))
		return false;
	if (!search.tid)
		return true;
	/* While no jump stands others may have come to where was looked before. */
	jump_search_anew(process);
	(void)jump_search(&search, maps);
	return search.found + search.doubtful > 0;
}

void jump_look_for_frames(struct jump_process *process)
{
	struct jump_search search = {.process = process,
				     .tells = is_frame,
				     .high = UINT64_MAX,
				     .tid = jump_live_tid(process),
				     .first = true};
	struct mw_maps maps = {0};
	struct mw_error *err;

	if (jump_may_be_suspended(process) || !handles_signals(process))
		return;
	jump_seen_nothing(process);
	err = mw_maps_read(search.tid, &maps);
	if (!err)
		(void)jump_search(&search, &maps);
	process->has_frames = search.found > 0;
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
}

// SPDX-License-Identifier: MIT
/*
 * suspended.c: what threads of the program's own making will come back to (jump.h).
 *
 * A signal handler that switches to another stack (swapcontext) leaves behind what the signal has interrupted, and may
 * come back to it at any time. The place to go back to, or the mark of a call, lies in memory then: all that may be a
 * stack is looked through. That takes time, so there has to be a reason: the recorder's count of what has come in and
 * not left, which calls that a handler has jumped out of for good (longjmp) are in as well; or, for the few
 * instructions before it is counted and after, that the program has been seen on a stack that is not a thread's own, or
 * that it has handlers and a frame of a signal's is somewhere. That is looked for while the process runs.
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"
#include "engine/jump/recorder.h"
#include "engine/jump/search.h"

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/peek.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stddef.h>
#include <stdlib.h>

/*
 * What signals have interrupted, as their frames tell.
 *
 * A frame's words stay where they are when its handler has returned. Below a thread's stack pointer that is plain; but
 * a stack of the program's own making may be nobody's at the moment. So whenever a thread stands on one, what lies
 * below is taken note of: that has been gone back to.
 */

#define CALL_BYTES 8u   /* no call is longer */
#define PIECE      512u /* … less than this is not worth it */
#define MOST_KEPT  4096u

/* A thread by which the process's memory can be read; 0: all wait for something that can't be interrupted. */
static pid_t jump_any_stopped(const struct jump_process *process)
{
	for (size_t i = 0; i < process->quiesce.count; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];

		if (thread->stopped && !thread->newborn)
			return thread->tid;
	}
	return 0;
}

bool jump_call_stands(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t i)
{
	size_t cookie = offsetof(struct mw_stub_call, cookie) / sizeof(uint64_t);

	return i > 0 && stack[i + cookie] == ((at + i * sizeof(uint64_t)) ^ process->recorder.context.cookie) &&
	       stack[i - 1] == process->recorder.image + jump_header(process)->returned;
}

size_t jump_read_stack(pid_t tid, const struct mw_mapping *mapping, mw_addr at, void *out, size_t size)
{
	if (mapping && !mapping->inode && !mapping->shared)
		return mw_touched_peek(tid, at, out, size);
	/* A page that this process has not touched may have been written by another, or come from the file. */
	return mw_remote_read(tid, at, out, size);
}

/* Is word `i` of a stack the place where a call of ours has put where its function goes on? */
static bool in_call(const struct jump_process *process, const uint64_t *stack, size_t i)
{
	for (size_t j = 0; i > 0 && j < process->patches.count; j++) {
		const struct jump_patch *patch = &process->patches.items[j];

		if (stack[i] == patch->trampoline_at + patch->trampoline.original &&
		    (uint32_t)stack[i - 1] == patch->number)
			return true;
	}
	return false;
}

/* Is a pc among the instructions of a trampoline or of the image, not behind a call of theirs? Behind those of the entry a
 * call is not counted yet, or any more. */
static bool is_ours(const struct jump_process *process, const uint64_t *stack, size_t i)
{
	const struct mw_stub_header *header = jump_header(process);
	uint64_t into = stack[i] - process->recorder.image;

	if (into == header->entered || into == header->left)
		return true;
	if (into < process->recorder.image_size)
		return into >= sizeof(*header) + CALL_BYTES && into < header->code_end && into != header->returned &&
		       !process->survey.arch->is_call_before(process->recorder.code + into - CALL_BYTES, CALL_BYTES);
	return jump_memory_ours(process, stack[i]) && !in_call(process, stack, i);
}

/* A signal strikes behind calls as well: there the kernel's frame tells it from a return address. */
static bool is_interrupted_in_ours(const struct jump_process *process, const uint64_t *stack, size_t count, size_t i)
{
	return i > 0 && jump_memory_ours(process, stack[i]) && process->survey.arch->is_interrupted_pc(stack, count, i);
}

bool jump_interrupted_in_ours(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t count,
			      size_t i)
{
	/* Words that lie about on a stack, such as registers that were put aside, are no signal's frame. */
	at += i * sizeof(*stack);
	return (is_ours(process, stack, i) || is_interrupted_in_ours(process, stack, count, i)) &&
	       process->survey.arch->is_kept_pc(at, stack, count, i) && !jump_gone_back(process, at, stack, i);
}

bool jump_is_overwritten(const struct jump_process *process, mw_addr addr)
{
	for (size_t i = 0; i < process->patches.count; i++) {
		const struct jump_patch *patch = &process->patches.items[i];

		if (!patch->standing && !patch->gone && patch->trampoline_at && addr > patch->detour.at &&
		    addr < patch->detour.at + patch->detour.jump)
			return true;
	}
	return false;
}

void jump_overwritten_bounds(const struct jump_process *process, mw_addr *low, mw_addr *high)
{
	*low = UINT64_MAX;
	*high = 0;
	for (size_t i = 0; i < process->patches.count; i++) {
		const struct jump_patch *patch = &process->patches.items[i];

		if (patch->standing || patch->gone || !patch->trampoline_at)
			continue;
		if (patch->detour.at < *low)
			*low = patch->detour.at;
		if (patch->detour.at + patch->detour.jump > *high)
			*high = patch->detour.at + patch->detour.jump;
	}
}

/* … among those that a jump is about to overwrite? */
static bool jump_interrupted_overwritten(const struct jump_process *process, mw_addr at, const uint64_t *stack,
					 size_t count, size_t i)
{
	at += i * sizeof(*stack);
	return jump_is_overwritten(process, stack[i]) && process->survey.arch->is_kept_pc(at, stack, count, i) &&
	       !jump_gone_back(process, at, stack, i);
}

void jump_seen_nothing(struct jump_process *process)
{
	process->seen.gone_back_count = process->seen.place_count = 0;
	jump_search_anew(process);
	process->seen.since_ns = mw_clock_ns();
	process->seen.since_cpu_ns = jump_search_cpu_ns(process->pid);
}

/* The same place may be interrupted again and again, but hardly with the same in all registers. 0: they can't be
 * read. */
static uint64_t other_registers(const struct jump_process *process, mw_addr at)
{
	uint64_t words[MW_KEPT_BELOW], sum = 0;
	pid_t tid = jump_any_stopped(process);

	if (!tid || mw_remote_read(tid, at - sizeof(words), words, sizeof(words)) != sizeof(words))
		return 0;
	for (size_t i = 0; i < MW_KEPT_BELOW; i++)
		sum = (sum ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return sum;
}

/* The stack pointer is kept right before the program counter. */
bool jump_gone_back(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t i)
{
	for (size_t j = 0; i > 0 && j < process->seen.gone_back_count; j++) {
		const struct jump_interrupted *known = &process->seen.gone_back[j];

		if (known->at == at && known->sp == stack[i - 1] && known->pc == stack[i] && known->others &&
		    known->others == other_registers(process, at))
			return true;
	}
	return false;
}

static void note(struct jump_process *process, mw_addr at, mw_addr sp, mw_addr pc)
{
	if (!process->seen.gone_back)
		process->seen.gone_back = malloc(MOST_KEPT * sizeof(*process->seen.gone_back));
	if (process->seen.gone_back && process->seen.gone_back_count < MOST_KEPT)
		process->seen.gone_back[process->seen.gone_back_count++] =
			(struct jump_interrupted){.at = at, .sp = sp, .pc = pc, .others = other_registers(process, at)};
}

/*
 * A frame lies below the stack pointer that it keeps. One of the stack that the thread is on now is not further from
 * the thread's own than it is long: where another stack were that near, the next signal would overwrite that.
 */
static void look_below(struct jump_process *process, const struct mw_maps *maps, pid_t tid, mw_addr sp)
{
	static const size_t most = JUMP_STACK_BELOW / sizeof(uint64_t);
	const struct mw_mapping *mapping = mw_maps_find(maps, sp);
	uint64_t *stack = malloc(JUMP_STACK_BELOW);
	size_t size = JUMP_STACK_BELOW, first;
	mw_addr low, high, from, to;

	/* The kernel complains of reads right below a stack that grows. */
	if (mapping && sp - mapping->start < size)
		size = (size_t)(sp - mapping->start) / sizeof(*stack) * sizeof(*stack);

	/* What lies nearest is what counts: below it there may be nothing. */
	while (stack && size > PIECE &&
	       jump_read_stack(tid, mapping, sp - size, (uint8_t *)stack + JUMP_STACK_BELOW - size, size) != size)
		size /= 2;
	first = most - size / sizeof(*stack);
	jump_memory_bounds(process, &low, &high);
	jump_overwritten_bounds(process, &from, &to);
	for (size_t i = first + 1; stack && size > PIECE && i < most; i++) {
		mw_addr at = sp - (most - i) * sizeof(*stack), interrupted = stack[i - 1];
		bool ours = (stack[i] - low < high - low &&
			     jump_interrupted_in_ours(process, sp - JUMP_STACK_BELOW, stack, most, i)) ||
			    (stack[i] - from < to - from &&
			     jump_interrupted_overwritten(process, sp - JUMP_STACK_BELOW, stack, most, i));

		if (ours && interrupted > at && interrupted - at < JUMP_STACK_BELOW &&
		    (sp <= interrupted || sp - interrupted <= interrupted - at))
			note(process, at, interrupted, stack[i]);
	}
	free(stack);
}

void jump_note_stacks(struct jump_process *process, const struct mw_maps *maps)
{
	for (size_t i = 0; i < process->quiesce.count; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];
		struct mw_tracee_regs regs;
		struct mw_error *err = thread->stopped ? mw_tracee_get_regs(thread->tid, &regs) : NULL;

		if (err || !thread->stopped) {
			mw_error_destroy(err);
			continue;
		}
		process->stacks.own |=
			!process->is_copy && !jump_on_own_stack(process, maps, thread->tid, &regs.general);
		if (jump_may_be_suspended(process) && !jump_memory_ours(process, regs.general.pc))
			look_below(process, maps, thread->tid, regs.general.gpr[process->survey.arch->dwarf_sp]);
	}
}

#define OWN_SIGNALS (UINT64_C(3) << 31) /* 32 and 33 */
#define TURN_NS     UINT64_C(100000000) /* of CPU time: in that all threads of the program's own making have had one */
#define DOUBT_NS    UINT64_C(300000000)
#define ALTSTACK    65536u /* bytes: few are longer */
#define MOST_LOOKS  64u    /* through so much of one, a search */

/* Nobody comes back to calls of a thread that has ended. */
static uint32_t open_calls(const struct jump_process *process)
{
	uint32_t open = process->recorder.open_elsewhere;

	for (uint32_t i = 0; i < process->recorder.shared.geometry.slot_count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, i);

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
		found = arch->is_interrupted_pc(words, count, i) &&
			arch->kept_altstack(&words[i - MW_KEPT_BELOW], &start, &size) && at - start < size &&
			at + i * sizeof(*words) - start < size;
	free(words);
	return found;
}

/*
 * A signal's frame on the alternate stack that it names is the last handler's, which has returned where no thread is on
 * that stack: the next signal will begin at the same place. So have all that have interrupted that handler.
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

/* What a signal has interrupted is kept with its stack pointer right before the program counter. */
static enum jump_found judge(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	const struct jump_process *process = search->process;
	mw_addr at = start + i * sizeof(*search->words);

	if (is_stale(search, at) || (i > 0 && jump_search_below(search, search->words[i - 1])))
		return JUMP_FOUND_NOTHING;
	/* Programs that make stacks may keep copies of contexts to go back to; others do so to tell of them. */
	return process->stacks.own || process->survey.arch->is_kept_in_place(at, search->words, count, i)
		       ? JUMP_FOUND
		       : JUMP_FOUND_DOUBTFUL;
}

static enum jump_found comes_back(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	const uint64_t *words = search->words;

	/* A call that was jumped out of leaves its mark. */
	if (i + JUMP_CALL_WORDS <= count && jump_call_stands(search->process, start, words, i))
		return jump_search_below(search, start + i * sizeof(*words)) ? JUMP_FOUND_NOTHING : JUMP_FOUND;
	return jump_interrupted_in_ours(search->process, start, words, count, i) ? judge(search, start, count, i)
										 : JUMP_FOUND_NOTHING;
}

/* Has a signal interrupted anything? */
static enum jump_found is_frame(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	return i > 0 && search->process->survey.arch->is_interrupted_pc(search->words, count, i) &&
			       !is_stale(search, start + i * sizeof(*search->words))
		       ? JUMP_FOUND
		       : JUMP_FOUND_NOTHING;
}

static enum jump_found goes_back(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	return jump_interrupted_overwritten(search->process, start, search->words, count, i)
		       ? judge(search, start, count, i)
		       : JUMP_FOUND_NOTHING;
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
	unknown = count ? count : process->stacks.own;
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
	process->stacks.has_frames = search.found > 0;
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
}

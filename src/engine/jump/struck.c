// SPDX-License-Identifier: MIT
/*
 * struck.c: what signals have struck, as their frames tell (jump.h).
 *
 * A frame's words stay where they are when its handler has returned. Below a thread's stack pointer that is plain; but
 * a stack of the program's own making may be nobody's at the moment. So whenever a thread stands on one, what lies
 * below is taken note of: that has been gone back to.
 */
#include "engine/jump/search.h"

#include "base/clock.h"
#include "proc/maps.h"
#include "target/remote.h"

#include <stdlib.h>

#define CALL_BYTES 8u   /* no call is longer */
#define PIECE      512u /* … less than this is not worth it */
#define MOST_KEPT  4096u

/* Is word `i` of a stack the place where a call of ours has put where its function goes on? */
static bool in_call(const struct jump_process *process, const uint64_t *stack, size_t i)
{
	for (size_t j = 0; i > 0 && j < process->patch_count; j++) {
		const struct jump_patch *patch = &process->patches[j];

		if (stack[i] == patch->pad_at + patch->pad.original && (uint32_t)stack[i - 1] == patch->number)
			return true;
	}
	return false;
}

/* Is a pc among the instructions of a pad or of the image, not behind a call of theirs? Behind those of the entry a
 * call is not counted yet, or any more. */
static bool is_ours(const struct jump_process *process, const uint64_t *stack, size_t i)
{
	const struct mw_stub_header *header = jump_header(process);
	uint64_t into = stack[i] - process->image;

	if (into == header->entered || into == header->left)
		return true;
	if (into < process->image_size)
		return into >= sizeof(*header) + CALL_BYTES && into < header->code_end && into != header->returned &&
		       !process->survey.arch->is_call_before(process->code + into - CALL_BYTES, CALL_BYTES);
	return jump_memory_ours(process, stack[i]) && !in_call(process, stack, i);
}

/* A signal strikes behind calls as well: there the kernel's frame tells it from a return address. */
static bool is_struck_in_ours(const struct jump_process *process, const uint64_t *stack, size_t count, size_t i)
{
	return i > 0 && jump_memory_ours(process, stack[i]) && process->survey.arch->is_struck_pc(stack, count, i);
}

bool jump_struck_in_ours(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t count, size_t i)
{
	/* Words that lie about on a stack, such as registers that were put aside, are no signal's frame. */
	at += i * sizeof(*stack);
	return (is_ours(process, stack, i) || is_struck_in_ours(process, stack, count, i)) &&
	       process->survey.arch->is_kept_pc(at, stack, count, i) && !jump_gone_back(process, at, stack, i);
}

bool jump_is_overwritten(const struct jump_process *process, mw_addr addr)
{
	for (size_t i = 0; i < process->patch_count; i++) {
		const struct jump_patch *patch = &process->patches[i];

		if (!patch->standing && !patch->gone && patch->pad_at && addr > patch->detour.at &&
		    addr < patch->detour.at + patch->detour.jump)
			return true;
	}
	return false;
}

void jump_overwritten_bounds(const struct jump_process *process, mw_addr *low, mw_addr *high)
{
	*low = UINT64_MAX;
	*high = 0;
	for (size_t i = 0; i < process->patch_count; i++) {
		const struct jump_patch *patch = &process->patches[i];

		if (patch->standing || patch->gone || !patch->pad_at)
			continue;
		if (patch->detour.at < *low)
			*low = patch->detour.at;
		if (patch->detour.at + patch->detour.jump > *high)
			*high = patch->detour.at + patch->detour.jump;
	}
}

bool jump_struck_overwritten(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t count,
			     size_t i)
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

/* The same place may be struck again and again, but hardly with the same in all registers. 0: they can't be read. */
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
		const struct jump_struck *known = &process->seen.gone_back[j];

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
			(struct jump_struck){.at = at, .sp = sp, .pc = pc, .others = other_registers(process, at)};
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
		mw_addr at = sp - (most - i) * sizeof(*stack), struck = stack[i - 1];
		bool ours = (stack[i] - low < high - low &&
			     jump_struck_in_ours(process, sp - JUMP_STACK_BELOW, stack, most, i)) ||
			    (stack[i] - from < to - from &&
			     jump_struck_overwritten(process, sp - JUMP_STACK_BELOW, stack, most, i));

		if (ours && struck > at && struck - at < JUMP_STACK_BELOW &&
		    (sp <= struck || sp - struck <= struck - at))
			note(process, at, struck, stack[i]);
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
		process->own_stacks |=
			!process->is_copy && !jump_on_own_stack(process, maps, thread->tid, &regs.general);
		if (jump_may_be_suspended(process) && !jump_memory_ours(process, regs.general.pc))
			look_below(process, maps, thread->tid, regs.general.gpr[process->survey.arch->dwarf_sp]);
	}
}

// SPDX-License-Identifier: MIT
/*
 * patch.c: the jumps at the functions' entries, put in and taken out while all threads stand (jump.h).
 *
 * A thread may stand among the instructions that the jump replaces, or in their copies: it is moved to the same
 * instruction on the other side.
 */
#include "engine/jump/jump.h"

#include "base/fault.h"
#include "target/remote.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CALL_BYTES 8u         /* no call is longer */
#define STACK_SCAN (1u << 20) /* how much of a stack is looked through for calls of ours */

static struct mw_error *plant(struct jump_process *process, pid_t tid, struct jump_patch *patch)
{
	uint8_t jump[MW_DETOUR_MAX];

	MW_TRY(mw_fault("attach.patch"));
	MW_TRY(process->survey.arch->detour_jump(&patch->detour, patch->pad_at, jump));
	MW_TRY(mw_journal_plant(&process->journal, tid, patch->detour.at, jump, patch->detour.jump, &patch->journal));
	patch->standing = true;
	return NULL;
}

/* The copy of the instruction at `pc`, or 0. */
static mw_addr copy_of(const struct jump_patch *patch, mw_addr pc)
{
	/* The first instruction is where the jump stands: to go there is right. */
	for (uint8_t i = 1; i < patch->detour.count; i++)
		if (pc == patch->detour.at + patch->detour.offset[i] && pc < patch->detour.at + patch->detour.jump)
			return patch->pad_at + patch->pad.copied[i];
	return 0;
}

/* The instruction that the copy at `pc` is of, or 0. */
static mw_addr original_of(const struct jump_patch *patch, mw_addr pc)
{
	for (uint8_t i = 0; i < patch->detour.count; i++)
		if (pc == patch->pad_at + patch->pad.copied[i])
			return patch->detour.at + patch->detour.offset[i];
	/* The way back: a jump, or several instructions of one. */
	if (patch->detour.count && !patch->detour.ends &&
	    pc == patch->pad_at + patch->pad.copied[patch->detour.count - 1])
		return patch->detour.at + patch->detour.length;
	return 0;
}

/* Move those that stand where `to` says that there is another place for them. */
static struct mw_error *move(struct jump_process *process, pid_t tid,
			     mw_addr (*to)(const struct jump_patch *patch, mw_addr pc))
{
	struct mw_tracee_regs regs;

	MW_TRY(mw_tracee_get_regs(tid, &regs));
	for (size_t i = 0; i < process->patch_count; i++) {
		mw_addr pc = process->patches[i].pad_at && !process->patches[i].gone
				     ? to(&process->patches[i], regs.general.pc)
				     : 0;

		if (pc)
			return mw_tracee_set_pc(tid, pc);
	}
	return NULL;
}

static struct mw_error *move_all(struct jump_process *process,
				 mw_addr (*to)(const struct jump_patch *patch, mw_addr pc))
{
	for (size_t i = 0; i < process->quiesce.count; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];
		struct mw_error *err = thread->stopped ? move(process, thread->tid, to) : NULL;

		if (err && mw_error_kind(err) != MW_ERROR_GONE)
			return err;
		mw_error_destroy(err);
	}
	return NULL;
}

struct mw_error *jump_patch_all(struct jump_process *process)
{
	pid_t tid = mw_quiesce_pick(&process->quiesce);

	for (size_t i = 0; i < process->patch_count; i++) {
		struct jump_patch *patch = &process->patches[i];

		if (!patch->standing && !patch->gone && patch->pad_at)
			MW_TRY(plant(process, tid, patch));
	}
	return move_all(process, copy_of);
}

struct mw_error *jump_move_out(struct jump_process *process)
{
	return move_all(process, original_of);
}

/* Another tool's breakpoint stands in a jump of ours: what it puts back there one day is the jump. */
static bool taken_by_another(const struct jump_process *process, const struct jump_patch *patch, pid_t tid)
{
	const struct mw_patch *planted = &process->journal.items[patch->journal];
	uint8_t now[MW_OOL_MAX];
	size_t ours = 0;

	if (patch->gone || !patch->standing || mw_remote_read(tid, planted->addr, now, planted->size) != planted->size)
		return false;
	for (size_t i = 0; i < planted->size; i++)
		ours += now[i] == planted->planted[i];
	return ours > planted->size / 2u && memcmp(now, planted->original, planted->size) != 0;
}

struct mw_error *jump_unpatch_all(struct jump_process *process, const char **taken)
{
	pid_t tid = mw_quiesce_pick(&process->quiesce);
	struct mw_error *err = mw_journal_rollback(&process->journal, tid);
	struct mw_error *moved = jump_move_out(process);

	*taken = NULL;
	for (size_t i = 0; i < process->patch_count; i++) {
		if (!err && taken_by_another(process, &process->patches[i], tid))
			*taken = process->patches[i].function;
		process->patches[i].standing = false;
	}
	if (!err)
		return moved;
	mw_error_destroy(moved);
	return err;
}

/* What a thread's standing is judged by. */
struct standing {
	const struct jump_process *process;
	const struct mw_maps *maps;
	pid_t tid;
	mw_addr sp;
};

/* A frame that lies below the stack pointer on the same stack was jumped over (longjmp, an exception). */
static bool dead(const struct standing *standing, mw_addr frame)
{
	const struct mw_mapping *mapping = mw_maps_find(standing->maps, standing->sp);

	return frame < standing->sp && mapping && frame >= mapping->start;
}

/* Does any of the calls from `top` outwards still return to us? */
static bool call_standing(const struct standing *standing, mw_addr top)
{
	mw_addr returned = standing->process->image + mw_stub_header()->returned;

	/* The chain is written by the target: it is not followed for long. */
	for (unsigned i = 0; top && i < 64; i++) {
		struct mw_stub_call call;
		uint64_t word;

		if (mw_remote_read(standing->tid, top, &call, sizeof(call)) != sizeof(call) ||
		    call.cookie != (top ^ standing->process->context.cookie))
			return false;
		/* Its original was called with the stack right below it, and returns to us as long as this stands. */
		if (!dead(standing, top) &&
		    mw_remote_read(standing->tid, top - sizeof(word), &word, sizeof(word)) == sizeof(word) &&
		    word == returned)
			return true;
		top = call.prev;
	}
	return false;
}

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

/*
 * Does the word tell that a signal has struck among the instructions of a pad or of the image, whose handler is at
 * work? The place to go back to lies on the stack then. Return addresses, which follow a call, may be left over from
 * calls long ago; a thread that is in the recorder's calls has told so (slot->inside).
 */
static bool struck_in_ours(const struct jump_process *process, const uint64_t *stack, size_t i)
{
	const struct mw_stub_header *header = mw_stub_header();
	uint64_t into = stack[i] - process->image;

	if (into < process->image_size)
		return into >= sizeof(*header) + CALL_BYTES && into < header->code_end && into != header->returned &&
		       !process->survey.arch->is_call_before(mw_stub_image + into - CALL_BYTES, CALL_BYTES);
	return jump_memory_ours(process, stack[i]) && !in_call(process, stack, i);
}

/* Does a call of ours begin with word `i`, called from the word below? One that has returned takes its mark away. */
static bool call_stands(const struct standing *standing, const uint64_t *stack, size_t i)
{
	const struct jump_process *process = standing->process;
	size_t cookie = offsetof(struct mw_stub_call, cookie) / sizeof(uint64_t);

	return i > 0 && stack[i + cookie] == ((standing->sp + i * sizeof(uint64_t)) ^ process->context.cookie) &&
	       stack[i - 1] == process->image + mw_stub_header()->returned;
}

/* Is there anything on the stack that leads to our code? */
static bool leads_to_ours(const struct standing *standing)
{
	const struct mw_mapping *mapping = mw_maps_find(standing->maps, standing->sp);
	size_t words = sizeof(struct mw_stub_call) / sizeof(uint64_t), size = 0, got;
	uint64_t *stack;
	bool found = false;

	if (mapping)
		size = mapping->end - standing->sp < STACK_SCAN ? (size_t)(mapping->end - standing->sp) : STACK_SCAN;
	stack = malloc(size + 1);
	got = stack ? mw_remote_read(standing->tid, standing->sp, stack, size) / sizeof(uint64_t) : 0;
	for (size_t i = 0; i < got && !found; i++)
		found = struck_in_ours(standing->process, stack, i) ||
			(i + words <= got && call_stands(standing, stack, i));
	free(stack);
	return found;
}

static bool in_flight(struct jump_process *process, const struct mw_maps *maps, const struct mw_quiet_thread *thread,
		      bool copy)
{
	struct mw_tracee_regs regs;
	struct standing standing = {.process = process, .maps = maps, .tid = thread->tid};
	struct mw_error *err = thread->stopped ? mw_tracee_get_regs(thread->tid, &regs) : NULL;

	if (err || !thread->stopped) {
		mw_error_destroy(err);
		return false;
	}
	if (jump_memory_ours(process, regs.general.pc))
		return true;
	standing.sp = regs.general.gpr[process->survey.arch->dwarf_sp];
	for (uint32_t i = 0; i < process->shared.geometry.slot_count && !copy; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->shared, i);

		if (__atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) != regs.general.thread_pointer)
			continue;
		if (__atomic_load_n(&slot->inside, __ATOMIC_ACQUIRE) ||
		    call_standing(&standing, __atomic_load_n(&slot->top, __ATOMIC_ACQUIRE)))
			return true;
	}
	return leads_to_ours(&standing);
}

size_t jump_in_flight(struct jump_process *process, const struct mw_maps *maps, bool copy)
{
	size_t count = 0;

	for (size_t i = 0; i < process->quiesce.count; i++)
		count += in_flight(process, maps, &process->quiesce.threads[i], copy);
	return count;
}

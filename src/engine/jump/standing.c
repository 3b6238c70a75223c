// SPDX-License-Identifier: MIT
/* standing.c: what threads that stand still will come back to: code of ours, or instructions that are to be replaced.
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"
#include "engine/jump/recorder.h"

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stdlib.h>

#define PATIENCE_NS  UINT64_C(3000000000) /* for calls in flight */
#define FIRST_BREATH UINT64_C(200000)     /* ns between two looks */
#define LAST_BREATH  UINT64_C(20000000)
#define WORK_TO_LOOK 5 /* time that it runs for, to the time that it stands to be looked at */

/* What a thread's standing is judged by. */
struct standing {
	const struct jump_process *process;
	const struct mw_maps *maps;
	pid_t tid;
	mw_addr sp;
};

enum whereabouts {
	NOWHERE,   /* it has ended */
	SOMEWHERE, /* it stands, or waits for what nothing interrupts */
	ANYWHERE   /* it was to stand, but has had no CPU for that yet */
};

/* `*thread_pointer` is 0 where it can't be known. */
static enum whereabouts find(const struct jump_process *process, const struct mw_quiet_thread *thread, mw_addr *sp,
			     mw_addr *pc, mw_addr *thread_pointer)
{
	struct mw_tracee_regs regs;
	struct mw_error *err = thread->stopped ? mw_tracee_get_regs(thread->tid, &regs) : NULL;
	char state;

	if (thread->stopped && !err) {
		*sp = regs.general.gpr[process->survey.arch->dwarf_sp];
		*pc = regs.general.pc;
		*thread_pointer = regs.general.thread_pointer;
		return SOMEWHERE;
	}
	*thread_pointer = 0;
	mw_error_destroy(err);
	state = mw_state_read(thread->tid);
	if (mw_state_is_end(state))
		return NOWHERE;
	return state == 'D' && mw_waiting_read(thread->tid, sp, pc) ? SOMEWHERE : ANYWHERE;
}

pid_t jump_any_without_cpu(const struct jump_process *process)
{
	for (size_t i = 0; i < process->quiesce.count; i++) {
		mw_addr sp, pc, thread_pointer;

		if (find(process, &process->quiesce.threads[i], &sp, &pc, &thread_pointer) == ANYWHERE)
			return process->quiesce.threads[i].tid;
	}
	return 0;
}

/* A frame that lies below the stack pointer on the same stack was jumped over (longjmp, an exception). */
static bool dead(const struct standing *standing, mw_addr frame)
{
	const struct mw_mapping *mapping = mw_maps_find(standing->maps, standing->sp);

	return frame < standing->sp && mapping && frame >= mapping->start;
}

/* Does any of the calls from `top` outwards still return to us? */
static bool call_standing(const struct standing *standing, mw_addr top)
{
	mw_addr returned = standing->process->recorder.image + jump_header(standing->process)->returned;

	/* The chain is written by the target: it is not followed for long. */
	for (unsigned i = 0; top && i < 64; i++) {
		struct mw_stub_call call;
		uint64_t word;

		if (mw_remote_read(standing->tid, top, &call, sizeof(call)) != sizeof(call) ||
		    call.cookie != (top ^ standing->process->recorder.context.cookie))
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

/* Is the thread in a call of the recorder's? A handler that jumps out of one leaves the mark of it behind. */
static bool visit_standing(const struct standing *standing, const struct mw_ring_slot *slot)
{
	return __atomic_load_n(&slot->inside, __ATOMIC_ACQUIRE) &&
	       !dead(standing, __atomic_load_n(&slot->pending_sp, __ATOMIC_ACQUIRE));
}

/* The words of a thread's stack from its stack pointer up; malloc'ed, NULL without memory. */
static uint64_t *read_stack(const struct standing *standing, size_t *count)
{
	const struct mw_mapping *mapping = mw_maps_find(standing->maps, standing->sp);
	size_t size = 0;
	uint64_t *stack;

	if (mapping)
		size = mapping->end - standing->sp < JUMP_STACK_SCAN ? (size_t)(mapping->end - standing->sp)
								     : JUMP_STACK_SCAN;
	stack = malloc(size + 1);
	*count = stack ? jump_read_stack(standing->tid, mapping, standing->sp, stack, size) / sizeof(*stack) : 0;
	return stack;
}

/* Is there anything on the stack that leads to our code? */
static bool leads_to_ours(const struct standing *standing)
{
	size_t words = sizeof(struct mw_stub_call) / sizeof(uint64_t), got;
	uint64_t *stack = read_stack(standing, &got);
	bool found = false;

	for (size_t i = 0; i < got && !found; i++)
		found = jump_interrupted_in_ours(standing->process, standing->sp, stack, got, i) ||
			(i + words <= got && jump_call_stands(standing->process, standing->sp, stack, i));
	free(stack);
	return found;
}

/* A thread's slot, found as the recorder finds it; NULL: it has none. */
static const struct mw_ring_slot *slot_of(const struct jump_process *process, mw_addr thread)
{
	uint32_t count = process->recorder.shared.geometry.slot_count,
		 first = mw_ring_slot_first(thread, count ? count : 1);

	for (uint32_t i = 0; i < count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, (first + i) & (count - 1));
		uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);

		if (owner == thread)
			return slot;
		if (owner == MW_RING_FREE)
			return NULL;
	}
	return NULL;
}

static bool in_flight(struct jump_process *process, const struct mw_maps *maps, const struct mw_quiet_thread *thread,
		      bool copy)
{
	struct standing standing = {.process = process, .maps = maps, .tid = thread->tid};
	const struct mw_ring_slot *slot;
	mw_addr pc, thread_pointer;
	enum whereabouts where = find(process, thread, &standing.sp, &pc, &thread_pointer);

	if (where != SOMEWHERE)
		return where == ANYWHERE;
	if (jump_memory_ours(process, pc))
		return true;
	slot = copy || !thread_pointer ? NULL : slot_of(process, thread_pointer);
	if (slot && (visit_standing(&standing, slot) ||
		     call_standing(&standing, __atomic_load_n(&slot->top, __ATOMIC_ACQUIRE))))
		return true;
	return leads_to_ours(&standing);
}

size_t jump_in_flight(struct jump_process *process, const struct mw_maps *maps, bool copy)
{
	size_t count = 0;

	jump_note_stacks(process, maps);
	for (size_t i = 0; i < process->quiesce.count; i++)
		count += in_flight(process, maps, &process->quiesce.threads[i], copy);
	/* What no thread is in may still be somewhere. */
	return count ? count : jump_suspended(process, maps, copy);
}

struct mw_error *jump_await_calls(struct jump_process *process, struct mw_maps *maps,
				  void (*look)(struct jump_process *process, void *context), void *context,
				  size_t *left)
{
	uint64_t begin = mw_clock_ns();

	jump_seen_nothing(process);
	for (uint64_t breath = FIRST_BREATH; jump_still_there(process);) {
		uint64_t now = mw_clock_ns();

		MW_TRY(jump_move_out(process));
		mw_maps_deinit(maps);
		MW_TRY(mw_maps_read(jump_live_tid(process), maps));
		look(process, context);
		*left = jump_in_flight(process, maps, false);
		if (*left == 0 || mw_clock_ns() - begin > PATIENCE_NS)
			return NULL;
		/* Where it takes long to look, that is not done all the time. */
		now = (mw_clock_ns() - now) * WORK_TO_LOOK;
		MW_TRY(mw_quiesce_run_briefly(&process->quiesce, now > breath ? now : breath));
		breath = breath * 2 < LAST_BREATH ? breath * 2 : LAST_BREATH;
	}
	return NULL;
}

/* Will the thread go on among the instructions of [low, high) that are to be overwritten? It may stand there if it can
 * be moved. */
static bool goes_back(const struct standing *standing, mw_addr low, mw_addr high)
{
	size_t count;
	uint64_t *stack = read_stack(standing, &count);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++)
		found = stack[i] > low && stack[i] < high && jump_is_overwritten(standing->process, stack[i]) &&
			!jump_gone_back(standing->process, standing->sp + i * sizeof(*stack), stack, i);
	free(stack);
	return found;
}

bool jump_handler_goes_back(struct jump_process *process)
{
	struct mw_maps maps = {0};
	struct mw_error *err = mw_maps_read(jump_live_tid(process), &maps);
	mw_addr low, high;
	bool found = false;

	if (!err)
		jump_note_stacks(process, &maps);
	jump_overwritten_bounds(process, &low, &high);
	for (size_t i = 0; !err && i < process->quiesce.count && !found; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];
		struct standing standing = {.process = process, .maps = &maps, .tid = thread->tid};
		mw_addr pc, thread_pointer;
		enum whereabouts where = find(process, thread, &standing.sp, &pc, &thread_pointer);

		found = where == ANYWHERE ||
			(where == SOMEWHERE &&
			 ((!thread->stopped && jump_is_overwritten(process, pc)) || goes_back(&standing, low, high)));
	}
	if (!err && !found)
		found = jump_suspended_goes_back(process, &maps);
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
	return found;
}

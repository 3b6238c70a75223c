// SPDX-License-Identifier: MIT
/*
 * nest.c: calls of hooked functions inside each other (recorder.h).
 *
 * slot->top is the innermost call that has not returned, as far as the recorder knows: it may have been jumped over
 * (longjmp, an exception) and its frame be gone. What is on the stack is the truth: a call of ours that the walk from
 * here meets is around this one, unless a signal frame lies between.
 */
#include "stub/frame.h"

#define SEARCH_FRAMES    256
#define CHAIN_CALLS      64
#define EXCEPTION_FRAMES 3    /* the runtime's function calls the allocator itself, or by way of a helper */
#define LEAF_FRAMES      24   /* of an allocator, from where it maps memory */
#define OVERWRITTEN      1024 /* the stack below a call may hold what the recorder has put there since */

static struct mw_stub_call *call_at(uint64_t addr)
{
	return (struct mw_stub_call *)(uintptr_t)addr;
}

/* A frame of ours stands there, for all that can be seen. */
static bool stands(const struct stub_visit *visit, uint64_t addr)
{
	const struct mw_stub_call *call = call_at(addr);

	return call->cookie == (addr ^ stub_context()->cookie) && call->slot == (uint64_t)(uintptr_t)visit->slot &&
	       call->hook < MW_STUB_MAX_HOOKS;
}

static bool call_readable(const struct stub_visit *visit, uint64_t addr)
{
	uint64_t high = stub_region_known(visit->slot, addr);

	return !(addr & 7) && high && high - addr >= STUB_LINK_SIZE;
}

/* Calls whose frames lie below the stack pointer, on its stack, are no more. False: none is left. */
static bool drop_dead(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t here = (uint64_t)(uintptr_t)visit->call;

	for (unsigned i = 0; i < CHAIN_CALLS && slot->top; i++) {
		uint64_t top = slot->top;

		if (top > here || !stub_region_same(slot, top, here))
			return true;
		/* Its words may have been overwritten; then the walk has to say what is around it. */
		if (!call_readable(visit, top) || !stands(visit, top))
			return true;
		slot->top = call_at(top)->prev;
		if (top + OVERWRITTEN < here)
			stub_cancel(visit, call_at(top));
		if (slot->top && slot->top <= top && stub_region_same(slot, slot->top, top))
			slot->top = 0;
	}
	return slot->top != 0;
}

static enum stub_inside inside_of(const struct mw_stub_call *call)
{
	if (!(call->flags & MW_STUB_HEAP))
		return STUB_INSIDE_VM;
	return call->flags & MW_STUB_FREE ? STUB_INSIDE_FREE : STUB_INSIDE_HEAP;
}

/* Where the walk can't tell: the function of that call was called with the stack right below it, and that word stands.
 */
static enum stub_inside guess(struct stub_visit *visit)
{
	uint64_t here = (uint64_t)(uintptr_t)visit->call, top = visit->slot->top;

	if (top <= here || !stub_region_same(visit->slot, top, here) || !call_readable(visit, top) ||
	    !stands(visit, top) || stub_read(top - 8) != (uint64_t)(uintptr_t)mw_stub_returned) {
		visit->slot->top = 0;
		return STUB_OUTSIDE;
	}
	return inside_of(call_at(top));
}

static STUB_RARE enum stub_inside search(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	struct stub_frame frame;

	frame_first(visit, &frame);
	for (unsigned i = 0; i < SEARCH_FRAMES; i++) {
		uint64_t here = frame.sp;

		/* As it returned to us, the stack pointer was at the call. */
		if (frame.pc == (uint64_t)(uintptr_t)mw_stub_returned && frame.high - here >= STUB_LINK_SIZE &&
		    stands(visit, here)) {
			slot->top = here;
			return inside_of(call_at(here));
		}
		switch (frame_step(&frame, stub_row(visit->control, frame.pc))) {
		case STUB_CALLER:
			break;
		case STUB_SIGNAL:
			return STUB_OUTSIDE;
		case STUB_END:
			slot->top = 0;
			return STUB_OUTSIDE;
		default:
			return guess(visit);
		}
	}
	return guess(visit);
}

STUB_RARE enum stub_inside stub_nest(struct stub_visit *visit)
{
	uint64_t here = (uint64_t)(uintptr_t)visit->call;

	visit->high = stub_region(visit, here);
	if (!visit->high || here & 7 || visit->high - here < STUB_LINK_SIZE + 8) {
		visit->high = 0;
		return STUB_OUTSIDE;
	}
	return drop_dead(visit) ? search(visit) : STUB_OUTSIDE;
}

/* Is one of the first frames in these ranges? */
static bool called_from(struct stub_visit *visit, const struct mw_stub_range *ranges, uint64_t count, unsigned frames)
{
	struct stub_frame frame;

	if (!count || !visit->high)
		return false;
	frame_first(visit, &frame);
	for (unsigned i = 0; i < frames; i++) {
		if (stub_in_ranges(ranges, count, frame.pc))
			return true;
		if (frame_step(&frame, stub_row(visit->control, frame.pc)) != STUB_CALLER)
			return false;
	}
	return false;
}

STUB_RARE bool stub_allocates_exception(struct stub_visit *visit)
{
	const struct mw_stub_context *context = stub_context();

	return called_from(visit, context->exceptions, context->exception_count, EXCEPTION_FRAMES);
}

STUB_RARE bool stub_in_leaf(struct stub_visit *visit)
{
	const struct mw_stub_context *context = stub_context();

	visit->high = stub_region(visit, (uint64_t)(uintptr_t)visit->call);
	return called_from(visit, context->leaves, context->leaf_count, LEAF_FRAMES);
}

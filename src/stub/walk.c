// SPDX-License-Identifier: MIT
/* walk.c: walking the stack by rows, and what is met there (recorder.h). The usual step is in the header. */
#include "stub/recorder.h"

/* --- the row of a pc, found in what memwatch has published (memwatch/ring.h) -------------------------------------- */

/* The code that holds `at`, or NULL. Nothing outside the shared memory is read, whatever stands there. */
static const struct mw_ring_code *find_code(struct mw_ring_control *control, uint64_t at)
{
	uint64_t offset = __atomic_load_n(&control->index, __ATOMIC_ACQUIRE), size = control->size, low = 0, high;
	const struct mw_ring_index *index;

	if (offset == 0 || offset & 7 || size < sizeof(*index) || offset > size - sizeof(*index))
		return NULL;
	index = stub_at(control, offset);
	high = (size - offset - sizeof(*index)) / sizeof(index->code[0]);
	if (index->count < high)
		high = index->count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (index->code[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && at < index->code[low - 1].end ? &index->code[low - 1] : NULL;
}

/* NONE where the code's rows don't say. */
static uint64_t find_in(struct mw_ring_control *control, const struct mw_ring_code *code, uint64_t at)
{
	uint64_t size = control->size, offset = code->rows, low = 0, high, dictionary_count = control->dictionary_count;
	const uint64_t *dictionary = stub_at(control, control->dictionary);
	const struct mw_ring_row *rows;

	if (code->count == 0)
		return MW_ROW_NONE;
	if (offset & 3 || offset > size || at < code->base || at - code->base > UINT32_MAX)
		return MW_ROW_NONE;
	rows = stub_at(control, offset);
	high = (size - offset) / sizeof(*rows);
	if (code->count < high)
		high = code->count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (rows[middle].pc <= at - code->base)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || rows[low - 1].row >= dictionary_count ||
	    rows[low - 1].row >= (size - control->dictionary) / sizeof(uint64_t))
		return MW_ROW_NONE;
	return dictionary[rows[low - 1].row];
}

/* What memwatch has found of a pc since; else `row`. */
static uint64_t find_learned(struct mw_ring_control *control, uint64_t pc, uint64_t row)
{
	const struct mw_ring_cached_row *learned = stub_at(control, control->learned);
	uint32_t first = mw_ring_learned_first(pc);

	if (!__atomic_load_n(&control->learned_any, __ATOMIC_ACQUIRE))
		return row;
	for (uint32_t i = 0; i < MW_RING_PROBES; i++) {
		const struct mw_ring_cached_row *entry = &learned[(first + i) & (MW_RING_LEARNED - 1)];
		uint64_t known = __atomic_load_n(&entry->row, __ATOMIC_RELAXED);
		uint64_t tag = __atomic_load_n(&entry->tag, __ATOMIC_RELAXED);

		if (!known && !tag)
			break;
		if ((tag ^ known) == pc)
			return known;
	}
	return row;
}

STUB_RARE uint64_t stub_row_find(struct mw_ring_control *control, uint64_t pc)
{
	struct mw_ring_cached_row *cache = stub_at(control, control->cache);
	struct mw_ring_cached_row *entry = &cache[(pc ^ pc >> 16) & (control->cache_count - 1)];
	uint64_t generation = __atomic_load_n(&control->generation, __ATOMIC_ACQUIRE), row = MW_ROW_NONE;
	const struct mw_ring_code *code;

	if (pc == (uint64_t)(uintptr_t)mw_stub_returned) {
		row = mw_row(MW_ROW_OURS, STUB_LINK_SIZE, MW_ROW_FP_SAME, 0);
	} else if ((code = find_code(control, pc - 1))) {
		row = find_in(control, code, pc - 1);
		if (mw_row_kind(row) == MW_ROW_NONE)
			row = code->whole;
		row = find_learned(control, pc, row);
	}
	/* That may be learned at any time. */
	if (mw_row_kind(row) == MW_ROW_SLOW)
		return row;
	__atomic_store_n(&entry->row, row, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->tag, row ^ pc ^ generation << 48, __ATOMIC_RELAXED);
	return row;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

void stub_frame_first(const struct stub_visit *visit, struct stub_frame *frame)
{
	frame->pc = visit->ret;
	frame->sp = (uint64_t)(uintptr_t)visit->call + STUB_LINK_SIZE;
	frame->fp = visit->saved->gpr[CPU_FP];
	frame->high = visit->high;
	frame->fp_lost = false;
}

enum stub_step stub_frame_step_odd(struct stub_frame *frame, uint64_t row)
{
	uint64_t n = (uint64_t)(int64_t)mw_row_n(row), at = (uint64_t)(int64_t)mw_row_fp_at(row), cfa;

	switch (mw_row_kind(row)) {
	case MW_ROW_SP:
	case MW_ROW_OURS:
		cfa = frame->sp + n;
		return stub_frame_to(frame, cfa, row, cfa + at);
	case MW_ROW_FP:
		if (frame->fp_lost)
			return STUB_SLOW;
		cfa = frame->fp + n;
		return stub_frame_to(frame, cfa, row, cfa + at);
	case MW_ROW_FP_DEREF:
		cfa = frame->fp + n;
		if (frame->fp_lost || cfa - frame->sp > frame->high - frame->sp - 8 || cfa & 7)
			return STUB_SLOW;
		return stub_frame_to(frame, stub_read(cfa), row, frame->fp + at);
	case MW_ROW_END:
		return STUB_END;
	case MW_ROW_FOREIGN:
		return STUB_FOREIGN;
	case MW_ROW_SIGNAL:
		return STUB_SIGNAL;
	default:
		return STUB_SLOW;
	}
}

/* The signal interrupted the recorder itself: what it was recording is the program's call. */
static enum stub_step cross_recorder(struct stub_visit *visit, struct stub_frame *frame)
{
	uint64_t call = visit->pending_sp;

	if (!visit->inside || call & 7)
		return STUB_SLOW;
	frame->high = stub_region(visit, call);
	if (!frame->high || frame->high - call < STUB_LINK_SIZE + 8)
		return STUB_SLOW;
	frame->pc = stub_read(call + MW_STUB_CALL_SIZE);
	frame->sp = call + STUB_LINK_SIZE;
	frame->fp_lost = true;
	return STUB_CALLER;
}

enum stub_step stub_frame_cross(struct stub_visit *visit, struct stub_frame *frame)
{
	uint64_t interrupted, sp;

	if (frame->high - frame->sp < CPU_SIGNAL_FRAME)
		return STUB_SLOW;
	interrupted = stub_read(frame->sp + CPU_SIGNAL_PC);
	sp = stub_read(frame->sp + CPU_SIGNAL_SP);
	if (mw_row_kind(stub_row(visit->control, interrupted + 1)) == MW_ROW_OURS)
		return cross_recorder(visit, frame);
	frame->fp = stub_read(frame->sp + CPU_SIGNAL_FP);
	frame->fp_lost = false;
	if (sp & 7)
		return STUB_SLOW;
	if (sp < frame->sp || sp >= frame->high)
		frame->high = stub_region(visit, sp);
	if (!frame->high || frame->high - sp < 8)
		return STUB_SLOW;
	frame->pc = interrupted + 1;
	frame->sp = sp;
	return STUB_CALLER;
}

/* --- calls of hooked functions inside each other ------------------------------------------------------------------ */

/*
 * slot->top is the innermost call that has not returned, as far as the recorder knows: it may have been jumped over
 * (longjmp, an exception) and its frame be gone. What is on the stack is the truth: a call of ours that the walk from
 * here meets is around this one, unless a signal frame lies between.
 */

#define SEARCH_FRAMES    256
#define CHAIN_CALLS      64
#define EXCEPTION_FRAMES 3    /* the runtime's function calls the allocator itself, or by way of a helper */
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

	stub_frame_first(visit, &frame);
	for (unsigned i = 0; i < SEARCH_FRAMES; i++) {
		uint64_t here = frame.sp;

		/* As it returned to us, the stack pointer was at the call. */
		if (frame.pc == (uint64_t)(uintptr_t)mw_stub_returned && frame.high - here >= STUB_LINK_SIZE &&
		    stands(visit, here)) {
			slot->top = here;
			return inside_of(call_at(here));
		}
		switch (stub_frame_step(&frame, stub_row(visit->control, frame.pc))) {
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

STUB_RARE bool stub_allocates_exception(struct stub_visit *visit)
{
	const struct mw_stub_context *context = stub_context();
	struct stub_frame frame;

	if (!context->exception_count || !visit->high)
		return false;
	stub_frame_first(visit, &frame);
	for (unsigned i = 0; i < EXCEPTION_FRAMES; i++) {
		if (stub_in_ranges(context->exceptions, context->exception_count, frame.pc))
			return true;
		if (stub_frame_step(&frame, stub_row(visit->control, frame.pc)) != STUB_CALLER)
			return false;
	}
	return false;
}

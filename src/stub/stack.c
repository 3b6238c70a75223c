// SPDX-License-Identifier: MIT
/*
 * stack.c: the stack of a call, as an id (recorder.h).
 *
 * Frames are put down in the ring's own scratch space, for the stack may be small. The handler of a signal uses the
 * same: a walk that one has come into begins anew.
 */
#include "stub/recorder.h"

#define WALKS      16
#define STEPS      2048   /* frames and calls of ours */
#define PIECE      65536u /* bytes of stack that are sent at most */
#define PAGE_BYTES 4096u
#define UNIT_WORDS (MW_RING_UNIT / sizeof(uint64_t))

struct stack {
	struct mw_ring_memo *memo; /* to be filled in, or NULL */
	uint64_t *frames;          /* in the scratch */
	uint64_t entries;          /* slot->entries at the beginning */
	uint64_t hash;
	uint32_t count, cut;
	uint64_t saved_at; /* where the frame pointer was read from, or 0 */
	uint64_t top;      /* end of what the walk read, and of the frames that it met */
	bool crossed;      /* a signal's frame: part of it may be on another stack */
};

static inline uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* What a walk reads, for the next one. `at`: where a word was. */
static inline void note(struct stack *stack, uint64_t at, uint64_t word)
{
	struct mw_ring_memo *memo = stack->memo;

	if (unlikely(!memo))
		return;
	if (unlikely(memo->count == MW_RING_MEMO_WORDS)) {
		stack->memo = NULL;
		return;
	}
	memo->words[memo->count].at = at;
	memo->words[memo->count++].word = word;
}

static inline uint32_t memo_key(const struct stub_visit *visit, uint32_t flags)
{
	return visit->call->hook << 8 | flags;
}

static inline struct mw_ring_memo *memo_at(const struct stub_visit *visit)
{
	struct mw_ring_control *control = visit->control;
	uint64_t here = (uint64_t)(uintptr_t)visit->call, mixed = visit->ret ^ here >> 3 ^ visit->ret >> 7;
	struct mw_ring_memo *memos = stub_at(control, control->memos);

	return &memos[(uint64_t)(visit->slot->ring - 1) * MW_RING_MEMOS + (mixed & (MW_RING_MEMOS - 1))];
}

/* Is the stack as it was when that walk was made? */
static inline bool recall(const struct stub_visit *visit, const struct mw_ring_memo *memo, uint32_t flags)
{
	uint64_t differ = 0;
	uint32_t count = memo->count;

	if (memo->ret != visit->ret || memo->call != (uint64_t)(uintptr_t)visit->call ||
	    memo->key != memo_key(visit, flags) || memo->generation != visit->control->generation ||
	    memo->top > visit->high || (memo->fp_used && memo->fp != visit->saved->gpr[CPU_FP]) ||
	    count > MW_RING_MEMO_WORDS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		differ |= stub_read(memo->words[i].at) ^ memo->words[i].word;
	return differ == 0;
}

static inline void memo_begin(struct stub_visit *visit, struct stack *stack)
{
	struct mw_ring_memo *memo = stack->memo;

	if (!memo)
		return;
	memo->ret = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memo->count = 0;
	memo->fp_used = 0;
	memo->fp = visit->saved->gpr[CPU_FP];
	memo->call = (uint64_t)(uintptr_t)visit->call;
	memo->generation = visit->control->generation;
}

static inline void memo_end(struct stub_visit *visit, struct stack *stack, uint32_t flags, uint32_t id)
{
	struct mw_ring_memo *memo = stack->memo;

	if (!memo || stack->crossed || id == MW_RING_STACK_NONE)
		return;
	memo->key = memo_key(visit, flags);
	memo->id = id;
	memo->top = stack->top;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* A handler that came between has begun this one anew, or another. */
	if (__atomic_load_n(&visit->slot->entries, __ATOMIC_RELAXED) == stack->entries)
		__atomic_store_n(&memo->ret, visit->ret, __ATOMIC_RELEASE);
}

/* A step was made by that row: the caller's frame is there. `fp`: the frame pointer before it. */
static inline void note_step(struct stack *stack, const struct stub_frame *frame, uint64_t row, uint64_t fp)
{
	enum mw_row_kind kind = mw_row_kind(row);

	note(stack, frame->sp - 8, frame->pc);
	if (unlikely(kind == MW_ROW_FP_DEREF)) {
		stack->memo = NULL;
	} else if (unlikely(kind == MW_ROW_FP)) {
		/* Where no row needs the frame pointer, what it was is of no matter. */
		if (stack->saved_at)
			note(stack, stack->saved_at, fp);
		else if (stack->memo)
			stack->memo->fp_used = 1;
	}
	if (mw_row_fp(row) == MW_ROW_FP_SAVED)
		stack->saved_at = frame->sp + (uint64_t)(int64_t)mw_row_fp_at(row);
}

/* False: rows did not lead on from the last of the frames. */
static bool walk(struct stub_visit *visit, struct stack *stack, uint32_t flags)
{
	struct mw_ring_control *control = visit->control;
	uint32_t depth = control->depth, count = 0, cut = MW_RING_COMPLETE;
	uint64_t *frames = stack->frames, hash = (uint64_t)visit->call->hook << 8 | flags;
	struct stub_frame frame;
	enum stub_step step = STUB_SLOW;

	stack->crossed = false;
	stack->saved_at = 0;
	memo_begin(visit, stack);
	stub_frame_first(visit, &frame);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t pc = frame.pc, fp = frame.fp, row = stub_row(control, pc);

		if (likely(mw_row_kind(row) != MW_ROW_OURS)) {
			if (unlikely(count == depth)) {
				cut = MW_RING_TRUNCATED;
				step = STUB_END;
				break;
			}
			frames[count++] = pc;
			hash = mix(hash, pc);
		}
		step = stub_frame_step(&frame, row);
		if (likely(step == STUB_CALLER)) {
			note_step(stack, &frame, row, fp);
			continue;
		}
		if (unlikely(step == STUB_SIGNAL) && count) {
			/* What a signal has interrupted is no call: its pc counts as one that follows a call there, as is
			 * that of the code that the handler returns to. */
			frames[count - 1]++;
			hash = mix(hash, MW_ROW_SIGNAL);
			step = stub_frame_cross(visit, &frame);
			stack->crossed = true;
		}
		if (unlikely(step != STUB_CALLER))
			break;
	}
	if (frame.pc == 0)
		note(stack, frame.sp - 8, 0);
	stack->top = frame.sp;
	if (step != STUB_END)
		cut = MW_RING_BROKEN;
	stack->count = count;
	stack->cut = cut;
	hash = mix(hash, (uint64_t)cut << 32 | count);
	stack->hash = hash ? hash : 1;
	return step == STUB_END || step == STUB_FOREIGN;
}

/* May one more stack take the slow road? It is taken by few, so that it costs what few do, and by none where its piece
 * of stack may have to wait for room. */
static STUB_RARE bool take_slow(const struct stub_visit *visit)
{
	struct mw_ring_control *control = visit->control;
	uint64_t drained = __atomic_load_n(&visit->slot->drained, __ATOMIC_RELAXED);
	uint64_t taken = __atomic_load_n(&control->slow_taken, __ATOMIC_RELAXED);

	if (control->compare)
		return true;
	if (visit->slot->reserved - drained > control->ring_units / 4)
		return false;
	for (unsigned i = 0; i < WALKS; i++) {
		if (taken >= __atomic_load_n(&control->slow_allowed, __ATOMIC_RELAXED))
			return false;
		if (__atomic_compare_exchange_n(&control->slow_taken, &taken, taken + 1, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool new_id(struct mw_ring_control *control, uint32_t *id)
{
	*id = __atomic_fetch_add(&control->next_stack, 1, __ATOMIC_RELAXED);
	return *id < MW_RING_STACK_NONE;
}

/* Word `index` of what follows a record. */
static inline void put(struct stub_visit *visit, uint64_t number, uint64_t index, uint64_t word)
{
	uint64_t *words = (uint64_t *)(void *)stub_unit(visit, number + 1 + index / UNIT_WORDS);

	words[index % UNIT_WORDS] = word;
}

static inline uint32_t units_of(uint64_t words)
{
	return 1 + (uint32_t)((words + UNIT_WORDS - 1) / UNIT_WORDS);
}

/* Up to where the stack above the frames, which end at `top`, can be read: their last page is there as they are. */
static uint64_t piece_end(const struct stub_visit *visit, uint64_t top)
{
	uint64_t here = (uint64_t)(uintptr_t)visit->call, end;

	if (stub_region_own(visit->slot, here))
		return visit->high;
	if (top < here + STUB_LINK_SIZE || top > visit->high)
		top = here + STUB_LINK_SIZE;
	end = (top + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	return end < visit->high ? end : visit->high;
}

/* How many words of stack go with a SLOW record. `top`: the end of the frames that are known. */
static uint64_t piece_words(const struct stub_visit *visit, uint64_t top)
{
	uint64_t size = piece_end(visit, top) - ((uint64_t)(uintptr_t)visit->call + MW_STUB_CALL_SIZE);
	uint64_t half = (uint64_t)visit->control->ring_units * MW_RING_UNIT / 2;
	uint64_t most = half > sizeof(struct mw_ring_slow) + 4 * MW_RING_UNIT
				? half - sizeof(struct mw_ring_slow) - 4 * MW_RING_UNIT
				: 0;

	if (size > most)
		size = most;
	return (size > PIECE ? PIECE : size) / sizeof(uint64_t);
}

static void put_slow(struct stub_visit *visit, uint64_t number, uint32_t id, uint64_t words)
{
	uint64_t start = (uint64_t)(uintptr_t)visit->call + MW_STUB_CALL_SIZE, at = 0;
	struct mw_ring_record *record = stub_unit(visit, number);

	record->time = cpu_ticks();
	record->addr = id;
	record->size = sizeof(struct mw_ring_slow) + words * sizeof(uint64_t);
	for (; at < 16; at++)
		put(visit, number, at, at == CPU_SP ? start + 8 : visit->saved->gpr[at]);
	put(visit, number, at++, visit->ret);
	put(visit, number, at++, start);
	for (uint64_t i = 0; i < words; i++)
		put(visit, number, at + i, stub_read(start + i * sizeof(uint64_t)));
}

static STUB_RARE uint32_t slow(struct stub_visit *visit, uint32_t flags, uint64_t top)
{
	uint64_t words = piece_words(visit, top), number;
	uint32_t id;

	if (!new_id(visit->control, &id) ||
	    !stub_reserve(visit, units_of(sizeof(struct mw_ring_slow) / sizeof(uint64_t) + words), &number)) {
		visit->slot->lost_stacks += stub_on();
		return MW_RING_STACK_NONE;
	}
	visit->slot->slow_walks++;
	put_slow(visit, number, id, words);
	stub_mark(visit, number, id, MW_RING_SLOW, flags, true);
	return id;
}

static void put_stack(struct stub_visit *visit, const struct stack *stack, uint64_t number, uint32_t id)
{
	struct mw_ring_record *record = stub_unit(visit, number);

	record->time = cpu_ticks();
	record->addr = id;
	record->size = stack->count | (uint64_t)stack->cut << 32;
	for (uint32_t i = 0; i < stack->count; i++)
		put(visit, number, i, stack->frames[i]);
}

/* Nobody has come into the walk. */
static inline bool undisturbed(const struct stub_visit *visit, uint64_t entries)
{
	return __atomic_load_n(&visit->slot->entries, __ATOMIC_RELAXED) == entries;
}

/* Tell a stack, `also` by the slow road. False: it has to be walked anew. */
static STUB_RARE bool emit(struct stub_visit *visit, const struct stack *stack, uint32_t flags, bool also, uint32_t *id)
{
	uint64_t words = also ? piece_words(visit, stack->top) : 0, number;
	uint32_t units = units_of(stack->count), all = units;

	if (also)
		all += units_of(sizeof(struct mw_ring_slow) / sizeof(uint64_t) + words);
	*id = MW_RING_STACK_NONE;
	if (!stub_reserve(visit, all, &number)) {
		visit->slot->lost_stacks += stub_on();
		return true;
	}
	if (!new_id(visit->control, id)) {
		visit->slot->lost_stacks += stub_on();
		*id = MW_RING_STACK_NONE;
		stub_void(visit, number, all);
		return true;
	}
	put_stack(visit, stack, number, *id);
	if (also)
		put_slow(visit, number + units, *id, words);
	if (!undisturbed(visit, stack->entries)) {
		stub_void(visit, number, all);
		return false;
	}
	if (also) {
		flags |= MW_RING_COMPARE;
		visit->slot->slow_walks++;
		/* From the end: who sees the first sees both. */
		stub_mark(visit, number + units, *id, MW_RING_SLOW, flags, false);
	}
	stub_mark(visit, number, *id, MW_RING_STACK, flags, true);
	return true;
}

/* False: it has to be walked anew. */
static inline bool intern(struct stub_visit *visit, const struct stack *stack, uint32_t flags, uint32_t *id)
{
	struct mw_ring_control *control = visit->control;
	struct mw_ring_stack_entry *entries = stub_at(control, control->stacks), *entry;
	uint32_t every = control->compare;
	uint64_t hash = stack->hash;

	entries += hash & (control->stack_count - 1) & ~UINT64_C(1);
	if (unlikely(every) && visit->slot->walks % every == 0 && !stack->crossed)
		return emit(visit, stack, flags, true, id);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t found = __atomic_load_n(&entries[i].id, __ATOMIC_RELAXED);

		if (likely((__atomic_load_n(&entries[i].tag, __ATOMIC_RELAXED) ^ found) == hash)) {
			*id = (uint32_t)found;
			return true;
		}
	}
	if (!emit(visit, stack, flags, false, id))
		return false;
	if (*id == MW_RING_STACK_NONE)
		return true;
	/* An empty one, or either. */
	entry = &entries[entries[0].tag == 0 ? 0 : entries[1].tag == 0 ? 1 : *id & 1];
	__atomic_store_n(&entry->id, *id, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->tag, hash ^ *id, __ATOMIC_RELEASE);
	return true;
}

uint32_t stub_stack(struct stub_visit *visit, uint32_t flags)
{
	struct mw_ring_control *control = visit->control;
	struct mw_ring_slot *slot = visit->slot;
	uint64_t here = (uint64_t)(uintptr_t)visit->call;
	struct mw_ring_memo *memo;
	struct stack stack = {.entries = 0};
	uint32_t id;

	/* Of frees, which are all there is then, it does not matter. */
	if (unlikely(control->settling))
		return MW_RING_STACK_NONE;
	if (likely(!visit->high))
		visit->high = stub_region(visit, here);
	if (unlikely(!visit->high || here & 7 || visit->high - here < STUB_LINK_SIZE + 8)) {
		visit->high = 0;
		slot->lost_stacks += stub_on();
		return MW_RING_STACK_NONE;
	}
	slot->walks++;
	/* A handler that has come into a visit keeps its hands off what that one is at. */
	memo = control->memos && !control->compare && !visit->inside ? memo_at(visit) : NULL;
	if (likely(memo)) {
		stack.entries = __atomic_load_n(&slot->entries, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (likely(recall(visit, memo, flags))) {
			id = memo->id;
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
			if (likely(undisturbed(visit, stack.entries)))
				return id;
		}
	}
	stack.frames = (uint64_t *)stub_at(control, control->scratch) +
		       (uint64_t)(slot->ring - 1) * (control->depth + UINT64_C(1));
	for (unsigned i = 0; i < WALKS; i++) {
		stack.entries = __atomic_load_n(&slot->entries, __ATOMIC_RELAXED);
		stack.memo = memo;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (unlikely(!walk(visit, &stack, flags))) {
			if (take_slow(visit))
				return slow(visit, flags, stack.top);
			stack.memo = NULL; /* rows may lead on the next time */
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (likely(undisturbed(visit, stack.entries)) && likely(intern(visit, &stack, flags, &id))) {
			memo_end(visit, &stack, flags, id);
			return id;
		}
	}
	if (take_slow(visit))
		return slow(visit, flags, stack.top);
	slot->lost_stacks += stub_on();
	return MW_RING_STACK_NONE;
}

// SPDX-License-Identifier: MIT
/*
 * stack.c: the stack of a call, walked by rows, as an id (recorder.h).
 */
#include "stub/frame.h"

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
	frame->sp = frame->low = call + STUB_LINK_SIZE;
	frame->fp_at = FP_LOST;
	return STUB_CALLER;
}

/* From a signal's frame to the code that the signal has interrupted, which may be on another stack: CALLER or SLOW. */
static enum stub_step frame_cross(struct stub_visit *visit, struct stub_frame *frame)
{
	uint64_t interrupted, sp;

	if (frame->high - frame->sp < CPU_SIGNAL_FRAME)
		return STUB_SLOW;
	interrupted = stub_read(frame->sp + CPU_SIGNAL_PC);
	sp = stub_read(frame->sp + CPU_SIGNAL_SP);
	if (mw_row_kind(stub_row(visit->control, interrupted + 1)) == MW_ROW_OURS)
		return cross_recorder(visit, frame);
	frame->fp = stub_read(frame->sp + CPU_SIGNAL_FP);
	frame->fp_at = 0;
	if (sp & 7)
		return STUB_SLOW;
	if (sp < frame->sp || sp >= frame->high)
		frame->high = stub_region(visit, sp);
	if (!frame->high || frame->high - sp < 8)
		return STUB_SLOW;
	frame->pc = interrupted + 1;
	frame->sp = frame->low = sp;
	return STUB_CALLER;
}

/*
 * Frames are put down in the ring's own scratch space, for the stack may be small. The handler of a signal uses the
 * same: a walk that one has come into begins anew.
 */

#define WALKS      16
#define STEPS      2048   /* frames and calls of ours */
#define PIECE      65536u /* bytes of stack that are sent at most */
#define PAGE_BYTES 4096u
#define UNIT_WORDS (MW_RING_UNIT / sizeof(uint64_t))

#define MISSES    8  /* of a memo in a row: it is left alone then … */
#define TRY_AGAIN 16 /* … but for one walk in so many */

struct stack {
	struct mw_ring_memo *memo; /* to be filled in, or NULL */
	uint32_t *sizes;           /* of the frames, as the last walk from there found them */
	uint64_t *frames;          /* in the scratch */
	uint64_t entries;          /* slot->entries at the beginning */
	uint64_t hash;
	uint32_t count, cut;
	uint64_t top;                   /* end of what the walk read, and of the frames that it met */
	struct mw_script_ref *refs;     /* the interpreter's, in the scratch */
	uint64_t script;                /* a hash of these; 0: there are none */
	uint32_t ref_count, script_cut; /* … how many, MW_RING_SCRIPT_CUT or 0 */
	struct stub_reader reader;      /* of what JavaScript has */
	bool javascript;                /* V8 is there */
	bool functions;                 /* … and among the frames are such of its functions */
	bool crossed;                   /* a signal's frame: part of it may be on another stack */
};

#define ODD UINT64_C(0x9e3779b97f4a7c15)

/* The hash of frames after one more. Nothing that frames of one module differ by, times this number, is as small as that. */
static inline uint64_t hashed(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * ODD;
}

/* Its last step: each bit of the result depends on all of them. */
static inline uint64_t mixed(uint64_t hash, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0xd6e8feb86659fd93);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
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

/*
 * A memo that was of no use so many times is not asked any more, nor written, but for one time in so many: written the
 * time before, NULL where it is not to be written.
 */
static inline bool memo_rests(struct mw_ring_memo **memo)
{
	uint32_t misses = (*memo)->misses;

	if (likely(misses < MISSES) || misses % TRY_AGAIN == 0)
		return false;
	(*memo)->misses = misses + 1;
	if ((misses + 1) % TRY_AGAIN)
		*memo = NULL;
	return true;
}

/* Is the stack as it was when that walk was made? */
static inline bool recall(const struct stub_visit *visit, const struct mw_ring_memo *memo, uint32_t flags,
			  uint64_t script)
{
	uint64_t differ = 0;
	uint32_t count = memo->count;

	if (memo->script != script || memo->ret != visit->ret || memo->call != (uint64_t)(uintptr_t)visit->call ||
	    memo->key != memo_key(visit, flags) || memo->generation != visit->control->generation ||
	    memo->top > visit->high || (memo->fp_used && memo->fp != visit->saved->gpr[CPU_FP]) ||
	    count > MW_RING_MEMO_WORDS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		differ |= stub_read(memo->words[i].at) ^ memo->words[i].word;
	return differ == 0;
}

static inline void memo_begin(struct stub_visit *visit, struct stack *stack, uint32_t generation)
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
	memo->generation = generation;
}

static inline void memo_end(struct stub_visit *visit, struct stack *stack, uint32_t flags, uint32_t id)
{
	struct mw_ring_memo *memo = stack->memo;

	if (!memo || stack->crossed || id == MW_RING_STACK_NONE)
		return;
	memo->key = memo_key(visit, flags);
	memo->id = id;
	memo->script = stack->script;
	memo->top = stack->top;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* A handler that came between has begun this one anew, or another. */
	if (__atomic_load_n(&visit->slot->entries, __ATOMIC_RELAXED) == stack->entries)
		__atomic_store_n(&memo->ret, visit->ret, __ATOMIC_RELEASE);
}

/* The frame pointer's value counts for the step that comes. */
static inline void note_fp(struct stack *stack, const struct stub_frame *frame, uint64_t fp)
{
	/* Where no row needs the frame pointer, what it was is of no matter. */
	if (unlikely(frame->fp_at >= frame->sp))
		stack->memo = NULL; /* no caller's frame holds it: memo.top would not be the end of what is read */
	else if (frame->fp_at)
		note(stack, frame->fp_at, fp);
	else if (stack->memo)
		stack->memo->fp_used = 1;
}

/* A size that has changed is not guessed before it has been the same so many times. */
#define DISTRUST (1u << 24) /* times how often still */
#define TRUST    32u

static inline uint32_t distrust(uint64_t size)
{
	return (uint32_t)size % DISTRUST + TRUST * DISTRUST;
}

/* False: there is no room. */
static inline bool keep(struct stack *stack, uint64_t pc, uint64_t depth)
{
	if (unlikely(stack->count == depth))
		return false;
	stack->frames[stack->count] = pc;
	stack->hash = hashed(stack->hash, pc);
	stack->count++;
	return true;
}

#define ROW_SHAPE                                                                                                      \
	(UINT64_C(0xffff) & ~((uint64_t)MW_ROW_FP_SAVED << 8)) /* kind, and whether it loses the frame pointer */

/* What walk_plain has read from the frame `first` and `sp` on, up to the frame that is the walk's now. */
static inline void note_frames(struct stack *stack, uint32_t first, uint64_t sp, const struct stub_frame *now)
{
	if (likely(!stack->memo))
		return;
	if (stack->count > MW_RING_MEMO_WORDS) {
		stack->memo = NULL;
		return;
	}
	for (uint32_t i = first; i < stack->count; i++) {
		sp += stack->sizes[i] % DISTRUST;
		note(stack, sp - 8, i + 1 < stack->count ? stack->frames[i + 1] : now->pc);
	}
	/* A frame is larger than sizes tell. */
	if (sp != now->sp)
		stack->memo = NULL;
}

/* Of a row whose CFA is not counted from the stack pointer the size of the frame at `sp`; 0: it can't be known. */
static inline uint32_t size_by_fp(struct stack *stack, const struct stub_frame *frame, uint64_t row)
{
	uint64_t fp, size;

	if (((row & ROW_SHAPE) != MW_ROW_FP && ((row & ROW_SHAPE) != MW_ROW_CALLED || stack->javascript)) ||
	    !frame_fp(frame, &fp))
		return 0;
	size = fp + (uint64_t)(int64_t)mw_row_n(row) - frame->sp;
	if (size < 8 || size > UINT32_MAX || size & 7)
		return 0;
	note_fp(stack, frame, fp);
	return (uint32_t)size;
}

/*
 * The steps of a walk for as long as rows are of the usual kinds. CALLER: `*odd` is the frame's, which is another, or leads
 * to where the stack ends.
 *
 * A walk is a chain of loads, each of which waits for the one before: return address, row, return address. So the size
 * of each frame is guessed to be what it was the last time, and only compared with what the row says: a processor that
 * finds comparisons to hold goes on meanwhile. All else that is done is few instructions, of no more values than there are
 * registers.
 */
static inline enum stub_step walk_plain(const struct stub_rows *rows, struct stack *stack, struct stub_frame *frame,
					uint64_t depth, uint64_t *odd)
{
	uint64_t sp = frame->sp, pc = frame->pc, fp_at = frame->fp_at, last = frame->high - 8, hash = stack->hash, row;
	uint64_t *at = stack->frames + stack->count, *end = stack->frames + depth, *stop = at, start = sp;
	uint32_t *size = stack->sizes, first = stack->count;

	for (;;) {
		uint64_t next;
		uint32_t n;
		bool cached;

		if (unlikely(at == stop)) {
			uint64_t place = (uint64_t)(at - stack->frames) % MW_RING_MEMO_SIZES;

			size = stack->sizes + place;
			stop = at + (MW_RING_MEMO_SIZES - place);
			stop = stop < end ? stop : end;
		}
		next = sp + __atomic_load_n(size, __ATOMIC_RELAXED);
		cached = stub_row_cached(rows, pc, &row);
		n = (uint32_t)mw_row_n(row);
		if (unlikely(!cached | ((row & ROW_SHAPE) != MW_ROW_SP))) {
			/* A stack ends at 0. */
			if (!cached && !pc)
				break;
			if (!cached)
				row = stub_row_find(rows->control, pc);
			n = (uint32_t)mw_row_n(row);
			if ((row & ROW_SHAPE) != MW_ROW_SP) {
				struct stub_frame now = {pc, sp, frame->fp, fp_at, frame->low, frame->high};

				n = size_by_fp(stack, &now, row);
				if (!n)
					break;
			}
		}
		/* Read anew: what is compared must not be taken in the other's place. */
		if (unlikely(__atomic_load_n(size, __ATOMIC_RELAXED) != n)) {
			next = sp + n;
			*size = *size < DISTRUST || (*size ^ distrust(n)) % DISTRUST ? distrust(n) : *size - DISTRUST;
		}
		if (unlikely(next > last || at == end))
			break;
		*at++ = pc;
		size++;
		hash = hashed(hash, pc);
		fp_at = row & MW_ROW_FP_SAVED << 8 ? next + (uint64_t)(int64_t)mw_row_fp_at(row) : fp_at;
		sp = next;
		pc = stub_read(sp - 8);
	}
	*odd = row;
	frame->sp = sp;
	frame->pc = pc;
	frame->fp_at = fp_at;
	stack->hash = hash;
	stack->count = (uint32_t)(at - stack->frames);
	note_frames(stack, first, start, frame);
	return pc ? STUB_CALLER : STUB_END;
}

/* Code that was made at run time says of the places where it has called something what its frames are, of no other. */
static inline bool is_made(struct mw_ring_control *control, uint64_t pc)
{
	const struct mw_ring_code *code = stub_code_find(control, pc - 1);
	uint64_t row = stub_row(control, pc);

	return mw_row_kind(row) == MW_ROW_CALLED || mw_row_kind(row) >= MW_ROW_ASK ||
	       (code && mw_row_kind(code->whole) == MW_ROW_ASK);
}

/* A frame of HotSpot's interpreter. False: there is no room. */
static STUB_RARE bool keep_interpreted(struct stack *stack, const struct stub_frame *frame, uint64_t depth)
{
	uint64_t fp, method_at, at_at;

	if (stack->count + MW_INTERPRETED_WORDS > depth)
		return false;
	(void)keep(stack, frame->pc | MW_INTERPRETED_FRAME, depth);
	/* What is wrong with it is found by the step. */
	if (!frame_fp(frame, &fp) || fp & 7 || fp < frame->sp + MW_INTERPRETED_SIZE || fp >= frame->high) {
		(void)keep(stack, 0, depth);
		return keep(stack, 0, depth);
	}
	method_at = fp + (uint64_t)(int64_t)MW_INTERPRETED_METHOD;
	at_at = fp + (uint64_t)(int64_t)MW_INTERPRETED_AT;
	(void)keep(stack, stub_read(method_at), depth);
	(void)keep(stack, stub_read(at_at), depth);
	note_fp(stack, frame, fp);
	note(stack, method_at, stack->frames[stack->count - 2]);
	note(stack, at_at, stack->frames[stack->count - 1]);
	note(stack, fp + (uint64_t)(int64_t)MW_INTERPRETED_SP, stub_read(fp + (uint64_t)(int64_t)MW_INTERPRETED_SP));
	if (frame->high - fp >= 16)
		note(stack, fp + 8, stub_read(fp + 8));
	return true;
}

/* The return address that the frame had. False: there is no room. */
static STUB_RARE bool keep_deoptimized(struct stack *stack, const struct stub_frame *frame, uint64_t row,
				       uint64_t depth)
{
	uint64_t at = frame->sp + (uint64_t)(int64_t)mw_row_fp_at(row);

	if (at & 7 || at < frame->sp || frame->high - frame->sp <= at - frame->sp)
		return keep(stack, frame->pc, depth);
	note(stack, at, stub_read(at));
	return keep(stack, stub_read(at), depth);
}

/* A frame of V8's code. False: there is no room. */
static STUB_RARE bool keep_generated(struct stack *stack, const struct stub_frame *frame, bool made, uint64_t depth)
{
	struct mw_javascript function;
	uint64_t fp;

	if (!frame_fp(frame, &fp) || fp & 7 || fp < frame->sp + MW_JAVASCRIPT_SIZE(made) || fp >= frame->high ||
	    !stub_javascript(&stack->reader, fp, made, &function))
		return keep(stack, frame->pc, depth);
	if (stack->count + MW_JAVASCRIPT_KEPT > depth)
		return false;
	/* What is read is not on the stack: whether it is the same is not to be seen there. */
	stack->memo = NULL;
	stack->functions = true;
	(void)keep(stack, frame->pc | MW_JAVASCRIPT_FRAME, depth);
	(void)keep(stack, function.shared, depth);
	(void)keep(stack, function.at, depth);
	return keep(stack, function.check, depth);
}

static inline bool keep_odd(struct stack *stack, const struct stub_frame *frame, uint64_t row, uint64_t depth)
{
	if (unlikely(mw_row_kind(row) == MW_ROW_INTERPRETED))
		return keep_interpreted(stack, frame, depth);
	if (unlikely(mw_row_kind(row) == MW_ROW_DEOPTIMIZED))
		return keep_deoptimized(stack, frame, row, depth);
	if (mw_row_kind(row) == MW_ROW_MADE || (mw_row_kind(row) == MW_ROW_CALLED && stack->javascript))
		return keep_generated(stack, frame, mw_row_kind(row) == MW_ROW_MADE, depth);
	return keep(stack, frame->pc, depth);
}

/* Any other step. */
static STUB_RARE enum stub_step walk_odd(struct stub_visit *visit, struct stack *stack, struct stub_frame *frame,
					 uint64_t row)
{
	enum stub_step step;

	if (mw_row_kind(row) == MW_ROW_SWITCH) {
		/* What is read is not between here and the end of this stack. */
		stack->crossed = true;
		stack->memo = NULL;
		return frame_switch(visit, frame);
	}
	step = frame_step(frame, row);
	if (mw_row_kind(row) == MW_ROW_FP || mw_row_kind(row) == MW_ROW_FP_DEREF || mw_row_kind(row) == MW_ROW_CALLED ||
	    mw_row_kind(row) == MW_ROW_MADE)
		stack->memo = NULL;
	if (mw_row_kind(row) != MW_ROW_INTERPRETED && (step == STUB_CALLER || !frame->pc))
		note(stack, frame->sp - 8, frame->pc);
	if (step != STUB_SIGNAL || !stack->count)
		return step;
	/* What a signal has interrupted is no call: its pc counts as one that follows a call there, as is that of the
	 * code that the handler returns to. */
	stack->frames[stack->count - 1]++;
	stack->hash = hashed(stack->hash, MW_ROW_SIGNAL);
	stack->crossed = true;
	step = frame_cross(visit, frame);
	if (step == STUB_CALLER && is_made(visit->control, frame->pc) && keep(stack, frame->pc, visit->control->depth))
		return STUB_FOREIGN;
	return step;
}

/* False: rows did not lead on from the last of the frames. */
static inline bool walk(struct stub_visit *visit, struct stack *stack, uint32_t flags)
{
	struct mw_ring_control *control = visit->control;
	uint32_t depth = control->depth, cut = MW_RING_COMPLETE;
	struct stub_rows rows;
	struct stub_frame frame;
	enum stub_step step = STUB_SLOW;

	stack->crossed = stack->functions = false;
	stack->hash = (uint64_t)visit->call->hook << 8 | flags;
	stack->count = 0;
	/* No later than that of the rows. */
	memo_begin(visit, stack, __atomic_load_n(&control->generation, __ATOMIC_ACQUIRE));
	rows = stub_rows(control);
	frame_first(visit, &frame);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t row;

		step = walk_plain(&rows, stack, &frame, depth, &row);
		if (step != STUB_CALLER)
			break;
		if (unlikely(mw_row_kind(row) == MW_ROW_ASK)) {
			stub_ask_row(visit, frame.pc);
			row = stub_row_find(control, frame.pc);
			if (mw_row_kind(row) == MW_ROW_ASK)
				row = mw_row(MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0);
			else if (mw_row_kind(row) == MW_ROW_SP)
				continue;
		}
		if (likely(mw_row_kind(row) != MW_ROW_OURS) && unlikely(!keep_odd(stack, &frame, row, depth))) {
			cut = MW_RING_TRUNCATED;
			step = STUB_END;
			break;
		}
		step = likely(mw_row_kind(row) == MW_ROW_END) ? STUB_END : walk_odd(visit, stack, &frame, row);
		if (step != STUB_CALLER)
			break;
	}
	stack->top = frame.sp;
	if (step != STUB_END)
		cut = MW_RING_BROKEN;
	stack->cut = cut;
	stack->hash = mixed(stack->hash ^ stack->script, (uint64_t)cut << 32 | stack->count);
	if (!stack->hash)
		stack->hash = 1;
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

/* Nobody has come into the walk. */
static inline bool undisturbed(const struct stub_visit *visit, uint64_t entries)
{
	return __atomic_load_n(&visit->slot->entries, __ATOMIC_RELAXED) == entries;
}

/* Units that the interpreter's frames take before a stack. */
static inline uint32_t script_units(const struct stack *stack)
{
	return stack->ref_count ? units_of((uint64_t)stack->ref_count * MW_SCRIPT_WORDS) : 0;
}

static void put_script(struct stub_visit *visit, const struct stack *stack, uint64_t number, uint32_t id)
{
	struct mw_ring_record *record = stub_unit(visit, number);
	const uint64_t *words = (const uint64_t *)(const void *)stack->refs;
	uint64_t count = (uint64_t)stack->ref_count * MW_SCRIPT_WORDS;

	record->time = cpu_ticks();
	record->addr = id;
	record->size = stack->ref_count | stack->script_cut;
	for (uint64_t i = 0; i < count; i++)
		put(visit, number, i, words[i]);
	/* A handler has used the room that they were in: they are none. */
	for (uint64_t i = 0; i < count && !undisturbed(visit, stack->entries); i++)
		put(visit, number, i, 0);
}

/* Mark the last record of a reservation, and the interpreter's frames, which stand first. */
static inline void mark_all(struct stub_visit *visit, const struct stack *stack, uint64_t number, uint32_t id,
			    uint32_t type, uint32_t flags)
{
	uint32_t script = script_units(stack);

	/* From the end: who sees the first sees all. */
	stub_mark(visit, number + script, id, type, flags, !script);
	if (script)
		stub_mark(visit, number, id, MW_RING_SCRIPT, flags & ~MW_RING_COMPARE, true);
}

static STUB_RARE uint32_t slow(struct stub_visit *visit, const struct stack *stack, uint32_t flags)
{
	uint64_t words = piece_words(visit, stack->top), number;
	uint32_t id, script = script_units(stack);

	if (script)
		stub_script_learn(visit, stack->refs, stack->ref_count);
	if (!new_id(visit->control, &id) ||
	    !stub_reserve(visit, script + units_of(sizeof(struct mw_ring_slow) / sizeof(uint64_t) + words), &number)) {
		visit->slot->lost_stacks += stub_on();
		return MW_RING_STACK_NONE;
	}
	visit->slot->slow_walks++;
	if (script)
		put_script(visit, stack, number, id);
	put_slow(visit, number + script, id, words);
	mark_all(visit, stack, number, id, MW_RING_SLOW, flags);
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

/* Tell a stack, `also` by the slow road. False: it has to be walked anew. */
static STUB_RARE bool emit(struct stub_visit *visit, const struct stack *stack, uint32_t flags, bool also, uint32_t *id)
{
	uint64_t words = also ? piece_words(visit, stack->top) : 0, number;
	uint32_t script = script_units(stack), units = script + units_of(stack->count), all = units;

	if (script)
		stub_script_learn(visit, stack->refs, stack->ref_count);
	if (stack->functions)
		stub_javascript_learn(visit, stack->frames, stack->count);
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
	if (script)
		put_script(visit, stack, number, *id);
	put_stack(visit, stack, number + script, *id);
	if (also)
		put_slow(visit, number + units, *id, words);
	if (!undisturbed(visit, stack->entries)) {
		stub_void(visit, number, all);
		return false;
	}
	if (also) {
		flags |= MW_RING_COMPARE;
		visit->slot->slow_walks++;
		stub_mark(visit, number + units, *id, MW_RING_SLOW, flags, false);
	}
	mark_all(visit, stack, number, *id, MW_RING_STACK, flags);
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

/* From here on a handler that comes is noticed. The interpreter's frames are as they are now. */
static inline void begin(struct stub_visit *visit, struct stack *stack)
{
	stack->entries = __atomic_load_n(&visit->slot->entries, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	stack->script = 0;
	stack->ref_count = stack->script_cut = 0;
	stack->javascript = visit->control->script.javascript.shared;
	stack->reader = (struct stub_reader){.visit = visit};
	if (likely(!visit->control->script.frames))
		return;
	stack->refs = (struct mw_script_ref *)(void *)(stack->frames + mw_ring_script_at(visit->control->depth));
	stack->ref_count = stub_script(visit, stack->refs, &stack->script);
	stack->script_cut = stack->ref_count & MW_RING_SCRIPT_CUT;
	stack->ref_count &= ~MW_RING_SCRIPT_CUT;
}

uint32_t stub_stack(struct stub_visit *visit, uint32_t flags)
{
	struct mw_ring_control *control = visit->control;
	struct mw_ring_slot *slot = visit->slot;
	uint64_t here = (uint64_t)(uintptr_t)visit->call;
	struct mw_ring_memo *memo;
	struct stack stack;
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
	memo = memo_at(visit);
	stack.sizes = memo->sizes;
	stack.frames = (uint64_t *)stub_at(control, control->scratch) +
		       (uint64_t)(slot->ring - 1) * mw_ring_scratch_words(control->depth, control->script.frames);
	begin(visit, &stack);
	/* A handler that has come into a visit keeps its hands off what that one is at. */
	if (unlikely(control->compare || visit->inside)) {
		memo = NULL;
	} else if (!memo_rests(&memo)) {
		if (likely(recall(visit, memo, flags, stack.script))) {
			id = memo->id;
			memo->misses = 0;
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
			if (likely(undisturbed(visit, stack.entries)))
				return id;
		}
		memo->misses++;
	}
	for (unsigned i = 0; i < WALKS; i++) {
		if (unlikely(i))
			begin(visit, &stack);
		stack.memo = memo;
		if (unlikely(!walk(visit, &stack, flags))) {
			if (take_slow(visit))
				return slow(visit, &stack, flags);
			stack.memo = NULL; /* rows may lead on the next time */
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (likely(undisturbed(visit, stack.entries)) && likely(intern(visit, &stack, flags, &id))) {
			memo_end(visit, &stack, flags, id);
			return id;
		}
	}
	if (take_slow(visit))
		return slow(visit, &stack, flags);
	slot->lost_stacks += stub_on();
	return MW_RING_STACK_NONE;
}

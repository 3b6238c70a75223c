/* SPDX-License-Identifier: MIT */
/*
 * ring.h: the memory that memwatch and the recorder in a target share, and what is written there.
 *
 * Included by freestanding code: stdint only. All offsets are bytes from the start of the shared memory unless said
 * otherwise; every size that memwatch reads here was written where the target can write too, and is not to be trusted.
 *
 *      +---------------------+ 0
 *      | control             |
 *      | slots               | one a thread, found by hash of its thread pointer
 *      | queue               | numbers of rings that a new thread may take (uint32_t): the n-th thread takes the n-th
 *      | scratch             | frames of the walk that a ring's thread is at: mw_ring_scratch_words() a ring
 *      | memos               | walks of a ring's thread, to be known again
 *      | stacks              | (hash of a stack → its id), a cache
 *      | known               | blocks allocated in the window, a cache
 *      | script ranges       | memory where an interpreter's frames may be read; only where there is one
 *      | filter              | where sampled blocks may be; only where blocks are sampled
 *      | cache               | (pc → row), a cache
 *      | rows                | rows, index of modules: append-only, written by memwatch alone
 *      | rings               | records, one ring a thread
 *      +---------------------+ size
 *
 * Besides there is, private to the process, the guard: one page that a fork leaves zeroed (MADV_WIPEONFORK), and the
 * code with its context (stub.h).
 */
#ifndef MEMWATCH_RING_H
#define MEMWATCH_RING_H

#include <memwatch/javascript.h>

#include <stdint.h>

#define MW_RING_MAGIC    UINT64_C(0x6d656d7761746368) /* "memwatch" */
#define MW_RING_LAYOUT   13u
#define MW_RING_UNIT     32u /* bytes */
#define MW_RING_REGIONS  4
#define MW_RING_CHILDREN 64

/* mw_ring_slot.owner */
#define MW_RING_FREE 0u
#define MW_RING_TOMB                                                                                                   \
	1u /* was somebody's: to be taken anew, but what lies behind it in a probe is still to be looked at */

/*
 * mw_ring_slot.tid is 0 until its owner has taken it. A thread that finds a slot of its thread pointer with another tid
 * was given the stack of one that has ended: it takes the slot over by exchanging the tid if it is still that
 * (compare-and-exchange), and records THREAD. memwatch exchanges the tid of a thread that has ended for this in the
 * same way before it clears the slot: a slot with it is nobody's, to be passed over in a probe.
 */
#define MW_RING_NO_TID UINT32_MAX

/*
 * What a record is. The numbers up to MW_RING_REMAP_FAIL are those of enum mw_event_type.
 *
 * An event's stack is an id or MW_RING_STACK_NONE. FREE without a stack is of a block that the recorder knows to have
 * been allocated in the window; with one, `size` is what usable() of the allocator's header says or UINT64_MAX.
 *
 * While blocks are sampled, the size of ALLOC and REALLOC_END has the number of the sampling interval above it: from bit
 * MW_RING_SIZE_BITS on, MW_RING_UNSAMPLED for the new block of a REALLOC_END that is not recorded. FREE and REALLOC_BEGIN are
 * then of blocks that may be sampled ones: memwatch knows. What was not sampled has no record. Number 0 is that of blocks
 * that were recorded as all were, where sampling has begun later; FREE and REALLOC_BEGIN with a stack are from before, too.
 */
enum mw_ring_type {
	MW_RING_ALLOC,
	MW_RING_FREE_BLOCK,
	MW_RING_REALLOC_BEGIN,
	MW_RING_REALLOC_END,
	MW_RING_REALLOC_FAIL,
	MW_RING_MAP,
	MW_RING_UNMAP_BEGIN,
	MW_RING_UNMAP_END,
	MW_RING_UNMAP_FAIL,
	MW_RING_REMAP_BEGIN,
	MW_RING_REMAP_END,
	MW_RING_REMAP_FAIL,
	MW_RING_BRK,     /* the break was set: addr is the new one */
	MW_RING_SBRK,    /* … was moved: addr is the old one, size the (signed) increment */
	MW_RING_THREAD,  /* from here on the ring is of thread number addr (in its innermost namespace), pointer size */
	MW_RING_STACK,   /* addr: id; size: number of frames | cut << 32; so many words follow, 4 a unit */
	MW_RING_SLOW,    /* addr: id; size: bytes that follow: struct mw_ring_slow and a piece of the stack */
	MW_RING_NOTHING, /* given up; size: units in all */
	/* addr: id; size: number of struct mw_script_ref that follow, and MW_RING_SCRIPT_CUT. A STACK or SLOW record of that
	 * id comes at once, which these belong to. */
	MW_RING_SCRIPT,
	MW_RING_TYPES
};

#define MW_RING_STACK_NONE UINT32_MAX
#define MW_RING_SCRIPT_CUT (UINT32_C(1) << 31) /* there were more, or the list was invalid from there on */

#define MW_RING_SIZE_BITS 48
#define MW_RING_SIZE_MASK ((UINT64_C(1) << MW_RING_SIZE_BITS) - 1)
#define MW_RING_UNSAMPLED UINT64_C(0xffff)

/* Flags of a record. */
#define MW_RING_VM       1u /* of kind VM; neither: HEAP */
#define MW_RING_INTERNAL 2u /* of kind VM_INTERNAL */
#define MW_RING_COMPARE  4u /* STACK: a SLOW record of the same stack follows at once; SLOW: its id is that STACK's */

/*
 * A record: one unit, and what follows it. It counts once `mark` says so, which is written last.
 *   mark = stack | (uint64_t)hook << 32 | type << 44 | flags << 52 | lap << 56
 * lap is 1 + n % 255 for the n-th time that the ring is gone through; 0 never counts. Whoever reads a record with
 * units behind its first sets the last word of those to 0 before it gives the room back.
 */
struct mw_ring_record {
	uint64_t time; /* time stamp counter; a record's time is never less than that of one before it in the ring:
			* where it says less, it is that one's */
	uint64_t addr;
	uint64_t size;
	uint64_t mark;
};

static inline uint64_t mw_ring_mark(uint32_t stack, uint32_t hook, uint32_t type, uint32_t flags, uint32_t lap)
{
	return stack | (uint64_t)(hook & 0xfff) << 32 | (uint64_t)(type & 0xff) << 44 | (uint64_t)(flags & 0xf) << 52 |
	       (uint64_t)(lap & 0xff) << 56;
}

static inline uint32_t mw_ring_stack_of(uint64_t mark)
{
	return (uint32_t)mark;
}

static inline uint32_t mw_ring_hook_of(uint64_t mark)
{
	return (uint32_t)(mark >> 32) & 0xfff;
}

static inline uint32_t mw_ring_type_of(uint64_t mark)
{
	return (uint32_t)(mark >> 44) & 0xff;
}

static inline uint32_t mw_ring_flags_of(uint64_t mark)
{
	return (uint32_t)(mark >> 52) & 0xf;
}

/* Which lap of a ring of `units`, 2^n, the unit of that number (counted from its beginning, never wrapped) belongs to. */
static inline uint32_t mw_ring_lap(uint64_t unit, uint32_t units)
{
	return 1 + (uint32_t)((unit >> __builtin_ctz(units)) % 255);
}

#define MW_RING_HOOKS 4096 /* hook numbers are less */

/* Registers for the slow road, as they were at the entry of the hooked function, its return address popped. */
struct mw_ring_slow {
	uint64_t gpr[16]; /* in DWARF order; gpr[7] is the stack pointer after the return */
	uint64_t pc;      /* the return address */
	uint64_t start;   /* address of the piece of stack that follows: at or below gpr[7] */
};

/* The frames of a stack end because … (as enum mw_stack_cut) */
#define MW_RING_COMPLETE  0u
#define MW_RING_TRUNCATED 1u
#define MW_RING_BROKEN    2u

/* What the recorder can ask of memwatch. */
enum mw_ring_ask {
	MW_RING_ASK_NOTHING,
	MW_RING_ASK_REGION,  /* which mapping holds the stack pointer ask_address? */
	MW_RING_ASK_REFUSED, /* that was asked and memwatch did not know: no question */
	MW_RING_ASK_SCRIPT,  /* may an interpreter's frames be read at ask_address? The ranges answer */
	MW_RING_ASK_ROW,     /* what is the row of the return address ask_address? The learned rows answer */
	/* What are the functions of JavaScript called, among the words ask_address of frames in the scratch of the
	 * thread's ring? */
	MW_RING_ASK_JAVASCRIPT,
};

/* … for an address: where is the thread's state? */
#define MW_RING_ASK_PLACE UINT64_C(1)
/* … with how many frames of an interpreter stand in the scratch of the thread's ring: read their code objects */
#define MW_RING_ASK_CODES (UINT64_C(1) << 63)

/*
 * Stack memory that may be read: where low <= sp < high, [sp, high) can be. Who changes one makes `high` 0 first, and
 * writes it last. Where MW_RING_REGION_OWN is not part of `low`, what lies above the thread's frames may be others',
 * who may take it away at any time: a coroutine's stack beside other memory.
 */
#define MW_RING_REGION_OWN UINT64_C(1)

struct mw_ring_region {
	uint64_t low, high;
};

/* Where the owner is MW_RING_FREE or MW_RING_TOMB all the rest is zero, but for the tid that may be MW_RING_NO_TID (and
 * is until after the owner is MW_RING_TOMB). */
struct mw_ring_slot {
	/* The thread's own. */
	uint64_t owner;      /* its thread pointer, or MW_RING_FREE, MW_RING_TOMB */
	uint32_t tid;        /* as its control block says */
	uint32_t ring;       /* number + 1; 0: none yet */
	uint64_t reserved;   /* units handed out since the ring's beginning */
	uint64_t limit;      /* … may not pass this without another look at `drained` */
	uint64_t top;        /* innermost call of a hooked function that has not returned: struct mw_stub_call */
	int64_t countdown;   /* bytes that may be allocated before a block is sampled; below 0: the next one is */
	uint64_t pending;    /* reserved but not marked: number | units << 48 (units 0: none) */
	uint64_t pending_sp; /* where the innermost visit to the recorder began, while `inside` */

	struct mw_ring_region regions[MW_RING_REGIONS]; /* memwatch writes at attach, and to answer */

	uint64_t lost_events; /* not recorded as there was no room in time, or no ring */
	uint64_t entries;     /* times that the recorder was entered: a walk that finds it changed begins anew */
	uint64_t walks, slow_walks;
	uint64_t waited;     /* ticks that the thread has waited, as far as it had a CPU */
	uint32_t ask, asked; /* enum mw_ring_ask; how often it has asked */
	uint64_t ask_address;
	uint32_t inside; /* recorder functions (enter, leave) that the thread is in; more than one in signal handlers */
	uint32_t open;   /* times that it came into our code less times that it left: never corrected (mod 2^32) */

	/* memwatch's. */
	uint64_t drained;     /* units read */
	uint32_t answered;    /* how many asks it has answered */
	uint32_t next_region; /* which of regions the next answer goes to */
	uint64_t exec;        /* the thread's: `entries` when it called execve; 0: it came back */

	/* The thread's own; rarely written. */
	uint64_t lost_stacks; /* recorded without a stack */
	uint64_t sampling;    /* mw_ring_control.sampling as `countdown` was drawn by it; 0: not yet */
	uint64_t random;      /* the state of what is drawn */
	uint64_t spent;       /* ticks in the recorder, while blocks are sampled */
	uint64_t waited_room; /* what of `waited` was for room: sampling makes that less */
};

_Static_assert(sizeof(struct mw_ring_slot) == 256, "four lines of the cache");

/* Where a thread's slot is looked for first; then in the following ones, round about, up to a free one. */
static inline uint32_t mw_ring_slot_first(uint64_t thread_pointer, uint32_t slot_count)
{
	return (uint32_t)((thread_pointer >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (slot_count - 1);
}

static inline uint64_t mw_ring_sampling(uint64_t bytes, uint16_t number)
{
	return (bytes & MW_RING_SIZE_MASK) | (uint64_t)number << MW_RING_SIZE_BITS;
}

/*
 * The filter: a byte for each place, which counts the sampled blocks there that live. One that has come to 255 stays: then
 * the frees of all blocks there are recorded. Neighbours on the heap are neighbours in it, so it takes few lines of the
 * cache.
 *
 * Behind it there is a byte for each piece of it, which counts the blocks in that piece: most frees end there, as it fits the
 * fastest cache, and the filter does not.
 */
#define MW_RING_FILTER       (1u << 19) /* bytes; 2^n */
#define MW_RING_FILTER_PIECE 7u         /* 2^n bytes */
#define MW_RING_FILTER_SIZE  (MW_RING_FILTER + (MW_RING_FILTER >> MW_RING_FILTER_PIECE))

static inline uint32_t mw_ring_filter_place(uint64_t block)
{
	return (uint32_t)(block >> 4 ^ block >> 23) & (MW_RING_FILTER - 1);
}

static inline void mw_ring_filter_add(uint8_t *at, int more, int sticks)
{
	uint8_t now = __atomic_load_n(at, __ATOMIC_RELAXED), next;

	do
		next = sticks ? 255 : (uint8_t)(now + more);
	while (now != 255 && !(more < 0 && now == 0) &&
	       !__atomic_compare_exchange_n(at, &now, next, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* One more block, or one less; with `sticks` it stays from now on. `filter`: the first byte. */
static inline void mw_ring_filter_count(uint8_t *filter, uint64_t block, int more, int sticks)
{
	uint32_t place = mw_ring_filter_place(block);

	mw_ring_filter_add(filter + place, more, sticks);
	mw_ring_filter_add(filter + MW_RING_FILTER + (place >> MW_RING_FILTER_PIECE), more, sticks);
}

/*
 * The known blocks: an entry's place and value together are the block's address; 0: none. What does not fit that is not
 * kept. Each block has two places: the second is for sampled ones that find the first taken. A thread's arena lies at a
 * multiple of 64 MiB, and blocks of all arenas at like distances from that: their places are apart.
 */
#define MW_RING_KNOWN_SECOND UINT32_C(0x80000000) /* in the value */

/* Where the place of `block` is in `known`, of `count` entries, 2^n; NULL: it has none. `second`: 0, or
 * MW_RING_KNOWN_SECOND. */
static inline uint32_t *mw_ring_known_place(uint32_t *known, uint32_t count, uint64_t block, uint32_t second,
					    uint32_t *value)
{
	uint64_t n = block >> 4, rest = n >> __builtin_ctz(count);

	*value = ((uint32_t)rest + 1) | second;
	n ^= rest * (second ? UINT64_C(0x85ebca6b) : UINT64_C(0x9e3779b1));
	return !(block & 15) && rest < MW_RING_KNOWN_SECOND - 1 ? &known[n & (count - 1)] : (uint32_t *)0;
}

/* Put a block in unless its places are others'. 0: they are, or the block has none. */
static inline int mw_ring_known_claim(uint32_t *known, uint32_t count, uint64_t block)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t value, was = 0;
		uint32_t *entry = mw_ring_known_place(known, count, block, i ? MW_RING_KNOWN_SECOND : 0, &value);

		if (entry && (__atomic_compare_exchange_n(entry, &was, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ||
			      was == value))
			return 1;
	}
	return 0;
}

#define MW_RING_MEMOS      16 /* a ring; 2^n */
#define MW_RING_MEMO_WORDS 48
#define MW_RING_MEMO_SIZES 64 /* 2^n */

/*
 * A walk: from where it began, what it read, and the id of the stack that it found. A walk is a function of that, so
 * one that begins in the same way and would read the same finds the same. 0 for a return address: it does not count.
 * The frames' sizes are those of the last walk that looked for its memo there: guesses.
 */
struct mw_ring_memo {
	uint64_t ret;  /* the call's return address */
	uint64_t call; /* address of its struct mw_stub_call */
	uint64_t fp;   /* the frame pointer; it counts where fp_used */
	uint64_t top;  /* end of what was read */
	uint32_t key, generation;
	uint32_t id, count;
	uint32_t fp_used;
	uint32_t misses; /* in a row */
	uint64_t script; /* a hash of the interpreter's frames */
	struct {
		uint64_t at, word;
	} words[MW_RING_MEMO_WORDS];
	uint32_t sizes[MW_RING_MEMO_SIZES];
};

/* (hash → id): tag ^ id is the hash, so an entry half written does not count. */
struct mw_ring_stack_entry {
	uint64_t tag, id;
};

/* (pc → row): tag ^ row is pc ^ generation << 48. */
struct mw_ring_cached_row {
	uint64_t tag, row;
};

/*
 * How to get from a frame to its caller:
 *   bits 0…7 enum mw_row_kind, 8…15 enum mw_row_fp, 16…31 int16_t where the frame pointer is saved (from the CFA),
 *   32…63 int32_t n
 * The return address is always the word below the CFA. In a row MW_ROW_FP_DEREF the frame pointer is saved, where it
 * is, at the current frame pointer + that number, not at the CFA + it: a function that realigns its stack knows how far
 * apart these two are only when it runs.
 */
enum mw_row_kind {
	MW_ROW_NONE,     /* nothing is known of this code: slow road */
	MW_ROW_SP,       /* CFA = stack pointer + n */
	MW_ROW_FP,       /* CFA = frame pointer + n */
	MW_ROW_FP_DEREF, /* CFA = word at frame pointer + n (realigned stacks) */
	MW_ROW_END,      /* the outermost frame */
	MW_ROW_SLOW,     /* what can't be said here: slow road */
	MW_ROW_OURS,     /* the call that we put around a hooked function: no frame of the program's; CFA = sp + n */
	MW_ROW_FOREIGN,  /* code in no file: the stack is kept up to this frame, and is broken there */
	MW_ROW_SIGNAL,   /* as SLOW, of a signal frame: what lies below it is not called by what lies above */
	MW_ROW_CALLED,   /* as FP where the code has called something; where a signal has interrupted it, as FOREIGN */
	MW_ROW_SWITCH,   /* as FP, and the caller's frame may be on another stack (Go's runtime, which calls C) */
	MW_ROW_ASK,      /* code of a runtime that makes it as it goes: memwatch has the row of each return address */
	/* A frame of HotSpot's interpreter, whose return address follows the frame pointer: see MW_INTERPRETED_SP.
	 * It is kept as three words: the return address, its method, and where in that it is. */
	MW_ROW_INTERPRETED,
	/* As SP, of a compiled method that will go on in the interpreter: at the stack pointer + the number of a saved
	 * frame pointer is what the return address was, which is kept. The frame pointer is saved below the other. */
	MW_ROW_DEOPTIMIZED,
	/* As CALLED, of code that V8 has made as it runs. Where control->script.javascript is known, a frame of that, or of
	 * V8's interpreter, may be a function's: MW_JAVASCRIPT_FRAME. */
	MW_ROW_MADE,
	MW_ROW_KINDS
};

enum mw_row_fp {
	MW_ROW_FP_SAME,
	MW_ROW_FP_SAVED,
	MW_ROW_FP_LOST, /* not known from here on: a row that needs it is slow */
};

static inline uint64_t mw_row(enum mw_row_kind kind, int32_t n, enum mw_row_fp fp, int16_t fp_at)
{
	return (uint64_t)kind | (uint64_t)fp << 8 | (uint64_t)(uint16_t)fp_at << 16 | (uint64_t)(uint32_t)n << 32;
}

/* Of code that was made at run time and keeps a frame pointer: its frame begins with its caller's, below the return
 * address. */
static inline uint64_t mw_row_generated(void)
{
	return mw_row(MW_ROW_CALLED, 16, MW_ROW_FP_SAVED, -16);
}

/* Distances from the frame pointer in a frame of HotSpot's interpreter, of every version since 17. */
#define MW_INTERPRETED_SP     (-8)  /* the caller's stack pointer, as the call left it */
#define MW_INTERPRETED_METHOD (-24) /* the method that is run, */
#define MW_INTERPRETED_AT     (-64) /* … and its bytecode that runs; 0 in a native one */
#define MW_INTERPRETED_SIZE   72    /* of what the frame has at least below the frame pointer */
#define MW_DEOPTIMIZED_FP     (-16) /* from the CFA: in a frame MW_ROW_DEOPTIMIZED, the saved frame pointer */
#define MW_INTERPRETED_WORDS  3u /* that such a frame is kept as: its return address with MW_INTERPRETED_FRAME, … */
#define MW_INTERPRETED_FRAME  (UINT64_C(1) << 63)
/* A frame of JavaScript is kept as its return address with MW_JAVASCRIPT_FRAME, and a struct mw_javascript. */
#define MW_JAVASCRIPT_FRAME (UINT64_C(1) << 62)
#define MW_JAVASCRIPT_KEPT  (1 + MW_JAVASCRIPT_WORDS)

static inline enum mw_row_kind mw_row_kind(uint64_t row)
{
	return (enum mw_row_kind)(row & 0xff);
}

static inline enum mw_row_fp mw_row_fp(uint64_t row)
{
	return (enum mw_row_fp)(row >> 8 & 0xff);
}

static inline int16_t mw_row_fp_at(uint64_t row)
{
	return (int16_t)(uint16_t)(row >> 16);
}

static inline int32_t mw_row_n(uint64_t row)
{
	return (int32_t)(uint32_t)(row >> 32);
}

/* A row is good from its pc (from the module's rows' base) to the next one's. */
struct mw_ring_row {
	uint32_t pc;
	uint32_t row; /* index in the dictionary of rows */
};

/* Code of one mapping or module. Where no row says anything (there may be none at all), `whole` does. */
struct mw_ring_code {
	uint64_t start, end;
	uint64_t base; /* address that the rows' pc is from */
	uint64_t rows; /* offset of count struct mw_ring_row, by pc; the first begins at or before `start` or what lies
			* before it has none */
	uint64_t count;
	uint64_t whole;
};

/* Sorted by start, without overlaps. */
struct mw_ring_index {
	uint64_t count;
	struct mw_ring_code code[];
};

/*
 * Rows of single return addresses, as memwatch has found them since they were first met: of code that nothing
 * describes, read off that code; and of places where every stack ends, as no call leads there, whatever describes the
 * code before. Each is a struct mw_ring_cached_row with tag ^ row = pc, both 0: empty. One is looked for from
 * mw_ring_learned_first() on, up to an empty one, among MW_RING_PROBES at most.
 */
#define MW_RING_LEARNED (1u << 16) /* 2^n */
#define MW_RING_PROBES  32u

static inline uint32_t mw_ring_learned_first(uint64_t pc)
{
	return (uint32_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (MW_RING_LEARNED - 1);
}

/* Private memory that memwatch has in the process beside this. */
enum mw_ring_own {
	MW_RING_OWN_NOTHING,
	MW_RING_OWN_GUARD,
	MW_RING_OWN_IMAGE,
	MW_RING_OWN_TRAMPOLINES,
};

#define MW_RING_OWNED 64

struct mw_ring_owned {
	uint64_t start, size;
	uint32_t kind; /* enum mw_ring_own; written last */
	uint32_t unused;
};

/* An interpreter's frames; memwatch writes it. */
struct mw_ring_script {
	uint32_t frames;   /* kept at most; 0: there is no interpreter */
	uint32_t sequence; /* odd while the ranges change; another one: they have changed */
	uint32_t range_count, unused;
	/* Offset of MW_RING_SCRIPT_RANGES struct mw_ring_region, by address: all of them can be read. */
	uint64_t ranges;
	/* Offset of MW_RING_SCRIPT_CODES mw_script_key()s, or mw_javascript_key()s: memwatch has read these code objects. */
	uint64_t codes;
	struct mw_script_place place;
	struct mw_script_layout layout;
	struct mw_javascript_layout javascript; /* of V8's functions; all 0: nothing is known */
	uint64_t to_line[5]; /* unused: what follows in the control block begins a line of the cache */
};

#define MW_RING_SCRIPT_RANGES 8192u
#define MW_RING_SCRIPT_CODES  8192u /* 2^n */

/* Where the frames of an interpreter begin in the scratch of a ring, in words. */
static inline uint64_t mw_ring_script_at(uint32_t depth)
{
	return depth + UINT64_C(1);
}

/* The place of a key. */
static inline uint32_t mw_ring_script_code(uint64_t key)
{
	return (uint32_t)(key >> 32) & (MW_RING_SCRIPT_CODES - 1);
}

/* Words of scratch that each ring has. */
static inline uint64_t mw_ring_scratch_words(uint32_t depth, uint32_t script_frames)
{
	return mw_ring_script_at(depth) + (uint64_t)script_frames * MW_SCRIPT_WORDS;
}

struct mw_ring_control {
	uint64_t magic;
	uint32_t layout;
	uint32_t unused32;
	uint64_t size; /* of all */

	/* Geometry; memwatch writes it once. Counts marked 2^n are powers of two. */
	uint32_t slot_count; /* 2^n */
	uint32_t ring_count;
	uint32_t ring_units;  /* 2^n, of each ring */
	uint32_t queue_count; /* 2^n, at least ring_count */
	uint32_t depth;       /* frames kept */
	uint32_t stack_count; /* 2^n */
	uint32_t known_count; /* 2^n */
	uint32_t cache_count; /* 2^n */
	uint64_t slots, queue, scratch, memos, stacks, known, cache, dictionary, rings;

	/* memwatch writes these as it goes. */
	uint64_t heartbeat __attribute__((aligned(64))); /* time stamp counter */
	uint64_t index;                                  /* offset of struct mw_ring_index; 0: none */
	uint64_t dictionary_count;                       /* rows in the dictionary (uint64_t each) */
	uint64_t rings_offered;                          /* numbers put into the queue so far */
	uint32_t generation;                             /* of the cache: another one makes all its entries void */
	uint32_t loader_served;                          /* loader_changes that have been acted on */
	uint64_t heartbeat_limit;                        /* ticks after which memwatch counts as gone */
	uint64_t wait_limit;                             /* ticks that a thread waits for room or an answer */
	uint32_t compare;                                /* every so many walks send a SLOW record too; 0: none */
	uint32_t recording;                              /* 1: guards that are zero are those of forked children */
	uint64_t exit_limit;                             /* ticks that a process waits before it ends */
	uint32_t exits_served;                           /* how often it need not wait any more */
	uint32_t learned_any;                            /* 0: MW_RING_LEARNED empty ones */
	uint32_t rings_all;                              /* 1: no thread waits for a ring: there are no more */
	uint64_t learned;                                /* … at that offset */
	uint64_t slow_allowed; /* so many stacks may take the slow road; where another had to, it ends and is broken */
	uint32_t settling;     /* 1: only what frees is recorded, without stacks */
	uint32_t drop;         /* 1: nobody waits for room: what finds none is lost */
	uint64_t sampling;     /* the interval in bytes and its number, as mw_ring_sampling() has it */
	uint64_t wait_gap;     /* ticks: a thread that waits and does not look for longer had no CPU meanwhile */
	struct mw_ring_script script;

	/* The recorder writes these, atomically. */
	uint64_t rings_taken __attribute__((aligned(64)));
	uint32_t next_stack;
	uint32_t loader_changes;
	uint32_t asks;        /* sum of all slots' asked */
	uint32_t open;        /* what is missing in slots' `open`: calls that another thread left, or an exception */
	uint64_t lost_events; /* of threads that got no slot */
	uint64_t slow_taken;  /* stacks that have taken the slow road, without those that are compared */
	uint32_t given_up;    /* memwatch was gone, and recording was stopped for it */
	uint32_t child_count; /* forked children that were seen: their thread ids as their control blocks say */
	uint32_t children[MW_RING_CHILDREN];
	uint64_t exits; /* times that somebody was about to end the process << 32 | thread id as the last one's control
			 * block says: mw_ring_exit_count(), mw_ring_exit_tid() */

	/*
	 * memwatch writes these, from the moment that the memory is there (`layout` is set then), for a memwatch that
	 * comes after one that was killed. From `leaving` on any of it may be unmapped, and something else be there;
	 * whoever goes on with that after a killed one changes it.
	 */
	uint32_t leaving;
	uint32_t owned_count;
	struct mw_ring_owned owned[MW_RING_OWNED];
};

_Static_assert(sizeof(struct mw_ring_control) <= 4096, "a page");

static inline uint32_t mw_ring_exit_count(uint64_t exits)
{
	return (uint32_t)(exits >> 32);
}

static inline uint32_t mw_ring_exit_tid(uint64_t exits)
{
	return (uint32_t)exits;
}

#endif

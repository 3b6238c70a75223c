/* SPDX-License-Identifier: MIT */
/*
 * track.h: from events to live blocks, stacks and lifetimes of one process.
 *
 * Knows nothing of ptrace, ELF or pids: fed by a sink, asked by views. Not thread-safe: one
 * thread feeds, and asks when the window is over. Memory: at most 100 bytes a live block and
 * 1.1 KB a distinct stack, growth of the tables included (measured: 58 to 73 and 430 to 1040, the latter for 30
 * frames of which no other stack has any). A stack whose impacting bytes change between all moments of
 * its series takes 560 bytes more, one that changes up to four times 64.
 *
 * Where events do not fit together:
 * - ALLOC where a block is live: the free of the old one was missed; it counts as freed now. So does a
 *   REALLOC_FAIL whose block's address somebody else was given meanwhile. Both count in mw_track_missed().
 * - UNMAP_FAIL or REMAP_FAIL after another MAP took some of the addresses: those parts did go, the rest is back.
 * - REALLOC_END, REMAP_END without BEGIN: only a new block. UNMAP_END, FAIL without BEGIN: nothing.
 * - An event whose thread or stack the sink never gave out, or whose stack is of another kind than the event, is
 *   an error (MW_ERROR_DATA) and counts nothing.
 * What is between BEGIN and END is live (impacting) until the END, and died at the BEGIN then. A block is one MAP:
 * its bytes go piece by piece, its count (and lifetime) with the last piece. Ranges are taken byte for byte: an
 * engine rounds the length of munmap and mremap up to pages as the kernel does, and that of mmap if it wants
 * an unmapping of a part to leave nothing behind.
 * Bytes of REALLOC_BEGIN mean the same as FREE's: they matter for a block from before the window.
 * Something that must be attributed to a stack and comes with MW_STACK_NONE goes to a stack made for that: of the
 * event's kind, with no frames, hook UINT32_MAX and cut MW_STACK_BROKEN.
 * When the sink's calls fail (memory) the tracker stays consistent: sums over stacks equal totals.
 */
#ifndef MW_TRACK_TRACK_H
#define MW_TRACK_TRACK_H

#include <memwatch/event.h>

struct mw_track;

struct mw_error *mw_track_create(struct mw_track **out) MW_MUST_CHECK;
void mw_track_destroy(struct mw_track *track);
/* The sink that feeds this tracker; good as long as it. */
struct mw_event_sink mw_track_sink(struct mw_track *track);
/* A mapping that was there before the window: its unmapping is AOFI of known size. */
struct mw_error *mw_track_before(struct mw_track *track, mw_addr start, mw_addr end) MW_MUST_CHECK;

/*
 * An interval of the window begins: all figures are about it from here on. Blocks that are live now were allocated
 * before it: what becomes of them counts as AOFI, with their bytes and under the stacks that allocated them; those that
 * are still live in the end are AOFO. Impacting, transient, sizes, peaks, lifetimes and series are of what is allocated
 * from now on. Events of the interval are those from now on; it ends with the last event that is fed. Errors: MEMORY.
 * Between BEGIN and END of a call the block is live: where the interval begins there it is AOFI with the END.
 * Mappings from before the window (mw_track_before()) are no blocks: AOFI when they go, but never AOFO.
 */
struct mw_error *mw_track_interval(struct mw_track *track, uint64_t begin_ns) MW_MUST_CHECK;

/*
 * The window is over, and frees are still recorded, but no new blocks: all figures stay as they are. A block that is
 * live now, and is freed, unmapped, or moved by realloc or mremap, counts in settled_later, once, and is marked; it is
 * still impacting. Its address may be used again by blocks that nobody tells of: what becomes of these counts nothing.
 * The sink does not know a block any more that is marked. Once is enough. Errors: MEMORY.
 */
struct mw_error *mw_track_settle(struct mw_track *track) MW_MUST_CHECK;

/* A block, or a piece of one, that went inside the interval, or is there at its end. */
struct mw_track_fate {
	mw_addr addr;
	uint64_t bytes; /* that went, or are still there; MW_SIZE_UNKNOWN: of before the window */
	/* What was asked for when the block was allocated, in all its fates; MW_SIZE_UNKNOWN as above. Of mappings from
	 * before the window what one call takes of them is a block. */
	uint64_t size;
	/* MW_TIME_UNKNOWN: before the window; not by the interval's end. What was between BEGIN and END of a call when
	 * the interval began died before that, at the BEGIN. */
	uint64_t born_ns, died_ns;
	/* Where it came to be and went among the events, by which intervals are cut: the latest time of the events up
	 * to that one. MW_TIME_UNKNOWN where it did not, or that is not known; of what is older since_ns means
	 * nothing. */
	uint64_t since_ns, until_ns;
	uint32_t stack;  /* that allocated it, or that freed it where that is not known; may be MW_STACK_NONE */
	uint32_t thread; /* that allocated it; UINT32_MAX: not known */
	uint32_t block; /* of a mapping that is still there: its number, the same for all its pieces; else UINT32_MAX */
	enum mw_kind kind;
	/* Allocated before the interval: its place among the events says so, times may be the same on both sides. */
	bool older;
	/* The block is no more, or this is its only or first piece that is there: counts as one block. Of what one call
	 * takes of the mappings from before the window the first piece. */
	bool last;
	/* It was there at the end, and has been freed since (mw_track_settle()). */
	bool settled;
	bool pymalloc; /* it is of CPython's allocator: the tracker does not know, and who takes a fate may say so */
	/* Where blocks are sampled: how many others it stands for, and the variance of that. */
	uint64_t others;
	double variance;
};

#define MW_TIME_UNKNOWN UINT64_MAX

/*
 * Call `fate` for all that goes from now on (a realloc of the same block in place is an end and a birth); NULL: no
 * more. What has died between BEGIN and END of a call is reported at the END. Blocks from before the interval are
 * reported as well. `fate` may not call the tracker.
 */
void mw_track_watch(struct mw_track *track, void (*fate)(void *context, const struct mw_track_fate *fate),
		    void *context);
/* Call `born` for each block that comes to be from now on, as a survivor of that moment, after what the same event ends;
 * NULL: no more. It may not call the tracker. */
void mw_track_watch_births(struct mw_track *track, void (*born)(void *context, const struct mw_track_fate *block),
			   void *context);
/* Call `visit` for all that is there now, blocks from before the interval as well, until it returns false; in no order. What
 * is between BEGIN and END is there. `visit` may not call this or mw_track_each_block(). */
void mw_track_each_survivor(const struct mw_track *track,
			    bool (*visit)(void *context, const struct mw_track_fate *fate), void *context);

/*
 * Impacting bytes over time: `count` values (at most MW_SERIES_MAX), the first at begin_ns + step_ns, one every
 * step_ns. The step is 1 ms at first, and doubles whenever there would be more values: from MW_SERIES_MAX / 2 on there
 * are always so many. A moment's value is of the events before the first that does not come before it: what is
 * impacting at the end of an interval that ends there. Which moments they are of depends on the interval's begin and
 * the events' times alone.
 */
#define MW_SERIES_MAX 64u
struct mw_track_series {
	uint64_t begin_ns, step_ns;
	uint32_t count;
	float bytes[MW_SERIES_MAX];
};
/* Of a stack, up to `end_ns`, which is not before the last event. */
void mw_track_stack_series(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_series *out);

/* How many blocks of the stack have been allocated, over time. */
void mw_track_stack_births(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_series *out);

/* How many of them are outstanding, over time. Where some were freed it is estimated by the mean size of what is outstanding at
 * the end, which is not nothing. */
void mw_track_stack_left(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_series *out);

/* What new blocks of a stack took the place of (replaced.h). Where they took none (`count` is 0), as its calls only free: what
 * these freed of older blocks, `older` with the bytes of those whose size is known, and `series` of older.count. */
struct mw_track_replaced {
	uint64_t count, larger;        /* blocks of any age, and where the new block was larger */
	struct mw_amount older;        /* of these from before the window; of unknown sizes the new block's */
	uint64_t unknown;              /* of older.count, with unknown size */
	uint64_t ambiguous;            /* of older.count, where another stack's block could have taken the place */
	struct mw_track_series series; /* of older.bytes over time */
};
/* False where they took no place. */
bool mw_track_stack_replaced(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_replaced *out);
/* Whose blocks from before the window the calls of a stack freed (replaced.h); MW_STACK_NONE: not clear, or none. */
struct mw_track_kin {
	uint32_t owner; /* allocates such blocks in the same function, or for the same entries */
	uint32_t other; /* the same: allocates some of them, which owner does not */
	uint32_t
		fewest; /* of entries: whose calls freed the part of which fewest are left over, of what came less what went */
};
/* By stack. The caller frees it. Errors: MEMORY. */
struct mw_error *mw_track_find_kin(const struct mw_track *track, struct mw_track_kin **out) MW_MUST_CHECK;
/* Usable bytes of heap blocks of a class of sizes (mw_size_class() in replaced.h) that have been allocated and freed, over
 * time; of class 0, whose sizes are not known, blocks. */
struct mw_track_class_flow {
	struct mw_track_series born, gone;
	struct mw_track_series older; /* of those gone: allocated before the interval */
	uint32_t alike;               /* classes of the same number are alike: older blocks of one can be another's */
};
/* False: none. */
bool mw_track_class_flow(const struct mw_track *track, uint32_t size_class, uint64_t end_ns,
			 struct mw_track_class_flow *out);

struct mw_track_peak {
	struct mw_amount amount;
	uint64_t at_ns;
};

struct mw_track_totals {
	/* size = impacting + transient, in count and bytes, always */
	struct mw_amount size, impacting, transient, aofi;
	uint64_t aofi_unknown;     /* of aofi.count, with unknown size */
	struct mw_amount aofo;     /* of blocks that the tracker knows: allocated before the interval, and still live */
	struct mw_track_peak peak; /* of impacting, by bytes; the first moment of the highest */
	struct mw_amount settled_later; /* of impacting: freed after the window */
	struct mw_spreads spreads;      /* of the heap, where its blocks are sampled */
};

/* Lifetimes of freed blocks, from a mergeable log-scale histogram (histogram.h); relative error at most 5 %
 * (min and max exact). Quantiles by nearest rank. */
struct mw_track_lifetime {
	uint64_t count, min_ns, median_ns, p99_ns, max_ns;
};

void mw_track_totals(const struct mw_track *track, enum mw_kind kind, struct mw_track_totals *out);
/* How many events proved that an earlier one was missed (blocks of which only that much is known: they ended). */
uint64_t mw_track_missed(const struct mw_track *track);

uint32_t mw_track_stack_count(const struct mw_track *track);
struct mw_track_stack {
	enum mw_kind kind;
	uint32_t hook;
	enum mw_stack_cut cut;
	uint32_t frame_count;
	struct mw_track_totals totals;
	struct mw_track_lifetime lifetime; /* count 0: none freed */
};
void mw_track_stack(const struct mw_track *track, uint32_t id, struct mw_track_stack *out);
/* The entry point that it ends in. */
uint32_t mw_track_stack_hook(const struct mw_track *track, uint32_t id);
/* The same of many, quickly, for those who look again and again: of stack and thread 0 and those that follow, `count`
 * of them, which there must be. */
struct mw_track_sum {
	struct mw_amount impacting;
	uint64_t allocations;
	double variance; /* of impacting.bytes, where blocks are sampled */
};
void mw_track_stack_sums(const struct mw_track *track, struct mw_track_sum *out, uint32_t count);
void mw_track_thread_sums(const struct mw_track *track, struct mw_track_sum *out, uint32_t count);
/* What is known of the sampling of heap blocks; NULL: every one is recorded. Good until the next event. */
struct mw_sampling;
const struct mw_sampling *mw_track_sampling(const struct mw_track *track);
/* The largest interval that they were sampled with, bytes; 0: every one is recorded. */
uint64_t mw_track_sampled(const struct mw_track *track);
/* The latest time of all events until now. */
uint64_t mw_track_now(const struct mw_track *track);
struct mw_histogram;
/* The lifetimes of a stack; good until the next event. */
const struct mw_histogram *mw_track_stack_lifetimes(const struct mw_track *track, uint32_t id);
/* The lifetimes of all that was freed of several stacks, as exact as those of one. Errors: MEMORY. */
struct mw_error *mw_track_lifetime(const struct mw_track *track, const uint32_t *ids, size_t count,
				   struct mw_track_lifetime *out) MW_MUST_CHECK;
/* Copy up to `capacity` frames, innermost first; returns how many there are. */
uint32_t mw_track_frames(const struct mw_track *track, uint32_t id, struct mw_raw_frame *out, uint32_t capacity);

uint32_t mw_track_thread_count(const struct mw_track *track);
struct mw_track_thread {
	pid_t tid;
	const char *name;                            /* good as long as the tracker */
	struct mw_amount size, impacting, transient; /* heap and vm, without vm-internal */
	struct mw_spreads spreads;                   /* of its heap blocks, where these are sampled */
};
void mw_track_thread(const struct mw_track *track, uint32_t number, struct mw_track_thread *out);

/* A block that is live: allocated inside the interval and not (wholly) freed. */
struct mw_track_block {
	mw_addr addr;
	uint64_t bytes;   /* still there */
	uint64_t size;    /* asked for */
	uint64_t time_ns; /* when it came to be */
	uint32_t stack, thread;
	uint32_t number; /* as mw_track_fate.block */
	enum mw_kind kind;
	bool settled; /* as in mw_track_fate, and so the next two */
	uint64_t others;
	double variance;
};
/* Call `visit` for each live block in no order until it returns false. A vm block in pieces comes once a piece: only
 * the first has `first` set, for counting. Blocks between BEGIN and END are live. `visit` may not call this or
 * mw_track_each_survivor(). */
void mw_track_each_block(const struct mw_track *track,
			 bool (*visit)(void *context, const struct mw_track_block *block, bool first), void *context);

/* Bytes of memwatch's own memory behind the tables, room not yet used included: for live blocks, for stacks
 * (frames, histograms and series), for threads. */
struct mw_track_memory {
	uint64_t blocks, stacks, threads;
};
void mw_track_memory(const struct mw_track *track, struct mw_track_memory *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * drain.h: reads the rings that the recorder writes, puts their records in order of time, and tells the sink.
 *
 * Nothing here knows a process: it is tested with made-up rings. What it reads was written by the target, which may
 * write anything at any time: each record is copied once and then checked, and no value leads outside the geometry.
 *
 *   clock.c    time
 *   shared.c   the memory's layout
 *   drain.c    a round: what holds back what, and the merge by time; slots and rings come and go
 *   records.c  one ring: its records one by one, to events; calls that have begun and not ended
 *   stacks.c   stacks that are in rings, given to the sink
 */
#ifndef MW_ENGINE_JUMP_DRAIN_H
#define MW_ENGINE_JUMP_DRAIN_H

#include <memwatch/event.h>
#include <memwatch/ring.h>
#include <memwatch/unwind.h>

#include <stdbool.h>

/*
 * The clock: from the time stamp counter to nanoseconds since the window's start.
 *
 * Time is reckoned from the newest pair (tick, ns) by a rate. A new pair never makes time jump: it stands where the old
 * reckoning was at that tick, and the rate is such that what was wrong by then is made good until the next pair.
 */
struct jump_clock {
	uint64_t start_tick, start_ns; /* the window's start; ns of CLOCK_MONOTONIC */
	uint64_t known_tick,
		known_ns; /* the newest pair, ns since the window's start; what is later is reckoned from it */
	uint64_t rate;    /* ns a tick, 32 bits of fraction */
	uint64_t before_tick, before_ns, before_rate; /* the pair before: what lies between is reckoned from it */
	uint64_t measured_tick, measured_ns;          /* what the clocks said when the newest pair was taken */
};

/* Does the vDSO read CLOCK_MONOTONIC without a system call? On x86 it does so only where one formula turns every
 * processor's time stamp counter into the time: with the clock source tsc, but also in a virtual machine with kvm-clock or
 * Hyper-V's TSC page whose host vouches for them. False if that can't be found out. */
bool jump_clock_needs_no_call(void);
/* Can the time stamp counter be relied on, constant and synchronised, as /proc/cpuinfo and the kernel's list of clock
 * sources, or the vDSO, say? False with the reason (static text). */
bool jump_clock_judge(const char *cpuinfo, const char *sources, bool needs_no_call, const char **why);
uint64_t jump_clock_tick(void);
/* Measure the rate; takes about two milliseconds. The window begins now, too. */
void jump_clock_init(struct jump_clock *clock);
/* The window begins now. */
void jump_clock_start(struct jump_clock *clock);
/* Take another pair: to be called a few times a second, so that drift stays small. Times already given stay in order,
 * those from before the last two pairs but for a few nanoseconds. */
void jump_clock_adjust(struct jump_clock *clock);
/* Since the window's start; 0 for what was before. */
uint64_t jump_clock_ns(const struct jump_clock *clock, uint64_t tick);
/* How many ticks last that long. */
static inline uint64_t jump_clock_ticks(const struct jump_clock *clock, uint64_t ns)
{
	unsigned __int128 ticks = ((unsigned __int128)ns << 32) / clock->rate;

	return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

/* As jump_clock_adjust, with the clocks' readings as given; ns of CLOCK_MONOTONIC. */
void jump_clock_take(struct jump_clock *clock, uint64_t tick, uint64_t ns);

/* Where things are in the memory that is shared with a target (memwatch/ring.h), as memwatch laid it out: what the target
 * may write there since is not asked for it. */

/* So many stacks of a window may take the slow road, and beyond that one in JUMP_SLOW_SHARE: memwatch walks it at a
 * thousand times the cost of the recorder. */
#define JUMP_SLOW_FREE  64u
#define JUMP_SLOW_SHARE 100u

struct jump_geometry {
	uint32_t slot_count, ring_count, ring_units, queue_count, depth, stack_count, known_count, cache_count;
	uint32_t spare_rings;   /* beside one for each thread that there is */
	uint32_t script_frames; /* of an interpreter, kept at most; 0: there is none */
	/* Offsets; of the filter 0 where every block is recorded. */
	uint64_t slots, queue, scratch, memos, stacks, known, cache, script_ranges, tables_end, filter, dictionary,
		learned, rings;
	uint64_t dictionary_capacity; /* rows */
	uint64_t rows, rows_end;      /* space for rows and indices */
	uint64_t size;
};

struct jump_shared {
	uint8_t *base;
	struct jump_geometry geometry;
};

#define JUMP_SCRIPT_PYTHON     1u
#define JUMP_SCRIPT_JAVASCRIPT 2u

/* Plan the layout for a process with `threads` threads and `rows_bytes` of rows to begin with, and for four times as
 * many threads to come: at most 64 MiB of address space for 16. `sampling`: blocks are to be sampled. `scripts`: what
 * interpreters there are. `small`: it is one of many processes, and what is remembered for speed is
 * less: that takes 2 MiB of memory instead of 14 for one with a thread. */
void jump_geometry_plan(struct jump_geometry *geometry, size_t threads, uint32_t depth, uint64_t rows_bytes,
			bool sampling, unsigned scripts, bool small);
/* Write the control block of zeroed memory, and offer the first `rings` rings. */
void jump_shared_format(const struct jump_shared *shared, uint32_t rings);

static inline struct mw_ring_control *jump_control(const struct jump_shared *shared)
{
	return (struct mw_ring_control *)(void *)shared->base;
}

static inline struct mw_ring_slot *jump_slot(const struct jump_shared *shared, uint32_t number)
{
	return (struct mw_ring_slot *)(void *)(shared->base + shared->geometry.slots) + number;
}

static inline uint32_t *jump_queue(const struct jump_shared *shared)
{
	return (uint32_t *)(void *)(shared->base + shared->geometry.queue);
}

/* The first record of a ring. */
static inline struct mw_ring_record *jump_ring(const struct jump_shared *shared, uint32_t ring)
{
	return (struct mw_ring_record *)(void *)(shared->base + shared->geometry.rings) +
	       (uint64_t)ring * shared->geometry.ring_units;
}

/* What the drain asks of the engine. */
struct jump_drain_help {
	void *context;
	/* Which thread (as memwatch sees it) has number `tid` in the target's innermost namespace, and its name. What
	 * can't be found any more keeps its number, and is given the process's name; false then. */
	bool (*thread)(void *context, uint32_t tid, pid_t *out, char name[17]);
	/* The module that a call returns to at `pc` (so the one at pc - 1), or MW_MODULE_NONE. */
	uint32_t (*module)(void *context, mw_addr pc);
	/* Does a function begin at `pc` that nothing has called, though a stack leads there (mw_unwinder_ops)? NULL:
	 * that can't be said. */
	bool (*begins)(void *context, mw_addr pc, mw_addr inner);
	/* Walk from a SLOW record's registers; `bytes` stand at slow->start. At most `capacity` frames. */
	void (*walk)(void *context, const struct mw_ring_slow *slow, const uint8_t *bytes, size_t size,
		     struct mw_raw_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut);
	/* Look at a stack that the recorder has walked: it may have to be cut. NULL: none has. */
	void (*check)(void *context, struct mw_raw_frame *frames, uint32_t *count, enum mw_stack_cut *cut);
	/* The frame of HotSpot's interpreter that runs that. NULL: there is none. */
	struct mw_error *(*interpreted)(void *context, const struct mw_interpreted *interpreted,
					struct mw_raw_frame *frame);
	/* Name what only the process can name: as mw_java_name(). NULL: there is nothing. */
	struct mw_error *(*name)(void *context, const struct mw_raw_stack *native, struct mw_raw_frame *out,
				 uint32_t capacity, uint32_t *count, bool *truncated);
	/* Name frames that are a function's of JavaScript: as mw_v8_name(). NULL: there never are any. */
	void (*functions)(void *context, const struct mw_raw_stack *native, const struct mw_javascript *functions,
			  struct mw_raw_frame *out, uint32_t capacity, uint32_t *count, bool *truncated);
	/* Put the frames of an interpreter among the native ones: as mw_script_merge(). NULL: there never are any. */
	struct mw_error *(*script)(void *context, const struct mw_raw_stack *native, const struct mw_script_ref *refs,
				   uint32_t ref_count, struct mw_raw_frame *out, uint32_t capacity, uint32_t *count,
				   bool *truncated);
	/* Does a thread of that number still live? */
	bool (*thread_lives)(void *context, uint32_t tid);
	/* Give `count` rings from number `first` on their memory, before they are offered; false: they can't have it
	 * now. Rings come in order, each once. NULL: all have it. */
	bool (*fill)(void *context, uint32_t first, uint32_t count);
};

/* Counts that the target keeps are reported up to this, which is what a double, and so JSON, can hold exactly. */
#define JUMP_MOST_COUNTED ((UINT64_C(1) << 53) - 1)

struct jump_drain_stats {
	uint64_t events;
	uint64_t lost_events, lost_stacks; /* by the recorder's own count */
	uint64_t bad_records;              /* that was invalid: counted as lost */
	uint64_t walks, slow_walks;        /* stacks captured; by the slow road */
	uint64_t waited;                   /* ticks that threads waited for room */
	uint64_t spent;                    /* … that they were in the recorder, while blocks are sampled */
	uint64_t broken_stacks;
	uint64_t overtaken;           /* times that a thread was not waited for: order was not kept */
	uint64_t compared, differing; /* stacks captured in both ways; those that were not the same */
};

/* How long a thread that is about to record may hold back what is later while a ring is nearly full (ten times that
 * while none is). The recorder's wait_limit must be well above it. */
#define JUMP_HOLD_NS UINT64_C(100000000)

#define JUMP_BATCH       256u
#define JUMP_OPEN_CALLS  64u
#define JUMP_DIFFERENCES 32u
#define JUMP_NO_THREAD   UINT32_MAX
#define JUMP_SPARE_RINGS 32u
#define JUMP_WAIT_STEPS  20u
#define JUMP_MOST_AHEAD  16u /* rings: more than that a thread can't have reserved */

/* Stack ids are dense: numbers from one counter. (The list of chunks takes long to make for so short a life as a
 * fuzzer's.) */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define JUMP_STACK_CHUNK_BITS 18
#else
#define JUMP_STACK_CHUNK_BITS 12
#endif
#define JUMP_STACK_CHUNK  (1u << JUMP_STACK_CHUNK_BITS)
#define JUMP_STACK_CHUNKS (1u << (32 - JUMP_STACK_CHUNK_BITS))

enum jump_reader_state {
	JUMP_READER_UNUSED,  /* never offered */
	JUMP_READER_OFFERED, /* in the queue, or taken and not seen in a slot yet */
	JUMP_READER_ATTACHED,
};

/* A call that has begun. */
struct jump_open_call {
	uint64_t addr, size;
	uint8_t begin; /* enum mw_event_type */
	uint8_t kind;
	bool unreported; /* its block was not sampled */
};

/* A stack by rows that its walk is to be compared with. */
struct jump_compared_stack {
	bool waiting;
	uint32_t id, hook, count, cut;
	mw_addr frames[];
};

struct jump_reader {
	struct mw_ring_record *units;
	struct mw_ring_slot *slot;        /* NULL: none */
	uint64_t read, published;         /* units */
	uint64_t end;                     /* what may be read of in this round */
	uint64_t last;                    /* time stamp of the last record; a record's is never less */
	uint64_t awaited;                 /* jump_drain_await(): to be read up to here */
	uint64_t begun, first;            /* the round began at this unit, and it had that time stamp */
	uint64_t held_at, held_since;     /* the unit that was not marked when the time stamp counter was … */
	uint64_t waited[JUMP_WAIT_STEPS]; /* ticks that it had waited for room by a step (jump_drain_waited()) */
	uint32_t number;
	uint32_t thread; /* the sink's, or JUMP_NO_THREAD */
	uint32_t tid;    /* as the recorder says */
	pid_t pid;       /* as memwatch does */
	uint8_t state;
	bool searching; /* what was read was invalid: units are skipped until something does */
	bool more;      /* units beyond `end` are reserved: they wait for room */
	bool dead;      /* the thread has ended: what is not marked will never be */
	bool overtaken; /* it has held back others for too long */
	uint32_t open_count;
	size_t open_capacity;
	struct jump_open_call *open;
	struct jump_compared_stack *compared;
};

/* The rings that have something to read, the one with the least time first (binary heap). */
struct jump_next {
	uint64_t time;
	struct jump_reader *reader;
};

struct jump_stacks {
	uint32_t **chunks; /* by id: 0, or what pack() of stacks.c makes of the sink's */
	uint64_t seen, chunk_count;
};

struct jump_drain {
	const struct jump_shared *shared;
	struct jump_clock *clock;
	struct mw_event_sink sink;
	struct jump_drain_help help;
	struct jump_drain_stats stats;   /* what the drain itself counts */
	struct jump_drain_stats retired; /* what slots had counted that are no more */
	struct jump_drain_stats sum;     /* of these and what the slots have */
	struct mw_error *failure;        /* of what could not say so; told by the next round */

	struct jump_reader *readers; /* by ring number */
	struct jump_reader **active; /* attached ones */
	uint32_t active_count;
	struct jump_next *heap;
	uint32_t heap_count;
	uint32_t units_mask, units_shift;
	uint32_t hooks; /* numbers below are good */

	/* Rings. */
	uint32_t next_ring;         /* the first that was never offered */
	uint64_t offered, attached; /* so far */

	/* The round. */
	uint64_t now, limit, latest;
	uint64_t margin, hold_ticks, longer_ticks;
	size_t budget;
	uint64_t walked, walk_limit, last_limit; /* ticks spent on walks; how many are to be, and in the last round */
	bool last_round;
	bool ref_cut;                /* of the frames at refs: there were more */
	uint32_t sought;             /* stacks that were looked for in this round */
	bool pressed;                /* a ring is nearly full */
	uint64_t fullest;            /* units in the ring that had most of them */
	uint64_t fill_ticks, filled; /* jump_drain_rest(); the time stamp counter when that was last made longer */

	uint64_t wait_step; /* the last one (jump_drain_waited()) */

	bool exact_before;  /* … and before all were recorded */
	uint16_t intervals; /* the greatest number of an interval that blocks are sampled with; 0: all are recorded */

	uint64_t emitted_ns; /* time of the last event */
	uint64_t end_ns;     /* … of the window's end, UINT64_MAX: not yet */
	mw_addr break_end;   /* rounded up to a page; 0: there is none */
	uint32_t batched;
	struct mw_event batch[JUMP_BATCH];

	struct jump_stacks stacks;
	uint8_t *payload; /* of the record at hand: as much as a ring holds */
	struct mw_raw_frame *frames, *merged;
	struct mw_script_ref *refs;      /* of the stack at hand: ref_count */
	struct mw_javascript *functions; /* that its frames are of */
	/* The first stacks that differ between rows and walk (MW_RING_COMPARE), as text for people. */
	char *differences[JUMP_DIFFERENCES];
	uint32_t difference_count, ref_count;
};

/*
 * Both shared and clock must outlive the drain; the memory is formatted, and no thread records yet. The clock's rate is
 * measured, its window may begin later. Errors: MEMORY.
 */
struct mw_error *jump_drain_create(const struct jump_shared *shared, struct jump_clock *clock,
				   const struct mw_event_sink *sink, const struct jump_drain_help *help,
				   struct jump_drain **out) MW_MUST_CHECK;
void jump_drain_destroy(struct jump_drain *drain);

/*
 * Read what has been recorded until now, in order, and tell the sink. What a thread is about to record with an earlier
 * time holds back what is later. `*events` is how many were reported. Errors: the sink's.
 */
struct mw_error *jump_drain_round(struct jump_drain *drain, size_t *events) MW_MUST_CHECK;
/*
 * Tell the sink the stacks of all records, those that are held back as well: before modules that they pass through are
 * forgotten. Errors: the sink's; MEMORY.
 */
struct mw_error *jump_drain_stacks(struct jump_drain *drain) MW_MUST_CHECK;
/* How long a thread takes to fill a quarter of its ring while it runs and does little else, as was seen in the last
 * moments; UINT64_MAX: none does. */
static inline uint64_t jump_drain_rest(const struct jump_drain *drain)
{
	return drain->fill_ticks == UINT64_MAX
		       ? UINT64_MAX
		       : (uint64_t)(((unsigned __int128)drain->fill_ticks * drain->clock->rate) >> 32);
}

/*
 * Nothing is recorded any more but by calls that are on their way: the window ends `ns` after its beginning, or where
 * the last event was reported that is later, which is returned. What those calls tell has been no later.
 */
static inline uint64_t jump_drain_end(struct jump_drain *drain, uint64_t ns)
{
	drain->end_ns = ns > drain->emitted_ns ? ns : drain->emitted_ns;
	return drain->end_ns;
}

#define JUMP_SAMPLED_NS UINT64_C(500000) /* jump_drain_rest() at first, where blocks are sampled from the beginning */

/* Blocks are sampled from now on, and were not in what was recorded `before`: intervals have numbers up to this one. */
static inline void jump_drain_sampling(struct jump_drain *drain, uint16_t number, bool before)
{
	if (!before && !drain->intervals)
		drain->fill_ticks = jump_clock_ticks(drain->clock, JUMP_SAMPLED_NS);
	drain->exact_before |= before;
	if (number > drain->intervals)
		drain->intervals = number;
}

/* How long, in the JUMP_WAIT_STEPS steps before this one, has the thread waited for room that has waited most, in ticks? `step`
 * is a number that grows with time: steps may be left out, and then what was waited counts as of the last one. */
uint64_t jump_drain_waited(struct jump_drain *drain, uint64_t step);

/* What threads have waited until now does not count. */
void jump_drain_forgive(struct jump_drain *drain);

/* All that the recorder counts as it works: as long as that is the same nothing has come from it. */
uint64_t jump_drain_counted(const struct jump_drain *drain);
/* … what of it is not recording: threads have come, ask for something, wait for the loader's news to be heard, or end. */
uint64_t jump_drain_asked(const struct jump_drain *drain);

/* Wait until all is read that is recorded now; is it? */
void jump_drain_await(struct jump_drain *drain);
bool jump_drain_caught_up(const struct jump_drain *drain);

/* The last rounds: no thread records any more (or it does not matter); everything is read, calls that have begun and
 * not ended are told to have failed. */
struct mw_error *jump_drain_finish(struct jump_drain *drain) MW_MUST_CHECK;
/* Threads that have ended give back their slots and rings; rings are offered anew, more than are taken. To be called
 * every now and then (it looks at every slot). */
void jump_drain_tidy(struct jump_drain *drain);
/* Tell the sink the names of threads anew. */
struct mw_error *jump_drain_rename(struct jump_drain *drain) MW_MUST_CHECK;

/* As of now: it looks at every slot. Good until the next call. */
const struct jump_drain_stats *jump_drain_stats(struct jump_drain *drain);

/* Was so much of any ring full at the last round that there should be another at once? */
static inline bool jump_drain_hurries(const struct jump_drain *drain)
{
	return drain->fullest > drain->shared->geometry.ring_units / 8;
}

/* Were there so few records that rings fill slowly? */
static inline bool jump_drain_trickles(const struct jump_drain *drain)
{
	return drain->fullest <= drain->shared->geometry.ring_units / 64;
}

/* Say to the thread what is read. */
static inline void jump_reader_publish(struct jump_reader *reader)
{
	if (reader->published == reader->read)
		return;
	__atomic_store_n(&reader->slot->drained, reader->read, __ATOMIC_RELEASE);
	reader->published = reader->read;
}

/* records.c */
struct mw_error *jump_drain_flush(struct jump_drain *drain) MW_MUST_CHECK;
/* The thread is gone, or its window is over: what it began has failed. */
struct mw_error *jump_calls_cancel(struct jump_drain *drain, struct jump_reader *reader) MW_MUST_CHECK;

enum jump_run {
	JUMP_RUN_EMPTY,  /* all is read */
	JUMP_RUN_HELD,   /* the next record is not marked yet */
	JUMP_RUN_LATER,  /* its time is *next, and later than the limit */
	JUMP_RUN_BUDGET, /* enough for this round */
};

/* Tell what a ring holds up to the time `limit`. */
struct mw_error *jump_reader_run(struct jump_drain *drain, struct jump_reader *reader, uint64_t limit,
				 enum jump_run *state, uint64_t *next) MW_MUST_CHECK;

/* stacks.c: the stacks that all rings hold. Errors: the sink's; MEMORY. */
struct mw_error *jump_stacks_take_early(struct jump_drain *drain) MW_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * drain_state.h: what the parts of the drain share.
 *
 *   drain.c    a round: what holds back what, and the merge by time; slots and rings come and go
 *   records.c  one ring: its records one by one, to events; calls that have begun and not ended
 *   stacks.c   from the recorder's numbers of stacks to the sink's
 */
#ifndef MW_ENGINE_JUMP_DRAIN_STATE_H
#define MW_ENGINE_JUMP_DRAIN_STATE_H

#include "engine/jump/drain_types.h"

#define JUMP_BATCH       256u
#define JUMP_OPEN_CALLS  64u
#define JUMP_DIFFERENCES 32u
#define JUMP_NO_THREAD   UINT32_MAX
#define JUMP_SPARE_RINGS 32u

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
};

/* A stack by rows that its walk is to be compared with. */
struct jump_compared_stack {
	bool waiting;
	uint32_t id, hook, count, cut;
	mw_addr frames[];
};

struct jump_reader {
	struct mw_ring_record *units;
	struct mw_ring_slot *slot;    /* NULL: none */
	uint64_t read, published;     /* units */
	uint64_t end;                 /* what may be read of in this round */
	uint64_t last;                /* time stamp of the last record; a record's is never less */
	uint64_t held_at, held_since; /* the unit that was not marked when the time stamp counter was … */
	uint32_t number;
	uint32_t thread; /* the sink's, or JUMP_NO_THREAD */
	uint32_t tid;    /* as the recorder says */
	pid_t pid;       /* as memwatch does */
	uint8_t state;
	bool searching; /* what was read made no sense: units are skipped until something does */
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
	uint32_t **chunks; /* by id: 0, or what jump_stack_pack() makes of the sink's */
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
	uint32_t hooks;

	/* Rings. */
	uint32_t next_ring;         /* the first that was never offered */
	uint64_t offered, attached; /* so far */

	/* The round. */
	uint64_t now, limit, latest;
	uint64_t margin, hold_ticks;
	size_t budget;
	uint64_t walked, walk_limit, last_limit; /* ticks spent on walks; how many are to be, and in the last round */
	bool last_round;
	uint32_t sought;  /* stacks that were looked for in this round */
	bool pressed;     /* a ring is nearly full */
	uint64_t fullest; /* units in the ring that had most of them */

	uint64_t emitted_ns; /* time of the last event */
	uint64_t end_ns;     /* … of the window's end, UINT64_MAX: not yet */
	mw_addr break_end;
	uint32_t batched;
	struct mw_event batch[JUMP_BATCH];

	struct jump_stacks stacks;
	uint8_t *payload; /* of the record at hand: as much as a ring holds */
	struct mw_raw_frame *frames;
	char *differences[JUMP_DIFFERENCES];
	uint32_t difference_count;
};

/* drain.c */
struct mw_error *jump_drain_flush(struct jump_drain *drain) MW_MUST_CHECK;

static inline struct mw_error *jump_drain_emit(struct jump_drain *drain, const struct jump_reader *reader,
					       const struct mw_event *event)
{
	drain->batch[drain->batched] = *event;
	drain->batch[drain->batched].thread = reader->thread;
	drain->stats.events++;
	return ++drain->batched == JUMP_BATCH ? jump_drain_flush(drain) : NULL;
}

/* Never less than what was reported before, nor later than the window. */
static inline uint64_t jump_drain_ns(struct jump_drain *drain, uint64_t tick)
{
	uint64_t ns = jump_clock_ns(drain->clock, tick);

	if (ns > drain->end_ns)
		ns = drain->end_ns;
	if (ns > drain->emitted_ns)
		drain->emitted_ns = ns;
	return drain->emitted_ns;
}

/* reader.c */
enum jump_run {
	JUMP_RUN_EMPTY,  /* all is read */
	JUMP_RUN_HELD,   /* the next record is not marked yet */
	JUMP_RUN_LATER,  /* its time is *next, and later than the limit */
	JUMP_RUN_BUDGET, /* enough for this round */
};

/* Tell what a ring holds up to the time `limit`. */
struct mw_error *jump_reader_run(struct jump_drain *drain, struct jump_reader *reader, uint64_t limit,
				 enum jump_run *state, uint64_t *next) MW_MUST_CHECK;
/* See how far a ring may be read. */
void jump_reader_look(struct jump_drain *drain, struct jump_reader *reader);
/* Say to the thread what is read. */
void jump_reader_publish(struct jump_reader *reader);
/* Copy `units` units of the ring from number `from` on to drain->payload. */
void jump_reader_payload(struct jump_drain *drain, const struct jump_reader *reader, uint64_t from, uint64_t units);
/* Find the record of stack `id` among those that are to be read: a copy of it, and its first unit. */
bool jump_reader_find_stack(const struct jump_drain *drain, const struct jump_reader *reader, uint32_t id,
			    struct mw_ring_record *record, uint64_t *unit);

/* records.c */
/* How many units a record has, of `room` that there may be at most; 0 where it makes no sense. */
uint64_t jump_record_units(const struct jump_drain *drain, const struct mw_ring_record *record, uint64_t room);
enum mw_kind jump_record_kind(uint64_t mark);
/* The thread is gone, or its window is over: what it began has failed. */
struct mw_error *jump_calls_cancel(struct jump_drain *drain, struct jump_reader *reader) MW_MUST_CHECK;

/* stacks.c */
/* Errors: MEMORY. */
struct mw_error *jump_stacks_init(struct jump_stacks *stacks) MW_MUST_CHECK;
void jump_stacks_deinit(struct jump_stacks *stacks);
/* `drain->payload` holds `count` return addresses. False in `*good`: such an id can't be. */
struct mw_error *jump_stack_rows(struct jump_drain *drain, struct jump_reader *reader, uint64_t mark, uint32_t id,
				 uint32_t count, uint32_t cut, bool *good) MW_MUST_CHECK;
/* `drain->payload` holds `size` bytes: struct mw_ring_slow and what follows. */
struct mw_error *jump_stack_slow(struct jump_drain *drain, struct jump_reader *reader, uint64_t mark, uint32_t id,
				 size_t size, bool *good) MW_MUST_CHECK;

/*
 * A thread may have found the number of a stack that another has just walked, and have read the time before: processors
 * do the one while they wait for the other. So the event comes before the stack, which is looked for in what the rings
 * hold, and reported. Its entry, as jump_stack_pack() makes it, less 1; UINT32_MAX: it is nowhere.
 */
uint32_t jump_stack_missing(struct jump_drain *drain, uint32_t id);

#define JUMP_STACK_BROKEN 4u

static inline uint32_t jump_stack_pack(uint32_t stack, enum mw_kind kind, bool broken)
{
	return ((stack << 3) | (broken ? JUMP_STACK_BROKEN : 0) | (uint32_t)kind) + 1;
}

/* The sink's number of a stack of that kind. `captured`: it was captured for this event. */
static inline uint32_t jump_stack_of(struct jump_drain *drain, uint32_t id, enum mw_kind kind, bool captured)
{
	const uint32_t *chunk;
	uint32_t packed;

	if (id == MW_RING_STACK_NONE)
		return MW_STACK_NONE;
	chunk = drain->stacks.chunks[id >> JUMP_STACK_CHUNK_BITS];
	packed = (chunk ? chunk[id % JUMP_STACK_CHUNK] : 0) - 1;
	if (__builtin_expect(packed == UINT32_MAX, 0))
		packed = jump_stack_missing(drain, id);
	if (packed == UINT32_MAX || (packed & 3) != (uint32_t)kind) {
		drain->stats.lost_stacks++;
		return MW_STACK_NONE;
	}
	drain->stats.broken_stacks += captured && packed & JUMP_STACK_BROKEN;
	return packed >> 3;
}

#endif

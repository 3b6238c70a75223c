/* SPDX-License-Identifier: MIT */
/*
 * drain.h: reads the rings that the recorder writes, puts their records in order of time, and tells the sink.
 *
 * Nothing here knows a process: it is tested with made-up rings. What it reads was written by the target, which may
 * write anything at any time: each record is copied once and then checked, and no value leads outside the geometry.
 */
#ifndef MW_ENGINE_JUMP_DRAIN_H
#define MW_ENGINE_JUMP_DRAIN_H

#include "engine/jump/clock.h"
#include "engine/jump/shared.h"

#include <memwatch/event.h>

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
	/* Does a thread of that number still live? */
	bool (*thread_lives)(void *context, uint32_t tid);
	/* Give `count` rings from number `first` on their memory, before they are offered; false: they can't have it
	 * now. Rings come in order, each once. NULL: all have it. */
	bool (*fill)(void *context, uint32_t first, uint32_t count);
};

/* Counts that the target keeps are told up to this, which is what a double, and so JSON, can hold exactly. */
#define JUMP_MOST_COUNTED ((UINT64_C(1) << 53) - 1)

struct jump_drain_stats {
	uint64_t events;
	uint64_t lost_events, lost_stacks; /* by the recorder's own count */
	uint64_t bad_records;              /* that made no sense: counted as lost */
	uint64_t walks, slow_walks;        /* stacks captured; by the slow road */
	uint64_t waited;                   /* ticks that threads waited for room */
	uint64_t broken_stacks;
	uint64_t overtaken;           /* times that a thread was not waited for: order was not kept */
	uint64_t compared, differing; /* stacks captured in both ways; those that were not the same */
};

/* How long a thread that is about to record may hold back what is later while a ring is nearly full (ten times that
 * while none is). The recorder's wait_limit must be well above it. */
#define JUMP_HOLD_NS UINT64_C(100000000)

struct jump_drain;

/*
 * Both shared and clock must outlive the drain; the memory is formatted, and no thread records yet. The clock's rate is
 * measured, its window may begin later. Errors: MEMORY.
 */
struct mw_error *jump_drain_create(const struct jump_shared *shared, struct jump_clock *clock,
				   const struct mw_event_sink *sink, const struct jump_drain_help *help,
				   struct jump_drain **out) MW_MUST_CHECK;
void jump_drain_destroy(struct jump_drain *drain);
/* The break at the window's start, rounded up to a page; 0 where there is none. */
void jump_drain_set_break(struct jump_drain *drain, mw_addr end);
/* Hook numbers less than `count` are good. */
void jump_drain_hooks(struct jump_drain *drain, uint32_t count);

/*
 * Read what has been recorded until now, in order, and tell the sink. What a thread is about to record with an earlier
 * time holds back what is later. `*events` is how many were told. Errors: the sink's.
 */
struct mw_error *jump_drain_round(struct jump_drain *drain, size_t *events) MW_MUST_CHECK;
/* How long until a quarter of a ring is full, where they go on to fill as they did in the last `elapsed_ns`. */
uint64_t jump_drain_rest(const struct jump_drain *drain, uint64_t elapsed_ns);
/* Was so much of any ring full at the last round that there should be another at once? */
bool jump_drain_hurries(const struct jump_drain *drain);
/*
 * Nothing is recorded any more but by calls that are on their way: the window ends `ns` after its beginning, or where
 * the last event was told that is later, which is returned. What those calls tell has been no later.
 */
uint64_t jump_drain_end(struct jump_drain *drain, uint64_t ns);
/* When the last event was that was told. */
uint64_t jump_drain_told(const struct jump_drain *drain);
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
/* The first stacks that differ between rows and walk (MW_RING_COMPARE), as text for people. Good until the next round.
 */
size_t jump_drain_differences(const struct jump_drain *drain, const char *const **out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * drain.h: reads the rings that the recorder writes, puts their records in order of time, and tells the sink.
 *
 * Nothing here knows a process: it is tested with made-up rings. What it reads was written by the target, which may
 * write anything at any time: each record is copied once and then checked, and no value leads outside the geometry.
 */
#ifndef MW_ENGINE_JUMP_DRAIN_H
#define MW_ENGINE_JUMP_DRAIN_H

#include "engine/jump/drain_types.h"

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
 * time holds back what is later. `*events` is how many were reported. Errors: the sink's.
 */
struct mw_error *jump_drain_round(struct jump_drain *drain, size_t *events) MW_MUST_CHECK;
/* How long until a quarter of a ring is full, where they go on to fill as they did in the last `elapsed_ns`. */
uint64_t jump_drain_rest(const struct jump_drain *drain, uint64_t elapsed_ns);
/* Was so much of any ring full at the last round that there should be another at once? */
bool jump_drain_hurries(const struct jump_drain *drain);
/*
 * Nothing is recorded any more but by calls that are on their way: the window ends `ns` after its beginning, or where
 * the last event was reported that is later, which is returned. What those calls tell has been no later.
 */
uint64_t jump_drain_end(struct jump_drain *drain, uint64_t ns);
/* When the last event was that was reported. */
uint64_t jump_drain_emitted(const struct jump_drain *drain);
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

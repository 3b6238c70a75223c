/* SPDX-License-Identifier: MIT */
/*
 * emitter.h: emits what becomes known of a process while it is watched, beside its events, to all receivers: the
 * model that its report is made from (view/watched.h), and the writer of its recording. They take it as they would take
 * it from a recording.
 */
#ifndef MW_SESSION_EMITTER_H
#define MW_SESSION_EMITTER_H

#include "base/index.h"
#include "session/recorder.h"
#include "store/store.h"
#include "view/frames.h"

#define MW_EMITTER_RECEIVERS 2

struct mw_emitter {
	uint32_t process; /* its number in a recording */
	struct mw_store_visitor receivers[MW_EMITTER_RECEIVERS];
	size_t receiver_count;
	size_t hooks, modules; /* that have been emitted */
	uint32_t runtimes;     /* that were found in modules, once the window is over */
	bool begun;            /* the address space at the window's start has been emitted */
	uint32_t marks;
	uint64_t every_ns; /* a mark; 0: none but those asked for */
	uint64_t next_ns;  /* when the next of these is due */
	uint64_t start_ns; /* the window's, CLOCK_MONOTONIC; 0: not known yet */
	size_t asked;      /* of the marks that were asked for, how many have been emitted */
	struct mw_view_symbols inner;
	struct mw_symbol_seen {
		mw_addr addr;
		uint32_t module;
	} * seen; /* return addresses that have been emitted */
	size_t seen_capacity;
	struct mw_index seen_index;
};

/* Before anything is emitted. */
void mw_emitter_add(struct mw_emitter *emitter, const struct mw_store_visitor *receiver);
/* Who the process is, and what is known of it: at the window's start, and again at its end. Errors: MEMORY. */
struct mw_error *mw_emitter_target(struct mw_emitter *emitter, const struct mw_recorder *recorder) MW_MUST_CHECK;
/* Hooks and modules that have come since. Once a second. Errors: MEMORY. */
struct mw_error *mw_emitter_news(struct mw_emitter *emitter, const struct mw_recorder *recorder) MW_MUST_CHECK;
/* What was mapped when the window began. Errors: MEMORY. */
struct mw_error *mw_emitter_before(const struct mw_emitter *emitter, mw_addr start, mw_addr end) MW_MUST_CHECK;
/* What follows are events of the settling time. Errors: MEMORY. */
struct mw_error *mw_emitter_settle(const struct mw_emitter *emitter) MW_MUST_CHECK;
/* Errors: MEMORY. */
struct mw_error *mw_emitter_sample(const struct mw_emitter *emitter,
				   const struct mw_stored_sample *sample) MW_MUST_CHECK;
/* What of the process is outstanding at that moment can be compared with other moments. Without memory it is forgotten.
 */
void mw_emitter_mark(struct mw_emitter *emitter, uint64_t time_ns);
/* The window is over, all samples are emitted. Errors: MEMORY. */
struct mw_error *mw_emitter_end(struct mw_emitter *emitter, const struct mw_recorder *recorder) MW_MUST_CHECK;
/* Symbols whose answers go to those who receive symbols; `inner` must outlive them, and the emitter. */
struct mw_view_symbols mw_emitter_symbols(struct mw_emitter *emitter, const struct mw_view_symbols *inner);
void mw_emitter_deinit(struct mw_emitter *emitter);

#endif

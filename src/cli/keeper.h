/* SPDX-License-Identifier: MIT */
/* keeper.h: what of one process goes into a recording, beside its events. */
#ifndef MW_CLI_KEEPER_H
#define MW_CLI_KEEPER_H

#include "cli/recorder.h"
#include "store/writer.h"
#include "view/source.h"

struct mw_keeper {
	struct mw_store_writer *writer; /* NULL: nothing is kept */
	uint32_t process;
	bool symbols;                   /* to be kept */
	size_t hooks, modules, samples; /* that have been told */
	bool begun;                     /* the address space at the window's start has been told */
	uint32_t marks;
	uint64_t every_ns; /* a mark; 0: none but those asked for */
	uint64_t next_ns;  /* when the next of these is due */
	uint64_t start_ns; /* the window's, CLOCK_MONOTONIC; 0: not known yet */
	size_t asked;      /* of the marks that were asked for, how many have been told */
	struct mw_view_symbols inner;
	struct mw_symbol_seen {
		mw_addr addr; /* 0: empty */
		uint32_t module;
	} * seen; /* return addresses that have been told: open addressing */
	size_t seen_count, seen_capacity;
};

/* Tell who the process is, and what is known of it: at the window's start, and again at its end. Errors: MEMORY. */
struct mw_error *mw_keeper_target(struct mw_keeper *keeper, const struct mw_recorder *recorder,
				  const struct mw_recorder_view *view) MW_MUST_CHECK;
/* Hooks, modules and samples that have come since, but for the newest sample, which may still change. What was told is
 * put on the disk. Once a second. Errors: MEMORY. */
struct mw_error *mw_keeper_news(struct mw_keeper *keeper, const struct mw_recorder *recorder,
				const struct mw_recorder_view *view) MW_MUST_CHECK;
/* A sample as recordings have it. */
struct mw_stored_sample mw_keeper_sample(const struct mw_report_sample *sample);
/* What of the process is outstanding at that moment can be compared with other moments. */
void mw_keeper_mark(struct mw_keeper *keeper, struct mw_recorder *recorder, uint64_t time_ns);
/* The window is over, all samples are taken. Errors: MEMORY. */
struct mw_error *mw_keeper_end(struct mw_keeper *keeper, const struct mw_recorder *recorder,
			       const struct mw_recorder_view *view) MW_MUST_CHECK;
/* Symbols that tell the recording what they answer; `inner` must outlive them, and the keeper. */
struct mw_view_symbols mw_keeper_symbols(struct mw_keeper *keeper, const struct mw_view_symbols *inner);
void mw_keeper_deinit(struct mw_keeper *keeper);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * watched.h: the model of a watched process, from which every report is made: what is known of it (metadata), its live
 * blocks (track), and what more is asked of it (collector). It receives the same whether a window is live or read from
 * a recording: by the visitor of a recording (store/reader.h), and events by a sink.
 */
#ifndef MW_VIEW_WATCHED_H
#define MW_VIEW_WATCHED_H

#include "view/collector.h"
#include "view/frames.h"
#include "view/summary.h"

struct mw_watched {
	struct mw_metadata metadata;
	struct mw_track *track;
	struct mw_event_sink sink;      /* the tracker's */
	struct mw_view_symbols symbols; /* no resolve: frames have no names */
	struct mw_code_regions regions; /* mw_watched_settle() */
	struct mw_collector collector;
	bool collects; /* there is a collector */
	bool timeline; /* … that draws one */
	/* For an interval, a tracker of all of the window: verdicts are about that (growth.h). NULL: `track` is. */
	struct mw_track *whole;
	uint32_t *whole_of; /* its numbers of stacks, by those of `track`; UINT32_MAX: it has none */
	size_t whole_count, whole_capacity;
	const struct mw_summary_leaks
		*leaks; /* what a look at the heap at the window's end says; NULL: there was none */
	const struct mw_summary_change
		*change;                    /* … and a look at its start, in comparison; NULL: there were not both */
	const struct mw_pool_memory *pools; /* how its blocks are read at the window's end; NULL: not */
	const char *cut;                    /* why the recording goes no further; NULL: it does not end early */
};

/* Forget all events. Errors: MEMORY. */
struct mw_error *mw_watched_renew(struct mw_watched *watched) MW_MUST_CHECK;
/* As it was when it was made: nothing is known of a process. Errors: MEMORY. */
struct mw_error *mw_watched_reset(struct mw_watched *watched) MW_MUST_CHECK;
/* More than the report is asked for, in an interval that is to begin by mw_collector_watch(). Errors: MEMORY. */
struct mw_error *mw_watched_collect(struct mw_watched *watched,
				    const struct mw_collector_options *options) MW_MUST_CHECK;
/* All metadata is received. Errors: MEMORY. */
struct mw_error *mw_watched_settle(struct mw_watched *watched) MW_MUST_CHECK;

/* What mw_summary_create() wants; borrows. */
void mw_watched_input(const struct mw_watched *watched, struct mw_summary_input *out);

/* The interval that the tracker's figures are of, and who is shown how far its report is; `progress` may be NULL. */
struct mw_watched_interval {
	uint64_t from_ns, to_ns;                                    /* to_ns past the window's end: up to that */
	void (*progress)(void *context, size_t done, size_t total); /* stacks */
	void *context;
};

/* Its report. Errors: MEMORY, those of the symbols. */
struct mw_error *mw_watched_report(struct mw_watched *watched, const struct mw_watched_interval *interval,
				   struct mw_report **out) MW_MUST_CHECK;
/* After its report: its timeline. Errors: MEMORY. */
struct mw_error *mw_watched_timeline(struct mw_watched *watched, const struct mw_watched_interval *interval,
				     struct mw_timeline **out) MW_MUST_CHECK;
/* After its report: what mw_views_create() wants; borrows. */
void mw_watched_view(struct mw_watched *watched, const struct mw_watched_interval *interval,
		     const struct mw_report *report, struct mw_view_process *out);

/* --- several --------------------------------------------------------------------------------------------- */

/* By the number that a recording has for them; they do not move. Zero-initialise. */
struct mw_watched_set {
	struct mw_watched **items;
	size_t count;
};

/* That number's; it and those before are made where they are new. Errors: MEMORY, DATA (no process has such a number).
 */
struct mw_error *mw_watched_set_get(struct mw_watched_set *set, uint32_t number, struct mw_watched **out) MW_MUST_CHECK;
void mw_watched_set_deinit(struct mw_watched_set *set);
/* Who takes metadata for them, as mw_watched_set_get() finds them. */
struct mw_store_visitor mw_watched_set_visitor(struct mw_watched_set *set);

#endif

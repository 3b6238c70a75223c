/* SPDX-License-Identifier: MIT */
/*
 * diff.h: the neutral comparison of two snapshots: what grew between them, before anything is said about how it looks.
 *
 * A snapshot is all that a recording knows to be outstanding at a moment, of one process. A comparison owns all its
 * strings and arrays (mw_diff_destroy frees them). Text is UTF-8 as the target had it; NULL is "unknown".
 */
#ifndef MEMWATCH_DIFF_H
#define MEMWATCH_DIFF_H

#include <memwatch/error.h>
#include <memwatch/view.h>

#include <stdio.h>

/* The two sides of a comparison. */
enum mw_diff_side { MW_DIFF_OLD, MW_DIFF_NEW, MW_DIFF_SIDES };

/* What a snapshot is of. */
struct mw_diff_snapshot {
	const char *file;   /* the recording's name */
	const char *moment; /* "start", "end", "mark 2 (deployed)"; NULL: no more than its time */
	pid_t pid;
	const char *comm, *exe;
	int64_t started_realtime_ns; /* CLOCK_REALTIME at the window's start; 0: unknown */
	double at;                   /* seconds since then */
	bool tracked[MW_KIND_COUNT]; /* kinds that were recorded */
	bool cut;                    /* the recording breaks off */
	uint64_t lost_events, lost_stacks;
	size_t not_hooked; /* entry points whose calls were not seen */
};

struct mw_diff_stack {
	char id[17];
	enum mw_kind kind;
	const char *api;        /* the entry point … */
	const char *api_module; /* … and where it lies */
	enum mw_stack_cut cut;
	enum mw_stack_end end;
	struct mw_report_frame *frames; /* from the newer snapshot where they are known, else from the older */
	size_t frame_count;
	struct mw_amount held[MW_DIFF_SIDES];
};

struct mw_diff {
	struct mw_diff_snapshot snapshots[MW_DIFF_SIDES];
	/* Was this kind recorded on both sides, and asked for? Nothing is said of others. */
	bool compared[MW_KIND_COUNT];
	struct mw_amount totals[MW_KIND_COUNT][MW_DIFF_SIDES]; /* of all stacks of the kind */
	/* All that one side or both hold: the largest growth of bytes first, then of count, then by id. */
	struct mw_diff_stack *stacks;
	size_t stack_count;
	/* Modules of the same path whose builds differ: stacks through them don't match. */
	const char **rebuilt;
	size_t rebuilt_count;
	void *arena; /* owns everything above; src/view's business */
};

void mw_diff_destroy(struct mw_diff *diff);

struct mw_diff_output_options {
	size_t top; /* at most so many stacks, where the form is for reading */
	bool all;   /* those as well that did not change, likewise */
};

/*
 * Write comparisons (one a process) as UMDH does, or as JSON (schema "memwatch.diff/1": one object, or "processes").
 * The caller flushes and closes; write errors stay in the stream (ferror). Errors: MEMORY.
 */
struct mw_error *mw_text_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_diff_output_options *options, FILE *stream) MW_MUST_CHECK;
struct mw_error *mw_json_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_diff_output_options *options, FILE *stream) MW_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * output.h: a format that reports and comparisons can be written in.
 *
 * An output renders one or more reports (one a process) to a stream. To add one: a file in src/output/ and its row in
 * the table of src/output/output.c. Its options, --help, the documents, and where its file goes, all come from that row.
 */
#ifndef MEMWATCH_OUTPUT_H
#define MEMWATCH_OUTPUT_H

#include <memwatch/diff.h>
#include <memwatch/error.h>
#include <memwatch/heap.h>
#include <memwatch/table.h>
#include <memwatch/timeline.h>
#include <memwatch/view.h>

#include <stdio.h>

#define MW_OUTPUTS_MAX 8 /* formats there can be */

/* What counts as a failure (--fail-on). Neither: nothing was said of it. */
struct mw_fail_on {
	bool leak;               /* what the text report calls LEAK and LOST */
	bool growth;             /* that and what it calls GROWS: all verdicts of growth */
	uint64_t bytes_per_hour; /* … where it is faster than that; 0: at any rate */
};

struct mw_output_options {
	size_t top;     /* at most so many stacks, where the format is for reading */
	unsigned width; /* columns, 0: unlimited */
	bool color;
	bool all; /* everything, where the format is for reading: not the answer and what it rests on alone; of a
		   * comparison, those stacks as well that did not change */
	enum mw_frames frames; /* default: all where `all` is set, and in comparisons */
	struct mw_fail_on
		fail_on;  /* what a format that has failures calls one; nothing said: all that leaks or grows */
	const char *root; /* the directory that files of the sources are named from; NULL: none */
	/* What else was asked of each report, in place of its stacks where the format is for reading; it, and each of
	 * it, may be NULL. */
	const struct mw_views *const *views;
	/* What became of blocks over time, one a report, for a format that lets it be looked at; it, and each of it, may
	 * be NULL. */
	const struct mw_timeline *const *timelines;
};

/* What is said of the option that asks for a format. */
struct mw_output_option {
	const char *help;  /* lines for --help; NULL: those of the next format's option are for both */
	const char *about; /* sentences for the manual; NULL: there is no such option */
};

struct mw_output {
	const char *name;  /* "json"; the option is --json FILE */
	bool reading;      /* for people: written to standard output where nothing else is, no option asks for it */
	bool timelines;    /* it shows timelines, and marks in them: these must be collected */
	const char *what;  /* "a JSON report": what a file of it is; NULL: no option asks for it */
	const char *media; /* its media type, of HTTP */
	/* Does a file that begins so hold a report or comparison that memwatch wrote in it? Without `what` NULL. */
	bool (*is_own)(const char *head, size_t size);
	struct mw_output_option of_reports, of_diffs, of_heaps;
	/* Write; the caller flushes and closes. Write errors stay in the stream (ferror). Errors: MEMORY. */
	struct mw_error *(*write)(const struct mw_report *const *reports, size_t count,
				  const struct mw_output_options *options, FILE *stream)MW_MUST_CHECK;
	/* Likewise a comparison a process; NULL: it has no form for them. */
	struct mw_error *(*write_diffs)(const struct mw_diff *const *diffs, size_t count,
					const struct mw_output_options *options, FILE *stream)MW_MUST_CHECK;
	/* Likewise a look at a heap. */
	struct mw_error *(*write_heap)(const struct mw_heap_report *heap, const struct mw_output_options *options,
				       FILE *stream)MW_MUST_CHECK;
	/* Likewise a comparison of two looks. */
	struct mw_error *(*write_heap_diff)(const struct mw_heap_diff *diff, const struct mw_output_options *options,
					    FILE *stream)MW_MUST_CHECK;
};

/* Those there are, each in a file of its own. */
extern const struct mw_output mw_output_json, mw_output_html, mw_output_junit, mw_output_sarif, mw_output_text;

/* In the order in which they are written; NULL past the last. */
const struct mw_output *mw_output_get(size_t number);

#endif

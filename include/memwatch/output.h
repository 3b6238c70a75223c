/* SPDX-License-Identifier: MIT */
/*
 * output.h: a form that a report can be written in.
 *
 * An output renders one or more reports (one a process) to a stream. To add one: a file in
 * src/output/ and its row in mw_output_find()'s table.
 */
#ifndef MEMWATCH_OUTPUT_H
#define MEMWATCH_OUTPUT_H

#include <memwatch/error.h>
#include <memwatch/table.h>
#include <memwatch/timeline.h>
#include <memwatch/view.h>

#include <stdio.h>

struct mw_output_options {
	size_t top;     /* at most so many stacks, where the form is for reading */
	unsigned width; /* columns, 0: unlimited */
	bool color;
	/* What else was asked of each report, in place of its stacks where the form is for reading; it, and each of it,
	 * may be NULL. */
	const struct mw_views *const *views;
	/* What became of blocks over time, one a report, for a form that lets it be looked at; it, and each of it, may
	 * be NULL. */
	const struct mw_timeline *const *timelines;
};

struct mw_output {
	const char *name; /* "text", "json", "html" */
	/* Write; the caller flushes and closes. Write errors stay in the stream (ferror). */
	struct mw_error *(*write)(const struct mw_report *const *reports, size_t count,
				  const struct mw_output_options *options, FILE *stream)MW_MUST_CHECK;
};

const struct mw_output *mw_output_find(const char *name);

#endif

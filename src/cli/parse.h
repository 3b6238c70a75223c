/* SPDX-License-Identifier: MIT */
/*
 * parse.h: the words of a command line to values. Pure: looks at nothing but its arguments.
 *
 * Every error is of kind USAGE and names the word, what is wrong with it and what would be right.
 */
#ifndef MW_CLI_PARSE_H
#define MW_CLI_PARSE_H

#include "session/options.h"
#include "view/views.h"

#include <memwatch/error.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Longest window: ten years. Shortest: a millisecond. */
#define MW_CLI_SECONDS_MAX 315360000.0
#define MW_CLI_SECONDS_MIN 0.001
#define MW_CLI_SIZE_MAX    9e18

/* What an option's value is, and where it goes. */
enum mw_cli_type {
	MW_CLI_TYPE_FLAG,       /* bool: no text */
	MW_CLI_TYPE_SECONDS,    /* uint64_t, ns: decimal seconds, with or without a fraction */
	MW_CLI_TYPE_MOMENT,     /* uint64_t, ns since the window's start: 0 is one too. Exact to the ns */
	MW_CLI_TYPE_MARK_EVERY, /* uint64_t, ns: as in 10 or 10s */
	MW_CLI_TYPE_SIZE,       /* uint64_t: bytes, or K, M, G or T of them, as in 1.5G */
	MW_CLI_TYPE_PERCENT,    /* uint32_t, millionths: above 0 and below 100 % */
	MW_CLI_TYPE_DEPTH,      /* uint32_t: frames */
	MW_CLI_TYPE_TOP,        /* size_t: stacks */
	MW_CLI_TYPE_PROCESS,    /* uint64_t: a process's place in a recording, from 1 */
	MW_CLI_TYPE_PIDS,       /* struct mw_pids: PID[,PID…], appended; those that are there are left out */
	MW_CLI_TYPE_TRACK,      /* struct mw_session_options: "heap", "vm", "heap,vm" */
	MW_CLI_TYPE_ENGINE,     /* struct mw_session_options: which, and why that one */
	MW_CLI_TYPE_KINDS,      /* bool[MW_KIND_COUNT] */
	MW_CLI_TYPE_FILE,       /* const char *: the name of a file to write to; "-" is one */
	MW_CLI_TYPE_OUTPUT,     /* const char *: likewise, that of a recording; "-" is none */
	MW_CLI_TYPE_TEXT,       /* const char *: anything but nothing */
	/* Into an enum mw_cli_action: whatever else stands on the line is not looked at. */
	MW_CLI_TYPE_HELP,
	MW_CLI_TYPE_VERSION,
	/* struct mw_cli_report_options */
	MW_CLI_TYPE_TO,
	MW_CLI_TYPE_AT,
	MW_CLI_TYPE_SYMBOLS,
	/* struct mw_cli_view_options. Errors of a filter: MEMORY, too */
	MW_CLI_TYPE_TYPE,
	MW_CLI_TYPE_BY,
	MW_CLI_TYPE_SORT,
	MW_CLI_TYPE_TREE,
	MW_CLI_TYPE_FILTER,
	MW_CLI_TYPE_BLOCKS,
};

/* `option` is what messages call it, as in "--top"; `member` is where the value goes, untouched on failure. */
struct mw_error *mw_cli_parse(enum mw_cli_type type, const char *option, const char *text, void *member) MW_MUST_CHECK;

/* The one of `words` (ends with NULL) with the fewest edits to `word`, or NULL where none is near. */
const char *mw_cli_nearest(const char *word, const char *const *words);

/* --- what of a recording is shown, and in what order ----------------------------------------------------------------- */

/* Zero-initialise; deinit frees. */
struct mw_cli_view_options {
	struct mw_view_question question; /* complete once finish() has been called */
	struct mw_filter *filter;
	bool has_type, has_sort;
};

/*
 * When all options are in: defaults, and what does not go together. Where something is to be shown but nothing says
 * how, it is stacks. Errors: USAGE.
 */
struct mw_error *mw_cli_view_options_finish(struct mw_cli_view_options *options, size_t top) MW_MUST_CHECK;
/* Is anything asked for beyond the report? */
bool mw_cli_view_options_any(const struct mw_cli_view_options *options);
void mw_cli_view_options_deinit(struct mw_cli_view_options *options);

#endif

/* SPDX-License-Identifier: MIT */
/* run.h: what the commands do, once their options are parsed. */
#ifndef MW_CLI_RUN_H
#define MW_CLI_RUN_H

#include "cli/options.h"
#include "view/metadata.h"

/*
 * Attach or launch, record the window, detach, report. NULL only if the window was recorded and
 * every output written. On failure every process runs on as before, and no output is there.
 */
struct mw_error *mw_cli_record(const struct mw_cli_options *options) MW_MUST_CHECK;
/* memwatch report. Errors: as exit statuses of the command line. */
struct mw_error *mw_cli_report(const struct mw_cli_options *options) MW_MUST_CHECK;
/* memwatch diff: what grew between two recordings, or between two moments of one. Errors: USAGE, SYSTEM, DATA, MEMORY;
 * nothing was written then. */
struct mw_error *mw_cli_diff(const struct mw_cli_options *options) MW_MUST_CHECK;

/* The moment of a recording that a word names. */
struct mw_cli_moment {
	uint64_t time_ns; /* MW_REPLAY_END: all that was recorded */
	char text[100];   /* "start", "end", "mark 2 (deployed)"; empty: no more than its time */
};

/*
 * `word` is one of these, the first that fits: start, end, a mark's number, a mark's name, seconds as in 12.5s.
 * `cut`: the recording breaks off, so it is not known yet where it ends. Errors, with `option` in front: USAGE where
 * there is no such moment, or several; they tell of those there are.
 */
struct mw_error *mw_cli_moment_find(const char *option, const char *word, const struct mw_metadata *metadata, bool cut,
				    struct mw_cli_moment *out) MW_MUST_CHECK;

#endif

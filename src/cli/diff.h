/* SPDX-License-Identifier: MIT */
/* diff.h: memwatch diff: what grew between two recordings, or between two moments of one. */
#ifndef MW_CLI_DIFF_H
#define MW_CLI_DIFF_H

#include "cli/options.h"
#include "view/metadata.h"

/* Errors: USAGE, SYSTEM, DATA, MEMORY;
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

/* SPDX-License-Identifier: MIT */
/*
 * parse.h: the words of a command line to values. Pure: looks at nothing but its arguments.
 *
 * Every error is of kind USAGE and names the word, what is wrong with it and what would be right.
 */
#ifndef MW_CLI_PARSE_H
#define MW_CLI_PARSE_H

#include "session/options.h"

#include <memwatch/error.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Longest window: ten years. Shortest: a millisecond. */
#define MW_CLI_SECONDS_MAX 315360000.0
#define MW_CLI_SECONDS_MIN 0.001

/* Decimal seconds with or without a fraction, to nanoseconds. */
struct mw_error *mw_cli_parse_seconds(const char *option, const char *text, uint64_t *ns) MW_MUST_CHECK;
/* A whole decimal number within [min, max]. */
struct mw_error *mw_cli_parse_count(const char *option, const char *text, uint64_t min, uint64_t max,
				    uint64_t *out) MW_MUST_CHECK;
#define MW_CLI_SIZE_MAX 9e18

/* A number of bytes, or of K, M, G or T of them, as in 1.5G. */
struct mw_error *mw_cli_parse_size(const char *option, const char *text, uint64_t *bytes) MW_MUST_CHECK;
/* A percentage, above 0 and below 100. */
struct mw_error *mw_cli_parse_percent(const char *option, const char *text, uint32_t *millionths) MW_MUST_CHECK;
/* PID[,PID…], appended to `pids`; one that is there already is left out. */
struct mw_error *mw_cli_parse_pids(const char *text, struct mw_pids *pids) MW_MUST_CHECK;
void mw_cli_pids_deinit(struct mw_pids *pids);
/* "heap", "vm", "heap,vm": sets both. */
struct mw_error *mw_cli_parse_track(const char *text, bool *heap, bool *vm) MW_MUST_CHECK;

/* The name of a file to write to; "-" is one. */
struct mw_error *mw_cli_parse_file(const char *option, const char *name, const char **out) MW_MUST_CHECK;

/* The one of `words` (ends with NULL) with the fewest edits to `word`, or NULL where none is near. */
const char *mw_cli_nearest(const char *word, const char *const *words);

#endif

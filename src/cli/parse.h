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
#define MW_CLI_SIZE_MAX    9e18

/*
 * Parsers for the tables of options (command.h): `option` is what messages call it, as in "--top"; `member` is where the
 * value goes, untouched on failure.
 */
typedef struct mw_error *mw_cli_parser(const char *option, const char *text, void *member);

mw_cli_parser mw_cli_parse_flag;       /* bool: no text */
mw_cli_parser mw_cli_parse_seconds;    /* uint64_t, ns: decimal seconds, with or without a fraction */
mw_cli_parser mw_cli_parse_moment;     /* uint64_t, ns since the window's start: 0 is one too. Exact to the ns */
mw_cli_parser mw_cli_parse_mark_every; /* uint64_t, ns: as in 10 or 10s */
mw_cli_parser mw_cli_parse_size;       /* uint64_t: bytes, or K, M, G or T of them, as in 1.5G */
mw_cli_parser mw_cli_parse_percent;    /* uint32_t, millionths: above 0 and below 100 % */
mw_cli_parser mw_cli_parse_depth;      /* uint32_t: frames */
mw_cli_parser mw_cli_parse_top;        /* size_t: stacks */
mw_cli_parser mw_cli_parse_pids;       /* struct mw_pids: PID[,PID…], appended; those that are there are left out */
mw_cli_parser mw_cli_parse_track;      /* struct mw_session_options: "heap", "vm", "heap,vm" */
mw_cli_parser mw_cli_parse_engine;     /* struct mw_session_options: which, and why that one */
mw_cli_parser mw_cli_parse_file;       /* const char *: the name of a file to write to; "-" is one */
mw_cli_parser mw_cli_parse_output;     /* const char *: likewise, that of a recording; "-" is none */

/* A whole decimal number within [min, max]. */
struct mw_error *mw_cli_parse_count(const char *option, const char *text, uint64_t min, uint64_t max,
				    uint64_t *out) MW_MUST_CHECK;
void mw_cli_pids_deinit(struct mw_pids *pids);

/* The one of `words` (ends with NULL) with the fewest edits to `word`, or NULL where none is near. */
const char *mw_cli_nearest(const char *word, const char *const *words);

#endif

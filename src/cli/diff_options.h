/* SPDX-License-Identifier: MIT */
/* diff_options.h: the command line of memwatch diff, as values. */
#ifndef MW_CLI_DIFF_OPTIONS_H
#define MW_CLI_DIFF_OPTIONS_H

#include "cli/options.h"

#include <memwatch/diff.h>

/* Strings point into argv. */
struct mw_cli_diff_options {
	enum mw_cli_action action;
	const char *files[MW_DIFF_SIDES];
	bool single;                        /* one recording at two moments: both names are it */
	const char *moments[MW_DIFF_SIDES]; /* as cli/diff_moment.h has them; NULL: none was named */
	bool kinds[MW_KIND_COUNT];
	uint64_t process; /* from 1; 0: all */
	size_t top;
	bool all;
	const char *json; /* NULL: none */
	bool quiet;
};

/* argv[0] ("diff") is skipped. Errors: USAGE, MEMORY. */
struct mw_error *mw_cli_diff_options_parse(int argc, char **argv, struct mw_cli_diff_options *out) MW_MUST_CHECK;

extern const char mw_cli_help_diff[];

#endif

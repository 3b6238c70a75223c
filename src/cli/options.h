/* SPDX-License-Identifier: MIT */
/* options.h: a command line as values: the one loop that parses it, by its command's table (command.h). */
#ifndef MW_CLI_OPTIONS_H
#define MW_CLI_OPTIONS_H

#include "cli/command.h"
#include "session/options.h"

#include <memwatch/diff.h>

enum mw_cli_action {
	MW_CLI_RUN,
	MW_CLI_HELP,
	MW_CLI_VERSION,
};

#define MW_CLI_SYMBOLS_MAX 16

struct mw_cli_report_options {
	const char *recording;
	uint64_t from_ns, to_ns;                 /* to_ns UINT64_MAX: the window's end */
	bool has_to;                             /* --to was given */
	bool at_peak;                            /* what was outstanding when most was */
	bool at_moment;                          /* to_ns is a moment that must lie in the window */
	const char *symbols[MW_CLI_SYMBOLS_MAX]; /* directories */
	size_t symbols_count;
};

struct mw_cli_diff_options {
	const char *files[MW_DIFF_SIDES];
	bool single;                        /* one recording at two moments: both names are it */
	const char *moments[MW_DIFF_SIDES]; /* as mw_cli_moment_find() has them; NULL: none was named */
	bool kinds[MW_KIND_COUNT];
	uint64_t process; /* from 1; 0: all */
	size_t top;       /* SIZE_MAX: all */
	bool all;
};

/* Of all commands; a command sets what it has options for. Strings and the command to launch point into argv. */
struct mw_cli_options {
	enum mw_cli_action action;
	bool dashes;                       /* "--" was there */
	struct mw_session_options session; /* of report and diff as well: what is written, and where to */
	bool clean;                        /* doctor: take out what a killed memwatch has left */
	struct mw_cli_view_options view;   /* what is asked for beside the report */
	struct mw_cli_report_options report;
	struct mw_cli_diff_options diff;
};

/* argv[0] is skipped. Errors: USAGE, MEMORY; `out` is untouched then. */
struct mw_error *mw_cli_options_parse(const struct mw_cli_command *command, int argc, char **argv,
				      struct mw_cli_options *out) MW_MUST_CHECK;
void mw_cli_options_deinit(struct mw_cli_options *options);
/* What --help prints, to standard output. Errors: SYSTEM; a full disk is no success. */
struct mw_error *mw_cli_give_help(const struct mw_cli_command *command) MW_MUST_CHECK;

#endif

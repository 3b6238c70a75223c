/* SPDX-License-Identifier: MIT */
/* report_options.h: the command line of memwatch report, as values. */
#ifndef MW_CLI_REPORT_OPTIONS_H
#define MW_CLI_REPORT_OPTIONS_H

#include "cli/options.h"
#include "cli/view_options.h"

#define MW_CLI_SYMBOLS_MAX 16

/* Strings point into argv. */
struct mw_cli_report_options {
	enum mw_cli_action action;
	const char *recording;
	const char *json, *html; /* NULL: none */
	size_t top;
	bool quiet;
	uint64_t from_ns, to_ns;                 /* to_ns UINT64_MAX: the window's end */
	bool at_peak;                            /* what was outstanding when most was */
	bool at_moment;                          /* to_ns is a moment that must lie in the window */
	const char *symbols[MW_CLI_SYMBOLS_MAX]; /* directories */
	size_t symbols_count;
	struct mw_cli_view_options view;
};

/* argv[0] ("report") is skipped. Errors: USAGE, MEMORY. */
struct mw_error *mw_cli_report_options_parse(int argc, char **argv, struct mw_cli_report_options *out) MW_MUST_CHECK;

void mw_cli_report_options_deinit(struct mw_cli_report_options *options);

#endif

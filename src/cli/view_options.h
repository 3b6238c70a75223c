/* SPDX-License-Identifier: MIT */
/* view_options.h: the options that say what of a recording is shown, and in what order. */
#ifndef MW_CLI_VIEW_OPTIONS_H
#define MW_CLI_VIEW_OPTIONS_H

#include "view/views.h"

/* Zero-initialise; deinit frees. */
struct mw_cli_view_options {
	struct mw_view_question question; /* complete once finish() has been called */
	struct mw_filter *filter;
	bool has_type, has_sort;
};

/* Is it the key of a view option (command.h)? Then `*err` is NULL or USAGE or MEMORY. */
bool mw_cli_view_option(int key, const char *arg, struct mw_cli_view_options *options, struct mw_error **err);
/*
 * When all options are in: defaults, and what does not go together. Where something is to be shown but nothing says
 * how, it is stacks. Errors: USAGE.
 */
struct mw_error *mw_cli_view_options_finish(struct mw_cli_view_options *options, size_t top) MW_MUST_CHECK;
/* Is anything asked for beyond the report? */
bool mw_cli_view_options_any(const struct mw_cli_view_options *options);
void mw_cli_view_options_deinit(struct mw_cli_view_options *options);

/* A moment, in decimal seconds since the window's start: 0 is one too. Exact to the nanosecond. Errors: USAGE. */
struct mw_error *mw_cli_parse_moment(const char *option, const char *text, uint64_t *ns) MW_MUST_CHECK;

#endif

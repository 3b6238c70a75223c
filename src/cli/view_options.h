/* SPDX-License-Identifier: MIT */
/* view_options.h: the options that say what of a recording is shown, and in what order. */
#ifndef MW_CLI_VIEW_OPTIONS_H
#define MW_CLI_VIEW_OPTIONS_H

#include "cli/parse.h"
#include "view/views.h"

/* Zero-initialise; deinit frees. */
struct mw_cli_view_options {
	struct mw_view_question question; /* complete once finish() has been called */
	struct mw_filter *filter;
	bool has_type, has_sort;
};

/* Into these options (parse.h). Errors of a filter: MEMORY, too. */
mw_cli_parser mw_cli_parse_type, mw_cli_parse_by, mw_cli_parse_sort, mw_cli_parse_tree, mw_cli_parse_filter,
	mw_cli_parse_blocks;
/*
 * When all options are in: defaults, and what does not go together. Where something is to be shown but nothing says
 * how, it is stacks. Errors: USAGE.
 */
struct mw_error *mw_cli_view_options_finish(struct mw_cli_view_options *options, size_t top) MW_MUST_CHECK;
/* Is anything asked for beyond the report? */
bool mw_cli_view_options_any(const struct mw_cli_view_options *options);
void mw_cli_view_options_deinit(struct mw_cli_view_options *options);

#endif

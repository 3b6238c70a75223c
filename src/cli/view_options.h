/* SPDX-License-Identifier: MIT */
/* view_options.h: the options that say what of a recording is shown, and in what order. */
#ifndef MW_CLI_VIEW_OPTIONS_H
#define MW_CLI_VIEW_OPTIONS_H

#include "view/views.h"

#include <argp.h>

enum mw_cli_view_key {
	MW_CLI_VIEW_TYPE = 0x1000,
	MW_CLI_VIEW_BY,
	MW_CLI_VIEW_SORT,
	MW_CLI_VIEW_TREE,
	MW_CLI_VIEW_FILTER,
	MW_CLI_VIEW_BLOCKS,
};

/* For a table of argp's. */
/* clang-format off */
#define MW_CLI_VIEW_TABLE \
	{"type", MW_CLI_VIEW_TYPE, "impacting|transient|aofi|all", 0, NULL, 0}, \
	{"by", MW_CLI_VIEW_BY, "LIST", 0, NULL, 0}, \
	{"sort", MW_CLI_VIEW_SORT, "FIGURE", 0, NULL, 0}, \
	{"tree", MW_CLI_VIEW_TREE, "down|up", 0, NULL, 0}, \
	{"filter", MW_CLI_VIEW_FILTER, "EXPR", 0, NULL, 0}, \
	{"blocks", MW_CLI_VIEW_BLOCKS, "N", 0, NULL, 0}
/* clang-format on */

/* Zero-initialise; deinit frees. */
struct mw_cli_view_options {
	struct mw_view_question question; /* complete once finish() has been called */
	struct mw_filter *filter;
	bool has_type, has_sort;
};

/* Is it one of the keys above? Then `*err` is NULL or USAGE or MEMORY. */
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

/* Lines of --help: of the options, and of filters. */
extern const char mw_cli_help_view[];
extern const char mw_cli_help_filter[];

#endif

/* SPDX-License-Identifier: MIT */
/* filter_term.h: one term of a filter; for the files of filters only. */
#ifndef MW_VIEW_FILTER_TERM_H
#define MW_VIEW_FILTER_TERM_H

#include <memwatch/error.h>
#include <memwatch/table.h>

#include <regex.h>

/* MW_COLUMN_COUNT: a bare word. */
struct mw_filter_term {
	enum mw_column field;
	char *text; /* the value; NULL where it is a regular expression, or a number */
	regex_t regex;
	bool is_regex;
	uint64_t low, high; /* size: both included; kind, type: low; thread, process: low where is_number */
	bool is_number;
};

/*
 * `field` is NULL for a bare word; `quoted`: the value stood in quotes and is no regular expression. On failure it is
 * false, *what is the reason (NULL: no memory) and *hint what would be right; both static.
 */
bool mw_filter_term_init(struct mw_filter_term *term, const char *field, const char *value, bool quoted,
			 const char **what, const char **hint);
void mw_filter_term_deinit(struct mw_filter_term *term);
bool mw_filter_term_name(const struct mw_filter_term *term, const char *name);

#endif

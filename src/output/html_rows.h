/* SPDX-License-Identifier: MIT */
/* html_rows.h: the rows of a timeline as bytes (html/FORMAT.md). */
#ifndef MW_OUTPUT_HTML_ROWS_H
#define MW_OUTPUT_HTML_ROWS_H

#include <memwatch/timeline.h>

#include <stdio.h>

/* Write all rows, and return how many bytes they take. `out` NULL: only that. */
uint64_t mw_html_put_cells(const struct mw_timeline_table *cells, FILE *out);
uint64_t mw_html_put_lifetimes(const struct mw_timeline_table *lifetimes, FILE *out);

#endif

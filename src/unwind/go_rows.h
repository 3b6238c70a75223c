/* SPDX-License-Identifier: MIT */
/* go_rows.h: rows of Go's code, by its runtime's own table (symbol/gopclntab.h): no other description is true of it. */
#ifndef MW_UNWIND_GO_ROWS_H
#define MW_UNWIND_GO_ROWS_H

#include "symbol/gopclntab.h"
#include "unwind/rows.h"

/* `*rows` has a base, which is not above the code; on failure it has what there is by then. Errors: MEMORY. */
struct mw_error *mw_go_rows(const struct mw_go_table *table, struct mw_row_dictionary *dictionary,
			    struct mw_rows *rows) MW_MUST_CHECK;

#endif

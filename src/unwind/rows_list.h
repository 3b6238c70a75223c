/* SPDX-License-Identifier: MIT */
/* rows_list.h: what code a file describes. For the files rows*.c only. */
#ifndef MW_UNWIND_ROWS_LIST_H
#define MW_UNWIND_ROWS_LIST_H

#include "symbol/frames.h"

/* Code that is described. */
struct rows_described {
	uint64_t start, end; /* vaddr */
	uint64_t record;     /* where its description is */
};

/* Zero-initialise. Sorted by start; code that lies in no executable segment is left out. */
struct rows_list {
	struct mw_frame_bytes bytes; /* where the descriptions are; means nothing in an empty list */
	struct rows_described *items;
	size_t count, capacity;
};

/* List what a section describes; none is nothing. The image must outlive the list. Errors: MEMORY. */
struct mw_error *rows_list_eh_frame(const struct mw_elf *elf, struct rows_list *list) MW_MUST_CHECK;
struct mw_error *rows_list_debug_frame(const struct mw_elf *elf, struct rows_list *list) MW_MUST_CHECK;
void rows_list_deinit(struct rows_list *list);
/* Leave out what ends where 32 bits from `base` don't reach. */
void rows_list_cut(struct rows_list *list, uint64_t base);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * frame_table.h: where a file's frame descriptions are, sorted by the code that they describe: the
 * search table of .eh_frame_hdr, or one made from .eh_frame where there is none. Stripped files have
 * them too, so they also tell where functions begin and end.
 */
#ifndef MW_SYMBOL_FRAME_TABLE_H
#define MW_SYMBOL_FRAME_TABLE_H

#include "symbol/frame_reader.h"

/* As in .eh_frame_hdr: offsets from the table's base. */
struct mw_frame_entry {
	int32_t code, description;
};

struct mw_frame_table {
	const struct mw_elf *elf;
	uint64_t base;               /* vaddr that entries are offsets from */
	uint64_t vaddr;              /* where the file has its entries; means nothing where they are made */
	size_t count;                /* of entries; 0: there are no frame descriptions */
	struct mw_frame_entry *made; /* from .eh_frame, or NULL: the file's own */
	struct mw_frame_bytes bytes; /* where descriptions are: .eh_frame where the table is made */
};

/* Find or make the table. The image must outlive it. A file without descriptions, or with such as no usual compiler and
 * linker write, has an empty one. Errors: MEMORY. */
struct mw_error *mw_frame_table_init(struct mw_frame_table *table, const struct mw_elf *elf) MW_MUST_CHECK;
/* A zeroed table is fine. */
void mw_frame_table_deinit(struct mw_frame_table *table);

/* An entry, index less than count. False where the file does not have it. */
bool mw_frame_table_entry(const struct mw_frame_table *table, size_t index, struct mw_frame_entry *entry);

/* The code that `vaddr` belongs to: a function, or the cold part of one, which is described apart. False where no
 * description covers it. */
bool mw_frame_table_find(const struct mw_frame_table *table, uint64_t vaddr, uint64_t *start, uint64_t *end);

#endif

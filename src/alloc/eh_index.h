/* SPDX-License-Identifier: MIT */
/*
 * eh_index.h: where functions begin and end, as .eh_frame_hdr and .eh_frame say. Stripped files have it too.
 */
#ifndef MW_ALLOC_EH_INDEX_H
#define MW_ALLOC_EH_INDEX_H

#include "alloc/families.h"

struct mw_eh_index {
	const struct mw_elf *elf;
	uint64_t vaddr;       /* of .eh_frame_hdr: table entries are relative to it */
	const uint8_t *table; /* pairs of 32-bit offsets: start of code, its FDE */
	size_t count;
};

/* Find the search table. False where there is none, or in a form that no usual linker writes. The image must outlive
 * the index; nothing is to be freed. */
bool mw_eh_index_init(struct mw_eh_index *index, const struct mw_elf *elf);
/* The code of the FDE that covers `vaddr`. A function's cold part has an FDE of its own. False where there is none. */
bool mw_eh_index_find(const struct mw_eh_index *index, uint64_t vaddr, struct mw_code_range *range);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_debug.h: one module's symbols and debug information, opened through libdwfl.
 *
 * Addresses here are the file's own (vaddr).
 */
#ifndef MW_SYMBOL_SYMBOLIZER_DEBUG_H
#define MW_SYMBOL_SYMBOLIZER_DEBUG_H

#include "symbol/symbolizer_frames.h"

struct mw_debug; /* opaque */

/* A function symbol of the file. */
struct mw_debug_symbol {
	const char *name; /* as the file has it; good as long as the mw_debug */
	uint64_t start;   /* vaddr */
};

/* Open the module's image, which must outlive it; `path` is for finding what belongs to it. NULL where libdw can't make
 * anything of it. */
struct mw_debug *mw_debug_open(const struct mw_elf *elf, const char *path);
void mw_debug_close(struct mw_debug *debug); /* NULL is fine */
/* The symbol that `vaddr` belongs to; false where there is none. */
bool mw_debug_symbol(struct mw_debug *debug, uint64_t vaddr, struct mw_debug_symbol *symbol);
/* Append the frames at `vaddr` by DWARF, `offset_from` being the address whose offsets are reported and `symbol` (may be
 * NULL) the function's. `*found` is false, and nothing appended, where DWARF knows nothing. False without memory. */
bool mw_debug_frames(struct mw_debug *debug, uint64_t vaddr, uint64_t offset_from, const struct mw_debug_symbol *symbol,
		     struct mw_frame_list *list, bool *found);
/* Where it comes from (see mw_symbolizer_source); good as long as the mw_debug. */
const char *mw_debug_source(struct mw_debug *debug);
/* See mw_symbolizer_obstacle. */
const char *mw_debug_obstacle(struct mw_debug *debug);

#endif

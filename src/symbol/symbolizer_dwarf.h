/* SPDX-License-Identifier: MIT */
/* symbolizer_dwarf.h: the frames that DWARF sees at an address of one unit. */
#ifndef MW_SYMBOL_SYMBOLIZER_DWARF_H
#define MW_SYMBOL_SYMBOLIZER_DWARF_H

#include "symbol/symbolizer_frames.h"
#include "symbol/symbolizer_functions.h"

/* What to look for. Addresses are DWARF's. */
struct mw_dwarf_query {
	const struct mw_units *units;
	struct mw_unit *unit; /* one of them: the address lies in it */
	Dwarf_Addr address;
	const char *symbol; /* ELF symbol there, or NULL */
	bool has_offset;    /* `offset` is known, from that symbol */
	uint64_t offset;
	uint64_t past; /* how far the address whose offset is reported lies behind `address` (1 for return addresses) */
};

/* As mw_debug_frames. */
bool mw_dwarf_frames(const struct mw_dwarf_query *query, struct mw_frame_list *list, bool *found);

#endif

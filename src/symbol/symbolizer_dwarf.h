/* SPDX-License-Identifier: MIT */
/* symbolizer_dwarf.h: the frames that DWARF sees at an address. */
#ifndef MW_SYMBOL_SYMBOLIZER_DWARF_H
#define MW_SYMBOL_SYMBOLIZER_DWARF_H

#include "symbol/symbolizer.h"
#include "symbol/symbolizer_index.h"

#include <elfutils/libdw.h>
#include <stddef.h>

/* Zero-initialise; the frames own their strings. */
struct mw_frame_list {
	struct mw_symbol_frame *items;
	size_t count, capacity;
};

/* Append a frame. Takes over `function` (malloc'ed or NULL, freed on failure), copies `file`. False without memory. */
bool mw_frame_list_add(struct mw_frame_list *list, char *function, const char *file, uint32_t line, uint64_t offset,
		       bool inlined);

/* A compilation unit as the file with the code has it, and its DIEs, which split DWARF keeps in another file. */
struct mw_unit {
	Dwarf_Die lines, scopes;
	bool is_indexed;            /* what follows is there */
	struct mw_ranges functions; /* of addresses; their values are the offsets of DIEs */
	struct mw_ranges spaces;    /* of the offsets of DIEs: namespaces and classes; their values are the places in
				     * this list of those around them, plus one */
};

/* Zero-initialise. */
struct mw_units {
	struct mw_unit *units;
	size_t unit_count, unit_capacity;
	struct mw_ranges ranges; /* of code; their values are the units' numbers */
};

/* List all units of `dwarf`; .debug_aranges would do it, but clang writes none. False without memory. */
bool mw_units_init(struct mw_units *units, Dwarf *dwarf);
void mw_units_deinit(struct mw_units *units);

/* What to look for. Addresses are DWARF's. */
struct mw_dwarf_query {
	const struct mw_units *units;
	struct mw_unit *unit; /* the one that the address lies in: found here */
	Dwarf_Addr address;
	const char *symbol; /* ELF symbol there, or NULL */
	bool has_offset;    /* `offset` is known, from that symbol */
	uint64_t offset;
	uint64_t past; /* how far the address whose offset is reported lies behind `address` (1 for return addresses) */
};

/* Append the frames that DWARF sees there. `*found` is false, and nothing appended, where it knows nothing. False without
 * memory. */
bool mw_dwarf_frames(struct mw_dwarf_query *query, struct mw_frame_list *list, bool *found);

#endif

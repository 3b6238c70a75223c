/* SPDX-License-Identifier: MIT */
/* symbolizer_units.h: which compilation unit an address lies in. .debug_aranges would say, but clang writes none. */
#ifndef MW_SYMBOL_SYMBOLIZER_UNITS_H
#define MW_SYMBOL_SYMBOLIZER_UNITS_H

#include "symbol/symbolizer_ranges.h"

#include <elfutils/libdw.h>

/* A unit as the file with the code has it, and its DIEs, which split DWARF keeps in another file. */
struct mw_unit {
	Dwarf_Die lines, scopes;
	bool is_indexed;            /* what follows is there (symbolizer_functions.c) */
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

/* List all units of `dwarf`. False without memory. */
bool mw_units_init(struct mw_units *units, Dwarf *dwarf);
void mw_units_deinit(struct mw_units *units);
/* The unit at `address`, or NULL. */
struct mw_unit *mw_units_find(const struct mw_units *units, Dwarf_Addr address);
/* The unit that `die` is a part of, or NULL. */
struct mw_unit *mw_units_of(const struct mw_units *units, Dwarf_Die *die);

#endif

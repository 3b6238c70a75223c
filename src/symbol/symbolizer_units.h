/* SPDX-License-Identifier: MIT */
/* symbolizer_units.h: which compilation unit an address lies in. .debug_aranges would say, but clang writes none. */
#ifndef MW_SYMBOL_SYMBOLIZER_UNITS_H
#define MW_SYMBOL_SYMBOLIZER_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* A stretch of a unit's code. */
struct mw_unit_range {
	Dwarf_Addr start, end;
	size_t unit;
};

/* A unit as the file with the code has it, and its DIEs, which split DWARF keeps in another file. */
struct mw_unit {
	Dwarf_Die lines, scopes;
};

/* Zero-initialise. */
struct mw_units {
	struct mw_unit *units;
	struct mw_unit_range *ranges; /* by start */
	size_t unit_count, range_count, unit_capacity, range_capacity;
};

/* List all units of `dwarf`. False without memory. */
bool mw_units_init(struct mw_units *units, Dwarf *dwarf);
void mw_units_deinit(struct mw_units *units);
/* The unit at `address`, or NULL. */
struct mw_unit *mw_units_find(const struct mw_units *units, Dwarf_Addr address);

#endif

/* SPDX-License-Identifier: MIT */
/* symbolizer_data.h: where DWARF says that variables are declared. */
#ifndef MW_SYMBOL_SYMBOLIZER_DATA_H
#define MW_SYMBOL_SYMBOLIZER_DATA_H

#include "symbol/symbolizer_dwarf.h"

/* Of a variable at one address. */
struct mw_declaration {
	Dwarf_Addr address;
	const char *file; /* good as long as the Dwarf */
	uint32_t line;
};

/* By address. Zero-initialise. */
struct mw_declarations {
	struct mw_declaration *items;
	size_t count, capacity;
};

/* All variables of all units that have an address of their own. False without memory. */
bool mw_declarations_init(struct mw_declarations *declarations, const struct mw_units *units);
void mw_declarations_deinit(struct mw_declarations *declarations);
/* That of the variable that begins at `address`, or NULL. */
const struct mw_declaration *mw_declarations_find(const struct mw_declarations *declarations, Dwarf_Addr address);

#endif

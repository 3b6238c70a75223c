/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_functions.h: which function of a unit holds an address, what is inlined there, and what is around a DIE.
 *
 * libdw's dwarf_getscopes does not look into DIEs without code of their own, such as namespaces, where clang and rustc
 * put the functions themselves. It and dwarf_getscopes_die walk the unit's DIEs each time; here they are walked once.
 */
#ifndef MW_SYMBOL_SYMBOLIZER_FUNCTIONS_H
#define MW_SYMBOL_SYMBOLIZER_FUNCTIONS_H

#include "symbol/symbolizer_units.h"

#define MW_INLINED_MAX 128 /* calls inlined into each other; those deeper in are left out */

struct mw_scopes {
	Dwarf_Die function;
	Dwarf_Die inlined[MW_INLINED_MAX]; /* outermost first */
	size_t inlined_count;
};

/* `*found` is false where the unit has no function at `address`. False without memory. */
bool mw_functions_find(struct mw_unit *unit, Dwarf_Addr address, struct mw_scopes *scopes, bool *found);

#define MW_SPACES_MAX 64

/* The namespaces and classes around `die`, innermost first, at most MW_SPACES_MAX. False without memory. */
bool mw_functions_spaces(const struct mw_units *units, Dwarf_Die *die, Dwarf_Die *spaces, size_t *count);

#endif

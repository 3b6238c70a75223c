/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_functions.h: which function of a unit holds an address, what is inlined there, and what is around a DIE.
 *
 * libdw's dwarf_getscopes does not look into DIEs without code of their own, such as namespaces, where clang and rustc
 * put the functions themselves. It and dwarf_getscopes_die walk the unit's DIEs each time; here they are walked once.
 */
#ifndef MW_SYMBOL_SYMBOLIZER_FUNCTIONS_H
#define MW_SYMBOL_SYMBOLIZER_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranges of addresses, sorted, which may overlap: which one holds an address. */
struct mw_range {
	uint64_t start, end;
	uint64_t reach; /* the last end of this and all that are before it */
	uint64_t value; /* the caller's */
};

/* Zero-initialise. Add all, then sort, then find. */
struct mw_ranges {
	struct mw_range *items;
	size_t count, capacity;
};

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
/* The unit at `address`, or NULL. */
struct mw_unit *mw_units_find(const struct mw_units *units, Dwarf_Addr address);

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

/* SPDX-License-Identifier: MIT */
/* symbolizer_names.h: what DWARF calls a function. */
#ifndef MW_SYMBOL_SYMBOLIZER_NAMES_H
#define MW_SYMBOL_SYMBOLIZER_NAMES_H

#include "symbol/symbolizer_functions.h"

/*
 * The demangled name of a subprogram or inlined subroutine of one of `units`. `symbol` is the ELF symbol at its code,
 * NULL for inlined ones: it tells clones (foo.cold) and parameters where DWARF doesn't. `*name` is malloc'ed, NULL
 * where there is none. False without memory.
 */
bool mw_dwarf_name(const struct mw_units *units, Dwarf_Die *die, const char *symbol, char **name);

#endif

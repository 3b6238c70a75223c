/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_index.h: a module's symbols sorted by address, for questions that come by the thousand: libdwfl looks
 * through all symbols for each. The answers are libdwfl's; where they would depend on more than the symbols around, it
 * is left to be asked.
 */
#ifndef MW_SYMBOL_SYMBOLIZER_INDEX_H
#define MW_SYMBOL_SYMBOLIZER_INDEX_H

#include "symbol/ranges.h"

#include <elfutils/libdwfl.h>

/* Zero-initialise. */
struct mw_symbol_index {
	/* As libdwfl has them, start and end equal where a symbol has no size. Their values are its number in libdwfl's
	 * table, and in the upper half the strength of its binding. */
	struct mw_ranges symbols;
	uint32_t first_global; /* number */
};

enum mw_index_answer {
	MW_INDEX_FOUND,
	MW_INDEX_NOTHING,
	MW_INDEX_ASK, /* libdwfl itself */
};

/* False, and nothing in it, without memory or where there are too many symbols for it: 64 MiB at most. */
bool mw_symbol_index_init(struct mw_symbol_index *index, Dwfl_Module *module);
/* What dwfl_module_addrinfo says of `address`: `*symbol` is good as long as the index. */
enum mw_index_answer mw_symbol_index_find(const struct mw_symbol_index *index, uint64_t address,
					  const struct mw_range **symbol);

#endif

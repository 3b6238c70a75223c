/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_index.h: a module's symbols sorted by address, for questions that come by the thousand: libdwfl looks
 * through all symbols for each. The answers are libdwfl's; where they would depend on more than the symbols around, it
 * is left to be asked.
 */
#ifndef MW_SYMBOL_SYMBOLIZER_INDEX_H
#define MW_SYMBOL_SYMBOLIZER_INDEX_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mw_indexed_symbol {
	uint64_t start, end; /* as libdwfl has them; equal where it has no size */
	uint64_t reach;      /* the last end of this and all that stand before it */
	uint32_t number;     /* in libdwfl's table */
	uint32_t strength;   /* of its binding */
};

/* Zero-initialise. */
struct mw_symbol_index {
	struct mw_indexed_symbol *items; /* by start */
	size_t count;
	uint32_t first_global; /* number */
};

enum mw_index_answer {
	MW_INDEX_FOUND,
	MW_INDEX_NOTHING,
	MW_INDEX_ASK, /* libdwfl itself */
};

/* False, and nothing in it, without memory or where there are too many symbols for it: 64 MiB at most. */
bool mw_symbol_index_init(struct mw_symbol_index *index, Dwfl_Module *module);
void mw_symbol_index_deinit(struct mw_symbol_index *index);
/* What dwfl_module_addrinfo says of `address`: `*symbol` is good as long as the index. */
enum mw_index_answer mw_symbol_index_find(const struct mw_symbol_index *index, uint64_t address,
					  const struct mw_indexed_symbol **symbol);

#endif

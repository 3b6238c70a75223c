/* SPDX-License-Identifier: MIT */
/*
 * tables.h: the families' tables, one a file, and the words they are written in.
 *
 * A row says where its arguments stand, counted from 0. Rows stand in the order in which they name an address that
 * several of them share: what people write first, aliases of the implementation last.
 */
#ifndef MW_ALLOC_TABLES_H
#define MW_ALLOC_TABLES_H

#include "alloc/families.h"

/* One row; THROWS where an exception may pass through it. `people` may be NULL. */
#define MW_ROW(elf_name, people, what, block_at, count_at, size_at, throws)                                            \
	{                                                                                                              \
		.symbol = (elf_name), .name = (people), .role = (what), .pointer = (block_at), .count = (count_at),    \
		.size = (size_at), .may_throw = (throws),                                                              \
	}

/* The shapes that most rows have, with the number of the first argument that matters. */
#define MW_ROW_MALLOC(symbol, size_at) MW_ROW(symbol, NULL, MW_ROLE_MALLOC, MW_NO_ARG, MW_NO_ARG, size_at, false)
#define MW_ROW_CALLOC(symbol, first)   MW_ROW(symbol, NULL, MW_ROLE_CALLOC, MW_NO_ARG, first, (first) + 1, false)
#define MW_ROW_REALLOC(symbol, first)  MW_ROW(symbol, NULL, MW_ROLE_REALLOC, first, MW_NO_ARG, (first) + 1, false)
#define MW_ROW_REALLOCARRAY(symbol, first)                                                                             \
	MW_ROW(symbol, NULL, MW_ROLE_REALLOCARRAY, first, (first) + 1, (first) + 2, false)
#define MW_ROW_FREE(symbol)           MW_ROW(symbol, NULL, MW_ROLE_FREE, 0, MW_NO_ARG, MW_NO_ARG, false)
#define MW_ROW_RESIZE(symbol)         MW_ROW(symbol, NULL, MW_ROLE_RESIZE, 0, MW_NO_ARG, 1, false)
#define MW_ROW_POSIX_MEMALIGN(symbol) MW_ROW(symbol, NULL, MW_ROLE_POSIX_MEMALIGN, 0, MW_NO_ARG, 2, false)
/* The same for functions that throw where they find no memory. */
#define MW_ROW_NEW(symbol, size_at) MW_ROW(symbol, NULL, MW_ROLE_MALLOC, MW_NO_ARG, MW_NO_ARG, size_at, true)
#define MW_ROW_NEW_N(symbol, first) MW_ROW(symbol, NULL, MW_ROLE_CALLOC, MW_NO_ARG, first, (first) + 1, true)

/* Ends a table. */
#define MW_ROW_END                                                                                                     \
	{                                                                                                              \
		.symbol = NULL                                                                                         \
	}

extern const struct mw_family mw_family_libc;
extern const struct mw_family mw_family_cxx;
extern const struct mw_family mw_family_jemalloc;
extern const struct mw_family mw_family_tcmalloc;
extern const struct mw_family mw_family_mimalloc;
extern const struct mw_family mw_family_vm;

#endif

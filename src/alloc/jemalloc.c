// SPDX-License-Identifier: MIT
/*
 * jemalloc.c: what jemalloc defines beside malloc's family, and the whole of it under the prefixes it is built with
 * (je_: redis and others; _rjem_: Rust's jemallocator).
 */
#include "alloc/tables.h"

/* mallocx(size, flags) and its kin. */
#define EXTENDED(prefix)                                                                                               \
	MW_ROW_MALLOC(prefix "mallocx", 0), MW_ROW_REALLOC(prefix "rallocx", 0), MW_ROW_RESIZE(prefix "xallocx"),      \
		MW_ROW_FREE(prefix "dallocx"), MW_ROW_FREE(prefix "sdallocx")

#define STANDARD(prefix)                                                                                               \
	MW_ROW_MALLOC(prefix "malloc", 0), MW_ROW_CALLOC(prefix "calloc", 0), MW_ROW_REALLOC(prefix "realloc", 0),     \
		MW_ROW_REALLOCARRAY(prefix "reallocarray", 0), MW_ROW_FREE(prefix "free"),                             \
		MW_ROW_FREE(prefix "free_sized"), MW_ROW_FREE(prefix "free_aligned_sized"),                            \
		MW_ROW_MALLOC(prefix "aligned_alloc", 1), MW_ROW_MALLOC(prefix "memalign", 1),                         \
		MW_ROW_POSIX_MEMALIGN(prefix "posix_memalign"), MW_ROW_MALLOC(prefix "valloc", 0),                     \
		MW_ROW_MALLOC(prefix "pvalloc", 0)

static const struct mw_entry_point entries[] = {
	EXTENDED(""), STANDARD("je_"), EXTENDED("je_"), STANDARD("_rjem_"), EXTENDED("_rjem_"), MW_ROW_END,
};

const struct mw_family mw_family_jemalloc = {
	.name = "jemalloc",
	.kind = MW_KIND_HEAP,
	.entries = entries,
};

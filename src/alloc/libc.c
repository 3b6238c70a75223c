// SPDX-License-Identifier: MIT
/* libc.c: the malloc family as C libraries, and everything that stands in for theirs, define it. */
#include "alloc/tables.h"

static const struct mw_entry_point entries[] = {
	MW_ROW_MALLOC("malloc", 0),
	MW_ROW_CALLOC("calloc", 0),
	MW_ROW_REALLOC("realloc", 0),
	MW_ROW_REALLOCARRAY("reallocarray", 0),
	MW_ROW_FREE("free"),
	MW_ROW_FREE("free_sized"),
	MW_ROW_FREE("free_aligned_sized"),
	MW_ROW_FREE("cfree"),
	MW_ROW_MALLOC("aligned_alloc", 1),
	MW_ROW_MALLOC("memalign", 1),
	MW_ROW_POSIX_MEMALIGN("posix_memalign"),
	MW_ROW_MALLOC("valloc", 0),
	MW_ROW_MALLOC("pvalloc", 0),
	/* Names inside the library: in static programs, and in allocators that take glibc's place, they may be all
	   there is. */
	MW_ROW_MALLOC("__libc_malloc", 0),
	MW_ROW_CALLOC("__libc_calloc", 0),
	MW_ROW_REALLOC("__libc_realloc", 0),
	MW_ROW_REALLOCARRAY("__libc_reallocarray", 0),
	MW_ROW_FREE("__libc_free"),
	MW_ROW_FREE("__libc_cfree"),
	MW_ROW_MALLOC("__libc_memalign", 1),
	MW_ROW_MALLOC("__libc_aligned_alloc", 1),
	MW_ROW_POSIX_MEMALIGN("__libc_posix_memalign"),
	MW_ROW_POSIX_MEMALIGN("__posix_memalign"),
	MW_ROW_MALLOC("__libc_valloc", 0),
	MW_ROW_MALLOC("__libc_pvalloc", 0),
	MW_ROW_END,
};

const struct mw_family mw_family_libc = {
	.name = "libc",
	.kind = MW_KIND_HEAP,
	.entries = entries,
};

// SPDX-License-Identifier: MIT
/*
 * mimalloc.c: mimalloc's own names. Most call or jump to one another; those that have the fast path inlined don't,
 * so all of them stand here.
 *
 * mi_strdup and mi_strndup allocate what no argument says: their size is MW_NO_ARG. mi_heap_destroy, which gives back
 * a heap's blocks at once, is none of the roles and not here.
 */
#include "alloc/tables.h"

/* With a heap as first argument (`first` 1) or the thread's own (`first` 0). */
#define ALLOCATING(prefix, first)                                                                                      \
	MW_ROW_MALLOC(prefix "malloc", first), MW_ROW_MALLOC(prefix "zalloc", first),                                  \
		MW_ROW_MALLOC(prefix "malloc_small", first), MW_ROW_MALLOC(prefix "zalloc_small", first),              \
		MW_ROW_CALLOC(prefix "calloc", first), MW_ROW_CALLOC(prefix "mallocn", first),                         \
		MW_ROW_MALLOC(prefix "malloc_aligned", first), MW_ROW_MALLOC(prefix "malloc_aligned_at", first),       \
		MW_ROW_MALLOC(prefix "zalloc_aligned", first), MW_ROW_MALLOC(prefix "zalloc_aligned_at", first),       \
		MW_ROW_CALLOC(prefix "calloc_aligned", first), MW_ROW_CALLOC(prefix "calloc_aligned_at", first),       \
		MW_ROW_MALLOC(prefix "strdup", MW_NO_ARG), MW_ROW_MALLOC(prefix "strndup", MW_NO_ARG)

#define REALLOCATING(prefix, first)                                                                                    \
	MW_ROW_REALLOC(prefix "realloc", first), MW_ROW_REALLOCARRAY(prefix "reallocn", first),                        \
		MW_ROW_REALLOC(prefix "reallocf", first), MW_ROW_REALLOC(prefix "rezalloc", first),                    \
		MW_ROW_REALLOCARRAY(prefix "recalloc", first), MW_ROW_REALLOC(prefix "realloc_aligned", first),        \
		MW_ROW_REALLOC(prefix "realloc_aligned_at", first), MW_ROW_REALLOC(prefix "rezalloc_aligned", first),  \
		MW_ROW_REALLOC(prefix "rezalloc_aligned_at", first),                                                   \
		MW_ROW_REALLOCARRAY(prefix "recalloc_aligned", first),                                                 \
		MW_ROW_REALLOCARRAY(prefix "recalloc_aligned_at", first)

static const struct mw_entry_point entries[] = {
	ALLOCATING("mi_", 0),
	REALLOCATING("mi_", 0),
	MW_ROW_REALLOCARRAY("mi_reallocarray", 0),
	MW_ROW_REALLOCARRAY("mi_aligned_recalloc", 0),
	MW_ROW_REALLOCARRAY("mi_aligned_offset_recalloc", 0),
	MW_ROW_RESIZE("mi_expand"),
	MW_ROW_RESIZE("mi__expand"),
	MW_ROW_FREE("mi_free"),
	MW_ROW_FREE("mi_free_size"),
	MW_ROW_FREE("mi_free_size_aligned"),
	MW_ROW_FREE("mi_free_aligned"),
	MW_ROW_FREE("mi_cfree"),
	MW_ROW_MALLOC("mi_aligned_alloc", 1),
	MW_ROW_MALLOC("mi_memalign", 1),
	MW_ROW_POSIX_MEMALIGN("mi_posix_memalign"),
	MW_ROW_MALLOC("mi_valloc", 0),
	MW_ROW_MALLOC("mi_pvalloc", 0),
	MW_ROW_NEW("mi_new", 0),
	MW_ROW_NEW_N("mi_new_n", 0),
	MW_ROW_NEW("mi_new_aligned", 0),
	MW_ROW_MALLOC("mi_new_nothrow", 0),
	MW_ROW_MALLOC("mi_new_aligned_nothrow", 0),
	MW_ROW("mi_new_realloc", NULL, MW_ROLE_REALLOC, 0, MW_NO_ARG, 1, true),
	MW_ROW("mi_new_reallocn", NULL, MW_ROLE_REALLOCARRAY, 0, 1, 2, true),
	ALLOCATING("mi_heap_", 1),
	REALLOCATING("mi_heap_", 1),
	MW_ROW_NEW("mi_heap_alloc_new", 1),
	MW_ROW_NEW("mi_heap_try_new", 1),
	MW_ROW_NEW_N("mi_heap_alloc_new_n", 1),
	/* Version 3 has both. */
	ALLOCATING("mi_theap_", 1),
	REALLOCATING("mi_theap_", 1),
	MW_ROW_NEW("mi_theap_alloc_new", 1),
	MW_ROW_NEW_N("mi_theap_alloc_new_n", 1),
	MW_ROW_MALLOC("mi_theap_alloc_new_nothrow", 1),
	MW_ROW_FREE("mi_free_small"),
	MW_ROW_FREE("mi_free_small_nonnull"),
	MW_ROW_FREE("mi_free_small_local"),
	MW_ROW_FREE("mi_free_small_local_nonnull"),
	/* These tell the block's real size as well. */
	MW_ROW_MALLOC("mi_umalloc", 0),
	MW_ROW_MALLOC("mi_umalloc_small", 0),
	MW_ROW_MALLOC("mi_umalloc_aligned", 0),
	MW_ROW_MALLOC("mi_uzalloc_small", 0),
	MW_ROW_MALLOC("mi_uzalloc_aligned", 0),
	MW_ROW_CALLOC("mi_ucalloc", 0),
	MW_ROW_REALLOC("mi_urealloc", 0),
	MW_ROW_FREE("mi_ufree"),
	MW_ROW_END,
};

const struct mw_family mw_family_mimalloc = {
	.name = "mimalloc",
	.kind = MW_KIND_HEAP,
	.entries = entries,
};

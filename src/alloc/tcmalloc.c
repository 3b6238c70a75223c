// SPDX-License-Identifier: MIT
/*
 * tcmalloc.c: gperftools' tc_ names and the internal names of Google's later tcmalloc, which both also export as
 * malloc's family and the C++ operators (then those name the shared addresses).
 */
#include "alloc/tables.h"

#define INTERNAL "TCMallocInternal"

/* Google's: New, NewArray with every suffix that versions of it had. */
#define INTERNAL_NEWS(stem)                                                                                            \
	MW_ROW_NEW(INTERNAL stem, 0), MW_ROW_MALLOC(INTERNAL stem "Nothrow", 0),                                       \
		MW_ROW_NEW(INTERNAL stem "Aligned", 0), MW_ROW_MALLOC(INTERNAL stem "AlignedNothrow", 0),              \
		MW_ROW_MALLOC(INTERNAL stem "Aligned_nothrow", 0), MW_ROW_NEW(INTERNAL stem "HotCold", 0),             \
		MW_ROW_NEW(INTERNAL stem "AlignedHotCold", 0), MW_ROW_MALLOC(INTERNAL stem "HotColdNothrow", 0),       \
		MW_ROW_MALLOC(INTERNAL stem "AlignedHotColdNothrow", 0)

#define INTERNAL_DELETES(stem)                                                                                         \
	MW_ROW_FREE(INTERNAL stem), MW_ROW_FREE(INTERNAL stem "Nothrow"), MW_ROW_FREE(INTERNAL stem "Aligned"),        \
		MW_ROW_FREE(INTERNAL stem "AlignedNothrow"), MW_ROW_FREE(INTERNAL stem "Aligned_nothrow"),             \
		MW_ROW_FREE(INTERNAL stem "Sized"), MW_ROW_FREE(INTERNAL stem "SizedAligned")

#define TC_NEWS(stem)                                                                                                  \
	MW_ROW_NEW(stem, 0), MW_ROW_MALLOC(stem "_nothrow", 0), MW_ROW_NEW(stem "_aligned", 0),                        \
		MW_ROW_MALLOC(stem "_aligned_nothrow", 0)

#define TC_DELETES(stem)                                                                                               \
	MW_ROW_FREE(stem), MW_ROW_FREE(stem "_nothrow"), MW_ROW_FREE(stem "_sized"), MW_ROW_FREE(stem "_aligned"),     \
		MW_ROW_FREE(stem "_aligned_nothrow"), MW_ROW_FREE(stem "_sized_aligned")

/* Return {block, real size} in two registers: the first is malloc's result. */
#define SIZE_RETURNING(stem)                                                                                           \
	MW_ROW_NEW(stem, 0), MW_ROW_NEW(stem "_hot_cold", 0), MW_ROW_NEW(stem "_aligned", 0),                          \
		MW_ROW_NEW(stem "_aligned_hot_cold", 0)

static const struct mw_entry_point entries[] = {
	MW_ROW_MALLOC("tc_malloc", 0),
	MW_ROW_MALLOC("tc_malloc_skip_new_handler", 0),
	MW_ROW_CALLOC("tc_calloc", 0),
	MW_ROW_REALLOC("tc_realloc", 0),
	MW_ROW_FREE("tc_free"),
	MW_ROW_FREE("tc_free_sized"),
	MW_ROW_FREE("tc_cfree"),
	MW_ROW_MALLOC("tc_memalign", 1),
	MW_ROW_POSIX_MEMALIGN("tc_posix_memalign"),
	MW_ROW_MALLOC("tc_valloc", 0),
	MW_ROW_MALLOC("tc_pvalloc", 0),
	TC_NEWS("tc_new"),
	TC_NEWS("tc_newarray"),
	TC_DELETES("tc_delete"),
	TC_DELETES("tc_deletearray"),
	SIZE_RETURNING("__size_returning_new"),
	SIZE_RETURNING("tcmalloc_size_returning_operator_new"),
	MW_ROW_MALLOC(INTERNAL "Malloc", 0),
	MW_ROW_CALLOC(INTERNAL "Calloc", 0),
	MW_ROW_REALLOC(INTERNAL "Realloc", 0),
	MW_ROW_REALLOCARRAY(INTERNAL "ReallocArray", 0),
	MW_ROW_FREE(INTERNAL "Free"),
	MW_ROW_FREE(INTERNAL "FreeSized"),
	MW_ROW_FREE(INTERNAL "FreeAlignedSized"),
	MW_ROW_FREE(INTERNAL "Sdallocx"),
	MW_ROW_FREE(INTERNAL "Cfree"),
	MW_ROW_MALLOC(INTERNAL "AlignedAlloc", 1),
	MW_ROW_MALLOC(INTERNAL "Memalign", 1),
	MW_ROW_POSIX_MEMALIGN(INTERNAL "PosixMemalign"),
	MW_ROW_MALLOC(INTERNAL "Valloc", 0),
	MW_ROW_MALLOC(INTERNAL "Pvalloc", 0),
	MW_ROW_MALLOC(INTERNAL "AllocAtLeast", 0),
	MW_ROW_MALLOC(INTERNAL "AlignedAllocAtLeast", 1),
	MW_ROW_NEW(INTERNAL "SizeReturningNew", 0),
	MW_ROW_NEW(INTERNAL "SizeReturningNewAligned", 0),
	INTERNAL_NEWS("New"),
	INTERNAL_NEWS("NewArray"),
	INTERNAL_DELETES("Delete"),
	INTERNAL_DELETES("DeleteArray"),
	MW_ROW_END,
};

const struct mw_family mw_family_tcmalloc = {
	.name = "tcmalloc",
	.kind = MW_KIND_HEAP,
	.entries = entries,
};

// SPDX-License-Identifier: MIT
/*
 * cxx.c: C++'s operators new and delete (Itanium ABI, size_t is unsigned long).
 *
 * libstdc++'s and libc++'s own do nothing but call malloc and free, which are hooked. Others' matter: allocators that
 * define the operators often have their malloc inlined there, and programs may replace them.
 */
#include "alloc/tables.h"

#define NOTHROW "std::nothrow_t const&"
#define ALIGN   "std::align_val_t"
#define HOTCOLD "__hot_cold_t"

/* new of a size; delete of a block. Both are written once for the plain form and once for the array's. */
#define NEW(elf_name, people, throws) MW_ROW(elf_name, people, MW_ROLE_MALLOC, MW_NO_ARG, MW_NO_ARG, 0, throws)
#define DELETE(elf_name, people)      MW_ROW(elf_name, people, MW_ROLE_FREE, 0, MW_NO_ARG, MW_NO_ARG, false)

#define NEWS(code, op)                                                                                                 \
	NEW("_Zn" code "m", op "(unsigned long)", true),                                                               \
		NEW("_Zn" code "mRKSt9nothrow_t", op "(unsigned long, " NOTHROW ")", false),                           \
		NEW("_Zn" code "mSt11align_val_t", op "(unsigned long, " ALIGN ")", true),                             \
		NEW("_Zn" code "mSt11align_val_tRKSt9nothrow_t", op "(unsigned long, " ALIGN ", " NOTHROW ")", false)

#define DELETES(code, op)                                                                                              \
	DELETE("_Zd" code "Pv", op "(void*)"), DELETE("_Zd" code "Pvm", op "(void*, unsigned long)"),                  \
		DELETE("_Zd" code "PvRKSt9nothrow_t", op "(void*, " NOTHROW ")"),                                      \
		DELETE("_Zd" code "PvSt11align_val_t", op "(void*, " ALIGN ")"),                                       \
		DELETE("_Zd" code "PvSt11align_val_tRKSt9nothrow_t", op "(void*, " ALIGN ", " NOTHROW ")"),            \
		DELETE("_Zd" code "PvmSt11align_val_t", op "(void*, unsigned long, " ALIGN ")"),                       \
		DELETE("_Zd" code "PvmRKSt9nothrow_t", op "(void*, unsigned long, " NOTHROW ")"),                      \
		DELETE("_Zd" code "PvmSt11align_val_tRKSt9nothrow_t",                                                  \
		       op "(void*, unsigned long, " ALIGN ", " NOTHROW ")")

/* tcmalloc's and clang's overloads with a hint of how often the block will be used. */
#define HOT_NEWS(code, op)                                                                                             \
	NEW("_Zn" code "m12__hot_cold_t", op "(unsigned long, " HOTCOLD ")", true),                                    \
		NEW("_Zn" code "mRKSt9nothrow_t12__hot_cold_t", op "(unsigned long, " NOTHROW ", " HOTCOLD ")",        \
		    false),                                                                                            \
		NEW("_Zn" code "mSt11align_val_t12__hot_cold_t", op "(unsigned long, " ALIGN ", " HOTCOLD ")", true),  \
		NEW("_Zn" code "mSt11align_val_tRKSt9nothrow_t12__hot_cold_t",                                         \
		    op "(unsigned long, " ALIGN ", " NOTHROW ", " HOTCOLD ")", false)

static const struct mw_entry_point entries[] = {
	NEWS("w", "operator new"),
	NEWS("a", "operator new[]"),
	HOT_NEWS("w", "operator new"),
	HOT_NEWS("a", "operator new[]"),
	DELETES("l", "operator delete"),
	DELETES("a", "operator delete[]"),
	MW_ROW_END,
};

static const char *const skip_sonames[] = {"libstdc++.so", "libc++.so", "libc++abi.so", NULL};

const struct mw_family mw_family_cxx = {
	.name = "c++",
	.kind = MW_KIND_HEAP,
	.entries = entries,
	.skip_sonames = skip_sonames,
};

// SPDX-License-Identifier: MIT
/* libc.c: what C and C++ libraries, and everything that stands in for theirs, define. */
#include "alloc/tables.h"

/* --- the malloc family ------------------------------------------------------------------------------------ */

static const struct mw_entry_point libc_entries[] = {
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
	.entries = libc_entries,
};

/* --- the calls that map memory, from libc or whatever module defines them in its place (gperftools does) ------- */

#define MMAP(symbol)   MW_ROW(symbol, NULL, MW_ROLE_MMAP, 0, MW_NO_ARG, 1, false)
#define MUNMAP(symbol) MW_ROW(symbol, NULL, MW_ROLE_MUNMAP, 0, MW_NO_ARG, 1, false)
#define MREMAP(symbol) MW_ROW(symbol, NULL, MW_ROLE_MREMAP, 0, MW_NO_ARG, 2, false)
#define BRK(symbol)    MW_ROW(symbol, NULL, MW_ROLE_BRK, 0, MW_NO_ARG, MW_NO_ARG, false)
#define SBRK(symbol)   MW_ROW(symbol, NULL, MW_ROLE_SBRK, MW_NO_ARG, MW_NO_ARG, 0, false)

static const struct mw_entry_point vm_entries[] = {
	MMAP("mmap"), MMAP("mmap64"), MUNMAP("munmap"), MREMAP("mremap"),   BRK("brk"),
	SBRK("sbrk"), MMAP("__mmap"), MMAP("__mmap64"), MUNMAP("__munmap"), MREMAP("__mremap"),
	BRK("__brk"), SBRK("__sbrk"), MW_ROW_END,
};

const struct mw_family mw_family_vm = {
	.name = "vm",
	.kind = MW_KIND_VM,
	.entries = vm_entries,
};

/*
 * --- C++'s operators new and delete (Itanium ABI, size_t is unsigned long) --------------------------------------
 *
 * libstdc++'s and libc++'s own do nothing but call malloc and free, which are hooked. Others' matter: allocators that
 * define the operators often have their malloc inlined there, and programs may replace them.
 */

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

static const struct mw_entry_point cxx_entries[] = {
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
	.entries = cxx_entries,
	.skip_sonames = skip_sonames,
};

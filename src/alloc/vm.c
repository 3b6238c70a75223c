// SPDX-License-Identifier: MIT
/* vm.c: the calls that map memory, from libc or whatever module defines them in its place (gperftools does). */
#include "alloc/tables.h"

#define MMAP(symbol)   MW_ROW(symbol, NULL, MW_ROLE_MMAP, 0, MW_NO_ARG, 1, false)
#define MUNMAP(symbol) MW_ROW(symbol, NULL, MW_ROLE_MUNMAP, 0, MW_NO_ARG, 1, false)
#define MREMAP(symbol) MW_ROW(symbol, NULL, MW_ROLE_MREMAP, 0, MW_NO_ARG, 2, false)
#define BRK(symbol)    MW_ROW(symbol, NULL, MW_ROLE_BRK, 0, MW_NO_ARG, MW_NO_ARG, false)
#define SBRK(symbol)   MW_ROW(symbol, NULL, MW_ROLE_SBRK, MW_NO_ARG, MW_NO_ARG, 0, false)

static const struct mw_entry_point entries[] = {
	MMAP("mmap"), MMAP("mmap64"), MUNMAP("munmap"), MREMAP("mremap"),   BRK("brk"),
	SBRK("sbrk"), MMAP("__mmap"), MMAP("__mmap64"), MUNMAP("__munmap"), MREMAP("__mremap"),
	BRK("__brk"), SBRK("__sbrk"), MW_ROW_END,
};

const struct mw_family mw_family_vm = {
	.name = "vm",
	.kind = MW_KIND_VM,
	.entries = entries,
};

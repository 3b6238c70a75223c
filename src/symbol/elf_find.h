/* SPDX-License-Identifier: MIT */
/* elf_find.h: files elsewhere that belong to a module. */
#ifndef MW_SYMBOL_ELF_FIND_H
#define MW_SYMBOL_ELF_FIND_H

#include "symbol/elf_image.h"

#include <sys/types.h>

/*
 * Find the companion of a stripped static program: the symbols that strip has left of it elsewhere. In this order:
 * .gnu_debugdata (a small ELF file, packed by xz, in the program itself), the debug file of its build-id under
 * /usr/lib/debug, the one that .gnu_debuglink names (beside the program, in .debug beside it, or under
 * /usr/lib/debug). Files are looked for in the process's root and in memwatch's own.
 *
 * Code is patched at the addresses that these symbols tell. So a file is taken only if its build-id is the program's
 * or, where one of them has none, the checksum in .gnu_debuglink is the file's; and if all sections of code lie where
 * the program has them.
 *
 * Does nothing where `elf` is no static program, or has symbols of its own. `path`: as the process `tid` sees it.
 * Errors: MEMORY; that there are none is no error.
 */
struct mw_error *mw_elf_find_symbols(struct mw_elf *elf, pid_t tid, const char *path) MW_MUST_CHECK;

/*
 * The file of a module that a recording names, on this machine, which may be another one. What has the same build-id is
 * the same file, or its debug information; nothing else is taken for it. In each directory, in their order, these are
 * tried, then the path as it is:
 *   DIRECTORY/PATH  DIRECTORY/NAME  DIRECTORY/NAME.debug  DIRECTORY/.build-id/xx/yyyy[.debug]
 * *out is NULL where there is none. Errors: MEMORY.
 */
struct mw_error *mw_find_file(const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *const *directories, size_t count, struct mw_elf **out) MW_MUST_CHECK;

#endif

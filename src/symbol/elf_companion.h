/* SPDX-License-Identifier: MIT */
/*
 * elf_companion.h: the symbols of a stripped static program, from what strip has left of them elsewhere.
 *
 * In this order: .gnu_debugdata (a small ELF file, packed by xz, in the program itself), the debug file of its build-id
 * under /usr/lib/debug, the one that .gnu_debuglink names (beside the program, in .debug beside it, or under
 * /usr/lib/debug). Files are looked for in the process's root and in memwatch's own.
 *
 * Code is patched at the addresses that these symbols tell. So a file is taken only if its build-id is the program's
 * or, where one of them has none, the checksum in .gnu_debuglink is the file's; and if all sections of code lie where
 * the program has them.
 */
#ifndef MW_SYMBOL_ELF_COMPANION_H
#define MW_SYMBOL_ELF_COMPANION_H

#include "symbol/elf_image.h"

#include <sys/types.h>

/* Have mw_elf_each_symbol tell these symbols too. Does nothing where `elf` is no static program, or has symbols of its
 * own. `path`: as the process `tid` sees it. Errors: MEMORY; that there are none is no error. */
struct mw_error *mw_elf_find_symbols(struct mw_elf *elf, pid_t tid, const char *path) MW_MUST_CHECK;

#endif

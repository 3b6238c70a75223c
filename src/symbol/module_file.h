/* SPDX-License-Identifier: MIT */
/* module_file.h: the file behind an executable mapping, found and checked. */
#ifndef MW_SYMBOL_MODULE_FILE_H
#define MW_SYMBOL_MODULE_FILE_H

#include "proc/maps.h"
#include "symbol/elf_image.h"

/*
 * Open the file of a mapping; `path` is its name as the target sees it. On success *elf is the
 * caller's. Otherwise *elf is NULL and *why (malloc'ed) says why. Errors: MEMORY.
 */
struct mw_error *mw_module_file_open(pid_t tid, const struct mw_mapping *mapping, const char *path, struct mw_elf **elf,
				     char **why) MW_MUST_CHECK;

/* The same for the vdso, from memory. */
struct mw_error *mw_module_vdso_open(pid_t tid, const struct mw_mapping *mapping, struct mw_elf **elf,
				     char **why) MW_MUST_CHECK;

#endif

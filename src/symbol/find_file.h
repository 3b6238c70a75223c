/* SPDX-License-Identifier: MIT */
/*
 * find_file.h: the file of a module that a recording names, on this machine, which may be another one.
 *
 * What has the same build-id is the same file, or its debug information; nothing else is taken for it. In each
 * directory, in their order, these are tried, then the path as it is:
 *   DIRECTORY/PATH  DIRECTORY/NAME  DIRECTORY/NAME.debug  DIRECTORY/.build-id/xx/yyyy[.debug]
 */
#ifndef MW_SYMBOL_FIND_FILE_H
#define MW_SYMBOL_FIND_FILE_H

#include "symbol/elf_image.h"

/* *out is NULL where there is none. Errors: MEMORY. */
struct mw_error *mw_find_file(const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *const *directories, size_t count, struct mw_elf **out) MW_MUST_CHECK;

#endif

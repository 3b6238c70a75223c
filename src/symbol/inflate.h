/* SPDX-License-Identifier: MIT */
/*
 * inflate.h: compressed debug sections. Those compressed by zstd libelf reads from release 0.189 on, and only where it
 * was built with zstd; so they are uncompressed before libelf sees the file.
 */
#ifndef MW_SYMBOL_INFLATE_H
#define MW_SYMBOL_INFLATE_H

#include <stdint.h>

/*
 * The uncompressed bytes of a section (SHF_COMPRESSED, 64-bit) of `size` bytes, malloc'ed. NULL where it is damaged,
 * too large, or compressed by neither zlib nor zstd, or memory runs out.
 */
uint8_t *mw_inflate_section(const uint8_t *section, uint64_t size, uint64_t *inflated);

/*
 * A descriptor of a copy in memory of the ELF file behind `fd` in which they are not compressed, or -1: there are none,
 * or not all could be read (libelf then reads what it can). `fd` stays open. Where sections can't be read
 * `*obstacle` (may be NULL) becomes static text that says why, to follow "its debug sections".
 */
int mw_inflate_file(int fd, const char **obstacle);

#endif

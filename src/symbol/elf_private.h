/* SPDX-License-Identifier: MIT */
/* elf_private.h: what the files elf_*.c ask of an image beside elf_image.h. */
#ifndef MW_SYMBOL_ELF_PRIVATE_H
#define MW_SYMBOL_ELF_PRIVATE_H

#include "symbol/elf_image.h"

#include <elf.h>

/* One section header, and its name or NULL (`name` may be NULL); false beyond the last. */
bool mw_elf_section_header(const struct mw_elf *elf, uint64_t index, Elf64_Shdr *out, const char **name);
/* The range of a section in the file; size 0 where it has no bytes or lies outside. */
struct mw_elf_range mw_elf_section_range(const struct mw_elf *elf, const Elf64_Shdr *header);
/* Where a virtual address stands in the file, and how many bytes of its segment follow. Any segment. */
bool mw_elf_offset_of(const struct mw_elf *elf, uint64_t vaddr, uint64_t *offset, uint64_t *available);
/* The string at `index` of a string table, or NULL where it does not end inside. */
const char *mw_elf_string_in(const uint8_t *table, uint64_t size, uint64_t index);

#endif

/* SPDX-License-Identifier: MIT */
/* elf_private.h: the inside of an image, for the files elf_*.c only. */
#ifndef MW_SYMBOL_ELF_PRIVATE_H
#define MW_SYMBOL_ELF_PRIVATE_H

#include "symbol/elf_bytes.h"
#include "symbol/elf_image.h"

#include <elf.h>

/* A range of the file. size 0: not there. */
struct elf_range {
	uint64_t offset, size;
};

struct mw_elf {
	_Atomic unsigned references;
	struct mw_elf_bytes bytes;
	char *name;
	uint16_t type, machine;
	bool is_64;

	struct mw_elf_segment *segments; /* PT_LOADs, in the order of the file */
	size_t segment_count;
	struct elf_range *notes; /* PT_NOTEs */
	size_t note_count;
	struct elf_range dynamic;
	uint64_t eh_frame_hdr, eh_frame_hdr_size; /* vaddr */
	bool has_interpreter;

	uint64_t sections; /* file offset of the section headers */
	uint64_t section_count;
	struct elf_range section_names;

	uint8_t build_id[64];
	size_t build_id_size;
	struct elf_range build_id_note; /* its bytes in the file */

	struct elf_range dynamic_strings;
	uint64_t dynamic_symbols, hash, gnu_hash; /* vaddr, 0: none */
	char *soname;
	bool has_needed;

	struct mw_elf *symbols; /* the file that has its symbols (elf_companion.h), or NULL */

	void *plain_names; /* a tree (tsearch) of names without their version; under the lock of `bytes` */
};

/* Fills sections, section_count and section_names, or leaves them empty. */
void mw_elf_init_sections(struct mw_elf *elf, const Elf64_Ehdr *header);
/* One section header; false beyond the last. */
bool mw_elf_section_header(const struct mw_elf *elf, uint64_t index, Elf64_Shdr *out);
/* The range of a section in the file; size 0 where it has no bytes or lies outside. */
struct elf_range mw_elf_section_range(const struct mw_elf *elf, const Elf64_Shdr *header);

/* From PT_DYNAMIC and the notes; what makes no sense is left out. */
void mw_elf_init_dynamic(struct mw_elf *elf);
void mw_elf_init_build_id(struct mw_elf *elf);
/* How many symbols the hash tables know of; 0 where there is no table or it makes no sense. */
uint64_t mw_elf_dynamic_symbol_count(const struct mw_elf *elf);

/* The bytes of a file range. The image may be const: loading does not change what it says. */
const uint8_t *mw_elf_range_bytes(const struct mw_elf *elf, uint64_t offset, uint64_t size);
/* Where a virtual address stands in the file, and how many bytes of its segment follow. Any segment. */
bool mw_elf_offset_of(const struct mw_elf *elf, uint64_t vaddr, uint64_t *offset, uint64_t *available);
/* The string at `index` of a string table, or NULL where it does not end inside. */
const char *mw_elf_string_in(const uint8_t *table, uint64_t size, uint64_t index);
const char *mw_elf_string(const struct mw_elf *elf, struct elf_range table, uint64_t index);

void mw_elf_free_names(struct mw_elf *elf);

#endif

// SPDX-License-Identifier: MIT
/* elf_sections.c: section headers, build-id and what the dynamic section tells of an image. */
#include "symbol/elf_private.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SECTIONS ((uint64_t)1 << 20)
#define MAX_STRING   ((uint64_t)1 << 20)

const char *mw_elf_string_in(const uint8_t *table, uint64_t size, uint64_t index)
{
	uint64_t rest;

	if (index >= size)
		return NULL;
	rest = size - index;
	if (!memchr(table + index, '\0', rest < MAX_STRING ? rest : MAX_STRING))
		return NULL;
	return (const char *)table + index;
}

const char *mw_elf_string(const struct mw_elf *elf, struct elf_range table, uint64_t index)
{
	const uint8_t *bytes = mw_elf_range_bytes(elf, table.offset, table.size);

	return bytes ? mw_elf_string_in(bytes, table.size, index) : NULL;
}

bool mw_elf_section_header(const struct mw_elf *elf, uint64_t index, Elf64_Shdr *out)
{
	const uint8_t *bytes;

	if (index >= elf->section_count)
		return false;
	bytes = mw_elf_range_bytes(elf, elf->sections + index * sizeof(*out), sizeof(*out));
	if (!bytes)
		return false;
	memcpy(out, bytes, sizeof(*out));
	return true;
}

struct elf_range mw_elf_section_range(const struct mw_elf *elf, const Elf64_Shdr *header)
{
	struct elf_range range = {header->sh_offset, header->sh_size};

	if (header->sh_type == SHT_NOBITS || header->sh_type == SHT_NULL || header->sh_offset > elf->bytes.size ||
	    header->sh_size > elf->bytes.size - header->sh_offset)
		range = (struct elf_range){0, 0};
	return range;
}

void mw_elf_init_sections(struct mw_elf *elf, const Elf64_Ehdr *header)
{
	uint64_t room, names = header->e_shstrndx;
	Elf64_Shdr first, table;

	if (!header->e_shoff || header->e_shoff >= elf->bytes.size || header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	room = (elf->bytes.size - header->e_shoff) / sizeof(Elf64_Shdr);
	elf->sections = header->e_shoff;
	elf->section_count = room ? 1 : 0;
	if (!mw_elf_section_header(elf, 0, &first))
		return;
	/* Numbers too large for the ELF header stand in the first section header. */
	elf->section_count = header->e_shnum ? header->e_shnum : first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (elf->section_count > room || elf->section_count > MAX_SECTIONS) {
		elf->section_count = 0;
		return;
	}
	if (mw_elf_section_header(elf, names, &table))
		elf->section_names = mw_elf_section_range(elf, &table);
}

struct mw_elf_section mw_elf_section(const struct mw_elf *elf, const char *name)
{
	struct mw_elf_section found = {0};
	Elf64_Shdr header;

	for (uint64_t i = 1; mw_elf_section_header(elf, i, &header); i++) {
		const char *own = mw_elf_string(elf, elf->section_names, header.sh_name);
		struct elf_range range;

		if (!own || strcmp(own, name) != 0)
			continue;
		range = mw_elf_section_range(elf, &header);
		if (!range.size)
			continue;
		found.vaddr = header.sh_flags & SHF_ALLOC ? header.sh_addr : 0;
		found.offset = range.offset;
		found.size = range.size;
		found.compressed = (header.sh_flags & SHF_COMPRESSED) != 0 || strncmp(name, ".zdebug", 7) == 0;
		found.present = true;
		break;
	}
	return found;
}

bool mw_elf_is_go(const struct mw_elf *elf)
{
	return mw_elf_section(elf, ".note.go.buildid").present || mw_elf_section(elf, ".go.buildinfo").present ||
	       mw_elf_section(elf, ".gopclntab").present;
}

/* Search notes for the build-id. Names and descriptions are padded to 4 bytes (also where p_align says 8,
 * which only property notes use, and those have sizes that fit both). */
static bool find_build_id(struct mw_elf *elf, struct elf_range range)
{
	const uint8_t *bytes = mw_elf_range_bytes(elf, range.offset, range.size);
	uint64_t at = 0;

	if (!bytes)
		return false;
	while (range.size - at >= sizeof(Elf64_Nhdr)) {
		uint64_t name, description, next;
		Elf64_Nhdr note;

		memcpy(&note, bytes + at, sizeof(note));
		name = at + sizeof(note);
		description = name + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
		next = description + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (description > range.size || note.n_descsz > range.size - description)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(bytes + name, "GNU", 4) == 0 &&
		    note.n_descsz > 0 && note.n_descsz <= sizeof(elf->build_id)) {
			memcpy(elf->build_id, bytes + description, note.n_descsz);
			elf->build_id_size = note.n_descsz;
			elf->build_id_note = (struct elf_range){range.offset + description, note.n_descsz};
			return true;
		}
		if (next > range.size)
			return false;
		at = next;
	}
	return false;
}

void mw_elf_init_build_id(struct mw_elf *elf)
{
	struct mw_elf_section section;

	for (size_t i = 0; i < elf->note_count; i++)
		if (find_build_id(elf, elf->notes[i]))
			return;
	section = mw_elf_section(elf, ".note.gnu.build-id");
	if (section.present)
		(void)find_build_id(elf, (struct elf_range){section.offset, section.size});
}

static void take_dynamic_strings(struct mw_elf *elf, uint64_t vaddr, uint64_t size)
{
	uint64_t offset, available;

	if (!mw_elf_offset_of(elf, vaddr, &offset, &available))
		return;
	elf->dynamic_strings = (struct elf_range){offset, size < available ? size : available};
}

void mw_elf_init_dynamic(struct mw_elf *elf)
{
	const uint8_t *bytes = mw_elf_range_bytes(elf, elf->dynamic.offset, elf->dynamic.size);
	uint64_t strings = 0, strings_size = 0, soname = 0;
	const char *name;

	if (!bytes)
		return;
	for (uint64_t at = 0; elf->dynamic.size - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_NEEDED)
			elf->has_needed = true;
		else if (entry.d_tag == DT_SONAME)
			soname = entry.d_un.d_val;
		else if (entry.d_tag == DT_STRTAB)
			strings = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			strings_size = entry.d_un.d_val;
		else if (entry.d_tag == DT_SYMTAB)
			elf->dynamic_symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_HASH)
			elf->hash = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_GNU_HASH)
			elf->gnu_hash = entry.d_un.d_ptr;
	}
	take_dynamic_strings(elf, strings, strings_size);
	name = soname ? mw_elf_string(elf, elf->dynamic_strings, soname) : NULL;
	if (name && *name)
		elf->soname = strdup(name);
}

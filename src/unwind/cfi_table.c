// SPDX-License-Identifier: MIT
/* cfi_table.c: a module's table of frame descriptions (cfi_table.h). */
#include "unwind/cfi_table.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	int32_t start, description;
};

/* .eh_frame_hdr with the encodings that every linker writes; others are made anew from .eh_frame. */
static bool from_header(const struct mw_module *module, struct mw_cfi_table *table)
{
	uint64_t vaddr, size;
	struct {
		uint8_t version, frame_encoding, count_encoding, table_encoding;
		int32_t frame;
		uint32_t count;
	} header;

	if (!mw_elf_eh_frame_hdr(module->elf, &vaddr, &size) || size < sizeof(header) ||
	    !mw_elf_read(module->elf, vaddr, &header, sizeof(header)))
		return false;
	if (header.version != 1 || (header.frame_encoding & 0x0f) == 0 || header.count_encoding != DW_EH_PE_udata4 ||
	    header.table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return false;
	if (header.count == 0 || header.count > (size - sizeof(header)) / sizeof(struct entry))
		return false;
	table->base = vaddr + module->bias;
	table->entries = table->base + sizeof(header);
	table->count = header.count;
	table->present = true;
	return true;
}

/* Bytes of a section being read; every step is bounded by `end`. */
struct cursor {
	const uint8_t *start, *at, *end;
};

static uint64_t take(struct cursor *cursor, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < size) {
		cursor->at = cursor->end;
		return 0;
	}
	memcpy(&value, cursor->at, size);
	cursor->at += size;
	return value;
}

static void skip_leb128(struct cursor *cursor)
{
	while (cursor->at < cursor->end && (*cursor->at++ & 0x80) != 0)
		;
}

/* The pointer encoding that a CIE asks for in its descriptions; DW_EH_PE_omit where it makes no sense. */
static uint8_t cie_encoding(struct cursor cursor)
{
	uint8_t version = (uint8_t)take(&cursor, 1);
	const uint8_t *augmentation = cursor.at;

	while (cursor.at < cursor.end && *cursor.at)
		cursor.at++;
	if (cursor.at == cursor.end)
		return DW_EH_PE_omit;
	cursor.at++;
	if (*augmentation != 'z')
		return *augmentation ? DW_EH_PE_omit : DW_EH_PE_absptr;
	skip_leb128(&cursor);
	skip_leb128(&cursor);
	if (version == 1)
		take(&cursor, 1);
	else
		skip_leb128(&cursor);
	skip_leb128(&cursor);
	for (const uint8_t *letter = augmentation + 1; *letter; letter++) {
		if (*letter == 'R')
			return (uint8_t)take(&cursor, 1);
		if (*letter == 'L')
			take(&cursor, 1);
		else if (*letter == 'P') {
			uint8_t encoding = (uint8_t)take(&cursor, 1) & 0x0f;

			take(&cursor, encoding == DW_EH_PE_sdata4 || encoding == DW_EH_PE_udata4 ? 4 : 8);
		}
	}
	return DW_EH_PE_absptr;
}

/* A description's first address, as a vaddr of the file. */
static bool decode_start(struct cursor *cursor, uint8_t encoding, uint64_t section, uint64_t *out)
{
	uint64_t here = section + (uint64_t)(cursor->at - cursor->start);
	uint64_t value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = take(cursor, 8);
		break;
	case DW_EH_PE_udata4:
		value = take(cursor, 4);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int64_t)(int32_t)take(cursor, 4);
		break;
	default:
		return false;
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		value += here;
	else if ((encoding & 0x70) != DW_EH_PE_absptr)
		return false;
	*out = value;
	return true;
}

/* One record of .eh_frame: gives the description's start, or false for a CIE or nonsense. */
static bool read_record(const struct cursor *section, uint64_t section_vaddr, struct cursor record, uint64_t *start)
{
	const uint8_t *id_at = record.at;
	uint32_t id = (uint32_t)take(&record, 4);
	struct cursor cie = *section;
	uint32_t length;

	if (id == 0 || (size_t)(id_at - section->start) < id)
		return false;
	cie.at = id_at - id;
	length = (uint32_t)take(&cie, 4);
	if (length < 4 || length == UINT32_MAX || (size_t)(cie.end - cie.at) < length)
		return false;
	cie.end = cie.at + length;
	if (take(&cie, 4) != 0)
		return false;
	return decode_start(&record, cie_encoding(cie), section_vaddr, start);
}

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static struct mw_error *from_section(const struct mw_module *module, struct mw_cfi_table *table)
{
	struct mw_elf_section section = mw_elf_section(module->elf, ".eh_frame");
	struct cursor all;
	struct entry *entries;
	size_t count = 0;

	if (!section.present || section.compressed || section.vaddr == 0 || section.size < 8)
		return NULL;
	all.start = all.at = mw_elf_file_bytes(module->elf, section.offset, section.size);
	if (!all.start)
		return NULL;
	all.end = all.start + section.size;
	entries = calloc(section.size / 12 + 1, sizeof(*entries));
	if (!entries)
		return mw_error_nomem();
	while (all.end - all.at >= 8) {
		const uint8_t *record = all.at;
		uint32_t length = (uint32_t)take(&all, 4);
		struct cursor body = {all.start, all.at, all.at + length};
		uint64_t start;

		if (length == 0 || length == UINT32_MAX || (size_t)(all.end - all.at) < length)
			break;
		if (read_record(&all, section.vaddr, body, &start)) {
			entries[count].start = (int32_t)(start - section.vaddr);
			entries[count++].description = (int32_t)(record - all.start);
		}
		all.at += length;
	}
	qsort(entries, count, sizeof(*entries), by_start);
	table->base = section.vaddr + module->bias;
	table->entries = MW_CFI_LOCAL_BASE + module->number * MW_CFI_LOCAL_SPAN;
	table->count = count;
	table->local = entries;
	table->present = count > 0;
	return NULL;
}

struct mw_error *mw_cfi_table_init(const struct mw_module *module, struct mw_cfi_table *table)
{
	memset(table, 0, sizeof(*table));
	if (!module->elf || from_header(module, table))
		return NULL;
	return from_section(module, table);
}

void mw_cfi_table_deinit(struct mw_cfi_table *table)
{
	free(table->local);
	memset(table, 0, sizeof(*table));
}

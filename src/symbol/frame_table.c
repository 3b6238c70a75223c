// SPDX-License-Identifier: MIT
/* frame_table.c: bounded reading of .eh_frame_hdr and .eh_frame (frame_table.h). */
#include "symbol/frame_table.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define ENCODING_FORM     0x0f
#define ENCODING_RELATION 0x70

#define RECORD_LIMIT    (1U << 20) /* no description is that long */
#define SHORTEST_RECORD 12         /* length, CIE pointer and a word */

/* Bytes that may lie, and where they stand. */
struct cursor {
	const uint8_t *at;
	size_t left;
	uint64_t vaddr; /* of `at` */
	bool ok;
};

static void skip(struct cursor *cursor, size_t size)
{
	if (!cursor->ok || size > cursor->left) {
		cursor->ok = false;
		return;
	}
	cursor->at += size;
	cursor->left -= size;
	cursor->vaddr += size;
}

static uint64_t take(struct cursor *cursor, size_t size)
{
	const uint8_t *from = cursor->at;
	uint64_t value = 0;

	skip(cursor, size);
	if (cursor->ok)
		memcpy(&value, from, size);
	return value;
}

static void skip_leb128(struct cursor *cursor)
{
	while (take(cursor, 1) & 0x80)
		;
}

/* Bytes of a pointer so encoded; 0 for encodings of no fixed size. */
static size_t encoded_size(uint8_t encoding)
{
	switch (encoding & ENCODING_FORM) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	default:
		return 0;
	}
}

/* A number that has a size (encoded_size), sign-extended where the encoding says so. */
static uint64_t take_encoded(struct cursor *cursor, uint8_t encoding)
{
	uint64_t value = take(cursor, encoded_size(encoding));

	switch (encoding & ENCODING_FORM) {
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)value;
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)value;
	default:
		return value;
	}
}

/* .eh_frame_hdr; the table is in the form that every linker gives it, or not used. */
static bool from_header(struct mw_frame_table *table)
{
	uint8_t bytes[4 + 2 * sizeof(uint64_t)] = {0}, frame_encoding, count_encoding, table_encoding;
	struct cursor cursor = {.at = bytes, .ok = true};
	uint64_t size, count, entries;

	if (!mw_elf_eh_frame_hdr(table->elf, &cursor.vaddr, &size))
		return false;
	table->base = cursor.vaddr;
	cursor.left = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
	while (cursor.left && !mw_elf_read(table->elf, cursor.vaddr, bytes, cursor.left))
		cursor.left--; /* nothing follows the section */
	if (take(&cursor, 1) != 1)
		return false;
	frame_encoding = (uint8_t)take(&cursor, 1);
	count_encoding = (uint8_t)take(&cursor, 1);
	table_encoding = (uint8_t)take(&cursor, 1);
	if (table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4) || count_encoding == DW_EH_PE_omit ||
	    !encoded_size(count_encoding))
		return false;
	if (frame_encoding != DW_EH_PE_omit && !encoded_size(frame_encoding))
		return false;
	if (frame_encoding != DW_EH_PE_omit)
		skip(&cursor, encoded_size(frame_encoding));
	count = take(&cursor, encoded_size(count_encoding));
	entries = size - (cursor.vaddr - table->base);
	if (!cursor.ok || count > entries / sizeof(struct mw_frame_entry))
		return false;
	table->vaddr = cursor.vaddr;
	table->count = (size_t)count;
	return count > 0;
}

/* `size` bytes of .eh_frame, or NULL. */
static const uint8_t *frame_bytes(const struct mw_frame_table *table, uint64_t vaddr, size_t size)
{
	uint64_t into = vaddr - table->base;

	if (!table->section)
		return mw_elf_span(table->elf, vaddr, size);
	return into <= table->section_size && size <= table->section_size - into ? table->section + into : NULL;
}

/* The record at `vaddr` without its length. 64-bit DWARF is never seen in .eh_frame; length 0 ends it. */
static bool open_record(const struct mw_frame_table *table, uint64_t vaddr, struct cursor *record)
{
	const uint8_t *bytes = frame_bytes(table, vaddr, sizeof(uint32_t));
	uint32_t length;

	if (!bytes)
		return false;
	memcpy(&length, bytes, sizeof(length));
	if (length == 0 || length > RECORD_LIMIT)
		return false;
	bytes = frame_bytes(table, vaddr + sizeof(length), length);
	*record = (struct cursor){bytes, length, vaddr + sizeof(length), true};
	return bytes;
}

/* How a CIE's descriptions encode their pointers: the augmentation's R, absolute without one. */
static bool read_encoding(struct cursor cie, uint8_t *encoding)
{
	uint8_t version;
	const char *letters;

	*encoding = DW_EH_PE_absptr;
	if (take(&cie, sizeof(uint32_t)) != 0) /* a description, no CIE */
		return false;
	version = (uint8_t)take(&cie, 1);
	letters = (const char *)cie.at;
	while (take(&cie, 1))
		;
	if (!cie.ok)
		return false;
	if (*letters != 'z') /* without it, what the letters stand for has no known size */
		return !*letters;
	skip_leb128(&cie); /* code alignment */
	skip_leb128(&cie); /* data alignment */
	if (version == 1)  /* return address register */
		skip(&cie, 1);
	else
		skip_leb128(&cie);
	skip_leb128(&cie); /* length of what follows */
	for (letters++; *letters; letters++) {
		switch (*letters) {
		case 'R':
			*encoding = (uint8_t)take(&cie, 1);
			return cie.ok;
		case 'P': /* a personality routine */
			skip(&cie, encoded_size((uint8_t)take(&cie, 1)));
			break;
		case 'L': /* encoding of what the routine is given */
			skip(&cie, 1);
			break;
		default: /* S, B: no data */
			break;
		}
	}
	return cie.ok;
}

/* The code that the description in `record` is of. False where it is none (a CIE), or makes no sense. */
static bool read_description(const struct mw_frame_table *table, struct cursor record, uint64_t *code, uint64_t *length)
{
	uint64_t at = record.vaddr, back = take(&record, sizeof(uint32_t));
	uint8_t encoding, relation;
	struct cursor cie;

	if (!record.ok || back == 0 || back > at || !open_record(table, at - back, &cie) ||
	    !read_encoding(cie, &encoding) || !encoded_size(encoding))
		return false;
	relation = encoding & ENCODING_RELATION;
	if (relation != DW_EH_PE_absptr && relation != DW_EH_PE_pcrel)
		return false;
	*code = relation == DW_EH_PE_pcrel ? record.vaddr : 0;
	*code += take_encoded(&record, encoding);
	*length = take(&record, encoded_size(encoding));
	return record.ok;
}

static int by_code(const void *a, const void *b)
{
	const struct mw_frame_entry *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

static void make_entries(struct mw_frame_table *table)
{
	uint64_t vaddr = table->base;
	struct cursor record;

	while (open_record(table, vaddr, &record)) {
		int64_t into = (int64_t)(vaddr - table->base), code;
		uint64_t start, length;

		if (read_description(table, record, &start, &length)) {
			code = (int64_t)(start - table->base);
			if (code == (int32_t)code && into == (int32_t)into)
				table->made[table->count++] = (struct mw_frame_entry){(int32_t)code, (int32_t)into};
		}
		vaddr = record.vaddr + record.left;
	}
	qsort(table->made, table->count, sizeof(*table->made), by_code);
}

static struct mw_error *from_section(struct mw_frame_table *table)
{
	struct mw_elf_section section = mw_elf_section(table->elf, ".eh_frame");

	if (!section.present || section.compressed || section.vaddr == 0)
		return NULL;
	table->base = section.vaddr;
	table->section_size = section.size;
	table->section = mw_elf_file_bytes(table->elf, section.offset, section.size);
	if (!table->section)
		return NULL;
	table->made = calloc(section.size / SHORTEST_RECORD + 1, sizeof(*table->made));
	if (!table->made)
		return mw_error_nomem();
	make_entries(table);
	return NULL;
}

struct mw_error *mw_frame_table_init(struct mw_frame_table *table, const struct mw_elf *elf)
{
	struct mw_frame_table found = {.elf = elf};

	if (!from_header(&found))
		MW_TRY(from_section(&found));
	*table = found;
	return NULL;
}

void mw_frame_table_deinit(struct mw_frame_table *table)
{
	free(table->made);
	*table = (struct mw_frame_table){0};
}

static bool get_entry(const struct mw_frame_table *table, size_t index, struct mw_frame_entry *entry)
{
	if (!table->made)
		return mw_elf_read(table->elf, table->vaddr + index * sizeof(*entry), entry, sizeof(*entry));
	*entry = table->made[index];
	return true;
}

bool mw_frame_table_find(const struct mw_frame_table *table, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	size_t low = 0, high = table->count;
	struct mw_frame_entry entry;
	struct cursor record;
	uint64_t begin, code, length;

	while (low < high) { /* the first entry that begins behind vaddr */
		size_t middle = low + (high - low) / 2;

		if (!get_entry(table, middle, &entry))
			return false;
		if (table->base + (uint64_t)(int64_t)entry.code <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !get_entry(table, low - 1, &entry))
		return false;
	begin = table->base + (uint64_t)(int64_t)entry.code;
	/* What the description says of its beginning is not asked: in a library it may be relocated only when loaded.
	 */
	if (!open_record(table, table->base + (uint64_t)(int64_t)entry.description, &record) ||
	    !read_description(table, record, &code, &length) || vaddr - begin >= length || length > UINT64_MAX - begin)
		return false;
	*start = begin;
	*end = begin + length;
	return true;
}

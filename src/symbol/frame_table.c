// SPDX-License-Identifier: MIT
/* frame_table.c: bounded reading of .eh_frame_hdr and .eh_frame (frame_table.h). */
#include "symbol/frame_table.h"

#include <dwarf.h>
#include <stdlib.h>

#define SHORTEST_RECORD 12 /* length, CIE pointer and a word */

/* .eh_frame_hdr; the table is in the form that every linker gives it, or not used. */
static bool from_header(struct mw_frame_table *table)
{
	uint8_t bytes[4 + 2 * sizeof(uint64_t)] = {0}, frame_encoding, count_encoding, table_encoding;
	struct mw_cursor cursor = {.at = bytes, .ok = true};
	uint64_t size, count, entries;

	if (!mw_elf_eh_frame_hdr(table->elf, &cursor.vaddr, &size))
		return false;
	table->base = cursor.vaddr;
	cursor.left = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
	while (cursor.left && !mw_elf_read(table->elf, cursor.vaddr, bytes, cursor.left))
		cursor.left--; /* nothing follows the section */
	if (mw_cursor_take(&cursor, 1) != 1)
		return false;
	frame_encoding = (uint8_t)mw_cursor_take(&cursor, 1);
	count_encoding = (uint8_t)mw_cursor_take(&cursor, 1);
	table_encoding = (uint8_t)mw_cursor_take(&cursor, 1);
	if (table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4) || count_encoding == DW_EH_PE_omit ||
	    !mw_frame_encoded_size(count_encoding))
		return false;
	if (frame_encoding != DW_EH_PE_omit && !mw_frame_encoded_size(frame_encoding))
		return false;
	if (frame_encoding != DW_EH_PE_omit)
		mw_cursor_skip(&cursor, mw_frame_encoded_size(frame_encoding));
	count = mw_cursor_take(&cursor, mw_frame_encoded_size(count_encoding));
	entries = size - (cursor.vaddr - table->base);
	if (!cursor.ok || count > entries / sizeof(struct mw_frame_entry))
		return false;
	table->vaddr = cursor.vaddr;
	table->count = (size_t)count;
	return count > 0;
}

static int by_code(const void *a, const void *b)
{
	const struct mw_frame_entry *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

static void make_entries(struct mw_frame_table *table)
{
	struct mw_frame_cie cie = {0};
	struct mw_frame_record record;

	for (uint64_t vaddr = table->base; mw_frame_open(&table->bytes, vaddr, &record); vaddr = record.next) {
		int64_t into = (int64_t)(vaddr - table->base), code;
		struct mw_frame_description description;

		if (!mw_frame_describe(&table->bytes, &record, &cie, &description))
			continue;
		code = (int64_t)(description.start - table->base);
		if (code == (int32_t)code && into == (int32_t)into)
			table->made[table->count++] = (struct mw_frame_entry){(int32_t)code, (int32_t)into};
	}
	qsort(table->made, table->count, sizeof(*table->made), by_code);
}

static struct mw_error *from_section(struct mw_frame_table *table)
{
	if (!mw_frame_bytes_init(&table->bytes, table->elf, ".eh_frame"))
		return NULL;
	table->base = table->bytes.vaddr;
	table->made = calloc(table->bytes.size / SHORTEST_RECORD + 1, sizeof(*table->made));
	if (!table->made)
		return mw_error_nomem();
	make_entries(table);
	return NULL;
}

struct mw_error *mw_frame_table_init(struct mw_frame_table *table, const struct mw_elf *elf)
{
	struct mw_frame_table found = {.elf = elf, .bytes.elf = elf};

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

bool mw_frame_table_entry(const struct mw_frame_table *table, size_t index, struct mw_frame_entry *entry)
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
	struct mw_frame_record record;
	struct mw_frame_description description;
	struct mw_frame_cie cie = {0};
	uint64_t begin;

	while (low < high) { /* the first entry that begins behind vaddr */
		size_t middle = low + (high - low) / 2;

		if (!mw_frame_table_entry(table, middle, &entry))
			return false;
		if (table->base + (uint64_t)(int64_t)entry.code <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !mw_frame_table_entry(table, low - 1, &entry))
		return false;
	begin = table->base + (uint64_t)(int64_t)entry.code;
	/* What the description says of its beginning is not asked: in a library it may be relocated only when loaded.
	 */
	if (!mw_frame_open(&table->bytes, table->base + (uint64_t)(int64_t)entry.description, &record) ||
	    !mw_frame_describe(&table->bytes, &record, &cie, &description) || vaddr - begin >= description.length ||
	    description.length > UINT64_MAX - begin)
		return false;
	*start = begin;
	*end = begin + description.length;
	return true;
}

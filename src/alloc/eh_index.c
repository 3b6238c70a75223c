// SPDX-License-Identifier: MIT
/* eh_index.c: bounded reading of .eh_frame_hdr's search table and of the FDEs it leads to. */
#include "alloc/eh_index.h"

#include <string.h>

/* Pointer encodings of the Linux Standard Base, as far as linkers use them here. */
#define PE_OMIT            0xff
#define PE_FORMAT          0x0f
#define PE_ABSPTR          0x00
#define PE_UDATA2          0x02
#define PE_UDATA4          0x03
#define PE_UDATA8          0x04
#define PE_SIGNED          0x08
#define PE_DATAREL_SDATA4  0x3b
#define TABLE_ENTRY        8
#define AUGMENTATION_LIMIT 16

/* A position in bytes that may lie. */
struct cursor {
	const uint8_t *at;
	size_t left;
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
}

static uint64_t take(struct cursor *cursor, size_t size)
{
	const uint8_t *from = cursor->at;
	uint64_t value = 0;

	skip(cursor, size);
	for (size_t i = 0; cursor->ok && i < size; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return cursor->ok ? value : 0;
}

static uint64_t take_leb128(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = take(cursor, 1);

		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->ok = false;
	return 0;
}

/* Bytes of a pointer so encoded; 0 for encodings of no fixed size. */
static size_t encoded_size(uint64_t encoding)
{
	switch (encoding & PE_FORMAT & ~(uint64_t)PE_SIGNED) {
	case PE_ABSPTR:
	case PE_UDATA8:
		return 8;
	case PE_UDATA2:
		return 2;
	case PE_UDATA4:
		return 4;
	default:
		return 0;
	}
}

static struct cursor cursor_at(const struct mw_elf *elf, uint64_t vaddr)
{
	struct cursor cursor = {0};

	cursor.at = mw_elf_bytes(elf, vaddr, &cursor.left);
	cursor.ok = cursor.at;
	return cursor;
}

bool mw_eh_index_init(struct mw_eh_index *index, const struct mw_elf *elf)
{
	uint64_t vaddr, size, frame_encoding, count_encoding, table_encoding, count;
	struct cursor cursor;

	if (!mw_elf_eh_frame_hdr(elf, &vaddr, &size))
		return false;
	cursor = cursor_at(elf, vaddr);
	if (cursor.left > size)
		cursor.left = size;
	if (take(&cursor, 1) != 1)
		return false;
	frame_encoding = take(&cursor, 1);
	count_encoding = take(&cursor, 1);
	table_encoding = take(&cursor, 1);
	if (!cursor.ok || table_encoding != PE_DATAREL_SDATA4 || count_encoding == PE_OMIT)
		return false;
	if ((frame_encoding != PE_OMIT && !encoded_size(frame_encoding)) || !encoded_size(count_encoding))
		return false;
	if (frame_encoding != PE_OMIT)
		skip(&cursor, encoded_size(frame_encoding));
	count = take(&cursor, encoded_size(count_encoding));
	if (!cursor.ok || !count || count > cursor.left / TABLE_ENTRY)
		return false;
	*index = (struct mw_eh_index){elf, vaddr, cursor.at, (size_t)count};
	return true;
}

/* Word 0 or 1 of a table entry, as an address. */
static uint64_t entry_address(const struct mw_eh_index *index, size_t entry, size_t word)
{
	int32_t offset;

	memcpy(&offset, index->table + entry * TABLE_ENTRY + word * sizeof(offset), sizeof(offset));
	return index->vaddr + (uint64_t)(int64_t)offset;
}

/* How a CIE's FDEs encode their pointers: the augmentation's R, absolute without one. False where it can't be told. */
static bool cie_pointer_size(const struct mw_elf *elf, uint64_t vaddr, size_t *size)
{
	struct cursor cursor = cursor_at(elf, vaddr);
	char augmentation[AUGMENTATION_LIMIT] = "";
	uint64_t encoding = PE_ABSPTR, version;
	size_t length = 0;

	skip(&cursor, 8); /* length, CIE mark */
	version = take(&cursor, 1);
	while (cursor.ok && length < AUGMENTATION_LIMIT - 1) {
		augmentation[length] = (char)take(&cursor, 1);
		if (!augmentation[length++])
			break;
	}
	if (augmentation[length ? length - 1 : 0])
		return false;
	take_leb128(&cursor); /* code alignment */
	take_leb128(&cursor); /* data alignment */
	if (version == 1)
		skip(&cursor, 1);
	else
		take_leb128(&cursor); /* return address register */
	if (augmentation[0] == 'z')
		take_leb128(&cursor);
	for (const char *letter = augmentation + (augmentation[0] == 'z'); *letter; letter++) {
		if (*letter == 'R') {
			encoding = take(&cursor, 1);
			break;
		}
		if (*letter == 'P')
			skip(&cursor, encoded_size(take(&cursor, 1)));
		else if (*letter == 'L')
			skip(&cursor, 1);
		else if (*letter != 'S' && *letter != 'B')
			return false;
	}
	*size = encoded_size(encoding);
	return cursor.ok && *size;
}

/* Bytes of code that an FDE covers; 0 where it makes no sense. */
static uint64_t fde_length(const struct mw_elf *elf, uint64_t vaddr)
{
	struct cursor cursor = cursor_at(elf, vaddr);
	uint64_t length = take(&cursor, 4), back;
	size_t size;

	/* 64-bit DWARF is never seen in .eh_frame; 0 ends the section. */
	if (!cursor.ok || !length || length == UINT32_MAX)
		return 0;
	back = take(&cursor, 4);
	if (!cursor.ok || !back || back > vaddr + 4)
		return 0;
	if (!cie_pointer_size(elf, vaddr + 4 - back, &size))
		return 0;
	skip(&cursor, size); /* where the code begins, which the table has said */
	return take(&cursor, size);
}

bool mw_eh_index_find(const struct mw_eh_index *index, uint64_t vaddr, struct mw_code_range *range)
{
	size_t low = 0, high = index->count;
	uint64_t start, length;

	while (low < high) { /* the first entry that begins behind vaddr */
		size_t middle = low + (high - low) / 2;

		if (entry_address(index, middle, 0) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	start = entry_address(index, low - 1, 0);
	length = fde_length(index->elf, entry_address(index, low - 1, 1));
	if (vaddr - start >= length || length > UINT64_MAX - start)
		return false;
	*range = (struct mw_code_range){start, start + length};
	return true;
}

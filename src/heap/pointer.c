// SPDX-License-Identifier: MIT
#include "heap/pointer.h"

#define WORD sizeof(uint64_t)

/* What an allocator may have added to the size that was asked for: it is not known here. */
static uint64_t slack(const struct mw_block *block)
{
	return block->size / 4 > 32 ? block->size / 4 : 32;
}

/* Can `count` elements of one size have been asked for, and `before` bytes? */
static bool may_be_count(const struct mw_block *block, uint64_t before, uint64_t count)
{
	uint64_t room = block->size - before;

	return count > 0 && count <= room && room - room / count * count < slack(block);
}

/* The count stands right before the first element: 8 bytes, 16 where the elements are so aligned. */
static bool is_array(struct mw_scan_worker *worker, const struct mw_block *block, uint64_t offset)
{
	uint64_t count;

	return (offset == WORD || offset == 2 * WORD) && mw_scan_peek(worker, block->start + offset - WORD, &count) &&
	       may_be_count(block, offset, count);
}

static bool is_string(struct mw_scan_worker *worker, const struct mw_block *block, uint64_t offset)
{
	uint64_t length, capacity, references, last;
	mw_addr end;

	if (offset != 3 * WORD || !mw_scan_peek(worker, block->start, &length) ||
	    !mw_scan_peek(worker, block->start + WORD, &capacity) ||
	    !mw_scan_peek(worker, block->start + 2 * WORD, &references))
		return false;
	if (length > capacity || capacity >= block->size - offset || block->size - offset - capacity > slack(block) ||
	    (int32_t)references < -1)
		return false;
	end = block->start + offset + length;
	return mw_scan_peek(worker, end & ~UINT64_C(7), &last) && (last >> (end % WORD * 8) & 0xff) == 0;
}

/* What stands two words before a vtable's functions: how far the whole object begins from the base object that it is of.
 * Vtables lie in memory of a file. */
static bool vtable_offset(struct mw_scan_worker *worker, const struct mw_image *image, mw_addr vtable, uint64_t *offset)
{
	const struct mw_image_mapping *mapping = vtable % WORD == 0 ? mw_image_mapping_of(image, vtable) : NULL;

	return mapping && mapping->inode != 0 && !mapping->shared && vtable - mapping->start >= 2 * WORD &&
	       mw_scan_peek(worker, vtable - 2 * WORD, offset);
}

static bool is_base(struct mw_scan_worker *worker, const struct mw_image *image, const struct mw_block *block,
		    uint64_t offset)
{
	uint64_t whole, base, to_whole;

	return offset % WORD == 0 && block->size - offset >= WORD && mw_scan_peek(worker, block->start, &whole) &&
	       mw_scan_peek(worker, block->start + offset, &base) && vtable_offset(worker, image, whole, &to_whole) &&
	       to_whole == 0 && vtable_offset(worker, image, base, &to_whole) && to_whole == -offset;
}

bool mw_pointer_holds(struct mw_scan_worker *worker, const struct mw_image *image, const struct mw_pointer *pointer)
{
	const struct mw_block *block = &pointer->block;
	uint64_t offset = pointer->word - block->start;

	if (pointer->is_start)
		return !pointer->altered;
	return (offset < block->size && (is_array(worker, block, offset) || is_string(worker, block, offset) ||
					 is_base(worker, image, block, offset)));
}

// SPDX-License-Identifier: MIT
/*
 * chunk.c: what glibc's chunk headers say of a block (recorder.h).
 *
 *      chunk            block                         next chunk
 *      | prev_size | size|AMP | … usable …            | size|..P |
 *      block-16     block-8                            block-16+size+8
 *
 * The rules are those of src/alloc/glibc_chunk.c. Read is only what was writable memory of the process's own at attach.
 */
#include "stub/recorder.h"

#define HEADER         16
#define ALIGNMENT      16
#define MINIMUM        32
#define PREV_INUSE     1u
#define MMAPPED        2u
#define FLAGS          UINT64_C(7)
#define PAGE           4096u
#define ADDRESS_LIMIT  (UINT64_C(1) << 56)
#define FENCEPOST_SIZE 16

static bool header_readable(uint64_t start, uint64_t size)
{
	const struct mw_stub_range *ranges = (const struct mw_stub_range *)(uintptr_t)stub_context()->readable;
	uint64_t low = 0, high = ranges ? stub_context()->readable_count : 0;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (ranges[middle].start <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && start < ranges[low - 1].end && size <= ranges[low - 1].end - start;
}

static uint64_t mapped_usable(uint64_t chunk, uint64_t prev_size, uint64_t size)
{
	if (prev_size > chunk || (chunk - prev_size) % PAGE)
		return UINT64_MAX;
	if ((prev_size + size) % PAGE == 0)
		return size - HEADER;
	/* glibc 2.43 and later */
	return (prev_size + size + HEADER) % PAGE == 0 ? size - 8 : UINT64_MAX;
}

uint64_t stub_chunk_usable(uint64_t block)
{
	uint64_t word, size, next;

	if (block % ALIGNMENT || block < HEADER || block >= ADDRESS_LIMIT || !header_readable(block - HEADER, HEADER))
		return UINT64_MAX;
	word = stub_read(block - 8);
	size = word & ~FLAGS;
	if (size < MINIMUM || size % ALIGNMENT || size >= ADDRESS_LIMIT)
		return UINT64_MAX;
	if (word & MMAPPED)
		return (word & FLAGS) == MMAPPED ? mapped_usable(block - HEADER, stub_read(block - HEADER), size)
						 : UINT64_MAX;
	if (!header_readable(block - 8 + size, 8))
		return UINT64_MAX;
	next = stub_read(block - 8 + size);
	if (!(next & PREV_INUSE) || (next & MMAPPED))
		return UINT64_MAX;
	next &= ~FLAGS;
	if (next < FENCEPOST_SIZE || next % ALIGNMENT || next >= ADDRESS_LIMIT)
		return UINT64_MAX;
	return size - 8;
}

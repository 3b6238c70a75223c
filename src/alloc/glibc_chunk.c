// SPDX-License-Identifier: MIT
/*
 * glibc_chunk.c: reading glibc's chunk headers.
 *
 *      chunk            block                         next chunk
 *      | prev_size | size|AMP | … usable …            | size|..P |
 *      block-16     block-8                            block-16+size+8
 *
 * The low bits of a size: P the chunk before is in use, M the chunk has a mapping of its own, A it is not of the main
 * arena. A heap chunk's user may also use the next chunk's prev_size. A mapped one has no next chunk: it ends with its
 * mapping; from glibc 2.43 on 16 bytes before that, so that its user has a prev_size as well.
 */
#include "alloc/families.h"

#define HEADER         16
#define ALIGNMENT      16
#define MINIMUM        32
#define PREV_INUSE     1U
#define MMAPPED        2U
#define FLAGS          7U
#define HUGE_PAGES     1U /* in prev_size of a mapped one, from glibc 2.43 on */
#define PAGE           4096U
#define ADDRESS_LIMIT  (UINT64_C(1) << 56) /* five-level page tables' user half */
#define FENCEPOST_SIZE 16                  /* smallest size that stands at an arena's end */

/* What lies before a chunk with a mapping of its own, the chunk, and what lies behind it span whole pages together. */
static uint64_t mapped_usable(mw_addr chunk, uint64_t prev_size, uint64_t size)
{
	prev_size &= ~(uint64_t)HUGE_PAGES;
	if (prev_size > chunk || (chunk - prev_size) % PAGE)
		return MW_SIZE_UNKNOWN;
	if ((prev_size + size) % PAGE == 0)
		return size - HEADER;
	return (prev_size + size + HEADER) % PAGE == 0 ? size - sizeof(uint64_t) : MW_SIZE_UNKNOWN;
}

uint64_t mw_glibc_usable_size(mw_addr block, bool (*read)(void *context, mw_addr addr, void *out, size_t size),
			      void *context)
{
	uint64_t header[2], next, size;

	if (block % ALIGNMENT || block < HEADER || block >= ADDRESS_LIMIT)
		return MW_SIZE_UNKNOWN;
	if (!read(context, block - HEADER, header, sizeof(header)))
		return MW_SIZE_UNKNOWN;
	size = header[1] & ~(uint64_t)FLAGS;
	if (size < MINIMUM || size % ALIGNMENT || size >= ADDRESS_LIMIT)
		return MW_SIZE_UNKNOWN;
	if (header[1] & MMAPPED)
		return (header[1] & FLAGS) == MMAPPED ? mapped_usable(block - HEADER, header[0], size)
						      : MW_SIZE_UNKNOWN;
	if (!read(context, block - HEADER + size + sizeof(uint64_t), &next, sizeof(next)))
		return MW_SIZE_UNKNOWN;
	/* The block is in use, so the chunk behind it says so; none behind a heap chunk is mapped. */
	if (!(next & PREV_INUSE) || (next & MMAPPED))
		return MW_SIZE_UNKNOWN;
	next &= ~(uint64_t)FLAGS;
	if (next < FENCEPOST_SIZE || next % ALIGNMENT || next >= ADDRESS_LIMIT)
		return MW_SIZE_UNKNOWN;
	return size - sizeof(uint64_t);
}

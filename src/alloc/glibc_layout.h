/* SPDX-License-Identifier: MIT */
/*
 * glibc_layout.h: how glibc's arenas lie in memory, on machines of 64 bits.
 *
 * malloc_state, glibc 2.27 and later (before, all from the fast bins on stands 8 lower):
 *
 *      0    mutex, flags, have_fastchunks
 *      16   fast bins              10 lists of chunks
 *      96   top                    the chunk that is cut from where no other fits
 *      104  last remainder
 *      112  bins                   127 × {first, last}; a list's head is 16 before its pair
 *      2144 bin map
 *      2160 next                   the arenas in a ring
 *      2168 next free
 *      2176 attached threads
 *      2184 system_mem, max_system_mem
 *
 * heap_info, at a multiple of 64 MiB: {arena, heap before, size, writable size} and from 2.35 on {page size, pad}. In
 * an arena's first heap its state follows, in later ones the first chunk.
 */
#ifndef MW_ALLOC_GLIBC_LAYOUT_H
#define MW_ALLOC_GLIBC_LAYOUT_H

#include "alloc/glibc_arenas.h"

#include <string.h>

enum {
	GLIBC_BINS = 127,
	GLIBC_BINS_SIZE = GLIBC_BINS * 16,
	GLIBC_FAST_BINS = 10,
	/* From the first bin. */
	GLIBC_TOP = -16,
	GLIBC_FAST = -96,
	GLIBC_NEXT = GLIBC_BINS_SIZE + 16,
	GLIBC_ATTACHED = GLIBC_NEXT + 16,
	GLIBC_SYSTEM = GLIBC_NEXT + 24,
	GLIBC_MAX_SYSTEM = GLIBC_NEXT + 32,
	GLIBC_STATE_END = GLIBC_NEXT + 40,
	/* The first bin from the state, by release: without fast bins it would be another. */
	GLIBC_BINS_AT = 112,
	GLIBC_BINS_AT_OLD = 104,
	GLIBC_BINS_AT_MOST = 128,
};

#define GLIBC_PREV_INUSE UINT64_C(1)
#define GLIBC_MMAPPED    UINT64_C(2)
#define GLIBC_NON_MAIN   UINT64_C(4)
#define GLIBC_FLAGS      UINT64_C(7)
#define GLIBC_ALIGNMENT  16u
#define GLIBC_LEAST      32u /* bytes of a chunk */
#define GLIBC_UNKNOWN    ((struct mw_glibc_figures){MW_SIZE_UNKNOWN, MW_SIZE_UNKNOWN, MW_SIZE_UNKNOWN})

static inline bool glibc_read(const struct mw_glibc_process *process, mw_addr addr, void *out, size_t size)
{
	return process->read(process->context, addr, out, size) == size;
}

static inline uint64_t glibc_word(const unsigned char *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

#endif

/* SPDX-License-Identifier: MIT */
/* heapblocks.h: what heapblocks tells of its heap, in a file that it shares with the test. */
#ifndef MW_TARGETS_HEAPBLOCKS_H
#define MW_TARGETS_HEAPBLOCKS_H

#include <stdint.h>

#define HEAPBLOCKS_SLOTS 20000u

struct heapblocks {
	_Atomic uint32_t ready;
	uint32_t count;
	/* Bytes that the allocator's own statistics tell; 0: it tells none. */
	uint64_t allocated; /* live, cached, and its own blocks */
	uint64_t cached;    /* of these, in threads' caches */
	struct {
		uint64_t addr, usable;
	} blocks[HEAPBLOCKS_SLOTS];
};

#endif

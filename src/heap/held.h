/* SPDX-License-Identifier: MIT */
/* held.h: what is kept of a search for reachable blocks (reach.c), and who retains how much of it (held.c). */
#ifndef MW_HEAP_HELD_H
#define MW_HEAP_HELD_H

#include "heap/pointer.h"
#include "heap/roots.h"

#define MW_ROOT_NO_THREAD 0x7fffffffU
#define MW_ROOT_AT_SP     UINT64_MAX /* mw_root_pointer.at: the block is a thread's stack */

/* A pointer from a root, the first that was seen to a block. */
struct mw_root_pointer {
	mw_addr at; /* of a register: its index */
	uint32_t number;
	uint32_t thread : 31;  /* whose register it is: an index in the image; else MW_ROOT_NO_THREAD */
	uint32_t interior : 1; /* it does not point to the block's start */
};

struct mw_reached {
	const struct mw_image *image;
	const struct mw_blocks *blocks;
	uint64_t tag_bits;
	uint32_t count; /* of the segments' numbers, by which all arrays are */
	_Atomic uint64_t *reachable, *possible, *indirect;
	_Atomic uint32_t *holders;        /* its own number: a root; MW_BLOCK_NONE: nothing */
	struct mw_root_pointer *pointers; /* by number, then those to the start first */
	size_t pointer_count, pointer_capacity;
	struct mw_roots roots;
	struct mw_amount sums[MW_REACH_COUNT];
	uint64_t scanned, unread;
	bool incomplete; /* not all that may hold pointers could be read: nothing is certainly lost */
	/* NULL without options->holders. */
	uint32_t *dominators;
	uint64_t *retained;
};

/* Fills dominators and retained. Errors: MEMORY. */
struct mw_error *mw_held_compute(struct mw_reached *reached, struct mw_scan *scan) MW_MUST_CHECK;

#endif

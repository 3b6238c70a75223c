/* SPDX-License-Identifier: MIT */
/* held.h: what is kept of a search for reachable blocks (reach.c), and who retains how much of it (held.c). */
#ifndef MW_HEAP_HELD_H
#define MW_HEAP_HELD_H

#include "heap/pointer.h"
#include "heap/roots.h"

#define MW_ROOT_NO_THREAD 0x7fffffffU
#define MW_ROOT_OF_KERNEL 0x7ffffffeU /* for a thread: `at` is the index of a word of the kernel's */
#define MW_ROOT_AT_SP     UINT64_MAX  /* mw_root_pointer.at: the block is a thread's stack */

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
	mw_addr *moved; /* blocks that are held though no pointer to them was found */
	size_t moved_count, moved_capacity;
	struct mw_amount sums[MW_REACH_COUNT];
	uint64_t scanned, unread;
	bool incomplete; /* not all that may hold pointers could be read: nothing is certainly lost */
	/* NULL without options->holders. Behind those of the segments are those of what roots count to. */
	uint32_t *dominators;
	uint64_t *retained;
	uint32_t *retained_blocks;
	uint32_t *order; /* numbers of all that has a dominator, each behind that */
	uint32_t order_count, root_numbers;
};

/* Does a root lead to it? */
static inline bool mw_reached_is_held(const struct mw_reached *reached, uint32_t number)
{
	return mw_bits_test(reached->reachable, number) || mw_bits_test(reached->possible, number);
}

/* Of the words of roots: which of them is scanned now. */
struct mw_root_words {
	uint32_t thread; /* whose register it is: an index in the image; else MW_ROOT_NO_THREAD */
	bool exact;      /* whatever the word is: it holds the block that it points into */
};

/* Scan all roots, for the visit that the scan has begun with. Errors: MEMORY. */
struct mw_error *mw_reach_scan_roots(const struct mw_reached *reached, struct mw_scan *scan,
				     struct mw_root_words *words) MW_MUST_CHECK;

/* Fills in dominators and what goes with them. Errors: MEMORY, those of options->number_root. */
struct mw_error *mw_held_compute(struct mw_reached *reached, struct mw_scan *scan,
				 const struct mw_reach_options *options) MW_MUST_CHECK;

#endif

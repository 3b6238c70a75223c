/* SPDX-License-Identifier: MIT */
/* numbering.h: from a 64-bit key to a dense number: the n-th new key is number n. */
#ifndef MW_VIEW_NUMBERING_H
#define MW_VIEW_NUMBERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mw_numbering_slot {
	uint64_t key;
	uint32_t number; /* plus one; 0: empty */
};

/* Zero-initialise; mw_numbering_deinit frees. */
struct mw_numbering {
	struct mw_numbering_slot *slots;
	size_t slot_count;
	uint32_t count; /* keys so far */
};

/* The number of `key`, which gets the next one where it is new. False without memory. */
bool mw_numbering_add(struct mw_numbering *numbering, uint64_t key, uint32_t *number);
void mw_numbering_deinit(struct mw_numbering *numbering);

#endif

/* SPDX-License-Identifier: MIT */
/* index.h: from a 64-bit key to a dense number: the n-th new key is number n. */
#ifndef MW_VIEW_INDEX_H
#define MW_VIEW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mw_index_slot {
	uint64_t key;
	uint32_t number; /* plus one; 0: empty */
};

/* Zero-initialise; mw_index_deinit frees. */
struct mw_index {
	struct mw_index_slot *slots;
	size_t slot_count;
	uint32_t count; /* keys so far */
};

/* The number of `key`, which gets the next one where it is new. False without memory. */
bool mw_index_add(struct mw_index *index, uint64_t key, uint32_t *number);
void mw_index_deinit(struct mw_index *index);

#endif

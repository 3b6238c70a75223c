// SPDX-License-Identifier: MIT
/* index.c: open addressing with linear probing, at most half full. */
#include "view/index.h"

#include <stdlib.h>

static size_t find(const struct mw_index_slot *slots, size_t slot_count, uint64_t key)
{
	/* Keys are hashes or packed pairs; the multiplication spreads the latter into the high bits. */
	size_t slot = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (slot_count - 1);

	while (slots[slot].number && slots[slot].key != key)
		slot = (slot + 1) & (slot_count - 1);
	return slot;
}

static bool grow(struct mw_index *index)
{
	size_t slot_count = index->slot_count ? index->slot_count * 2 : 256;
	struct mw_index_slot *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < index->slot_count; i++)
		if (index->slots[i].number)
			slots[find(slots, slot_count, index->slots[i].key)] = index->slots[i];
	free(index->slots);
	index->slots = slots;
	index->slot_count = slot_count;
	return true;
}

bool mw_index_add(struct mw_index *index, uint64_t key, uint32_t *number)
{
	struct mw_index_slot *slot;

	if ((size_t)index->count * 2 >= index->slot_count && !grow(index))
		return false;
	slot = &index->slots[find(index->slots, index->slot_count, key)];
	if (!slot->number) {
		if (index->count == UINT32_MAX - 1)
			return false;
		slot->key = key;
		slot->number = ++index->count;
	}
	*number = slot->number - 1;
	return true;
}

void mw_index_deinit(struct mw_index *index)
{
	free(index->slots);
	*index = (struct mw_index){0};
}

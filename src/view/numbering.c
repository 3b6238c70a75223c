// SPDX-License-Identifier: MIT
/* numbering.c: open addressing with linear probing, at most half full. */
#include "view/numbering.h"

#include <stdlib.h>

static size_t find(const struct mw_numbering_slot *slots, size_t slot_count, uint64_t key)
{
	/* Keys are hashes or packed pairs; the multiplication spreads the latter into the high bits. */
	size_t slot = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (slot_count - 1);

	while (slots[slot].number && slots[slot].key != key)
		slot = (slot + 1) & (slot_count - 1);
	return slot;
}

static bool grow(struct mw_numbering *numbering)
{
	size_t slot_count = numbering->slot_count ? numbering->slot_count * 2 : 256;
	struct mw_numbering_slot *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < numbering->slot_count; i++)
		if (numbering->slots[i].number)
			slots[find(slots, slot_count, numbering->slots[i].key)] = numbering->slots[i];
	free(numbering->slots);
	numbering->slots = slots;
	numbering->slot_count = slot_count;
	return true;
}

bool mw_numbering_add(struct mw_numbering *numbering, uint64_t key, uint32_t *number)
{
	struct mw_numbering_slot *slot;

	if ((size_t)numbering->count * 2 >= numbering->slot_count && !grow(numbering))
		return false;
	slot = &numbering->slots[find(numbering->slots, numbering->slot_count, key)];
	if (!slot->number) {
		if (numbering->count == UINT32_MAX - 1)
			return false;
		slot->key = key;
		slot->number = ++numbering->count;
	}
	*number = slot->number - 1;
	return true;
}

void mw_numbering_deinit(struct mw_numbering *numbering)
{
	free(numbering->slots);
	*numbering = (struct mw_numbering){0};
}

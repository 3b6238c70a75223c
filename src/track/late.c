// SPDX-License-Identifier: MIT
/* late.c: an open hash table by time and thread: a thread's events have times of their own (late.h). */
#include "track/late.h"

#include "base/hash.h"

#include <stdlib.h>

#define FIRST_SLOTS 64u

void mw_late_deinit(struct mw_late *late)
{
	free(late->slots);
	*late = (struct mw_late){.slots = NULL};
}

/* The slot of that key, or the empty one where it would be. */
static struct mw_late_slot *slot_of(struct mw_late_slot *slots, size_t capacity, uint64_t time_ns, uint32_t thread)
{
	size_t at = (size_t)mw_hash_mix(mw_hash_add(thread, time_ns));

	for (;; at++) {
		struct mw_late_slot *slot = &slots[at & (capacity - 1)];

		if (!slot->since_ns || (slot->time_ns == time_ns && slot->thread == thread))
			return slot;
	}
}

static struct mw_error *grow(struct mw_late *late)
{
	size_t capacity = late->capacity ? 2 * late->capacity : FIRST_SLOTS;
	struct mw_late_slot *slots = calloc(capacity, sizeof(*slots));

	if (!slots)
		return mw_error_nomem();
	for (size_t i = 0; i < late->capacity; i++) {
		const struct mw_late_slot *old = &late->slots[i];

		if (old->since_ns)
			*slot_of(slots, capacity, old->time_ns, old->thread) = *old;
	}
	free(late->slots);
	late->slots = slots;
	late->capacity = capacity;
	return NULL;
}

struct mw_error *mw_late_add(struct mw_late *late, uint64_t time_ns, uint32_t thread, uint64_t since_ns)
{
	struct mw_late_slot *slot;

	if (late->count >= MW_LATE_MAX)
		return NULL;
	if (2 * (late->count + 1) > late->capacity)
		MW_TRY(grow(late));
	slot = slot_of(late->slots, late->capacity, time_ns, thread);
	late->count += !slot->since_ns;
	*slot = (struct mw_late_slot){.time_ns = time_ns, .since_ns = since_ns, .thread = thread};
	return NULL;
}

uint64_t mw_late_since(const struct mw_late *late, uint64_t time_ns, uint32_t thread)
{
	const struct mw_late_slot *slot;

	if (!late->count)
		return time_ns;
	slot = slot_of(late->slots, late->capacity, time_ns, thread);
	return slot->since_ns ? slot->since_ns : time_ns;
}

uint64_t mw_late_memory(const struct mw_late *late)
{
	return late->capacity * sizeof(*late->slots);
}

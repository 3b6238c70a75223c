// SPDX-License-Identifier: MIT
/* late.c: found by time and thread: a thread's events have times of their own (late.h). */
#include "track/late.h"

#include "base/hash.h"
#include "base/vector.h"

#include <stdlib.h>

void mw_late_deinit(struct mw_late *late)
{
	mw_index_deinit(&late->index);
	free(late->items);
	*late = (struct mw_late){.items = NULL};
}

static uint32_t hash_of(uint64_t time_ns, uint32_t thread)
{
	return (uint32_t)mw_hash_mix(mw_hash_add(thread, time_ns));
}

static uint32_t hash_of_item(const void *items, uint32_t number)
{
	const struct mw_late_item *item = &((const struct mw_late_item *)items)[number];

	return hash_of(item->time_ns, item->thread);
}

static struct mw_late_item *find(const struct mw_late *late, uint64_t time_ns, uint32_t thread)
{
	uint32_t hash = hash_of(time_ns, thread), number;

	MW_INDEX_EACH(&late->index, hash, number)
		if (late->items[number].time_ns == time_ns && late->items[number].thread == thread)
			return &late->items[number];
	return NULL;
}

struct mw_error *mw_late_add(struct mw_late *late, uint64_t time_ns, uint32_t thread, uint64_t since_ns)
{
	struct mw_late_item *item;

	if (late->index.count >= MW_LATE_MAX)
		return NULL;
	item = find(late, time_ns, thread);
	if (!item) {
		if (!mw_index_reserve(&late->index, hash_of_item, late->items) ||
		    !MW_VECTOR_ROOM(late->items, late->index.count, late->capacity))
			return mw_error_nomem();
		item = &late->items[mw_index_put(&late->index, hash_of(time_ns, thread))];
	}
	*item = (struct mw_late_item){.time_ns = time_ns, .since_ns = since_ns, .thread = thread};
	return NULL;
}

uint64_t mw_late_since(const struct mw_late *late, uint64_t time_ns, uint32_t thread)
{
	const struct mw_late_item *item = late->index.count ? find(late, time_ns, thread) : NULL;

	return item ? item->since_ns : time_ns;
}

uint64_t mw_late_memory(const struct mw_late *late)
{
	return late->capacity * sizeof(*late->items) + mw_index_memory(&late->index);
}

// SPDX-License-Identifier: MIT
/* map.c: linear probing with backward-shift deletion (map.h). */
#include "base/map.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static size_t home(uint64_t key, size_t capacity)
{
	return (size_t)mw_hash_add(key, key >> 32) & (capacity - 1);
}

static struct mw_map_slot *find(struct mw_map_slot *slots, size_t capacity, uint64_t key)
{
	size_t i = home(key, capacity);

	while (slots[i].value && slots[i].key != key)
		i = (i + 1) & (capacity - 1);
	return &slots[i];
}

void *mw_map_get(const struct mw_map *map, uint64_t key)
{
	return map->capacity ? find(map->slots, map->capacity, key)->value : NULL;
}

/* See that a key can be added: 3/4 of the slots at most are taken. */
static bool make_room(struct mw_map *map)
{
	size_t capacity = map->capacity ? map->capacity * 2 : 64;
	struct mw_map_slot *slots;

	if (map->count * 4 < map->capacity * 3)
		return true;
	slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->slots[i].value)
			*find(slots, capacity, map->slots[i].key) = map->slots[i];
	free(map->slots);
	map->slots = slots;
	map->capacity = capacity;
	return true;
}

struct mw_error *mw_map_set(struct mw_map *map, uint64_t key, void *value)
{
	struct mw_map_slot *slot;

	if (!make_room(map))
		return mw_error_nomem();
	slot = find(map->slots, map->capacity, key);
	if (!slot->value)
		map->count++;
	slot->key = key;
	slot->value = value;
	return NULL;
}

bool mw_map_number(struct mw_map *map, uint64_t key, uint32_t *number)
{
	struct mw_map_slot *slot;

	if (!make_room(map))
		return false;
	slot = find(map->slots, map->capacity, key);
	if (!slot->value) {
		if (map->count == UINT32_MAX)
			return false;
		slot->key = key;
		slot->value = (void *)++map->count; // NOLINT(performance-no-int-to-ptr)
	}
	*number = (uint32_t)((uintptr_t)slot->value - 1);
	return true;
}

void *mw_map_remove(struct mw_map *map, uint64_t key)
{
	size_t mask = map->capacity - 1;
	struct mw_map_slot *slot;
	void *value;
	size_t hole;

	if (!map->capacity)
		return NULL;
	slot = find(map->slots, map->capacity, key);
	value = slot->value;
	if (!value)
		return NULL;
	map->count--;
	hole = (size_t)(slot - map->slots);
	for (size_t i = (hole + 1) & mask; map->slots[i].value; i = (i + 1) & mask) {
		size_t distance = (i - home(map->slots[i].key, map->capacity)) & mask;

		if (distance < ((i - hole) & mask))
			continue;
		map->slots[hole] = map->slots[i];
		hole = i;
	}
	memset(&map->slots[hole], 0, sizeof(map->slots[hole]));
	return value;
}

bool mw_map_next(const struct mw_map *map, size_t *position, void **value)
{
	while (*position < map->capacity) {
		*value = map->slots[(*position)++].value;
		if (*value)
			return true;
	}
	return false;
}

void mw_map_deinit(struct mw_map *map)
{
	free(map->slots);
	memset(map, 0, sizeof(*map));
}

/* SPDX-License-Identifier: MIT */
/* map.h: a hash table from 64-bit keys to pointers, or to numbers. Keys that are not 64 bits: index.h. */
#ifndef MW_BASE_MAP_H
#define MW_BASE_MAP_H

#include <memwatch/error.h>
#include <memwatch/types.h>

struct mw_map_slot {
	uint64_t key;
	void *value; /* NULL: empty */
};

/* Zero-initialise; mw_map_deinit frees the table, not the values. */
struct mw_map {
	struct mw_map_slot *slots;
	size_t count, capacity; /* capacity is 0 or a power of two */
};

/* The value at `key`, or NULL. */
void *mw_map_get(const struct mw_map *map, uint64_t key);
/* Set `key` to `value`, which must not be NULL. Errors: MEMORY. */
struct mw_error *mw_map_set(struct mw_map *map, uint64_t key, void *value) MW_MUST_CHECK;
/* Take `key` out; returns what it held, or NULL. */
void *mw_map_remove(struct mw_map *map, uint64_t key);
/*
 * In a map that has nothing else: the dense number of `key`, which gets the next one, from 0, where it is new;
 * `map->count` is how many there are. False without memory, or beyond 32 bits.
 */
bool mw_map_number(struct mw_map *map, uint64_t key, uint32_t *number) MW_MUST_CHECK;
void mw_map_deinit(struct mw_map *map);
/* Bytes behind the map. */
static inline uint64_t mw_map_memory(const struct mw_map *map)
{
	return map->capacity * sizeof(*map->slots);
}

/* For each value: `for (size_t i = 0; mw_map_next(&map, &i, &value);)`. The map must not change meanwhile. */
bool mw_map_next(const struct mw_map *map, size_t *position, void **value);

#endif

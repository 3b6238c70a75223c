// SPDX-License-Identifier: MIT
/* cells.c: cells in one array, found by an open hash table of their numbers. */
#include "view/cells.h"

#include "base/vector.h"

#include <stdlib.h>

#define FIRST_SLOTS 256

struct mw_cells {
	struct mw_cells_options options;
	struct mw_cell *items;
	size_t count, capacity;
	uint64_t *slots; /* a cell's hash, and below it its number plus one; 0: empty. 2^n of them, at most half used */
	size_t slot_count;
	struct mw_histogram *lifetimes; /* cells have their number plus one */
	size_t lifetime_count, lifetime_capacity;
	bool failed;
};

struct mw_error *mw_cells_create(const struct mw_cells_options *options, struct mw_cells **out)
{
	struct mw_cells *cells = calloc(1, sizeof(*cells));

	if (!cells)
		return mw_error_nomem();
	cells->options = *options;
	*out = cells;
	return NULL;
}

void mw_cells_destroy(struct mw_cells *cells)
{
	if (!cells)
		return;
	for (size_t i = 0; i < cells->lifetime_count; i++)
		mw_histogram_deinit(&cells->lifetimes[i]);
	free(cells->lifetimes);
	free(cells->items);
	free(cells->slots);
	free(cells);
}

enum mw_fate mw_fate_of(const struct mw_track_fate *fate)
{
	bool freed = fate->died_ns != MW_TIME_UNKNOWN;

	if (fate->older)
		return freed ? MW_FATE_AOFI : MW_FATE_AOFO;
	return freed ? MW_FATE_TRANSIENT : MW_FATE_IMPACTING;
}

uint64_t mw_fate_lifetime(const struct mw_track_fate *fate, uint64_t end_ns)
{
	uint64_t end = fate->died_ns != MW_TIME_UNKNOWN ? fate->died_ns : end_ns;

	if (fate->born_ns == MW_TIME_UNKNOWN)
		return MW_TIME_UNKNOWN;
	/* Threads' clocks may differ by a little. */
	return end > fate->born_ns ? end - fate->born_ns : 0;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

static uint32_t hash_of(const struct mw_cell *key)
{
	uint64_t hash = mix(key->bytes, (uint64_t)key->heap << 16 | (uint64_t)key->kind << 8 | key->fate);

	hash = mix(hash, (uint64_t)key->stack << 32 | key->thread);
	return (uint32_t)mix(hash, hash >> 32);
}

static bool same(const struct mw_cell *a, const struct mw_cell *b)
{
	return a->bytes == b->bytes && a->stack == b->stack && a->thread == b->thread && a->heap == b->heap &&
	       a->kind == b->kind && a->fate == b->fate;
}

static bool grow(struct mw_cells *cells)
{
	size_t count = cells->slot_count ? cells->slot_count * 2 : FIRST_SLOTS;
	uint64_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < cells->slot_count; i++) {
		size_t slot = (size_t)(cells->slots[i] >> 32) & (count - 1);

		if (!cells->slots[i])
			continue;
		while (slots[slot])
			slot = (slot + 1) & (count - 1);
		slots[slot] = cells->slots[i];
	}
	free(cells->slots);
	cells->slots = slots;
	cells->slot_count = count;
	return true;
}

/* The cell of that key, made where there is none. NULL without memory. */
static struct mw_cell *cell_of(struct mw_cells *cells, const struct mw_cell *key)
{
	uint32_t hash = hash_of(key);
	struct mw_cell *items;
	size_t slot;

	if (cells->count * 2 >= cells->slot_count && !grow(cells))
		return NULL;
	for (slot = hash & (cells->slot_count - 1); cells->slots[slot]; slot = (slot + 1) & (cells->slot_count - 1)) {
		struct mw_cell *cell = &cells->items[(uint32_t)cells->slots[slot] - 1];

		/* A cell is far from here in memory: most others are told by their hash. */
		if (cells->slots[slot] >> 32 == hash && same(cell, key))
			return cell;
	}
	if (cells->count >= UINT32_MAX - 1)
		return NULL;
	items = mw_vector_room(cells->items, cells->count, &cells->capacity, sizeof(*items));
	if (!items)
		return NULL;
	cells->items = items;
	items[cells->count] = *key;
	cells->slots[slot] = (uint64_t)hash << 32 | (uint32_t)++cells->count;
	return &items[cells->count - 1];
}

static bool add_lifetime(struct mw_cells *cells, struct mw_cell *cell, uint64_t lifetime)
{
	struct mw_error *err;

	if (!cell->lifetimes) {
		struct mw_histogram *all = mw_vector_room(cells->lifetimes, cells->lifetime_count,
							  &cells->lifetime_capacity, sizeof(*all));

		if (!all)
			return false;
		cells->lifetimes = all;
		mw_histogram_init(&all[cells->lifetime_count]);
		cell->lifetimes = (uint32_t)++cells->lifetime_count;
	}
	err = mw_histogram_add(&cells->lifetimes[cell->lifetimes - 1], lifetime, 1);
	mw_error_destroy(err);
	return !err;
}

static bool take(struct mw_cells *cells, const struct mw_track_fate *fate)
{
	const struct mw_cells_options *options = &cells->options;
	bool known = fate->bytes != MW_SIZE_UNKNOWN;
	struct mw_cell *cell;
	struct mw_cell key = {
		.bytes = options->sizes ? fate->size : 0,
		.stack = fate->stack,
		.thread = options->threads ? fate->thread : UINT32_MAX,
		.kind = (uint8_t)fate->kind,
		.fate = (uint8_t)mw_fate_of(fate),
	};

	if (options->heaps && options->heap_of)
		key.heap = options->heap_of(options->heap_context, fate->addr, fate->bytes, fate->kind, fate->born_ns);
	cell = cell_of(cells, &key);
	if (!cell)
		return false;
	/* A piece of a mapping has bytes; the block is counted once, with the last of them. */
	cell->amount.count += fate->last;
	cell->unknown += fate->last && !known;
	cell->amount.bytes += known ? fate->bytes : 0;
	if (!options->lifetimes || !fate->last || cell->fate != MW_FATE_TRANSIENT)
		return true;
	return add_lifetime(cells, cell, mw_fate_lifetime(fate, 0));
}

bool mw_cells_survivor(void *context, const struct mw_track_fate *fate)
{
	struct mw_cells *cells = context;

	if (!cells->failed)
		cells->failed = !take(cells, fate);
	return !cells->failed;
}

void mw_cells_fate(void *context, const struct mw_track_fate *fate)
{
	(void)mw_cells_survivor(context, fate);
}

struct mw_error *mw_cells_error(const struct mw_cells *cells)
{
	return cells->failed ? mw_error_nomem() : NULL;
}

size_t mw_cells_count(const struct mw_cells *cells)
{
	return cells->count;
}

const struct mw_cell *mw_cells_at(const struct mw_cells *cells, size_t index)
{
	return &cells->items[index];
}

const struct mw_histogram *mw_cells_lifetimes(const struct mw_cells *cells, const struct mw_cell *cell)
{
	return cell->lifetimes ? &cells->lifetimes[cell->lifetimes - 1] : NULL;
}

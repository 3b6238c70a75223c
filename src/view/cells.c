// SPDX-License-Identifier: MIT
/* cells.c: cells in one array, found by an index; and what sets of them sum up to (cells.h). */
#include "view/cells.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/map.h"
#include "base/vector.h"
#include "track/sampling.h"

#include <stdlib.h>
#include <xxhash.h>

#define WAITING 64u

/* A fate that waits for its cell to come from memory. */
struct waiting {
	struct mw_cell key; /* with the amounts that are to be added */
	uint64_t lifetime;  /* MW_TIME_UNKNOWN: none to add */
	uint32_t hash;
	uint32_t cell;
};

struct mw_cells {
	struct mw_cells_options options;
	struct mw_cell *items;
	size_t capacity;
	struct mw_index index; /* of the items */
	struct mw_histogram *lifetimes;
	size_t lifetime_count, lifetime_capacity;
	struct mw_map shared; /* of all but stacks to lifetimes */
	const struct mw_track *track;
	struct waiting waiting[WAITING];
	size_t waiting_count;
	uint64_t end_ns; /* of the interval */
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
	mw_map_deinit(&cells->shared);
	free(cells->items);
	mw_index_deinit(&cells->index);
	free(cells);
}

static uint32_t hash_of(const struct mw_cell *key)
{
	uint64_t hash = mw_hash_add(key->bytes, (uint64_t)key->heap << 16 | (uint64_t)key->kind << 8 | key->fate);

	return (uint32_t)mw_hash_mix(mw_hash_add(hash, (uint64_t)key->stack << 32 | key->thread));
}

static bool same(const struct mw_cell *a, const struct mw_cell *b)
{
	return a->bytes == b->bytes && a->stack == b->stack && a->thread == b->thread && a->heap == b->heap &&
	       a->kind == b->kind && a->fate == b->fate;
}

static uint32_t hash_of_cell(const void *items, uint32_t number)
{
	return hash_of(&((const struct mw_cell *)items)[number]);
}

/* The number of the cell of that key, made where there is none. False without memory. */
static bool cell_of(struct mw_cells *cells, const struct mw_cell *key, uint32_t hash, uint32_t *number)
{
	struct mw_cell *cell;

	MW_INDEX_EACH(&cells->index, hash, *number)
		if (same(&cells->items[*number], key))
			return true;
	if (!mw_index_reserve(&cells->index, hash_of_cell, cells->items) ||
	    !MW_VECTOR_ROOM(cells->items, cells->index.count, cells->capacity))
		return false;
	*number = mw_index_put(&cells->index, hash);
	cell = &cells->items[*number];
	*cell = *key;
	cell->amount = (struct mw_amount){0, 0};
	cell->spread = (struct mw_spread){0, 0, 0};
	cell->unknown = 0;
	cell->lived_ns = 0;
	return true;
}

/* Which histogram takes the cell's lifetimes: one of its own, or that of all which differ from it by stacks alone. */
static bool open_lifetimes(struct mw_cells *cells, struct mw_cell *cell)
{
	uint64_t others[3] = {cell->bytes, (uint64_t)cell->thread << 32 | cell->heap, cell->kind};
	uint32_t number = (uint32_t)cells->lifetime_count;

	if (cells->options.lifetimes == MW_LIFETIMES_OF_ALL &&
	    !mw_map_number(&cells->shared, XXH64(others, sizeof(others), 0), &number))
		return false;
	cell->lifetimes = number + 1;
	if (number < cells->lifetime_count)
		return true;
	if (!MW_VECTOR_ROOM(cells->lifetimes, cells->lifetime_count, cells->lifetime_capacity))
		return false;
	cells->lifetimes[cells->lifetime_count++] = (struct mw_histogram){0};
	cell->has_lifetimes = true;
	return true;
}

static void add_up(struct mw_cell *sum, const struct mw_cell *cell)
{
	mw_amount_add(&sum->amount, cell->amount);
	mw_spread_add(&sum->spread, cell->spread);
	sum->unknown += cell->unknown;
	sum->lived_ns += cell->lived_ns;
}

static bool add_amounts(struct mw_cells *cells, struct waiting *waiting)
{
	struct mw_cell *cell;

	if (!cell_of(cells, &waiting->key, waiting->hash, &waiting->cell))
		return false;
	cell = &cells->items[waiting->cell];
	add_up(cell, &waiting->key);
	if (waiting->lifetime == MW_TIME_UNKNOWN)
		return true;
	if (!cell->lifetimes && !open_lifetimes(cells, cell))
		return false;
	__builtin_prefetch(&cells->lifetimes[cell->lifetimes - 1], 1);
	return true;
}

static bool add_lifetime(struct mw_cells *cells, const struct waiting *waiting)
{
	struct mw_error *err;

	if (waiting->lifetime == MW_TIME_UNKNOWN)
		return true;
	err = mw_histogram_add(&cells->lifetimes[cells->items[waiting->cell].lifetimes - 1], waiting->lifetime,
			       waiting->key.amount.count);
	mw_error_destroy(err);
	return !err;
}

/* Those that wait, a step at a time for all: what the next one looks at comes from memory meanwhile. */
static bool settle(struct mw_cells *cells)
{
	size_t count = cells->waiting_count;

	cells->waiting_count = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t hash = cells->waiting[i].hash, at = mw_index_first(&cells->index, hash), number;

		if (mw_index_next(&cells->index, hash, &at, &number))
			__builtin_prefetch(&cells->items[number], 1);
	}
	for (size_t i = 0; i < count; i++)
		if (!add_amounts(cells, &cells->waiting[i]))
			return false;
	for (size_t i = 0; i < count; i++)
		if (cells->waiting[i].lifetime != MW_TIME_UNKNOWN)
			mw_histogram_prefetch(&cells->lifetimes[cells->items[cells->waiting[i].cell].lifetimes - 1],
					      cells->waiting[i].lifetime);
	for (size_t i = 0; i < count; i++)
		if (!add_lifetime(cells, &cells->waiting[i]))
			return false;
	return true;
}

/* Is it for the same cell as the one that waits before it? Then that one takes it. */
static bool join(struct waiting *waiting)
{
	struct waiting *before = waiting - 1;

	if (before->lifetime != MW_TIME_UNKNOWN || waiting->lifetime != MW_TIME_UNKNOWN ||
	    !same(&before->key, &waiting->key))
		return false;
	add_up(&before->key, &waiting->key);
	return true;
}

static bool take(struct mw_cells *cells, const struct mw_track_fate *fate)
{
	const struct mw_cells_options *options = &cells->options;
	bool known = fate->bytes != MW_SIZE_UNKNOWN;
	const struct mw_weight weight = {fate->others, fate->variance};
	struct waiting *waiting = &cells->waiting[cells->waiting_count++];
	uint64_t lived_ns;

	/* A piece of a mapping has bytes; the block is counted once, with the last of them. */
	*waiting = (struct waiting){
		.key = {.bytes = options->sizes ? fate->size : 0,
			.stack = fate->stack,
			.thread = options->threads ? fate->thread : UINT32_MAX,
			.kind = (uint8_t)fate->kind,
			.fate = (uint8_t)mw_fate_of(fate),
			.amount = {fate->last ? 1 + weight.others : 0, known ? (1 + weight.others) * fate->bytes : 0},
			.spread = known && fate->last ? mw_weight_spread(weight, fate->bytes) : (struct mw_spread){0},
			.unknown = fate->last && !known},
		.lifetime = MW_TIME_UNKNOWN,
	};
	if (options->heaps && options->heap_of)
		waiting->key.heap =
			options->heap_of(options->heap_context, fate->addr, fate->bytes, fate->kind, fate->pymalloc);
	lived_ns = fate->last ? mw_fate_lifetime(fate, cells->end_ns) : MW_TIME_UNKNOWN;
	if (lived_ns != MW_TIME_UNKNOWN)
		waiting->key.lived_ns = (double)lived_ns * (double)waiting->key.amount.count;
	if (options->lifetimes >= MW_LIFETIMES_OF_ALL && waiting->key.fate == MW_FATE_TRANSIENT)
		waiting->lifetime = lived_ns;
	if (cells->waiting_count > 1 && join(waiting)) {
		cells->waiting_count--;
		return true;
	}
	waiting->hash = hash_of(&waiting->key);
	mw_index_prefetch(&cells->index, waiting->hash);
	return cells->waiting_count < WAITING || settle(cells);
}

bool mw_cells_take(void *context, const struct mw_track_fate *fate)
{
	struct mw_cells *cells = context;

	if (!cells->failed)
		cells->failed = !take(cells, fate);
	return !cells->failed;
}

void mw_cells_until(struct mw_cells *cells, uint64_t end_ns)
{
	cells->end_ns = end_ns;
}

struct mw_error *mw_cells_end(struct mw_cells *cells, const struct mw_track *track, const uint32_t *heap_of)
{
	cells->failed = cells->failed || !settle(cells);
	cells->track = track;
	for (size_t i = 0; heap_of && i < cells->index.count; i++)
		cells->items[i].heap = heap_of[cells->items[i].heap];
	return cells->failed ? mw_error_nomem() : NULL;
}

struct mw_error *mw_cells_list(const struct mw_cells *cells, const struct mw_cell **items, size_t *count)
{
	if (cells->failed)
		return mw_error_nomem();
	*items = cells->items;
	*count = cells->index.count;
	return NULL;
}

const struct mw_histogram *mw_cells_lifetimes(const struct mw_cells *cells, const struct mw_cell *cell)
{
	if (cells->options.lifetimes == MW_LIFETIMES_OF_STACKS && cells->track && cell->fate == MW_FATE_TRANSIENT &&
	    cell->stack < mw_track_stack_count(cells->track))
		return mw_track_stack_lifetimes(cells->track, cell->stack);
	return cell->has_lifetimes ? &cells->lifetimes[cell->lifetimes - 1] : NULL;
}

/* --- sums --------------------------------------------------------------------------------------------------- */

void mw_sums_add(struct mw_sums *sums, const struct mw_cell *cell)
{
	mw_amount_add(&sums->fates[cell->fate], cell->amount);
	mw_spread_add(&sums->spreads[cell->fate], cell->spread);
	if (cell->fate == MW_FATE_AOFI)
		sums->aofi_unknown += cell->unknown;
}

void mw_sums_merge(struct mw_sums *sums, const struct mw_sums *other)
{
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++) {
		mw_amount_add(&sums->fates[fate], other->fates[fate]);
		mw_spread_add(&sums->spreads[fate], other->spreads[fate]);
	}
	sums->aofi_unknown += other->aofi_unknown;
	sums->peak_bytes += other->peak_bytes;
	sums->peak_exact = false;
}

uint64_t mw_sums_rank(const struct mw_sums *sums, enum mw_sort sort, enum mw_fate type)
{
	switch (sort) {
	case MW_SORT_SIZE:
		return mw_sums_size(sums).bytes;
	case MW_SORT_COUNT:
		return mw_sums_of(sums, type).count;
	case MW_SORT_TRANSIENT:
		return sums->fates[MW_FATE_TRANSIENT].bytes;
	case MW_SORT_PEAK:
		return sums->peak_bytes;
	case MW_SORT_LIFETIME:
		return sums->lifetime_median_ns;
	case MW_SORT_AOFI:
		return sums->fates[MW_FATE_AOFI].bytes;
	case MW_SORT_IMPACTING:
	case MW_SORT_NUMBER:
		break;
	}
	return sums->fates[MW_FATE_IMPACTING].bytes;
}

static int larger_first(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

int mw_sums_compare(const struct mw_sums *a, const struct mw_sums *b, enum mw_sort sort, enum mw_fate type)
{
	int order = larger_first(mw_sums_rank(a, sort, type), mw_sums_rank(b, sort, type));

	if (!order && sort == MW_SORT_LIFETIME)
		order = larger_first(a->has_lifetime, b->has_lifetime);
	if (!order)
		order = larger_first(a->fates[MW_FATE_IMPACTING].bytes, b->fates[MW_FATE_IMPACTING].bytes);
	if (!order)
		order = larger_first(mw_sums_size(a).bytes, mw_sums_size(b).bytes);
	if (!order)
		order = larger_first(mw_sums_size(a).count, mw_sums_size(b).count);
	return order;
}

bool mw_sums_has(const struct mw_sums *sums, enum mw_fate type)
{
	if (type < MW_FATE_ALL)
		return sums->fates[type].count || sums->fates[type].bytes;
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++)
		if (mw_sums_has(sums, (enum mw_fate)fate))
			return true;
	return false;
}

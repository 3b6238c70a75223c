// SPDX-License-Identifier: MIT
/* cube_rows.c: rows in shards, each with an index (cube_rows.h). */
#include "view/cube_rows.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define SPARE 4u /* a shard that needs less than one part in so many of its room gives that back */

/* The bins are not in it: rows that merge are of one shard. Its high bits are the better ones. */
static uint64_t hash_of_key(const struct mw_timeline_row *row)
{
	return row->key[0] * 0x9e3779b97f4a7c15u ^ row->key[1] * 0xc2b2ae3d27d4eb4fu ^
	       row->key[2] * 0xd6e8feb86659fd93u;
}

static uint32_t hash_of_bins(uint64_t hash, const struct mw_timeline_row *row)
{
	uint64_t bins = (uint64_t)row->born << 16 | row->died;

	return (uint32_t)((hash ^ hash >> 32 ^ bins * 0xbf58476d1ce4e5b9u) * 0x9e3779b97f4a7c15u >> 32);
}

static bool same(const struct mw_timeline_row *a, const struct mw_timeline_row *b)
{
	return memcmp(a->key, b->key, sizeof(a->key)) == 0 && a->born == b->born && a->died == b->died;
}

static void merge(struct mw_timeline_row *sum, const struct mw_timeline_row *row)
{
	sum->count += row->count;
	sum->bytes += row->bytes;
	sum->unknown += row->unknown;
	sum->lived_ns += row->lived_ns;
}

static void deinit_shard(struct mw_cube_shard *shard)
{
	free(shard->rows);
	mw_index_deinit(&shard->index);
	*shard = (struct mw_cube_shard){.shift = shard->shift};
}

void mw_cube_rows_deinit(struct mw_cube_rows *rows)
{
	for (size_t i = 0; i < MW_CUBE_SHARDS; i++)
		deinit_shard(&rows->shards[i]);
}

static uint32_t hash_of_row(const void *rows, uint32_t number)
{
	const struct mw_timeline_row *row = &((const struct mw_timeline_row *)rows)[number];

	return hash_of_bins(hash_of_key(row), row);
}

/* The row with that key and those bins, or NULL. */
static struct mw_timeline_row *find(const struct mw_cube_shard *shard, const struct mw_timeline_row *row, uint32_t hash)
{
	uint32_t number;

	MW_INDEX_EACH(&shard->index, hash, number)
		if (same(&shard->rows[number], row))
			return &shard->rows[number];
	return NULL;
}

/* Add to the row, or make it; *made then. False without memory. */
static bool put(struct mw_cube_shard *shard, const struct mw_timeline_row *row, uint32_t hash, bool *made)
{
	struct mw_timeline_row *sum = find(shard, row, hash);

	*made = !sum;
	if (sum) {
		merge(sum, row);
		return true;
	}
	if (!mw_index_reserve(&shard->index, hash_of_row, shard->rows) ||
	    !MW_VECTOR_ROOM(shard->rows, shard->index.count, shard->capacity))
		return false;
	shard->rows[mw_index_put(&shard->index, hash)] = *row;
	return true;
}

/* A bin, counted from 1, of bins 2^by as long. */
static uint16_t longer(uint16_t bin, unsigned int by)
{
	return (uint16_t)(bin ? ((bin - 1u) >> by) + 1 : 0);
}

/* Room that is not needed any more. Where it can't be moved it stays. */
static void give_back(struct mw_cube_shard *shard)
{
	size_t capacity = shard->index.count ? (size_t)shard->index.count * 2 : 1;
	struct mw_timeline_row *rows;

	if (shard->index.count >= shard->capacity / SPARE)
		return;
	rows = reallocarray(shard->rows, capacity, sizeof(*rows));
	if (!rows)
		return;
	shard->rows = rows;
	shard->capacity = capacity;
}

/* Bring a shard to where the others are to be, in place: a row is never further back than it was. */
static void fold_shard(struct mw_cube_rows *rows, struct mw_cube_shard *shard)
{
	unsigned int by = rows->shift - shard->shift > 16 ? 16 : rows->shift - shard->shift;
	uint32_t before = shard->index.count;

	shard->shift = rows->shift;
	if (!before || !by)
		return;
	mw_index_clear(&shard->index);
	for (uint32_t i = 0; i < before; i++) {
		struct mw_timeline_row row = shard->rows[i], *sum;
		uint32_t hash;

		row.born = longer(row.born, by);
		row.died = longer(row.died, by);
		hash = hash_of_bins(hash_of_key(&row), &row);
		sum = find(shard, &row, hash);
		if (sum)
			merge(sum, &row);
		else
			shard->rows[mw_index_put(&shard->index, hash)] = row;
	}
	rows->count -= before - shard->index.count;
	give_back(shard);
}

static void aim(struct mw_cube_rows *rows, unsigned int shift)
{
	rows->shift = shift;
	rows->next = 0;
}

/* All that is known of a thread is that there was one. */
static void make_coarse(struct mw_timeline_row *row)
{
	row->key[1] = row->key[1] != 0;
	row->key[2] = 0;
}

/* Threads and heaps are one from now on, but in the rows that keep them apart. */
static bool coarsen(struct mw_cube_rows *rows)
{
	struct mw_cube_rows *owners = rows->owners;
	bool done = true, made;

	for (size_t i = 0; i < MW_CUBE_SHARDS; i++)
		fold_shard(rows, &rows->shards[i]);
	memcpy(owners->shards, rows->shards, sizeof(rows->shards));
	memset(rows->shards, 0, sizeof(rows->shards));
	owners->count = rows->count;
	owners->last = rows->last;
	aim(owners, rows->shift);
	rows->coarse = true;
	rows->count = 0;
	for (size_t i = 0; i < MW_CUBE_SHARDS; i++)
		rows->shards[i].shift = rows->shift;
	for (size_t i = 0; i < MW_CUBE_SHARDS; i++) {
		for (size_t j = 0; j < owners->shards[i].index.count && done; j++) {
			struct mw_timeline_row row = owners->shards[i].rows[j];
			uint64_t hash;

			make_coarse(&row);
			hash = hash_of_key(&row);
			done = put(&rows->shards[hash >> 58], &row, hash_of_bins(hash, &row), &made);
			rows->count += done && made;
		}
	}
	return done;
}

static bool can_coarsen(const struct mw_cube_rows *rows)
{
	return rows->owners && !rows->coarse;
}

static bool can_shrink(const struct mw_cube_rows *rows)
{
	return rows->next < MW_CUBE_SHARDS || rows->last >> rows->shift || can_coarsen(rows);
}

/* They are not worth what they take. */
static bool give_up(struct mw_cube_rows *rows)
{
	mw_cube_rows_deinit(rows);
	rows->count = 0;
	rows->given_up = true;
	return true;
}

/* There are too many rows: merge some. */
static bool shrink(struct mw_cube_rows *rows)
{
	while (rows->next < MW_CUBE_SHARDS && rows->shards[rows->next].shift == rows->shift)
		rows->next++;
	if (rows->next == MW_CUBE_SHARDS) {
		if (can_coarsen(rows) && rows->last >> (rows->shift + 1) < rows->least_bins)
			return coarsen(rows);
		if (rows->last >> (rows->shift + 1) < rows->worth_bins)
			return give_up(rows);
		if (rows->last >> rows->shift == 0)
			return true;
		aim(rows, rows->shift + 1);
	}
	fold_shard(rows, &rows->shards[rows->next]);
	return true;
}

static uint16_t bin_of(uint64_t bin, unsigned int shift)
{
	return (uint16_t)(bin == MW_CUBE_NO_BIN ? 0 : (bin >> shift) + 1);
}

/* Where the addition goes to, as bins are now. */
static void place(struct mw_cube_rows *rows, struct mw_cube_addition *addition)
{
	struct mw_timeline_row *row = &addition->row;
	uint64_t hash;

	if (rows->coarse)
		make_coarse(row);
	row->born = bin_of(addition->born, rows->shift);
	row->died = bin_of(addition->died, rows->shift);
	hash = hash_of_key(row);
	addition->shard = (uint32_t)(hash >> 58);
	addition->hash = hash_of_bins(hash, row);
	addition->shift = (uint8_t)rows->shift;
	addition->coarse = rows->coarse;
	if (rows->shards[addition->shard].shift != rows->shift)
		fold_shard(rows, &rows->shards[addition->shard]);
}

/* To the rows that keep threads and heaps apart, before they are one in these. */
static bool hand_on(const struct mw_cube_rows *rows, const struct mw_cube_addition *addition)
{
	struct mw_cube_rows *owners = rows->owners;

	if (owners->given_up)
		return true;
	*mw_cube_rows_next(owners) = *addition;
	return mw_cube_rows_add(owners);
}

static bool add(struct mw_cube_rows *rows, struct mw_cube_addition *addition)
{
	bool made;

	if (rows->given_up)
		return true;
	if (addition->coarse != rows->coarse && !hand_on(rows, addition))
		return false;
	if (addition->shift != rows->shift || addition->coarse != rows->coarse)
		place(rows, addition);
	if (!put(&rows->shards[addition->shard], &addition->row, addition->hash, &made))
		return false;
	rows->count += made;
	return !made || rows->count <= rows->budget || shrink(rows);
}

/* Bins must be few enough for the latest of those that wait. */
static void make_room(struct mw_cube_rows *rows)
{
	unsigned int shift = rows->shift;

	for (size_t i = 0; i < rows->waiting_count; i++) {
		const struct mw_cube_addition *addition = &rows->waiting[i];
		uint64_t last = addition->died != MW_CUBE_NO_BIN ? addition->died : addition->born;

		if (last != MW_CUBE_NO_BIN && last > rows->last)
			rows->last = last;
	}
	while (rows->last >> shift >= MW_TIMELINE_BINS)
		shift++;
	if (shift != rows->shift)
		aim(rows, shift);
}

/* Those that wait, a step at a time for all: what the next one looks at comes from memory meanwhile. */
bool mw_cube_rows_settle(struct mw_cube_rows *rows)
{
	size_t count = rows->waiting_count;

	if (rows->given_up) {
		rows->waiting_count = 0;
		return true;
	}
	make_room(rows);
	rows->waiting_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct mw_cube_addition *addition = &rows->waiting[i];

		if (rows->coarse && !hand_on(rows, addition))
			return false;
		place(rows, addition);
		mw_index_prefetch(&rows->shards[addition->shard].index, addition->hash);
	}
	for (size_t i = 0; i < count; i++) {
		const struct mw_cube_addition *addition = &rows->waiting[i];
		const struct mw_cube_shard *shard = &rows->shards[addition->shard];
		uint32_t at = mw_index_first(&shard->index, addition->hash), number;

		if (mw_index_next(&shard->index, addition->hash, &at, &number)) {
			const char *row = (const char *)&shard->rows[number];

			__builtin_prefetch(row, 1);
			__builtin_prefetch(row + sizeof(struct mw_timeline_row) - 1, 1);
		}
	}
	for (size_t i = 0; i < count; i++)
		if (!add(rows, &rows->waiting[i]))
			return false;
	return true;
}

bool mw_cube_rows_finish(struct mw_cube_rows *rows)
{
	if (!mw_cube_rows_settle(rows))
		return false;
	while (rows->count > rows->budget && can_shrink(rows))
		if (!shrink(rows))
			return false;
	return true;
}

void mw_cube_rows_fold(struct mw_cube_rows *rows, unsigned int shift)
{
	if (shift > rows->shift)
		aim(rows, shift);
	for (size_t i = 0; i < MW_CUBE_SHARDS; i++)
		fold_shard(rows, &rows->shards[i]);
}

struct mw_timeline_row *mw_cube_rows_take(struct mw_cube_rows *rows)
{
	struct mw_timeline_row *all = malloc((rows->count + 1) * sizeof(*all));
	size_t count = 0;

	for (size_t i = 0; i < MW_CUBE_SHARDS && all; i++) {
		struct mw_cube_shard *shard = &rows->shards[i];

		if (shard->index.count)
			memcpy(&all[count], shard->rows, shard->index.count * sizeof(*all));
		count += shard->index.count;
		deinit_shard(shard);
	}
	return all;
}

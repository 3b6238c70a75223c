// SPDX-License-Identifier: MIT
/* cube.c: from fates to rows, in a thread of their own, and from rows to a timeline (cube.h). */
#include "view/cube.h"

#include "base/index.h"
#include "base/thread.h"
#include "base/vector.h"
#include "view/cells.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- rows: sums by a key and two bins of time, within a number of rows -------------------------------------- */

/*
 * Where there would be more rows, or more bins, bins are made twice as long and rows merged. That is done a part at a
 * time, so that whoever feeds it never waits for long. Additions come quicker than memory: some wait for their row, so
 * that it is there when it is looked at.
 */
#define SHARDS  64u
#define WAITING 64u
#define NO_BIN  UINT64_MAX

/* What is added: blocks of a row, whose bins are as short as can be. */
struct addition {
	struct mw_timeline_row row; /* but its bins */
	uint64_t born, died;        /* bins, or NO_BIN */
	uint32_t shard, hash;
	/* What `hash` and the row's key and bins were made with. */
	uint8_t shift;
	bool coarse;
};

struct shard {
	struct mw_timeline_row *rows;
	size_t capacity;
	struct mw_index index; /* of the rows */
	unsigned int shift;    /* a bin of its rows is 2^shift of the shortest */
};

/* Zero-initialise but for `budget`. */
struct rows {
	size_t budget; /* rows; not kept where they can't be merged any more */
	struct shard shards[SHARDS];
	size_t count;       /* of rows */
	unsigned int shift; /* to which shards are to be brought … */
	unsigned int next;  /* … those before that one have been */
	uint64_t last;      /* the latest bin of all */
	/* Where bins would become fewer than `least_bins` keys are made coarser: their second part is 1 then where it
	 * was not 0, the third 0. The rows as they were go to `owners`, which must be empty, and so does all that is
	 * added from then on. 0, NULL: never. */
	uint64_t least_bins;
	struct rows *owners;
	bool coarse;
	/* Where bins would become fewer than that, rows are given up. 0: never. */
	uint64_t worth_bins;
	bool given_up;
	struct addition waiting[WAITING];
	size_t waiting_count;
};

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

static void deinit_shard(struct shard *shard)
{
	free(shard->rows);
	mw_index_deinit(&shard->index);
	*shard = (struct shard){.shift = shard->shift};
}

static void rows_deinit(struct rows *rows)
{
	for (size_t i = 0; i < SHARDS; i++)
		deinit_shard(&rows->shards[i]);
}

static uint32_t hash_of_row(const void *rows, uint32_t number)
{
	const struct mw_timeline_row *row = &((const struct mw_timeline_row *)rows)[number];

	return hash_of_bins(hash_of_key(row), row);
}

/* The row with that key and those bins, or NULL. */
static struct mw_timeline_row *find(const struct shard *shard, const struct mw_timeline_row *row, uint32_t hash)
{
	uint32_t number;

	MW_INDEX_EACH(&shard->index, hash, number)
		if (same(&shard->rows[number], row))
			return &shard->rows[number];
	return NULL;
}

/* Add to the row, or make it; *made then. False without memory. */
static bool put(struct shard *shard, const struct mw_timeline_row *row, uint32_t hash, bool *made)
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
static void give_back(struct shard *shard)
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
static void fold_shard(struct rows *rows, struct shard *shard)
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

static void aim(struct rows *rows, unsigned int shift)
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
static bool coarsen(struct rows *rows)
{
	struct rows *owners = rows->owners;
	bool done = true, made;

	for (size_t i = 0; i < SHARDS; i++)
		fold_shard(rows, &rows->shards[i]);
	memcpy(owners->shards, rows->shards, sizeof(rows->shards));
	memset(rows->shards, 0, sizeof(rows->shards));
	owners->count = rows->count;
	owners->last = rows->last;
	aim(owners, rows->shift);
	rows->coarse = true;
	rows->count = 0;
	for (size_t i = 0; i < SHARDS; i++)
		rows->shards[i].shift = rows->shift;
	for (size_t i = 0; i < SHARDS; i++) {
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

static bool can_coarsen(const struct rows *rows)
{
	return rows->owners && !rows->coarse;
}

static bool can_shrink(const struct rows *rows)
{
	return rows->next < SHARDS || rows->last >> rows->shift || can_coarsen(rows);
}

/* They are not worth what they take. */
static bool give_up(struct rows *rows)
{
	rows_deinit(rows);
	rows->count = 0;
	rows->given_up = true;
	return true;
}

/* There are too many rows: merge some. */
static bool shrink(struct rows *rows)
{
	while (rows->next < SHARDS && rows->shards[rows->next].shift == rows->shift)
		rows->next++;
	if (rows->next == SHARDS) {
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

static uint16_t bin_at(uint64_t bin, unsigned int shift)
{
	return (uint16_t)(bin == NO_BIN ? 0 : (bin >> shift) + 1);
}

/* Where the addition goes to, as bins are now. */
static void place(struct rows *rows, struct addition *addition)
{
	struct mw_timeline_row *row = &addition->row;
	uint64_t hash;

	if (rows->coarse)
		make_coarse(row);
	row->born = bin_at(addition->born, rows->shift);
	row->died = bin_at(addition->died, rows->shift);
	hash = hash_of_key(row);
	addition->shard = (uint32_t)(hash >> 58);
	addition->hash = hash_of_bins(hash, row);
	addition->shift = (uint8_t)rows->shift;
	addition->coarse = rows->coarse;
	if (rows->shards[addition->shard].shift != rows->shift)
		fold_shard(rows, &rows->shards[addition->shard]);
}

static bool rows_settle(struct rows *rows);

/* What is to be filled in: its row, but the bins of that, and its bins. */
static struct addition *rows_next(struct rows *rows)
{
	return &rows->waiting[rows->waiting_count];
}

/* It is filled in: add it, to the one that waits before it where they are for the same row. False without memory. */
static bool rows_add(struct rows *rows)
{
	struct addition *addition = rows_next(rows), *before = addition - 1;

	if (rows->waiting_count && before->born == addition->born && before->died == addition->died &&
	    memcmp(before->row.key, addition->row.key, sizeof(addition->row.key)) == 0) {
		merge(&before->row, &addition->row);
		return true;
	}
	return ++rows->waiting_count < WAITING || rows_settle(rows);
}

/* To the rows that keep threads and heaps apart, before they are one in these. */
static bool hand_on(const struct rows *rows, const struct addition *addition)
{
	struct rows *owners = rows->owners;

	if (owners->given_up)
		return true;
	*rows_next(owners) = *addition;
	return rows_add(owners);
}

static bool add_row(struct rows *rows, struct addition *addition)
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
static void make_room(struct rows *rows)
{
	unsigned int shift = rows->shift;

	for (size_t i = 0; i < rows->waiting_count; i++) {
		const struct addition *addition = &rows->waiting[i];
		uint64_t last = addition->died != NO_BIN ? addition->died : addition->born;

		if (last != NO_BIN && last > rows->last)
			rows->last = last;
	}
	while (rows->last >> shift >= MW_TIMELINE_BINS)
		shift++;
	if (shift != rows->shift)
		aim(rows, shift);
}

/* Add those that wait, a step at a time for all: what the next one looks at comes from memory meanwhile. */
static bool rows_settle(struct rows *rows)
{
	size_t count = rows->waiting_count;

	if (rows->given_up) {
		rows->waiting_count = 0;
		return true;
	}
	make_room(rows);
	rows->waiting_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct addition *addition = &rows->waiting[i];

		if (rows->coarse && !hand_on(rows, addition))
			return false;
		place(rows, addition);
		mw_index_prefetch(&rows->shards[addition->shard].index, addition->hash);
	}
	for (size_t i = 0; i < count; i++) {
		const struct addition *addition = &rows->waiting[i];
		const struct shard *shard = &rows->shards[addition->shard];
		uint32_t at = mw_index_first(&shard->index, addition->hash), number;

		if (mw_index_next(&shard->index, addition->hash, &at, &number)) {
			const char *row = (const char *)&shard->rows[number];

			__builtin_prefetch(row, 1);
			__builtin_prefetch(row + sizeof(struct mw_timeline_row) - 1, 1);
		}
	}
	for (size_t i = 0; i < count; i++)
		if (!add_row(rows, &rows->waiting[i]))
			return false;
	return true;
}

static bool rows_finish(struct rows *rows)
{
	if (!rows_settle(rows))
		return false;
	while (rows->count > rows->budget && can_shrink(rows))
		if (!shrink(rows))
			return false;
	return true;
}

static void rows_fold(struct rows *rows, unsigned int shift)
{
	if (shift > rows->shift)
		aim(rows, shift);
	for (size_t i = 0; i < SHARDS; i++)
		fold_shard(rows, &rows->shards[i]);
}

static struct mw_timeline_row *rows_take(struct rows *rows)
{
	struct mw_timeline_row *all = malloc((rows->count + 1) * sizeof(*all));
	size_t count = 0;

	for (size_t i = 0; i < SHARDS && all; i++) {
		struct shard *shard = &rows->shards[i];

		if (shard->index.count)
			memcpy(&all[count], shard->rows, shard->index.count * sizeof(*all));
		count += shard->index.count;
		deinit_shard(shard);
	}
	return all;
}

/* --- the feed ----------------------------------------------------------------------------------------------- */

/*
 * What becomes of blocks is handed on to a thread that adds it up, so that who tells it need not wait for that. Where no
 * thread can be had it is added up at once.
 */
#define ROOM  512u /* items that are handed over at a time */
#define ROOMS 8u

/* What counts of a fate (track/track.h). */
struct item {
	mw_addr addr;
	uint64_t bytes, size, since_ns, until_ns;
	uint64_t lifetime_ns; /* MW_TIME_UNKNOWN: it did not end, or its begin is not known */
	uint64_t others;      /* that it stands for */
	uint32_t stack, thread;
	uint8_t kind;
	bool before; /* the window */
	bool older;  /* … or the interval */
	bool last;
	bool pymalloc;
};

struct feed {
	void (*take)(void *context, const struct item *items, size_t count);
	void *context;
	struct item *room; /* that is being filled */
	size_t count;      /* items in it */
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	unsigned int full, filled; /* rooms that wait, or are being taken; the number of the one being filled */
	bool stopping;
	struct item rooms[ROOMS][ROOM];
};

/* Wait for the next room that is full. False: there are no more. */
static bool await_room(struct feed *feed)
{
	bool there;

	pthread_mutex_lock(&feed->lock);
	while (feed->full == 0 && !feed->stopping)
		pthread_cond_wait(&feed->changed, &feed->lock);
	there = feed->full > 0;
	pthread_mutex_unlock(&feed->lock);
	return there;
}

static void *run(void *context)
{
	struct feed *feed = context;

	pthread_setname_np(pthread_self(), "memwatch-cube");
	for (unsigned int next = 0; await_room(feed); next = (next + 1) % ROOMS) {
		feed->take(feed->context, feed->rooms[next], ROOM);
		pthread_mutex_lock(&feed->lock);
		feed->full--;
		pthread_cond_signal(&feed->changed);
		pthread_mutex_unlock(&feed->lock);
	}
	return NULL;
}

/* `take` is called by one thread at a time, also by feed_stop() and put(). Zero-initialised before. */
static void feed_start(struct feed *feed, void (*take)(void *context, const struct item *items, size_t count),
		       void *context)
{
	feed->take = take;
	feed->context = context;
	feed->room = feed->rooms[0];
	pthread_mutex_init(&feed->lock, NULL);
	pthread_cond_init(&feed->changed, NULL);
	/* Signals are others' business. */
	feed->threaded = mw_thread_create(&feed->thread, NULL, run, feed) == 0;
}

static void hand_over(struct feed *feed)
{
	feed->count = 0;
	if (!feed->threaded) {
		feed->take(feed->context, feed->room, ROOM);
		return;
	}
	pthread_mutex_lock(&feed->lock);
	feed->full++;
	pthread_cond_signal(&feed->changed);
	/* The one that is to be filled next must have been emptied. */
	while (feed->full == ROOMS)
		pthread_cond_wait(&feed->changed, &feed->lock);
	pthread_mutex_unlock(&feed->lock);
	feed->filled = (feed->filled + 1) % ROOMS;
	feed->room = feed->rooms[feed->filled];
}

/* All has been reported, and is taken when this returns. Nothing may be reported after it; fine to be called again. */
static void feed_stop(struct feed *feed)
{
	if (!feed->room)
		return;
	if (feed->threaded) {
		pthread_mutex_lock(&feed->lock);
		feed->stopping = true;
		pthread_cond_signal(&feed->changed);
		pthread_mutex_unlock(&feed->lock);
		pthread_join(feed->thread, NULL);
	}
	feed->take(feed->context, feed->room, feed->count);
	pthread_cond_destroy(&feed->changed);
	pthread_mutex_destroy(&feed->lock);
	feed->room = NULL;
}

/* --- the cube ----------------------------------------------------------------------------------------------- */

struct mw_cube {
	struct mw_cube_options options;
	uint64_t bin_ns; /* the shortest */
	struct feed feed;
	/* The feed's thread's, until it is stopped. */
	struct rows cells, owners, lifetimes;
	atomic_bool failed;
};

static void take(void *context, const struct item *items, size_t count);

/* So long that the interval, and a moment at its end, has room; of two digits, so that people can tell edges. */
static uint64_t shortest_bin(uint64_t length_ns)
{
	uint64_t least = length_ns / MW_TIMELINE_BINS + 1, unit = 1;

	while (least / unit >= 100)
		unit *= 10;
	return (least + unit - 1) / unit * unit;
}

struct mw_error *mw_cube_create(const struct mw_cube_options *options, struct mw_cube **out)
{
	struct mw_cube *cube = calloc(1, sizeof(*cube));

	if (!cube)
		return mw_error_nomem();
	cube->options = *options;
	cube->bin_ns = options->length_ns ? shortest_bin(options->length_ns) : MW_CUBE_SHORTEST_NS;
	cube->cells.budget = options->rows ? options->rows : MW_CUBE_ROWS;
	cube->cells.least_bins = MW_CUBE_LEAST_BINS;
	cube->cells.owners = &cube->owners;
	cube->owners.budget = options->owners ? options->owners : MW_CUBE_OWNERS;
	cube->owners.worth_bins = MW_CUBE_OWNERS_BINS;
	cube->lifetimes.budget = options->lifetimes ? options->lifetimes : MW_CUBE_LIFETIMES;
	feed_start(&cube->feed, take, cube);
	*out = cube;
	return NULL;
}

void mw_cube_rest(struct mw_cube *cube)
{
	struct feed *feed = &cube->feed;

	if (!feed->room || !feed->threaded)
		return;
	pthread_mutex_lock(&feed->lock);
	while (feed->full)
		pthread_cond_wait(&feed->changed, &feed->lock);
	pthread_mutex_unlock(&feed->lock);
}

void mw_cube_forked(struct mw_cube *cube)
{
	cube->feed.threaded = false;
	/* They know of a thread that waits. */
	pthread_mutex_init(&cube->feed.lock, NULL);
	pthread_cond_init(&cube->feed.changed, NULL);
}

void mw_cube_stop(struct mw_cube *cube)
{
	feed_stop(&cube->feed);
}

void mw_cube_destroy(struct mw_cube *cube)
{
	if (!cube)
		return;
	feed_stop(&cube->feed);
	rows_deinit(&cube->cells);
	rows_deinit(&cube->owners);
	rows_deinit(&cube->lifetimes);
	free(cube);
}

/* floor(4 * log2(value)) of a value that is not 0. */
static uint32_t quarters(uint64_t value)
{
	/* 2^63 times 2^(1/4), 2^(2/4), 2^(3/4), the next integer above. */
	static const uint64_t steps[] = {0x9837f0518db8a970u, 0xb504f333f9de6485u, 0xd744fccad69d6af5u};
	unsigned int zeros = (unsigned int)__builtin_clzll(value);
	uint64_t high = value << zeros;
	uint32_t result = 4 * (63 - zeros);

	for (size_t i = 0; i < 3; i++)
		result += high >= steps[i];
	return result;
}

/* As in timeline.h. */
static uint32_t size_class(uint64_t bytes)
{
	return bytes ? 1 + quarters(bytes) : 0;
}

static uint32_t lifetime_class(uint64_t ns)
{
	uint32_t class = ns ? quarters(ns) : 0;

	return class < MW_TIMELINE_NO_LIFETIME ? class : MW_TIMELINE_NO_LIFETIME - 1;
}

/* The shortest bin of a time. */
static uint64_t bin_of(const struct mw_cube *cube, uint64_t time_ns)
{
	if (time_ns == MW_TIME_UNKNOWN)
		return NO_BIN;
	return time_ns > cube->options.from_ns ? (time_ns - cube->options.from_ns) / cube->bin_ns : 0;
}

static bool add(struct mw_cube *cube, const struct item *item)
{
	const struct mw_cube_options *options = &cube->options;
	bool known = item->bytes != MW_SIZE_UNKNOWN, lived = item->lifetime_ns != MW_TIME_UNKNOWN;
	uint64_t blocks = 1 + item->others, count = item->last ? blocks : 0;
	struct addition *cell = rows_next(&cube->cells);
	struct addition *lifetime = rows_next(&cube->lifetimes);

	cell->born = lifetime->born = item->older ? NO_BIN : bin_of(cube, item->since_ns);
	cell->died = lifetime->died = bin_of(cube, item->until_ns);
	cell->row = (struct mw_timeline_row){
		.key = {item->stack, item->thread == UINT32_MAX ? 0 : item->thread + 1},
		.count = count,
		.bytes = known ? blocks * item->bytes : 0,
		.unknown = item->last && !known,
		.lived_ns = lived ? count * item->lifetime_ns : 0,
	};
	if (options->heap_of)
		cell->row.key[2] = options->heap_of(options->heap_context, item->addr, item->bytes,
						    (enum mw_kind)item->kind, item->pymalloc);
	if (!item->before) {
		lifetime->row = (struct mw_timeline_row){
			.key = {size_class(item->size),
				lived ? lifetime_class(item->lifetime_ns) : MW_TIMELINE_NO_LIFETIME, item->kind},
			.count = count,
			.bytes = blocks * item->bytes,
		};
		if (!rows_add(&cube->lifetimes))
			return false;
	}
	return rows_add(&cube->cells);
}

static void take(void *context, const struct item *items, size_t count)
{
	struct mw_cube *cube = context;

	for (size_t i = 0; i < count && !atomic_load_explicit(&cube->failed, memory_order_relaxed); i++)
		if (!add(cube, &items[i]))
			atomic_store(&cube->failed, true);
}

bool mw_cube_take(void *context, const struct mw_track_fate *fate)
{
	struct mw_cube *cube = context;

	cube->feed.room[cube->feed.count] = (struct item){
		.addr = fate->addr,
		.bytes = fate->bytes,
		.size = fate->size,
		.since_ns = fate->since_ns,
		.until_ns = fate->until_ns,
		.lifetime_ns = fate->died_ns == MW_TIME_UNKNOWN ? MW_TIME_UNKNOWN : mw_fate_lifetime(fate, 0),
		.others = fate->others,
		.stack = fate->stack,
		.thread = fate->thread,
		.kind = (uint8_t)fate->kind,
		.before = fate->born_ns == MW_TIME_UNKNOWN,
		.older = fate->older,
		.last = fate->last,
		.pymalloc = fate->pymalloc,
	};
	if (++cube->feed.count == ROOM)
		hand_over(&cube->feed);
	return !atomic_load_explicit(&cube->failed, memory_order_relaxed);
}

/* --- the timeline -------------------------------------------------------------------------------------- */

static struct mw_error *take_table(const struct mw_cube *cube, struct rows *rows, uint64_t length_ns,
				   struct mw_timeline_table *out)
{
	uint64_t bin_ns = cube->bin_ns << rows->shift, bins;

	out->rows = rows_take(rows);
	if (!out->rows)
		return mw_error_nomem();
	out->count = rows->count;
	out->bin_ns = bin_ns;
	/* What happened at the very end lies in a bin that begins there. */
	bins = length_ns / bin_ns + (length_ns % bin_ns != 0);
	if (rows->last >> rows->shift >= bins)
		bins = (rows->last >> rows->shift) + 1;
	out->bins = (uint32_t)bins;
	return NULL;
}

/* Also where hardly anything happens bins are to be few, and those of lifetimes as long as those of cells. */
static struct mw_error *settle(struct mw_cube *cube, uint64_t length_ns)
{
	unsigned int shift;

	feed_stop(&cube->feed);
	/* Fitting the cells may begin owners. */
	if (atomic_load(&cube->failed) || !rows_finish(&cube->cells) || !rows_finish(&cube->owners) ||
	    !rows_finish(&cube->lifetimes))
		return mw_error_nomem();
	shift = cube->cells.shift;
	while (length_ns / cube->bin_ns >> shift >= MW_TIMELINE_BINS)
		shift++;
	rows_fold(&cube->cells, shift);
	rows_fold(&cube->owners, shift);
	rows_fold(&cube->lifetimes, shift);
	return NULL;
}

static struct mw_error *fill(struct mw_cube *cube, const struct mw_cube_names *names, struct mw_timeline *timeline)
{
	uint64_t length_ns;

	timeline->from_ns = cube->options.from_ns;
	timeline->to_ns = names->to_ns > timeline->from_ns ? names->to_ns : timeline->from_ns;
	length_ns = timeline->to_ns - timeline->from_ns;
	MW_TRY(settle(cube, length_ns));
	MW_TRY(take_table(cube, &cube->cells, length_ns, &timeline->cells));
	MW_TRY(take_table(cube, &cube->lifetimes, length_ns, &timeline->lifetimes));
	timeline->coarse = cube->cells.coarse;
	if (timeline->coarse && !cube->owners.given_up)
		MW_TRY(take_table(cube, &cube->owners, length_ns, &timeline->owners));
	return mw_timeline_name(timeline, names);
}

struct mw_error *mw_cube_finish(struct mw_cube *cube, const struct mw_cube_names *names, struct mw_timeline **out)
{
	struct mw_timeline *timeline = calloc(1, sizeof(*timeline));
	struct mw_error *err = timeline ? fill(cube, names, timeline) : mw_error_nomem();

	if (err) {
		mw_timeline_destroy(timeline);
		return err;
	}
	*out = timeline;
	return NULL;
}

// SPDX-License-Identifier: MIT
/* cube.c: from fates to rows, and from rows to a timeline (cube.h). */
#include "view/cube.h"

#include "base/thread.h"
#include "view/cells.h"
#include "view/cube_rows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
	uint32_t stack, thread;
	uint8_t kind;
	bool before; /* the window */
	bool older;  /* … or the interval */
	bool last;
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
	struct mw_cube_rows cells, owners, lifetimes;
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

void mw_cube_stop(struct mw_cube *cube)
{
	feed_stop(&cube->feed);
}

void mw_cube_destroy(struct mw_cube *cube)
{
	if (!cube)
		return;
	feed_stop(&cube->feed);
	mw_cube_rows_deinit(&cube->cells);
	mw_cube_rows_deinit(&cube->owners);
	mw_cube_rows_deinit(&cube->lifetimes);
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

uint32_t mw_cube_size_class(uint64_t bytes)
{
	return bytes ? 1 + quarters(bytes) : 0;
}

uint32_t mw_cube_lifetime_class(uint64_t ns)
{
	uint32_t class = ns ? quarters(ns) : 0;

	return class < MW_TIMELINE_NO_LIFETIME ? class : MW_TIMELINE_NO_LIFETIME - 1;
}

/* The shortest bin of a time. */
static uint64_t bin_of(const struct mw_cube *cube, uint64_t time_ns)
{
	if (time_ns == MW_TIME_UNKNOWN)
		return MW_CUBE_NO_BIN;
	return time_ns > cube->options.from_ns ? (time_ns - cube->options.from_ns) / cube->bin_ns : 0;
}

static bool add(struct mw_cube *cube, const struct item *item)
{
	const struct mw_cube_options *options = &cube->options;
	bool known = item->bytes != MW_SIZE_UNKNOWN, lived = item->lifetime_ns != MW_TIME_UNKNOWN;
	struct mw_cube_addition *cell = mw_cube_rows_next(&cube->cells);
	struct mw_cube_addition *lifetime = mw_cube_rows_next(&cube->lifetimes);

	cell->born = lifetime->born = item->older ? MW_CUBE_NO_BIN : bin_of(cube, item->since_ns);
	cell->died = lifetime->died = bin_of(cube, item->until_ns);
	cell->row = (struct mw_timeline_row){
		.key = {item->stack, item->thread == UINT32_MAX ? 0 : item->thread + 1},
		.count = item->last,
		.bytes = known ? item->bytes : 0,
		.unknown = item->last && !known,
		.lived_ns = item->last && lived ? item->lifetime_ns : 0,
	};
	if (options->heap_of)
		cell->row.key[2] =
			options->heap_of(options->heap_context, item->addr, item->bytes, (enum mw_kind)item->kind);
	if (!item->before) {
		lifetime->row = (struct mw_timeline_row){
			.key = {mw_cube_size_class(item->size),
				lived ? mw_cube_lifetime_class(item->lifetime_ns) : MW_TIMELINE_NO_LIFETIME,
				item->kind},
			.count = item->last,
			.bytes = item->bytes,
		};
		if (!mw_cube_rows_add(&cube->lifetimes))
			return false;
	}
	return mw_cube_rows_add(&cube->cells);
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
		.stack = fate->stack,
		.thread = fate->thread,
		.kind = (uint8_t)fate->kind,
		.before = fate->born_ns == MW_TIME_UNKNOWN,
		.older = fate->older,
		.last = fate->last,
	};
	if (++cube->feed.count == ROOM)
		hand_over(&cube->feed);
	return !atomic_load_explicit(&cube->failed, memory_order_relaxed);
}

/* --- the timeline -------------------------------------------------------------------------------------- */

static int compare_rows(const void *left, const void *right)
{
	const struct mw_timeline_row *a = left, *b = right;

	for (size_t i = 0; i < 3; i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	if (a->born != b->born)
		return a->born < b->born ? -1 : 1;
	return (a->died > b->died) - (a->died < b->died);
}

/* In order; those that have become one are added up. */
static void sort_rows(struct mw_timeline_table *table)
{
	struct mw_timeline_row *rows = table->rows;
	size_t kept = 0;

	if (!table->count)
		return;
	qsort(rows, table->count, sizeof(*rows), compare_rows);
	for (size_t i = 1; i < table->count; i++) {
		if (compare_rows(&rows[kept], &rows[i]) != 0) {
			rows[++kept] = rows[i];
			continue;
		}
		rows[kept].count += rows[i].count;
		rows[kept].bytes += rows[i].bytes;
		rows[kept].unknown += rows[i].unknown;
		rows[kept].lived_ns += rows[i].lived_ns;
	}
	table->count = kept + 1;
}

/* What the rows' numbers stand for. The tracker's stacks that nothing is counted under have no rows. */
static void translate(const struct mw_cube_names *names, struct mw_timeline_table *cells)
{
	size_t kept = 0;

	for (size_t i = 0; i < cells->count; i++) {
		struct mw_timeline_row row = cells->rows[i];

		row.key[0] = row.key[0] < names->stack_count ? names->stack_of[row.key[0]] : UINT32_MAX;
		if (row.key[0] == UINT32_MAX)
			continue;
		if (names->heap_of)
			row.key[2] = row.key[2] < names->heap_of_count ? names->heap_of[row.key[2]] : 0;
		if (row.key[2] >= names->heap_count || !names->heaps[row.key[2]])
			row.key[2] = 0;
		cells->rows[kept++] = row;
	}
	cells->count = kept;
}

/* Number the heaps that there are rows of. */
static struct mw_error *name_heaps(const struct mw_cube_names *names, struct mw_timeline *timeline)
{
	struct mw_timeline_table *cells = timeline->coarse ? &timeline->owners : &timeline->cells;
	uint32_t *number = calloc(names->heap_count + 1, sizeof(*number));

	timeline->heaps = calloc(names->heap_count + 1, sizeof(*timeline->heaps));
	if (!number || !timeline->heaps) {
		free(number);
		return mw_error_nomem();
	}
	for (size_t i = 0; i < cells->count; i++)
		number[cells->rows[i].key[2]] = 1;
	for (size_t i = 1; i < names->heap_count; i++) {
		if (!number[i])
			continue;
		timeline->heaps[timeline->heap_count] = strdup(names->heaps[i]);
		if (!timeline->heaps[timeline->heap_count]) {
			free(number);
			return mw_error_nomem();
		}
		number[i] = (uint32_t)++timeline->heap_count;
	}
	number[0] = 0;
	for (size_t i = 0; i < cells->count; i++)
		cells->rows[i].key[2] = number[cells->rows[i].key[2]];
	free(number);
	return NULL;
}

static struct mw_error *take_threads(const struct mw_cube_names *names, struct mw_timeline *timeline)
{
	timeline->threads = calloc(names->thread_count + 1, sizeof(*timeline->threads));
	if (!timeline->threads)
		return mw_error_nomem();
	if (timeline->coarse && !timeline->owners.bins) {
		timeline->threads[0] = MW_TIMELINE_UNKNOWN;
		timeline->thread_count = 1;
		return NULL;
	}
	if (names->thread_count)
		memcpy(timeline->threads, names->thread_of, names->thread_count * sizeof(*timeline->threads));
	timeline->thread_count = names->thread_count;
	return NULL;
}

static struct mw_error *take_table(const struct mw_cube *cube, struct mw_cube_rows *rows, uint64_t length_ns,
				   struct mw_timeline_table *out)
{
	uint64_t bin_ns = cube->bin_ns << rows->shift, bins;

	out->rows = mw_cube_rows_take(rows);
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
	if (atomic_load(&cube->failed) || !mw_cube_rows_finish(&cube->cells) || !mw_cube_rows_finish(&cube->owners) ||
	    !mw_cube_rows_finish(&cube->lifetimes))
		return mw_error_nomem();
	shift = cube->cells.shift;
	while (length_ns / cube->bin_ns >> shift >= MW_TIMELINE_BINS)
		shift++;
	mw_cube_rows_fold(&cube->cells, shift);
	mw_cube_rows_fold(&cube->owners, shift);
	mw_cube_rows_fold(&cube->lifetimes, shift);
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
	translate(names, &timeline->cells);
	if (timeline->coarse && !cube->owners.given_up) {
		MW_TRY(take_table(cube, &cube->owners, length_ns, &timeline->owners));
		translate(names, &timeline->owners);
	}
	MW_TRY(name_heaps(names, timeline));
	MW_TRY(take_threads(names, timeline));
	sort_rows(&timeline->cells);
	sort_rows(&timeline->owners);
	sort_rows(&timeline->lifetimes);
	return NULL;
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

void mw_timeline_destroy(struct mw_timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < timeline->heap_count; i++)
		free(timeline->heaps[i]);
	free(timeline->heaps);
	free(timeline->threads);
	free(timeline->cells.rows);
	free(timeline->owners.rows);
	free(timeline->lifetimes.rows);
	free(timeline);
}

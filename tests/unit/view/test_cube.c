// SPDX-License-Identifier: MIT
/* test_cube.c: rows of a timeline, by hand. What an interval of it holds: test_cube_random.c. */
#include "unit.h"
#include "view/cube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BIN MW_CUBE_SHORTEST_NS

enum { FIRST, SECOND, AGAIN, NOWHERE, STACKS }; /* AGAIN is the report's same as FIRST */

static const uint32_t stack_of[STACKS] = {5, 2, 5, UINT32_MAX};
static const uint32_t thread_of[] = {1, 0};
static const char *const heaps[] = {NULL, "main", "arena 1"};
static const struct mw_cube_names names = {
	.to_ns = 20 * BIN,
	.stack_of = stack_of,
	.stack_count = STACKS,
	.thread_of = thread_of,
	.thread_count = 2,
	.heaps = heaps,
	.heap_count = 3,
};

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

/* Even addresses are in the main heap. */
static uint32_t heap_of(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, bool pymalloc)
{
	(void)context, (void)bytes, (void)pymalloc;
	return kind == MW_KIND_HEAP ? 1 + addr % 2 : 0;
}

static struct mw_cube *make(struct mw_cube_options options)
{
	struct mw_cube *cube = NULL;

	options.heap_of = heap_of;
	good(mw_cube_create(&options, &cube));
	return cube;
}

static struct mw_timeline *finish(struct mw_cube *cube, const struct mw_cube_names *with)
{
	struct mw_timeline *timeline = NULL;

	good(mw_cube_finish(cube, with, &timeline));
	mw_cube_destroy(cube);
	return timeline;
}

/* A block of the interval; `died` 0: it lives. Times in ns. */
static struct mw_track_fate fate(uint32_t stack, uint32_t thread, uint64_t bytes, uint64_t born, uint64_t died)
{
	return (struct mw_track_fate){
		.bytes = bytes,
		.size = bytes,
		.born_ns = born,
		.since_ns = born,
		.died_ns = died ? died : MW_TIME_UNKNOWN,
		.until_ns = died ? died : MW_TIME_UNKNOWN,
		.stack = stack,
		.thread = thread,
		.block = UINT32_MAX,
		.last = true,
	};
}

static void feed(struct mw_cube *cube, struct mw_track_fate one)
{
	if (one.died_ns == MW_TIME_UNKNOWN)
		assert_true(mw_cube_take(cube, &one));
	else
		(void)mw_cube_take(cube, &one);
}

static void assert_row(const struct mw_timeline_table *table, size_t at, struct mw_timeline_row expected)
{
	const struct mw_timeline_row *row = &table->rows[at];

	assert_true(at < table->count);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(row->key[i], expected.key[i]);
	assert_int_equal(row->born, expected.born);
	assert_int_equal(row->died, expected.died);
	assert_int_equal(row->count, expected.count);
	assert_int_equal(row->bytes, expected.bytes);
	assert_int_equal(row->unknown, expected.unknown);
	assert_int_equal(row->lived_ns, expected.lived_ns);
}

static void test_rows(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){0});
	struct mw_track_fate arena = fate(AGAIN, 1, 30, 3 * BIN, 0), before = fate(SECOND, UINT32_MAX, 0, 0, 4 * BIN);
	struct mw_timeline *timeline;

	(void)state;
	feed(cube, fate(FIRST, 0, 10, 0, 0));
	feed(cube, fate(FIRST, 0, 12, BIN - 1, 0));
	feed(cube, fate(FIRST, 0, 11, BIN, 0));
	feed(cube, fate(FIRST, 0, 20, 3 * BIN, 3 * BIN + 7));
	feed(cube, fate(AGAIN, 0, 21, 4 * BIN - 1, 4 * BIN));
	arena.addr = 1;
	feed(cube, arena);
	before.bytes = before.size = MW_SIZE_UNKNOWN;
	before.born_ns = before.since_ns = MW_TIME_UNKNOWN;
	before.older = true;
	feed(cube, before);
	timeline = finish(cube, &names);
	assert_int_equal(timeline->from_ns, 0);
	assert_int_equal(timeline->to_ns, 20 * BIN);
	assert_false(timeline->coarse);
	assert_int_equal(timeline->cells.bin_ns, BIN);
	assert_int_equal(timeline->cells.bins, 20);
	assert_int_equal(timeline->cells.count, 6);
	assert_row(&timeline->cells, 0, (struct mw_timeline_row){{2, 0, 1}, 0, 5, 1, 0, 1, 0});
	assert_row(&timeline->cells, 1, (struct mw_timeline_row){{5, 1, 1}, 1, 0, 2, 22, 0, 0});
	assert_row(&timeline->cells, 2, (struct mw_timeline_row){{5, 1, 1}, 2, 0, 1, 11, 0, 0});
	assert_row(&timeline->cells, 3, (struct mw_timeline_row){{5, 1, 1}, 4, 4, 1, 20, 0, 7});
	assert_row(&timeline->cells, 4, (struct mw_timeline_row){{5, 1, 1}, 4, 5, 1, 21, 0, 1});
	assert_row(&timeline->cells, 5, (struct mw_timeline_row){{5, 2, 2}, 4, 0, 1, 30, 0, 0});
	assert_int_equal(timeline->heap_count, 2);
	assert_string_equal(timeline->heaps[0], "main");
	assert_string_equal(timeline->heaps[1], "arena 1");
	assert_int_equal(timeline->thread_count, 2);
	assert_int_equal(timeline->threads[0], 1);
	assert_int_equal(timeline->threads[1], 0);
	mw_timeline_destroy(timeline);
}

static void test_lifetimes(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){0});
	struct mw_track_fate piece = fate(FIRST, 0, 4096, BIN, 2 * BIN), older = fate(FIRST, 0, 16, 0, 3 * BIN);
	struct mw_track_fate before = fate(FIRST, UINT32_MAX, MW_SIZE_UNKNOWN, 0, 1);
	struct mw_timeline *timeline;
	const struct mw_timeline_table *rows;

	(void)state;
	feed(cube, fate(FIRST, 0, 16, 1, 5));
	feed(cube, fate(SECOND, 1, 16, 2, 6));
	feed(cube, fate(FIRST, 0, 0, 2, 0));
	piece.kind = MW_KIND_VM;
	piece.size = 8192;
	piece.last = false;
	feed(cube, piece);
	older.older = true;
	feed(cube, older);
	before.older = true;
	before.born_ns = before.since_ns = MW_TIME_UNKNOWN;
	feed(cube, before);
	before.bytes = before.size = 16;
	feed(cube, before);
	timeline = finish(cube, &names);
	rows = &timeline->lifetimes;
	assert_int_equal(rows->bin_ns, BIN);
	assert_int_equal(rows->bins, 20);
	assert_int_equal(rows->count, 4);
	assert_row(rows, 0, (struct mw_timeline_row){{0, MW_TIMELINE_NO_LIFETIME, 0}, 1, 0, 1, 0, 0, 0});
	assert_row(rows, 1, (struct mw_timeline_row){{17, 8, 0}, 1, 1, 2, 32, 0, 0});
	/* Of a block of before the interval whose birth is known, as of any other. 187500 ns: 4 * 17.516 */
	assert_row(rows, 2, (struct mw_timeline_row){{17, 70, 0}, 0, 4, 1, 16, 0, 0});
	/* A piece has bytes, and its mapping's size. 62500 ns: 4 * 15.93 */
	assert_row(rows, 3, (struct mw_timeline_row){{53, 63, MW_KIND_VM}, 2, 3, 0, 4096, 0, 0});
	mw_timeline_destroy(timeline);
}

/* Of a block that lived so long. */
static void assert_classes(uint64_t bytes, uint64_t lived_ns, uint32_t size, uint32_t lifetime)
{
	struct mw_cube *cube = make((struct mw_cube_options){0});
	struct mw_cube_names to = names;
	struct mw_track_fate one = fate(FIRST, 0, bytes, 0, lived_ns);
	struct mw_timeline *timeline;

	one.died_ns = lived_ns;
	one.until_ns = 0;
	assert_true(mw_cube_take(cube, &one));
	timeline = finish(cube, &to);
	assert_int_equal(timeline->lifetimes.count, 1);
	assert_int_equal(timeline->lifetimes.rows[0].key[0], size);
	assert_int_equal(timeline->lifetimes.rows[0].key[1], lifetime);
	mw_timeline_destroy(timeline);
}

static void test_classes(void **state)
{
	(void)state;
	assert_classes(0, 1, 0, 0);
	assert_classes(1, 1, 1, 0);
	assert_classes(2, 1, 5, 0);
	assert_classes(3, 1, 7, 0); /* 4 * 1.585 */
	assert_classes(1024, 1, 41, 0);
	assert_classes(1217, 1, 41, 0); /* 1024 * 2^(1/4) is 1217.7 */
	assert_classes(1218, 1, 42, 0);
	assert_classes(1448, 1, 42, 0); /* … 2^(2/4) is 1448.2 */
	assert_classes(1449, 1, 43, 0);
	assert_classes(1722, 1, 43, 0); /* … 2^(3/4) is 1722.2 */
	assert_classes(1723, 1, 44, 0);
	assert_classes(2047, 1, 44, 0);
	assert_classes(2048, 1, 45, 0);
	assert_classes(UINT64_MAX, 1, 256, 0);
	assert_classes(1, 0, 1, 0);
	assert_classes(1, 1, 1, 0);
	assert_classes(1, 1000, 1, 39);
	assert_classes(1, UINT64_MAX - 1, 1, 254);
}

/* Bins become longer as time goes on. */
static void test_long(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){.from_ns = 1000});
	struct mw_cube_names to = names;
	struct mw_timeline *timeline;

	(void)state;
	for (uint64_t i = 0; i < 2 * MW_TIMELINE_BINS; i++)
		feed(cube, fate(FIRST, 0, 1, 1000 + i * BIN, 1000 + i * BIN));
	feed(cube, fate(FIRST, 0, 3, 1000, 0));
	to.to_ns = 1000 + (2 * MW_TIMELINE_BINS - 1) * UINT64_C(62500);
	timeline = finish(cube, &to);
	assert_int_equal(timeline->cells.bin_ns, 2 * BIN);
	assert_int_equal(timeline->cells.bins, MW_TIMELINE_BINS);
	assert_int_equal(timeline->cells.count, MW_TIMELINE_BINS + 1);
	assert_row(&timeline->cells, 0, (struct mw_timeline_row){{5, 1, 1}, 1, 0, 1, 3, 0, 0});
	for (uint16_t i = 0; i < MW_TIMELINE_BINS; i++)
		assert_row(&timeline->cells, 1u + i,
			   (struct mw_timeline_row){{5, 1, 1}, (uint16_t)(i + 1), (uint16_t)(i + 1), 2, 2, 0, 0});
	mw_timeline_destroy(timeline);
}

/* An interval in which hardly anything happens has no more bins for that. */
static void test_quiet(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){0});
	struct mw_cube_names to = names;
	struct mw_timeline *timeline;

	(void)state;
	feed(cube, fate(FIRST, 0, 1, 5 * BIN, 0));
	to.to_ns = UINT64_C(3600000000000);
	timeline = finish(cube, &to);
	assert_int_equal(timeline->cells.bin_ns, UINT64_C(62500) << 13);
	assert_int_equal(timeline->cells.bins, 7032); /* 7031.25 */
	assert_int_equal(timeline->lifetimes.bin_ns, timeline->cells.bin_ns);
	assert_int_equal(timeline->cells.count, 1);
	mw_timeline_destroy(timeline);
	timeline = finish(make((struct mw_cube_options){0}), &(struct mw_cube_names){0});
	assert_int_equal(timeline->cells.count, 0);
	assert_int_equal(timeline->cells.bins, 1);
	mw_timeline_destroy(timeline);
}

/* Rows stay within their number, and nothing is lost. */
static void test_budget(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){.rows = 1000, .lifetimes = 500});
	struct mw_cube_names to = names;
	struct mw_timeline *timeline;
	uint64_t bytes[STACKS] = {0}, got[STACKS] = {0}, lived = 0, got_lived = 0, count = 0;

	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t born = i * 77773 % (8000 * BIN), died = born + 1 + i * 7919 % 40 * BIN;
		struct mw_track_fate one = fate(i % 2, i % 3 ? 0 : 1, 1 + i % 100, born, died);

		bytes[i % 2] += one.bytes;
		lived += died - born;
		feed(cube, one);
	}
	to.to_ns = 8040 * BIN;
	timeline = finish(cube, &to);
	assert_true(timeline->cells.count <= 1000);
	assert_true(timeline->lifetimes.count <= 500);
	assert_true(timeline->coarse);
	assert_true(timeline->cells.bins >= 32);
	assert_true(timeline->lifetimes.bin_ns >= timeline->cells.bin_ns);
	for (size_t i = 0; i < timeline->cells.count; i++) {
		const struct mw_timeline_row *row = &timeline->cells.rows[i];

		got[row->key[0] == stack_of[SECOND]] += row->bytes;
		got_lived += row->lived_ns;
		count += row->count;
		assert_true(row->born >= 1 && row->died >= row->born && row->died <= timeline->cells.bins);
	}
	assert_int_equal(got[0], bytes[0]);
	assert_int_equal(got[1], bytes[1]);
	assert_int_equal(got_lived, lived);
	assert_int_equal(count, 20000);
	mw_timeline_destroy(timeline);
}

/* Threads that are too many for short bins: they are told apart in longer ones of their own. */
static void test_owners(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){.rows = 5000, .owners = 2000});
	struct mw_cube_names to = names;
	struct mw_timeline *timeline;
	uint64_t fine = 0, coarse = 0, lived[2] = {0}, by_thread[16] = {0}, heaps_seen = 0;

	(void)state;
	for (uint64_t i = 0; i < 32768; i++) {
		struct mw_track_fate one = fate(i % 2, (uint32_t)(i / 2 % 16), 1, i * BIN / 8, i * BIN / 8 + 3);

		one.addr = i / 32;
		feed(cube, one);
	}
	to.to_ns = 4096 * BIN;
	timeline = finish(cube, &to);
	assert_true(timeline->coarse);
	assert_true(timeline->cells.bins >= MW_CUBE_LEAST_BINS);
	assert_true(timeline->cells.count <= 5000);
	assert_true(timeline->owners.count <= 2000);
	assert_true(timeline->owners.bins >= MW_CUBE_OWNERS_BINS && timeline->owners.bins < timeline->cells.bins);
	assert_int_equal(timeline->owners.bin_ns % timeline->cells.bin_ns, 0);
	for (size_t i = 0; i < timeline->cells.count; i++) {
		assert_int_equal(timeline->cells.rows[i].key[1], 1);
		assert_int_equal(timeline->cells.rows[i].key[2], 0);
		fine += timeline->cells.rows[i].count;
		lived[0] += timeline->cells.rows[i].lived_ns;
	}
	for (size_t i = 0; i < timeline->owners.count; i++) {
		const struct mw_timeline_row *row = &timeline->owners.rows[i];

		assert_true(row->key[1] >= 1 && row->key[1] <= 16);
		by_thread[row->key[1] - 1] += row->count;
		heaps_seen |= UINT64_C(1) << row->key[2];
		coarse += row->count;
		lived[1] += row->lived_ns;
	}
	assert_int_equal(fine, 32768);
	assert_int_equal(coarse, 32768);
	assert_int_equal(lived[0], 3 * 32768);
	assert_int_equal(lived[1], 3 * 32768);
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(by_thread[i], 2048);
	assert_int_equal(heaps_seen, 6);
	assert_int_equal(timeline->heap_count, 2);
	assert_int_equal(timeline->thread_count, 2);
	mw_timeline_destroy(timeline);
}

/* A length that is known is cut into as many bins as there may be; their edges have two digits. */
static void test_length(void **state)
{
	static const struct {
		uint64_t length_ns, bin_ns;
		uint32_t bins;
	} cases[] = {{8191, 1, 8191},
		     {8192, 2, 4096},
		     {819200, 110, 7448},
		     {UINT64_C(10000000000), 1300000, 7693},
		     {UINT64_C(387506954838), 48000000, 8074}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_cube *cube = make((struct mw_cube_options){.from_ns = 5, .length_ns = cases[i].length_ns});
		struct mw_cube_names to = names;
		struct mw_timeline *timeline;

		feed(cube, fate(FIRST, 0, 1, 5, 5 + cases[i].length_ns));
		to.to_ns = 5 + cases[i].length_ns;
		timeline = finish(cube, &to);
		assert_int_equal(timeline->cells.bin_ns, cases[i].bin_ns);
		assert_in_range(timeline->cells.bins, cases[i].bins, cases[i].bins + 1);
		mw_timeline_destroy(timeline);
	}
}

/* More threads than there may be rows: they are not told apart, and time still is. */
static void test_coarse(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){.rows = 1000, .owners = 200});
	struct mw_cube_names to = names;
	struct mw_timeline *timeline;
	uint64_t count = 0;

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		struct mw_track_fate one = fate(i % 2, i, 1, (uint64_t)i * BIN, 0);

		one.addr = i / 2;
		feed(cube, one);
	}
	to.to_ns = 5000 * BIN;
	timeline = finish(cube, &to);
	assert_true(timeline->coarse);
	assert_true(timeline->cells.count <= 1000);
	assert_true(timeline->cells.bins >= 256);
	assert_int_equal(timeline->owners.bins, 0);
	assert_int_equal(timeline->owners.count, 0);
	for (size_t i = 0; i < timeline->cells.count; i++) {
		assert_int_equal(timeline->cells.rows[i].key[1], 1);
		assert_int_equal(timeline->cells.rows[i].key[2], 0);
		count += timeline->cells.rows[i].count;
	}
	assert_int_equal(count, 5000);
	assert_int_equal(timeline->heap_count, 0);
	assert_int_equal(timeline->thread_count, 1);
	assert_int_equal(timeline->threads[0], MW_TIMELINE_UNKNOWN);
	mw_timeline_destroy(timeline);
}

/* More stacks than there may be rows stay apart; their threads do not. */
static void test_many_stacks(void **state)
{
	enum { MANY = 3000 };
	struct mw_cube *cube = make((struct mw_cube_options){.rows = 1000});
	static uint32_t identity[MANY];
	struct mw_cube_names to = names;
	struct mw_timeline *timeline;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		identity[i] = i;
		feed(cube, fate(i, 0, i, (uint64_t)i * BIN, 0));
	}
	to.stack_of = identity;
	to.stack_count = MANY;
	to.to_ns = MANY * BIN;
	timeline = finish(cube, &to);
	assert_int_equal(timeline->cells.count, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		assert_row(&timeline->cells, i, (struct mw_timeline_row){{i, 1, 0}, 1, 0, 1, i, 0, 0});
	mw_timeline_destroy(timeline);
}

/* Heaps that are known only in the end; threads that nobody knows. */
static void test_names(void **state)
{
	static const uint32_t real[] = {0, 2, 2};
	struct mw_cube *cube = make((struct mw_cube_options){0});
	struct mw_cube_names with = names;
	struct mw_track_fate one = fate(FIRST, 0, 1, 1, 0), other = fate(FIRST, 0, 2, 1, 0);
	struct mw_timeline *timeline;

	(void)state;
	other.addr = 1;
	feed(cube, one);
	feed(cube, other);
	feed(cube, fate(FIRST, 7, 4, 1, 0));
	feed(cube, fate(NOWHERE, 0, 8, 1, 0));
	feed(cube, fate(STACKS, 0, 16, 1, 0));
	with.heap_of = real;
	with.heap_of_count = 3;
	timeline = finish(cube, &with);
	assert_int_equal(timeline->cells.count, 2);
	assert_row(&timeline->cells, 0, (struct mw_timeline_row){{5, 1, 1}, 1, 0, 2, 3, 0, 0});
	assert_row(&timeline->cells, 1, (struct mw_timeline_row){{5, 8, 1}, 1, 0, 1, 4, 0, 0});
	assert_int_equal(timeline->heap_count, 1);
	assert_string_equal(timeline->heaps[0], "arena 1");
	mw_timeline_destroy(timeline);
}

/* Whatever times come, nothing breaks. */
static void test_wild_times(void **state)
{
	struct mw_cube *cube = make((struct mw_cube_options){.from_ns = 100});
	struct mw_cube_names to = names;
	struct mw_timeline *timeline;

	(void)state;
	feed(cube, fate(FIRST, 0, 1, 5, 7)); /* before the interval's begin */
	feed(cube, fate(FIRST, 0, 2, 100, UINT64_MAX - 1));
	to.to_ns = UINT64_MAX - 1;
	timeline = finish(cube, &to);
	assert_true(timeline->cells.bins <= MW_TIMELINE_BINS);
	assert_int_equal(timeline->cells.count, 2);
	assert_int_equal(timeline->cells.rows[1].died, timeline->cells.bins);
	mw_timeline_destroy(timeline);
	mw_timeline_destroy(NULL);
	mw_cube_destroy(NULL);
}

UNIT_GROUP(cube)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),        cmocka_unit_test(test_lifetimes), cmocka_unit_test(test_classes),
		cmocka_unit_test(test_long),        cmocka_unit_test(test_quiet),     cmocka_unit_test(test_budget),
		cmocka_unit_test(test_coarse),      cmocka_unit_test(test_owners),    cmocka_unit_test(test_length),
		cmocka_unit_test(test_many_stacks), cmocka_unit_test(test_names),     cmocka_unit_test(test_wild_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

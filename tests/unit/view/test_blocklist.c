// SPDX-License-Identifier: MIT
/* test_blocklist.c: the first blocks, against all of them sorted. */
#include "shop.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define END_NS UINT64_C(2600000000)
#define FATES  500

static struct mw_blocklist *list_for(const struct mw_view_question *question)
{
	struct mw_blocklist_options options = {
		.count = question->blocks,
		.by_age = question->sort == MW_SORT_LIFETIME,
		.type = question->type,
		.end_ns = END_NS,
		.filter = question->filter,
		.heap_of = shop_heap_of,
	};
	struct mw_blocklist *list = NULL;

	assert_null(mw_blocklist_create(&options, &list));
	return list;
}

static void test_rows(void **state)
{
	struct mw_view_question question = {.blocks = 3, .type = MW_FATE_ALL, .sort = MW_SORT_SIZE};
	const struct mw_track_fate fates[] = {
		shop_fate(0x10, 100, ORDER, WORKER, 1000, 0),
		shop_fate(0x20, 300, ORDER_AGAIN, MAIN_THREAD, 500, 1600),
		shop_fate(0x30, 300, PUT, STRANGER, 400, 0),
		shop_fate(0x50, MW_SIZE_UNKNOWN, MW_STACK_NONE, STRANGER, 0, 1700),
		shop_fate(0x9000, 9999, INTERNAL, WORKER, 1000, 0),
		shop_fate(0x40, 101, ORDER, WORKER, 1000, 1250),
	};
	struct mw_blocklist *list = list_for(&question);
	const struct mw_block_row *rows;
	struct mw_views *views = NULL;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
		(void)mw_blocklist_take(list, &fates[i]);
	shop.process.blocks = list;
	assert_null(mw_views_create(&question, &shop.process, 1, &views));
	assert_int_equal(views->blocks->row_count, 3);
	assert_int_equal(views->blocks->count, 5);
	assert_false(views->blocks->by_age);
	rows = views->blocks->rows;
	/* The older one first where sizes are equal. */
	assert_int_equal(rows[0].addr, 0x30);
	assert_int_equal(rows[0].fate, MW_FATE_AOFO);
	assert_int_equal(rows[0].tid, 0);
	assert_null(rows[0].thread);
	assert_int_equal(rows[0].lifetime_ns, END_NS - 400000000);
	assert_true(rows[0].died_ns == MW_SIZE_UNKNOWN);
	assert_int_equal(rows[1].addr, 0x20);
	assert_int_equal(rows[1].fate, MW_FATE_AOFI);
	assert_int_equal(rows[1].tid, 4242);
	assert_string_equal(rows[1].thread, "shopd");
	assert_string_equal(rows[1].heap, "main");
	assert_ptr_equal(rows[1].stack, &shop.stacks[0]);
	assert_int_equal(rows[2].addr, 0x40);
	assert_int_equal(rows[2].lifetime_ns, 250000000);
	mw_views_destroy(views);
	mw_blocklist_destroy(list);
	mw_blocklist_destroy(NULL);
}

static bool by_stack_or_size(const struct mw_track_fate *fate)
{
	return fate->stack == ORDER || fate->stack == ORDER_AGAIN ||
	       (fate->size >= 5000 && fate->size != MW_SIZE_UNKNOWN);
}

static bool by_thread_and_heap(const struct mw_track_fate *fate)
{
	return fate->thread == WORKER && fate->kind == MW_KIND_HEAP && fate->addr / 16 % 2;
}

static bool by_kind_and_type(const struct mw_track_fate *fate)
{
	return fate->kind == MW_KIND_VM_INTERNAL || shop_type(fate) == MW_FATE_AOFI || fate->thread == MAIN_THREAD;
}

static const struct {
	const char *text;
	bool (*meant)(const struct mw_track_fate *fate);
} filters[] = {
	{"api:new or size:>=5000", by_stack_or_size},
	{"thread:worker heap:arena", by_thread_and_heap},
	{"kind:vm-internal or type:aofi or thread:shopd", by_kind_and_type},
};

static const struct mw_view_question *asked;

static uint64_t rank_of(const struct mw_track_fate *fate)
{
	uint64_t end = fate->died_ns == MW_TIME_UNKNOWN ? END_NS : fate->died_ns;

	if (asked->sort != MW_SORT_LIFETIME)
		return fate->size + 1; /* unknown: 0 */
	return fate->born_ns == MW_TIME_UNKNOWN ? 0 : end - fate->born_ns + 1;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = rank_of(left), b = rank_of(right);

	return (a < b) - (a > b);
}

/* The brute-force answer, sorted; gives how many. */
static size_t pick(const struct mw_track_fate *fates, size_t filter, struct mw_track_fate *out)
{
	size_t count = 0;

	for (size_t i = 0; i < FATES; i++) {
		bool internal = fates[i].kind == MW_KIND_VM_INTERNAL;

		if (!fates[i].last || (asked->type != MW_FATE_ALL && shop_type(&fates[i]) != asked->type))
			continue;
		if (asked->filter ? filters[filter].meant(&fates[i]) && (!internal || filter == 2) : !internal)
			out[count++] = fates[i];
	}
	qsort(out, count, sizeof(*out), compare);
	return count;
}

static void check(const struct mw_track_fate *fates, size_t filter)
{
	struct mw_track_fate *sorted = calloc(FATES, sizeof(*sorted));
	struct mw_blocklist *list = list_for(asked);
	struct mw_views *views = NULL;
	struct shop shop;
	size_t count;

	assert_non_null(sorted);
	shop_init(&shop);
	for (size_t i = 0; i < FATES; i++)
		(void)mw_blocklist_take(list, &fates[i]);
	shop.process.blocks = list;
	assert_null(mw_views_create(asked, &shop.process, 1, &views));
	count = pick(fates, filter, sorted);
	assert_int_equal(views->blocks->count, count);
	assert_int_equal(views->blocks->row_count, count < asked->blocks ? count : asked->blocks);
	for (size_t i = 0; i < views->blocks->row_count; i++) {
		const struct mw_block_row *row = &views->blocks->rows[i];
		struct mw_track_fate shown = {.size = row->bytes, .born_ns = row->born_ns, .died_ns = row->died_ns};

		assert_int_equal(rank_of(&shown), rank_of(&sorted[i]));
	}
	mw_views_destroy(views);
	mw_blocklist_destroy(list);
	free(sorted);
}

static void test_random(void **state)
{
	struct mw_track_fate fates[FATES];
	uint64_t seed = 5;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct mw_view_question question = {
			.blocks = 1 + shop_random(&seed, 40),
			.type = (enum mw_fate)shop_random(&seed, MW_FATE_COUNT + 1),
			.sort = shop_random(&seed, 2) ? MW_SORT_LIFETIME : MW_SORT_IMPACTING,
		};
		struct mw_filter *filter = NULL;
		size_t which = shop_random(&seed, 4);

		if (which < 3)
			assert_null(mw_filter_parse(filters[which].text, &filter));
		question.filter = filter;
		asked = &question;
		for (size_t i = 0; i < FATES; i++)
			fates[i] = shop_random_fate(&seed);
		check(fates, which);
		mw_filter_destroy(filter);
	}
}

/* A mapping of 9 pages, of which some went one by one: one row, of what it was, and with what is left of it. */
static void test_pieces(void **state)
{
	static const struct mw_stored_mapping mappings[] = {
		{.start = 0x10000, .end = 0x18000, .kind = MW_REGION_ANONYMOUS, .resident = 0x8000},
		{.start = 0x18000, .end = 0x20000, .kind = MW_REGION_ANONYMOUS, .resident = 0},
	};
	static const struct mw_space_moment end = {.mappings = mappings, .count = 2};
	struct mw_view_question question = {.blocks = 3, .type = MW_FATE_ALL, .sort = MW_SORT_SIZE};
	struct mw_track_fate fate = shop_fate(0x12000, 4096, RESERVE, MAIN_THREAD, 1200, 1300);
	struct mw_filter *filter = NULL;
	struct mw_views *views = NULL;
	const struct mw_block_row *rows;
	struct mw_blocklist *list;
	struct shop shop;

	(void)state;
	assert_null(mw_filter_parse("size:36K or size:1-4096", &filter));
	question.filter = filter;
	list = list_for(&question);
	shop_init(&shop);
	shop.process.end = &end;
	/* All of one, the last piece at 1.3 s. */
	fate.size = 9 * 4096;
	fate.last = false;
	(void)mw_blocklist_take(list, &fate);
	fate.addr = 0x15000;
	fate.last = true;
	(void)mw_blocklist_take(list, &fate);
	/* Another: one piece went, three are there. */
	fate.addr = 0x14000;
	fate.last = false;
	(void)mw_blocklist_take(list, &fate);
	fate.died_ns = MW_TIME_UNKNOWN;
	fate.block = 7;
	for (mw_addr addr = 0x13000; addr <= 0x1b000; addr += 0x4000) {
		fate.addr = addr;
		fate.last = addr == 0x13000;
		assert_true(mw_blocklist_take(list, &fate));
	}
	shop.process.blocks = list;
	assert_null(mw_views_create(&question, &shop.process, 1, &views));
	rows = views->blocks->rows;
	assert_int_equal(views->blocks->row_count, 2);
	assert_int_equal(views->blocks->count, 2);
	assert_int_equal(rows[0].fate, MW_FATE_IMPACTING);
	assert_int_equal(rows[0].addr, 0x13000);
	assert_int_equal(rows[0].bytes, 9 * 4096);
	assert_int_equal(rows[0].left, 3 * 4096);
	assert_int_equal(rows[0].resident, 2 * 4096);
	assert_int_equal(rows[1].fate, MW_FATE_TRANSIENT);
	assert_int_equal(rows[1].addr, 0x15000);
	assert_int_equal(rows[1].bytes, 9 * 4096);
	assert_int_equal(rows[1].left, 0);
	assert_true(rows[1].resident == MW_SIZE_UNKNOWN);
	mw_views_destroy(views);
	mw_blocklist_destroy(list);
	mw_filter_destroy(filter);
}

UNIT_GROUP(blocklist)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

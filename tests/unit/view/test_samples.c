// SPDX-License-Identifier: MIT
/* test_samples.c: blocks by stack and thread, for exports. */
#include "shop.h"
#include "unit.h"
#include "view/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct mw_cells *shop_cells(struct shop *shop, const struct mw_filter *filter)
{
	struct mw_cells_options options = mw_samples_cells(filter);
	/* Of order 100 bytes of the worker's and 40 of the main thread's, which lived for 10 ms; before the interval 500; two
	 * of put; a mapping of two pieces of which one went; an allocator's own. */
	struct mw_track_fate fates[] = {
		shop_fate(0x30, 40, ORDER, MAIN_THREAD, 1100, 1110),
		shop_fate(0x40, 500, ORDER, WORKER, 999, 1400),
		shop_fate(0x60, 3, PUT, MAIN_THREAD, 1500, 1530),
		shop_fate(0x10000, 4096, RESERVE, MAIN_THREAD, 1200, 1300),
		shop_fate(0x10, 100, ORDER, WORKER, 1000, 0),
		shop_fate(0x20, 200, ORDER_AGAIN, WORKER, 1500, 0),
		shop_fate(0x50, 50, PUT, MAIN_THREAD, 1500, 0),
		shop_fate(0x11000, 4096, RESERVE, MAIN_THREAD, 1200, 0),
		shop_fate(0x90000, 4096, INTERNAL, MAIN_THREAD, 1200, 0),
		shop_fate(0x70, 8, NOWHERE, STRANGER, 1700, 0),
	};
	struct mw_cells *cells = NULL;

	options.heap_of = shop_heap_of;
	fates[3].last = false;
	assert_null(mw_cells_create(&options, &cells));
	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++) {
		if (i == 4)
			mw_cells_until(cells, UINT64_C(2000000000));
		assert_true(mw_cells_take(cells, &fates[i]));
	}
	assert_null(mw_cells_end(cells, NULL, NULL));
	shop_init(shop);
	shop->process.samples = cells;
	return cells;
}

static const struct mw_export_sample *sample_of(const struct mw_export_sample *samples, size_t count, const char *api,
						const char *thread)
{
	for (size_t i = 0; i < count; i++)
		if (samples[i].stack && strcmp(samples[i].stack->api, api) == 0 && samples[i].thread &&
		    strcmp(samples[i].thread, thread) == 0)
			return &samples[i];
	return NULL;
}

static void test_all(void **state)
{
	struct shop shop;
	struct mw_cells *cells = shop_cells(&shop, NULL);
	const char *api, *worker = shop.process.threads[WORKER].name, *first = shop.process.threads[MAIN_THREAD].name;
	struct mw_export_sample *samples;
	const struct mw_export_sample *sample;
	uint64_t bytes = 0;
	size_t count;

	(void)state;
	api = mw_process_stack(&shop.process, ORDER)->api;
	assert_null(mw_samples_make(&shop.process, NULL, &samples, &count));
	/* Two threads of order; put; the mapping; the unknown stack. Not the allocator's own. */
	assert_int_equal(count, 5);
	sample = sample_of(samples, count, api, worker);
	assert_non_null(sample);
	assert_int_equal(sample->sums.fates[MW_FATE_IMPACTING].bytes, 300);
	assert_int_equal(sample->sums.fates[MW_FATE_AOFI].bytes, 500);
	assert_int_equal(sample->tid, shop.process.threads[WORKER].tid);
	/* 1 s and 0.5 s up to the interval's end; not what came from before it. */
	assert_true(sample->lived_ns == 1.5e9);
	sample = sample_of(samples, count, api, first);
	assert_non_null(sample);
	assert_int_equal(sample->sums.fates[MW_FATE_TRANSIENT].bytes, 40);
	assert_true(sample->lived_ns == 10e6);
	/* In the order of the report's stacks, what is unknown last. */
	for (size_t i = 1; i < count; i++)
		assert_true(!samples[i].stack || samples[i - 1].stack <= samples[i].stack);
	assert_null(samples[count - 1].stack);
	assert_int_equal(samples[count - 1].tid, 0);
	for (size_t i = 0; i < count; i++)
		bytes += mw_sums_size(&samples[i].sums).bytes;
	assert_int_equal(bytes, 40 + 3 + 4096 + 100 + 200 + 50 + 4096 + 8);
	free(samples);
	mw_cells_destroy(cells);
}

static uint64_t filtered(const char *text)
{
	struct shop shop;
	struct mw_filter *filter;
	struct mw_export_sample *samples;
	struct mw_cells *cells;
	uint64_t bytes = 0;
	size_t count;

	assert_null(mw_filter_parse(text, &filter));
	cells = shop_cells(&shop, filter);
	assert_null(mw_samples_make(&shop.process, filter, &samples, &count));
	for (size_t i = 0; i < count; i++)
		bytes += mw_sums_size(&samples[i].sums).bytes;
	free(samples);
	mw_cells_destroy(cells);
	mw_filter_destroy(filter);
	return bytes;
}

static void test_filter(void **state)
{
	(void)state;
	assert_int_equal(filtered("size:>=100 kind:heap"), 300);
	assert_int_equal(filtered("kind:vm"), 8192);
	assert_int_equal(filtered("kind:vm-internal"), 4096);
	assert_int_equal(filtered("type:transient kind:heap"), 43);
	assert_int_equal(filtered("function:nothing_is_called_so"), 0);
}

UNIT_GROUP(samples)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_filter),
	};

	return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* test_groups.c: cells and the tables made of them. */
#include "shop.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Cells for a question, fed by hand. */
static struct mw_cells *cells_for(const struct mw_view_question *question)
{
	struct mw_cells_options options;
	struct mw_cells *cells = NULL;

	assert_true(mw_view_cells_options(question, &options));
	options.heap_of = shop_heap_of;
	/* There is no tracker. */
	if (options.lifetimes == MW_LIFETIMES_OF_STACKS)
		options.lifetimes = MW_LIFETIMES_OF_CELLS;
	assert_null(mw_cells_create(&options, &cells));
	return cells;
}

static void feed(struct mw_cells *cells, struct mw_track_fate fate)
{
	if (fate.died_ns == MW_TIME_UNKNOWN)
		assert_true(mw_cells_take(cells, &fate));
	else
		(void)mw_cells_take(cells, &fate);
}

/* Order: 100 + 200 impacting, 40 transient (10 ms) twice, 500 from before; put: 50 impacting, 3 transient (30 ms);
 * reserve: 8192 in two pieces of which one went; internal: 4096. */
static void feed_shop(struct mw_cells *cells)
{
	struct mw_track_fate piece = shop_fate(0x10000, 4096, RESERVE, MAIN_THREAD, 1200, 1300);

	piece.last = false;
	feed(cells, shop_fate(0x10, 100, ORDER, WORKER, 1000, 0));
	feed(cells, shop_fate(0x20, 200, ORDER_AGAIN, WORKER, 1001, 0));
	feed(cells, shop_fate(0x30, 40, ORDER, MAIN_THREAD, 1100, 1110));
	feed(cells, shop_fate(0x30, 40, ORDER, WORKER, 1120, 1130));
	feed(cells, shop_fate(0x40, 500, ORDER, WORKER, 999, 1400));
	feed(cells, shop_fate(0x50, 50, PUT, MAIN_THREAD, 1500, 0));
	feed(cells, shop_fate(0x60, 3, PUT, MAIN_THREAD, 1500, 1530));
	feed(cells, piece);
	feed(cells, shop_fate(0x11000, 4096, RESERVE, MAIN_THREAD, 1200, 0));
	feed(cells, shop_fate(0x90000, 4096, INTERNAL, MAIN_THREAD, 1200, 0));
	/* Before the window; nobody knows where or how large. */
	feed(cells, shop_fate(0x70, MW_SIZE_UNKNOWN, MW_STACK_NONE, STRANGER, 0, 1600));
	assert_null(mw_cells_end(cells, NULL, NULL));
}

static struct mw_views *views_of(const struct mw_view_question *question, struct shop *shop, struct mw_cells *cells)
{
	struct mw_views *views = NULL;

	assert_null(mw_cells_end(cells, NULL, NULL));
	shop->process.cells = cells;
	assert_null(mw_views_create(question, &shop->process, 1, &views));
	return views;
}

static void assert_amount(struct mw_amount amount, uint64_t count, uint64_t bytes)
{
	assert_int_equal(amount.count, count);
	assert_int_equal(amount.bytes, bytes);
}

static void test_cells(void **state)
{
	struct mw_cells_options options = {.sizes = true, .lifetimes = MW_LIFETIMES_OF_CELLS};
	const struct mw_cell *cell;
	struct mw_track_fate older = shop_fate(0x50, 41, ORDER, MAIN_THREAD, 1000, 1030);
	struct mw_track_fate piece = shop_fate(0x5000, 4096, RESERVE, MAIN_THREAD, 1000, 1030);
	struct mw_cells *cells;
	size_t count;

	(void)state;
	assert_null(mw_cells_create(&options, &cells));
	feed(cells, shop_fate(0x10, 40, ORDER, WORKER, 1000, 1010));
	feed(cells, shop_fate(0x20, 40, ORDER, MAIN_THREAD, 1000, 1030)); /* threads are one here */
	feed(cells, shop_fate(0x30, 40, ORDER, MAIN_THREAD, 999, 1030));
	feed(cells, shop_fate(0x40, MW_SIZE_UNKNOWN, ORDER, MAIN_THREAD, 0, 1030));
	feed(cells, shop_fate(0x40, 41, ORDER, MAIN_THREAD, 1000, 1030));
	/* Born at the same time, but before the interval: it is not the time that decides. */
	older.older = true;
	feed(cells, older);
	/* Two pieces of a mapping are one block of its size. */
	piece.size = 12288;
	piece.last = false;
	feed(cells, piece);
	piece.bytes = 8192;
	piece.last = true;
	feed(cells, piece);
	assert_null(mw_cells_end(cells, NULL, NULL));
	assert_null(mw_cells_list(cells, &cell, &count));
	assert_int_equal(count, 6);
	assert_int_equal(cell[4].fate, MW_FATE_AOFI);
	assert_int_equal(cell[5].bytes, 12288);
	assert_amount(cell[5].amount, 1, 12288);
	assert_int_equal(cell->fate, MW_FATE_TRANSIENT);
	assert_amount(cell->amount, 2, 80);
	assert_int_equal(mw_cells_lifetimes(cells, cell)->min, 10000000);
	assert_int_equal(mw_cells_lifetimes(cells, cell)->max, 30000000);
	cell++;
	assert_int_equal(cell->fate, MW_FATE_AOFI);
	assert_null(mw_cells_lifetimes(cells, cell));
	cell++;
	assert_amount(cell->amount, 1, 0);
	assert_int_equal(cell->unknown, 1);
	mw_cells_destroy(cells);
	mw_cells_destroy(NULL);
}

/* Memory is bounded by keys, whatever comes. */
static void test_cells_bounded(void **state)
{
	struct mw_cells_options options = {.threads = true};
	const struct mw_cell *cell;
	struct mw_cells *cells;
	size_t count;
	uint64_t seed = 3;

	(void)state;
	assert_null(mw_cells_create(&options, &cells));
	for (unsigned i = 0; i < 100000; i++)
		feed(cells, shop_random_fate(&seed));
	assert_null(mw_cells_end(cells, NULL, NULL));
	assert_null(mw_cells_list(cells, &cell, &count));
	assert_true(count <= (SHOP_STACKS + 1) * 3 * MW_FATE_COUNT);
	mw_cells_destroy(cells);
}

static void test_modules(void **state)
{
	struct mw_view_question question = {
		.by = {MW_COLUMN_MODULE, MW_COLUMN_FUNCTION}, .by_count = 2, .type = MW_FATE_ALL, .top = 10};
	const struct mw_table_row *rows;
	struct mw_cells *cells = cells_for(&question);
	struct mw_views *views;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	feed_shop(cells);
	views = views_of(&question, &shop, cells);
	assert_non_null(views->groups);
	assert_null(views->tree);
	assert_null(views->blocks);
	rows = views->groups->rows;
	assert_int_equal(views->groups->row_count, 7);
	/* vm-internal is left out. */
	assert_amount(mw_sums_size(&views->groups->total), 7, 8625);
	assert_string_equal(rows[0].text, CACHE);
	assert_int_equal(rows[0].level, 0);
	assert_true(rows[0].parent == MW_TABLE_ROOT);
	assert_amount(rows[0].sums.fates[MW_FATE_IMPACTING], 2, 4146);
	assert_amount(rows[0].sums.fates[MW_FATE_TRANSIENT], 1, 4099);
	assert_int_equal(rows[0].sums.peak_bytes, 8242);
	assert_false(rows[0].sums.peak_exact);
	assert_string_equal(rows[1].text, "arena_reserve");
	assert_string_equal(rows[1].module, CACHE);
	assert_int_equal(rows[1].level, 1);
	assert_int_equal(rows[1].parent, 0);
	assert_amount(rows[1].sums.fates[MW_FATE_TRANSIENT], 0, 4096);
	assert_false(rows[1].sums.has_lifetime);
	assert_true(rows[1].sums.peak_exact);
	assert_string_equal(rows[2].text, "cache_put");
	assert_true(rows[2].sums.has_lifetime);
	assert_int_equal(rows[2].sums.lifetime_max_ns, 30000000);
	assert_string_equal(rows[3].text, APP);
	assert_amount(mw_sums_size(&rows[3].sums), 4, 380);
	assert_amount(rows[3].sums.fates[MW_FATE_AOFI], 1, 500);
	assert_int_equal(rows[3].sums.lifetime_min_ns, 10000000);
	/* Not the template that the compiler put there. */
	assert_string_equal(rows[4].text, "shop::Basket::add(shop::Order const&)");
	assert_null(rows[5].text);
	assert_amount(rows[5].sums.fates[MW_FATE_AOFI], 1, 0);
	assert_int_equal(rows[5].sums.aofi_unknown, 1);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

/* The line of the user's own code, whichever frame it is of, and what it is written in. */
static void test_lines(void **state)
{
	static struct mw_report_frame ordering[] = {
		{.function = "list_append", .module = APP},
		{.function = "handle",
		 .module = "[python]",
		 .file = "/srv/app.py",
		 .line = 41,
		 .language = MW_LANGUAGE_PYTHON},
	};
	static struct mw_report_frame putting[] = {
		{.function = "handle",
		 .module = "[python]",
		 .file = "/srv/app.py",
		 .line = 41,
		 .language = MW_LANGUAGE_PYTHON},
	};
	static struct mw_report_frame reserving[] = {
		{.function = "handle",
		 .module = "[python]",
		 .file = "/srv/app.py",
		 .line = 42,
		 .language = MW_LANGUAGE_PYTHON},
	};
	struct mw_view_question question = {.by = {MW_COLUMN_LANGUAGE, MW_COLUMN_LINE},
					    .by_count = 2,
					    .type = MW_FATE_ALL,
					    .sort = MW_SORT_SIZE,
					    .top = 10};
	const struct mw_table_row *rows;
	struct mw_cells *cells = cells_for(&question);
	struct mw_views *views;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	shop.stacks[0].frames = ordering;
	shop.stacks[0].frame_count = 2;
	shop.stacks[0].charged = 1;
	shop.stacks[1].frames = putting;
	shop.stacks[1].frame_count = 1;
	shop.stacks[2].frames = reserving;
	shop.stacks[2].frame_count = 1;
	feed_shop(cells);
	views = views_of(&question, &shop, cells);
	rows = views->groups->rows;
	assert_int_equal(views->groups->row_count, 5);
	assert_string_equal(rows[0].text, "python");
	assert_amount(mw_sums_size(&rows[0].sums), 7, 8625);
	assert_amount(mw_sums_size(&views->groups->total), 7, 8625);
	assert_int_equal(rows[1].frame->line, 42);
	assert_amount(mw_sums_size(&rows[1].sums), 1, 8192);
	assert_string_equal(rows[2].frame->file, "/srv/app.py");
	assert_int_equal(rows[2].frame->line, 41);
	assert_amount(mw_sums_size(&rows[2].sums), 6, 433);
	/* A block of no stack. */
	assert_null(rows[3].text);
	assert_null(rows[4].frame);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void test_type_and_top(void **state)
{
	struct mw_view_question question = {.by = {MW_COLUMN_THREAD, MW_COLUMN_SIZE},
					    .by_count = 2,
					    .type = MW_FATE_TRANSIENT,
					    .sort = MW_SORT_TRANSIENT,
					    .top = 1};
	const struct mw_table_row *rows;
	struct mw_cells *cells = cells_for(&question);
	struct mw_views *views;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	feed_shop(cells);
	views = views_of(&question, &shop, cells);
	rows = views->groups->rows;
	assert_int_equal(views->groups->row_count, 4);
	assert_int_equal(rows[0].number, 4242);
	assert_string_equal(rows[0].text, "shopd");
	assert_int_equal(rows[1].number, 4096);
	assert_int_equal(rows[2].folded, 3); /* 40, 3, and 50, of which none is transient */
	assert_amount(rows[2].sums.fates[MW_FATE_TRANSIENT], 2, 43);
	assert_amount(rows[2].sums.fates[MW_FATE_IMPACTING], 1, 50);
	assert_int_equal(rows[2].level, 1);
	assert_int_equal(rows[2].parent, 0);
	assert_int_equal(rows[3].folded, 2); /* the worker, and the one of the unknown block */
	assert_int_equal(rows[3].level, 0);
	assert_amount(rows[3].sums.fates[MW_FATE_TRANSIENT], 1, 40);
	assert_false(rows[1].sums.peak_exact); /* sizes split a stack */
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void test_kinds(void **state)
{
	struct mw_view_question question = {.by = {MW_COLUMN_KIND, MW_COLUMN_TYPE},
					    .by_count = 2,
					    .type = MW_FATE_ALL,
					    .sort = MW_SORT_SIZE,
					    .top = 9};
	static const unsigned order[][2] = {
		{MW_KIND_VM, MW_FATE_COUNT},
		{MW_KIND_VM, MW_FATE_IMPACTING},
		{MW_KIND_VM, MW_FATE_TRANSIENT},
		{MW_KIND_VM_INTERNAL, MW_FATE_COUNT},
		{MW_KIND_VM_INTERNAL, MW_FATE_IMPACTING},
		{MW_KIND_HEAP, MW_FATE_COUNT},
		{MW_KIND_HEAP, MW_FATE_IMPACTING},
		{MW_KIND_HEAP, MW_FATE_TRANSIENT},
		{MW_KIND_HEAP, MW_FATE_AOFI},
	};
	struct mw_cells *cells = cells_for(&question);
	struct mw_views *views;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	feed_shop(cells);
	views = views_of(&question, &shop, cells);
	assert_int_equal(views->groups->row_count, sizeof(order) / sizeof(order[0]));
	for (size_t i = 0; i < views->groups->row_count; i++) {
		bool kind = order[i][1] == MW_FATE_COUNT;

		assert_int_equal(views->groups->rows[i].level, !kind);
		assert_int_equal(views->groups->rows[i].number, kind ? order[i][0] : order[i][1]);
	}
	assert_amount(mw_sums_size(&views->groups->total), 8, 12721);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void test_stacks_and_processes(void **state)
{
	struct mw_view_question question = {
		.by = {MW_COLUMN_STACK, MW_COLUMN_PROCESS}, .by_count = 2, .type = MW_FATE_IMPACTING, .top = 9};
	struct mw_cells *cells = cells_for(&question);
	struct mw_view_process processes[2];
	struct mw_views *views = NULL;
	struct shop shops[2];

	(void)state;
	feed_shop(cells);
	for (unsigned i = 0; i < 2; i++) {
		shop_init(&shops[i]);
		shops[i].report.target.pid = 10 + (pid_t)i;
		processes[i] = shops[i].process;
		processes[i].cells = cells;
	}
	assert_null(mw_views_create(&question, processes, 2, &views));
	assert_string_equal(views->groups->rows[0].text, "fedcba9876543210");
	assert_non_null(views->groups->rows[0].stack);
	assert_amount(views->groups->rows[0].sums.fates[MW_FATE_IMPACTING], 2, 8192);
	assert_int_equal(views->groups->rows[1].number, 10);
	assert_true(views->groups->rows[1].sums.peak_exact);
	assert_int_equal(views->groups->rows[2].number, 11);
	mw_views_destroy(views);
	/* Below a process the stack is that process's own, whatever its id. */
	question.by[0] = MW_COLUMN_PROCESS;
	question.by[1] = MW_COLUMN_STACK;
	assert_null(mw_views_create(&question, processes, 2, &views));
	for (size_t i = 0, process = SIZE_MAX; i < views->groups->row_count; i++) {
		const struct mw_table_row *row = &views->groups->rows[i];

		if (row->level == 0)
			process = row->number - 10;
		else if (!row->folded)
			assert_true(row->stack >= shops[process].report.stacks &&
				    row->stack < shops[process].report.stacks + shops[process].report.stack_count);
	}
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void test_filtered(void **state)
{
	struct mw_view_question question = {.by = {MW_COLUMN_HEAP}, .by_count = 1, .type = MW_FATE_ALL, .top = 9};
	struct mw_filter *filter = NULL;
	struct mw_cells *cells;
	struct mw_views *views;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	assert_null(mw_filter_parse("thread:worker or kind:vm-internal or size:3", &filter));
	question.filter = filter;
	cells = cells_for(&question);
	feed_shop(cells);
	views = views_of(&question, &shop, cells);
	assert_string_equal(views->filter, "thread:worker or kind:vm-internal or size:3");
	assert_amount(mw_sums_size(&views->groups->total), 5, 4439);
	assert_amount(views->groups->total.fates[MW_FATE_AOFI], 1, 500);
	assert_string_equal(views->groups->rows[0].text, "(none: a mapping)");
	assert_string_equal(views->groups->rows[1].text, "main");
	assert_amount(mw_sums_size(&views->groups->rows[1].sums), 2, 203);
	assert_string_equal(views->groups->rows[2].text, "arena 1");
	assert_amount(mw_sums_size(&views->groups->rows[2].sums), 2, 140);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
	mw_filter_destroy(filter);
}

/* What lies in no heap is told from what lies in one that is not known. */
static void test_heaps(void **state)
{
	struct mw_view_question question = {.by = {MW_COLUMN_HEAP}, .by_count = 1, .type = MW_FATE_ALL, .top = 9};
	struct mw_cells *cells;
	struct mw_views *views;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	shop.process.heap_count = 2; /* "arena 1" has no name */
	cells = cells_for(&question);
	feed(cells, shop_fate(0x2000, 4096, RESERVE, MAIN_THREAD, 1000, 0));
	feed(cells, shop_fate(0x20, 20, ORDER, MAIN_THREAD, 1000, 0));
	feed(cells, shop_fate(0x10, 10, ORDER, MAIN_THREAD, 1000, 0));
	views = views_of(&question, &shop, cells);
	assert_int_equal(views->groups->row_count, 3);
	assert_string_equal(views->groups->rows[0].text, "(none: a mapping)");
	assert_string_equal(views->groups->rows[1].text, "main");
	assert_null(views->groups->rows[2].text);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void assert_sums_equal(const struct mw_sums *a, const struct mw_sums *b)
{
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++) {
		assert_int_equal(a->fates[fate].count, b->fates[fate].count);
		assert_int_equal(a->fates[fate].bytes, b->fates[fate].bytes);
	}
	assert_int_equal(a->aofi_unknown, b->aofi_unknown);
}

static void add_sums(struct mw_sums *sum, const struct mw_sums *other)
{
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++) {
		sum->fates[fate].count += other->fates[fate].count;
		sum->fates[fate].bytes += other->fates[fate].bytes;
	}
	sum->aofi_unknown += other->aofi_unknown;
}

static void add_fate(struct mw_sums *sum, const struct mw_track_fate *fate)
{
	enum mw_fate type = shop_type(fate);
	bool known = fate->bytes != MW_SIZE_UNKNOWN;

	sum->fates[type].count += fate->last;
	sum->fates[type].bytes += known ? fate->bytes : 0;
	sum->aofi_unknown += type == MW_FATE_AOFI && fate->last && !known;
}

/* Every row's children sum up to it, and the first level to the whole; each level is in order and not too long. */
static void assert_table(const struct mw_view_question *question, const struct mw_table *table)
{
	struct mw_sums *sums = calloc(table->row_count + 1, sizeof(*sums));
	size_t *children = calloc(table->row_count + 1, sizeof(*children));

	assert_non_null(sums);
	assert_non_null(children);
	for (size_t i = 0; i < table->row_count; i++) {
		const struct mw_table_row *row = &table->rows[i];
		size_t parent = row->parent == MW_TABLE_ROOT ? table->row_count : row->parent;

		assert_true(row->parent == MW_TABLE_ROOT || row->parent < i);
		assert_int_equal(row->level, row->parent == MW_TABLE_ROOT ? 0 : table->rows[row->parent].level + 1);
		add_sums(&sums[parent], &row->sums);
		children[parent]++;
		assert_true(children[parent] <= question->top + 1);
		assert_true(row->folded || question->type == MW_FATE_ALL || row->sums.fates[question->type].count ||
			    row->sums.fates[question->type].bytes);
	}
	assert_sums_equal(&sums[table->row_count], &table->total);
	for (size_t i = 0; i < table->row_count; i++)
		if (table->rows[i].level + 1 < table->by_count && !table->rows[i].folded)
			assert_sums_equal(&sums[i], &table->rows[i].sums);
	free(sums);
	free(children);
}

static bool meant(const struct mw_track_fate *fate)
{
	return (fate->kind == MW_KIND_VM || (fate->size >= 16 && fate->size <= 4096) || fate->thread == WORKER) &&
	       !(fate->kind == MW_KIND_HEAP && fate->stack == PUT) && fate->addr / 16 % 2;
}

/* Histograms that cells share say the same as one for each. */
static void assert_lifetimes(const struct mw_table *a, const struct mw_table *b)
{
	assert_int_equal(a->row_count, b->row_count);
	assert_int_equal(a->total.lifetime_median_ns, b->total.lifetime_median_ns);
	for (size_t i = 0; i < a->row_count; i++) {
		const struct mw_sums *x = &a->rows[i].sums, *y = &b->rows[i].sums;

		assert_int_equal(x->has_lifetime, y->has_lifetime);
		assert_int_equal(x->lifetime_min_ns, y->lifetime_min_ns);
		assert_int_equal(x->lifetime_median_ns, y->lifetime_median_ns);
		assert_int_equal(x->lifetime_max_ns, y->lifetime_max_ns);
	}
}

static void check_lifetimes(const struct mw_view_question *question, const struct mw_track_fate *fates, size_t count,
			    const struct mw_table *table)
{
	struct mw_cells_options options;
	struct mw_cells *cells = NULL;
	struct mw_views *views;
	struct shop shop;

	shop_init(&shop);
	assert_true(mw_view_cells_options(question, &options));
	options.heap_of = shop_heap_of;
	options.lifetimes = MW_LIFETIMES_OF_CELLS;
	assert_null(mw_cells_create(&options, &cells));
	for (size_t i = 0; i < count; i++)
		feed(cells, fates[i]);
	views = views_of(question, &shop, cells);
	assert_lifetimes(table, views->groups);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void shuffle_question(uint64_t *seed, struct mw_view_question *question)
{
	enum mw_column all[MW_COLUMN_COUNT];

	for (unsigned i = 0; i < MW_COLUMN_COUNT; i++)
		all[i] = (enum mw_column)i;
	question->by_count = 1 + shop_random(seed, 4);
	for (size_t i = 0; i < question->by_count; i++) {
		size_t other = i + shop_random(seed, MW_COLUMN_COUNT - i);
		enum mw_column column = all[other];

		all[other] = all[i];
		question->by[i] = column;
		all[i] = column;
	}
	question->type = (enum mw_fate)shop_random(seed, MW_FATE_COUNT + 1);
	question->sort = (enum mw_sort)shop_random(seed, MW_SORT_NUMBER);
	question->top = shop_random(seed, 6);
}

static void test_random(void **state)
{
	struct mw_filter *filter = NULL;
	uint64_t seed = 2024;

	(void)state;
	/* Addresses are odd in arena 1 only; mappings lie in none. */
	assert_null(mw_filter_parse(
		"(kind:vm or size:16-4096 or thread:worker) not (kind:heap and stack:0123) heap:arena", &filter));
	for (unsigned round = 0; round < 300; round++) {
		struct mw_view_question question = {0};
		struct mw_track_fate fates[400];
		struct mw_sums whole = {0};
		struct mw_cells *cells;
		struct mw_views *views;
		struct shop shop;
		bool internal = false;

		shop_init(&shop);
		shuffle_question(&seed, &question);
		question.filter = round % 2 ? filter : NULL;
		for (size_t i = 0; i < question.by_count; i++)
			internal = internal || question.by[i] == MW_COLUMN_KIND;
		cells = cells_for(&question);
		for (unsigned i = 0; i < 400; i++) {
			struct mw_track_fate fate = shop_random_fate(&seed);

			fates[i] = fate;
			feed(cells, fate);
			if (question.filter ? meant(&fate) && fate.kind == MW_KIND_HEAP
					    : internal || fate.kind != MW_KIND_VM_INTERNAL)
				add_fate(&whole, &fate);
		}
		views = views_of(&question, &shop, cells);
		assert_sums_equal(&views->groups->total, &whole);
		assert_table(&question, views->groups);
		check_lifetimes(&question, fates, 400, views->groups);
		mw_views_destroy(views);
		mw_cells_destroy(cells);
	}
	mw_filter_destroy(filter);
}

#define TRACKED 5u

/* Random events of TRACKED stacks, an interval that begins among them, and who watches it. */
static void on_fate(void *cells, const struct mw_track_fate *fate)
{
	assert_true(mw_cells_take(cells, fate));
}

static void feed_track(struct mw_track *track, struct mw_cells *cells)
{
	struct mw_event_sink sink = mw_track_sink(track);
	struct mw_event event = {.kind = MW_KIND_HEAP};
	uint64_t seed = 7;
	uint32_t stacks[TRACKED];

	assert_null(sink.thread(sink.context, 1, "main", true, &event.thread));
	for (uint32_t i = 0; i < TRACKED; i++) {
		struct mw_raw_frame frame = {i, 0};
		struct mw_raw_stack stack = {&frame, 1, MW_STACK_COMPLETE, 0, MW_KIND_HEAP};

		assert_null(sink.stack(sink.context, &stack, &stacks[i]));
	}
	for (uint32_t i = 0; i < 20000; i++) {
		event.type = shop_random(&seed, 2) ? MW_EVENT_ALLOC : MW_EVENT_FREE;
		event.time_ns += shop_random(&seed, 1000);
		event.addr = 16 + 16 * shop_random(&seed, 100);
		event.size = shop_random(&seed, 100);
		event.stack = stacks[shop_random(&seed, TRACKED)];
		if (i == 5000) {
			assert_null(mw_track_interval(track, event.time_ns));
			mw_track_watch(track, on_fate, cells);
		}
		assert_null(sink.event(sink.context, &event));
	}
}

static void assert_histograms(const struct mw_histogram *a, const struct mw_histogram *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->min, b->min);
	assert_int_equal(a->max, b->max);
	for (unsigned percent = 0; percent <= 100; percent++)
		assert_int_equal(mw_histogram_quantile(a, percent), mw_histogram_quantile(b, percent));
}

/* Where only stacks are told apart the tracker's own histograms are those of the cells. */
static void test_lifetimes_of_stacks(void **state)
{
	struct mw_cells_options options = {.lifetimes = MW_LIFETIMES_OF_CELLS};
	struct mw_cells *keeping = NULL, *borrowing = NULL;
	const struct mw_cell *kept, *cells;
	struct mw_track *track;
	size_t found = 0, kept_count, count;

	(void)state;
	assert_null(mw_track_create(&track));
	assert_null(mw_cells_create(&options, &keeping));
	feed_track(track, keeping);
	assert_null(mw_cells_end(keeping, NULL, NULL));
	options.lifetimes = MW_LIFETIMES_OF_STACKS;
	assert_null(mw_cells_create(&options, &borrowing));
	assert_null(mw_cells_list(keeping, &kept, &kept_count));
	for (size_t i = 0; i < kept_count; i++) {
		const struct mw_cell *cell = &kept[i];

		/* Fates of the same keys: of how long they lived nothing is kept. */
		feed(borrowing,
		     shop_fate(0x10, 1, cell->stack, MAIN_THREAD, cell->fate == MW_FATE_TRANSIENT ? 1000 : 500, 1001));
	}
	assert_null(mw_cells_end(borrowing, track, NULL));
	assert_null(mw_cells_list(borrowing, &cells, &count));
	for (size_t i = 0; i < count; i++) {
		const struct mw_cell *cell = &cells[i];

		if (cell->fate != MW_FATE_TRANSIENT) {
			assert_null(mw_cells_lifetimes(borrowing, cell));
			continue;
		}
		for (size_t j = 0; j < kept_count; j++) {
			const struct mw_cell *other = &kept[j];

			if (other->stack != cell->stack || other->fate != cell->fate)
				continue;
			assert_histograms(mw_cells_lifetimes(borrowing, cell), mw_cells_lifetimes(keeping, other));
			found++;
		}
	}
	assert_int_equal(found, TRACKED);
	mw_cells_destroy(borrowing);
	mw_cells_destroy(keeping);
	mw_track_destroy(track);
}

UNIT_GROUP(groups)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_cells_bounded),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_type_and_top),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_stacks_and_processes),
		cmocka_unit_test(test_filtered),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_heaps),
		cmocka_unit_test(test_lifetimes_of_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

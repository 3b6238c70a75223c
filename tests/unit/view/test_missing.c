// SPDX-License-Identifier: MIT
/* test_missing.c: names that are missing, runtimes, growth of the RSS that no block explains, time to the limit. */
#include "alloc/families.h"
#include "unit.h"
#include "view/missing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB    (UINT64_C(1) << 20)
#define SERVER "/opt/app/server"
#define LIBFOO "/usr/lib/libfoo.so.1"
#define LIBC   "/usr/lib/libc.so.6"

/* A report of one suspect with one stack, to be changed by each test. */
static struct {
	struct mw_arena *arena;
	struct mw_report report;
	struct mw_summary_input input;
	struct mw_view_module modules[3];
	struct mw_report_frame frames[4];
	struct mw_report_stack stacks[2];
	struct mw_report_suspect suspects[2];
	struct mw_report_sample memory[2];
	struct mw_report_space space;
	struct mw_stored_target target;
} made;

static const uint8_t build_id[] = {0x12, 0x34, 0xab};
static const struct mw_view_symbols symbols;
static size_t first[] = {0}, second[] = {1};

static int begin(void **state)
{
	(void)state;
	memset(&made, 0, sizeof(made));
	made.arena = mw_arena_create();
	made.modules[0] = (struct mw_view_module){.path = SERVER, .suspect = true};
	made.modules[1] = (struct mw_view_module){
		.path = LIBFOO, .suspect = true, .build_id = build_id, .build_id_size = sizeof(build_id)};
	made.modules[2] = (struct mw_view_module){.path = LIBC};
	made.frames[0] = (struct mw_report_frame){.module = LIBC};
	made.frames[1] = (struct mw_report_frame){.module = LIBFOO};
	made.frames[2] = (struct mw_report_frame){.module = SERVER, .function = "main"};
	made.frames[3] = (struct mw_report_frame){.module = LIBC};
	made.stacks[0] = (struct mw_report_stack){.frames = made.frames, .frame_count = 4};
	made.stacks[1] = (struct mw_report_stack){.kind = MW_KIND_VM};
	made.suspects[0] = (struct mw_report_suspect){
		.verdict = MW_GROWTH_STEADY, .bytes_per_hour = 3600.0 * MIB, .stacks = first, .stack_count = 1};
	made.suspects[1] = (struct mw_report_suspect){.verdict = MW_GROWTH_ONE_OFF, .stacks = second, .stack_count = 1};
	made.target = (struct mw_stored_target){.distribution = "debian"};
	made.input = (struct mw_summary_input){
		.modules = made.modules, .module_count = 3, .symbols = &symbols, .target = &made.target};
	made.report = (struct mw_report){
		.window = {.seconds = 10, .to = 10},
		.stacks = made.stacks,
		.stack_count = 2,
		.suspects = made.suspects,
		.suspect_count = 2,
		.memory = made.memory,
		.memory_count = 2,
	};
	return made.arena == NULL;
}

static int end(void **state)
{
	(void)state;
	mw_arena_destroy(made.arena);
	return 0;
}

static void find(void)
{
	assert_null(mw_view_missing(&made.input, made.arena, &made.report));
}

static void names(void **state)
{
	const struct mw_report_nameless *nameless = &made.report.nameless;

	(void)state;
	find();
	/* The C library's own functions matter to nobody. */
	assert_int_equal(nameless->module_count, 1);
	assert_string_equal(nameless->modules[0], LIBFOO);
	assert_int_equal(nameless->argument_count, 1);
	assert_string_equal(nameless->arguments[0], LIBFOO);
	assert_string_equal(nameless->begin, "find-dbgsym-packages --install");
	assert_string_equal(nameless->sudo, "sudo ");
}

static void names_of_another_distribution(void **state)
{
	const struct mw_report_nameless *nameless = &made.report.nameless;

	(void)state;
	made.target.distribution = "suse";
	made.target.by_root = true;
	find();
	assert_string_equal(nameless->arguments[0], "debuginfo(build-id)=1234ab");
	assert_string_equal(nameless->sudo, "");
	/* No package has it: no command helps. */
	memset(&made.report.nameless, 0, sizeof(made.report.nameless));
	made.frames[1].module = SERVER;
	find();
	assert_int_equal(nameless->module_count, 1);
	assert_string_equal(nameless->modules[0], SERVER);
	assert_int_equal(nameless->argument_count, 0);
	assert_null(nameless->begin);
	/* A distribution that nobody knows. */
	memset(&made.report.nameless, 0, sizeof(made.report.nameless));
	made.frames[1].module = LIBFOO;
	made.target.distribution = NULL;
	find();
	assert_int_equal(nameless->argument_count, 1);
	assert_null(nameless->begin);
}

static void no_names_are_missing(void **state)
{
	const struct mw_report_nameless *nameless = &made.report.nameless;

	(void)state;
	made.frames[1].function = "foo";
	find();
	assert_int_equal(nameless->module_count, 0);
	made.frames[1].function = NULL;
	made.frames[1].generated = true;
	find();
	assert_int_equal(nameless->module_count, 0);
	/* It is no suspect. */
	made.frames[1].generated = false;
	made.suspects[0].verdict = MW_GROWTH_PLATEAU;
	find();
	assert_int_equal(nameless->module_count, 0);
	/* Nobody wanted names. */
	made.suspects[0].verdict = MW_GROWTH_TOO_SHORT;
	made.input.symbols = NULL;
	find();
	assert_int_equal(nameless->module_count, 0);
	made.input.symbols = &symbols;
	find();
	assert_int_equal(nameless->module_count, 1);
}

static void runtimes(void **state)
{
	(void)state;
	made.target.runtimes = mw_runtimes_of("/usr/lib/jvm/lib/server/libjvm.so", NULL) |
			       mw_runtimes_of("/usr/lib/libpython3.11.so.1.0", NULL);
	find();
	assert_int_equal(made.report.runtime_count, 2);
	assert_string_equal(made.report.runtimes[0].name, "python");
	assert_string_equal(made.report.runtimes[1].name, "jvm");
	assert_non_null(strstr(made.report.runtimes[0].text, "--python-objects"));
}

static void grow(uint64_t rss, uint64_t heap, uint64_t vm)
{
	made.memory[0].rss = 100 * MIB;
	made.memory[1].rss = made.memory[0].rss + rss;
	made.report.totals[MW_KIND_HEAP].impacting.bytes = heap;
	made.stacks[1].resident = vm;
	memset(&made.report.rss, 0, sizeof(made.report.rss));
	find();
}

static void growth(void **state)
{
	const struct mw_report_rss *rss = &made.report.rss;

	(void)state;
	grow(0, 0, 0);
	assert_false(rss->known);
	grow(101 * MIB, 10 * MIB, 2 * MIB);
	assert_true(rss->known && rss->unexplained);
	assert_int_equal(rss->growth, 101 * MIB);
	assert_int_equal(rss->blocks, 12 * MIB);
	assert_false(rss->has_kinds);
	/* No more than 4 MiB, no more than a quarter. */
	grow(4 * MIB, 0, 0);
	assert_true(rss->known && !rss->unexplained);
	grow(4 * MIB + 1, 0, 0);
	assert_true(rss->unexplained);
	grow(40 * MIB, 30 * MIB, 0);
	assert_false(rss->unexplained);
	grow(40 * MIB, 30 * MIB - 1, 0);
	assert_true(rss->unexplained);
	/* Blocks that were not touched are more than the RSS grew by. */
	grow(40 * MIB, 90 * MIB, 0);
	assert_int_equal(rss->blocks, 40 * MIB);
	assert_false(rss->unexplained);
	/* What is resident of a mapping is not known: all of it may be. */
	made.stacks[1].impacting.bytes = 39 * MIB;
	grow(40 * MIB, 0, MW_SIZE_UNKNOWN);
	assert_int_equal(rss->blocks, 39 * MIB);
	/* It was killed, and has no memory. */
	made.memory[0].rss = 0;
	made.memory[1].rss = MW_SIZE_UNKNOWN;
	memset(&made.report.rss, 0, sizeof(made.report.rss));
	find();
	assert_false(rss->known);
}

static void growth_by_kind(void **state)
{
	const struct mw_report_rss *rss = &made.report.rss;

	(void)state;
	made.report.space = &made.space;
	made.space.start.known = made.space.end.known = true;
	made.space.end.kinds[MW_REGION_HEAP].resident = 8 * MIB;
	made.space.end.kinds[MW_REGION_ARENA].resident = 1 * MIB;
	made.space.end.kinds[MW_REGION_ANONYMOUS].resident = 80 * MIB;
	made.space.start.kinds[MW_REGION_FILE_DATA].resident = 9 * MIB;
	grow(80 * MIB, 10 * MIB, 2 * MIB);
	assert_true(rss->has_kinds);
	/* The heap's blocks fill heap and arena, what is left of them lies in mappings, beside mapped blocks. */
	assert_int_equal(rss->kinds[MW_REGION_HEAP], 0);
	assert_int_equal(rss->kinds[MW_REGION_ARENA], 0);
	assert_int_equal(rss->kinds[MW_REGION_ANONYMOUS], 77 * MIB);
	assert_int_equal(rss->kinds[MW_REGION_FILE_DATA], 0);
	/* Of an interval they are not known. */
	made.report.window.from = 1;
	grow(80 * MIB, 10 * MIB, 2 * MIB);
	assert_false(rss->has_kinds);
	made.report.window.from = 0;
	/* Of one kind it is what the others leave. */
	made.space.end.kinds[MW_REGION_ANONYMOUS].resident = MW_SIZE_UNKNOWN;
	grow(50 * MIB, 10 * MIB, 2 * MIB);
	assert_true(rss->has_kinds);
	assert_int_equal(rss->kinds[MW_REGION_ANONYMOUS], 47 * MIB);
	made.space.end.kinds[MW_REGION_STACK].resident = MW_SIZE_UNKNOWN;
	grow(50 * MIB, 10 * MIB, 2 * MIB);
	assert_false(rss->has_kinds);
}

static void limit(void **state)
{
	(void)state;
	made.report.target.limit = (struct mw_memory_limit){2048 * MIB, 1024 * MIB, MW_LIMIT_CGROUP};
	find();
	assert_float_equal(made.suspects[0].seconds_to_limit, 1024, 0.001);
	assert_true(made.suspects[1].seconds_to_limit < 0);
	made.report.target.limit.used = 4096 * MIB;
	find();
	assert_float_equal(made.suspects[0].seconds_to_limit, 0, 0.001);
	made.report.target.limit.of = MW_LIMIT_NONE;
	find();
	assert_true(made.suspects[0].seconds_to_limit < 0);
}

UNIT_GROUP(missing)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, begin, end),
		cmocka_unit_test_setup_teardown(names_of_another_distribution, begin, end),
		cmocka_unit_test_setup_teardown(no_names_are_missing, begin, end),
		cmocka_unit_test_setup_teardown(runtimes, begin, end),
		cmocka_unit_test_setup_teardown(growth, begin, end),
		cmocka_unit_test_setup_teardown(growth_by_kind, begin, end),
		cmocka_unit_test_setup_teardown(limit, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* test_json.c: the report as JSON, read back. */
#include "fixture.h"
#include "render.h"
#include "unit.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *read_back(const struct mw_report *const *reports, size_t count)
{
	return render_json("json", reports, count, (struct mw_output_options){.top = 1});
}

static json_t *read_one(const struct mw_report *report)
{
	return read_back(&report, 1);
}

/* `keys` is a list of words: all must be there. */
static void assert_keys(const json_t *object, const char *keys)
{
	char *copy = strdup(keys);

	assert_non_null(copy);
	assert_true(json_is_object(object));
	for (char *key = strtok(copy, " "); key; key = strtok(NULL, " "))
		if (!json_object_get(object, key))
			fail_msg("%s is missing", key);
	free(copy);
}

static const json_t *at(const json_t *root, const char *path)
{
	char *copy = strdup(path);

	assert_non_null(copy);
	for (char *key = strtok(copy, "."); key; key = strtok(NULL, ".")) {
		root = json_is_array(root) ? json_array_get(root, (size_t)atol(key)) : json_object_get(root, key);
		if (!root)
			fail_msg("%s of %s is missing", key, path);
	}
	free(copy);
	return root;
}

static void assert_number(const json_t *root, const char *path, json_int_t number)
{
	const json_t *value = at(root, path);

	assert_true(json_is_integer(value));
	assert_int_equal(json_integer_value(value), number);
}

static void assert_text(const json_t *root, const char *path, const char *text)
{
	const json_t *value = at(root, path);

	assert_true(json_is_string(value));
	assert_string_equal(json_string_value(value), text);
}

static void assert_null_at(const json_t *root, const char *path)
{
	assert_true(json_is_null(at(root, path)));
}

/* Every key that the specification names, and its type. */
static void check_keys(const json_t *root)
{
	size_t i, j;
	json_t *stack, *frame, *item;

	assert_keys(root, "schema target window engine complete totals memory modules threads stacks");
	assert_keys(at(root, "target"), "pid comm exe command exit_status");
	assert_keys(at(root, "window"), "started seconds from to ended limit");
	assert_keys(at(root, "engine"),
		    "name reason hooks stops longest_stop_ns stopped_ns stood_ns stopped_share attach_ns detach_ns "
		    "broken_stacks returns_site "
		    "returns_exchanged walks slow_walks waited_ns own_memory children_cleaned left_behind");
	json_array_foreach(at(root, "engine.hooks"), i, item) assert_keys(item, "function module address role refused");
	assert_keys(at(root, "totals"), "heap vm vm-internal");
	assert_keys(at(root, "totals.heap"), "size impacting transient aofi peak");
	assert_keys(at(root, "totals.heap.peak"), "bytes count at");
	json_array_foreach(at(root, "memory"), i, item)
		assert_keys(item, "at rss pss vsize heap_impacting vm_impacting");
	json_array_foreach(at(root, "modules"), i, item) assert_keys(item, "module size impacting transient");
	json_array_foreach(at(root, "threads"), i, item) assert_keys(item, "tid name size impacting transient");
	json_array_foreach(at(root, "stacks"), i, stack)
	{
		assert_keys(stack,
			    "id kind api truncated cut end frames size impacting transient aofi peak lifetime_ns "
			    "threads suspect oldest newest aofi_unknown aofo growth");
		json_array_foreach(at(stack, "frames"), j, frame)
			assert_keys(frame, "function module offset address file line inlined");
		json_array_foreach(at(stack, "threads"), j, item) assert_keys(item, "tid name impacting");
	}
}

static void test_keys(void **state)
{
	json_t *root;

	(void)state;
	root = read_one(fixture_server());
	check_keys(root);
	json_decref(root);
	root = read_one(fixture_hostile());
	check_keys(root);
	json_decref(root);
}

static void check_target(const json_t *root)
{
	assert_text(root, "schema", "memwatch.report/1");
	assert_number(root, "target.pid", 4242);
	assert_text(root, "target.command.2", "8080");
	assert_null_at(root, "target.exit_status");
	assert_text(root, "window.started", "2023-11-14T22:13:20.123456Z");
	assert_text(root, "window.ended", "duration");
	assert_text(root, "engine.name", "trap");
	assert_number(root, "engine.stops", 2475322);
	assert_number(root, "engine.returns_exchanged", 1237656);
	assert_number(root, "engine.walks", 0);
	assert_null_at(root, "engine.left_behind");
	assert_null_at(root, "engine.hooks.0.refused");
	assert_true(json_is_false(at(root, "complete")));
	assert_number(root, "lost.events", 0);
	assert_int_equal(json_array_size(at(root, "lost.not_hooked")), 1);
	assert_text(root, "lost.not_hooked.0.function", "sbrk");
	assert_text(root, "lost.not_hooked.0.why", "its first instruction is already a breakpoint (gdb?)");
	assert_null_at(root, "memory.1.pss");
	assert_number(root, "memory.2.heap_impacting", 14 << 20);
}

static void test_values(void **state)
{
	json_t *root = read_one(fixture_server());

	(void)state;
	check_target(root);
	assert_text(root, "stacks.0.id", "00c0ffee00c0ffee");
	assert_text(root, "stacks.0.kind", "heap");
	assert_null_at(root, "stacks.0.lifetime_ns");
	assert_null_at(root, "stacks.0.cut");
	assert_true(json_is_true(at(root, "stacks.0.frames.0.inlined")));
	assert_number(root, "stacks.0.frames.0.line", 137);
	assert_null_at(root, "stacks.0.frames.4.function");
	assert_null_at(root, "stacks.0.frames.4.line");
	assert_number(root, "stacks.0.threads.1.impacting.bytes", 3 << 20);
	assert_number(root, "stacks.1.lifetime_ns.p99", 850000000);
	assert_text(root, "stacks.1.cut", "no unwind information");
	assert_true(json_is_false(at(root, "stacks.1.truncated")));
	assert_null_at(root, "stacks.1.frames.1.module");
	assert_text(root, "stacks.2.cut", "depth");
	assert_true(json_is_true(at(root, "stacks.2.truncated")));
	assert_text(root, "stacks.3.kind", "vm-internal");
	assert_null_at(root, "stacks.4.oldest");
	/* `top` is for reading by eye. */
	assert_int_equal(json_array_size(at(root, "stacks")), 6);
	json_decref(root);
}

static json_int_t sum_stacks(const json_t *root, const char *kind, const char *path)
{
	json_int_t sum = 0;
	json_t *stack;
	size_t i;

	json_array_foreach(at(root, "stacks"), i, stack) if (strcmp(json_string_value(at(stack, "kind")), kind) == 0)
		sum += json_integer_value(at(stack, path));
	return sum;
}

static void test_sums(void **state)
{
	static const char *const kinds[] = {"heap", "vm", "vm-internal"};
	static const char *const paths[] = {"size.count",      "size.bytes",      "impacting.count",
					    "impacting.bytes", "transient.count", "transient.bytes",
					    "aofi.count",      "aofi.bytes",      "aofi_unknown"};
	json_t *root = read_one(fixture_server());

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (size_t j = 0; j < sizeof(paths) / sizeof(paths[0]); j++)
			assert_number(at(at(root, "totals"), kinds[i]), paths[j], sum_stacks(root, kinds[i], paths[j]));
	json_decref(root);
}

#define EVIL_READ_BACK "a\033[2Jb\uFFFD\uFFFDz\n\"\\\u202eq\uFFFD\uFFFD\uFFFD\uFFFD\x7f\xc2\x9bm"

static void test_hostile(void **state)
{
	json_t *root = read_one(fixture_hostile());

	(void)state;
	assert_text(root, "target.comm", EVIL_READ_BACK);
	assert_text(root, "stacks.0.frames.0.function", EVIL_READ_BACK);
	assert_text(root, "stacks.0.threads.0.name", EVIL_READ_BACK);
	assert_null_at(root, "stacks.0.threads.1.name");
	assert_null_at(root, "target.command.1");
	/* An address that signed numbers can't hold is no negative one. */
	assert_null_at(root, "stacks.0.frames.1.address");
	assert_true(json_is_false(at(root, "complete")));
	assert_number(root, "lost.events", 12345);
	assert_number(root, "lost.stacks", 1);
	assert_null_at(root, "totals.vm");
	assert_null_at(root, "window.started");
	assert_number(root, "target.exit_status", 3);
	json_decref(root);
}

static void test_several(void **state)
{
	const struct mw_report *reports[] = {fixture_server(), fixture_empty()};
	json_t *root = read_back(reports, 2);

	(void)state;
	assert_text(root, "schema", "memwatch.report/1");
	assert_int_equal(json_array_size(at(root, "processes")), 2);
	check_target(at(root, "processes.0"));
	assert_number(root, "processes.1.target.exit_signal", 11);
	assert_text(root, "processes.1.window.ended", "exit");
	assert_int_equal(json_array_size(at(root, "processes.1.stacks")), 0);
	assert_text(root, "processes.1.engine.name", "jump");
	assert_number(root, "processes.1.engine.walks", 300);
	assert_number(root, "processes.1.engine.slow_walks", 100);
	assert_number(root, "processes.1.engine.waited_ns", 5000000);
	assert_number(root, "processes.1.engine.own_memory", 3 << 20);
	assert_number(root, "processes.1.engine.children_cleaned", 2);
	assert_text(root, "processes.1.engine.left_behind", "1 call was still going on");
	json_decref(root);
}

static void assert_error(const json_t *root, const char *path, double count, double bytes)
{
	const json_t *error = json_object_get(at(root, path), "error");

	assert_non_null(error);
	assert_true(fabs(json_real_value(json_object_get(error, "count")) - count) <= count * 1e-9);
	assert_true(fabs(json_real_value(json_object_get(error, "bytes")) - bytes) <= bytes * 1e-9);
}

/* Estimates have errors, and only they; what can't be known is null. */
static void test_sampled(void **state)
{
	json_t *root = read_one(fixture_sampled());

	(void)state;
	assert_false(json_boolean_value(at(root, "complete")));
	assert_number(root, "sampling.interval", 2 << 20);
	assert_number(root, "sampling.intervals.0.bytes", 512 << 10);
	assert_number(root, "sampling.intervals.1.blocks", 60);
	assert_null_at(root, "sampling.intervals.2.from");
	assert_number(root, "sampling.exact", 7);
	assert_number(root, "sampling.unseen", 6282000);
	assert_true(json_real_value(at(root, "sampling.from")) == 0.5);
	assert_text(root, "sampling.why", "memwatch could not keep up; --max-wait 100 …");
	assert_error(root, "stacks.0.impacting", 2 * 512, 2 * 512 * 6144.0);
	assert_error(root, "stacks.0.size", 2 * 512, 2 * 512 * 6144.0);
	assert_error(root, "stacks.1.size", sqrt(40 + 10000), sqrt(40 + 10000) * 52429);
	assert_error(root, "stacks.1.settled_later", sqrt(12), sqrt(12) * 25600);
	assert_null_at(root, "stacks.0.aofi");
	assert_null_at(root, "totals.heap.aofi");
	assert_null_at(root, "totals.heap.aofi_unknown");
	assert_error(root, "totals.heap.peak", sqrt(44) * 512, sqrt(44) * 512 * 2048);
	assert_true(fabs(json_real_value(at(root, "suspects.0.error.bytes")) - 2 * 512 * 6144.0) < 1e-3);
	assert_number(root, "suspects.0.error.sampled", 4);
	assert_null(json_object_get(at(root, "totals.vm.size"), "error"));
	assert_null(json_object_get(at(root, "stacks.2.impacting"), "error"));
	assert_number(root, "totals.vm.aofi.count", 0);
	json_decref(root);
	root = read_one(fixture_server());
	assert_null_at(root, "sampling");
	assert_null(json_object_get(at(root, "totals.heap.size"), "error"));
	assert_null(json_object_get(at(root, "suspects.0"), "error"));
	json_decref(root);
}

static void test_golden(void **state)
{
	const struct mw_report *report = fixture_server();
	char *text = render("json", &report, 1, (struct mw_output_options){0});

	(void)state;
	assert_golden("server.json", text);
	free(text);
}

/* A full disk is left for the caller to see in the stream; it is no lack of memory. */
static void test_full(void **state)
{
	const struct mw_report *report = fixture_server();
	const struct mw_output_options options = {.top = 1};
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	if (!full)
		skip();
	setvbuf(full, NULL, _IONBF, 0);
	assert_null(find_output("json")->write(&report, 1, &options, full));
	assert_null(find_output("text")->write(&report, 1, &options, full));
	assert_true(ferror(full));
	fclose(full);
	assert_null(find_output("xml"));
}

/* What each format has written is known again, and nothing else. */
static void test_own(void **state)
{
	static const char *const foreign[] = {"",
					      "{}",
					      "{\"schema\":\"other\"}",
					      "a letter",
					      "<!doctype html>",
					      "<!doctype html><title>diary</title>",
					      "{\"x\":\"memwatch.report/1\"}"};
	const struct mw_report *report = fixture_hostile();

	(void)state;
	for (size_t i = 0; mw_output_get(i); i++) {
		const struct mw_output *output = mw_output_get(i);
		char *text;

		if (!output->what)
			continue;
		text = render(output->name, &report, 1, (struct mw_output_options){.top = 1});
		for (size_t j = 0; mw_output_get(j) && mw_output_get(j)->what; j++)
			assert_int_equal(mw_output_get(j)->is_own(text, strlen(text)), i == j);
		for (size_t j = 0; j < sizeof(foreign) / sizeof(foreign[0]); j++)
			assert_false(output->is_own(foreign[j], strlen(foreign[j])));
		free(text);
	}
}

UNIT_GROUP(json)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),    cmocka_unit_test(test_values),  cmocka_unit_test(test_sums),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_several), cmocka_unit_test(test_golden),
		cmocka_unit_test(test_sampled), cmocka_unit_test(test_full),    cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

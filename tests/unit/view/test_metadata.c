// SPDX-License-Identifier: MIT
/* test_metadata.c: what a recording says beside its events, told, written, read and asked for. */
#include "tape.h"
#include "unit.h"
#include "view/metadata.h"
#include "view/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

static void expect_data_error(struct mw_error *err)
{
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
	mw_error_destroy(err);
}

/* A process, and who receives what is reported of it. */
struct told {
	struct mw_watched_set set;
	struct mw_store_visitor visitor;
	struct mw_metadata *metadata;
};

static void setup(struct told *told)
{
	struct mw_watched *watched;

	*told = (struct told){.metadata = NULL};
	good(mw_watched_set_get(&told->set, 0, &watched));
	told->visitor = mw_watched_set_visitor(&told->set);
	told->metadata = &watched->metadata;
}

/* Facts own what they are told: it is gone as soon as it was. */
static void test_target(void **state)
{
	char comm[8] = "before", word[8] = "--go";
	const char *command[] = {"/bin/x", word};
	struct mw_stored_target target = {.pid = 5,
					  .comm = comm,
					  .exe = NULL,
					  .command = command,
					  .command_count = 2,
					  .started_realtime_ns = 42,
					  .track_vm = true,
					  .engine = "trap"};
	struct told told;

	(void)state;
	setup(&told);
	good(told.visitor.target(&told.set, 0, &target));
	strcpy(comm, "after");
	strcpy(word, "xx");
	assert_string_equal(told.metadata->target.comm, "before");
	assert_null(told.metadata->target.exe);
	assert_string_equal(told.metadata->target.command[1], "--go");
	assert_int_equal(told.metadata->window.started_realtime_ns, 42);
	/* The last word counts. */
	target.command_count = 0;
	target.exe = "/bin/x";
	good(told.visitor.target(&told.set, 0, &target));
	assert_string_equal(told.metadata->target.comm, "after");
	assert_string_equal(told.metadata->target.exe, "/bin/x");
	assert_int_equal(told.metadata->target.command_count, 0);
	mw_watched_set_deinit(&told.set);
}

static void test_hooks_and_modules(void **state)
{
	uint8_t build_id[3] = {1, 2, 3};
	struct mw_stored_hook hook = {3, "free", "/lib/libc.so.6", "too short", 0x10, MW_ROLE_FREE, MW_KIND_HEAP};
	struct mw_stored_module module = {.number = 2,
					  .path = "/bin/x",
					  .build_id = build_id,
					  .build_id_size = 3,
					  .start = 10,
					  .end = 20,
					  .base = 5,
					  .suspect = true};
	struct told told;

	(void)state;
	setup(&told);
	good(told.visitor.hook(&told.set, 0, &hook));
	assert_int_equal(told.metadata->hook_count, 4);
	assert_null(told.metadata->hooks[0].function);
	assert_string_equal(told.metadata->hooks[3].refused, "too short");
	assert_int_equal(told.metadata->hooks[3].role, MW_ROLE_FREE);
	hook.refused = NULL;
	good(told.visitor.hook(&told.set, 0, &hook));
	assert_int_equal(told.metadata->hook_count, 4);
	assert_null(told.metadata->hooks[3].refused);
	hook.role = MW_ROLE_COUNT;
	expect_data_error(told.visitor.hook(&told.set, 0, &hook));
	hook.role = MW_ROLE_FREE;
	hook.kind = MW_KIND_COUNT;
	expect_data_error(told.visitor.hook(&told.set, 0, &hook));
	hook.kind = MW_KIND_HEAP;
	hook.number = UINT32_MAX;
	expect_data_error(told.visitor.hook(&told.set, 0, &hook));
	/* What is loaded again and again has so many. */
	hook.number = 70000;
	good(told.visitor.hook(&told.set, 0, &hook));
	assert_int_equal(told.metadata->hook_count, 70001);

	good(told.visitor.module(&told.set, 0, &module));
	build_id[0] = 9;
	assert_int_equal(told.metadata->module_count, 3);
	assert_null(told.metadata->modules[0].path);
	assert_int_equal(told.metadata->modules[2].build_id[0], 1);
	assert_true(told.metadata->modules[2].suspect && !told.metadata->modules[2].has_file);
	assert_int_equal(told.metadata->modules[2].base, 5);
	/* Gone, and another file there. */
	module.build_id_size = 0;
	module.end = 30;
	good(told.visitor.module(&told.set, 0, &module));
	assert_null(told.metadata->modules[2].build_id);
	assert_int_equal(told.metadata->modules[2].end, 30);
	module.number = UINT32_MAX - 1;
	expect_data_error(told.visitor.module(&told.set, 0, &module));
	mw_watched_set_deinit(&told.set);
}

static void test_samples_and_marks(void **state)
{
	char name[8] = "one";
	struct mw_stored_sample sample = {.time_ns = 1500000000, .rss = 1, .pss = MW_SIZE_UNKNOWN, .heap_impacting = 7};
	struct mw_stored_mark mark = {.number = 1, .time_ns = 1700000000, .name = name};
	struct told told;

	(void)state;
	setup(&told);
	good(told.visitor.sample(&told.set, 0, &sample));
	/* The same moment, told better. */
	sample.rss = 2;
	good(told.visitor.sample(&told.set, 0, &sample));
	sample.time_ns = 1600000000;
	good(told.visitor.sample(&told.set, 0, &sample));
	assert_int_equal(told.metadata->sample_count, 2);
	assert_float_equal(told.metadata->samples[0].at, 1.5, 1e-9);
	assert_int_equal(told.metadata->samples[0].rss, 2);
	assert_int_equal(told.metadata->samples[0].heap_impacting, 7);
	assert_int_equal(told.metadata->samples[0].pss, MW_SIZE_UNKNOWN);
	assert_int_equal(mw_metadata_length(told.metadata), 1600000000);
	good(told.visitor.mark(&told.set, 0, &mark));
	strcpy(name, "two");
	assert_int_equal(told.metadata->mark_count, 1);
	assert_string_equal(told.metadata->marks[0].name, "one");
	assert_int_equal(mw_metadata_length(told.metadata), 1700000000);
	mw_watched_set_deinit(&told.set);
}

/* Two modules may have had one address, one after the other. */
static void test_symbols(void **state)
{
	const struct mw_stored_frame frames[] = {{.function = "inner", .line = 3, .inlined = true},
						 {.function = "outer", .file = "a.c", .line = 9, .offset = 16}};
	struct mw_stored_symbol symbol = {.module = 1, .addr = 0x1234, .frames = frames, .frame_count = 2};
	const struct mw_symbol_frame *found = NULL;
	struct told told;
	size_t count = 0;

	(void)state;
	setup(&told);
	assert_false(mw_metadata_resolve(told.metadata, 1, 0x1234, &found, &count));
	good(told.visitor.symbol(&told.set, 0, &symbol));
	symbol.module = 2;
	symbol.frames = frames + 1;
	symbol.frame_count = 1;
	good(told.visitor.symbol(&told.set, 0, &symbol));
	assert_true(mw_metadata_resolve(told.metadata, 1, 0x1234, &found, &count));
	assert_int_equal(count, 2);
	assert_string_equal(found[0].function, "inner");
	assert_null(found[0].file);
	assert_true(found[0].inlined && !found[1].inlined);
	assert_int_equal(found[1].offset, 16);
	assert_true(mw_metadata_resolve(told.metadata, 2, 0x1234, &found, &count));
	assert_int_equal(count, 1);
	assert_string_equal(found[0].file, "a.c");
	assert_false(mw_metadata_resolve(told.metadata, 3, 0x1234, &found, &count));
	assert_false(mw_metadata_resolve(told.metadata, 1, 0x1235, &found, &count));
	mw_watched_set_deinit(&told.set);
}

static void test_end(void **state)
{
	const struct mw_stored_figure figures[] = {{"stops", 11}, {"a figure of next year", 5}, {"lost_events", 2}};
	struct mw_stored_end end = {.length_ns = 99,
				    .ended = MW_END_EXIT,
				    .has_exit_status = true,
				    .exit_status = 256,
				    .left_behind = "something",
				    .figures = figures,
				    .figure_count = 3};
	struct told told;

	(void)state;
	setup(&told);
	assert_false(told.metadata->has_end);
	good(told.visitor.end(&told.set, 0, &end));
	assert_true(told.metadata->has_end && told.metadata->window.over);
	assert_int_equal(mw_metadata_length(told.metadata), 99);
	assert_int_equal(told.metadata->window.ended, MW_END_EXIT);
	assert_int_equal(told.metadata->window.exit_status, 256);
	assert_int_equal(told.metadata->stats.stops, 11);
	assert_int_equal(told.metadata->stats.lost_events, 2);
	assert_string_equal(told.metadata->stats.left_behind, "something");
	end.ended = 1000;
	expect_data_error(told.visitor.end(&told.set, 0, &end));
	mw_watched_set_deinit(&told.set);
}

/* All of an engine's figures, by name and back. */
static void test_figures(void **state)
{
	struct mw_engine_stats stats = {0};
	struct mw_stored_figure figures[MW_FIGURES_MAX + 1];
	size_t count = (sizeof(stats) - sizeof(stats.left_behind)) / sizeof(uint64_t);
	struct mw_stored_end end = {.figures = figures, .figure_count = count + 1};
	struct told told;

	(void)state;
	setup(&told);
	for (size_t i = 0; i < count; i++)
		memcpy((char *)&stats + i * sizeof(uint64_t), &(uint64_t){1000 + i}, sizeof(uint64_t));
	stats.left_behind = NULL;
	assert_int_equal(mw_figures_list(&stats, figures), count);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(figures[i].name, figures[j].name);
	figures[count] = (struct mw_stored_figure){"unknown", 1};
	good(told.visitor.end(&told.set, 0, &end));
	assert_memory_equal(&told.metadata->stats, &stats, sizeof(stats));
	mw_watched_set_deinit(&told.set);
}

/* Through a file. */
static void test_written_and_read(void **state)
{
	const struct tape_process about = {.pid = 4711, .base = 0x400000, .build = 3, .depth = 5, .no_vm = true};
	const struct mw_stored_mapping mappings[] = {
		{0x1000, 0x3000, MW_REGION_HEAP, 4096, "", false, true, 0, 0},
		{0x5000, 0x6000, MW_REGION_HEAP, MW_SIZE_UNKNOWN, "/x", true, true, 0, 0}};
	const struct mw_stored_sample sample = {.time_ns = 5, .rss = 3, .arena_used = 8};
	const char *path = tape_path("facts.mw");
	struct mw_replay *replay = NULL;
	const struct mw_symbol_frame *found = NULL;
	const struct mw_metadata *metadata;
	struct tape tape;
	size_t count = 0;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &about);
	tape_mark(&tape, 0, 1, "here", 77);
	tape_symbol(&tape, 0, 0x40, "work");
	MW_STORE_TELL(tape.writer, sample, 0, &sample);
	MW_STORE_TELL(tape.writer, mapping, 0, MW_STORED_START, &mappings[0]);
	MW_STORE_TELL(tape.writer, mapping, 0, MW_STORED_END, &mappings[0]);
	MW_STORE_TELL(tape.writer, mapping, 0, MW_STORED_END, &mappings[1]);
	tape_end(&tape, 0, 100);
	tape_close(&tape);
	good(mw_replay_open(path, NULL, NULL, &replay));
	metadata = &mw_replay_watched(replay, 0)->metadata;
	assert_int_equal(metadata->target.pid, 4711);
	assert_true(metadata->target.track_heap && !metadata->target.track_vm);
	assert_int_equal(metadata->target.depth, 5);
	assert_string_equal(metadata->target.command[1], "--serve");
	assert_int_equal(metadata->hook_count, TAPE_HOOKS);
	assert_int_equal(metadata->module_count, 2);
	assert_int_equal(metadata->modules[0].build_id[3], 3);
	assert_int_equal(metadata->samples[0].arena_used, 8);
	assert_string_equal(metadata->marks[0].name, "here");
	assert_int_equal(metadata->mappings[0].count, 1);
	assert_int_equal(metadata->mappings[1].count, 2);
	assert_string_equal(metadata->mappings[1].items[1].path, "/x");
	assert_int_equal(metadata->mappings[1].items[1].resident, MW_SIZE_UNKNOWN);
	assert_true(mw_metadata_resolve(metadata, 0, 0x400040, &found, &count));
	assert_string_equal(found[0].function, "work");
	assert_int_equal(mw_metadata_length(metadata), 100);
	mw_replay_close(replay);
}

UNIT_GROUP(metadata)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_hooks_and_modules),
		cmocka_unit_test(test_samples_and_marks),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_written_and_read),
	};

	return cmocka_run_group_tests(tests, NULL, tape_cleanup);
}

// SPDX-License-Identifier: MIT
/* test_emitter.c: what a window tells a recording, with an engine that only pretends. */
#include "session/session.h"
#include "unit.h"
#include "view/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

static struct mw_hook_info hooks[] = {
	{"malloc", "/lib/libc.so.6", 0x10, MW_ROLE_MALLOC, MW_KIND_HEAP, NULL},
	{"free", "/lib/libc.so.6", 0x20, MW_ROLE_FREE, MW_KIND_HEAP, "too short"},
	{"mmap", "/lib/libc.so.6", 0x30, MW_ROLE_MMAP, MW_KIND_VM, NULL},
};

static size_t hook_count;
static struct mw_window_info window;
static struct mw_engine_stats stats;

static size_t get_hooks(const struct mw_engine *engine, pid_t pid, const struct mw_hook_info **out)
{
	(void)engine;
	(void)pid;
	*out = hooks;
	return hook_count;
}

static const struct mw_engine_stats *get_stats(const struct mw_engine *engine, pid_t pid)
{
	(void)engine;
	(void)pid;
	return &stats;
}

static const struct mw_window_info *get_window(const struct mw_engine *engine, pid_t pid)
{
	(void)engine;
	(void)pid;
	return &window;
}

static struct mw_modules *get_modules(const struct mw_engine *engine, pid_t pid)
{
	(void)engine;
	(void)pid;
	return NULL;
}

static const char *get_used(const struct mw_engine *engine, pid_t pid, const char **reason)
{
	(void)engine;
	(void)pid;
	*reason = "no reason";
	return "pretence";
}

static const struct mw_engine_ops ops = {
	.name = "pretence",
	.hooks = get_hooks,
	.stats = get_stats,
	.window = get_window,
	.modules = get_modules,
	.used = get_used,
};

static struct mw_engine engine = {.ops = &ops};
static const struct mw_session_options options = {.track_heap = true, .depth = 9};
static struct mw_session session = {.engine = &engine, .options = &options};

/* A recording that is being made of this process. */
struct made {
	char path[64];
	struct mw_watched_set set;
	struct mw_watched *watched;
	struct mw_store_writer *writer;
	struct mw_recorder recorder;
	struct mw_emitter emitter;
};

static void begin(struct made *made, bool symbols)
{
	struct mw_store_visitor model, writer;
	int fd;

	*made = (struct made){.path = "/tmp/mw-emitter-XXXXXX"};
	fd = mkstemp(made->path);
	assert_true(fd >= 0);
	close(fd);
	hook_count = 2;
	hooks[0].refused = NULL;
	window = (struct mw_window_info){.started_realtime_ns = 12345};
	stats = (struct mw_engine_stats){.stops = 3, .left_behind = "a page"};
	good(mw_store_create(made->path, &made->writer));
	good(mw_store_publish(made->writer));
	good(mw_watched_set_get(&made->set, 0, &made->watched));
	model = mw_watched_set_visitor(&made->set);
	model.symbol = NULL;
	writer = mw_store_receiver(made->writer);
	if (!symbols)
		writer.symbol = NULL;
	mw_emitter_add(&made->emitter, &model);
	mw_emitter_add(&made->emitter, &writer);
	mw_recorder_init(&made->recorder, getpid(), made->watched, &made->emitter);
	made->recorder.session = &session;
}

static void add_sample(struct made *made, double at, uint64_t rss)
{
	const struct mw_stored_sample sample = {.time_ns = (uint64_t)(at * 1e9), .rss = rss, .pss = MW_SIZE_UNKNOWN};

	good(mw_emitter_sample(&made->emitter, &sample));
}

static struct mw_replay *finish(struct made *made)
{
	struct mw_replay *replay = NULL;

	good(mw_store_finish(made->writer));
	mw_store_destroy(made->writer);
	mw_emitter_deinit(&made->emitter);
	mw_recorder_deinit(&made->recorder);
	mw_watched_set_deinit(&made->set);
	good(mw_replay_open(made->path, NULL, NULL, &replay));
	unlink(made->path);
	return replay;
}

/* The model and the recording receive the same. */
static void check_metadata(const struct mw_metadata *metadata)
{
	assert_int_equal(metadata->target.pid, getpid());
	assert_string_equal(metadata->target.engine, "pretence");
	assert_string_equal(metadata->target.engine_reason, "no reason");
	assert_true(metadata->target.track_heap && !metadata->target.track_vm);
	assert_int_equal(metadata->target.depth, 9);
	assert_int_equal(metadata->target.started_realtime_ns, 12345);
	assert_int_equal(metadata->hook_count, 3);
	assert_string_equal(metadata->hooks[0].refused, "gone since");
	assert_string_equal(metadata->hooks[1].refused, "too short");
	assert_int_equal(metadata->sample_count, 3);
	assert_int_equal(metadata->samples[0].rss, 1001);
	assert_int_equal(metadata->samples[1].rss, 5);
	assert_float_equal(metadata->samples[2].at, 2.5, 1e-9);
	assert_int_equal(metadata->samples[2].pss, MW_SIZE_UNKNOWN);
	assert_true(metadata->has_end);
	assert_int_equal(metadata->window.length_ns, 2500000000);
	assert_int_equal(metadata->window.ended, MW_END_INTERRUPT);
	assert_int_equal(metadata->stats.stops, 3);
	assert_string_equal(metadata->stats.left_behind, "a page");
}

static void test_window(void **state)
{
	struct mw_replay *replay;
	struct made made;

	(void)state;
	begin(&made, true);
	add_sample(&made, 0, 1001);
	good(mw_emitter_target(&made.emitter, &made.recorder));
	add_sample(&made, 1, 1002);
	hook_count = 3;
	good(mw_emitter_news(&made.emitter, &made.recorder));
	good(mw_emitter_news(&made.emitter, &made.recorder));
	/* The last word on a moment counts. */
	add_sample(&made, 1, 5);
	add_sample(&made, 2.5, 1003);
	/* So does that on a hook. */
	hooks[0].refused = "gone since";
	window.length_ns = 2500000000;
	window.ended = MW_END_INTERRUPT;
	window.over = true;
	good(mw_emitter_end(&made.emitter, &made.recorder, &window));
	check_metadata(&made.watched->metadata);
	replay = finish(&made);
	check_metadata(&mw_replay_watched(replay, 0)->metadata);
	assert_false(mw_replay_state(replay)->cut);
	mw_replay_close(replay);
}

static void test_marks(void **state)
{
	struct mw_replay *replay;
	struct made made;

	(void)state;
	begin(&made, true);
	good(mw_emitter_target(&made.emitter, &made.recorder));
	mw_emitter_mark(&made.emitter, 100);
	mw_emitter_mark(&made.emitter, 200);
	/* The live report has them, too. */
	assert_int_equal(made.watched->metadata.mark_count, 2);
	assert_int_equal(made.watched->metadata.marks[1].number, 2);
	assert_int_equal(made.watched->metadata.marks[1].time_ns, 200);
	assert_string_equal(made.watched->metadata.marks[1].name, "mark 2");
	good(mw_emitter_end(&made.emitter, &made.recorder, &window));
	replay = finish(&made);
	assert_int_equal(mw_replay_watched(replay, 0)->metadata.mark_count, 2);
	assert_int_equal(mw_replay_watched(replay, 0)->metadata.marks[1].number, 2);
	assert_int_equal(mw_replay_watched(replay, 0)->metadata.marks[1].time_ns, 200);
	assert_string_equal(mw_replay_watched(replay, 0)->metadata.marks[0].name, "mark 1");
	mw_replay_close(replay);
}

static unsigned asked;

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	static char names[2][32];
	static struct mw_symbol_frame found[2];

	(void)context;
	asked++;
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "f%u_%llx_%zu", module, (unsigned long long)addr, i);
		found[i] = (struct mw_symbol_frame){.function = names[i], .inlined = i == 0, .line = 4};
	}
	*frames = found;
	*count = 2;
	return NULL;
}

/* Each address is answered as often as it is asked, and emitted once; also where there are many. */
static void test_symbols(void **state)
{
	const struct mw_view_symbols inner = {.resolve = resolve};
	struct mw_view_symbols symbols;
	const struct mw_symbol_frame *frames = NULL;
	const struct mw_metadata *metadata;
	struct mw_replay *replay;
	struct made made;
	size_t count = 0;

	(void)state;
	begin(&made, true);
	good(mw_emitter_target(&made.emitter, &made.recorder));
	symbols = mw_emitter_symbols(&made.emitter, &inner);
	asked = 0;
	for (int again = 0; again < 2; again++)
		for (uint32_t i = 0; i < 3000; i++) {
			good(symbols.resolve(symbols.context, i % 2, 0x1000 + i / 2, &frames, &count));
			assert_int_equal(count, 2);
			assert_int_equal(frames[0].function[1], '0' + (int)(i % 2));
		}
	assert_int_equal(asked, 6000);
	good(mw_emitter_end(&made.emitter, &made.recorder, &window));
	replay = finish(&made);
	metadata = &mw_replay_watched(replay, 0)->metadata;
	assert_int_equal(metadata->symbol_count, 3000);
	assert_true(mw_metadata_resolve(metadata, 1, 0x1000 + 700, &frames, &count));
	assert_int_equal(count, 2);
	assert_string_equal(frames[1].function, "f1_12bc_1");
	assert_true(frames[0].inlined && frames[0].line == 4);
	mw_replay_close(replay);
}

static void test_without_symbols(void **state)
{
	const struct mw_view_symbols inner = {.resolve = resolve};
	struct mw_view_symbols symbols;
	struct mw_emitter none = {.process = 0};
	struct mw_replay *replay;
	struct made made;

	(void)state;
	begin(&made, false);
	good(mw_emitter_target(&made.emitter, &made.recorder));
	symbols = mw_emitter_symbols(&made.emitter, &inner);
	assert_ptr_equal(symbols.resolve, resolve);
	/* Nobody receives anything. */
	symbols = mw_emitter_symbols(&none, &inner);
	assert_ptr_equal(symbols.resolve, resolve);
	good(mw_emitter_target(&none, &made.recorder));
	good(mw_emitter_end(&none, &made.recorder, &window));
	replay = finish(&made);
	assert_int_equal(mw_replay_watched(replay, 0)->metadata.symbol_count, 0);
	assert_true(mw_replay_state(replay)->processes == 1);
	mw_replay_close(replay);
}

UNIT_GROUP(emitter)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_without_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

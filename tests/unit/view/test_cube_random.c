// SPDX-License-Identifier: MIT
/*
 * test_cube_random.c: random recordings; what a timeline holds between any two edges of bins is what a replay over that
 * interval finds: by stack, thread and kind, in blocks and bytes.
 */
#include "tape.h"
#include "unit.h"
#include "view/cells.h"
#include "view/cube.h"
#include "view/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EVENTS  24000u
#define STACKS  9u /* the last third of vm */
#define THREADS 4u
#define PAGE    UINT64_C(4096)

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

/* Whatever comes, sense or not: the tracker takes it. */
static struct mw_event random_event(const uint32_t *stacks, bool vm)
{
	struct mw_event event = {.stack = MW_STACK_NONE};

	if (vm) {
		event.type = (uint8_t)(MW_EVENT_MAP + any(7));
		event.kind = any(4) ? MW_KIND_VM : MW_KIND_VM_INTERNAL;
		event.addr = PAGE * (1 + any(60));
		event.size = PAGE * any(9);
		if (event.kind == MW_KIND_VM && any(5))
			event.stack = stacks[STACKS - 1 - any(STACKS / 3)];
		return event;
	}
	event.type = (uint8_t)(any(3) ? (any(2) ? MW_EVENT_ALLOC : MW_EVENT_FREE) : MW_EVENT_ALLOC + any(5));
	event.addr = 16 * (uint64_t)any(300);
	event.size = any(10) ? any(5000) : 0;
	if (event.type != MW_EVENT_ALLOC && event.type != MW_EVENT_REALLOC_END && any(3) == 0)
		event.size = MW_SIZE_UNKNOWN;
	if (any(5))
		event.stack = stacks[any(STACKS - STACKS / 3)];
	return event;
}

/* Times go on, or stand still, or are late; sometimes they go on for long. */
static uint64_t next_time(uint64_t *time)
{
	if (any(3))
		*time += any(60000);
	if (any(4000) == 0)
		*time += 40000000;
	return any(10) ? *time : *time - any(*time < 400000 ? (uint32_t)*time + 1 : 400000);
}

static void write_tape(const char *path)
{
	const struct tape_process app = {.pid = 7, .base = 0x400000, .build = 1};
	uint32_t stacks[STACKS], threads[THREADS];
	struct tape tape;
	uint64_t time = 0;

	tape_open(&tape, path);
	tape_add(&tape, &app);
	good(mw_track_before(tape.processes[0].track, 20 * PAGE, 40 * PAGE));
	MW_STORE_TELL(tape.writer, before, 0, 20 * PAGE, 40 * PAGE);
	for (uint32_t i = 0; i < STACKS; i++)
		stacks[i] = tape_stack(&tape, 0, i < STACKS - STACKS / 3 ? MW_KIND_HEAP : MW_KIND_VM, 0x10 * (i + 1));
	for (uint32_t i = 0; i < THREADS; i++)
		good(tape.processes[0].sink.thread(tape.processes[0].sink.context, (pid_t)(100 + i), "worker", true,
						   &threads[i]));
	for (uint32_t i = 0; i < EVENTS; i++) {
		struct mw_event event = random_event(stacks, any(6) == 0);

		event.time_ns = next_time(&time);
		event.thread = threads[any(THREADS)];
		good(tape.processes[0].sink.event(tape.processes[0].sink.context, &event));
	}
	tape_end(&tape, 0, time + 1);
	tape_close(&tape);
}

struct sums {
	struct mw_amount fates[MW_FATE_COUNT];
	uint64_t unknown;
};

/* By stack and thread; of all kinds. */
struct figures {
	struct sums keys[STACKS + 8][THREADS + 2];
	struct mw_amount size[MW_KIND_COUNT], transient[MW_KIND_COUNT]; /* by lifetimes */
};

static struct sums *sums_of(struct figures *figures, uint32_t stack, uint32_t thread)
{
	assert_true(stack < STACKS + 8);
	return &figures->keys[stack][thread == UINT32_MAX ? 0 : thread + 1];
}

static void add(struct mw_amount *sum, uint64_t count, uint64_t bytes)
{
	sum->count += count;
	sum->bytes += bytes;
}

/* What the format says of an interval of bins, counted from 0. */
static enum mw_fate fate_in(const struct mw_timeline_row *row, uint32_t a, uint32_t b)
{
	bool older = row->born == 0 || row->born - 1u < a, dies = row->died != 0 && row->died - 1u < b;

	if (row->born != 0 && row->born - 1u >= b)
		return MW_FATE_COUNT;
	if (row->died != 0 && row->died - 1u < a)
		return MW_FATE_COUNT;
	if (older)
		return dies ? MW_FATE_AOFI : MW_FATE_AOFO;
	return dies ? MW_FATE_TRANSIENT : MW_FATE_IMPACTING;
}

static void zoom(const struct mw_timeline *timeline, uint32_t a, uint32_t b, struct figures *out)
{
	const struct mw_timeline_table *cells = &timeline->cells;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < cells->count; i++) {
		const struct mw_timeline_row *row = &cells->rows[i];
		enum mw_fate fate = fate_in(row, a, b);
		struct sums *sums = sums_of(out, row->key[0], row->key[1] ? row->key[1] - 1 : UINT32_MAX);

		/* What is from before the window shows only when it goes. */
		if (fate == MW_FATE_COUNT || (fate == MW_FATE_AOFO && !row->key[1]))
			continue;
		add(&sums->fates[fate], row->count, row->bytes);
		sums->unknown += row->unknown;
	}
}

static void zoom_lifetimes(const struct mw_timeline *timeline, uint32_t a, uint32_t b, struct figures *out)
{
	const struct mw_timeline_table *table = &timeline->lifetimes;

	for (size_t i = 0; i < table->count; i++) {
		const struct mw_timeline_row *row = &table->rows[i];
		enum mw_fate fate = fate_in(row, a, b);

		if (fate == MW_FATE_IMPACTING || fate == MW_FATE_TRANSIENT)
			add(&out->size[row->key[2]], row->count, row->bytes);
		if (fate == MW_FATE_TRANSIENT)
			add(&out->transient[row->key[2]], row->count, row->bytes);
	}
}

/* A run of the replay, with its fates. */
struct watch {
	struct mw_cells *cells;
	struct mw_cube *cube;
};

static void on_fate(void *context, const struct mw_track_fate *fate)
{
	struct watch *watch = context;

	(void)mw_cells_take(watch->cells, fate);
	if (watch->cube)
		(void)mw_cube_take(watch->cube, fate);
}

static bool on_survivor(void *context, const struct mw_track_fate *fate)
{
	on_fate(context, fate);
	return true;
}

static void on_begin(void *context, size_t process, struct mw_track *track)
{
	(void)process;
	mw_track_watch(track, on_fate, context);
}

static void run(struct mw_replay *replay, struct watch *watch, uint64_t from_ns, uint64_t to_ns)
{
	const struct mw_cells_options options = {.threads = true};
	const struct mw_replay_interval interval = {
		.from_ns = from_ns, .to_ns = to_ns, .begin = on_begin, .context = watch};

	good(mw_cells_create(&options, &watch->cells));
	good(mw_replay_run(replay, &interval));
	mw_track_each_survivor(mw_replay_watched(replay, 0)->track, on_survivor, watch);
	assert_null(mw_cells_end(watch->cells, NULL, NULL));
}

static void assert_amount(struct mw_amount got, struct mw_amount expected, const char *what)
{
	if (got.count != expected.count || got.bytes != expected.bytes)
		fail_msg("%s: %llu blocks of %llu bytes, not %llu of %llu", what, (unsigned long long)got.count,
			 (unsigned long long)got.bytes, (unsigned long long)expected.count,
			 (unsigned long long)expected.bytes);
}

/* The tracker's own figures, which no fate goes into. */
static void assert_totals(struct figures *figures, const struct mw_track *track, bool coarse)
{
	struct sums kinds[MW_KIND_COUNT] = {0};

	for (uint32_t i = 0; i < mw_track_stack_count(track); i++) {
		struct mw_track_stack stack;
		struct sums sum = {0};

		mw_track_stack(track, i, &stack);
		for (uint32_t thread = 0; thread < THREADS + 2; thread++) {
			const struct sums *part = &figures->keys[i][thread];

			for (int fate = 0; fate < MW_FATE_COUNT; fate++) {
				add(&sum.fates[fate], part->fates[fate].count, part->fates[fate].bytes);
				add(&kinds[stack.kind].fates[fate], part->fates[fate].count, part->fates[fate].bytes);
			}
			sum.unknown += part->unknown;
			assert_false(coarse && thread > 1 && part->fates[MW_FATE_IMPACTING].count);
		}
		assert_amount(sum.fates[MW_FATE_IMPACTING], stack.totals.impacting, "impacting");
		assert_amount(sum.fates[MW_FATE_TRANSIENT], stack.totals.transient, "transient");
		assert_amount(sum.fates[MW_FATE_AOFI], stack.totals.aofi, "aofi");
		assert_amount(sum.fates[MW_FATE_AOFO], stack.totals.aofo, "aofo");
		assert_int_equal(sum.unknown, stack.totals.aofi_unknown);
	}
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(track, (enum mw_kind)kind, &totals);
		assert_amount(kinds[kind].fates[MW_FATE_IMPACTING], totals.impacting, "impacting of a kind");
		assert_amount(kinds[kind].fates[MW_FATE_AOFI], totals.aofi, "aofi of a kind");
		assert_amount(figures->size[kind], totals.size, "size, by lifetimes");
		assert_amount(figures->transient[kind], totals.transient, "transient, by lifetimes");
	}
}

/* Stack by stack, and thread by thread. */
static void assert_cells(struct figures *figures, const struct mw_cells *cells)
{
	static struct figures expected;
	const struct mw_cell *items;
	size_t count;

	memset(&expected, 0, sizeof(expected));
	good(mw_cells_list(cells, &items, &count));
	for (size_t i = 0; i < count; i++) {
		const struct mw_cell *cell = &items[i];
		struct sums *sums = sums_of(&expected, cell->stack, cell->thread);

		add(&sums->fates[cell->fate], cell->amount.count, cell->amount.bytes);
		sums->unknown += cell->unknown;
	}
	for (uint32_t stack = 0; stack < STACKS + 8; stack++)
		for (uint32_t thread = 0; thread < THREADS + 2; thread++) {
			const struct sums *got = &figures->keys[stack][thread], *wanted = &expected.keys[stack][thread];

			for (int fate = 0; fate < MW_FATE_COUNT; fate++)
				assert_amount(got->fates[fate], wanted->fates[fate], mw_fate_name((enum mw_fate)fate));
			assert_int_equal(got->unknown, wanted->unknown);
		}
}

static void check_zoom(struct mw_replay *replay, const struct mw_timeline *timeline, uint32_t a, uint32_t b)
{
	static struct figures figures;
	/* Edges of lifetimes' bins are edges of cells' bins. */
	uint32_t longer = (uint32_t)(timeline->lifetimes.bin_ns / timeline->cells.bin_ns);
	uint32_t begin = a / longer * longer, end = b == timeline->cells.bins ? b : (b + longer - 1) / longer * longer;
	bool whole = end >= timeline->cells.bins;
	uint64_t from = timeline->from_ns + begin * timeline->cells.bin_ns;
	uint64_t to = timeline->from_ns + end * timeline->cells.bin_ns;
	struct watch watch = {0};

	run(replay, &watch, from, whole ? MW_REPLAY_END : to);
	zoom(timeline, begin, end, &figures);
	zoom_lifetimes(timeline, begin / longer, whole ? timeline->lifetimes.bins : end / longer, &figures);
	if (!timeline->coarse)
		assert_cells(&figures, watch.cells);
	assert_totals(&figures, mw_replay_watched(replay, 0)->track, timeline->coarse);
	mw_cells_destroy(watch.cells);
}

static struct mw_timeline *timeline_of(struct mw_replay *replay, const struct mw_cube_options *options)
{
	uint32_t stacks[STACKS + 8], threads[THREADS + 1];
	struct mw_cube_names names = {
		.to_ns = mw_metadata_length(&mw_replay_watched(replay, 0)->metadata),
		.stack_of = stacks,
		.stack_count = STACKS + 8,
		.thread_of = threads,
		.thread_count = THREADS + 1,
	};
	struct watch watch = {0};
	struct mw_timeline *timeline = NULL;

	for (uint32_t i = 0; i < STACKS + 8; i++)
		stacks[i] = i;
	for (uint32_t i = 0; i < THREADS + 1; i++)
		threads[i] = i;
	good(mw_cube_create(options, &watch.cube));
	run(replay, &watch, options->from_ns, MW_REPLAY_END);
	good(mw_cube_finish(watch.cube, &names, &timeline));
	mw_cube_destroy(watch.cube);
	mw_cells_destroy(watch.cells);
	return timeline;
}

static void test_random(void **state)
{
	static const size_t budgets[] = {0, 4000, 900, 150};

	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		const char *path = tape_path("random.mw");
		struct mw_cube_options options = {.rows = budgets[i % 4], .lifetimes = budgets[i % 4] / 2};
		struct mw_replay *replay = NULL;
		struct mw_timeline *timeline;

		seed = 7919 * (i + 1);
		write_tape(path);
		good(mw_replay_open(path, NULL, NULL, &replay));
		options.from_ns = i < 4 ? 0 : any(300000000);
		timeline = timeline_of(replay, &options);
		assert_true(!options.rows || timeline->cells.count <= options.rows);
		assert_true(timeline->cells.bins >= 4);
		check_zoom(replay, timeline, 0, timeline->cells.bins);
		for (int round = 0; round < 12; round++) {
			uint32_t a = any(timeline->cells.bins), b = any(timeline->cells.bins);

			check_zoom(replay, timeline, a < b ? a : b, (a < b ? b : a) + 1);
		}
		mw_timeline_destroy(timeline);
		mw_replay_close(replay);
	}
}

UNIT_GROUP(cube_random)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, tape_cleanup);
}

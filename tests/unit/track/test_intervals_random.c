// SPDX-License-Identifier: MIT
/*
 * test_intervals_random.c: thousands of short random lists of events with random intervals, against brute.h.
 *
 * A failure says its seed: `unit_track_intervals_random SEED` runs that one again.
 */
#include "brute.h"
#include "track/state.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES      30000U
#define MAX_FATES  (4U * BRUTE_PARTS)
#define MOST_STOPS 4U

/* A fate of one part, or of a whole block (at 0 with 0 bytes) where it is a `last`. */
struct part_fate {
	uint64_t addr, bytes, size, born_ns, died_ns;
	uint32_t stack, thread, kind;
	uint16_t is_last, is_older;
};

struct fates {
	struct part_fate list[MAX_FATES];
	uint32_t count;
};

static struct run {
	uint64_t seed, random;
	struct brute brute;
	struct mw_track *track;
	struct mw_event_sink sink;
	struct mw_event events[BRUTE_EVENTS];
	uint64_t latest[BRUTE_EVENTS + 1]; /* the latest time of so many events */
	uint32_t count;
	struct brute_figures figures;
	struct fates got, wanted;
} run;

#define same(what, a, b)                                                                                               \
	do {                                                                                                           \
		uint64_t same_a_ = (a), same_b_ = (b);                                                                 \
		if (same_a_ != same_b_)                                                                                \
			fail_msg("seed %llu, %s: %llu instead of %llu", (unsigned long long)run.seed, what,            \
				 (unsigned long long)same_a_, (unsigned long long)same_b_);                            \
	} while (0)

static uint32_t below(uint32_t bound)
{
	run.random ^= run.random << 13;
	run.random ^= run.random >> 7;
	run.random ^= run.random << 17;
	return (uint32_t)(((run.random >> 32) * bound) >> 32);
}

static void make_stacks(void)
{
	for (uint32_t i = 0; i < BRUTE_STACKS; i++) {
		struct mw_raw_frame frame = {i, 0};
		struct mw_raw_stack stack = {&frame, 1, MW_STACK_COMPLETE, 0, (enum mw_kind)(i / 4)};
		uint32_t id;

		if (i % 4 == 3)
			stack = (struct mw_raw_stack){NULL, 0, MW_STACK_BROKEN, UINT32_MAX, (enum mw_kind)(i / 4)};
		assert_null(run.sink.stack(run.sink.context, &stack, &id));
		assert_int_equal(id, i);
	}
	for (uint32_t i = 0; i < BRUTE_THREADS; i++) {
		uint32_t number;

		assert_null(run.sink.thread(run.sink.context, (pid_t)(i + 1), "t", true, &number));
		assert_int_equal(number, i);
	}
}

static uint64_t random_step(void)
{
	switch (below(12)) {
	case 0:
	case 1:
	case 2:
		return 0;
	case 3:
		return 1000000;
	case 4:
	case 5:
		return below(5000000);
	case 6:
		return below(300) == 0 ? UINT64_C(100000000) * below(400000) : below(400000000);
	default:
		return below(900000);
	}
}

static void random_event(struct mw_event *event, uint64_t now)
{
	static const uint8_t often[] = {MW_EVENT_ALLOC, MW_EVENT_ALLOC, MW_EVENT_FREE, MW_EVENT_MAP};

	event->type = below(3) ? (uint8_t)below(MW_EVENT_REMAP_FAIL + 1) : often[below(4)];
	event->thread = below(BRUTE_THREADS);
	/* Engines' clocks are not in step: what comes later may say that it was earlier. */
	event->time_ns = below(15) || now < 2000000 ? now : now - below(2000000);
	if (event->type < MW_EVENT_MAP) {
		event->kind = MW_KIND_HEAP;
		event->addr = below(20) ? BRUTE_HEAP_AT + 16 * (mw_addr)below(BRUTE_CELLS) : 0;
		event->size = below(6) ? below(1000) : below(2) ? 0 : MW_SIZE_UNKNOWN;
		if (event->size == MW_SIZE_UNKNOWN && event->type != MW_EVENT_FREE &&
		    event->type != MW_EVENT_REALLOC_BEGIN)
			event->size = UINT64_C(1) << below(40);
	} else {
		uint32_t first = below(BRUTE_SPACE);

		event->kind = below(3) ? MW_KIND_VM : MW_KIND_VM_INTERNAL;
		event->addr = BRUTE_VM_AT + first;
		event->size = below(BRUTE_SPACE - first + 1);
		if (event->type == MW_EVENT_UNMAP_FAIL && below(2))
			event->kind = MW_KIND_VM;
	}
	event->stack = below(4) ? (uint32_t)event->kind * 4 + below(3) : MW_STACK_NONE;
}

static void make_events(void)
{
	uint64_t now = below(3000000);

	run.count = 1 + below(below(2) ? 30 : BRUTE_EVENTS - 1);
	run.latest[0] = 0;
	for (uint32_t i = 0; i < run.count; i++) {
		now += random_step();
		random_event(&run.events[i], now);
		run.latest[i + 1] = run.latest[i] > run.events[i].time_ns ? run.latest[i] : run.events[i].time_ns;
	}
}

static void put_fate(struct fates *fates, struct part_fate fate, bool is_last)
{
	struct part_fate last = fate;

	assert_true(fates->count + 2 <= MAX_FATES);
	fates->list[fates->count++] = fate;
	if (!is_last)
		return;
	last.addr = last.bytes = 0;
	last.is_last = 1;
	fates->list[fates->count++] = last;
}

/* Mapped memory is looked at byte by byte. */
static void take_fate(void *context, const struct mw_track_fate *fate)
{
	struct part_fate part = {
		fate->addr,   fate->bytes,          fate->size, fate->born_ns, fate->died_ns, fate->stack,
		fate->thread, (uint32_t)fate->kind, 0,          fate->older};

	if (fate->kind == MW_KIND_HEAP) {
		put_fate(context, part, fate->last);
		return;
	}
	part.bytes = 1;
	for (uint64_t i = 0; i < fate->bytes; i++, part.addr++)
		put_fate(context, part, fate->last && i == 0);
}

static bool take_survivor(void *context, const struct mw_track_fate *fate)
{
	take_fate(context, fate);
	return true;
}

static struct part_fate fate_of(const struct brute_block *block, uint32_t begin, uint64_t died_ns)
{
	return (struct part_fate){
		.size = block->bytes,
		.born_ns = block->born_ns,
		.died_ns = died_ns,
		.stack = block->stack,
		.thread = block->thread,
		.kind = (uint32_t)block->kind,
		.is_older = block->born < begin,
	};
}

/* What goes with the events [begin, end), or what was there when they were over. */
static void want_blocks(uint32_t begin, uint32_t end, bool survivors)
{
	const struct brute *brute = &run.brute;

	for (uint32_t i = 0; i < brute->part_count; i++) {
		const struct brute_part *part = &brute->parts[i];
		const struct brute_block *block = &brute->blocks[part->block];
		struct part_fate fate = fate_of(block, begin, survivors ? MW_TIME_UNKNOWN : part->died_ns);

		fate.addr = part->addr;
		fate.bytes = part->bytes;
		if (survivors ? part->gone >= end && block->born < end : part->gone >= begin && part->gone < end)
			put_fate(&run.wanted, fate, false);
	}
	for (uint32_t i = 0; i < brute->block_count; i++) {
		const struct brute_block *block = &brute->blocks[i];
		struct part_fate fate = fate_of(block, begin, survivors ? MW_TIME_UNKNOWN : block->died_ns);

		fate.is_last = 1;
		if (survivors ? block->gone >= end && block->born < end : block->gone >= begin && block->gone < end)
			put_fate(&run.wanted, fate, false);
	}
}

/* All that one event takes of what was mapped before the window is one block. */
static uint64_t size_of_loss(uint32_t number)
{
	const struct brute *brute = &run.brute;
	uint64_t size = 0;

	if (brute->losses[number].kind == MW_KIND_HEAP)
		return brute->losses[number].bytes;
	for (uint32_t i = 0; i < brute->loss_count; i++)
		size += brute->losses[i].event == brute->losses[number].event ? brute->losses[i].bytes : 0;
	return size;
}

static void want_losses(uint32_t begin, uint32_t end)
{
	for (uint32_t i = 0; i < run.brute.loss_count; i++) {
		const struct brute_loss *loss = &run.brute.losses[i];
		struct part_fate fate = {loss->addr,
					 loss->bytes,
					 size_of_loss(i),
					 MW_TIME_UNKNOWN,
					 loss->died_ns,
					 loss->stack,
					 UINT32_MAX,
					 (uint32_t)loss->kind,
					 0,
					 true};

		if (loss->event >= begin && loss->event < end)
			put_fate(&run.wanted, fate, loss->is_first);
	}
}

static int compare_fate(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct part_fate));
}

static void compare_fates(const char *what)
{
	qsort(run.got.list, run.got.count, sizeof(run.got.list[0]), compare_fate);
	qsort(run.wanted.list, run.wanted.count, sizeof(run.wanted.list[0]), compare_fate);
	same(what, run.got.count, run.wanted.count);
	for (uint32_t i = 0; i < run.got.count; i++)
		same(what, memcmp(&run.got.list[i], &run.wanted.list[i], sizeof(run.got.list[i])) == 0, true);
	run.got.count = run.wanted.count = 0;
}

static void compare_amount(const char *what, struct mw_amount got, struct mw_amount wanted)
{
	same(what, got.count, wanted.count);
	same(what, got.bytes, wanted.bytes);
}

static void compare_totals(const struct mw_track_totals *got, uint64_t begin_ns)
{
	const struct mw_track_totals *wanted = &run.figures.totals;
	uint32_t peak = run.figures.peak_event;

	compare_amount("size", got->size, wanted->size);
	compare_amount("impacting", got->impacting, wanted->impacting);
	compare_amount("transient", got->transient, wanted->transient);
	compare_amount("aofi", got->aofi, wanted->aofi);
	same("aofi_unknown", got->aofi_unknown, wanted->aofi_unknown);
	compare_amount("aofo", got->aofo, wanted->aofo);
	compare_amount("peak", got->peak.amount, wanted->peak.amount);
	same("peak's time", got->peak.at_ns, peak == BRUTE_NEVER ? begin_ns : run.events[peak].time_ns);
}

static void compare_series(const struct mw_track_series *got, uint32_t begin, uint32_t end, uint64_t begin_ns,
			   uint64_t end_ns)
{
	uint64_t step = 1000000;
	uint32_t at = begin;

	while ((end_ns - begin_ns) / step > MW_SERIES_MAX)
		step *= 2;
	same("series' begin", got->begin_ns, begin_ns);
	same("series' step", got->step_ns, step);
	same("series' count", got->count, (end_ns - begin_ns) / step);
	for (uint32_t i = 0; i < got->count; i++) {
		float wanted;

		/* All events before the first that is not before this moment. */
		while (at < end && run.events[at].time_ns < begin_ns + (i + 1) * step)
			at++;
		wanted = (float)run.figures.impacting[at].bytes;
		same("series' value", got->bytes[i] == wanted, true);
	}
}

static void compare_all(uint32_t begin, uint32_t end, uint64_t begin_ns, uint64_t end_ns)
{
	for (int kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals totals;

		brute_figures(&run.brute, begin, end, (struct brute_who){kind, -1, -1}, &run.figures);
		mw_track_totals(run.track, (enum mw_kind)kind, &totals);
		compare_totals(&totals, begin_ns);
	}
	for (uint32_t i = 0; i < BRUTE_STACKS; i++) {
		struct mw_track_stack stack;
		struct mw_track_series series;

		brute_figures(&run.brute, begin, end, (struct brute_who){-1, (int)i, -1}, &run.figures);
		mw_track_stack(run.track, i, &stack);
		compare_totals(&stack.totals, begin_ns);
		same("lifetimes", stack.lifetime.count, run.figures.lifetime.count);
		same("shortest", stack.lifetime.min_ns, run.figures.lifetime.min_ns);
		same("longest", stack.lifetime.max_ns, run.figures.lifetime.max_ns);
		mw_track_stack_series(run.track, i, end_ns, &series);
		compare_series(&series, begin, end, begin_ns, end_ns);
	}
	for (uint32_t i = 0; i < BRUTE_THREADS; i++) {
		struct mw_track_thread thread;

		brute_figures(&run.brute, begin, end, (struct brute_who){-1, -1, (int)i}, &run.figures);
		mw_track_thread(run.track, i, &thread);
		compare_amount("thread's size", thread.size, run.figures.totals.size);
		compare_amount("thread's impacting", thread.impacting, run.figures.totals.impacting);
		compare_amount("thread's transient", thread.transient, run.figures.totals.transient);
	}
	same("missed", mw_track_missed(run.track), brute_missed(&run.brute, begin, end));
}

static void compare_blocks(uint32_t begin, uint32_t end, bool watched)
{
	if (watched) {
		want_blocks(begin, end, false);
		want_losses(begin, end);
	}
	compare_fates("fates");
	mw_track_each_survivor(run.track, take_survivor, &run.got);
	want_blocks(begin, end, true);
	compare_fates("survivors");
	rig_check_track(run.track);
}

/* Batches make no difference. */
static void feed(uint32_t begin, uint32_t end)
{
	while (begin < end) {
		uint32_t count = 1 + below(end - begin);

		if (below(2))
			assert_null(run.sink.events(run.sink.context, &run.events[begin], count));
		else
			for (uint32_t i = begin; i < begin + count; i++)
				assert_null(run.sink.event(run.sink.context, &run.events[i]));
		begin += count;
	}
}

static void run_interval(uint32_t begin, uint32_t end, uint64_t begin_ns)
{
	bool watched = below(4) != 0;
	uint64_t end_ns = run.latest[end] > begin_ns ? run.latest[end] : begin_ns;

	mw_track_watch(run.track, watched ? take_fate : NULL, &run.got);
	feed(begin, end);
	compare_all(begin, end, begin_ns, end_ns + random_step());
	compare_blocks(begin, end, watched);
}

/* Begins no later than its first event where times run as they should, and no earlier than what was before it. */
static uint64_t random_begin(uint32_t at)
{
	uint64_t begin_ns = run.latest[at];

	if (at < run.count && run.latest[at + 1] > begin_ns && below(2))
		begin_ns += below(2) ? run.latest[at + 1] - begin_ns : (run.latest[at + 1] - begin_ns) / 2;
	return begin_ns;
}

static void run_seed(uint64_t seed)
{
	uint32_t begin = 0, stops;
	uint64_t begin_ns = 0;

	run.seed = seed;
	run.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	run.got.count = run.wanted.count = 0;
	stops = below(MOST_STOPS);
	assert_null(mw_track_create(&run.track));
	run.track->steps_from = seed % 2 ? 0 : SIZE_MAX;
	run.track->counter_from = seed % 64 == 1 ? 0 : SIZE_MAX;
	run.sink = mw_track_sink(run.track);
	make_stacks();
	make_events();
	brute_init(&run.brute);
	if (below(2)) {
		uint32_t first = below(BRUTE_SPACE), end = first + below(BRUTE_SPACE - first + 1);

		assert_null(mw_track_before(run.track, BRUTE_VM_AT + first, BRUTE_VM_AT + end));
		brute_before(&run.brute, first, end);
	}
	for (uint32_t i = 0; i < run.count; i++)
		brute_event(&run.brute, &run.events[i], i);
	for (uint32_t i = 0; i < stops; i++) {
		uint32_t end = begin + below(run.count - begin + 1);

		run_interval(begin, end, begin_ns);
		begin = end;
		begin_ns = random_begin(begin);
		assert_null(mw_track_interval(run.track, begin_ns));
	}
	run_interval(begin, run.count, begin_ns);
	mw_track_destroy(run.track);
}

static uint64_t first_seed, case_count = CASES;

static void test_random_intervals(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < case_count; i++)
		run_seed(first_seed + i);
}

UNIT_GROUP(intervals_random)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_intervals)};

	if (argc > 1) {
		first_seed = strtoull(argv[1], NULL, 10);
		case_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

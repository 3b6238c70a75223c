// SPDX-License-Identifier: MIT
/* test_replay_random.c: random recordings over random intervals, against sums over the raw events. */
#include "tape.h"
#include "unit.h"
#include "view/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EVENTS  30000u /* more than fit into one chunk */
#define PLACES  400u
#define STACKS  7u
#define THREADS 3u
#define HEAP_AT UINT64_C(0x10000)
#define VM_AT   UINT64_C(0x700000000000)
#define VM_STEP UINT64_C(0x100000)
#define NEVER   UINT32_MAX

/* A block as the raw events tell of it: which brought it, and which took it. */
struct block {
	uint64_t bytes; /* MW_SIZE_UNKNOWN: of before the window */
	uint32_t stack, born, died;
	bool before; /* the window */
	enum mw_kind kind;
};

struct story {
	uint64_t seed;
	uint64_t times[EVENTS];
	uint32_t count;
	struct block blocks[EVENTS];
	uint32_t block_count;
	uint32_t heap[PLACES], vm[PLACES]; /* block there + 1 */
	uint32_t stacks[STACKS];           /* the last are of vm */
	uint32_t threads[THREADS];
	struct {
		bool open, fails;
		uint32_t place; /* NEVER: of nothing */
	} calls[THREADS];       /* realloc that has begun */
	struct tape tape;
};

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

static uint32_t any(struct story *story, uint32_t below)
{
	story->seed = story->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((story->seed >> 33) % below);
}

static void tell(struct story *story, uint32_t thread, struct mw_event event)
{
	const struct mw_event_sink *sink = &story->tape.processes[0].sink;

	event.time_ns = story->times[story->count++];
	event.thread = story->threads[thread];
	good(sink->event(sink->context, &event));
}

static void bear(struct story *story, uint32_t *place, uint64_t bytes, uint32_t stack, enum mw_kind kind)
{
	story->blocks[story->block_count++] =
		(struct block){.bytes = bytes, .stack = stack, .born = story->count, .died = NEVER, .kind = kind};
	*place = story->block_count;
}

static void end(struct story *story, uint32_t *place)
{
	story->blocks[*place - 1].died = story->count;
	*place = 0;
}

static void end_unknown(struct story *story, uint64_t bytes, uint32_t stack)
{
	story->blocks[story->block_count++] = (struct block){
		.bytes = bytes, .stack = stack, .died = story->count, .before = true, .kind = MW_KIND_HEAP};
}

static void heap_event(struct story *story, uint32_t thread, uint32_t at)
{
	uint32_t stack = story->stacks[any(story, STACKS - 2)];
	uint32_t *place = &story->heap[at];
	mw_addr addr = HEAP_AT + 16 * at;
	uint64_t bytes = any(story, 1000);

	if (!*place && any(story, 10)) {
		bear(story, place, bytes, stack, MW_KIND_HEAP);
		tell(story, thread,
		     (struct mw_event){.addr = addr, .size = bytes, .stack = stack, .type = MW_EVENT_ALLOC});
	} else if (!*place) {
		bytes = bytes < 500 ? bytes : MW_SIZE_UNKNOWN;
		end_unknown(story, bytes, stack);
		tell(story, thread,
		     (struct mw_event){.addr = addr, .size = bytes, .stack = stack, .type = MW_EVENT_FREE});
	} else if (any(story, 3)) {
		end(story, place);
		tell(story, thread,
		     (struct mw_event){
			     .addr = addr, .size = MW_SIZE_UNKNOWN, .stack = MW_STACK_NONE, .type = MW_EVENT_FREE});
	} else {
		story->calls[thread].open = true;
		story->calls[thread].fails = any(story, 4) == 0;
		story->calls[thread].place = at;
		tell(story, thread,
		     (struct mw_event){
			     .addr = addr, .size = MW_SIZE_UNKNOWN, .stack = stack, .type = MW_EVENT_REALLOC_BEGIN});
	}
}

/* The realloc of a thread ends: in place, elsewhere, or in vain. */
static void end_call(struct story *story, uint32_t thread)
{
	uint32_t from = story->calls[thread].place, to = any(story, PLACES);
	uint32_t stack = story->stacks[any(story, STACKS - 2)];
	uint64_t bytes = any(story, 5000);

	story->calls[thread].open = false;
	if (story->calls[thread].fails) {
		tell(story, thread,
		     (struct mw_event){
			     .addr = HEAP_AT + 16 * from, .stack = MW_STACK_NONE, .type = MW_EVENT_REALLOC_FAIL});
		return;
	}
	if (story->heap[to])
		to = from;
	end(story, &story->heap[from]);
	bear(story, &story->heap[to], bytes, stack, MW_KIND_HEAP);
	tell(story, thread,
	     (struct mw_event){.addr = HEAP_AT + 16 * to, .size = bytes, .stack = stack, .type = MW_EVENT_REALLOC_END});
}

static void vm_event(struct story *story, uint32_t thread, uint32_t at)
{
	uint32_t stack = story->stacks[STACKS - 1 - any(story, 2)];
	uint32_t *place = &story->vm[at];
	struct mw_event event = {.addr = VM_AT + VM_STEP * at,
				 .size = 4096 * (uint64_t)(1 + any(story, 9)),
				 .stack = stack,
				 .type = MW_EVENT_MAP,
				 .kind = MW_KIND_VM};

	if (!*place) {
		bear(story, place, event.size, stack, MW_KIND_VM);
		tell(story, thread, event);
		return;
	}
	if (story->count + 2 > EVENTS)
		return;
	event.size = story->blocks[*place - 1].bytes;
	event.type = MW_EVENT_UNMAP_BEGIN;
	tell(story, thread, event);
	end(story, place);
	event.type = MW_EVENT_UNMAP_END;
	event.stack = MW_STACK_NONE;
	tell(story, thread, event);
}

/* Times go on, or stand still; sometimes for long. */
static void make_times(struct story *story)
{
	uint64_t time = 0;

	for (uint32_t i = 0; i < EVENTS; i++) {
		time += any(story, 3) ? any(story, 5000) : 0;
		if (any(story, 5000) == 0)
			time += 50000000;
		story->times[i] = time;
	}
}

static bool is_held(const struct story *story, uint32_t at)
{
	for (uint32_t thread = 0; thread < THREADS; thread++)
		if (story->calls[thread].open && story->calls[thread].place == at)
			return true;
	return false;
}

static void write_story(struct story *story, const char *path)
{
	const struct tape_process app = {.pid = 7, .base = 0x400000, .build = 1};

	make_times(story);
	tape_open(&story->tape, path);
	tape_add(&story->tape, &app);
	for (uint32_t i = 0; i < STACKS; i++)
		story->stacks[i] =
			tape_stack(&story->tape, 0, i < STACKS - 2 ? MW_KIND_HEAP : MW_KIND_VM, 0x10 * (i + 1));
	for (uint32_t i = 0; i < THREADS; i++) {
		const struct mw_event_sink *sink = &story->tape.processes[0].sink;

		good(sink->thread(sink->context, (pid_t)(100 + i), "worker", true, &story->threads[i]));
	}
	while (story->count < EVENTS) {
		uint32_t thread = any(story, THREADS), at = any(story, PLACES);

		if (story->calls[thread].open)
			end_call(story, thread);
		else if (any(story, 8) == 0)
			vm_event(story, thread, at);
		else if (!is_held(story, at)) /* by another thread's call */
			heap_event(story, thread, at);
	}
	tape_end(&story->tape, 0, story->times[EVENTS - 1] + 1);
	tape_close(&story->tape);
}

struct sums {
	struct mw_amount size, impacting, transient, aofi, aofo;
	uint64_t aofi_unknown;
};

static void add(struct mw_amount *sum, uint64_t bytes)
{
	sum->count++;
	sum->bytes += bytes;
}

/* Events [first, last) are in the interval. */
static void add_block(struct sums *sums, const struct block *block, uint32_t first, uint32_t last)
{
	bool before = block->before || block->born < first, ends = block->died >= first && block->died < last;

	if ((!block->before && block->born >= last) || block->died < first)
		return;
	if (before && ends && block->bytes == MW_SIZE_UNKNOWN) {
		sums->aofi_unknown++;
		add(&sums->aofi, 0);
	} else if (before && ends) {
		add(&sums->aofi, block->bytes);
	} else if (before && !block->before) {
		add(&sums->aofo, block->bytes);
	} else if (!before) {
		add(&sums->size, block->bytes);
		add(ends ? &sums->transient : &sums->impacting, block->bytes);
	}
}

static void assert_amount(struct mw_amount got, struct mw_amount expected, const char *what)
{
	if (got.count != expected.count || got.bytes != expected.bytes)
		fail_msg("%s: %llu blocks of %llu bytes, not %llu of %llu", what, (unsigned long long)got.count,
			 (unsigned long long)got.bytes, (unsigned long long)expected.count,
			 (unsigned long long)expected.bytes);
}

static void assert_totals(const struct mw_track_totals *got, const struct sums *expected)
{
	assert_amount(got->size, expected->size, "size");
	assert_amount(got->impacting, expected->impacting, "impacting");
	assert_amount(got->transient, expected->transient, "transient");
	assert_amount(got->aofi, expected->aofi, "aofi");
	assert_amount(got->aofo, expected->aofo, "aofo");
	assert_int_equal(got->aofi_unknown, expected->aofi_unknown);
}

static uint32_t first_at(const struct story *story, uint64_t time)
{
	uint32_t i = 0;

	while (i < EVENTS && story->times[i] < time)
		i++;
	return i;
}

static void check_interval(const struct story *story, struct mw_replay *replay, uint64_t from_ns, uint64_t to_ns)
{
	const struct mw_replay_interval interval = {.from_ns = from_ns, .to_ns = to_ns};
	uint32_t first = first_at(story, from_ns), last = first_at(story, to_ns);
	struct sums kinds[MW_KIND_COUNT] = {0}, stacks[STACKS] = {0};
	const struct mw_track *track;

	for (uint32_t i = 0; i < story->block_count; i++) {
		const struct block *block = &story->blocks[i];

		add_block(&kinds[block->kind], block, first, last);
		for (uint32_t j = 0; j < STACKS; j++)
			if (story->stacks[j] == block->stack)
				add_block(&stacks[j], block, first, last);
	}
	good(mw_replay_run(replay, &interval));
	track = mw_replay_watched(replay, 0)->track;
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(track, (enum mw_kind)kind, &totals);
		assert_totals(&totals, &kinds[kind]);
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		struct mw_track_stack stack;

		mw_track_stack(track, story->stacks[i], &stack);
		assert_totals(&stack.totals, &stacks[i]);
	}
}

/* The most that was outstanding, and when it came to be. */
static void check_peak(const struct story *story, struct mw_replay *replay, uint64_t from_ns)
{
	const struct mw_replay_interval interval = {.from_ns = from_ns, .to_ns = MW_REPLAY_END};
	static int64_t change[EVENTS];
	uint32_t first = first_at(story, from_ns);
	uint64_t at_ns = 0, expected = 0;
	int64_t bytes = 0, most = 0;

	memset(change, 0, sizeof(change));
	for (uint32_t i = 0; i < story->block_count; i++) {
		const struct block *block = &story->blocks[i];

		if (block->before || block->born < first)
			continue;
		change[block->born] += (int64_t)block->bytes;
		if (block->died != NEVER)
			change[block->died] -= (int64_t)block->bytes;
	}
	for (uint32_t i = first; i < EVENTS; i++) {
		bytes += change[i];
		if (bytes > most) {
			most = bytes;
			expected = story->times[i];
		}
	}
	good(mw_replay_peak(replay, &interval, 0, &at_ns));
	assert_int_equal(at_ns, expected);
}

static void test_random(void **state)
{
	static struct story story;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		const char *path = tape_path("random.mw");
		struct mw_replay *replay = NULL;

		memset(&story, 0, sizeof(story));
		story.seed = seed * 977;
		write_story(&story, path);
		good(mw_replay_open(path, NULL, NULL, &replay));
		check_interval(&story, replay, 0, MW_REPLAY_END);
		for (int i = 0; i < 40; i++) {
			/* At an event's time, or one beside it. */
			uint64_t from = story.times[any(&story, EVENTS)] + any(&story, 2),
				 to = story.times[any(&story, EVENTS)] + any(&story, 2);

			check_interval(&story, replay, from < to ? from : to, from < to ? to : from);
		}
		check_peak(&story, replay, 0);
		check_peak(&story, replay, story.times[EVENTS / 3]);
		mw_replay_close(replay);
	}
}

UNIT_GROUP(replay_random)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, tape_cleanup);
}

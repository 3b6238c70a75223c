// SPDX-License-Identifier: MIT
/* test_random.c: more than a million random events of several threads, against the plain model. */
#include "base/thread.h"
#include "model.h"
#include "track/state.h"
#include "unit.h"

#include <stdlib.h>

#define EVENTS        500000
#define COMPARE_EVERY 20000
#define HELD          600

struct run {
	struct model *model;
	struct mw_track *track;
	struct mw_event_sink sink;
	uint64_t random, now;
	uint32_t
		many; /* so many events at most go to the tracker at a time: those that have not yet are `held`; 0: one by one */
	struct mw_event held[HELD];
	size_t held_count;
};

static uint32_t below(struct run *run, uint32_t bound)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 7;
	run->random ^= run->random << 17;
	return (uint32_t)(((run->random >> 32) * bound) >> 32);
}

/* Stack i is of kind i % 3; its frames share the outer half with its neighbours. */
static void make_stacks(struct run *run)
{
	for (uint32_t i = 0; i < MODEL_STACKS; i++) {
		struct mw_raw_frame frames[6];
		struct mw_raw_stack stack = {frames, 6, MW_STACK_COMPLETE, i % 5, (enum mw_kind)(i % 3)};
		uint32_t id;

		for (uint32_t j = 0; j < 6; j++)
			frames[j] = (struct mw_raw_frame){j < 3 ? i * 64 + j : i / 8 * 64 + j, j};
		assert_null(run->sink.stack(run->sink.context, &stack, &id));
		assert_int_equal(id, i);
		run->model->stacks[i].kind = stack.kind;
	}
}

static void make_threads(struct run *run)
{
	for (uint32_t i = 0; i < MODEL_THREADS; i++) {
		uint32_t number;

		assert_null(run->sink.thread(run->sink.context, (pid_t)(i + 1), "t", true, &number));
		assert_int_equal(number, i);
	}
}

static uint32_t random_stack(struct run *run, enum mw_kind kind)
{
	return below(run, MODEL_STACKS / 3) * 3 + (uint32_t)kind;
}

static uint64_t random_size(struct run *run)
{
	switch (below(run, 10)) {
	case 0:
		return 0;
	case 1:
		return below(run, 1000000);
	default:
		return below(run, 500);
	}
}

static void random_range(struct run *run, struct mw_event *event)
{
	uint32_t first = below(run, MODEL_PAGES), count = 1 + below(run, below(run, 10) ? 12 : 120);

	if (count > MODEL_PAGES - first)
		count = MODEL_PAGES - first;
	event->addr = MODEL_VM_AT + first * MODEL_PAGE;
	event->size = count * MODEL_PAGE;
}

static void random_heap(struct run *run, struct mw_event *event)
{
	static const enum mw_event_type types[] = {MW_EVENT_ALLOC, MW_EVENT_FREE, MW_EVENT_REALLOC_BEGIN};

	event->kind = MW_KIND_HEAP;
	event->type = types[below(run, 3)];
	event->addr = model_cell_addr(below(run, MODEL_CELLS));
	event->size = random_size(run);
	if (event->type != MW_EVENT_ALLOC && below(run, 2))
		event->size = MW_SIZE_UNKNOWN;
	if (event->type == MW_EVENT_REALLOC_BEGIN && below(run, 10) == 0)
		event->addr = 0;
}

static void random_vm(struct run *run, struct mw_event *event)
{
	static const enum mw_event_type types[] = {MW_EVENT_MAP, MW_EVENT_UNMAP_BEGIN, MW_EVENT_REMAP_BEGIN};

	event->kind = below(run, 3) ? MW_KIND_VM : MW_KIND_VM_INTERNAL;
	event->type = types[below(run, 3)];
	random_range(run, event);
}

/* END or FAIL of the newest call of the thread. */
static void random_return(struct run *run, struct mw_event *event)
{
	const struct model_call *call = &run->model->calls[event->thread][run->model->depth[event->thread] - 1];
	bool fails = below(run, 3) == 0;

	event->kind = run->model->stacks[call->stack].kind;
	event->type = (enum mw_event_type)(call->begin + (fails ? 2 : 1));
	if (event->kind == MW_KIND_HEAP) {
		event->addr = model_cell_addr(below(run, 4) || call->cell == MODEL_CELLS ? below(run, MODEL_CELLS)
											 : call->cell);
		event->size = random_size(run);
	} else if (call->begin == MW_EVENT_REMAP_BEGIN && !fails) {
		random_range(run, event);
	} else {
		event->addr = MODEL_VM_AT + call->first * MODEL_PAGE;
		event->size = call->count * MODEL_PAGE;
	}
}

static void random_event(struct run *run, struct mw_event *event)
{
	uint32_t depth;

	*event = (struct mw_event){.time_ns = run->now, .thread = below(run, MODEL_THREADS)};
	depth = run->model->depth[event->thread];
	if (depth == MODEL_NESTING || (depth > 0 && below(run, 2)))
		random_return(run, event);
	else if (below(run, 3))
		random_heap(run, event);
	else
		random_vm(run, event);
	event->stack = random_stack(run, event->kind);
}

static void hand_over(struct run *run)
{
	assert_null(run->sink.events(run->sink.context, run->held, run->held_count));
	run->held_count = 0;
}

static void send(struct run *run, const struct mw_event *event)
{
	if (!run->many) {
		assert_null(run->sink.event(run->sink.context, event));
		return;
	}
	run->held[run->held_count++] = *event;
	if (run->held_count == run->many || below(run, run->many) == 0)
		hand_over(run);
}

static void step(struct run *run)
{
	struct mw_event event;

	run->now += 1 + below(run, below(run, 100) ? 50 : 100000);
	if (below(run, 300) == 0) {
		uint32_t first = below(run, MODEL_PAGES - 40), count = below(run, 40);
		mw_addr start = MODEL_VM_AT + first * MODEL_PAGE;

		hand_over(run);
		assert_null(mw_track_before(run->track, start, start + count * MODEL_PAGE));
		model_before(run->model, first, count);
	}
	random_event(run, &event);
	send(run, &event);
	if (event.kind == MW_KIND_HEAP)
		model_heap_event(run->model, &event);
	else
		model_vm_event(run->model, &event);
	if (event.kind == MW_KIND_HEAP && event.addr != 0 && run->held_count == 0)
		assert_int_equal(run->sink.knows(run->sink.context, event.addr),
				 run->model->cells[model_cell(event.addr)].live);
}

static void run_seed(uint64_t seed, uint32_t many, bool in_steps, bool counter)
{
	struct run run = {.random = seed * UINT64_C(0x9e3779b97f4a7c15), .many = many};

	run.model = calloc(1, sizeof(*run.model));
	assert_non_null(run.model);
	assert_null(mw_track_create(&run.track));
	run.track->steps_from = in_steps ? 0 : SIZE_MAX;
	run.track->counter_from = counter ? 0 : SIZE_MAX;
	run.sink = mw_track_sink(run.track);
	make_stacks(&run);
	make_threads(&run);
	for (int i = 1; i <= EVENTS; i++) {
		step(&run);
		if (i % COMPARE_EVERY == 0) {
			hand_over(&run);
			model_compare(run.model, run.track);
		}
	}
	assert_int_equal(mw_track_stack_count(run.track), MODEL_STACKS);
	assert_true(run.model->missed > 0);
	assert_int_equal(run.track->counter != NULL, counter && mw_thread_cpus() > 1);
	mw_track_destroy(run.track);
	model_deinit(run.model);
	free(run.model);
}

static void test_random_events(void **state)
{
	(void)state;
	run_seed(1, 0, false, false);
	run_seed(2, 64, false, false);
}

static void test_random_events_in_steps(void **state)
{
	(void)state;
	run_seed(3, 64, true, false);
	run_seed(4, HELD, true, true);
}

UNIT_GROUP(random)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_events),
		cmocka_unit_test(test_random_events_in_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

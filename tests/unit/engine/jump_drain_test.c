// SPDX-License-Identifier: MIT
/* jump_drain_test.c: records of several rings come in order of time, none twice, none lost, none too early. */
#include "jump_rig.h"
#include "unit.h"

#include <stdlib.h>

#define MANY 20000u

static void alloc_at(struct rig *rig, uint32_t slot, uint64_t time)
{
	rig_put(rig, slot, time, MW_RING_ALLOC, 0, MW_RING_STACK_NONE, 0x1000 + time, slot);
}

/* Any number of rings, whatever their pace; rounds come when some are full and some empty. */
static void test_order(void **state)
{
	for (uint32_t rings = 1; rings <= 8; rings++) {
		struct rig *rig;
		uint64_t time = 0;
		uint32_t next = 0;

		assert_int_equal(rig_setup(state), 0);
		rig = *state;
		srand(rings);
		for (uint32_t i = 0; i < rings; i++)
			rig_thread(rig, i);
		rig_drain(rig);
		for (uint32_t i = 0; i < MANY; i++) {
			if (rand() % 4 == 0)
				next = (uint32_t)rand() % rings;
			if (rig_slot(rig, next)->reserved - rig_slot(rig, next)->drained == RIG_UNITS)
				rig_drain(rig);
			alloc_at(rig, next, ++time);
		}
		rig_drain(rig);
		assert_int_equal(rig->event_count, MANY);
		for (uint32_t i = 0; i < MANY; i++)
			assert_int_equal(rig->events[i].time_ns, i + 1);
		for (uint32_t i = 0; i < MANY; i++)
			assert_int_equal(rig->threads[rig->events[i].thread].pid, RIG_PID + (pid_t)rig->events[i].size);
		assert_int_equal(jump_drain_stats(rig->drain)->events, MANY);
		assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
		assert_int_equal(rig_teardown(state), 0);
	}
}

/* A record that is about to be written may be as early as the one before it in its ring. */
static void test_held_back(void **state)
{
	struct rig *rig = *state;
	uint64_t unit;

	rig_thread(rig, 0);
	rig_thread(rig, 1);
	alloc_at(rig, 0, 10);
	unit = rig_reserve(rig, 0, 1);
	alloc_at(rig, 1, 5);
	alloc_at(rig, 1, 10);
	alloc_at(rig, 1, 11);
	alloc_at(rig, 1, 30);
	assert_int_equal(rig_drain(rig), 3);
	rig_write(rig, 0, unit, 20, MW_RING_ALLOC, 0, MW_RING_STACK_NONE, 0x9000, 0);
	assert_int_equal(rig_drain(rig), 3);
	assert_int_equal(rig->events[3].time_ns, 11);
	assert_int_equal(rig->events[4].time_ns, 20);
	assert_int_equal(rig->events[5].time_ns, 30);
}

/* A handler's record lies behind the one that it interrupted, and counts as no earlier. */
static void test_interrupted(void **state)
{
	struct rig *rig = *state;
	uint64_t outer;

	rig_thread(rig, 0);
	outer = rig_reserve(rig, 0, 1);
	alloc_at(rig, 0, 10);
	assert_int_equal(rig_drain(rig), 0);
	rig_write(rig, 0, outer, 15, MW_RING_ALLOC, 0, MW_RING_STACK_NONE, 0x9000, 0);
	assert_int_equal(rig_drain(rig), 2);
	assert_int_equal(rig->events[0].addr, 0x9000);
	assert_int_equal(rig->events[0].time_ns, 15);
	assert_int_equal(rig->events[1].time_ns, 15);
	/* Nor does what it holds back. */
	rig_thread(rig, 1);
	rig_reserve(rig, 0, 1);
	alloc_at(rig, 1, 14);
	assert_int_equal(rig_drain(rig), 1);
}

/* What has just happened waits: something earlier may be on its way. The last round takes it. */
static void test_margin(void **state)
{
	struct rig *rig = *state;
	uint64_t later = jump_clock_tick() - rig->clock.start_tick + 5000000000;

	rig_thread(rig, 0);
	rig_thread(rig, 1);
	alloc_at(rig, 0, 10);
	alloc_at(rig, 1, later);
	assert_int_equal(rig_drain(rig), 1);
	assert_int_equal(rig_slot(rig, 0)->drained, 2);
	assert_int_equal(rig_slot(rig, 1)->drained, 1);
	assert_null(jump_drain_finish(rig->drain));
	assert_int_equal(rig->event_count, 2);
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
}

/* A thread that was stopped while it wrote holds everybody up only until others' rings fill. */
static void test_overtaken(void **state)
{
	struct rig *rig = *state;

	rig_thread(rig, 0);
	rig_thread(rig, 1);
	rig_drain(rig);
	rig_reserve(rig, 0, 1);
	for (uint32_t i = 0; i < RIG_UNITS; i++)
		alloc_at(rig, 1, 100 + i);
	assert_int_equal(rig_round(rig), 0);
	for (uint64_t start = jump_clock_tick(); jump_clock_tick() - start < 2 * JUMP_HOLD_NS;)
		assert_int_equal(jump_drain_stats(rig->drain)->overtaken, 0);
	assert_int_equal(rig_round(rig), RIG_UNITS);
	assert_true(jump_drain_stats(rig->drain)->overtaken > 0);
	/* Its record comes late then, at a time that does not go back. */
	rig_write(rig, 0, 1, 50, MW_RING_ALLOC, 0, MW_RING_STACK_NONE, 0x9000, 0);
	assert_int_equal(rig_round(rig), 1);
	assert_int_equal(rig->events[RIG_UNITS].time_ns, 100 + RIG_UNITS - 1);
}

/* A handler takes the last room that the thread had seen: more is reserved than there is, and the thread waits. */
static void test_over_full(void **state)
{
	struct rig *rig = *state;
	uint64_t unit;

	rig_thread(rig, 0);
	rig_thread(rig, 1);
	rig_drain(rig);
	for (uint32_t i = 0; i < RIG_UNITS - 1; i++)
		alloc_at(rig, 0, i + 1);
	alloc_at(rig, 0, 100);
	unit = rig_slot(rig, 0)->reserved;
	rig_slot(rig, 0)->reserved += 2;
	alloc_at(rig, 1, 101);
	assert_int_equal(rig_drain(rig), RIG_UNITS);
	assert_int_equal(rig_slot(rig, 0)->drained, unit);
	rig_write(rig, 0, unit, 100, MW_RING_ALLOC, 0, MW_RING_STACK_NONE, 0x9000, 0);
	rig_write(rig, 0, unit + 1, 102, MW_RING_ALLOC, 0, MW_RING_STACK_NONE, 0x9001, 0);
	assert_int_equal(rig_drain(rig), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rig->events[RIG_UNITS + i].time_ns, 100 + i);
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
}

/* What a thread never got to write is not waited for at the end, and what lies behind it is read. */
static void test_finish_skips(void **state)
{
	struct rig *rig = *state;

	rig_thread(rig, 0);
	rig_reserve(rig, 0, 3);
	alloc_at(rig, 0, 10);
	assert_null(jump_drain_finish(rig->drain));
	assert_int_equal(rig->event_count, 1);
	/* They were being recorded when the window ended. */
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
}

/* Calls that were on their way when the window ended have been no later than that. */
static void test_end(void **state)
{
	struct rig *rig = *state;

	rig_thread(rig, 0);
	alloc_at(rig, 0, 10);
	assert_int_equal(rig_drain(rig), 1);
	assert_int_equal(jump_drain_end(rig->drain, 5), 10);
	assert_int_equal(jump_drain_end(rig->drain, 20), 20);
	alloc_at(rig, 0, 19);
	alloc_at(rig, 0, 30);
	assert_null(jump_drain_finish(rig->drain));
	assert_int_equal(rig->event_count, 3);
	assert_int_equal(rig->events[1].time_ns, 19);
	assert_int_equal(rig->events[2].time_ns, 20);
}

/* Records of several units, at every place in the ring; what was behind one must not look like a record later. */
static void test_wrap(void **state)
{
	struct rig *rig = *state;
	uint64_t frames[RIG_DEPTH], time = 0, unit;

	/* Their last words are marks of the lap after the one they are written in, as far as these may be addresses. */
	rig_thread(rig, 0);
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t count = i % (RIG_DEPTH + 1);
		uint64_t reserved = rig_slot(rig, 0)->reserved;

		for (uint32_t j = 0; j < count; j++)
			frames[j] = j % 4 < 3 ? 0x1000000 * i + j
					      : mw_ring_mark(0, 1, MW_RING_ALLOC, 0,
							     mw_ring_lap(reserved + RIG_UNITS, RIG_UNITS)) &
							~MW_INTERPRETED_FRAME;
		rig_put_stack(rig, 0, ++time, 0, i, frames, count, MW_RING_COMPLETE);
		rig_put(rig, 0, ++time, MW_RING_ALLOC, 0, i, i + 1, 1);
		assert_int_equal(rig_drain(rig), 1);
		rig_expect(rig, i,
			   (struct mw_event){
				   .time_ns = time, .addr = i + 1, .size = 1, .stack = i, .type = MW_EVENT_ALLOC});
		assert_int_equal(rig->stacks[i % 64].count, count);
		for (uint32_t j = 0; j < count; j++)
			assert_int_equal(rig->stacks[i % 64].frames[j].addr, frames[j]);
		/* What is reserved next is read only when it is marked. */
		unit = rig_reserve(rig, 0, 1);
		assert_int_equal(rig_drain(rig), 0);
		assert_int_equal(rig_slot(rig, 0)->drained, unit);
		rig_write(rig, 0, unit, time, MW_RING_NOTHING, 0, 0, 0, 1);
		if (i % 100 == 0)
			rig_write(rig, 0, rig_reserve(rig, 0, RIG_UNITS - 1), time, MW_RING_NOTHING, 0, 0, 0,
				  RIG_UNITS - 1);
		assert_int_equal(rig_drain(rig), 0);
		assert_int_equal(rig_slot(rig, 0)->drained, rig_slot(rig, 0)->reserved);
	}
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
}

static void test_sink_fails(void **state)
{
	struct rig *rig = *state;
	struct mw_error *err;
	size_t events;

	rig_thread(rig, 0);
	alloc_at(rig, 0, 10);
	rig->refuse_event = true;
	err = jump_drain_round(rig->drain, &events);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_MEMORY);
	mw_error_destroy(err);
}

/* Room is given back as a ring is read, not only when the round is over. */
static void test_publishes(void **state)
{
	struct rig *rig = *state;

	rig_thread(rig, 0);
	for (uint32_t i = 1; i < RIG_UNITS; i++)
		alloc_at(rig, 0, i);
	rig_drain(rig);
	assert_int_equal(rig_slot(rig, 0)->drained, RIG_UNITS);
}

/* So many records at once, from that time on, and what comes of it. */
static uint64_t rest_after(struct rig *rig, uint32_t slot, uint64_t *time, uint32_t count, uint64_t apart)
{
	for (uint32_t i = 0; i < count; i++, *time += apart)
		alloc_at(rig, slot, *time);
	rig_drain(rig);
	return jump_drain_rest(rig->drain);
}

/* How fast a ring is filled is known from the records' times: it does not matter when they are read, or that the thread
 * has no CPU for a while. */
static void test_rest(void **state)
{
	struct rig *rig = *state;
	uint64_t time = 1000, first = jump_drain_rest(rig->drain), longer;

	rig_thread(rig, 0);
	rig_thread(rig, 1);
	rig_drain(rig);
	/* Nobody need say first that somebody is fast. */
	assert_in_range(first, 1000, 100000);
	rig->drain->longer_ticks = UINT64_MAX;
	assert_int_equal(rest_after(rig, 0, &time, RIG_UNITS / 4, 16), 15 * 16);
	/* A few say nothing; others may be slower. */
	assert_int_equal(rest_after(rig, 0, &time, RIG_UNITS / 16, 1), 15 * 16);
	time += 100000000;
	assert_int_equal(rest_after(rig, 0, &time, RIG_UNITS / 4, 2000), 15 * 16);
	assert_int_equal(rest_after(rig, 1, &time, RIG_UNITS / 4, 20), 15 * 16);
	/* The more there are, the better; all of a ring, too. */
	assert_int_equal(rest_after(rig, 1, &time, RIG_UNITS / 2, 10), 31 * 10 / 2);
	assert_int_equal(rest_after(rig, 1, &time, RIG_UNITS, 8), 63 * 8 / 4);
	/* Where it is not seen for a while it is taken to be over, bit by bit. */
	first = jump_drain_rest(rig->drain);
	rig->drain->longer_ticks = 0;
	rig_round(rig);
	longer = jump_drain_rest(rig->drain);
	assert_in_range(longer, first + 1, first + first / 8);
	for (uint32_t i = 0; i < 1000 && jump_drain_rest(rig->drain) != UINT64_MAX; i++) {
		rig_round(rig);
		assert_true(jump_drain_rest(rig->drain) > longer);
		longer = jump_drain_rest(rig->drain);
	}
	assert_true(longer == UINT64_MAX);
	rig->drain->longer_ticks = UINT64_MAX;
	assert_int_equal(rest_after(rig, 0, &time, RIG_UNITS / 4, 16), 15 * 16);
}

/* Where blocks are sampled from the beginning, rings are not taken to be filled as fast as can be; but they may be. */
static void test_rest_sampled(void **state)
{
	struct rig *rig = *state;
	uint64_t time = 1000, first = jump_drain_rest(rig->drain);

	jump_drain_sampling(rig->drain, 1, false);
	assert_in_range(jump_drain_rest(rig->drain), first + 1, JUMP_SAMPLED_NS);
	rig_thread(rig, 0);
	rig_drain(rig);
	rig->drain->longer_ticks = UINT64_MAX;
	assert_int_equal(rest_after(rig, 0, &time, RIG_UNITS / 4, 16), 15 * 16);
	/* Another interval changes nothing of that. */
	jump_drain_sampling(rig->drain, 2, false);
	assert_int_equal(jump_drain_rest(rig->drain), 15 * 16);
}

/* What threads have waited in the steps before: of the one that waited most. */
static void test_waited(void **state)
{
	struct rig *rig = *state;
	uint64_t step = 100;

	rig_slot(rig, 0)->waited_room = 5000; /* before it was known */
	rig_thread(rig, 0);
	rig_thread(rig, 1);
	rig_round(rig);
	assert_int_equal(jump_drain_waited(rig->drain, step), 0);
	rig_slot(rig, 0)->waited_room += 30;
	assert_int_equal(jump_drain_waited(rig->drain, ++step), 30);
	rig_slot(rig, 1)->waited_room += 40;
	assert_int_equal(jump_drain_waited(rig->drain, ++step), 40);
	rig_slot(rig, 0)->waited_room += 15;
	assert_int_equal(jump_drain_waited(rig->drain, step += 5), 45);
	/* The first wait of either is as long ago as steps are counted. */
	assert_int_equal(jump_drain_waited(rig->drain, 101 + JUMP_WAIT_STEPS - 1), 45);
	assert_int_equal(jump_drain_waited(rig->drain, 101 + JUMP_WAIT_STEPS), 40);
	assert_int_equal(jump_drain_waited(rig->drain, 101 + JUMP_WAIT_STEPS + 1), 15);
	/* Nobody looked for long: when it was waited is not known. */
	rig_slot(rig, 1)->waited_room += 7;
	step = 1000;
	assert_int_equal(jump_drain_waited(rig->drain, step), 7);
	assert_int_equal(jump_drain_waited(rig->drain, step += JUMP_WAIT_STEPS - 1), 7);
	assert_int_equal(jump_drain_waited(rig->drain, ++step), 0);
}

/* What was waited up to a moment is forgotten, and what comes after it is not. */
static void test_forgiven(void **state)
{
	struct rig *rig = *state;
	uint64_t step = 100;

	rig_thread(rig, 0);
	rig_thread(rig, 1);
	rig_round(rig);
	rig_slot(rig, 0)->waited_room += 30;
	assert_int_equal(jump_drain_waited(rig->drain, ++step), 30);
	rig_slot(rig, 1)->waited_room += 50;
	jump_drain_forgive(rig->drain);
	assert_int_equal(jump_drain_waited(rig->drain, step), 0);
	assert_int_equal(jump_drain_waited(rig->drain, ++step), 0);
	rig_slot(rig, 1)->waited_room += 7;
	assert_int_equal(jump_drain_waited(rig->drain, ++step), 7);
}

/* Requests of threads are counted apart from what they record; a round sees whether there were many records. */
static void test_asked(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_control *control = jump_control(rig->drain->shared);
	uint32_t *const counts[] = {&control->asks, &control->loader_changes, &control->child_count};
	uint64_t asked, counted;

	rig_thread(rig, 0);
	rig_drain(rig);
	asked = jump_drain_asked(rig->drain);
	counted = jump_drain_counted(rig->drain);
	alloc_at(rig, 0, 1000);
	rig_drain(rig);
	assert_true(jump_drain_trickles(rig->drain));
	for (uint64_t i = 0; i <= RIG_UNITS / 64; i++)
		alloc_at(rig, 0, 2000 + i);
	rig_round(rig);
	assert_false(jump_drain_trickles(rig->drain));
	assert_int_equal(jump_drain_asked(rig->drain), asked);
	assert_true(jump_drain_counted(rig->drain) != counted);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		asked = jump_drain_asked(rig->drain);
		++*counts[i];
		assert_true(jump_drain_asked(rig->drain) != asked);
	}
	asked = jump_drain_asked(rig->drain);
	rig_slot(rig, 0)->exec = 5;
	assert_true(jump_drain_asked(rig->drain) != asked);
}

UNIT_GROUP(jump_drain)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test_setup_teardown(test_held_back, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_interrupted, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_margin, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_overtaken, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_over_full, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_finish_skips, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_end, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rest_sampled, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_forgiven, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_asked, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_wrap, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_sink_fails, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_publishes, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rest, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_waited, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

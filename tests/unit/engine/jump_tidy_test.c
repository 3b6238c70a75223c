// SPDX-License-Identifier: MIT
/* jump_tidy_test.c: threads come and go, and so do their slots and rings. */
#include "jump_rig.h"
#include "unit.h"

#include <string.h>

static void alloc_at(struct rig *rig, uint32_t slot, uint64_t time)
{
	rig_put(rig, slot, time, MW_RING_ALLOC, 0, MW_RING_STACK_NONE, 0x1000 + time, slot);
}

static void test_recycled(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_slot *slot = rig_slot(rig, 5), zero = {0};
	uint32_t ring;

	rig_thread(rig, 5);
	ring = slot->ring;
	for (uint32_t i = 1; i < RIG_UNITS + 20; i++) {
		alloc_at(rig, 5, i);
		rig_drain(rig);
	}
	slot->lost_events = 3;
	slot->walks = 4;
	rig->dead[RIG_TID + 5] = true;
	/* Not before all is read. */
	alloc_at(rig, 5, 1000);
	jump_drain_tidy(rig->drain);
	assert_int_equal(slot->owner, 0x7f0000000005);
	assert_int_equal(slot->tid, MW_RING_NO_TID);
	rig_drain(rig);
	jump_drain_tidy(rig->drain);
	zero.owner = MW_RING_TOMB;
	zero.tid = MW_RING_NO_TID;
	assert_memory_equal(slot, &zero, sizeof(zero));
	for (uint32_t i = 0; i < RIG_UNITS; i++)
		assert_int_equal(jump_ring(&rig->shared, ring - 1)[i].mark, 0);
	assert_int_equal(jump_drain_stats(rig->drain)->lost_events, 3);
	assert_int_equal(jump_drain_stats(rig->drain)->walks, 4);
	/* Somebody else has slot and, some time, ring; its records begin at the first lap again. */
	rig->event_count = 0;
	for (uint32_t i = 0; i < RIG_RINGS; i++) {
		rig_thread(rig, i);
		alloc_at(rig, i, 2000 + i);
		rig_drain(rig);
		assert_int_equal(rig->event_count, i + 1);
		assert_int_equal(rig->events[i].addr, 0x1000 + 2000 + i);
	}
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
}

/* A new thread with the thread pointer of one that has ended takes the slot over: it is not cleared. */
static void test_taken_over(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_slot *slot = rig_slot(rig, 0);

	rig_thread(rig, 0);
	rig_drain(rig);
	rig->dead[RIG_TID] = true;
	slot->tid = RIG_TID + 7;
	rig_put(rig, 0, 5, MW_RING_THREAD, 0, MW_RING_STACK_NONE, RIG_TID + 7, 0);
	alloc_at(rig, 0, 6);
	rig_drain(rig);
	jump_drain_tidy(rig->drain);
	assert_int_equal(slot->tid, RIG_TID + 7);
	assert_int_equal(slot->reserved, 3);
	assert_int_equal(rig->threads[rig->events[0].thread].pid, RIG_PID + 7);
	/* One that is being taken has no tid yet. */
	slot->tid = 0;
	rig->dead[0] = true;
	jump_drain_tidy(rig->drain);
	assert_int_equal(slot->reserved, 3);
}

/* A thread that ended inside the recorder has records that will never be marked: nobody waits for them. */
static void test_ended_inside(void **state)
{
	struct rig *rig = *state;

	rig_thread(rig, 0);
	rig_thread(rig, 1);
	rig_drain(rig);
	rig_reserve(rig, 0, 3);
	alloc_at(rig, 0, 5);
	rig_reserve(rig, 0, 1);
	alloc_at(rig, 1, 4);
	alloc_at(rig, 1, 6);
	jump_drain_tidy(rig->drain);
	assert_int_equal(rig_drain(rig), 0);
	rig->dead[RIG_TID] = true;
	jump_drain_tidy(rig->drain);
	assert_int_equal(rig_slot(rig, 0)->owner, 0x7f0000000000);
	assert_int_equal(rig_drain(rig), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rig->events[i].time_ns, 4 + i);
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 2);
	jump_drain_tidy(rig->drain);
	assert_int_equal(rig_slot(rig, 0)->owner, MW_RING_TOMB);
}

/* What a thread was at when it ended has failed. */
static void test_open_call(void **state)
{
	struct rig *rig = *state;

	rig_thread(rig, 0);
	rig_put(rig, 0, 5, MW_RING_REALLOC_BEGIN, 0, MW_RING_STACK_NONE, 0x5000, 1);
	rig_drain(rig);
	rig->dead[RIG_TID] = true;
	jump_drain_tidy(rig->drain);
	rig_drain(rig);
	assert_null(jump_drain_finish(rig->drain));
	assert_int_equal(rig->event_count, 2);
	rig_expect(rig, 1,
		   (struct mw_event){5, 0x5000, 0, MW_STACK_NONE, 0, MW_EVENT_REALLOC_FAIL, MW_KIND_HEAP, 0, false});
}

/* Rings lie ready as long as there are any, after they were given memory. */
static void test_offered(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_control *control = jump_control(&rig->shared);

	assert_int_equal(control->rings_offered, 8);
	assert_int_equal(control->rings_all, 0);
	rig->refuse_fill = true;
	jump_drain_tidy(rig->drain);
	assert_int_equal(control->rings_offered, 8);
	rig->refuse_fill = false;
	jump_drain_tidy(rig->drain);
	assert_int_equal(rig->filled_from, 8);
	assert_int_equal(rig->filled_count, RIG_RINGS - 8);
	assert_int_equal(control->rings_offered, RIG_RINGS);
	assert_int_equal(control->rings_all, 1);
	for (uint32_t i = 0; i < RIG_RINGS; i++)
		assert_int_equal(jump_queue(&rig->shared)[i], i);
	for (int i = 0; i < 3; i++)
		jump_drain_tidy(rig->drain);
	assert_int_equal(rig->fills, 1);
	/* Thousands of threads, one after the other. */
	for (uint32_t i = 0; i < 5000; i++) {
		rig->dead[RIG_TID + i % RIG_SLOTS] = false;
		rig_thread(rig, i % RIG_SLOTS);
		alloc_at(rig, i % RIG_SLOTS, i + 1);
		assert_int_equal(rig_drain(rig), 1);
		assert_int_equal(rig->events[i].thread, i);
		rig->dead[RIG_TID + i % RIG_SLOTS] = true;
		if (i % 10 == 9)
			jump_drain_tidy(rig->drain);
	}
	assert_int_equal(rig->fills, 1);
	assert_int_equal(control->rings_offered, RIG_RINGS + 5000);
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
}

/* Of one process of many few lie ready, beside one for each thread that waits. */
static void test_offered_few(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_control *control = jump_control(&rig->shared);

	rig->shared.geometry.spare_rings = 2;
	jump_drain_tidy(rig->drain);
	assert_int_equal(control->rings_offered, 8);
	control->rings_taken = 8 + 3;
	jump_drain_tidy(rig->drain);
	assert_int_equal(control->rings_offered, 8 + 3 + 2);
	assert_int_equal(rig->filled_count, 3 + 2);
	control->rings_taken = UINT64_MAX;
	jump_drain_tidy(rig->drain);
	assert_int_equal(control->rings_offered, RIG_RINGS);
}

/* Rings that are somebody else's, were never offered or do not exist are not read for a slot that says it has them. */
static void test_not_its_ring(void **state)
{
	struct rig *rig = *state;

	rig->refuse_fill = true;
	rig_thread(rig, 0);
	rig_drain(rig);
	for (uint32_t i = 1; i < 4; i++) {
		*rig_slot(rig, i) = *rig_slot(rig, 0);
		rig_slot(rig, i)->owner += i;
		rig_slot(rig, i)->tid = RIG_TID + i;
		rig_slot(rig, i)->reserved = 10;
	}
	rig_slot(rig, 2)->ring = 12;
	rig_slot(rig, 3)->ring = UINT32_MAX;
	jump_control(&rig->shared)->rings_taken = UINT64_MAX;
	rig_drain(rig);
	for (uint32_t i = 1; i < 4; i++)
		rig->dead[RIG_TID + i] = true;
	jump_drain_tidy(rig->drain);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(rig_slot(rig, i)->owner, MW_RING_TOMB);
	alloc_at(rig, 0, 5);
	assert_int_equal(rig_drain(rig), 1);
	assert_int_equal(jump_drain_stats(rig->drain)->bad_records, 0);
}

/* A target may write what it likes into the counters: sums of them stay what a report can show. */
static void test_made_up_counts(void **state)
{
	struct rig *rig = *state;
	const struct jump_drain_stats *stats;
	uint64_t elapsed;

	jump_control(&rig->shared)->lost_events = UINT64_MAX;
	for (uint32_t i = 0; i < 3; i++) {
		struct mw_ring_slot *slot = rig_slot(rig, i);

		rig_thread(rig, i);
		slot->lost_events = i == 1 ? UINT64_MAX : UINT64_C(1) << 60;
		slot->lost_stacks = UINT64_C(1) << 63;
		slot->walks = i;
		slot->slow_walks = UINT64_MAX;
		slot->waited = UINT64_MAX - i;
	}
	rig_drain(rig);
	/* One of them counts as one that has ended. */
	rig->dead[RIG_TID] = true;
	jump_drain_tidy(rig->drain);
	assert_int_equal(rig_slot(rig, 0)->owner, MW_RING_TOMB);
	stats = jump_drain_stats(rig->drain);
	elapsed = jump_clock_tick() - rig->clock.start_tick;
	assert_int_equal(stats->lost_events, JUMP_MOST_COUNTED);
	assert_int_equal(stats->lost_stacks, JUMP_MOST_COUNTED);
	assert_int_equal(stats->walks, 3);
	assert_int_equal(stats->slow_walks, 3);
	assert_in_range(stats->waited, 1, 3 * elapsed);
}

UNIT_GROUP(jump_tidy)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_recycled, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_taken_over, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_ended_inside, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_open_call, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_offered, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_offered_few, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_not_its_ring, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_made_up_counts, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

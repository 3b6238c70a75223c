// SPDX-License-Identifier: MIT
/*
 * jump_hostile_test.c: garbage in all that a target may write. What counts is that nothing is read or written outside
 * (the sanitizers say so), that a round ends, and that the tracker takes what it is told.
 */
#include "jump_rig.h"

#include "track/track.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define RUNS   60
#define ROUNDS 40

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* A number that is likely to hurt. */
static uint64_t odd(void)
{
	static const uint64_t edges[] = {0,         1,          RIG_UNITS - 1,     RIG_UNITS,  RIG_UNITS + 1,
					 INT32_MAX, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - RIG_UNITS};

	return draw() % 3 ? draw() >> (draw() % 64) : edges[draw() % (sizeof(edges) / sizeof(edges[0]))];
}

static void scribble(const struct rig *rig, uint64_t from, uint64_t size, unsigned words)
{
	for (unsigned i = 0; i < words; i++) {
		uint64_t value = odd();

		memcpy(rig->shared.base + from + draw() % (size / 8) * 8, &value, sizeof(value));
	}
}

/* Slots and records that nearly make sense get further than noise does. */
static void forge(const struct rig *rig)
{
	struct mw_ring_slot *slot = rig_slot(rig, (uint32_t)draw() % RIG_RINGS);
	uint32_t ring = (uint32_t)draw() % RIG_RINGS;
	uint64_t from = slot->drained;

	slot->owner = 2 + draw() % 1000;
	slot->tid = (uint32_t)(draw() % 250);
	slot->ring = slot->ring ? slot->ring : ring + 1;
	if (slot->ring <= RIG_RINGS)
		ring = slot->ring - 1;
	slot->reserved = from + draw() % (2 * RIG_UNITS);
	for (uint64_t unit = from; unit < from + RIG_UNITS; unit++)
		jump_ring(&rig->shared, ring)[unit % RIG_UNITS] = (struct mw_ring_record){
			.time = draw() % 50 ? rig->clock.start_tick + draw() % 1000000000 : odd(),
			.addr = draw() % 2 ? draw() % 4000 : odd(),
			.size = draw() % 2 ? draw() % 200 : odd(),
			.mark = mw_ring_mark(draw() % 2 ? (uint32_t)draw() % 4000 : (uint32_t)odd(), 1,
					     (uint32_t)draw() % (MW_RING_TYPES + 1), draw() % 2 ? 0 : (uint32_t)draw(),
					     mw_ring_lap(unit, RIG_UNITS)),
		};
}

static void attack(struct rig *rig)
{
	const struct jump_geometry *geometry = &rig->shared.geometry;

	switch (draw() % 12) {
	case 0:
		scribble(rig, 0, geometry->slots, 20);
		break;
	case 1:
		scribble(rig, geometry->slots, geometry->queue - geometry->slots, 200);
		break;
	case 2:
		scribble(rig, geometry->rings, geometry->size - geometry->rings, 5000);
		break;
	default:
		for (int i = 0; i < 20; i++)
			forge(rig);
	}
	for (int i = 0; i < 256; i++)
		rig->dead[i] = draw() % 4 == 0;
}

static uint64_t attack_and_drain(struct rig *rig)
{
	uint64_t told = 0;

	for (int round = 0; round < ROUNDS; round++) {
		size_t events;

		attack(rig);
		for (int i = 0; i < 3; i++) {
			assert_null(jump_drain_round(rig->drain, &events));
			assert_true(events <= 2 * RIG_RINGS * RIG_UNITS + 64 * RIG_RINGS);
			told += events;
		}
		jump_drain_tidy(rig->drain);
		assert_null(jump_drain_rename(rig->drain));
		jump_drain_stats(rig->drain);
		assert_true(rig->drain->difference_count <= 32);
	}
	assert_null(jump_drain_finish(rig->drain));
	return told;
}

static void check_order(const struct rig *rig)
{
	for (size_t i = 1; i < rig->event_count; i++)
		assert_true(rig->events[i - 1].time_ns <= rig->events[i].time_ns);
}

static void test_garbage(void **state)
{
	uint64_t told = 0;

	for (int run = 0; run < RUNS; run++) {
		struct rig *rig = *state;

		rig->walked_count = RIG_DEPTH + 4;
		told += attack_and_drain(rig);
		check_order(rig);
		rig_teardown(state);
		rig_setup(state);
	}
	/* Much of it must have come through, or nothing was tested. */
	assert_true(told > 10000);
}

/* The tracker refuses events that fit together in no way: none of these may come to it. */
static void test_tracked(void **state)
{
	struct rig *rig = *state;
	struct mw_track *track;
	struct mw_event_sink sink;
	struct mw_track_totals totals;

	assert_null(mw_track_create(&track));
	sink = mw_track_sink(track);
	rig_use(rig, &sink);
	for (int run = 0; run < RUNS / 4; run++)
		attack_and_drain(rig);
	mw_track_totals(track, MW_KIND_HEAP, &totals);
	assert_true(totals.size.count > 100);
	mw_track_destroy(track);
}

/* Numbers of stacks from all over do not cost memory for what lies between. */
static void test_stack_numbers(void **state)
{
	struct rig *rig = *state;
	uint64_t frame = 0x1000;

	rig_thread(rig, 0);
	for (uint32_t i = 0; i < 100000; i++) {
		rig_put_stack(rig, 0, 1, 0, i * 42949u, &frame, 1, MW_RING_COMPLETE);
		rig_drain(rig);
	}
	assert_in_range(rig->stack_count, 60, 500);
	assert_true(jump_drain_stats(rig->drain)->bad_records > 0);
}

UNIT_GROUP(jump_hostile)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_garbage, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_tracked, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stack_numbers, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

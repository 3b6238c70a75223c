// SPDX-License-Identifier: MIT
/* test_events.c: events handed over many at a time, and what they may carry beside what they need. */
#include "rig.h"
#include "unit.h"

/* More than are looked at ahead, of few addresses: what comes ahead concerns blocks that change meanwhile. */
#define MANY 200U

static struct mw_event heap_event(const struct rig *rig, enum mw_event_type type, uint64_t time, mw_addr addr)
{
	return (struct mw_event){time, addr, 16, rig->heap, rig->thread[time % 3], type, MW_KIND_HEAP, 0, false};
}

static void make_many(const struct rig *rig, struct mw_event *events)
{
	static const enum mw_event_type types[] = {MW_EVENT_ALLOC, MW_EVENT_ALLOC, MW_EVENT_FREE};

	for (uint32_t i = 0; i < MANY; i++)
		events[i] = heap_event(rig, types[i % 3], i, 16 + 16 * (mw_addr)(i * 7 % 40));
}

static void test_many_are_as_one_by_one(void **state)
{
	struct rig *rig = *state, *other;
	struct mw_event events[MANY];
	void *other_state;

	rig_setup(&other_state);
	other = other_state;
	make_many(rig, events);
	for (uint32_t i = 0; i < MANY; i++)
		rig_send(rig, events[i]);
	/* In pieces of every length that looking ahead tells apart. */
	for (size_t i = 0, piece = 0; i < MANY; i += piece, piece = (piece + 1) % 30) {
		if (piece > MANY - i)
			piece = MANY - i;
		assert_null(other->sink.events(other->sink.context, events + i, piece));
	}
	for (int kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals a = rig_totals(rig, (enum mw_kind)kind);
		struct mw_track_totals b = rig_totals(other, (enum mw_kind)kind);

		assert_memory_equal(&a, &b, sizeof(a));
	}
	assert_true(mw_track_missed(rig->track) > 0);
	assert_int_equal(mw_track_missed(other->track), mw_track_missed(rig->track));
	assert_int_equal(rig_of_stack(other, other->heap).lifetime.max_ns,
			 rig_of_stack(rig, rig->heap).lifetime.max_ns);
	rig_teardown(&other_state);
}

static void test_those_before_a_wrong_one_are_taken(void **state)
{
	struct rig *rig = *state;
	struct mw_event events[MANY];
	struct mw_error *err;

	for (uint32_t i = 0; i < MANY; i++)
		events[i] = heap_event(rig, MW_EVENT_ALLOC, i, 16 + 16 * (mw_addr)i);
	events[MANY / 2].thread = 99;
	err = rig->sink.events(rig->sink.context, events, MANY);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
	mw_error_destroy(err);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, MANY / 2, MANY / 2 * 16);
	assert_true(rig->sink.knows(rig->sink.context, events[MANY / 2 - 1].addr));
	assert_false(rig->sink.knows(rig->sink.context, events[MANY / 2 + 1].addr));
}

/* Numbers that nobody gave out lead nowhere, also where they are looked at ahead. */
static void test_wrong_numbers_ahead(void **state)
{
	struct rig *rig = *state;
	struct mw_event events[MANY];
	struct mw_error *err;

	for (uint32_t i = 0; i < MANY; i++) {
		events[i] = heap_event(rig, (enum mw_event_type)i, i, UINT64_MAX - i);
		events[i].stack = UINT32_MAX - 1 - i;
		events[i].thread = UINT32_MAX - i;
	}
	err = rig->sink.events(rig->sink.context, events, MANY);
	assert_non_null(err);
	mw_error_destroy(err);
	assert_null(rig->sink.events(rig->sink.context, events, 0));
	rig_amount(rig_totals(rig, MW_KIND_HEAP).size, 0, 0);
}

/* A free says where and how much for a block from before the window; for one that is known that counts nothing. */
static void test_free_of_known_ignores_stack_and_size(void **state)
{
	struct rig *rig = *state;
	struct mw_event event = heap_event(rig, MW_EVENT_FREE, 30, 0x100);
	struct mw_track_stack stack;

	event.stack = rig_stack(rig, MW_KIND_HEAP, 9);
	event.size = 4096;
	rig_alloc(rig, 10, 0x100, 40);
	rig_send(rig, event);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).transient, 1, 40);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 0, 0);
	stack = rig_of_stack(rig, event.stack);
	rig_amount(stack.totals.size, 0, 0);
	rig_amount(stack.totals.aofi, 0, 0);
	assert_int_equal(stack.lifetime.count, 0);
	rig_send(rig, event);
	rig_amount(rig_of_stack(rig, event.stack).totals.aofi, 1, 4096);
}

UNIT_GROUP(events)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_many_are_as_one_by_one),
		TEST(test_those_before_a_wrong_one_are_taken),
		TEST(test_wrong_numbers_ahead),
		TEST(test_free_of_known_ignores_stack_and_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* test_kin.c: whose older blocks a function frees, by the stacks of its calls. */
#include "rig.h"
#include "track/replaced.h"
#include "track/state.h"
#include "unit.h"

#include <stdlib.h>

#define RUNTIME 2u /* modules */
#define LIBRARY 1u
#define PROGRAM 0u
#define ROUNDS  100u

/* A function of the program; two of them are far from each other. */
#define FUNCTION(n) (0x400000 + 0x10000 * (mw_addr)(n))

/* A call at `offset` in a function, through a function of a library; called at `site` of the program's loop. */
static uint32_t call(struct rig *rig, mw_addr function, unsigned offset, unsigned site)
{
	struct mw_raw_frame frames[] = {
		{0x1000 + offset, LIBRARY},
		{function + offset, PROGRAM},
		{FUNCTION(0) + site, PROGRAM},
		{0x3000, RUNTIME},
		{0x2000, RUNTIME},
		{0x1000, RUNTIME},
	};
	struct mw_raw_stack stack = {frames, sizeof(frames) / sizeof(frames[0]), MW_STACK_COMPLETE, 7, MW_KIND_HEAP};
	uint32_t id = UINT32_MAX;

	assert_null(rig->sink.stack(rig->sink.context, &stack, &id));
	return id;
}

static void allocate(struct rig *rig, uint32_t stack, uint64_t bytes, unsigned count)
{
	static mw_addr next = 0x10000;

	for (unsigned i = 0; i < count; i++, next += 16)
		rig_send(rig, (struct mw_event){next, next, bytes, stack, rig->thread[0], MW_EVENT_ALLOC, MW_KIND_HEAP,
						0, false});
}

static void free_older(struct rig *rig, uint32_t stack, uint64_t bytes, unsigned count)
{
	static mw_addr next = 0x90000000;

	for (unsigned i = 0; i < count; i++, next += 16)
		rig_send(rig, (struct mw_event){next, next, bytes, stack, rig->thread[0], MW_EVENT_FREE, MW_KIND_HEAP,
						0, false});
}

static uint32_t owner_of(const struct rig *rig, uint32_t freeing)
{
	struct mw_track_kin *owners;
	uint32_t owner;

	assert_null(mw_track_find_kin(rig->track, &owners));
	owner = owners[freeing].owner;
	free(owners);
	return owner;
}

/* A ring whose entries have any size frees and allocates in one function; beside it others of these sizes are forgotten. */
static void test_ring_beside_a_leak(void **state)
{
	struct rig *rig = *state;
	uint32_t put = call(rig, FUNCTION(1), 0x10, 0x20), drop = call(rig, FUNCTION(1), 0x80, 0x20);
	uint32_t leak = call(rig, FUNCTION(2), 0x10, 0x40);
	struct mw_track_replaced gone;

	for (unsigned i = 0; i < ROUNDS; i++) {
		allocate(rig, put, 100 + i * 37 % 800, 1);
		allocate(rig, leak, 100 + i * 53 % 800, 1);
		free_older(rig, drop, 104 + i * 71 % 50 * 16, 1);
	}
	assert_int_equal(owner_of(rig, drop), put);
	assert_int_equal(owner_of(rig, leak), MW_STACK_NONE);
	assert_true(mw_track_stack_replaced(rig->track, drop, UINT64_C(1) << 32, &gone));
	assert_int_equal(gone.older.count, ROUNDS);
}

/* Another function of the loop empties a cache: what is forgotten in the same loop is not made up for. */
static void test_another_function_frees(void **state)
{
	struct rig *rig = *state;
	uint32_t drop = call(rig, FUNCTION(1), 0x80, 0x20), leak = call(rig, FUNCTION(2), 0x10, 0x40);

	allocate(rig, leak, 400, ROUNDS);
	free_older(rig, drop, 408, ROUNDS);
	assert_int_equal(owner_of(rig, drop), MW_STACK_NONE);
}

/* Two calls of one function allocate as many blocks of a size, and half of them go: it is not clear whose. */
static void test_either_of_two(void **state)
{
	struct rig *rig = *state;
	uint32_t one = call(rig, FUNCTION(1), 0x10, 0x20), two = call(rig, FUNCTION(1), 0x40, 0x20);
	uint32_t drop = call(rig, FUNCTION(1), 0x80, 0x20);

	allocate(rig, one, 400, ROUNDS);
	allocate(rig, two, 400, ROUNDS);
	free_older(rig, drop, 408, ROUNDS);
	assert_int_equal(owner_of(rig, drop), MW_STACK_NONE);
}

/* As many go as both allocate, by two calls: they share. */
static void test_two_for_two(void **state)
{
	struct rig *rig = *state;
	uint32_t one = call(rig, FUNCTION(1), 0x10, 0x20), two = call(rig, FUNCTION(1), 0x40, 0x20);
	uint32_t drops[] = {call(rig, FUNCTION(1), 0x80, 0x20), call(rig, FUNCTION(1), 0xc0, 0x20)};
	uint32_t owners[2];

	for (unsigned i = 0; i < ROUNDS; i++) {
		allocate(rig, one, 400, 1);
		allocate(rig, two, 400, 1);
		free_older(rig, drops[0], 408, 1);
		free_older(rig, drops[1], 408, 1);
	}
	for (int i = 0; i < 2; i++)
		owners[i] = owner_of(rig, drops[i]);
	assert_true((owners[0] == one && owners[1] == two) || (owners[0] == two && owners[1] == one));
}

static double last_older(const struct rig *rig, uint64_t usable)
{
	struct mw_track_class_flow flow;

	if (!mw_track_class_flow(rig->track, mw_size_class(usable), UINT64_C(1) << 32, &flow) || !flow.older.count)
		return 0;
	return (double)flow.older.bytes[flow.older.count - 1];
}

static void send_at(struct rig *rig, enum mw_event_type type, mw_addr addr, uint64_t bytes)
{
	static uint64_t now = UINT64_C(1) << 31;

	rig_send(rig,
		 (struct mw_event){now += 1000, addr, bytes, rig->heap, rig->thread[0], type, MW_KIND_HEAP, 0, false});
}

/* What is allocated in a page tells the sizes of older blocks that are freed there, before and after; nothing else does. */
static void test_sizes_by_page(void **state)
{
	const uint64_t small = mw_replaced_usable(100), large = mw_replaced_usable(5000);
	struct mw_track_class_flow flow;
	struct rig *rig = *state;

	send_at(rig, MW_EVENT_FREE, 0x70000100, MW_SIZE_UNKNOWN);
	send_at(rig, MW_EVENT_FREE, 0x70000200, MW_SIZE_UNKNOWN);
	send_at(rig, MW_EVENT_FREE, 0x70001100, MW_SIZE_UNKNOWN);
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 3);
	/* In another page, and in that of two of them. */
	send_at(rig, MW_EVENT_ALLOC, 0x70008000, 100);
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 3 && last_older(rig, small) == 0);
	send_at(rig, MW_EVENT_ALLOC, 0x70000300, 100);
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 1 && last_older(rig, small) == 2 * (double)small);
	send_at(rig, MW_EVENT_FREE, 0x70000400, MW_SIZE_UNKNOWN);
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 1 && last_older(rig, small) == 3 * (double)small);
	/* Two sizes in one page cannot be told apart; others can. */
	send_at(rig, MW_EVENT_ALLOC, 0x70001000, 5000);
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 0 && last_older(rig, large) == (double)large);
	assert_int_not_equal(mw_class_flows_alike(&rig->track->flows, mw_size_class(small)),
			     mw_class_flows_alike(&rig->track->flows, mw_size_class(large)));
	send_at(rig, MW_EVENT_ALLOC, 0x70000500, 5000);
	assert_true(mw_track_class_flow(rig->track, mw_size_class(small), UINT64_C(1) << 32, &flow));
	assert_int_equal(flow.alike, mw_class_flows_alike(&rig->track->flows, mw_size_class(large)));
	/* Totals know nothing of it. */
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).aofi.bytes, 0);
}

#define MS UINT64_C(1000000)

/* Blocks of unknown size of which none is left, for so long that the step of the moments doubles, and one more. */
static void test_unknown_sizes_are_none_again(void **state)
{
	struct mw_track_class_flow flow;
	struct rig *rig = *state;

	rig_free(rig, 100, 0x70000100);
	rig_alloc(rig, 3 * MS, 0x70000200, 100);
	rig_alloc(rig, 10 * MS, 0x80000000, 8);
	rig_alloc(rig, 100 * MS, 0x80000010, 8);
	rig_free(rig, 101 * MS, 0x90000100);
	rig_alloc(rig, 110 * MS, 0x80000020, 8);
	assert_true(mw_track_class_flow(rig->track, mw_size_class(MW_SIZE_UNKNOWN), 110 * MS, &flow));
	assert_int_equal(flow.gone.step_ns, 2 * MS);
	assert_int_equal(flow.gone.count, 55);
	for (uint32_t i = 0; i < flow.gone.count; i++)
		assert_true(flow.gone.bytes[i] == (i == 0 || i >= 50));
}

/* Where an allocator puts blocks of any size next to each other, a page tells nothing, and no sizes are alike. */
static void test_mixed_pages(void **state)
{
	const uint64_t sizes[] = {100, 160, 850, 1400, 520}, small = mw_replaced_usable(sizes[0]);
	struct rig *rig = *state;
	double told;

	send_at(rig, MW_EVENT_FREE, 0x70000100, MW_SIZE_UNKNOWN);
	for (unsigned i = 0; i < 2 * ROUNDS; i++)
		send_at(rig, MW_EVENT_ALLOC, 0x70000200 + 16 * (mw_addr)(i % ROUNDS), sizes[i % 5]);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(mw_class_flows_alike(&rig->track->flows, mw_size_class(mw_replaced_usable(sizes[i]))),
				 mw_size_class(mw_replaced_usable(sizes[i])));
	/* Even if it looks like it for a while. */
	for (unsigned i = 0; i < 20 * ROUNDS; i++)
		send_at(rig, MW_EVENT_ALLOC, 0x70000200 + 16 * (mw_addr)(i % ROUNDS),
			i < 10 * ROUNDS ? 100 : sizes[i % 5]);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(mw_class_flows_alike(&rig->track->flows, mw_size_class(mw_replaced_usable(sizes[i]))),
				 mw_size_class(mw_replaced_usable(sizes[i])));
	told = last_older(rig, small);
	send_at(rig, MW_EVENT_FREE, 0x70000110, MW_SIZE_UNKNOWN);
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 1 && last_older(rig, small) == told);
}

/* Blocks of one class may differ by a quarter; and a page may be used for another class, later. */
static void test_pages_of_a_class(void **state)
{
	const uint64_t sizes[] = {420, 500, 450};
	struct rig *rig = *state;

	send_at(rig, MW_EVENT_FREE, 0x70000100, MW_SIZE_UNKNOWN);
	for (unsigned i = 0; i < ROUNDS; i++)
		send_at(rig, MW_EVENT_ALLOC, 0x70000200 + 16 * (mw_addr)i, i < ROUNDS / 2 ? sizes[i % 3] : 100);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(mw_class_flows_alike(&rig->track->flows, mw_size_class(mw_replaced_usable(sizes[i]))),
				 mw_class_flows_alike(&rig->track->flows, mw_size_class(mw_replaced_usable(100))));
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 0);
	send_at(rig, MW_EVENT_FREE, 0x70000110, MW_SIZE_UNKNOWN);
	assert_true(last_older(rig, MW_SIZE_UNKNOWN) == 0 &&
		    last_older(rig, mw_replaced_usable(100)) == (double)mw_replaced_usable(100));
}

/* Far fewer go than are allocated. */
static void test_few_go(void **state)
{
	struct rig *rig = *state;
	uint32_t put = call(rig, FUNCTION(1), 0x10, 0x20), drop = call(rig, FUNCTION(1), 0x80, 0x20);

	allocate(rig, put, 400, ROUNDS);
	free_older(rig, drop, 408, ROUNDS / 10);
	assert_int_equal(owner_of(rig, drop), MW_STACK_NONE);
}

/* --- entries of several blocks, which another function evicts ----------------------------------------------- */

#define HISTORIES  200u
#define MOST_PARTS 4u
#define PUTS       400u

static uint64_t noise;

static unsigned any(unsigned below)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(noise >> 33) % below;
}

static void event(struct rig *rig, mw_addr addr, uint64_t bytes, uint32_t stack, uint64_t now, bool birth)
{
	rig_send(rig, (struct mw_event){now, addr, bytes, stack, rig->thread[0], birth ? MW_EVENT_ALLOC : MW_EVENT_FREE,
					MW_KIND_HEAP, 0, false});
}

/* What becomes of a program's entries. */
enum fate {
	EVICTED,       /* one for each that is put */
	FORGOTTEN,     /* one of the parts is not freed, one time in eight */
	ANOTHER,       /* each time one more block is allocated than are freed */
	DRAINED,       /* entries of one block go as often as one is forgotten */
	EARLIER,       /* as many go as come, but in the first half */
	SEVERAL_TIMES, /* half of what is put makes none go */
};

/* Do all freeing calls have owners? */
static bool has_owners(struct rig *rig, enum fate fate, unsigned parts, bool sizes_known)
{
	uint32_t put[MOST_PARTS + 1], drop[MOST_PARTS];
	struct mw_track_kin *owners;
	uint64_t bytes[MOST_PARTS + 1], now = 1000000;
	mw_addr next = 0x10000, older = 0x90000000;
	unsigned owned = 0, came = parts + (fate == ANOTHER);

	/* Each has a function of its own, which calls the allocator's. */
	for (unsigned i = 0; i < came; i++) {
		put[i] = call(rig, FUNCTION(1 + i), 0x10, 0x20);
		bytes[i] = 20 + any(500);
	}
	for (unsigned i = 0; i < parts; i++)
		drop[i] = call(rig, FUNCTION(10), 0x40 * (i + 1), 0x40);
	for (unsigned n = 0; n < PUTS; n++) {
		unsigned goes = parts;

		if (fate == EARLIER)
			goes = n < PUTS / 2 ? 2 * parts : 0;
		if (fate == SEVERAL_TIMES && n % 2)
			goes = 0;
		now += 1000000 + any(40000000);
		for (unsigned i = 0; i < came; i++, next += 64)
			event(rig, next, bytes[i], put[i], now++, true);
		for (unsigned i = 0; i < goes; i++, older += 64)
			if (fate != FORGOTTEN || i || n % 8)
				event(rig, older, sizes_known ? mw_replaced_usable(bytes[i % parts]) : MW_SIZE_UNKNOWN,
				      drop[i % parts], now++, false);
	}
	assert_null(mw_track_find_kin(rig->track, &owners));
	for (unsigned i = 0; i < parts; i++)
		owned += owners[drop[i]].owner != MW_STACK_NONE;
	/* Each has its own. */
	for (unsigned i = 0; i < parts; i++)
		for (unsigned j = 0; j < i; j++)
			assert_true(owners[drop[i]].owner == MW_STACK_NONE ||
				    owners[drop[i]].owner != owners[drop[j]].owner);
	free(owners);
	return owned == parts;
}

static void test_entries(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HISTORIES; i++)
		for (enum fate fate = EVICTED; fate <= SEVERAL_TIMES; fate++) {
			struct rig *rig;
			void *made;
			bool owned;

			noise = i * 7919u + 1;
			any(2);
			assert_int_equal(rig_setup(&made), 0);
			rig = made;
			owned = has_owners(rig, fate, fate == DRAINED ? 1 : 2 + any(MOST_PARTS - 1), i % 2);
			assert_int_equal(owned, fate == EVICTED);
			rig_teardown(&made);
		}
}

/* One part of the entries is allocated by either of two calls, which share what goes. A third that allocates beside them does not. */
static void test_part_by_two(void **state)
{
	struct rig *rig = *state;
	uint32_t put[] = {call(rig, FUNCTION(1), 0x10, 0x20), call(rig, FUNCTION(2), 0x10, 0x20),
			  call(rig, FUNCTION(3), 0x10, 0x20), call(rig, FUNCTION(4), 0x10, 0x20)};
	uint32_t drop[] = {call(rig, FUNCTION(10), 0x40, 0x40), call(rig, FUNCTION(10), 0x80, 0x40)};
	uint64_t now = 1000000;
	mw_addr next = 0x10000, older = 0x90000000;
	struct mw_track_kin *kin;

	for (unsigned n = 0; n < PUTS; n++, next += 3 * 64, older += 2 * 64) {
		unsigned value = n % 3 ? 1 : 2;

		now += 1000000 + n % 7 * 3000000;
		event(rig, next, 24, put[0], now++, true);
		event(rig, next + 64, 300, put[value], now++, true);
		if (n % 2)
			event(rig, next + 128, 300, put[3], now++, true);
		event(rig, older, MW_SIZE_UNKNOWN, drop[0], now++, false);
		event(rig, older + 64, mw_replaced_usable(300), drop[1], now++, false);
	}
	assert_null(mw_track_find_kin(rig->track, &kin));
	assert_int_equal(kin[drop[0]].owner, put[0]);
	assert_int_equal(kin[drop[0]].other, MW_STACK_NONE);
	assert_int_equal(kin[drop[1]].owner + kin[drop[1]].other, put[1] + put[2]);
	assert_true(kin[drop[1]].owner == put[1] || kin[drop[1]].owner == put[2]);
	assert_int_equal(kin[drop[1]].fewest, drop[0]);
	free(kin);
}

UNIT_GROUP(kin)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ring_beside_a_leak, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_another_function_frees, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_either_of_two, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_two_for_two, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_sizes_by_page, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unknown_sizes_are_none_again, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_mixed_pages, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_pages_of_a_class, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_few_go, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_part_by_two, rig_setup, rig_teardown),
		cmocka_unit_test(test_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

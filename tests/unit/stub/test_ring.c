// SPDX-License-Identifier: MIT
/* Rings: laps, room and waiting for it; slots: whose they are. */
#include "rig.h"
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 0x7f0000001000u

static void pair(uint64_t n)
{
	mw_stub_leave(rig_call(HOOK_MALLOC, n, 0, 0, 0), BLOCK + n * 16);
}

static void test_laps(void **state)
{
	(void)state;
	/* Stacks of different lengths, so that records lie across the ring's end in all ways; more laps than marks
	 * tell. */
	for (uint64_t i = 0; i < 64 * 300; i++) {
		struct mw_stub_call *call = rig_stack(STACK_WORDS - 200, (unsigned)(i % 7));
		struct shared_record *record;

		/* It is told each time. */
		memset((uint8_t *)rig.shared.control + rig.shared.control->memos, 0,
		       rig.shared.plan.rings * MW_RING_MEMOS * sizeof(struct mw_ring_memo));
		memset((uint8_t *)rig.shared.control + rig.shared.control->stacks, 0,
		       rig.shared.plan.stacks * sizeof(struct mw_ring_stack_entry));
		assert_int_equal(rig_enter(call, HOOK_MALLOC, i, 0, 0, 0), MW_STUB_WRAP);
		mw_stub_leave(call, BLOCK);
		do
			record = rig_record();
		while (record && record->type == MW_RING_THREAD);
		assert_non_null(record);
		assert_int_equal(record->type, MW_RING_STACK);
		assert_int_equal(record->size, i % 7 + 1);
		for (unsigned j = 0; j < i % 7; j++)
			assert_int_equal(record->payload[j], CODE_SP + 0x10 + j);
		assert_int_equal(record->payload[i % 7], CODE_END + 1);
		rig_expect(MW_RING_ALLOC, BLOCK, i);
		rig_expect_none();
	}
}

static void drain_some(void)
{
	if (rig.pauses == 10)
		for (int i = 0; i < 5; i++)
			assert_non_null(rig_record());
}

static void test_waits_for_room(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	uint64_t n = 0;

	(void)state;
	rig.on_pause = drain_some;
	while (rig.pauses == 0)
		pair(n++);
	assert_int_equal(rig.pauses, 10);
	assert_int_equal(slot->lost_events, 0);
	assert_true(slot->waited > 0);
	assert_int_equal(slot->reserved, 65);
	while (rig_record())
		;
	assert_int_equal(slot->drained, slot->reserved);
}

/* The thread has no CPU for a while as it waits: that is not memwatch's doing. */
static void pause_long(void)
{
	if (rig.pauses == 5)
		rig.ticks += 100000;
	drain_some();
}

static void test_waits_without_a_cpu(void **state)
{
	const struct mw_ring_control *control = rig.shared.control;
	struct mw_ring_slot *slot = rig_slot();
	uint64_t n = 0;

	(void)state;
	rig.on_pause = pause_long;
	while (rig.pauses == 0)
		pair(n++);
	assert_int_equal(rig.pauses, 10);
	assert_in_range(slot->waited, control->wait_gap + 100, control->wait_gap + 1000);
	assert_int_equal(slot->waited_room, slot->waited);
	assert_int_equal(slot->lost_events, 0);
}

static void test_drops(void **state)
{
	struct mw_ring_slot *slot = rig_slot();

	(void)state;
	rig.shared.control->drop = 1;
	for (uint64_t n = 0; slot->lost_events == 0; n++)
		pair(n);
	assert_int_equal(slot->waited, 0);
	assert_int_equal(rig.pauses, 0);
	assert_int_equal(slot->reserved, 64);
}

static void test_no_room_in_time(void **state)
{
	struct mw_ring_slot *slot = rig_slot();

	(void)state;
	for (uint64_t n = 0; slot->lost_events == 0; n++)
		pair(n);
	assert_int_equal(slot->reserved, 64);
	assert_true(slot->waited >= rig.shared.control->wait_limit);
	assert_int_equal(rig.guard, 1);
	/* A block whose allocation was lost is not taken for known. */
	while (rig_record())
		;
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK + (slot->reserved - 3) * 16, 0, 0, 0), 0);
	assert_int_not_equal(rig_event()->stack, MW_RING_STACK_NONE);
}

static void test_memwatch_is_gone(void **state)
{
	struct mw_ring_slot *slot = rig_slot();

	(void)state;
	rig.shared.control->heartbeat_limit = 100000;
	for (uint64_t n = 0; rig.guard == MW_STUB_GUARD_ON; n++)
		pair(n);
	assert_int_equal(rig.guard, MW_STUB_GUARD_ENDING);
	/* Recording is over: nothing counts as missed. */
	assert_int_equal(slot->lost_events, 0);
	assert_int_equal(rig.shared.control->given_up, 1);
	assert_int_equal(rig.shared.control->recording, 0);
	assert_true(rig.ticks < rig.shared.control->wait_limit);
}

static void turn_off(void)
{
	rig.guard = 0;
}

static void test_turned_off_while_waiting(void **state)
{
	(void)state;
	rig.on_pause = turn_off;
	for (uint64_t n = 0; rig.guard; n++)
		pair(n);
	assert_int_equal(rig.pauses, 1);
	assert_int_equal(rig.shared.control->given_up, 0);
}

/* Turned off between the reservation and the record: it is not marked. */
static void test_turned_off_while_recording(void **state)
{
	struct mw_stub_call *call = rig_call(HOOK_MALLOC, 1, 0, 0, 0);

	(void)state;
	while (rig_record())
		;
	rig.on_ticks = turn_off;
	mw_stub_leave(call, BLOCK);
	assert_int_equal(rig_slot()->reserved, rig_slot()->drained + 1);
	assert_null(rig_record());
}

static void test_another_thread_with_the_same_pointer(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	uint64_t tp = rig_tp(rig.thread);
	struct shared_record *record;

	(void)state;
	pair(1);
	rig_call(HOOK_MALLOC, 1, 0, 0, 0);
	assert_int_not_equal(slot->top, 0);
	while (rig_record())
		;
	rig.thread->tid_word[1] = 4712;
	pair(2);
	record = rig_record();
	assert_int_equal(record->type, MW_RING_THREAD);
	assert_int_equal(record->addr, 4712);
	assert_int_equal(record->size, tp);
	assert_int_equal(slot->tid, 4712);
	assert_int_equal(slot->top, 0);
	rig_expect(MW_RING_ALLOC, BLOCK + 32, 2);
}

/* A stack with the control block at its end can be read as far as that, nobody asked. */
static void test_stack_is_inherited(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	uint64_t tp = rig_tp(rig.thread), low = tp - 4096;

	(void)state;
	slot->regions[1] = (struct mw_ring_region){low, tp + 4096};
	slot->regions[2] = (struct mw_ring_region){low, tp - 8};
	slot->regions[3] = (struct mw_ring_region){tp, tp + 4096};
	stub_region_inherit(slot, tp - 64, tp, tp + 12);
	assert_int_equal(slot->regions[0].high, 0);
	assert_int_equal(stub_region_known(slot, tp - 64), (tp + 12) & ~UINT64_C(7));
	assert_int_equal(slot->regions[2].high, 0);
	assert_int_equal(slot->regions[3].high, 0);
}

/* What the break gives back no thread's own stack lies in that runs on it; others may. */
static void test_stack_and_the_break(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	struct mw_ring_region own = slot->regions[0];

	(void)state;
	slot->regions[1] = (struct mw_ring_region){0x10000 | MW_RING_REGION_OWN, 0x20000};
	slot->regions[2] = (struct mw_ring_region){0x20000, 0x30000};
	mw_stub_leave(rig_call(HOOK_SBRK, 4096, 0, 0, 0), BLOCK);
	assert_int_equal(slot->regions[1].high, 0x20000);
	mw_stub_leave(rig_call(HOOK_SBRK, (uint64_t)-4096, 0, 0, 0), BLOCK);
	assert_int_equal(slot->regions[0].high, own.high);
	assert_int_equal(slot->regions[1].high, 0);
	assert_int_equal(slot->regions[2].high, 0);
	/* It is known to be the thread's own no more. */
	slot->regions[0] = (struct mw_ring_region){own.low & ~MW_RING_REGION_OWN, own.high};
	stub_region_forget_others(slot, own.high - 64);
	assert_int_equal(slot->regions[0].high, 0);
}

static void test_slot_that_is_taken_back(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	uint32_t old = slot->ring;

	(void)state;
	pair(1);
	/* memwatch is about to clear it: it is nobody's. */
	slot->tid = MW_RING_NO_TID;
	rig.thread->tid_word[1] = 4712;
	pair(2);
	assert_int_equal(slot->tid, MW_RING_NO_TID);
	/* A tomb is taken, but only after what lies behind it has been looked at. */
	memset(slot, 0, sizeof(*slot));
	slot->tid = MW_RING_NO_TID;
	slot->owner = MW_RING_TOMB;
	assert_int_not_equal(rig_slot()->ring, old);
	assert_ptr_not_equal(rig_slot(), slot);
	pair(3);
	assert_int_equal(slot->owner, MW_RING_TOMB);
	rig.thread->tid_word[1] = 4713;
	memset(rig_slot(), 0, sizeof(*slot));
	pair(4);
	assert_ptr_equal(rig_slot(), slot);
	assert_int_equal(slot->tid, 4713);
}

static void offer(void)
{
	struct mw_ring_control *control = rig.shared.control;

	if (rig.pauses == 7)
		control->rings_offered++;
}

static void test_no_ring(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	unsigned pauses;

	(void)state;
	control->rings_taken = control->rings_offered;
	/* Nobody waits where no more can come. */
	control->rings_all = 1;
	assert_int_equal(rig_enter(rig_stack(1000, 1), HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig_slot()->lost_events, 1);
	assert_int_equal(rig_slot()->inside, 0);
	assert_int_equal(rig.pauses, 0);
	control->rings_all = 0;
	rig.ticks = rig_slot()->limit;
	control->heartbeat = rig.ticks;
	assert_int_equal(rig_enter(rig_stack(1000, 1), HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig_slot()->lost_events, 2);
	pauses = rig.pauses;
	assert_true(pauses > 0);
	/* It does not wait each time. */
	assert_int_equal(rig_enter(rig_stack(1000, 1), HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig.pauses, pauses);
	rig.ticks += 2 * control->wait_limit;
	control->heartbeat = rig.ticks;
	rig.pauses = 0;
	rig.on_pause = offer;
	pair(1);
	assert_int_equal(rig.pauses, 7);
	assert_int_not_equal(rig_slot()->ring, 0);
	rig_expect(MW_RING_ALLOC, BLOCK + 16, 1);
}

static void test_no_slot(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < rig.shared.plan.slots; i++)
		shared_slot(&rig.shared, i)->owner = 0x1000 + i;
	assert_int_equal(rig_enter(rig_stack(1000, 1), HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig.shared.control->lost_events, 1);
}

#define THREADS 4
#define ROUNDS  20000

static uint32_t ids[THREADS];

/* Each thread claims a slot, allocates, gives the slot back as memwatch would, and so on. */
static void *claim_and_release(void *argument)
{
	uint32_t number = *(uint32_t *)argument;
	struct rig_thread *thread = rig_thread_new(100 + number);

	rig_be(thread);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct stub_visit visit = {.control = rig.shared.control, .call = (void *)&thread->stack[1000]};
		struct mw_ring_slot *slot;
		bool fresh;

		slot = stub_slot_find(&visit, &fresh);
		if (!slot || !fresh || slot->owner != rig_tp(thread) || slot->tid != 100 + number)
			abort();
		/* Nobody else has it. */
		if (__atomic_fetch_add(&slot->top, 1, __ATOMIC_SEQ_CST) != 0)
			abort();
		if (stub_slot_find(&visit, &fresh) != slot || fresh)
			abort();
		slot->tid = MW_RING_NO_TID;
		slot->top = 0;
		__atomic_store_n(&slot->owner, MW_RING_TOMB, __ATOMIC_SEQ_CST);
	}
	rig_thread_free(thread);
	return NULL;
}

static void test_claims(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		ids[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, claim_and_release, &ids[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

UNIT_GROUP(ring)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_laps),
		T(test_waits_for_room),
		T(test_waits_without_a_cpu),
		T(test_drops),
		T(test_no_room_in_time),
		T(test_memwatch_is_gone),
		T(test_turned_off_while_waiting),
		T(test_turned_off_while_recording),
		T(test_another_thread_with_the_same_pointer),
		T(test_stack_is_inherited),
		T(test_stack_and_the_break),
		T(test_slot_that_is_taken_back),
		T(test_no_ring),
		T(test_no_slot),
		T(test_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

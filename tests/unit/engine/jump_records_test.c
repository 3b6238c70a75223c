// SPDX-License-Identifier: MIT
/* jump_records_test.c: what each record is told as. */
#include "jump_rig.h"
#include "unit.h"

#include <string.h>

#define NONE MW_RING_STACK_NONE

static const uint64_t frames[] = {0x10001, 0x20002, 0x30003};

/* Ids 1, 2, 3 for stacks of heap, vm, internal: the sink's 0, 1, 2. */
static void begin(struct rig *rig)
{
	rig_thread(rig, 0);
	rig_put_stack(rig, 0, 1, 0, 1, frames, 3, MW_RING_COMPLETE);
	rig_put_stack(rig, 0, 1, MW_RING_VM, 2, frames, 2, MW_RING_BROKEN);
	rig_put_stack(rig, 0, 1, MW_RING_INTERNAL, 3, frames, 1, MW_RING_TRUNCATED);
	rig_drain(rig);
}

static uint64_t bad(struct rig *rig)
{
	return jump_drain_stats(rig->drain)->bad_records;
}

/* One record in, that event out (or, with no time, none). */
static void check(struct rig *rig, enum mw_ring_type type, uint32_t flags, uint32_t stack, uint64_t addr, uint64_t size,
		  struct mw_event event)
{
	size_t before = rig->event_count;

	rig_put(rig, 0, 7, type, flags, stack, addr, size);
	rig_drain(rig);
	assert_int_equal(rig->event_count - before, event.time_ns ? 1 : 0);
	if (event.time_ns)
		rig_expect(rig, before, event);
}

#define EVENT(t, k, a, s, st)                                                                                          \
	(struct mw_event)                                                                                              \
	{                                                                                                              \
		.time_ns = 7, .type = MW_EVENT_##t, .kind = MW_KIND_##k, .addr = (a), .size = (s), .stack = (st)       \
	}
#define NO_EVENT                                                                                                       \
	(struct mw_event)                                                                                              \
	{                                                                                                              \
		.time_ns = 0                                                                                           \
	}

static void test_heap(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	check(rig, MW_RING_ALLOC, 0, 1, 0x5000, 24, EVENT(ALLOC, HEAP, 0x5000, 24, 0));
	check(rig, MW_RING_ALLOC, 0, NONE, 0x5000, 24, EVENT(ALLOC, HEAP, 0x5000, 24, MW_STACK_NONE));
	check(rig, MW_RING_ALLOC, 0, 1, 0, 24, NO_EVENT);
	check(rig, MW_RING_FREE_BLOCK, 0, NONE, 0x5000, UINT64_MAX,
	      EVENT(FREE, HEAP, 0x5000, MW_SIZE_UNKNOWN, MW_STACK_NONE));
	check(rig, MW_RING_FREE_BLOCK, 0, 1, 0x5000, 40, EVENT(FREE, HEAP, 0x5000, 40, 0));
	check(rig, MW_RING_FREE_BLOCK, 0, NONE, 0, 77, NO_EVENT);
	check(rig, MW_RING_REALLOC_BEGIN, 0, 1, 0x5000, 40, EVENT(REALLOC_BEGIN, HEAP, 0x5000, 40, 0));
	check(rig, MW_RING_REALLOC_END, 0, 1, 0x6000, 80, EVENT(REALLOC_END, HEAP, 0x6000, 80, 0));
	check(rig, MW_RING_REALLOC_BEGIN, 0, 1, 0x5000, 40, EVENT(REALLOC_BEGIN, HEAP, 0x5000, 40, 0));
	check(rig, MW_RING_REALLOC_FAIL, 0, 1, 0x5000, 40, EVENT(REALLOC_FAIL, HEAP, 0x5000, 0, MW_STACK_NONE));
	assert_int_equal(bad(rig), 0);
	assert_int_equal(jump_drain_stats(rig->drain)->broken_stacks, 0);
}

static uint64_t label(uint64_t number, uint64_t size)
{
	return number << MW_RING_SIZE_BITS | size;
}

/* Sampled blocks: what the sink does not know is not reported. */
static void test_sampled(void **state)
{
	struct rig *rig = *state;
	struct mw_event event = EVENT(ALLOC, HEAP, 0x6000, 24, 0), nothing = NO_EVENT;

	begin(rig);
	jump_drain_sampling(rig->drain, 2, false);
	event.interval = 2;
	check(rig, MW_RING_ALLOC, 0, 1, 0x6000, label(2, 24), event);
	check(rig, MW_RING_FREE_BLOCK, 0, NONE, RIG_KNOWN, UINT64_MAX,
	      EVENT(FREE, HEAP, RIG_KNOWN, MW_SIZE_UNKNOWN, MW_STACK_NONE));
	check(rig, MW_RING_FREE_BLOCK, 0, NONE, 0x7000, UINT64_MAX, nothing);
	/* Known, and a new one that is recorded, or not, or none. */
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, RIG_KNOWN, UINT64_MAX,
	      EVENT(REALLOC_BEGIN, HEAP, RIG_KNOWN, MW_SIZE_UNKNOWN, MW_STACK_NONE));
	event = EVENT(REALLOC_END, HEAP, 0x6000, 80, 0);
	event.interval = 1;
	check(rig, MW_RING_REALLOC_END, 0, 1, 0x6000, label(1, 80), event);
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, RIG_KNOWN, UINT64_MAX,
	      EVENT(REALLOC_BEGIN, HEAP, RIG_KNOWN, MW_SIZE_UNKNOWN, MW_STACK_NONE));
	event = EVENT(REALLOC_END, HEAP, 0x6000, 80, MW_STACK_NONE);
	event.unsampled = true;
	check(rig, MW_RING_REALLOC_END, 0, NONE, 0x6000, label(MW_RING_UNSAMPLED, 80), event);
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, RIG_KNOWN, UINT64_MAX,
	      EVENT(REALLOC_BEGIN, HEAP, RIG_KNOWN, MW_SIZE_UNKNOWN, MW_STACK_NONE));
	check(rig, MW_RING_REALLOC_END, 0, NONE, 0, label(MW_RING_UNSAMPLED, 0),
	      EVENT(REALLOC_END, HEAP, 0, 0, MW_STACK_NONE));
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, RIG_KNOWN, UINT64_MAX,
	      EVENT(REALLOC_BEGIN, HEAP, RIG_KNOWN, MW_SIZE_UNKNOWN, MW_STACK_NONE));
	check(rig, MW_RING_REALLOC_FAIL, 0, NONE, RIG_KNOWN, 0, EVENT(REALLOC_FAIL, HEAP, RIG_KNOWN, 0, MW_STACK_NONE));
	/* Not known: a new one at most. */
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, 0x7000, UINT64_MAX, nothing);
	event = EVENT(ALLOC, HEAP, 0x6000, 80, 0);
	event.interval = 1;
	check(rig, MW_RING_REALLOC_END, 0, 1, 0x6000, label(1, 80), event);
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, 0x7000, UINT64_MAX, nothing);
	check(rig, MW_RING_REALLOC_END, 0, NONE, 0x7000, label(MW_RING_UNSAMPLED, 80), nothing);
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, 0x7000, UINT64_MAX, nothing);
	check(rig, MW_RING_REALLOC_END, 0, NONE, 0, label(1, 0), nothing);
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, 0x7000, UINT64_MAX, nothing);
	check(rig, MW_RING_REALLOC_FAIL, 0, NONE, 0x7000, 0, nothing);
	assert_int_equal(bad(rig), 0);
	/* What never ended has failed, for the sink, where it has begun. */
	check(rig, MW_RING_REALLOC_BEGIN, 0, NONE, 0x7000, UINT64_MAX, nothing);
	assert_null(jump_drain_finish(rig->drain));
	assert_int_equal(rig->events[rig->event_count - 1].type, MW_EVENT_ALLOC);
}

/* Labels that no interval has. */
static void test_sampled_nonsense(void **state)
{
	struct rig *rig = *state;
	struct mw_event nothing = NO_EVENT;

	begin(rig);
	jump_drain_sampling(rig->drain, 2, false);
	check(rig, MW_RING_ALLOC, 0, 1, 0x6000, 24, nothing);
	check(rig, MW_RING_ALLOC, 0, 1, 0x6000, label(3, 24), nothing);
	check(rig, MW_RING_ALLOC, 0, 1, 0x6000, label(MW_RING_UNSAMPLED, 24), nothing);
	check(rig, MW_RING_REALLOC_END, 0, 1, 0x6000, label(1, 24), nothing);
	check(rig, MW_RING_REALLOC_FAIL, 0, 1, 0x6000, 0, nothing);
	assert_int_equal(bad(rig), 5);
}

static void test_vm(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	check(rig, MW_RING_MAP, MW_RING_VM, 2, 0x10000, 1, EVENT(MAP, VM, 0x10000, 4096, 1));
	check(rig, MW_RING_MAP, MW_RING_INTERNAL, 3, 0x10000, 4096, EVENT(MAP, VM_INTERNAL, 0x10000, 4096, 2));
	check(rig, MW_RING_MAP, MW_RING_VM, 2, 0x10000, 0, NO_EVENT);
	check(rig, MW_RING_UNMAP_BEGIN, MW_RING_VM, 2, 0x10000, 5000, EVENT(UNMAP_BEGIN, VM, 0x10000, 8192, 1));
	check(rig, MW_RING_UNMAP_END, MW_RING_VM, 2, 0x10000, 5000, EVENT(UNMAP_END, VM, 0x10000, 8192, 1));
	check(rig, MW_RING_UNMAP_BEGIN, MW_RING_VM, 2, 0x10000, 5000, EVENT(UNMAP_BEGIN, VM, 0x10000, 8192, 1));
	check(rig, MW_RING_UNMAP_FAIL, MW_RING_VM, 2, 0x10000, 5000,
	      EVENT(UNMAP_FAIL, VM, 0x10000, 8192, MW_STACK_NONE));
	check(rig, MW_RING_REMAP_BEGIN, MW_RING_VM, 2, 0x10000, 1, EVENT(REMAP_BEGIN, VM, 0x10000, 4096, 1));
	check(rig, MW_RING_REMAP_END, MW_RING_VM, 2, 0x20000, 2, EVENT(REMAP_END, VM, 0x20000, 4096, 1));
	check(rig, MW_RING_REMAP_BEGIN, MW_RING_VM, 2, 0x10000, 1, EVENT(REMAP_BEGIN, VM, 0x10000, 4096, 1));
	check(rig, MW_RING_REMAP_FAIL, MW_RING_VM, 2, 0x10000, 2, EVENT(REMAP_FAIL, VM, 0x10000, 4096, MW_STACK_NONE));
	assert_int_equal(bad(rig), 0);
	/* One a call: at a BEGIN, not at its END. */
	assert_int_equal(jump_drain_stats(rig->drain)->broken_stacks, 6);
}

static void test_break(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	/* Where it was is not known yet. */
	check(rig, MW_RING_BRK, MW_RING_VM, 2, 0x100001, 0, NO_EVENT);
	check(rig, MW_RING_BRK, MW_RING_VM, 2, 0x102001, 0, EVENT(MAP, VM, 0x101000, 0x2000, 1));
	check(rig, MW_RING_BRK, MW_RING_VM, 2, 0x102800, 0, NO_EVENT);
	check(rig, MW_RING_SBRK, MW_RING_VM, 2, 0x102800, 0x300, EVENT(MAP, VM, 0x102800, 0x300, 1));
	check(rig, MW_RING_SBRK, MW_RING_VM, 2, 0x102b00, 0, NO_EVENT);
	check(rig, MW_RING_BRK, MW_RING_INTERNAL, 3, 0x104000, 0, EVENT(MAP, VM_INTERNAL, 0x103000, 0x1000, 2));
	rig_put(rig, 0, 8, MW_RING_BRK, MW_RING_VM, 2, 0x103000, 0);
	rig_put(rig, 0, 9, MW_RING_SBRK, MW_RING_VM, 2, 0x103000, (uint64_t)-0x10);
	rig->event_count = 0;
	rig_drain(rig);
	assert_int_equal(rig->event_count, 4);
	rig_expect(rig, 0, (struct mw_event){8, 0x103000, 0x1000, 1, 0, MW_EVENT_UNMAP_BEGIN, MW_KIND_VM, 0, false});
	rig_expect(rig, 1, (struct mw_event){8, 0x103000, 0x1000, 1, 0, MW_EVENT_UNMAP_END, MW_KIND_VM, 0, false});
	rig_expect(rig, 2, (struct mw_event){9, 0x102ff0, 0x10, 1, 0, MW_EVENT_UNMAP_BEGIN, MW_KIND_VM, 0, false});
	rig_expect(rig, 3, (struct mw_event){9, 0x102ff0, 0x10, 1, 0, MW_EVENT_UNMAP_END, MW_KIND_VM, 0, false});
	rig->drain->break_end = 0x200000;
	rig_put(rig, 0, 10, MW_RING_BRK, MW_RING_VM, 2, 0x201000, 0);
	rig_drain(rig);
	rig_expect(rig, 4, (struct mw_event){10, 0x200000, 0x1000, 1, 0, MW_EVENT_MAP, MW_KIND_VM, 0, false});
}

static void test_stacks(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	assert_int_equal(rig->stack_count, 3);
	assert_int_equal(rig->stacks[0].count, 3);
	assert_int_equal(rig->stacks[0].hook, 1);
	assert_int_equal(rig->stacks[0].kind, MW_KIND_HEAP);
	assert_int_equal(rig->stacks[0].cut, MW_STACK_COMPLETE);
	assert_int_equal(rig->stacks[0].frames[2].addr, 0x30003);
	assert_int_equal(rig->stacks[0].frames[2].module, 3);
	assert_int_equal(rig->stacks[1].kind, MW_KIND_VM);
	assert_int_equal(rig->stacks[1].cut, MW_STACK_BROKEN);
	assert_int_equal(rig->stacks[2].kind, MW_KIND_VM_INTERNAL);
	assert_int_equal(rig->stacks[2].cut, MW_STACK_TRUNCATED);
	/* A number that nobody has said anything of, and one of a stack of another kind: no stack, and counted. */
	check(rig, MW_RING_ALLOC, 0, 99, 0x5000, 24, EVENT(ALLOC, HEAP, 0x5000, 24, MW_STACK_NONE));
	check(rig, MW_RING_ALLOC, 0, 2, 0x5000, 24, EVENT(ALLOC, HEAP, 0x5000, 24, MW_STACK_NONE));
	assert_int_equal(jump_drain_stats(rig->drain)->lost_stacks, 2);
	rig_slot(rig, 0)->lost_stacks = 5;
	assert_int_equal(jump_drain_stats(rig->drain)->lost_stacks, 7);
}

static void test_slow(void **state)
{
	struct rig *rig = *state;
	struct {
		struct mw_ring_slow slow;
		uint8_t bytes[37];
	} __attribute__((packed)) record = {.slow = {.pc = 0x10001, .start = 0x7ff0, .gpr[7] = 0x8000}};

	for (size_t i = 0; i < sizeof(record.bytes); i++)
		record.bytes[i] = (uint8_t)(i + 1);
	begin(rig);
	rig->walked[0] = (struct mw_raw_frame){0x10001, 9};
	rig->walked[1] = (struct mw_raw_frame){0x20001, 8};
	rig->walked_count = 2;
	rig->walked_cut = MW_STACK_BROKEN;
	rig_put_slow(rig, 0, 5, MW_RING_VM, 4, &record, sizeof(record));
	check(rig, MW_RING_MAP, MW_RING_VM, 4, 0x10000, 4096, EVENT(MAP, VM, 0x10000, 4096, 3));
	assert_memory_equal(&rig->slow, &record.slow, sizeof(record.slow));
	assert_int_equal(rig->slow_size, sizeof(record.bytes));
	assert_memory_equal(rig->slow_bytes, record.bytes, sizeof(record.bytes));
	assert_int_equal(rig->stacks[3].count, 2);
	assert_int_equal(rig->stacks[3].frames[1].module, 8);
	assert_int_equal(rig->stacks[3].cut, MW_STACK_BROKEN);
	assert_int_equal(rig->stacks[3].kind, MW_KIND_VM);
	assert_int_equal(bad(rig), 0);
}

static void begin_two(struct rig *rig)
{
	begin(rig);
	rig_thread(rig, 1);
	rig_drain(rig);
	rig->event_count = 0;
}

/* Another thread's stack, whose record has a later time than an event that refers to it. */
static void test_stacks_from_elsewhere(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_slow slow = {.pc = 0x10001};
	uint64_t unit;

	begin_two(rig);
	rig->walked[0] = (struct mw_raw_frame){0x10001, 9};
	rig->walked_count = 1;
	rig->walked_cut = MW_STACK_TRUNCATED;
	rig_put(rig, 0, 10, MW_RING_ALLOC, 0, 50, 0x5000, 24);
	rig_put(rig, 0, 11, MW_RING_ALLOC, 0, 51, 0x6000, 25);
	rig_put(rig, 0, 12, MW_RING_ALLOC, 0, 52, 0x7000, 26);
	/* Others lie before it, of more units than one. */
	rig_put_stack(rig, 1, 15, MW_RING_VM, 49, frames, 2, MW_RING_COMPLETE);
	unit = rig_reserve(rig, 1, 2);
	rig_write(rig, 1, unit, 15, MW_RING_NOTHING, 0, NONE, 0, 2);
	rig_put_stack(rig, 1, 16, 0, 50, frames, 3, MW_RING_COMPLETE);
	rig_put_slow(rig, 1, 17, 0, 51, &slow, sizeof(slow));
	/* 52 is of another kind, and what follows is not marked. */
	rig_put_stack(rig, 1, 18, MW_RING_VM, 52, frames, 2, MW_RING_COMPLETE);
	rig_drain(rig);
	assert_int_equal(rig->event_count, 3);
	assert_in_range(rig->events[0].stack, 3, rig->stack_count - 1);
	assert_int_equal(rig->stacks[rig->events[0].stack].count, 3);
	assert_int_equal(rig->stacks[rig->events[0].stack].frames[2].addr, 0x30003);
	assert_int_equal(rig->stacks[rig->events[0].stack].kind, MW_KIND_HEAP);
	assert_in_range(rig->events[1].stack, 3, rig->stack_count - 1);
	assert_int_equal(rig->stacks[rig->events[1].stack].frames[0].module, 9);
	assert_int_equal(rig->stacks[rig->events[1].stack].cut, MW_STACK_TRUNCATED);
	assert_int_equal(rig->events[2].stack, MW_STACK_NONE);
	assert_int_equal(jump_drain_stats(rig->drain)->lost_stacks, 1);
	assert_int_equal(bad(rig), 0);
}

/* Stacks that are held back keep the modules that were there before some went. */
static void test_stacks_of_modules_that_go(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_slow slow = {.pc = 0x10001};
	uint64_t unit;

	begin_two(rig);
	rig->walked[0] = (struct mw_raw_frame){0x10001, 9};
	rig->walked_count = 1;
	unit = rig_reserve(rig, 1, 1);
	rig_put_stack(rig, 0, 10, MW_RING_COMPARE, 50, frames, 3, MW_RING_COMPLETE);
	rig_put_slow(rig, 0, 10, MW_RING_COMPARE, 50, &slow, sizeof(slow));
	rig_put(rig, 0, 10, MW_RING_ALLOC, 0, 50, 0x5000, 24);
	rig_put_slow(rig, 0, 11, 0, 51, &slow, sizeof(slow));
	rig_put(rig, 0, 11, MW_RING_ALLOC, 0, 51, 0x6000, 25);
	rig_drain(rig);
	assert_int_equal(rig->event_count, 0);
	assert_null(jump_drain_stacks(rig->drain));
	assert_int_equal(rig->stack_count, 5);
	rig->unmapped = true;
	rig->walked_count = 0;
	rig_write(rig, 1, unit, 9, MW_RING_FREE, 0, NONE, 0x1000, 0);
	rig_drain(rig);
	assert_int_equal(rig->event_count, 3);
	assert_int_equal(rig->stack_count, 5);
	assert_int_equal(rig->stacks[rig->events[1].stack].frames[2].module, 3);
	assert_int_equal(rig->stacks[rig->events[2].stack].frames[0].module, 9);
	assert_int_equal(jump_drain_stats(rig->drain)->compared, 1);
	assert_null(jump_drain_stacks(rig->drain));
	assert_int_equal(rig->stack_count, 5);
	assert_int_equal(bad(rig), 0);
}

/* What is invalid is not taken for a stack: a hook that is none, more frames than there can be. */
static void test_nonsense_from_elsewhere(void **state)
{
	struct rig *rig = *state;
	uint64_t unit;

	begin(rig);
	rig_thread(rig, 1);
	rig_drain(rig);
	rig->drain->hooks = 2;
	rig_put(rig, 0, 10, MW_RING_ALLOC, 0, 50, 0x5000, 24);
	unit = rig_reserve(rig, 1, 1);
	rig_write(rig, 1, unit, 15, MW_RING_STACK, 0, NONE, 50, RIG_DEPTH + 1);
	rig_round(rig);
	rig->drain->hooks = 1;
	rig_put(rig, 0, 20, MW_RING_ALLOC, 0, 60, 0x5000, 24);
	rig_put_stack(rig, 1, 25, 0, 60, frames, 3, MW_RING_COMPLETE);
	rig_round(rig);
	assert_int_equal(rig->stack_count, 3);
	assert_int_equal(jump_drain_stats(rig->drain)->lost_stacks, 1);
	assert_true(bad(rig) > 0);
}

static const struct mw_script_ref refs[] = {{0x7000, 4, 1}, {0x8001, 6, 2}};

/* An interpreter's frames come before the stack that they belong to, and no other has them. */
static void test_script(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_slow slow = {.pc = 0x10001};

	begin(rig);
	rig->walked[0] = (struct mw_raw_frame){0x10001, 9};
	rig->walked_count = 1;
	rig_put_script(rig, 0, 5, 4, refs, 2);
	rig_put_stack(rig, 0, 5, 0, 4, frames, 3, MW_RING_COMPLETE);
	rig_put_stack(rig, 0, 5, 0, 5, frames, 2, MW_RING_COMPLETE);
	rig_put_script(rig, 0, 5, 6, refs, 1);
	rig_put_slow(rig, 0, 5, 0, 6, &slow, sizeof(slow));
	rig_drain(rig);
	assert_int_equal(rig->stack_count, 6);
	assert_int_equal(rig->stacks[3].count, 5);
	assert_int_equal(rig->stacks[3].frames[0].module, 77);
	assert_int_equal(rig->stacks[3].frames[1].addr, 6);
	assert_int_equal(rig->stacks[3].frames[4].addr, 0x30003);
	assert_int_equal(rig->stacks[4].count, 2);
	assert_int_equal(rig->stacks[4].frames[0].addr, 0x10001);
	assert_int_equal(rig->stacks[5].count, 2);
	assert_int_equal(rig->stacks[5].frames[1].module, 9);
	assert_int_equal(rig->ref_count, 1);
	assert_memory_equal(rig->refs, refs, sizeof(refs[0]));
	assert_int_equal(bad(rig), 0);
}

/* A stack of another thread that is looked for is found by its interpreter's frames. */
static void test_script_from_elsewhere(void **state)
{
	struct rig *rig = *state;

	begin_two(rig);
	rig_put(rig, 0, 10, MW_RING_ALLOC, 0, 50, 0x5000, 24);
	rig_put_script(rig, 1, 15, 50, refs, 2);
	rig_put_stack(rig, 1, 15, 0, 50, frames, 3, MW_RING_COMPLETE);
	rig_drain(rig);
	assert_int_equal(rig->event_count, 1);
	assert_int_equal(rig->stacks[rig->events[0].stack].count, 5);
	assert_int_equal(rig->stacks[rig->events[0].stack].frames[0].module, 77);
	assert_int_equal(bad(rig), 0);
}

/* More frames than there can be; no stack behind them; one of another number. */
static void test_script_nonsense(void **state)
{
	struct rig *rig = *state;
	uint64_t unit;

	begin(rig);
	unit = rig_reserve(rig, 0, 1);
	rig_write(rig, 0, unit, 5, MW_RING_SCRIPT, 0, NONE, 4, RIG_SCRIPT + 1);
	rig_put(rig, 0, 5, MW_RING_ALLOC, 0, 1, 0x4000, 24);
	rig_drain(rig);
	assert_int_equal(bad(rig), 1);
	rig->event_count = 0;
	rig_put_script(rig, 0, 5, 5, refs, 2);
	rig_put(rig, 0, 6, MW_RING_ALLOC, 0, 1, 0x5000, 24);
	rig_drain(rig);
	assert_int_equal(bad(rig), 2);
	assert_int_equal(rig->event_count, 1);
	rig_put_script(rig, 0, 7, 6, refs, 2);
	rig_put_stack(rig, 0, 7, 0, 7, frames, 3, MW_RING_COMPLETE);
	rig_drain(rig);
	assert_int_equal(bad(rig), 3);
	assert_int_equal(rig->ref_count, 0);
}

/* A frame of HotSpot's interpreter is kept as three words, and one of compiled code may stand for several. */
static void test_java(void **state)
{
	const mw_addr words[] = {0x10001, 0x40001 | MW_INTERPRETED_FRAME, 0x5a5a, 0x2222, 0x7fff0001, 0x20002};
	struct rig *rig = *state;
	const struct rig_stack *stack;

	begin(rig);
	rig_put_stack(rig, 0, 5, 0, 4, words, 6, MW_RING_COMPLETE);
	rig_put_stack(rig, 0, 5, 0, 5, words, 3, MW_RING_COMPLETE);
	rig_drain(rig);
	assert_int_equal(rig->stack_count, 5);
	stack = &rig->stacks[3];
	assert_int_equal(stack->count, 5);
	assert_int_equal(stack->cut, MW_STACK_COMPLETE);
	assert_int_equal(stack->frames[0].addr, 0x10001);
	assert_int_equal(stack->frames[1].module, 88);
	assert_int_equal(stack->frames[1].addr, 0x2222);
	assert_int_equal(rig->interpreted.method, 0x5a5a);
	assert_true(rig->interpreted.is);
	assert_int_equal(stack->frames[2].module, 99);
	assert_int_equal(stack->frames[3].module, 99);
	assert_int_equal(stack->frames[3].addr, 1);
	assert_int_equal(stack->frames[4].addr, 0x20002);
	/* Words of one are missing. */
	assert_int_equal(rig->stacks[4].count, 1);
	assert_int_equal(rig->stacks[4].cut, MW_STACK_TRUNCATED);
	assert_int_equal(bad(rig), 0);
}

static void test_compare(void **state)
{
	struct rig *rig = *state;
	struct mw_ring_slow slow = {.pc = 0x10001};

	begin(rig);
	for (int i = 0; i < 3; i++)
		rig->walked[i] = (struct mw_raw_frame){frames[i], 0};
	rig->walked_count = 3;
	rig->walked_cut = MW_STACK_COMPLETE;
	rig_put_stack(rig, 0, 5, MW_RING_COMPARE, 4, frames, 3, MW_RING_COMPLETE);
	rig_put_slow(rig, 0, 5, MW_RING_COMPARE, 4, &slow, sizeof(slow));
	rig_drain(rig);
	assert_int_equal(jump_drain_stats(rig->drain)->compared, 1);
	assert_int_equal(jump_drain_stats(rig->drain)->differing, 0);
	assert_int_equal(rig->stack_count, 4);
	/* Another end, another frame, fewer frames. */
	rig->walked_cut = MW_STACK_BROKEN;
	rig_put_stack(rig, 0, 5, MW_RING_COMPARE, 5, frames, 3, MW_RING_COMPLETE);
	rig_put_slow(rig, 0, 5, MW_RING_COMPARE, 5, &slow, sizeof(slow));
	rig_drain(rig);
	assert_int_equal(jump_drain_stats(rig->drain)->differing, 1);
	rig->walked_cut = MW_STACK_COMPLETE;
	rig->walked[1].addr++;
	rig_put_stack(rig, 0, 5, MW_RING_COMPARE, 6, frames, 3, MW_RING_COMPLETE);
	rig_put_slow(rig, 0, 5, MW_RING_COMPARE, 6, &slow, sizeof(slow));
	rig_drain(rig);
	assert_int_equal(jump_drain_stats(rig->drain)->differing, 2);
	rig_put_stack(rig, 0, 5, MW_RING_COMPARE, 7, frames, 1, MW_RING_COMPLETE);
	rig_put_slow(rig, 0, 5, MW_RING_COMPARE, 7, &slow, sizeof(slow));
	/* A walk that belongs to no stack is not compared with any. */
	rig_put_slow(rig, 0, 5, MW_RING_COMPARE, 7, &slow, sizeof(slow));
	rig_drain(rig);
	assert_int_equal(jump_drain_stats(rig->drain)->compared, 4);
	assert_int_equal(jump_drain_stats(rig->drain)->differing, 3);
	assert_int_equal(rig->drain->difference_count, 3);
	assert_non_null(strstr(rig->drain->differences[1], "stack 6, hook 1, from frame 1 on"));
	assert_non_null(strstr(rig->drain->differences[1], "rows, 3 frames, complete: 10001 20002 30003\n"));
	assert_non_null(strstr(rig->drain->differences[1], "walk, 3 frames, complete: 10001 20003 30003\n"));
	assert_int_equal(bad(rig), 0);
}

static void test_threads(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	assert_int_equal(rig->thread_count, 1);
	assert_int_equal(rig->threads[0].pid, RIG_PID);
	assert_true(rig->threads[0].fresh);
	assert_string_equal(rig->threads[0].name, "worker");
	/* The same again is no new thread; another on the same stack is. What the first was at has failed. It may be
	 * told in the call of a helper, whose number is no hook's. */
	rig->drain->hooks = 1;
	rig_put(rig, 0, 7, MW_RING_THREAD, 0, NONE, RIG_TID, 0);
	rig_drain(rig);
	assert_int_equal(bad(rig), 0);
	rig->drain->hooks = 2;
	rig_put(rig, 0, 7, MW_RING_REALLOC_BEGIN, 0, 1, 0x5000, 1);
	rig_put(rig, 0, 7, MW_RING_THREAD, 0, NONE, RIG_TID + 50, 0);
	rig_put(rig, 0, 7, MW_RING_ALLOC, 0, 1, 0x6000, 1);
	rig_drain(rig);
	assert_int_equal(rig->thread_count, 3);
	assert_false(rig->threads[1].fresh);
	assert_true(rig->threads[2].fresh);
	assert_int_equal(rig->threads[2].pid, RIG_PID + 50);
	assert_int_equal(rig->event_count, 3);
	rig_expect(rig, 1, EVENT(REALLOC_FAIL, HEAP, 0x5000, 0, MW_STACK_NONE));
	assert_int_equal(rig->events[2].thread, 2);
	/* Names anew, of those that live. */
	rig->name = "renamed";
	rig_thread(rig, 1);
	rig->dead[RIG_TID + 1] = true;
	rig_drain(rig);
	assert_null(jump_drain_rename(rig->drain));
	assert_int_equal(rig->thread_count, 5);
	assert_int_equal(rig->threads[4].pid, RIG_PID + 50);
	assert_false(rig->threads[4].fresh);
	assert_string_equal(rig->threads[4].name, "renamed");
	/* Those of an ended process keep theirs. */
	rig->ended = true;
	assert_null(jump_drain_rename(rig->drain));
	assert_int_equal(rig->thread_count, 5);
}

/* Whose ring it is can be told from the slot, too. */
static void test_no_thread(void **state)
{
	struct rig *rig = *state;

	rig_thread(rig, 0);
	rig_write(rig, 0, 0, 1, MW_RING_ALLOC, 0, NONE, 0x5000, 1);
	assert_int_equal(rig_drain(rig), 1);
	assert_int_equal(rig->thread_count, 1);
	assert_int_equal(rig->threads[0].pid, RIG_PID);
}

static void test_open_calls(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	/* An END that ends nothing. */
	check(rig, MW_RING_REALLOC_END, 0, 1, 0x6000, 1, NO_EVENT);
	check(rig, MW_RING_UNMAP_FAIL, MW_RING_VM, 2, 0x6000, 1, NO_EVENT);
	assert_int_equal(bad(rig), 2);
	/* One of another family left open inside does not hide the one that ends. */
	rig_put(rig, 0, 8, MW_RING_UNMAP_BEGIN, MW_RING_VM, 2, 0x10000, 4096);
	rig_put(rig, 0, 8, MW_RING_REALLOC_BEGIN, 0, 1, 0x5000, 1);
	rig_put(rig, 0, 8, MW_RING_UNMAP_END, MW_RING_VM, 2, 0x10000, 4096);
	rig_put(rig, 0, 8, MW_RING_REMAP_BEGIN, MW_RING_INTERNAL, 3, 0x20000, 4096);
	assert_int_equal(rig_drain(rig), 4);
	/* What is open at the end has failed, the newest first. */
	assert_null(jump_drain_finish(rig->drain));
	assert_int_equal(rig->event_count, 6);
	rig_expect(rig, 4,
		   (struct mw_event){8, 0x20000, 4096, MW_STACK_NONE, 0, MW_EVENT_REMAP_FAIL, MW_KIND_VM_INTERNAL, 0,
				     false});
	rig_expect(rig, 5,
		   (struct mw_event){8, 0x5000, 0, MW_STACK_NONE, 0, MW_EVENT_REALLOC_FAIL, MW_KIND_HEAP, 0, false});
	assert_int_equal(bad(rig), 2);
}

/* No depth of calls makes memwatch grow. */
static void test_too_many_open(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	for (int i = 0; i < 100; i++) {
		rig_put(rig, 0, 8, MW_RING_REALLOC_BEGIN, 0, 1, 0x5000, 1);
		rig_drain(rig);
	}
	assert_int_equal(rig->event_count, 64);
	assert_int_equal(bad(rig), 36);
	assert_null(jump_drain_finish(rig->drain));
	assert_int_equal(rig->event_count, 128);
}

/* What is invalid is counted, and what lies behind it still read. */
static void test_senseless(void **state)
{
	struct rig *rig = *state;
	uint64_t unit, ahead = jump_clock_tick() - rig->clock.start_tick + UINT64_C(100000000000);

	begin(rig);
	rig->drain->hooks = 1;
	check(rig, MW_RING_ALLOC, 0, 1, 0x5000, 1, NO_EVENT);
	rig->drain->hooks = 2;
	check(rig, MW_RING_ALLOC, 0, 1, 0x5000, 1, EVENT(ALLOC, HEAP, 0x5000, 1, 0));
	check(rig, MW_RING_TYPES, 0, 1, 0x5000, 1, NO_EVENT);
	check(rig, MW_RING_ALLOC, 0, 1, 0x5000, 1, EVENT(ALLOC, HEAP, 0x5000, 1, 0));
	check(rig, MW_RING_ALLOC, MW_RING_VM, 2, 0x5000, 1, NO_EVENT);
	check(rig, MW_RING_MAP, 0, 1, 0x5000, 1, NO_EVENT);
	check(rig, MW_RING_BRK, 0, 1, 0x5000, 1, NO_EVENT);
	check(rig, MW_RING_NOTHING, 0, 1, 0x5000, 2, NO_EVENT);
	check(rig, MW_RING_NOTHING, 0, 1, 0x5000, 0, NO_EVENT);
	check(rig, MW_RING_NOTHING, 0, 1, 0x5000, UINT64_MAX, NO_EVENT);
	check(rig, MW_RING_STACK, 0, 1, 0x5000, 1, NO_EVENT);
	check(rig, MW_RING_STACK, 0, 1, 0x5000, RIG_DEPTH + 1, NO_EVENT);
	check(rig, MW_RING_STACK, 0, 1, 0x5000, UINT64_C(3) << 32, NO_EVENT);
	check(rig, MW_RING_SLOW, 0, 1, 0x5000, sizeof(struct mw_ring_slow) - 1, NO_EVENT);
	check(rig, MW_RING_SLOW, 0, 1, 0x5000, UINT64_MAX, NO_EVENT);
	check(rig, MW_RING_THREAD, 0, 1, 0, 0, NO_EVENT);
	check(rig, MW_RING_THREAD, 0, 1, UINT64_C(1) << 32, 0, NO_EVENT);
	/* Senseless ones in a row are one mishap. */
	assert_int_equal(bad(rig), 3);
	check(rig, MW_RING_ALLOC, 0, 1, 0x5000, 1, EVENT(ALLOC, HEAP, 0x5000, 1, 0));
	/* A time that is far in the future would never come. */
	rig_put(rig, 0, ahead, MW_RING_ALLOC, 0, 1, 0x5000, 1);
	check(rig, MW_RING_ALLOC, 0, 1, 0x6000, 1, EVENT(ALLOC, HEAP, 0x6000, 1, 0));
	assert_int_equal(bad(rig), 4);
	/* Units behind a senseless record are passed over. */
	unit = rig_reserve(rig, 0, 5);
	rig_write(rig, 0, unit, 7, MW_RING_STACK, 0, NONE, 9, 1000);
	check(rig, MW_RING_ALLOC, 0, 1, 0x7000, 1, EVENT(ALLOC, HEAP, 0x7000, 1, 0));
	assert_int_equal(bad(rig), 5);
	rig_put(rig, 0, 8, MW_RING_MAP, MW_RING_VM, NONE, 0x8000, UINT64_MAX);
	assert_int_equal(rig_drain(rig), 0);
}

UNIT_GROUP(jump_records)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_heap, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_sampled, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_sampled_nonsense, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_vm, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_break, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stacks, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_slow, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stacks_from_elsewhere, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stacks_of_modules_that_go, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_nonsense_from_elsewhere, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_java, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_script, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_script_from_elsewhere, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_script_nonsense, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_compare, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_threads, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_no_thread, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_open_calls, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_too_many_open, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_senseless, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* Calls inside calls, signal handlers, and those that never come back. */
#include "rig.h"
#include "unit.h"

#include <string.h>

#define BLOCK 0x7f0000001000u
#define OTHER 0x7f0000002000u
#define OUTER (STACK_WORDS - 200)

/* A call whose frames lead to the original of the call at `outer`: `count` frames between, then our return address. */
static struct mw_stub_call *inner(unsigned outer, const uint64_t *pcs, unsigned count)
{
	uint64_t all[32];

	memcpy(all, pcs, count * sizeof(*pcs));
	all[count] = (uint64_t)(uintptr_t)mw_stub_returned;
	return rig_frames(outer - 10 - 2 * count, all, count + 1);
}

static struct mw_stub_call *outer_call(uint32_t hook)
{
	struct mw_stub_call *call = rig_stack(OUTER, 3);

	assert_int_equal(rig_enter(call, hook, BLOCK, 0, 0, 0), MW_STUB_WRAP);
	while (rig_record())
		;
	return call;
}

static const uint64_t plain[] = {CODE_SP + 0x41, CODE_SP + 0x42};
static const uint64_t handler[] = {CODE_SP + 0x41, CODE_SIGNAL + 0x42};

static void test_heap_in_heap(void **state)
{
	struct mw_stub_call *outer = outer_call(HOOK_CALLOC);

	(void)state;
	assert_int_equal(rig_enter(inner(OUTER, plain, 2), HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig_enter(inner(OUTER, plain, 2), HOOK_FREE, OTHER, 0, 0, 0), MW_STUB_PASS);
	/* A jump from one to the other: it returns to us at once. */
	assert_int_equal(rig_enter(inner(OUTER, plain, 0), HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
	mw_stub_leave(outer, BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, 0);
	assert_int_equal(rig_slot()->top, 0);
}

static void test_mapping_in_heap(void **state)
{
	struct mw_stub_call *outer = outer_call(HOOK_MALLOC), *call = inner(OUTER, plain, 2);

	(void)state;
	assert_int_equal(rig_enter(call, HOOK_MMAP, 0, 4096, 0, 0), MW_STUB_WRAP);
	/* mmap in mmap: counted once. */
	assert_int_equal(rig_enter(inner(OUTER - 14, plain, 2), HOOK_MMAP, 0, 4096, 0, 0), MW_STUB_PASS);
	mw_stub_leave(call, OTHER);
	assert_int_equal(rig_event()->flags, MW_RING_INTERNAL);
	rig_expect_none();
	mw_stub_leave(outer, BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, BLOCK);
}

static void test_in_free(void **state)
{
	struct mw_stub_call *outer, *call;

	(void)state;
	mw_stub_leave(rig_call(HOOK_MALLOC, 1, 0, 0, 0), OTHER);
	outer = outer_call(HOOK_FREE);
	call = inner(OUTER, plain, 2);
	/* What it makes of the block is not told, but for a block that is known. */
	assert_int_equal(rig_enter(call, HOOK_FREE, BLOCK + 16, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
	assert_int_equal(rig_enter(call, HOOK_FREE, OTHER, 0, 0, 0), MW_STUB_PASS);
	rig_expect(MW_RING_FREE_BLOCK, OTHER, UINT64_MAX);
	assert_int_equal(rig_enter(call, HOOK_MUNMAP, OTHER, 4096, 0, 0), MW_STUB_WRAP);
	assert_int_equal(rig_event()->flags, MW_RING_INTERNAL);
	mw_stub_leave(call, 0);
	rig_expect(MW_RING_UNMAP_END, OTHER, 4096);
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 7, 0, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, 7);
	mw_stub_leave(outer, 0);
	rig_expect_none();
}

static void test_untracked(void **state)
{
	struct mw_stub_call *outer = outer_call(HOOK_SILENT), *call = inner(OUTER, plain, 2);

	(void)state;
	assert_int_equal(rig_enter(call, HOOK_MMAP, 0, 4096, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, OTHER);
	assert_int_equal(rig_event()->flags, MW_RING_INTERNAL);
	mw_stub_leave(outer, BLOCK);
	rig_expect_none();
}

static void test_signal_between_counts(void **state)
{
	struct mw_stub_call *outer = outer_call(HOOK_MALLOC), *call = inner(OUTER, handler, 2);
	struct shared_record *record;

	(void)state;
	rig_enter(call, HOOK_MALLOC, 3, 0, 0, 0);
	mw_stub_leave(call, OTHER);
	record = rig_event();
	assert_int_equal(record->type, MW_RING_SLOW);
	rig_expect(MW_RING_ALLOC, OTHER, 3);
	mw_stub_leave(outer, BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, BLOCK);
	rig_expect_none();
	assert_int_equal(rig_slot()->top, 0);
}

static void test_exceptions_outlive(void **state)
{
	struct mw_stub_call *outer = outer_call(HOOK_MALLOC), *call = inner(OUTER, plain, 2);

	(void)state;
	mw_stub_context.exception_count = 1;
	mw_stub_context.exceptions[0] = (struct mw_stub_range){CODE_SP + 0x41, CODE_SP + 0x42};
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 3, 0, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, OTHER);
	rig_expect(MW_RING_ALLOC, OTHER, 3);
	mw_stub_context.exceptions[0] = (struct mw_stub_range){CODE_SP + 0x42, CODE_SP + 0x43};
	/* … or does not: operator new(nothrow) frees it. What else the function frees is its own. */
	assert_int_equal(rig_enter(call, HOOK_FREE, OTHER, 0, 0, 0), MW_STUB_PASS);
	rig_expect(MW_RING_FREE_BLOCK, OTHER, UINT64_MAX);
	assert_int_equal(rig_enter(call, HOOK_FREE, OTHER, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
	mw_stub_leave(outer, BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, BLOCK);
}

/* longjmp, an exception: the call is no more, what comes next is around nothing. */
static void test_jumped_over(void **state)
{
	struct mw_stub_call *outer, *call;

	(void)state;
	for (unsigned at = OUTER - 300; at < STACK_WORDS - 30; at += 50) {
		outer = rig_stack(OUTER, 3);
		assert_int_equal(rig_enter(outer, HOOK_MALLOC, 9, 0, 0, 0), MW_STUB_WRAP);
		call = rig_stack(at, 3);
		assert_int_equal(rig_enter(call, HOOK_MALLOC, 3, 0, 0, 0), MW_STUB_WRAP);
		mw_stub_leave(call, OTHER);
		rig_expect(MW_RING_ALLOC, OTHER, 3);
		rig_expect_none();
		assert_int_equal(rig_slot()->top, 0);
	}
}

/* … and what it had begun has failed. */
static void test_jumped_over_begun(void **state)
{
	struct mw_stub_call *call = rig_stack(OUTER - 1000, 3);

	(void)state;
	assert_int_equal(rig_enter(call, HOOK_REALLOC, BLOCK, 100, 0, 0), MW_STUB_WRAP);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	mw_stub_leave(rig_call(HOOK_MALLOC, 5, 0, 0, 0), OTHER);
	rig_expect(MW_RING_REALLOC_FAIL, BLOCK, 100);
	rig_expect(MW_RING_ALLOC, OTHER, 5);
	rig_expect_none();
}

/* The innermost one was jumped over and its words are gone; the one around it stands. */
static void test_broken_chain(void **state)
{
	struct mw_stub_call *outer = outer_call(HOOK_SILENT), *call = inner(OUTER, handler, 2);

	(void)state;
	rig_enter(call, HOOK_MALLOC, 3, 0, 0, 0);
	memset(call, 0x55, sizeof(*call));
	call = inner(OUTER, plain, 1);
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 3, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig_slot()->top, (uint64_t)(uintptr_t)outer);
}

/* A chain of nonsense: nothing is read outside the known stack. */
static void test_hostile_chain(void **state)
{
	const uint64_t tops[] = {1,
				 8,
				 UINT64_MAX,
				 UINT64_MAX - 7,
				 (uint64_t)(uintptr_t)&rig.thread->stack[STACK_WORDS] - 8,
				 (uint64_t)(uintptr_t)&rig.thread->stack[STACK_WORDS - 2],
				 0x7000};

	(void)state;
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		rig_call(HOOK_MALLOC, 1, 0, 0, 0);
		rig_slot()->top = tops[i];
		mw_stub_leave(rig_call(HOOK_MALLOC, 1, 0, 0, 0), BLOCK);
		rig_expect(MW_RING_ALLOC, BLOCK, 1);
		assert_int_equal(rig_slot()->top, 0);
	}
	/* A chain that goes round. */
	struct mw_stub_call *call = outer_call(HOOK_MALLOC);

	call->prev = (uint64_t)(uintptr_t)call;
	mw_stub_leave(rig_stack(OUTER + 100, 3), 0);
	rig_enter(rig_stack(OUTER + 100, 3), HOOK_MALLOC, 1, 0, 0, 0);
	/* What the program has written over is left alone. */
	memset(call, 0x55, sizeof(*call));
	mw_stub_leave(call, BLOCK);
	rig_expect_none();
}

/* A handler that comes into a call of the recorder, at any place where it looks at the time. */
static unsigned handled_at;

static void handle(void)
{
	struct mw_stub_call *call = rig_stack(handled_at, 4);

	if (rig_enter(call, HOOK_MALLOC, 77, 0, 0, 0) == MW_STUB_WRAP)
		mw_stub_leave(call, OTHER);
}

static void test_handlers(void **state)
{
	(void)state;
	for (unsigned when = 0; when < 6; when++) {
		struct shared_record *record;
		unsigned seen = 0, handled = 0;

		const uint64_t pcs[] = {CODE_SP + 0x100 + when, CODE_SP + 0x200, CODE_END + 2};
		struct mw_stub_call *call = rig_frames(OUTER, pcs, 3);

		handled_at = OUTER - 500;
		rig.on_ticks = handle;
		rig.on_ticks_after = when;
		assert_int_equal(rig_enter(call, HOOK_REALLOC, BLOCK, 1, 0, 0), MW_STUB_WRAP);
		mw_stub_leave(call, BLOCK);
		rig.on_ticks = NULL;
		while ((record = rig_event())) {
			if (record->type == MW_RING_SLOW || record->type == MW_RING_NOTHING)
				continue;
			seen += record->type == MW_RING_REALLOC_BEGIN || record->type == MW_RING_REALLOC_END;
			handled += record->type == MW_RING_ALLOC && record->addr == OTHER && record->size == 77;
		}
		assert_int_equal(seen, 2);
		/* Before the last of them it always came. */
		assert_true(handled == 1 || when >= 3);
		rig_expect_none();
	}
}

static jmp_buf out;

static void jump(void)
{
	longjmp(out, 1);
}

/* A handler jumps away from between a reservation and its record, at the `when`-th look at the time. */
static void abandon(unsigned when)
{
	const uint64_t pcs[] = {CODE_SP + 0x300 + when, CODE_SP + 0x200, CODE_SP + 1, CODE_SP + 2, CODE_END + 2};
	struct mw_stub_call *call = rig_frames(OUTER - 1000, pcs, 5);

	rig.on_ticks = jump;
	rig.on_ticks_after = when;
	if (setjmp(out) == 0) {
		rig_enter(call, HOOK_REALLOC, BLOCK, 1, 0, 0);
		mw_stub_leave(call, 0);
		rig.on_ticks = NULL;
	} else {
		assert_int_equal(rig_slot()->inside, 1);
	}
}

static void test_abandoned(void **state)
{
	(void)state;
	for (unsigned when = 0; when < 4; when++) {
		struct mw_ring_slot *slot = rig_slot();
		unsigned nothing = 0, allocs = 0;
		struct shared_record *record;

		abandon(when);
		mw_stub_leave(rig_call(HOOK_MALLOC, 5, 0, 0, 0), BLOCK);
		while ((record = rig_event())) {
			nothing += record->type == MW_RING_NOTHING;
			allocs += record->type == MW_RING_ALLOC;
		}
		assert_int_equal(allocs, 1);
		assert_true(nothing == 1 || when == 3);
		assert_int_equal(slot->drained, slot->reserved);
		rig_expect_none();
	}
}

/* One that only is interrupted, from a stack of the handler's own, is not taken for abandoned. */
static uint64_t other_stack[512] __attribute__((aligned(64)));

static void handle_elsewhere(void)
{
	struct mw_stub_call *call = (struct mw_stub_call *)(void *)&other_stack[300];

	other_stack[309] = CODE_END + 1;
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 77, 0, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, OTHER);
}

static void test_handler_on_its_own_stack(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	unsigned events = 0;
	struct shared_record *record;

	(void)state;
	slot->regions[2].low = (uint64_t)(uintptr_t)other_stack;
	slot->regions[2].high = (uint64_t)(uintptr_t)&other_stack[512];
	for (unsigned when = 0; when < 3; when++) {
		rig.on_ticks = handle_elsewhere;
		rig.on_ticks_after = when;
		mw_stub_leave(rig_call(HOOK_MALLOC, 5, 0, 0, 0), BLOCK);
		rig.on_ticks = NULL;
	}
	while ((record = rig_event())) {
		assert_int_equal(record->type, MW_RING_ALLOC);
		events++;
	}
	assert_in_range(events, 4, 6);
	assert_int_equal(slot->drained, slot->reserved);
	rig_expect_none();
}

/* Calls of two stacks that a handler switches between come back in any order: each is counted until it has. */
static void test_open_calls(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	struct mw_stub_call *call, *elsewhere = (struct mw_stub_call *)(void *)&other_stack[300];

	(void)state;
	assert_int_equal(slot->open, 0);
	call = rig_call(HOOK_MALLOC, 5, 0, 0, 0);
	assert_int_equal(slot->open, 1);
	other_stack[309] = CODE_END + 1;
	assert_int_equal(rig_enter(elsewhere, HOOK_MALLOC, 77, 0, 0, 0), MW_STUB_WRAP);
	assert_int_equal(slot->open, 2);
	mw_stub_leave(call, BLOCK);
	assert_int_equal(slot->open, 1);
	/* Recording has ended, and it comes back yet. */
	rig.shared.control->recording = 0;
	rig.guard = MW_STUB_GUARD_ENDING;
	mw_stub_leave(elsewhere, OTHER);
	assert_int_equal(slot->open, 0);
	/* What is passed on does not come back. */
	rig.guard = MW_STUB_GUARD_ON;
	call = outer_call(HOOK_CALLOC);
	assert_int_equal(rig_enter(inner(OUTER, plain, 2), HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(slot->open, 1);
	mw_stub_leave(call, BLOCK);
	assert_int_equal(slot->open, 0);
	/* One that was jumped over stays counted: who knows. */
	(void)rig_call(HOOK_MALLOC, 5, 0, 0, 0);
	call = rig_stack(STACK_WORDS - 100, 3);
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 6, 0, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, BLOCK);
	assert_int_equal(slot->open, 1);
	/* A forked child has nothing to say of it. */
	call = rig_call(HOOK_MALLOC, 5, 0, 0, 0);
	rig.guard = MW_STUB_GUARD_CHILD;
	mw_stub_leave(call, BLOCK);
	assert_int_equal(slot->open, 2);
}

/* Another thread comes back from a call than has made it: no word of the other's slot is touched. */
static void test_comes_back_in_another_thread(void **state)
{
	struct rig_thread *first = rig.thread, *second = rig_thread_new(4712);
	struct mw_stub_call *call = rig_call(HOOK_MALLOC, 5, 0, 0, 0);
	struct mw_ring_slot before, *slot = rig_slot();

	(void)state;
	before = *slot;
	rig.thread = second;
	mw_stub_leave(call, BLOCK);
	assert_memory_equal(slot, &before, sizeof(before));
	assert_int_equal(rig.shared.control->open + slot->open, 0);
	assert_int_equal(rig.shared.control->lost_events, 1);
	rig.thread = first;
	rig_thread_free(second);
}

UNIT_GROUP(nest)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_heap_in_heap),
		T(test_mapping_in_heap),
		T(test_in_free),
		T(test_untracked),
		T(test_signal_between_counts),
		T(test_exceptions_outlive),
		T(test_jumped_over),
		T(test_jumped_over_begun),
		T(test_broken_chain),
		T(test_hostile_chain),
		T(test_handlers),
		T(test_abandoned),
		T(test_handler_on_its_own_stack),
		T(test_open_calls),
		T(test_comes_back_in_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

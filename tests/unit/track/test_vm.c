// SPDX-License-Identifier: MIT
/* test_vm.c: what mapping events mean. */
#include "rig.h"
#include "unit.h"

#define PAGE UINT64_C(4096)
#define AT   UINT64_C(0x7f0000000000)

static mw_addr page(uint64_t n)
{
	return AT + n * PAGE;
}

static void unmap(struct rig *rig, uint64_t time, uint64_t first, uint64_t pages)
{
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, time, 0, page(first), pages * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_END, time + 1, 0, page(first), pages * PAGE);
}

static void map(struct rig *rig, uint64_t time, uint64_t first, uint64_t pages)
{
	rig_vm(rig, MW_EVENT_MAP, time, 0, page(first), pages * PAGE);
}

struct pieces {
	int count, firsts;
	mw_addr start[8];
	uint64_t bytes[8];
};

static bool list_piece(void *context, const struct mw_track_block *block, bool first)
{
	struct pieces *pieces = context;

	assert_in_range(pieces->count, 0, 7);
	pieces->start[pieces->count] = block->addr;
	pieces->bytes[pieces->count++] = block->bytes;
	pieces->firsts += first;
	return true;
}

static struct pieces list_pieces(const struct rig *rig)
{
	struct pieces pieces = {0};

	mw_track_each_block(rig->track, list_piece, &pieces);
	return pieces;
}

static void assert_vm(const struct rig *rig, uint64_t live, uint64_t pages, uint64_t gone, uint64_t gone_pages)
{
	struct mw_track_totals totals = rig_totals(rig, MW_KIND_VM);

	rig_amount(totals.impacting, live, pages * PAGE);
	rig_amount(totals.transient, gone, gone_pages * PAGE);
	rig_check(rig);
}

static void test_map_and_unmap(void **state)
{
	struct rig *rig = *state;

	map(rig, 10, 0, 4);
	assert_vm(rig, 1, 4, 0, 0);
	unmap(rig, 17, 0, 4);
	assert_vm(rig, 0, 0, 1, 4);
	assert_int_equal(rig_of_stack(rig, rig->vm).lifetime.max_ns, 7);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 0, 0);
	rig_amount(rig_totals(rig, MW_KIND_VM).peak.amount, 1, 4 * PAGE);
	map(rig, 20, 0, 0);
	assert_vm(rig, 0, 0, 1, 4);
	map(rig, 21, 0, 4);
	unmap(rig, 22, 2, 0); /* no length: nothing happens */
	assert_vm(rig, 1, 4, 1, 4);
	assert_int_equal(list_pieces(rig).count, 1);
}

static void test_parts_go_before_the_block(void **state)
{
	struct rig *rig = *state;

	map(rig, 1, 0, 10);
	unmap(rig, 2, 0, 2); /* front */
	assert_vm(rig, 1, 8, 0, 2);
	unmap(rig, 3, 9, 1); /* back */
	assert_vm(rig, 1, 7, 0, 3);
	unmap(rig, 4, 4, 2); /* middle: two pieces are left, [2,4) and [6,9) */
	assert_vm(rig, 1, 5, 0, 5);
	assert_int_equal(list_pieces(rig).count, 2);
	assert_int_equal(list_pieces(rig).firsts, 1);
	assert_int_equal(rig_of_stack(rig, rig->vm).lifetime.count, 0);
	unmap(rig, 5, 2, 2);
	assert_vm(rig, 1, 3, 0, 7);
	unmap(rig, 11, 6, 3);
	assert_vm(rig, 0, 0, 1, 10);
	assert_int_equal(rig_of_stack(rig, rig->vm).lifetime.count, 1);
	assert_int_equal(rig_of_stack(rig, rig->vm).lifetime.max_ns, 10);
}

static void test_one_unmap_of_many(void **state)
{
	struct rig *rig = *state;

	map(rig, 1, 0, 2);
	map(rig, 1, 2, 2);
	map(rig, 1, 6, 4);
	unmap(rig, 2, 1, 6);
	assert_vm(rig, 2, 4, 1, 4);
	unmap(rig, 3, 50, 2); /* nothing there: nothing counted */
	assert_vm(rig, 2, 4, 1, 4);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 0, 0);
}

static void test_map_over(void **state)
{
	struct rig *rig = *state;

	map(rig, 1, 0, 4);
	map(rig, 5, 1, 2);
	assert_vm(rig, 2, 4, 0, 2);
	rig_amount(rig_totals(rig, MW_KIND_VM).peak.amount, 1, 4 * PAGE);
	map(rig, 9, 0, 4);
	assert_vm(rig, 1, 4, 2, 6);
}

static void test_unmap_fails(void **state)
{
	struct rig *rig = *state;
	struct pieces pieces;

	map(rig, 1, 0, 10);
	map(rig, 1, 12, 2);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 2, 0, page(4), 9 * PAGE);
	assert_vm(rig, 2, 12, 0, 0);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 3, 0, page(4), 9 * PAGE);
	assert_vm(rig, 2, 12, 0, 0);
	pieces = list_pieces(rig);
	assert_int_equal(pieces.count, 2);
	assert_int_equal(pieces.start[0], page(0));
	assert_int_equal(pieces.bytes[0], 10 * PAGE);
	assert_int_equal(pieces.start[1], page(12));
	/* The same from the front and from the middle. */
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 4, 0, page(0), 3 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 5, 0, page(0), 3 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 6, 0, page(3), 3 * PAGE);
	assert_int_equal(list_pieces(rig).count, 4);
	assert_int_equal(list_pieces(rig).firsts, 2);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 7, 0, page(3), 3 * PAGE);
	assert_int_equal(list_pieces(rig).count, 2);
	unmap(rig, 8, 0, 10);
	assert_vm(rig, 1, 2, 1, 10);
}

static void test_unmap_fails_but_address_was_reused(void **state)
{
	struct rig *rig = *state;

	map(rig, 1, 0, 10);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 4, 0, page(0), 10 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 6, 1, page(3), 2 * PAGE);
	assert_vm(rig, 2, 12, 0, 0);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 9, 0, page(0), 10 * PAGE);
	assert_vm(rig, 2, 10, 0, 2);
	assert_int_equal(list_pieces(rig).count, 3);
	/* All of it taken: the block ended when the call began. */
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 20, 0, page(0), 10 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 21, 1, page(0), 10 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 22, 0, page(0), 10 * PAGE);
	assert_vm(rig, 1, 10, 2, 12);
	assert_int_equal(rig_of_stack(rig, rig->vm).lifetime.max_ns, 19);
}

static void test_unmap_without_end(void **state)
{
	struct rig *rig = *state;

	map(rig, 1, 0, 10);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 2, 0, page(5), 5 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_END, 3, 1, page(5), 5 * PAGE); /* another thread's: no BEGIN */
	assert_vm(rig, 1, 10, 0, 0);
	assert_int_equal(list_pieces(rig).count, 2);
	assert_int_equal(list_pieces(rig).firsts, 1);
}

static void test_newest_begin_matches(void **state)
{
	struct rig *rig = *state;

	map(rig, 1, 0, 1);
	map(rig, 1, 2, 2);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 2, 0, page(0), PAGE);
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 3, 0, page(30), PAGE); /* a call of another family in between */
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 4, 0, page(2), 2 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_END, 5, 0, page(2), 2 * PAGE);
	assert_vm(rig, 1, 1, 1, 2);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 6, 0, page(0), PAGE);
	assert_vm(rig, 1, 1, 1, 2);
	rig_vm(rig, MW_EVENT_REMAP_END, 7, 0, page(30), PAGE);
	assert_vm(rig, 2, 2, 1, 2);
}

static void test_remap(void **state)
{
	struct rig *rig = *state;
	uint32_t other = rig_stack(rig, MW_KIND_VM, 5);

	map(rig, 1, 0, 4);
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 5, 0, page(0), 4 * PAGE);
	assert_vm(rig, 1, 4, 0, 0);
	rig_send(rig, (struct mw_event){6, page(20), 8 * PAGE, other, rig->thread[0], MW_EVENT_REMAP_END, MW_KIND_VM, 0,
					false});
	assert_vm(rig, 1, 8, 1, 4);
	rig_amount(rig_of_stack(rig, rig->vm).totals.transient, 1, 4 * PAGE);
	rig_amount(rig_of_stack(rig, other).totals.impacting, 1, 8 * PAGE);
	assert_int_equal(rig_of_stack(rig, rig->vm).lifetime.max_ns, 4);
	/* Grown in place, over a part of itself. */
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 7, 0, page(20), 8 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_END, 8, 0, page(20), 9 * PAGE);
	assert_vm(rig, 1, 9, 2, 12);
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 9, 0, page(22), 1 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_FAIL, 10, 0, page(22), 1 * PAGE);
	assert_vm(rig, 1, 9, 2, 12);
	assert_int_equal(list_pieces(rig).count, 1);
}

static void test_before_the_window(void **state)
{
	struct rig *rig = *state;
	uint32_t stacks;

	assert_null(mw_track_before(rig->track, page(0), page(10)));
	assert_null(mw_track_before(rig->track, page(10), page(20)));
	assert_null(mw_track_before(rig->track, page(30), page(30)));
	assert_int_equal(list_pieces(rig).count, 0);
	unmap(rig, 1, 8, 4); /* two mappings, one call */
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 1, 4 * PAGE);
	unmap(rig, 2, 6, 8); /* the hole counts nothing */
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 2, 8 * PAGE);
	unmap(rig, 3, 6, 8);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 2, 8 * PAGE);
	map(rig, 4, 4, 4); /* over it */
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 3, 10 * PAGE);
	assert_vm(rig, 1, 4, 0, 0);
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 5, 0, page(0), PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 3, 10 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_END, 6, 0, page(1), PAGE); /* moved over more of it: still one call */
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 4, 12 * PAGE);
	rig_amount(rig_of_stack(rig, rig->vm).totals.aofi, 4, 12 * PAGE);
	assert_int_equal(rig_totals(rig, MW_KIND_VM).aofi_unknown, 0);
	stacks = mw_track_stack_count(rig->track);
	rig_send(rig, (struct mw_event){7, page(2), PAGE, MW_STACK_NONE, rig->thread[0], MW_EVENT_UNMAP_BEGIN,
					MW_KIND_VM_INTERNAL, 0, false});
	rig_send(rig, (struct mw_event){8, page(2), PAGE, MW_STACK_NONE, rig->thread[0], MW_EVENT_UNMAP_END,
					MW_KIND_VM_INTERNAL, 0, false});
	rig_amount(rig_totals(rig, MW_KIND_VM_INTERNAL).aofi, 1, PAGE);
	rig_amount(rig_of_stack(rig, stacks).totals.aofi, 1, PAGE);
	assert_int_equal(rig_of_stack(rig, stacks).kind, MW_KIND_VM_INTERNAL);
}

static void test_before_and_failures(void **state)
{
	struct rig *rig = *state;

	assert_null(mw_track_before(rig->track, page(0), page(10)));
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 1, 0, page(2), 4 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 2, 0, page(2), 4 * PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 0, 0);
	unmap(rig, 3, 0, 10);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 1, 10 * PAGE);
	assert_null(mw_track_before(rig->track, page(0), page(10)));
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 4, 0, page(2), 4 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 5, 1, page(3), PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 6, 0, page(2), 4 * PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 2, 11 * PAGE);
	unmap(rig, 7, 0, 10);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 3, 20 * PAGE);
	assert_vm(rig, 0, 0, 1, 1);
}

/* The snapshot of mappings may come after the first events: what they said is not overwritten. */
static void test_before_fills_gaps_only(void **state)
{
	struct rig *rig = *state;

	map(rig, 1, 2, 2);
	assert_null(mw_track_before(rig->track, page(0), page(6)));
	unmap(rig, 2, 0, 6);
	assert_vm(rig, 0, 0, 1, 2);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 1, 4 * PAGE);
}

static void test_kind_is_that_of_the_map(void **state)
{
	struct rig *rig = *state;
	struct mw_track_thread thread;

	rig_send(rig, (struct mw_event){1, page(0), 4 * PAGE, rig->internal, rig->thread[0], MW_EVENT_MAP,
					MW_KIND_VM_INTERNAL, 0, false});
	unmap(rig, 2, 0, 3);
	rig_amount(rig_totals(rig, MW_KIND_VM_INTERNAL).transient, 0, 3 * PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM_INTERNAL).impacting, 1, PAGE);
	assert_vm(rig, 0, 0, 0, 0);
	mw_track_thread(rig->track, rig->thread[0], &thread);
	rig_amount(thread.size, 0, 0);
	rig_refuse(rig,
		   (struct mw_event){3, page(0), PAGE, rig->heap, rig->thread[0], MW_EVENT_MAP, MW_KIND_HEAP, 0, false},
		   MW_ERROR_DATA);
	rig_refuse(rig,
		   (struct mw_event){3, page(0), PAGE, rig->vm, rig->thread[0], MW_EVENT_MAP, MW_KIND_VM_INTERNAL, 0,
				     false},
		   MW_ERROR_DATA);
}

/* Sizes are the target's: nothing wraps. */
static void test_end_of_addresses(void **state)
{
	struct rig *rig = *state;

	rig_vm(rig, MW_EVENT_MAP, 1, 0, UINT64_MAX - 10, 100);
	rig_amount(rig_totals(rig, MW_KIND_VM).impacting, 1, 10);
	rig_vm(rig, MW_EVENT_MAP, 1, 0, UINT64_MAX, 100); /* no byte of it can be */
	rig_amount(rig_totals(rig, MW_KIND_VM).size, 1, 10);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 2, 0, 0, UINT64_MAX);
	rig_vm(rig, MW_EVENT_UNMAP_END, 2, 0, 0, UINT64_MAX);
	rig_amount(rig_totals(rig, MW_KIND_VM).impacting, 0, 0);
	rig_amount(rig_totals(rig, MW_KIND_VM).transient, 1, 10);
}

#define MANY 20000U

static void send_over_all(struct rig *rig, enum mw_event_type type, int t)
{
	rig_send(rig, (struct mw_event){5, page(0), 2 * MANY * PAGE, type == MW_EVENT_MAP ? rig->vm : MW_STACK_NONE,
					rig->thread[t], type, MW_KIND_VM, 0, false});
}

/*
 * A call that fails gives back what it held without a look at each block: with one, this would take longer than a test
 * may. Programs and files decide how many there are.
 */
static void test_failures_over_many_blocks(void **state)
{
	struct rig *rig = *state;

	for (uint32_t i = 0; i < MANY; i++)
		rig_send(rig, (struct mw_event){1, page(2 * i), PAGE, rig->vm, rig->thread[0], MW_EVENT_MAP, MW_KIND_VM,
						0, false});
	for (uint32_t i = 0; i < MANY; i++) {
		enum mw_event_type begin = i % 2 ? MW_EVENT_UNMAP_BEGIN : MW_EVENT_REMAP_BEGIN;

		send_over_all(rig, begin, 0);
		send_over_all(rig, begin + 2, 0);
	}
	rig_amount(rig_totals(rig, MW_KIND_VM).impacting, MANY, MANY * PAGE);
	/* The first of these blocks lies in between the others in the end, the next have no room left. */
	for (uint32_t i = 0; i < MANY; i++) {
		send_over_all(rig, MW_EVENT_UNMAP_BEGIN, 0);
		send_over_all(rig, MW_EVENT_MAP, 1);
		send_over_all(rig, MW_EVENT_UNMAP_BEGIN, 1);
		send_over_all(rig, MW_EVENT_UNMAP_FAIL, 0);
		send_over_all(rig, MW_EVENT_UNMAP_FAIL, 1);
	}
	rig_amount(rig_totals(rig, MW_KIND_VM).impacting, MANY + 1, 2 * MANY * PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).transient, MANY - 1, (UINT64_C(2) * MANY * (MANY - 1) + MANY) * PAGE);
}

/* Nor does one that ends look at calls of other families that have not. */
static void test_many_open_calls(void **state)
{
	struct rig *rig = *state;

	for (uint32_t i = 0; i < 20 * MANY; i++)
		rig_send(rig, (struct mw_event){1, page(i), PAGE, MW_STACK_NONE, rig->thread[0], MW_EVENT_REMAP_BEGIN,
						MW_KIND_VM, 0, false});
	for (uint32_t i = 0; i < 20 * MANY; i++)
		rig_send(rig, (struct mw_event){2, page(i), PAGE, MW_STACK_NONE, rig->thread[0], MW_EVENT_UNMAP_END,
						MW_KIND_VM, 0, false});
	rig_amount(rig_totals(rig, MW_KIND_VM).size, 0, 0);
}

UNIT_GROUP(vm)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_map_and_unmap),
		TEST(test_parts_go_before_the_block),
		TEST(test_one_unmap_of_many),
		TEST(test_map_over),
		TEST(test_unmap_fails),
		TEST(test_unmap_fails_but_address_was_reused),
		TEST(test_unmap_without_end),
		TEST(test_newest_begin_matches),
		TEST(test_remap),
		TEST(test_before_the_window),
		TEST(test_before_and_failures),
		TEST(test_before_fills_gaps_only),
		TEST(test_kind_is_that_of_the_map),
		TEST(test_end_of_addresses),
		TEST(test_failures_over_many_blocks),
		TEST(test_many_open_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

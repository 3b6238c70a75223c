// SPDX-License-Identifier: MIT
/* test_settle.c: frees after the window: what they are of is marked, once, and no figure of the window changes. */
#include "rig.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define PAGE UINT64_C(4096)
#define AT   UINT64_C(0x7f0000000000)

static void settle(struct rig *rig)
{
	struct mw_error *err = mw_track_settle(rig->track);

	assert_null(err);
}

static void assert_settled(const struct rig *rig, enum mw_kind kind, uint64_t count, uint64_t bytes)
{
	uint32_t stack = kind == MW_KIND_HEAP ? rig->heap : rig->vm;

	rig_amount(rig_totals(rig, kind).settled_later, count, bytes);
	rig_amount(rig_of_stack(rig, stack).totals.settled_later, count, bytes);
	rig_check(rig);
}

struct marked {
	uint64_t blocks, bytes, all;
	uint64_t firsts; /* that are not settled */
};

static bool count_marked(void *context, const struct mw_track_block *block, bool first)
{
	struct marked *marked = context;

	marked->all += first;
	marked->blocks += first && block->settled;
	marked->bytes += block->settled ? block->bytes : 0;
	marked->firsts += first && !block->settled;
	return true;
}

static struct marked find_marked(const struct rig *rig)
{
	struct marked marked = {0};

	mw_track_each_block(rig->track, count_marked, &marked);
	return marked;
}

static void test_figures_stay(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals before, after;
	struct mw_track_series then, now;

	rig_alloc(rig, 10, 0x100, 40);
	rig_alloc(rig, 3000000, 0x200, 60);
	rig_free(rig, 4000000, 0x100);
	rig_alloc(rig, 5000000, 0x100, 70);
	before = rig_totals(rig, MW_KIND_HEAP);
	mw_track_stack_series(rig->track, rig->heap, 8000000, &then);
	settle(rig);
	rig_free(rig, 9000000, 0x200);
	rig_alloc(rig, 9100000, 0x300, 1000);
	after = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(after.settled_later, 1, 60);
	after.settled_later = before.settled_later;
	assert_memory_equal(&before, &after, sizeof(before));
	mw_track_stack_series(rig->track, rig->heap, 8000000, &now);
	assert_int_equal(then.count, now.count);
	assert_memory_equal(then.bytes, now.bytes, then.count * sizeof(*then.bytes));
	assert_int_equal(mw_track_now(rig->track), 5000000);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.count, 1);
	assert_int_equal(find_marked(rig).all, 2);
	assert_int_equal(find_marked(rig).blocks, 1);
}

static void test_once_a_block(void **state)
{
	struct rig *rig = *state;

	rig_alloc(rig, 10, 0x100, 40);
	rig_alloc(rig, 20, 0x200, 60);
	settle(rig);
	assert_true(rig->sink.knows(rig->sink.context, 0x100));
	rig_free(rig, 30, 0x100);
	assert_false(rig->sink.knows(rig->sink.context, 0x100));
	/* Others have had the address since. */
	rig_free(rig, 40, 0x100);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 50, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_END, 51, 0, 0x900, 10);
	rig_free(rig, 60, 0x900);
	rig_free(rig, 70, 0x12345);
	settle(rig); /* changes nothing */
	assert_settled(rig, MW_KIND_HEAP, 1, 40);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 2, 100);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 0, 0);
}

static void test_realloc_of_any_outcome(void **state)
{
	struct rig *rig = *state;

	for (mw_addr addr = 1; addr <= 5; addr++)
		rig_alloc(rig, 10, addr << 8, addr);
	settle(rig);
	/* In place, failed, moved, to nothing; and one that a block of nobody's goes to. */
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 20, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_END, 21, 0, 0x100, 90);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 22, 0, 0x200, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 23, 0, 0x200, 0);
	assert_settled(rig, MW_KIND_HEAP, 0, 0);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 24, 0, 0x300, MW_SIZE_UNKNOWN);
	assert_settled(rig, MW_KIND_HEAP, 0, 0);
	rig_heap(rig, MW_EVENT_REALLOC_END, 25, 0, 0x800, 90);
	assert_settled(rig, MW_KIND_HEAP, 1, 3);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 26, 0, 0x400, MW_SIZE_UNKNOWN);
	/* A signal handler's lies within. */
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 27, 0, 0x500, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 28, 0, 0x500, 0);
	rig_heap(rig, MW_EVENT_REALLOC_END, 29, 0, 0, 0);
	assert_settled(rig, MW_KIND_HEAP, 2, 7);
	/* Without a begin nothing is known of it. */
	rig_heap(rig, MW_EVENT_REALLOC_END, 30, 0, 0x100, 5);
	assert_settled(rig, MW_KIND_HEAP, 2, 7);
	rig_free(rig, 31, 0x100);
	assert_settled(rig, MW_KIND_HEAP, 3, 8);
}

static void test_realloc_under_way(void **state)
{
	struct rig *rig = *state;

	rig_alloc(rig, 10, 0x100, 40);
	rig_alloc(rig, 10, 0x200, 50);
	rig_alloc(rig, 10, 0x300, 60);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 20, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 20, 1, 0x200, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 20, 2, 0x300, MW_SIZE_UNKNOWN);
	/* It moves, and another thread has its address before the return is seen. */
	rig_heap(rig, MW_EVENT_ALLOC, 25, 0, 0x300, 7);
	settle(rig);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 4, 157);
	rig_heap(rig, MW_EVENT_REALLOC_END, 30, 0, 0x800, 90);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 30, 1, 0x200, 0);
	rig_heap(rig, MW_EVENT_REALLOC_END, 30, 2, 0x900, 90);
	assert_settled(rig, MW_KIND_HEAP, 2, 100);
	rig_free(rig, 40, 0x200);
	rig_free(rig, 41, 0x300);
	assert_settled(rig, MW_KIND_HEAP, 4, 157);
	/* Nothing of that comes twice. */
	rig_heap(rig, MW_EVENT_REALLOC_END, 50, 2, 0xa00, 90);
	rig_free(rig, 51, 0x300);
	rig_free(rig, 52, 0x100);
	assert_settled(rig, MW_KIND_HEAP, 4, 157);
	assert_int_equal(find_marked(rig).blocks, 4);
}

static void test_older_blocks_are_marked_only(void **state)
{
	struct rig *rig = *state;

	rig_alloc(rig, 10, 0x100, 40);
	rig_vm(rig, MW_EVENT_MAP, 11, 0, AT, PAGE);
	assert_null(mw_track_interval(rig->track, 20));
	rig_alloc(rig, 30, 0x200, 60);
	settle(rig);
	rig_free(rig, 40, 0x100);
	rig_free(rig, 41, 0x200);
	rig_vm(rig, MW_EVENT_UNMAP_END, 42, 0, AT, PAGE);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).settled_later, 1, 60);
	rig_amount(rig_totals(rig, MW_KIND_VM).settled_later, 0, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofo, 1, 40);
	assert_false(rig->sink.knows(rig->sink.context, 0x100));
}

static void test_mappings(void **state)
{
	struct rig *rig = *state;

	rig_vm(rig, MW_EVENT_MAP, 10, 0, AT, 10 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 11, 0, AT + 20 * PAGE, 4 * PAGE);
	settle(rig);
	/* A part of it, twice. */
	for (int i = 0; i < 2; i++) {
		rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 20, 0, AT + 2 * PAGE, 3 * PAGE);
		rig_vm(rig, MW_EVENT_UNMAP_END, 21, 0, AT + 2 * PAGE, 3 * PAGE);
		assert_settled(rig, MW_KIND_VM, 0, 3 * PAGE);
	}
	assert_int_equal(find_marked(rig).firsts, 2);
	assert_int_equal(find_marked(rig).bytes, 3 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 22, 0, AT, 30 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 23, 0, AT, 30 * PAGE);
	assert_settled(rig, MW_KIND_VM, 0, 3 * PAGE);
	/* All but what something is mapped over, which goes then. */
	rig_vm(rig, MW_EVENT_UNMAP_END, 24, 0, AT - PAGE, 9 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 25, 0, AT + 7 * PAGE, 14 * PAGE);
	assert_settled(rig, MW_KIND_VM, 1, 11 * PAGE);
	/* In place a part is cut off; moved, all is gone. */
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 26, 0, AT + 20 * PAGE, 4 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_END, 27, 0, AT + 20 * PAGE, 3 * PAGE);
	assert_settled(rig, MW_KIND_VM, 1, 12 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 28, 0, AT + 20 * PAGE, 3 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_FAIL, 29, 0, AT + 20 * PAGE, 3 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 30, 0, AT + 20 * PAGE, 3 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_END, 31, 0, AT + 100 * PAGE, 3 * PAGE);
	assert_settled(rig, MW_KIND_VM, 2, 14 * PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).impacting, 2, 14 * PAGE);
	assert_int_equal(find_marked(rig).blocks, 2);
}

static void test_mappings_under_way(void **state)
{
	struct rig *rig = *state;

	rig_vm(rig, MW_EVENT_MAP, 10, 0, AT, 4 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 10, 0, AT + 10 * PAGE, 4 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 10, 0, AT + 20 * PAGE, 4 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 20, 0, AT, 2 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 20, 1, AT + 10 * PAGE, 4 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_BEGIN, 20, 0, AT + 20 * PAGE, 4 * PAGE);
	settle(rig);
	rig_vm(rig, MW_EVENT_UNMAP_END, 30, 0, AT, 2 * PAGE);
	assert_settled(rig, MW_KIND_VM, 0, 2 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_FAIL, 30, 1, AT + 10 * PAGE, 4 * PAGE);
	rig_vm(rig, MW_EVENT_REMAP_END, 30, 0, AT + 50 * PAGE, 4 * PAGE);
	assert_settled(rig, MW_KIND_VM, 1, 6 * PAGE);
	/* Calls of the settling time come after them. */
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 40, 0, AT + 2 * PAGE, 2 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_END, 41, 0, AT + 2 * PAGE, 2 * PAGE);
	assert_settled(rig, MW_KIND_VM, 2, 8 * PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).impacting, 3, 12 * PAGE);
}

/* --- at random, against a model of each page and each block -------------------------------------------------------- */

#define PAGES  96u
#define BLOCKS 64u

struct model {
	uint32_t owner[PAGES]; /* number + 1 of the mapping; 0: none */
	bool gone[PAGES];
	uint32_t maps;
	bool live[BLOCKS], freed[BLOCKS];
};

static uint64_t state_of_random;

static uint32_t some(uint32_t below)
{
	state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state_of_random >> 33) % below;
}

static void set_pages(struct model *model, uint32_t from, uint32_t count, uint32_t owner)
{
	for (uint32_t i = from; i < from + count; i++)
		model->owner[i] = owner;
}

static void lose_pages(struct model *model, uint32_t from, uint32_t count)
{
	for (uint32_t i = from; i < from + count; i++)
		model->gone[i] |= model->owner[i] != 0;
}

static void check_model(const struct rig *rig, const struct model *model)
{
	uint64_t mappings = 0, pages = 0, blocks = 0, bytes = 0;

	for (uint32_t owner = 1; owner <= model->maps; owner++) {
		uint32_t there = 0, gone = 0;

		for (uint32_t i = 0; i < PAGES; i++) {
			there += model->owner[i] == owner;
			gone += model->owner[i] == owner && model->gone[i];
		}
		mappings += there && there == gone;
		pages += gone;
	}
	for (uint32_t i = 0; i < BLOCKS; i++) {
		blocks += model->live[i] && model->freed[i];
		bytes += model->live[i] && model->freed[i] ? i + 1 : 0;
	}
	assert_settled(rig, MW_KIND_VM, mappings, pages * PAGE);
	assert_settled(rig, MW_KIND_HEAP, blocks, bytes);
	assert_int_equal(find_marked(rig).blocks, mappings + blocks);
	assert_int_equal(find_marked(rig).bytes, pages * PAGE + bytes);
}

static void random_window(struct rig *rig, struct model *model)
{
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t from = some(PAGES), count = 1 + some(PAGES - from < 20 ? PAGES - from : 20);

		if (some(3)) {
			rig_vm(rig, MW_EVENT_MAP, i, 0, AT + from * PAGE, count * PAGE);
			set_pages(model, from, count, ++model->maps);
		} else {
			rig_vm(rig, MW_EVENT_UNMAP_BEGIN, i, 0, AT + from * PAGE, count * PAGE);
			rig_vm(rig, MW_EVENT_UNMAP_END, i, 0, AT + from * PAGE, count * PAGE);
			set_pages(model, from, count, 0);
		}
	}
	for (uint32_t i = 0; i < BLOCKS; i++) {
		model->live[i] = some(2);
		if (model->live[i])
			rig_alloc(rig, 100, (i + 1) << 8, i + 1);
	}
}

static void random_call(struct rig *rig, struct model *model, uint64_t time)
{
	uint32_t from = some(PAGES), count = 1 + some(PAGES - from < 9 ? PAGES - from : 9);
	uint32_t to = some(PAGES - count + 1), block = some(BLOCKS), other = some(BLOCKS);
	mw_addr at = AT + from * PAGE;

	switch (some(7)) {
	case 0:
		rig_vm(rig, MW_EVENT_UNMAP_BEGIN, time, 0, at, count * PAGE);
		rig_vm(rig, MW_EVENT_UNMAP_END, time, 0, at, count * PAGE);
		lose_pages(model, from, count);
		break;
	case 1:
		rig_vm(rig, MW_EVENT_MAP, time, 1, at, count * PAGE);
		lose_pages(model, from, count);
		break;
	case 2:
		rig_vm(rig, MW_EVENT_REMAP_BEGIN, time, 0, at, count * PAGE);
		if (to == from)
			to = from ? from - 1 : 1;
		if (to + count > PAGES)
			to = 0;
		rig_vm(rig, MW_EVENT_REMAP_END, time, 0, AT + to * PAGE, count * PAGE);
		if (to != from)
			lose_pages(model, from, count), lose_pages(model, to, count);
		break;
	case 3:
		rig_heap(rig, MW_EVENT_REALLOC_BEGIN, time, 2, (block + 1) << 8, MW_SIZE_UNKNOWN);
		rig_heap(rig, MW_EVENT_REALLOC_END, time, 2, (other + 1) << 8, 5);
		model->freed[block] |= other != block;
		break;
	default:
		rig_free(rig, time, (block + 1) << 8);
		model->freed[block] = true;
		break;
	}
}

static void test_at_random(void **state)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct model model = {.maps = 0};
		struct rig *rig;
		struct mw_track_totals heap, vm;

		state_of_random = seed;
		assert_int_equal(rig_setup(state), 0);
		rig = *state;
		random_window(rig, &model);
		heap = rig_totals(rig, MW_KIND_HEAP);
		vm = rig_totals(rig, MW_KIND_VM);
		settle(rig);
		for (uint32_t i = 0; i < 60; i++) {
			random_call(rig, &model, 200 + i);
			check_model(rig, &model);
		}
		rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, heap.impacting.count, heap.impacting.bytes);
		rig_amount(rig_totals(rig, MW_KIND_VM).impacting, vm.impacting.count, vm.impacting.bytes);
		rig_amount(rig_totals(rig, MW_KIND_VM).transient, vm.transient.count, vm.transient.bytes);
		rig_teardown(state);
	}
}

UNIT_GROUP(settle)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_figures_stay),
		TEST(test_once_a_block),
		TEST(test_realloc_of_any_outcome),
		TEST(test_realloc_under_way),
		TEST(test_older_blocks_are_marked_only),
		TEST(test_mappings),
		TEST(test_mappings_under_way),
		cmocka_unit_test(test_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

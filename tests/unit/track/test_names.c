// SPDX-License-Identifier: MIT
/* test_names.c: what makes a stack and a thread the same or another. */
#include "rig.h"

#include "track/stack_table.h"
#include "unit.h"

#include <string.h>

static uint32_t intern(struct rig *rig, const struct mw_raw_stack *stack)
{
	uint32_t id = UINT32_MAX;

	assert_null(rig->sink.stack(rig->sink.context, stack, &id));
	return id;
}

static void test_same_stack_same_id(void **state)
{
	struct rig *rig = *state;
	struct mw_raw_frame frames[4] = {{0x10, 0}, {0x20, 1}, {0x30, MW_MODULE_NONE}, {0x40, 0}};
	struct mw_raw_frame copy[4];
	struct mw_raw_stack stack = {frames, 4, MW_STACK_COMPLETE, 3, MW_KIND_HEAP};
	uint32_t count = mw_track_stack_count(rig->track);
	uint32_t id = intern(rig, &stack);

	assert_int_equal(id, count);
	memcpy(copy, frames, sizeof(copy));
	stack.frames = copy;
	assert_int_equal(intern(rig, &stack), id);
	assert_int_equal(mw_track_stack_count(rig->track), count + 1);
}

static void test_anything_else_makes_another(void **state)
{
	struct rig *rig = *state;
	struct mw_raw_frame frames[3] = {{0x10, 0}, {0x20, 1}, {0x30, 2}};
	struct mw_raw_stack stack = {frames, 3, MW_STACK_COMPLETE, 3, MW_KIND_HEAP};
	uint32_t ids[10];

	ids[0] = intern(rig, &stack);
	stack.hook = 4;
	ids[1] = intern(rig, &stack);
	stack.hook = 3;
	stack.kind = MW_KIND_VM;
	ids[2] = intern(rig, &stack);
	stack.kind = MW_KIND_HEAP;
	stack.cut = MW_STACK_TRUNCATED;
	ids[3] = intern(rig, &stack);
	stack.cut = MW_STACK_COMPLETE;
	stack.count = 2; /* the same without its outermost frame */
	ids[4] = intern(rig, &stack);
	stack.count = 0;
	ids[5] = intern(rig, &stack);
	stack.frames = frames + 1; /* the same without its innermost frame: an inner node of the trie */
	stack.count = 2;
	ids[6] = intern(rig, &stack);
	stack.frames = frames;
	stack.count = 3;
	frames[1].module = 5; /* the same address in another module */
	ids[7] = intern(rig, &stack);
	frames[1].module = 1;
	frames[0].addr = 0x11;
	ids[8] = intern(rig, &stack);
	frames[0].addr = 0x10;
	ids[9] = intern(rig, &stack);
	assert_int_equal(ids[9], ids[0]);
	for (int i = 0; i < 9; i++) {
		for (int j = 0; j < i; j++)
			assert_int_not_equal(ids[i], ids[j]);
	}
}

/* So many that they meet in the tables: what differs in one thing only must not be taken for the same. */
static void test_many_that_differ_in_one_thing(void **state)
{
	struct rig *rig = *state;
	uint32_t next = mw_track_stack_count(rig->track);

	for (uint32_t round = 0; round < 2; round++) {
		uint32_t id = next;

		for (uint32_t i = 0; i < 60000; i++) {
			struct mw_raw_frame frames[2] = {{0x10, 0}, {0x20, 0}};
			struct mw_raw_stack stack = {frames, 2, MW_STACK_COMPLETE, 3, MW_KIND_HEAP};

			frames[0].module = i % 4 == 0 ? i : 1;
			frames[1].module = i % 4 == 1 ? i : 0;
			frames[0].addr += i % 4 == 3 ? i / 12 : 0;
			stack.hook = i % 4 == 2 ? i : 3;
			stack.cut = i % 4 == 3 ? (enum mw_stack_cut)(i / 4 % 3) : MW_STACK_COMPLETE;
			stack.kind = i % 4 == 3 ? MW_KIND_VM : MW_KIND_HEAP;
			assert_int_equal(intern(rig, &stack), id++);
		}
	}
	assert_int_equal(mw_track_stack_count(rig->track), next + 60000);
}

static void assert_told(const struct rig *rig, uint32_t id, const struct mw_raw_frame *frames)
{
	struct mw_raw_frame out[2];

	assert_int_equal(mw_track_frames(rig->track, id, out, 2), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(out[i].addr, frames[i].addr);
		assert_int_equal(out[i].module, frames[i].module);
	}
}

/* The nodes of the trie too: frames with one address in many modules, and under many callers. */
static void test_many_nodes_that_differ_in_one_thing(void **state)
{
	struct rig *rig = *state;
	uint32_t first = mw_track_stack_count(rig->track);

	for (uint32_t i = 0; i < 40000; i++) {
		struct mw_raw_frame frames[2] = {{0x10, i % 200}, {0x20, i / 200}};
		struct mw_raw_stack stack = {frames, 2, MW_STACK_COMPLETE, 3, MW_KIND_HEAP};

		assert_int_equal(intern(rig, &stack), first + i);
		assert_told(rig, first + i, frames);
	}
}

static void test_stack_is_told_as_it_was(void **state)
{
	struct rig *rig = *state;
	struct mw_raw_frame frames[40], out[41];
	struct mw_raw_stack stack = {frames, 40, MW_STACK_BROKEN, 9, MW_KIND_VM_INTERNAL};
	struct mw_track_stack told;
	uint32_t id;

	for (uint32_t i = 0; i < 40; i++)
		frames[i] = (struct mw_raw_frame){0x1000 + i % 3, i % 2 ? i : MW_MODULE_NONE};
	id = intern(rig, &stack);
	told = rig_of_stack(rig, id);
	assert_int_equal(told.frame_count, 40);
	assert_int_equal(told.hook, 9);
	assert_int_equal(told.cut, MW_STACK_BROKEN);
	assert_int_equal(told.kind, MW_KIND_VM_INTERNAL);
	assert_int_equal(mw_track_frames(rig->track, id, out, 41), 40);
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_equal(out[i].addr, frames[i].addr);
		assert_int_equal(out[i].module, frames[i].module);
	}
	out[2].addr = 1;
	assert_int_equal(mw_track_frames(rig->track, id, out, 2), 40);
	assert_int_equal(out[2].addr, 1);
	assert_int_equal(mw_track_frames(rig->track, id, NULL, 0), 40);
}

/* Code of a JIT's: so many addresses are kept, and of what comes then one for a piece of memory, which is marked. */
static void test_code_without_end(void **state)
{
	const mw_addr start = UINT64_C(0x7f0000000000);
	struct rig *rig = *state;
	struct mw_raw_frame frames[2] = {{0x10, 0}, {0, MW_MODULE_NONE}}, told[2];
	struct mw_raw_stack stack = {frames, 2, MW_STACK_BROKEN, 3, MW_KIND_HEAP};
	uint32_t first = mw_track_stack_count(rig->track), near;

	/* One is the rig's. */
	for (uint32_t i = 0; i < MW_CODE_ADDRESSES - 1; i++) {
		frames[1].addr = start + 16 * (mw_addr)i;
		assert_int_equal(intern(rig, &stack), first + i);
	}
	frames[1].addr = start + 7;
	near = intern(rig, &stack);
	assert_int_equal(near, first + MW_CODE_ADDRESSES - 1);
	mw_track_frames(rig->track, near, told, 2);
	assert_int_equal(told[1].addr, (start + 7) | MW_FRAME_NEAR);
	assert_int_equal(frames[1].addr, start + 7);
	for (mw_addr i = 9; i < MW_CODE_PIECE; i += 1000) {
		frames[1].addr = start + i;
		if (i % 16)
			assert_int_equal(intern(rig, &stack), near);
	}
	/* What was kept is still itself; another piece is another stack; a marked one, as a recording has it, is
	 * itself. */
	frames[1].addr = start + 16;
	assert_int_equal(intern(rig, &stack), first + 1);
	frames[1].addr = start + 64 * MW_CODE_PIECE;
	assert_int_equal(intern(rig, &stack), near + 1);
	frames[1].addr = (start + 7) | MW_FRAME_NEAR;
	assert_int_equal(intern(rig, &stack), near);
	/* Addresses in files are kept, however many there are. */
	frames[1] = (struct mw_raw_frame){start + 9, 1};
	assert_int_equal(intern(rig, &stack), near + 2);
	frames[1].addr++;
	assert_int_equal(intern(rig, &stack), near + 3);
}

static void test_stack_kind_is_checked(void **state)
{
	struct rig *rig = *state;
	struct mw_raw_stack stack = {NULL, 0, MW_STACK_COMPLETE, 0, MW_KIND_COUNT};
	uint32_t id = 12345;
	struct mw_error *err = rig->sink.stack(rig->sink.context, &stack, &id);

	assert_non_null(err);
	mw_error_destroy(err);
	assert_int_equal(id, 12345);
}

static uint32_t name_thread(struct rig *rig, pid_t tid, const char *name, bool fresh)
{
	uint32_t number = UINT32_MAX;

	assert_null(rig->sink.thread(rig->sink.context, tid, name, fresh, &number));
	return number;
}

static void assert_thread(const struct rig *rig, uint32_t number, pid_t tid, const char *name)
{
	struct mw_track_thread thread;

	mw_track_thread(rig->track, number, &thread);
	assert_int_equal(thread.tid, tid);
	assert_string_equal(thread.name, name);
}

static void test_threads(void **state)
{
	struct rig *rig = *state;
	uint32_t count = mw_track_thread_count(rig->track);
	char name[] = "worker";
	struct mw_track_thread early;
	uint32_t first, second;

	first = name_thread(rig, 500, name, true);
	assert_int_equal(first, count);
	memset(name, 'x', 3); /* the tracker has its own copy */
	assert_thread(rig, first, 500, "worker");
	mw_track_thread(rig->track, first, &early);
	assert_int_equal(name_thread(rig, 500, "db-writer", false), first);
	assert_int_equal(name_thread(rig, 500, NULL, false), first);
	assert_thread(rig, first, 500, "db-writer");
	assert_string_equal(early.name, "worker"); /* good as long as the tracker */
	/* The tid ended and came again. */
	second = name_thread(rig, 500, "other", true);
	assert_int_equal(second, count + 1);
	assert_int_equal(name_thread(rig, 500, "other2", false), second);
	assert_thread(rig, first, 500, "db-writer");
	assert_thread(rig, second, 500, "other2");
	/* Never seen, though not said to be fresh. */
	assert_int_equal(name_thread(rig, 501, NULL, false), count + 2);
	assert_thread(rig, count + 2, 501, "");
	assert_int_equal(mw_track_thread_count(rig->track), count + 3);
}

static void test_many_threads(void **state)
{
	struct rig *rig = *state;
	uint32_t count = mw_track_thread_count(rig->track);

	for (uint32_t i = 0; i < 20000; i++)
		assert_int_equal(name_thread(rig, (pid_t)(1000 + i % 5000), "n", true), count + i);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(name_thread(rig, (pid_t)(1000 + i), "m", false), count + 15000 + i);
}

UNIT_GROUP(names)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_same_stack_same_id),
		TEST(test_anything_else_makes_another),
		TEST(test_many_that_differ_in_one_thing),
		TEST(test_many_nodes_that_differ_in_one_thing),
		TEST(test_stack_is_told_as_it_was),
		TEST(test_code_without_end),
		TEST(test_stack_kind_is_checked),
		TEST(test_threads),
		TEST(test_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* merge_test.c: an interpreter's frames among native ones; code objects of this process's own, laid out as CPython 3.11's. */
#include "script/python.h"
#include "symbol/symbolizer.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOP     0x1000
#define LOOP_END 0x2000
#define IN_LOOP  0x1800
#define ROOM     16

struct text {
	uint64_t head[2], length, hash;
	uint32_t state, unused;
	uint64_t more;
	char text[24];
};

struct table {
	uint64_t head[2], size, hash;
	uint8_t data[16];
};

static struct text names[] = {
	{.length = 5, .state = 4 | 32 | 64, .text = "inner"},
	{.length = 6, .state = 4 | 32 | 64, .text = "middle"},
	{.length = 5, .state = 4 | 32 | 64, .text = "outer"},
};
static struct text file = {.length = 6, .state = 4 | 32 | 64, .text = "app.py"};
/* Three lines of one instruction each. */
static struct table table = {.size = 9, .data = {0xd0, 0, 0, 0xd8, 0, 0, 0xd8, 0, 0}};
static uint64_t codes[3][32];

struct rig {
	struct mw_modules *modules;
	struct mw_script *script;
	enum mw_stack_cut cut;
};

static int set_up(void **state)
{
	static struct rig rig;

	assert_null(mw_modules_create(&rig.modules));
	assert_null(mw_script_create(rig.modules, &rig.script));
	assert_null(mw_modules_add_named(rig.modules, MW_NAMED_FRAMES_PYTHON, &rig.script->named, &rig.script->module));
	rig.script->layout = python_layout_of(11);
	rig.script->loops[rig.script->loop_count++] = (struct python_loop){LOOP, LOOP_END};
	for (size_t i = 0; i < 3; i++) {
		codes[i][112 / 8] = (uintptr_t)&file;
		codes[i][128 / 8] = (uintptr_t)&names[i];
		codes[i][136 / 8] = (uintptr_t)&table;
		codes[i][72 / 8] = 10 * (i + 1); /* the first line */
	}
	*state = &rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	mw_script_destroy(rig->script);
	mw_modules_destroy(rig->modules);
	return 0;
}

static bool read_own(void *context, uint64_t addr, uint64_t *word)
{
	(void)context;
	memcpy(word, (const void *)(uintptr_t)addr, sizeof(*word));
	return true;
}

static struct mw_script_ref ref(size_t code, uint64_t at, bool last)
{
	struct mw_script_ref made = {.code = (uintptr_t)codes[code], .at = at};

	assert_true(mw_script_check(&python_layout_of(11)->walk, read_own, NULL, made.code, &made.check));
	made.code |= last ? MW_SCRIPT_LAST : 0;
	return made;
}

struct merged {
	struct mw_raw_frame frames[ROOM];
	uint32_t count;
	bool truncated;
};

static struct merged merge(struct rig *rig, const mw_addr *native, uint32_t native_count,
			   const struct mw_script_ref *refs, uint32_t ref_count, uint32_t capacity)
{
	struct mw_raw_frame raw[ROOM];
	const struct mw_raw_stack stack = {.frames = raw, .count = native_count, .cut = rig->cut};
	struct merged out = {.count = 0};

	for (uint32_t i = 0; i < native_count; i++)
		raw[i] = (struct mw_raw_frame){native[i], 7};
	assert_null(mw_script_merge(rig->script, getpid(), &stack, refs, ref_count, out.frames, capacity, &out.count,
				    &out.truncated));
	return out;
}

static void expect(struct rig *rig, const struct merged *merged, uint32_t at, const char *function, uint32_t line)
{
	const struct mw_symbol_frame *frame = mw_named_frames_get(rig->script->named, merged->frames[at].addr);

	assert_int_equal(merged->frames[at].module, rig->script->module);
	assert_non_null(frame);
	assert_string_equal(frame->function, function);
	if (!line) {
		assert_null(frame->file);
		return;
	}
	assert_string_equal(frame->file, "app.py");
	assert_int_equal(frame->line, line);
}

static void expect_native(const struct merged *merged, uint32_t at, mw_addr addr)
{
	assert_int_equal(merged->frames[at].module, 7);
	assert_int_equal(merged->frames[at].addr, addr);
}

/* Each run of the loop is replaced by what it evaluates, and what is between stays. */
static void test_runs(void **state)
{
	const mw_addr native[] = {0x10, IN_LOOP, 0x20, 0x30, IN_LOOP, 0x40};
	const struct mw_script_ref refs[] = {ref(0, 0, false), ref(1, 2, true), ref(2, 4, true)};
	const struct merged merged = merge(*state, native, 6, refs, 3, ROOM);

	assert_int_equal(merged.count, 7);
	assert_false(merged.truncated);
	expect_native(&merged, 0, 0x10);
	expect(*state, &merged, 1, "inner", 10);
	expect(*state, &merged, 2, "middle", 21);
	expect_native(&merged, 3, 0x20);
	expect_native(&merged, 4, 0x30);
	expect(*state, &merged, 5, "outer", 32);
	expect_native(&merged, 6, 0x40);
}

/* The same frame has the same number, another line another one. */
static void test_numbers(void **state)
{
	const mw_addr native[] = {IN_LOOP};
	const struct mw_script_ref refs[] = {ref(0, 0, false), ref(0, 2, false), ref(0, 0, true)};
	const struct merged merged = merge(*state, native, 1, refs, 3, ROOM);

	assert_int_equal(merged.count, 3);
	assert_int_equal(merged.frames[0].addr, merged.frames[2].addr);
	assert_int_not_equal(merged.frames[0].addr, merged.frames[1].addr);
}

/* A run that evaluates nothing yet has no frames, but is one. */
static void test_empty_run(void **state)
{
	const mw_addr native[] = {IN_LOOP, 0x20, IN_LOOP};
	const struct mw_script_ref refs[] = {{.code = MW_SCRIPT_LAST}, ref(2, 0, true)};
	const struct merged merged = merge(*state, native, 3, refs, 2, ROOM);

	assert_int_equal(merged.count, 2);
	expect_native(&merged, 0, 0x20);
	expect(*state, &merged, 1, "outer", 30);
}

/* More runs than frames: the loop's own frame stays. Fewer, as of a native stack that was cut: they come last. */
static void test_uneven(void **state)
{
	const mw_addr more[] = {IN_LOOP, IN_LOOP}, fewer[] = {0x10};
	const struct mw_script_ref refs[] = {ref(0, 0, true)};
	struct merged merged = merge(*state, more, 2, refs, 1, ROOM);

	assert_int_equal(merged.count, 2);
	expect(*state, &merged, 0, "inner", 10);
	expect_native(&merged, 1, IN_LOOP);
	merged = merge(*state, fewer, 1, refs, 1, ROOM);
	assert_int_equal(merged.count, 2);
	expect_native(&merged, 0, 0x10);
	expect(*state, &merged, 1, "inner", 10);
}

/* On a whole stack a run without a frame of the loop is within the others; on one that was cut it may be beyond them. */
static void test_unrecognised(void **state)
{
	struct rig *rig = *state;
	const mw_addr native[] = {0x10, 0x20, IN_LOOP, 0x40};
	const struct mw_script_ref refs[] = {ref(0, 0, true), ref(1, 0, true)};
	struct merged merged = merge(rig, native, 4, refs, 2, ROOM);

	assert_int_equal(merged.count, 5);
	expect(rig, &merged, 2, "inner", 10);
	expect(rig, &merged, 3, "middle", 20);
	expect_native(&merged, 4, 0x40);
	rig->cut = MW_STACK_BROKEN;
	merged = merge(rig, native, 4, refs, 2, ROOM);
	rig->cut = MW_STACK_COMPLETE;
	assert_int_equal(merged.count, 5);
	expect(rig, &merged, 2, "inner", 10);
	expect_native(&merged, 3, 0x40);
	expect(rig, &merged, 4, "middle", 20);
}

static void test_no_room(void **state)
{
	const mw_addr native[] = {0x10, IN_LOOP};
	const struct mw_script_ref refs[] = {ref(0, 0, false), ref(1, 0, true)};
	const struct merged merged = merge(*state, native, 2, refs, 2, 2);

	assert_int_equal(merged.count, 2);
	assert_true(merged.truncated);
	expect(*state, &merged, 1, "inner", 10);
}

/* Another code object lies there than when the frame was read; one that was read in time keeps its name. */
static void test_gone(void **state)
{
	struct rig *rig = *state;
	const mw_addr native[] = {IN_LOOP};
	const struct mw_script_ref refs[] = {ref(0, 0, false), ref(1, 0, true)};
	struct merged merged;
	bool forgotten;

	assert_true(mw_script_learn(rig->script, getpid(), &refs[1], &forgotten));
	assert_false(forgotten);
	codes[0][72 / 8] = 99;
	codes[1][72 / 8] = 99;
	merged = merge(rig, native, 1, refs, 2, ROOM);
	assert_int_equal(merged.count, 2);
	expect(rig, &merged, 0, "(Python code that is gone)", 0);
	expect(rig, &merged, 1, "middle", 20);
}

UNIT_GROUP(merge)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_empty_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_uneven, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unrecognised, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

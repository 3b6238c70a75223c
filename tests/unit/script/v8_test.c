// SPDX-License-Identifier: MIT
/* v8_test.c: V8's objects in memory of this process's own, laid out as V8 12 has them; then such as make no sense. */
#include "script/v8_parts.h"
#include "symbol/symbolizer.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Instance types. */
enum {
	ONE_BYTE = 40,
	CONS = 41,
	THIN = 45,
	BYTES = 212,
	BYTECODE = 205,
	CODE = 206,
	MAP = 264,
	SCOPE = 272,
	SHARED = 274,
	SCRIPT = 167,
	ARRAY = 174
};

static const struct v8_version version = {
	.major = 12,
	.minor = 4,
	.positions = 24,
	.scopes = {1, 2},
	.code = {.deoptimization = 8, .positions = 16, .stream = 32, .start = 40, .size = 52},
	.deoptimization = {.literals = 2, .function = 6, .inlined = 7},
};

static const int32_t constants[V8_CONSTANTS] = {
	[V8_FUNCTION_SHARED] = 32,    [V8_SHARED_NAME] = 16,        [V8_SHARED_SCRIPT] = 32,
	[V8_SCRIPT_SOURCE] = 8,       [V8_SCRIPT_NAME] = 16,        [V8_MAP_TYPE] = 12,
	[V8_STRING_LENGTH] = 12,      [V8_ONE_BYTE_CHARS] = 16,     [V8_TWO_BYTE_CHARS] = 16,
	[V8_CONS_FIRST] = 16,         [V8_CONS_SECOND] = 24,        [V8_SLICED_PARENT] = 16,
	[V8_SLICED_OFFSET] = 24,      [V8_THIN_ACTUAL] = 16,        [V8_EXTERNAL_RESOURCE] = 16,
	[V8_ARRAY_LENGTH] = 8,        [V8_ARRAY_DATA] = 16,         [V8_BYTECODE_DATA] = 64,
	[V8_SCOPE_LOCALS] = 2,        [V8_SCOPE_FIRST] = 3,         [V8_TYPE_SHARED] = SHARED,
	[V8_TYPE_SCOPE] = SCOPE,      [V8_TYPE_SCRIPT] = SCRIPT,    [V8_TYPE_BYTECODE] = BYTECODE,
	[V8_TYPE_BYTES] = BYTES,      [V8_TYPE_CODE] = CODE,        [V8_TYPE_ARRAY] = ARRAY,
	[V8_TYPE_TRUSTED_BYTES] = -1, [V8_TYPE_TRUSTED_ARRAY] = -1, [V8_TYPE_PROTECTED_ARRAY] = -1,
	[V8_TYPE_STREAM] = -1,
};

struct world {
	struct mw_modules *modules;
	struct mw_v8 v8;
	uint64_t memory[4096];
	size_t used; /* words */
	struct mw_javascript frame;
	uint64_t *shared, *scope, *script, *bytecode;
};

static uint64_t smi(uint32_t number)
{
	return (uint64_t)number << 32;
}

static uint64_t tagged(const uint64_t *object)
{
	return (uint64_t)(uintptr_t)object + 1;
}

/* An object of so many words, with a map of its own. */
static uint64_t *make(struct world *world, uint16_t type, size_t words)
{
	uint64_t *map = &world->memory[world->used], *object = map + 2;

	world->used += words + 2;
	assert_true(world->used <= sizeof(world->memory) / sizeof(world->memory[0]));
	memcpy((uint8_t *)map + 12, &type, sizeof(type));
	object[0] = tagged(map);
	return object;
}

static uint64_t *make_text(struct world *world, const char *text)
{
	uint32_t length = (uint32_t)strlen(text);
	uint64_t *string = make(world, ONE_BYTE, 3 + length / 8);

	memcpy((uint8_t *)string + 12, &length, sizeof(length));
	memcpy(string + 2, text, length);
	return string;
}

static uint64_t *make_cons(struct world *world, const uint64_t *first, const uint64_t *second, uint32_t length)
{
	uint64_t *string = make(world, CONS, 4);

	memcpy((uint8_t *)string + 12, &length, sizeof(length));
	string[2] = tagged(first);
	string[3] = tagged(second);
	return string;
}

static uint64_t *make_bytes(struct world *world, const uint8_t *bytes, uint32_t size)
{
	uint64_t *array = make(world, BYTES, 3 + size / 8);

	array[1] = smi(size);
	memcpy(array + 2, bytes, size);
	return array;
}

static bool read_word(void *context, uint64_t addr, uint64_t *word)
{
	(void)context;
	memcpy(word, (const void *)(uintptr_t)addr, sizeof(*word)); // NOLINT(performance-no-int-to-ptr)
	return true;
}

static void look(struct world *world)
{
	const struct mw_javascript_layout *layout = &world->v8.layout;

	world->frame.shared = tagged(world->shared);
	assert_true(mw_javascript_check(layout, read_word, NULL, world->frame.shared, &world->frame.check));
	assert_true(
		mw_javascript_place(layout, read_word, NULL, tagged(world->bytecode), smi(63 + 5), &world->frame.at));
}

/* function leak() of "/app/a.js", in its fourth line. */
static int setup(void **state)
{
	/* At 0 position 2; at 4, no statement, position 19, raw: (19 + 1) << 1. */
	static const uint8_t positions[] = {0, 12, 9, 68};
	struct world *world = calloc(1, sizeof(*world));
	uint64_t *name, *source;

	assert_non_null(world);
	assert_null(mw_modules_create(&world->modules));
	world->v8.modules = world->modules;
	world->v8.version = &version;
	memcpy(world->v8.constants, constants, sizeof(constants));
	world->v8.layout = (struct mw_javascript_layout){31, 15, 31, 7, 63, {0}};
	assert_null(
		mw_modules_add_named(world->modules, MW_NAMED_FRAMES_JAVASCRIPT, &world->v8.named, &world->v8.module));
	name = make_text(world, "leak");
	source = make_cons(world, make_text(world, "one\r\ntwo\nthree"), make_text(world, "\rfour four\n"), 25);
	world->scope = make(world, SCOPE, 16);
	world->scope[1] = smi(2 | 3u << 12);
	world->scope[3] = smi(1);
	world->scope[4] = tagged(make_text(world, "local"));
	world->scope[6] = tagged(name);
	world->script = make(world, SCRIPT, 16);
	world->script[1] = tagged(source);
	world->script[2] = tagged(make_text(world, "file:///app/a.js"));
	world->bytecode = make(world, BYTECODE, 16);
	world->bytecode[1] = smi(10);
	world->bytecode[3] = tagged(make_bytes(world, positions, sizeof(positions)));
	world->shared = make(world, SHARED, 8);
	world->shared[1] = tagged(world->bytecode);
	world->shared[2] = tagged(world->scope);
	world->shared[4] = tagged(world->script);
	look(world);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	v8_names_deinit(&world->v8);
	v8_lines_deinit(&world->v8);
	mw_modules_destroy(world->modules);
	free(world);
	return 0;
}

/* NULL: it has no name. */
static const struct mw_symbol_frame *named(struct world *world)
{
	const struct mw_raw_frame frame = {.addr = 0x1000, .module = MW_MODULE_NONE};
	const struct mw_raw_stack stack = {.frames = &frame, .count = 1};
	struct mw_raw_frame out;
	uint32_t count;
	bool truncated;

	assert_null(mw_v8_learn(&world->v8, getpid(), &world->frame, frame.addr));
	mw_v8_name(&world->v8, &stack, &world->frame, &out, 1, &count, &truncated);
	assert_int_equal(count, 1);
	assert_false(truncated);
	return out.module == world->v8.module ? mw_named_frames_get(world->v8.named, (uint32_t)out.addr) : NULL;
}

static void check(struct world *world, const char *function, uint32_t line)
{
	const struct mw_symbol_frame *frame = named(world);

	assert_non_null(frame);
	assert_string_equal(frame->function, function);
	assert_string_equal(frame->file, "/app/a.js");
	assert_int_equal(frame->line, line);
}

static void test_function(void **state)
{
	check(*state, "leak", 4);
}

static void test_first_line(void **state)
{
	struct world *world = *state;

	assert_true(mw_javascript_place(&world->v8.layout, read_word, NULL, tagged(world->bytecode), smi(63 + 1),
					&world->frame.at));
	check(world, "leak", 1);
	world->script[3] = smi(40);
	world->frame.at++;
	check(world, "leak", 41);
}

static void test_without_a_name(void **state)
{
	struct world *world = *state;

	world->scope[1] = smi(2);
	check(world, "(anonymous)", 4);
}

static void test_inferred_name(void **state)
{
	struct world *world = *state;

	world->scope[1] = smi(2 | 1u << 14);
	check(world, "leak", 4);
}

/* Objects have moved since the frame was read. */
static void test_moved(void **state)
{
	struct world *world = *state;

	world->shared[2] = tagged(make_text(world, "another"));
	assert_null(named(world));
}

/* What stands in the frame is left over from another function's. */
static void test_other_bytecode(void **state)
{
	struct world *world = *state;

	world->shared[1] = smi(99);
	look(world);
	assert_null(named(world));
}

static void test_no_function(void **state)
{
	struct world *world = *state;

	world->frame.shared = tagged(world->scope);
	assert_true(mw_javascript_check(&world->v8.layout, read_word, NULL, world->frame.shared, &world->frame.check));
	assert_null(named(world));
}

static void test_place_beyond(void **state)
{
	struct world *world = *state;
	uint64_t at;

	assert_false(
		mw_javascript_place(&world->v8.layout, read_word, NULL, tagged(world->bytecode), smi(63 + 10), &at));
	assert_false(mw_javascript_place(&world->v8.layout, read_word, NULL, tagged(world->bytecode), smi(62), &at));
	assert_false(mw_javascript_place(&world->v8.layout, read_word, NULL, tagged(world->bytecode), 8, &at));
}

/* A string that is made of itself, and one that leads nowhere, end: the function has no line then. */
static void test_strings_that_never_end(void **state)
{
	struct world *world = *state;
	uint64_t *source = make_cons(world, world->script, world->script, 1u << 30);

	source[2] = source[3] = tagged(source);
	world->script[1] = tagged(source);
	look(world);
	check(world, "leak", 0);
	source = make(world, THIN, 4);
	memcpy((uint8_t *)source + 12, &(uint32_t){20}, sizeof(uint32_t));
	source[2] = tagged(source);
	world->script[1] = tagged(source);
	world->frame.at++;
	check(world, "leak", 0);
}

static void test_table_of_anything(void **state)
{
	uint8_t bytes[64];
	uint64_t raw;
	uint32_t at;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)((round * 2654435761u) >> (i % 24) ^ i * round);
		if (v8_find_position(bytes, sizeof(bytes), 1000, &raw, &at))
			assert_true(at <= 1000);
	}
	memset(bytes, 0xff, sizeof(bytes));
	assert_false(v8_find_position(bytes, sizeof(bytes), 1000, &raw, &at));
	assert_false(v8_find_position(bytes, 0, 1000, &raw, &at));
}

/* Three translations of a function that Maglev of V8 13.6 has made, the last two of which repeat parts of the first. */
static const uint8_t translations[] = {
	0x0e, 0x00, 0x06, 0x04, 0x01, 0xb4, 0x01, 0x06, 0x00, 0x0a, 0x26, 0x08, 0x28, 0x03, 0x28, 0x0c, 0x25,
	0x28, 0x0a, 0x25, 0x25, 0x28, 0x0e, 0x26, 0x0a, 0x25, 0x25, 0x25, 0x25, 0x25, 0x0a, 0x02, 0x03, 0x01,
	0x26, 0x16, 0x26, 0x10, 0x28, 0x14, 0x26, 0x18, 0x00, 0x0c, 0x02, 0x04, 0x08, 0x00, 0x02, 0x26, 0x16,
	0x26, 0x10, 0x26, 0x14, 0x25, 0x25, 0x25, 0x25, 0x25, 0x25, 0x25, 0x25, 0x25, 0x0e, 0x40, 0x08, 0x04,
	0x41, 0x01, 0x44, 0x02, 0x04, 0x08, 0x32, 0x28, 0x12, 0x28, 0x16, 0x32, 0x05, 0x02, 0x28, 0x18, 0x26,
	0x14, 0x0e, 0x56, 0x06, 0x04, 0x41, 0x00, 0x84, 0x01, 0x02, 0x04, 0x08, 0x00, 0x02, 0x39,
};

static void test_translations(void **state)
{
	static const struct {
		uint32_t index;
		int32_t inner; /* offset in the function that is inlined */
	} cases[] = {{0, 6}, {64, 34}, {86, 66}};
	struct v8_translated out[V8_INLINED];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(v8_translate(translations, sizeof(translations), cases[i].index, out), 2);
		assert_int_equal(out[0].offset, 90);
		assert_int_equal(out[0].function, 3);
		assert_int_equal(out[0].bytecode, 0);
		assert_int_equal(out[1].offset, cases[i].inner);
		assert_int_equal(out[1].function, 1);
		assert_int_equal(out[1].bytecode, 2);
	}
	assert_int_equal(v8_translate(translations, sizeof(translations), 1, out), 0);
	assert_int_equal(v8_translate(translations, sizeof(translations), sizeof(translations), out), 0);
	assert_int_equal(v8_translate(translations, 40, 0, out), 0);
}

static void test_translation_of_anything(void **state)
{
	struct v8_translated out[V8_INLINED];
	uint8_t bytes[sizeof(translations)];
	uint32_t chance = 1;

	(void)state;
	for (unsigned round = 0; round < 50000; round++) {
		memcpy(bytes, translations, sizeof(bytes));
		for (unsigned i = 0; i < 1 + round % 5; i++) {
			chance = chance * 1664525u + 1013904223u;
			bytes[(chance >> 8) % sizeof(bytes)] = (uint8_t)(chance >> 24);
		}
		for (uint32_t index = 0; index < sizeof(bytes); index++)
			assert_true(v8_translate(bytes, sizeof(bytes), index, out) <= V8_INLINED);
	}
}

UNIT_GROUP(v8)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inferred_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_bytecode, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_place_beyond, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strings_that_never_end, setup, teardown),
		cmocka_unit_test(test_table_of_anything),
		cmocka_unit_test(test_translations),
		cmocka_unit_test(test_translation_of_anything),
	};

	return cmocka_run_group_tests_name("v8", tests, NULL, NULL);
}

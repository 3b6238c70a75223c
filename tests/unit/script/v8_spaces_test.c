// SPDX-License-Identifier: MIT
/* v8_spaces_test.c: chunks of V8's heap in memory of this process's own, laid out as each version has them; then such as
 * make no sense. */
#include "base/vector.h"
#include "script/v8_parts.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE   4096u
#define CHUNK  (256u << 10)
#define CHUNKS 8u
#define OLD    1u /* a chunk, */
#define LARGE  3u /* … one that is as long as a chunk and a half, */
#define SHARED 6u /* … and one that is read only */
#define WORDS  (CHUNK / 8)

/* Where a version has the words of a chunk, and how it calls spaces. */
static const struct shape {
	struct v8_version version;
	bool elsewhere; /* what is behind its flags */
	uint8_t flags, metadata, size, heap, start, end, owner;
	uint8_t old_number, large_number, numbers;
	uint64_t freed;
} shapes[] = {
	{{.major = 10}, false, 1, 0, 0, 2, 3, 4, 8, 1, 4, 8, 1u << 19},
	{{.major = 11}, false, 1, 0, 0, 2, 3, 4, 8, 2, 6, 9, 1u << 19},
	{{.major = 12}, false, 0, 1, 2, 3, 4, 5, 9, 2, 7, 11, 1u << 16},
	{{.major = 13}, true, 0, 1, 6, 8, 9, 7, 10, 2, 8, 13, 1u << 19},
};

struct world {
	const struct shape *shape;
	struct mw_v8 v8;
	uint64_t *chunks;
	struct mw_maps all, maps;
	struct mw_mapping mappings[8];
	uint64_t owners[2][3], metadata[3][16]; /* as malloc has them: nothing of a chunk's */
	struct mw_script_spaces spaces;
};

static uint64_t address(const void *at)
{
	return (uint64_t)(uintptr_t)at;
}

static uint64_t *chunk_at(struct world *world, size_t number)
{
	return world->chunks + number * WORDS;
}

/* The words that its fields are in. */
static uint64_t *fields(struct world *world, size_t number)
{
	return world->shape->elsewhere ? world->metadata[number / 3] : chunk_at(world, number);
}

static void make_chunk(struct world *world, size_t number, uint64_t size, const uint64_t *owner)
{
	const struct shape *shape = world->shape;
	uint64_t *head = chunk_at(world, number), *words = fields(world, number), at = address(head);

	memset(head, 0, 128);
	memset(world->metadata[number / 3], 0, sizeof(world->metadata[0]));
	if (shape->metadata)
		head[shape->metadata] = address(words);
	words[shape->size] = size;
	words[shape->start] = at + 0x1100;
	words[shape->end] = at + size - 80;
	words[shape->heap] = owner ? owner[1] : 0;
	words[shape->owner] = address(owner);
}

static void make(struct world *world)
{
	const struct shape *shape = world->shape;

	for (size_t i = 0; i < 2; i++) {
		world->owners[i][0] = address(shapes);
		world->owners[i][1] = address(world->owners);
		world->owners[i][2] = 0xabcdef0100000000 | (i ? shape->large_number : shape->old_number);
	}
	make_chunk(world, OLD, CHUNK, world->owners[0]);
	make_chunk(world, LARGE, CHUNK * 3 / 2, world->owners[1]);
	make_chunk(world, SHARED, 4 * PAGE, NULL);
	world->v8.version = &shape->version;
}

/* The chunks' mappings, and those of what is outside of them, with gaps around that which is read only. */
static int set_up(void **state, size_t number)
{
	struct world *world = calloc(1, sizeof(*world));
	uint8_t *memory = mmap(NULL, (CHUNKS + 1) * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mw_mapping whole = {.read = true, .write = true, .path = ""};
	mw_addr low;

	assert_true(world && memory != MAP_FAILED);
	low = (address(memory) + CHUNK - 1) / CHUNK * CHUNK;
	world->chunks = (uint64_t *)(void *)(memory + (low - address(memory)));
	world->shape = &shapes[number];
	assert_null(mw_maps_read(getpid(), &world->all));
	make(world);
	whole.start = low + OLD * CHUNK;
	whole.end = low + SHARED * CHUNK;
	world->mappings[world->maps.count++] = *mw_maps_find(&world->all, address(shapes));
	world->mappings[world->maps.count++] = whole;
	world->mappings[world->maps.count++] =
		(struct mw_mapping){.start = whole.end, .end = whole.end + 4 * PAGE, .read = true, .path = ""};
	world->maps.items = world->mappings;
	*state = world;
	return 0;
}

static int set_up_10(void **state)
{
	return set_up(state, 0);
}

static int set_up_11(void **state)
{
	return set_up(state, 1);
}

static int set_up_12(void **state)
{
	return set_up(state, 2);
}

static int set_up_13(void **state)
{
	return set_up(state, 3);
}

static int tear_down(void **state)
{
	struct world *world = *state;

	assert_int_equal(munmap(world->chunks, CHUNKS * CHUNK), 0);
	mw_maps_deinit(&world->all);
	mw_script_spaces_deinit(&world->spaces);
	free(world);
	return 0;
}

/* How memory is called that begins at a chunk, and how long that is; NULL: it is nobody's. */
static const char *named(struct world *world, size_t number, uint64_t *size)
{
	mw_script_spaces_deinit(&world->spaces);
	assert_null(mw_v8_spaces(&world->v8, getpid(), &world->maps, &world->spaces));
	MW_EACH(space, world->spaces.items, world->spaces.count) {
		if (space->low != address(chunk_at(world, number)))
			continue;
		*size = space->high - space->low;
		return space->name;
	}
	return NULL;
}

static void check(struct world *world, size_t number, const char *name, uint64_t size)
{
	uint64_t found;

	assert_string_equal(named(world, number, &found), name);
	assert_int_equal(found, size);
}

static void check_all(struct world *world, const char *old_space, const char *large, const char *shared)
{
	check(world, OLD, old_space, CHUNK);
	check(world, LARGE, large, CHUNK * 3 / 2);
	check(world, SHARED, shared, 4 * PAGE);
	assert_int_equal(world->spaces.count, 3);
}

static void spaces_are_named(void **state)
{
	struct world *world = *state;

	assert_non_null(mw_v8_file(getpid(), &world->maps));
	assert_int_equal(mw_v8_file(getpid(), &world->maps)->inode, world->mappings[0].inode);
	check_all(world, "V8 old_space", "V8 large_object_space", "V8 read_only_space");
	*(world->shape->elsewhere ? chunk_at(world, OLD) : fields(world, OLD) + world->shape->flags) |=
		world->shape->freed;
	check(world, OLD, "V8 freed chunks", CHUNK);
	world->v8.version = NULL;
	check_all(world, "V8 heap", "V8 heap", "V8 heap");
}

/* Chunks of one space that touch each other are one piece. */
static void neighbours_are_joined(void **state)
{
	struct world *world = *state;

	make_chunk(world, LARGE, CHUNK, world->owners[0]);
	memcpy(chunk_at(world, OLD + 1), chunk_at(world, OLD), 128);
	if (!world->shape->elsewhere) {
		make_chunk(world, OLD + 1, CHUNK, world->owners[0]);
		check(world, OLD, "V8 old_space", 3 * CHUNK);
	} else {
		/* What says that it is another one is no chunk's. */
		check(world, OLD, "V8 old_space", CHUNK);
		check(world, LARGE, "V8 old_space", CHUNK);
	}
}

static void what_does_not_fit_has_no_name(void **state)
{
	struct world *world = *state;
	const struct shape *shape = world->shape;
	uint64_t *words = fields(world, LARGE), at = address(chunk_at(world, LARGE));
	const struct {
		uint64_t *word, value;
	} wrong[] = {
		{&words[shape->size], CHUNK},
		{&words[shape->size], 0},
		{&words[shape->size], CHUNK * 3 / 2 + 1},
		{&words[shape->size], UINT64_C(1) << 39},
		{&words[shape->size], UINT64_MAX},
		{&words[shape->end], at + 64 * PAGE},
		{&words[shape->end], at + CHUNK * 3 / 2 + 1},
		{&words[shape->end], 0},
		{&words[shape->start], at},
		{&words[shape->start], at + CHUNK},
		{&words[shape->heap], 0},
		{&words[shape->heap], at},
		{&words[shape->owner], 0},
		{&words[shape->owner], UINT64_MAX & ~UINT64_C(7)},
		{&words[shape->owner], address(world->owners[1]) + 1},
		{&world->owners[1][0], address(world->chunks)},
		{&world->owners[1][0], 0},
		{&world->owners[1][1], 0},
		{&world->owners[1][2], shape->numbers},
		{&world->owners[1][2], UINT32_MAX},
		{&chunk_at(world, LARGE)[1], 8},
	};
	uint64_t size;

	MW_EACH(one, wrong, sizeof(wrong) / sizeof(wrong[0])) {
		/* The flags are no field of these. */
		if (one->word == &chunk_at(world, LARGE)[1] && !shape->metadata)
			continue;
		make(world);
		assert_non_null(named(world, LARGE, &size));
		*one->word = one->value;
		assert_null(named(world, LARGE, &size));
	}
	make(world);
	world->mappings[2].end += PAGE;
	assert_null(named(world, SHARED, &size));
	world->mappings[2].end -= PAGE;
	world->mappings[2].write = true;
	assert_null(named(world, SHARED, &size));
	world->mappings[1].shared = true;
	assert_null(named(world, OLD, &size));
}

/* Whatever stands there: what is said is in order, and in what is mapped. */
static void anything_is_read(void **state)
{
	struct world *world = *state;
	uint32_t seed = 1;

	for (unsigned round = 0; round < 5000; round++) {
		const size_t numbers[] = {OLD, LARGE, SHARED};
		mw_addr last = world->mappings[1].start;

		if (round % 4 == 0)
			make(world);
		for (unsigned i = 0; i < 3; i++) {
			seed = seed * 1664525 + 1013904223;
			uint64_t *words = seed >> 30 ? fields(world, numbers[i]) : chunk_at(world, numbers[i]);
			uint64_t *word = &words[(seed >> 8) % 16];

			*word = seed >> 16 & 1   ? *word + (seed >> 4 & 0xfff) * PAGE
				: seed >> 17 & 1 ? *word ^ UINT64_C(1) << (seed >> 20) % 64
						 : words[(seed >> 12) % 16];
		}
		world->v8.version = round % 8 ? &world->shape->version : NULL;
		mw_script_spaces_deinit(&world->spaces);
		assert_null(mw_v8_spaces(&world->v8, getpid(), &world->maps, &world->spaces));
		MW_EACH(space, world->spaces.items, world->spaces.count) {
			assert_true(space->low >= last && space->low < space->high);
			last = space->high;
		}
		assert_true(last <= world->mappings[2].end);
		(void)mw_v8_file(getpid(), &world->maps);
	}
}

#define OF_EACH(test)                                                                                                  \
	cmocka_unit_test_setup_teardown(test, set_up_10, tear_down),                                                   \
		cmocka_unit_test_setup_teardown(test, set_up_11, tear_down),                                           \
		cmocka_unit_test_setup_teardown(test, set_up_12, tear_down),                                           \
		cmocka_unit_test_setup_teardown(test, set_up_13, tear_down)

UNIT_GROUP(v8_spaces)
{
	const struct CMUnitTest tests[] = {
		OF_EACH(spaces_are_named),
		OF_EACH(neighbours_are_joined),
		OF_EACH(what_does_not_fit_has_no_name),
		OF_EACH(anything_is_read),
	};

	return cmocka_run_group_tests_name("v8_spaces", tests, NULL, NULL);
}

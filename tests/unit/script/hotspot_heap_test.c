// SPDX-License-Identifier: MIT
/* hotspot_heap_test.c: what is used of a Java heap, of structures in memory of this process's own; then words that make no
 * sense. */
#include "script/hotspot_parts.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX   10000u
#define FLAG  24u
#define FLAGS 3u

static struct hotspot_layout layout;
static struct hotspot_flags flags;
/* The heap, and what it leads to. */
static uint64_t words[16], young[4], old[4], spaces[3][4], regions[3][4], *table[4], nodes;
static const void *young_at = young, *old_at = old;

static void set_field(enum hotspot_field_id id, unsigned word)
{
	layout.fields[id] = (struct hotspot_field){.there = true, .size = 8, .offset = 8 * word};
}

static void set_static(enum hotspot_field_id id, const void *at)
{
	layout.fields[id] = (struct hotspot_field){.there = true, .size = 8, .address = (uintptr_t)at};
}

static struct hotspot_heap_use use_by(enum hotspot_flag collector)
{
	memset(flags.values, 0, sizeof(uint64_t) * HOTSPOT_USES_NUMA);
	flags.values[collector] = 1;
	flags.values[HOTSPOT_HEAP_SIZE_MAX] = MAX;
	return hotspot_heap_use(&layout, getpid(), &flags, (uintptr_t)words);
}

static void assert_use(struct hotspot_heap_use use, uint64_t committed, uint64_t used)
{
	assert_int_equal(use.committed, committed);
	assert_int_equal(use.used, used);
}

static int set_up(void **state)
{
	(void)state;
	memset(&layout, 0, sizeof(layout));
	memset(&flags, 0, sizeof(flags));
	memset(words, 0, sizeof(words));
	for (unsigned i = 0; i < 3; i++) {
		spaces[i][1] = regions[i][1] = 1000 * (i + 1);
		spaces[i][2] = regions[i][2] = 1000 * (i + 1) + 10 * (i + 1);
	}
	young[1] = (uintptr_t)spaces[0];
	young[2] = (uintptr_t)spaces[1];
	old[1] = (uintptr_t)spaces[2];
	return 0;
}

static void generations_are_summed(void **state)
{
	(void)state;
	assert_use(use_by(HOTSPOT_USES_SERIAL), 0, 0);
	words[3] = (uintptr_t)young;
	words[4] = (uintptr_t)old;
	set_field(HOTSPOT_SERIAL_YOUNG, 3);
	set_field(HOTSPOT_SERIAL_OLD, 4);
	set_field(HOTSPOT_SERIAL_EDEN, 1);
	set_field(HOTSPOT_SERIAL_FROM, 2);
	set_field(HOTSPOT_SERIAL_SPACE, 1);
	set_field(HOTSPOT_CONTIGUOUS_BOTTOM, 1);
	set_field(HOTSPOT_CONTIGUOUS_TOP, 2);
	assert_use(use_by(HOTSPOT_USES_SERIAL), 0, 60);
	assert_use(use_by(HOTSPOT_USES_PARALLEL), 0, 0);
	set_static(HOTSPOT_PARALLEL_YOUNG, &young_at);
	set_static(HOTSPOT_PARALLEL_OLD, &old_at);
	set_field(HOTSPOT_PARALLEL_EDEN, 1);
	set_field(HOTSPOT_PARALLEL_FROM, 2);
	set_field(HOTSPOT_PARALLEL_SPACE, 1);
	set_field(HOTSPOT_MUTABLE_BOTTOM, 1);
	set_field(HOTSPOT_MUTABLE_TOP, 2);
	assert_use(use_by(HOTSPOT_USES_PARALLEL), 0, 60);
	/* Then eden is many spaces. */
	flags.values[HOTSPOT_USES_NUMA] = 1;
	assert_use(use_by(HOTSPOT_USES_PARALLEL), 0, 0);
	/* Its only space. */
	words[5] = (uintptr_t)spaces[1];
	set_field(HOTSPOT_EPSILON_SPACE, 5);
	assert_use(use_by(HOTSPOT_USES_EPSILON), 0, 20);
	spaces[1][2] = spaces[1][1] + MAX + 1;
	assert_use(use_by(HOTSPOT_USES_EPSILON), 0, 0);
	spaces[1][2] = spaces[1][1] - 1;
	assert_use(use_by(HOTSPOT_USES_EPSILON), 0, 0);
	assert_use(use_by(HOTSPOT_USES_SERIAL), 0, 0);
}

static void regions_are_summed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		table[i + 1] = regions[i];
	words[6] = (uintptr_t)table;
	words[7] = 4;
	set_field(HOTSPOT_G1_MANAGER, 2);
	set_field(HOTSPOT_G1_TABLE, 3);
	set_field(HOTSPOT_G1_TABLE_ITEMS, 1);
	set_field(HOTSPOT_G1_TABLE_LENGTH, 2);
	set_field(HOTSPOT_G1_REGION_BOTTOM, 1);
	assert_use(use_by(HOTSPOT_USES_G1), 0, 0);
	set_field(HOTSPOT_G1_REGION_TOP, 2);
	assert_use(use_by(HOTSPOT_USES_G1), 0, 60);
	words[7] = UINT64_MAX;
	assert_use(use_by(HOTSPOT_USES_G1), 0, 0);
	words[7] = 4;
	words[6] = 8;
	assert_use(use_by(HOTSPOT_USES_G1), 0, 0);
}

static void counts_are_read(void **state)
{
	(void)state;
	words[1] = 77;
	set_field(HOTSPOT_SHENANDOAH_USED, 1);
	assert_use(use_by(HOTSPOT_USES_SHENANDOAH), 0, 77);
	words[1] = MAX + 1;
	assert_use(use_by(HOTSPOT_USES_SHENANDOAH), 0, 0);
	layout.fields[HOTSPOT_SHENANDOAH_USED].there = false;
	words[2] = (uintptr_t)old;
	old[3] = 78;
	set_field(HOTSPOT_SHENANDOAH_GLOBAL, 2);
	set_field(HOTSPOT_SHENANDOAH_GENERATION_USED, 3);
	assert_use(use_by(HOTSPOT_USES_SHENANDOAH), 0, 78);
}

static void use_of_z_is_read(void **state)
{
	(void)state;
	words[8] = 900;
	words[9] = 800;
	set_field(HOTSPOT_Z_HEAP, 4);
	set_field(HOTSPOT_Z_ALLOCATOR, 3);
	set_field(HOTSPOT_Z_CAPACITY, 1);
	set_field(HOTSPOT_Z_USED, 2);
	assert_use(use_by(HOTSPOT_USES_Z), 900, 800);
	words[8] = MAX + 1;
	assert_use(use_by(HOTSPOT_USES_Z), 0, 0);
	words[8] = 900;
	/* From 21 to 23 the one without generations has types of its own. */
	words[11] = 700;
	words[12] = 600;
	set_field(HOTSPOT_X_HEAP, 6);
	set_field(HOTSPOT_X_ALLOCATOR, 4);
	set_field(HOTSPOT_X_CAPACITY, 1);
	set_field(HOTSPOT_X_USED, 2);
	assert_use(use_by(HOTSPOT_USES_Z), 700, 600);
	memset(flags.values, 0, sizeof(flags.values));
	flags.values[HOTSPOT_USES_Z] = flags.values[HOTSPOT_USES_Z_GENERATIONS] = 1;
	flags.values[HOTSPOT_HEAP_SIZE_MAX] = MAX;
	assert_use(hotspot_heap_use(&layout, getpid(), &flags, (uintptr_t)words), 900, 800);
	/* From 25 on by NUMA nodes. */
	layout.fields[HOTSPOT_Z_USED].there = layout.fields[HOTSPOT_X_HEAP].there = false;
	words[10] = (uintptr_t)young;
	young[1] = 500;
	young[2] = 400;
	set_field(HOTSPOT_Z_PARTITIONS, 2);
	set_field(HOTSPOT_Z_PARTITIONS_AT, 1);
	set_field(HOTSPOT_Z_PARTITION_CAPACITY, 1);
	set_field(HOTSPOT_Z_PARTITION_USED, 2);
	set_static(HOTSPOT_Z_NODES, &nodes);
	nodes = 1;
	assert_use(use_by(HOTSPOT_USES_Z), 500, 400);
	nodes = 2;
	assert_use(use_by(HOTSPOT_USES_Z), 0, 0);
}

/* A flag that is not known, and one whose name can't be read, are passed over. */
static void flags_are_read(void **state)
{
	static const bool yes = true;
	static const uint64_t size = 123;
	static const struct {
		const char *name;
		const void *value;
		uint64_t unused;
	} list[FLAGS] = {{"UseZGCs", &yes, 0}, {"MaxHeapSize", &size, 0}, {"UseG1GC", &yes, 0}};
	static const void *list_at = list;
	static uint64_t count = FLAGS;

	(void)state;
	hotspot_read_flags(&layout, getpid(), &flags);
	assert_int_equal(flags.values[HOTSPOT_HEAP_SIZE_MAX], 0);
	layout.sizes[HOTSPOT_FLAG_TYPE] = FLAG;
	set_static(HOTSPOT_FLAGS, &list_at);
	set_static(HOTSPOT_FLAG_COUNT, &count);
	set_field(HOTSPOT_FLAG_NAME, 0);
	set_field(HOTSPOT_FLAG_VALUE, 1);
	hotspot_read_flags(&layout, getpid(), &flags);
	assert_int_equal(flags.values[HOTSPOT_HEAP_SIZE_MAX], 123);
	assert_int_equal(flags.values[HOTSPOT_USES_G1], 1);
	assert_int_equal(flags.values[HOTSPOT_USES_Z], 0);
	/* It ends. */
	count = UINT64_MAX;
	list_at = (const void *)8;
	hotspot_read_flags(&layout, getpid(), &flags);
	assert_int_equal(flags.values[HOTSPOT_USES_G1], 0);
}

static void any_words_are_survived(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (unsigned id = HOTSPOT_SERIAL_YOUNG; id < HOTSPOT_FIELDS; id++)
		set_field(id, id % 16);
	for (unsigned round = 0; round < 2000; round++) {
		struct hotspot_heap_use use;

		for (unsigned i = 0; i < 16; i++)
			words[i] = rand_r(&seed) % 4 ? (uintptr_t)&words[rand_r(&seed) % 16]
						     : (uint64_t)rand_r(&seed) << (rand_r(&seed) % 33);
		use = use_by(HOTSPOT_USES_SERIAL + (enum hotspot_flag)(round % 6));
		assert_true(use.committed <= MAX && use.used <= MAX);
	}
}

UNIT_GROUP(hotspot_heap)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(generations_are_summed, set_up),
		cmocka_unit_test_setup(regions_are_summed, set_up),
		cmocka_unit_test_setup(counts_are_read, set_up),
		cmocka_unit_test_setup(use_of_z_is_read, set_up),
		cmocka_unit_test_setup(flags_are_read, set_up),
		cmocka_unit_test_setup(any_words_are_survived, set_up),
	};

	return cmocka_run_group_tests_name("hotspot_heap", tests, NULL, NULL);
}

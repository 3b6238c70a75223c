// SPDX-License-Identifier: MIT
/* What a killed memwatch has left: what of it is believed. */
#include "engine/jump/remains.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char list[] = "10000-11000 rw-p 00000000 00:00 0 \n"
			   "11000-12000 r-xp 00000000 00:00 0 \n"
			   "20000-40000 r-xp 00000000 00:00 0 \n"
			   "50000-60000 rwxp 00000000 00:00 0 \n"
			   "60000-70000 rw-p 00000000 00:00 0 [heap]\n"
			   "70000-80000 r-xp 00000000 08:01 77 /usr/lib/libc.so.6\n"
			   "80000-90000 rw-s 00000000 00:01 78 /memfd:memwatch (deleted)\n"
			   "90000-a0000 rw-s 00010000 00:01 78 /memfd:memwatch (deleted)\n"
			   "a0000-b0000 rw-p 00000000 00:01 79 /memfd:memwatch (deleted)\n"
			   "b0000-c0000 rw-s 00000000 00:01 80 /memfd:memwatches (deleted)\n";

static int setup(void **state)
{
	static struct mw_maps maps;

	assert_null(mw_maps_parse(list, sizeof(list) - 1, false, &maps));
	*state = &maps;
	return 0;
}

static int teardown(void **state)
{
	mw_maps_deinit(*state);
	return 0;
}

static void test_shared(void **state)
{
	const struct mw_maps *maps = *state;

	for (size_t i = 0; i < maps->count; i++)
		assert_int_equal(jump_remains_is_shared(&maps->items[i]), maps->items[i].start == 0x80000);
}

static void test_owned(void **state)
{
	static const struct {
		struct mw_ring_owned owned;
		bool possible;
	} cases[] = {
		{{0x10000, 0x1000, MW_RING_OWN_GUARD, 0}, true},
		{{0x10000, 0x2000, MW_RING_OWN_GUARD, 0}, false}, /* larger than a guard */
		{{0x10000, 0x2000, MW_RING_OWN_IMAGE, 0}, true},  /* two mappings, side by side */
		{{0x20000, 0x20000, MW_RING_OWN_TRAMPOLINES, 0}, true},
		{{0x21000, 0x1000, MW_RING_OWN_TRAMPOLINES, 0}, true}, /* has grown together with others */
		{{0x10000, 0x1000, MW_RING_OWN_NOTHING, 0}, false},    /* not written yet */
		{{0x10000, 0x1000, MW_RING_OWN_TRAMPOLINES + 1, 0}, false},
		{{0x10000, 0, MW_RING_OWN_TRAMPOLINES, 0}, false},
		{{0x10800, 0x1000, MW_RING_OWN_IMAGE, 0}, false},
		{{0x10000, 0x800, MW_RING_OWN_IMAGE, 0}, false},
		{{0x11000, 0x2000, MW_RING_OWN_IMAGE, 0}, false}, /* a hole behind */
		{{0x3f000, 0x2000, MW_RING_OWN_TRAMPOLINES, 0}, false},
		{{0x50000, 0x1000, MW_RING_OWN_TRAMPOLINES, 0}, false}, /* ours is never writable and executable */
		{{0x60000, 0x1000, MW_RING_OWN_IMAGE, 0}, false},       /* the heap */
		{{0x70000, 0x1000, MW_RING_OWN_TRAMPOLINES, 0}, false}, /* a file */
		{{0x80000, 0x1000, MW_RING_OWN_IMAGE, 0}, false},       /* shared */
		{{0xfffffffffffff000, 0x2000, MW_RING_OWN_TRAMPOLINES, 0}, false},
		{{0x10000, 0xfffffffffffff000, MW_RING_OWN_TRAMPOLINES, 0}, false},
		{{0, UINT64_C(1) << 40, MW_RING_OWN_TRAMPOLINES, 0}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (jump_remains_owned(*state, &cases[i].owned) != cases[i].possible)
			fail_msg("case %zu", i);
}

static void test_image(void **state)
{
	uint8_t *bytes = malloc(mw_stub_image_size);
	struct mw_stub_header *header = (struct mw_stub_header *)(void *)bytes;
	bool other;

	(void)state;
	assert_non_null(bytes);
#define FRESH() memcpy(bytes, mw_stub_image, mw_stub_image_size)
	FRESH();
	assert_true(jump_remains_is_image(bytes, mw_stub_image_size, &other));
	assert_int_equal(jump_remains_context(bytes)->guard, 0);
	for (uint64_t size = 0; size < mw_stub_image_size; size += 7)
		assert_false(jump_remains_is_image(bytes, size, &other));
	header->layout++;
	assert_false(jump_remains_is_image(bytes, mw_stub_image_size, &other));
	assert_true(other);
	FRESH();
	header->magic++;
	assert_false(jump_remains_is_image(bytes, mw_stub_image_size, &other));
	assert_false(other);
	for (size_t i = offsetof(struct mw_stub_header, size); i <= offsetof(struct mw_stub_header, context); i += 4)
		for (unsigned j = 0; j < 2; j++) {
			const uint32_t odd[] = {UINT32_MAX, mw_stub_image_size + 8};

			FRESH();
			memcpy(bytes + i, &odd[j], sizeof(odd[j]));
			assert_false(jump_remains_is_image(bytes, mw_stub_image_size, &other));
		}
	FRESH();
	header->context++;
	assert_false(jump_remains_is_image(bytes, mw_stub_image_size, &other));
	FRESH();
	header->code_end = mw_stub_image_size + 1;
	assert_false(jump_remains_is_image(bytes, mw_stub_image_size, &other));
	FRESH();
	header->returned = header->code_end;
	assert_false(jump_remains_is_image(bytes, mw_stub_image_size, &other));
#undef FRESH
	free(bytes);
}

static void test_slots(void **state)
{
	struct mw_ring_control control = {.magic = MW_RING_MAGIC, .slots = 4096, .slot_count = 16};
	uint64_t offset = 0, size = 4096 + 16 * sizeof(struct mw_ring_slot);
	uint32_t count = 0;

	(void)state;
	assert_true(jump_remains_slots(&control, size, &offset, &count));
	assert_int_equal(offset, 4096);
	assert_int_equal(count, 16);
	assert_false(jump_remains_slots(&control, size - 1, &offset, &count));
	control.slots = UINT64_MAX - 100;
	assert_false(jump_remains_slots(&control, size, &offset, &count));
	control.slots = 4096;
	control.slot_count = UINT32_MAX;
	assert_false(jump_remains_slots(&control, UINT64_MAX, &offset, &count));
	control.slot_count = 16;
	control.magic = 0; /* it was killed before it had laid it out */
	assert_false(jump_remains_slots(&control, size, &offset, &count));
}

static void test_locks(void **state)
{
	static const char locks[] = "1: FLOCK  ADVISORY  WRITE 4711 00:01:1056 0 EOF\n"
				    "2: POSIX  ADVISORY  WRITE 9 00:01:1057 0 EOF\n"
				    "2: -> FLOCK  ADVISORY  WRITE 10 08:1f:10561 0 EOF\n";

	(void)state;
	assert_true(jump_remains_locked(locks, 0, 1, 1056));
	assert_true(jump_remains_locked(locks, 8, 31, 10561));
	assert_false(jump_remains_locked(locks, 0, 1, 1057));
	assert_false(jump_remains_locked(locks, 0, 1, 105));
	assert_false(jump_remains_locked(locks, 0, 2, 1056));
	assert_false(jump_remains_locked("", 0, 1, 1056));
	assert_false(jump_remains_locked("1: FLOCK  ADVISORY  WRITE 4711 00:01:1056", 0, 1, 1056));
}

static void test_wiped_by_fork(void **state)
{
	static const char smaps[] = "00010000-00011000 rw-p 00000000 00:00 0 \n"
				    "Size:                  4 kB\n"
				    "VmFlags: rd wr mr mw me wf ac \n"
				    "7f0000020000-7f0000021000 rw-p 00000000 00:00 0 \n"
				    "VmFlags: rd wr mr mw me ac \n"
				    "7f0000030000-7f0000031000 rw-p 00000000 00:00 0 \n"
				    "VmFlags: rd wr wf\n"
				    "7f0000040000-7f0000041000 rw-p 00000000 00:00 0 \n";

	(void)state;
	assert_true(jump_remains_wiped_by_fork(smaps, 0x10000));
	assert_false(jump_remains_wiped_by_fork(smaps, 0x7f0000020000));
	assert_true(jump_remains_wiped_by_fork(smaps, 0x7f0000030000));
	assert_false(jump_remains_wiped_by_fork(smaps, 0x7f0000031000));
	assert_false(jump_remains_wiped_by_fork(smaps, 0x7f0000040000));
	assert_false(jump_remains_wiped_by_fork("", 0x10000));
}

UNIT_GROUP(jump_remains)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared), cmocka_unit_test(test_owned), cmocka_unit_test(test_image),
		cmocka_unit_test(test_slots),  cmocka_unit_test(test_locks), cmocka_unit_test(test_wiped_by_fork),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

// SPDX-License-Identifier: MIT
/* gap_test.c: where there is room for something in a process. */
#include "tracee/inject.h"
#include "tracee_child.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NEAR UINT64_C(0x7fff0000)
#define GIB  (UINT64_C(1) << 30)
#define MIB  (UINT64_C(1) << 20)

#define PROGRAM                                                                                                        \
	"555500000000-555500010000 r-xp 00000000 08:01 11 /bin/p\n"                                                    \
	"555500010000-555500011000 rw-p 00010000 08:01 11 /bin/p\n"
#define HEAP "555500811000-555500900000 rw-p 00000000 00:00 0 [heap]\n"
#define LIBRARIES                                                                                                      \
	"7f0000000000-7f0000100000 r-xp 00000000 08:01 12 /lib/a.so\n"                                                 \
	"7f0000100000-7f0000180000 rw-p 00000000 00:00 0 \n"                                                           \
	"7f0000190000-7f0000200000 r-xp 00000000 08:01 13 /lib/b.so\n"
#define STACK                                                                                                          \
	"7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0 [stack]\n"                                                    \
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"

struct sample {
	const char *maps;
	mw_addr low, high;
	uint64_t reach, size;
	mw_addr want; /* 0: none */
};

static const struct sample samples[] = {
	/* Not between the libraries: away from them, above or below, as far as it is within reach. */
	{PROGRAM LIBRARIES, 0x7f0000100000, 0x7f0000180000, NEAR, 0xe000, 0x7f0000100000 + NEAR - 0xe000},
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000100000, NEAR, 0xf000, 0x7f0000100000 - NEAR},
	/* Where nothing else is, in the middle. */
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000200000, 0x1fffff, 0x1000, 0x7f0000187000},
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000200000, 0x1fffff, 0xe000, 0x7f0000181000},
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000200000, 0x1fffff, 0xf000, 0},
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000200000, UINT64_MAX / 2, 0x1000, 0x2aaa8007f000},
	/* Every address of it must reach both ends. */
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000200000, 0x180000, 0x1000, 0},
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000180000, 0x181fff, 0x1000, 0x7effffffe000},
	{PROGRAM LIBRARIES, 0x7f0000000000, 0x7f0000180000, 0x181ffe, 0x1000, 0},
	/* The program's own: not where its heap grows, be it there yet or not. */
	{PROGRAM HEAP LIBRARIES, 0x555500000000, 0x555500010000, NEAR, 0x1000, 0x555500010000 - NEAR},
	{PROGRAM LIBRARIES, 0x555500010000, 0x555500011000, NEAR, 0x1000, 0x555500011000 - NEAR},
	/* Between the program and its heap, where that alone is in reach. */
	{PROGRAM HEAP LIBRARIES, 0x555500010000, 0x555500011000, 0x11000, 0x1000, 0x555500020000},
	/* Low programs: below them there is room, but none at the bottom of memory, and less than above the heap's. */
	{"00400000-00500000 r-xp 00000000 08:01 11 /bin/p\n00500000-00600000 rw-p 00000000 00:00 0 [heap]\n", 0x400000,
	 0x500000, 0x300000, 0x100000, 0x200000},
	{"00200000-00500000 r-xp 00000000 08:01 11 /bin/p\n00500000-00600000 rw-p 00000000 00:00 0 [heap]\n", 0x400000,
	 0x500000, NEAR, 0x100000, 0x400000 + NEAR - 0x100000},
	/* Less than 1 GiB can be kept for the heap: half of it then. */
	{"00100000-00500000 r-xp 00000000 08:01 11 /bin/p\n00500000-00600000 rw-p 00000000 00:00 0 [heap]\n"
	 "38000000-40000000 rw-p 00000000 00:00 0 \n40000000-80000000 rw-p 00000000 00:00 0 \n",
	 0x100000, 0x500000, GIB, 0x100000, 0x2c27f000},
	/* Not where the stack grows, as long as there is another place. */
	{PROGRAM "7ffd00000000-7ffdf0000000 r-xp 00000000 08:01 12 /a\n" STACK, 0x7ffdefff0000, 0x7ffdf0000000, NEAR,
	 0x1000, 0x7ffdefff0000 + NEAR - 0x1000},
	{PROGRAM "7ffd00000000-7ffdfa000000 r-xp 00000000 08:01 12 /a\n" STACK, 0x7ffdf9ff0000, 0x7ffdfa000000, NEAR,
	 0x1000, 0x7ffdf9ff0000 + NEAR - 0x1000},
	{PROGRAM "7ffd00000000-7ffdfa000000 r-xp 00000000 08:01 12 /a\n" STACK, 0x7ffdf9ff0000, 0x7ffdfa000000, 0x20000,
	 0x1000, 0x7ffdfa00f000},
	{PROGRAM "7ffd00000000-7ffdff800000 r-xp 00000000 08:01 12 /a\n" STACK, 0x7ffdff7f0000, 0x7ffdff800000, 0x20000,
	 0x1000, 0},
	/* Nonsense. */
	{LIBRARIES, 0x7f0000100000, 0x7f0000100000, NEAR, 0x1000, 0},
	{LIBRARIES, 0x7f0000000000, 0x7f0000100000, NEAR, 0, 0},
	{LIBRARIES, 0x7f0000000000, 0x7f0000100000, NEAR, 0x1001, 0},
	{LIBRARIES, 0x7f0000000000, 0x7f0000100000, NEAR, UINT64_C(1) << 60, 0},
	{LIBRARIES, 0x7f0000000000, 0x7f0000100000, UINT64_MAX, UINT64_C(1) << 48, 0},
};

static void gaps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct sample *sample = &samples[i];
		struct mw_maps maps = {0};
		mw_addr got = 0;
		bool found;

		FINE(mw_maps_parse(sample->maps, strlen(sample->maps), false, &maps));
		found = mw_inject_find_gap(&maps, sample->low, sample->high, sample->reach, sample->size, &got);
		if (found != (sample->want != 0) || got != sample->want)
			fail_msg("sample %zu: 0x%llx, not 0x%llx", i, (unsigned long long)got,
				 (unsigned long long)sample->want);
		mw_maps_deinit(&maps);
	}
}

/* Whatever the maps are, what is found is free and within reach. */
static void random_gaps(void **state)
{
	(void)state;
	srandom(1);
	for (unsigned i = 0; i < 2000; i++) {
		struct mw_mapping items[20] = {0};
		struct mw_maps maps = {.items = items, .count = 1 + (size_t)random() % 20};
		mw_addr at = (mw_addr)random() * 4096, low, high, got;
		uint64_t reach = (uint64_t)random() + 1, size = 4096 * (1 + (uint64_t)random() % 4096);

		for (size_t j = 0; j < maps.count; j++) {
			items[j].start = at;
			items[j].end = at + 4096 * (1 + (uint64_t)random() % 65536);
			items[j].inode = (uint64_t)random() % 2;
			items[j].path = random() % 5 ? "/x" : random() % 2 ? "[heap]" : "[stack]";
			at = items[j].end + 4096 * ((uint64_t)random() % 65536);
		}
		low = items[(size_t)random() % maps.count].start;
		high = low + 1 + (uint64_t)random() % (64 * MIB);
		if (!mw_inject_find_gap(&maps, low, high, reach, size, &got))
			continue;
		assert_int_equal(got % 4096, 0);
		assert_true(got >= MIB);
		assert_true(got >= high - 1 || high - 1 - got <= reach);
		assert_true(got + size - 1 <= low || got + size - 1 - low <= reach);
		for (size_t j = 0; j < maps.count; j++)
			assert_true(got + size + 4096 <= items[j].start || got >= items[j].end + 4096);
	}
}

UNIT_GROUP(gap)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps),
		cmocka_unit_test(random_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

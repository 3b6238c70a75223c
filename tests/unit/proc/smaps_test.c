// SPDX-License-Identifier: MIT
/* smaps_test.c: the parser of /proc/PID/smaps. */
#include "proc/smaps.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096u

static void parses_fields(void **state)
{
	const char text[] = "1000-3000 rw-p 00000000 00:00 0 \n"
			    "Size:                  8 kB\n"
			    "Rss:                   4 kB\n"
			    "Anonymous:             4 kB\n"
			    "AnonHugePages:      2048 kB\n"
			    "Private_Hugetlb:       8 kB\n"
			    "Swap:                 12 kB\n"
			    "SwapPss:              16 kB\n"
			    "VmFlags: rd wr mr mw me wf ac sd \n"
			    "5000-6000 r--p 00000000 00:00 0                          [vvar]\n"
			    "Rss:                   0 kB\n"
			    "VmFlags: rd mr pf io de dd sd \n"
			    "7000-9000 r--s 00001000 fe:00 12   /a file Rss:  4 kB\n"
			    "Rss:                   8 kB\n";
	struct mw_smaps smaps = {0};

	(void)state;
	assert_null(mw_smaps_parse(text, &smaps));
	assert_int_equal(smaps.count, 3);
	assert_int_equal(smaps.items[0].start, 0x1000);
	assert_int_equal(smaps.items[0].end, 0x3000);
	assert_int_equal(smaps.items[0].resident, 12 * 1024);
	assert_int_equal(smaps.items[0].anonymous, 4 * 1024);
	assert_int_equal(smaps.items[0].huge, 2048 * 1024);
	assert_int_equal(smaps.items[0].swapped, 12 * 1024);
	assert_int_equal(smaps.items[0].flags, MW_VM_CLEARED);
	assert_int_equal(smaps.items[1].flags, MW_VM_DEVICE);
	assert_int_equal(smaps.items[2].resident, 8 * 1024);
	assert_int_equal(smaps.items[2].flags, 0);
	assert_ptr_equal(mw_smaps_find(&smaps, 0x1000), &smaps.items[0]);
	assert_ptr_equal(mw_smaps_find(&smaps, 0x8fff), &smaps.items[2]);
	assert_null(mw_smaps_find(&smaps, 0x3000));
	assert_null(mw_smaps_find(&smaps, 0xfff));
	mw_smaps_deinit(&smaps);
}

static void stands_hostile_text(void **state)
{
	static const char *const texts[] = {"",          "Rss: 4 kB\n", "-\n",      "5-4 rw-p\n",
					    "zz-3 rw-p", "1000-2000",   "VmFlags:", "Rss:"};
	const char grown[] = "1000-3000 rw-p 0 00:00 0\nRss: 4 kB\n1000-4000 rw-p 0 00:00 0\nRss: 8 kB\nVmFlags:io";
	struct mw_smaps smaps = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_null(mw_smaps_parse(texts[i], &smaps));
		assert_int_equal(smaps.count, 0);
		mw_smaps_deinit(&smaps);
	}
	assert_null(mw_smaps_parse(grown, &smaps));
	assert_int_equal(smaps.count, 1);
	assert_int_equal(smaps.items[0].end, 0x4000);
	assert_int_equal(smaps.items[0].resident, 8 * 1024);
	assert_int_equal(smaps.items[0].flags, 0);
	mw_smaps_deinit(&smaps);
}

static void reads_its_own(void **state)
{
	char *at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct mw_smap *map;
	struct mw_smaps smaps = {0};

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	/* A mapping of its own. */
	assert_int_equal(madvise(at, 8 * PAGE, MADV_WIPEONFORK), 0);
	at[PAGE] = at[5 * PAGE] = 1;
	assert_null(mw_smaps_read(getpid(), &smaps));
	map = mw_smaps_find(&smaps, (uintptr_t)at);
	assert_non_null(map);
	assert_int_equal(map->start, (uintptr_t)at);
	assert_int_equal(map->end, (uintptr_t)at + 8 * PAGE);
	assert_int_equal(map->resident, 2 * PAGE);
	assert_int_equal(map->flags, MW_VM_CLEARED);
	mw_smaps_deinit(&smaps);
	munmap(at, 8 * PAGE);
}

UNIT_GROUP(smaps)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_fields),
		cmocka_unit_test(stands_hostile_text),
		cmocka_unit_test(reads_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

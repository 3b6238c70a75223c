// SPDX-License-Identifier: MIT
/* test_pages.c: runs of pages of this process, by both ways, against what is known of them and what smaps counts. */
#include "heap/pages.h"

#include "proc/smaps.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096u
#define HUGE (2u << 20)
#define MOST 4096u

static char *map(size_t size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	/* Nothing is joined with it. */
	assert_int_equal(madvise(at, size, MADV_DONTFORK), 0);
	return at;
}

/* Does what is found of [at, at + size) add up to what smaps counts? */
static void check_sums(const char *at, size_t size, const struct mw_pages_sum *sum, const struct mw_page_runs *runs)
{
	struct mw_image image = {.runs = runs->items, .run_count = runs->count};
	struct mw_image_residence found = mw_image_residence(&image, (uintptr_t)at, (uintptr_t)at + size);
	struct mw_smaps smaps = {0};
	const struct mw_smap *smap;

	assert_null(mw_smaps_read(getpid(), &smaps));
	smap = mw_smaps_find(&smaps, (uintptr_t)at);
	assert_non_null(smap);
	assert_int_equal(smap->end - smap->start, size);
	assert_int_equal(sum->resident, smap->resident);
	assert_int_equal(found.resident, smap->resident);
	assert_int_equal(sum->swapped, smap->swapped);
	mw_smaps_deinit(&smaps);
}

/* Some kernels give a page of its own to what is only read, instead of the one of zeros. */
static bool reading_takes_a_page(void)
{
	char *at = map(PAGE);
	struct mw_smaps smaps = {0};
	const struct mw_smap *smap;
	bool taken;

	(void)((volatile char *)at)[0];
	assert_null(mw_smaps_read(getpid(), &smaps));
	smap = mw_smaps_find(&smaps, (uintptr_t)at);
	assert_non_null(smap);
	taken = smap->resident > 0;
	mw_smaps_deinit(&smaps);
	munmap(at, PAGE);
	return taken;
}

/* Pages of each kind at random: written, read only, never touched. */
static void finds_runs(bool scans)
{
	char *at = map(MOST * PAGE);
	struct mw_page_runs runs = {0};
	struct mw_pages_sum sum = {0};
	struct mw_pages pages;
	struct mw_error *err;
	unsigned char kinds[MOST];
	bool read_too = reading_takes_a_page();
	size_t written = 0;
	unsigned seed = 7;

	for (size_t i = 0; i < MOST; i++) {
		kinds[i] = (unsigned char)(i && rand_r(&seed) % 4 ? kinds[i - 1] : rand_r(&seed) % 3);
		if (kinds[i] == 0)
			at[i * PAGE] = 1;
		if (kinds[i] == 1)
			(void)((volatile char *)at)[i * PAGE];
		if (kinds[i] == 1 && read_too)
			kinds[i] = 0;
		written += kinds[i] == 0;
	}
	mw_pages_open(&pages, getpid(), scans);
	if (scans ? !pages.scans : pages.fd < 0 || !pages.zero_pfn) {
		mw_pages_close(&pages);
		munmap(at, MOST * PAGE);
		skip();
	}
	assert_true(mw_pages_read(&pages, (uintptr_t)at, (uintptr_t)at + MOST * PAGE, UINT64_MAX, &runs, &sum, &err));
	assert_int_equal(sum.resident, written * PAGE);
	check_sums(at, MOST * PAGE, &sum, &runs);
	for (size_t i = 0, page = 0; page < MOST; page++) {
		mw_addr addr = (uintptr_t)at + page * PAGE;

		while (i < runs.count && runs.items[i].start + runs.items[i].pages * (mw_addr)PAGE <= addr)
			i++;
		assert_int_equal(i < runs.count && runs.items[i].start <= addr, kinds[page] == 0);
		/* Runs that touch are one. */
		assert_true(i == 0 || i == runs.count ||
			    runs.items[i - 1].start + runs.items[i - 1].pages * (mw_addr)PAGE < runs.items[i].start);
	}
	mw_pages_close(&pages);
	free(runs.items);
	munmap(at, MOST * PAGE);
}

/* Every other page, of so many that the kernel gives them in two parts, and memwatch takes them in two. */
static void test_many_regions(void **state)
{
	const size_t counts[] = {513, 700, 1023, 1024, 1025, 1024 + 513, 1024 + 700, 2048};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		size_t size = counts[i] * 2 * PAGE;
		char *at = map(size);
		struct mw_page_runs runs = {0};
		struct mw_pages_sum sum = {0};
		struct mw_pages pages;
		struct mw_error *err;

		for (size_t page = 0; page < counts[i]; page++)
			at[page * 2 * PAGE] = 1;
		mw_pages_open(&pages, getpid(), true);
		if (!pages.scans) {
			mw_pages_close(&pages);
			munmap(at, size);
			skip();
		}
		assert_true(mw_pages_read(&pages, (uintptr_t)at, (uintptr_t)at + size, UINT64_MAX, &runs, &sum, &err));
		assert_int_equal(runs.count, counts[i]);
		check_sums(at, size, &sum, &runs);
		mw_pages_close(&pages);
		free(runs.items);
		munmap(at, size);
	}
}

static void test_by_scan(void **state)
{
	(void)state;
	finds_runs(true);
}

static void test_by_entry(void **state)
{
	(void)state;
	finds_runs(false);
}

/* A huge page that is written to, one that is only read, which is of zeros, and pages of the common size. */
static void test_huge(void **state)
{
	char *at = map(4 * HUGE), *first = (char *)(((uintptr_t)at + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	struct mw_page_runs runs = {0};
	struct mw_pages_sum sum = {0};
	struct mw_pages pages;
	struct mw_error *err;

	(void)state;
	mw_pages_open(&pages, getpid(), true);
	if (!pages.scans || madvise(at, 4 * HUGE, MADV_HUGEPAGE)) {
		mw_pages_close(&pages);
		skip();
	}
	pages.brief = true;
	first[0] = 1;
	(void)((volatile char *)first)[HUGE];
	assert_int_equal(madvise(first + 2 * HUGE, PAGE, MADV_NOHUGEPAGE), 0);
	madvise(first + 2 * HUGE, PAGE, MADV_HUGEPAGE);
	assert_true(mw_pages_read(&pages, (uintptr_t)at, (uintptr_t)at + 4 * HUGE, UINT64_MAX, &runs, &sum, &err));
	check_sums(at, 4 * HUGE, &sum, &runs);
	mw_pages_close(&pages);
	free(runs.items);
	munmap(at, 4 * HUGE);
}

/* What can't be known adds nothing, and may be all there. */
static void test_unknown(void **state)
{
	struct mw_page_runs runs = {0};
	struct mw_pages_sum sum = {0};
	struct mw_pages pages;
	struct mw_error *err;

	(void)state;
	mw_pages_open(&pages, 99999999, true);
	assert_false(mw_pages_read(&pages, 0x1000, 0x2000, UINT64_MAX, &runs, &sum, &err));
	assert_null(err);
	assert_int_equal(runs.count, 0);
	assert_null(mw_pages_assume(0x1000, 0x1000 + (UINT64_C(3) << 43), &runs));
	assert_int_equal(runs.count, 2);
	assert_int_equal(runs.items[0].pages, UINT32_MAX);
	assert_int_equal(runs.items[1].start, 0x1000 + (mw_addr)UINT32_MAX * PAGE);
	assert_int_equal((uint64_t)runs.items[0].pages + runs.items[1].pages, UINT64_C(3) << 31);
	mw_pages_close(&pages);
	free(runs.items);
}

UNIT_GROUP(pages)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_scan), cmocka_unit_test(test_many_regions), cmocka_unit_test(test_by_entry),
		cmocka_unit_test(test_huge),    cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* touched_test.c: guard pages in a mapping, of this process. */
#include "proc/peek.h"
#include "unit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#define PAGE UINT64_C(4096)

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static bool is_guard(const char *page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)page / PAGE * sizeof(entry))),
			 sizeof(entry));
	close(fd);
	return entry >> 58 & 1;
}

static void check_clip(char *memory, size_t pages, size_t page, size_t first, size_t last, bool guarded)
{
	mw_addr low = (uintptr_t)memory, high = low + pages * PAGE;

	assert_int_equal(mw_touched_clip(getpid(), low + page * PAGE + 100, &low, &high), guarded);
	assert_ptr_equal((void *)(uintptr_t)low, memory + first * PAGE);
	assert_ptr_equal((void *)(uintptr_t)high, memory + last * PAGE);
}

/* Guard pages end what is around an address, near or far; beyond 64 MiB nobody looks. */
static void clips_at_guards(void **state)
{
	enum { FAR = 3000, PAGES = 40000 };
	char *memory =
		mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	check_clip(memory, FAR, 1000, 0, FAR, false);
	if (madvise(memory + PAGE, PAGE, MADV_GUARD_INSTALL) || !is_guard(memory + PAGE)) {
		assert_int_equal(munmap(memory, PAGES * PAGE), 0);
		skip(); /* Linux before 6.15 */
	}
	assert_int_equal(madvise(memory + (FAR - 1) * PAGE, PAGE, MADV_GUARD_INSTALL), 0);
	check_clip(memory, PAGES, 0, 0, 1, false);
	check_clip(memory, PAGES, 2, 2, FAR - 1, true);
	check_clip(memory, PAGES, FAR - 2, 2, FAR - 1, true);
	check_clip(memory, PAGES, FAR, FAR, PAGES, true);
	check_clip(memory, PAGES, PAGES - 1, PAGES - 1 - (64 << 8), PAGES, false);
	assert_int_equal(munmap(memory, PAGES * PAGE), 0);
}

UNIT_GROUP(touched)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clips_at_guards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

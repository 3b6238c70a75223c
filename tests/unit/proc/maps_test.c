// SPDX-License-Identifier: MIT
/* maps_test.c: the parser of /proc/TID/maps, on good and on hostile text, and on real processes. */
#include "proc/maps.h"
#include "unit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#define LINE "55d1cb4a3000-55d1cb4a5000 r-xp 00002000 fe:00 247134                     "

static void check_one(const char *text, const char *path, bool deleted)
{
	struct mw_maps maps = {0};

	assert_null(mw_maps_parse(text, strlen(text), false, &maps));
	assert_int_equal(maps.count, 1);
	assert_string_equal(maps.items[0].path, path);
	assert_int_equal(maps.items[0].deleted, deleted);
	mw_maps_deinit(&maps);
}

static void parses_fields(void **state)
{
	const char text[] = LINE "/usr/bin/cat\n"
				 "7ffe00000000-7ffe00001000 rw-s ffffffffff000 103:1a 18446744073709551615\n";
	struct mw_maps maps = {0};

	(void)state;
	assert_null(mw_maps_parse(text, sizeof(text) - 1, false, &maps));
	assert_int_equal(maps.count, 2);
	assert_int_equal(maps.items[1].inode, UINT64_MAX);
	assert_int_equal(maps.items[1].major, 0x103);
	assert_int_equal(maps.items[1].minor, 0x1a);
	assert_true(maps.items[1].shared && maps.items[1].write);
	assert_ptr_equal(mw_maps_find(&maps, 0x7ffe00000000), &maps.items[1]);
	assert_null(mw_maps_find(&maps, 0));
	mw_maps_deinit(&maps);

	assert_null(mw_maps_parse(LINE "/usr/bin/cat", sizeof(LINE "/usr/bin/cat") - 1, false, &maps));
	assert_int_equal(maps.items[0].start, 0x55d1cb4a3000);
	assert_int_equal(maps.items[0].end, 0x55d1cb4a5000);
	assert_int_equal(maps.items[0].offset, 0x2000);
	assert_int_equal(maps.items[0].major, 0xfe);
	assert_int_equal(maps.items[0].minor, 0);
	assert_int_equal(maps.items[0].inode, 247134);
	assert_true(maps.items[0].read && maps.items[0].exec);
	assert_false(maps.items[0].write || maps.items[0].shared);
	assert_ptr_equal(mw_maps_find(&maps, 0x55d1cb4a4fff), &maps.items[0]);
	assert_null(mw_maps_find(&maps, 0x55d1cb4a5000));
	assert_null(mw_maps_find(&maps, 0x55d1cb4a2fff));
	mw_maps_deinit(&maps);
	mw_maps_deinit(&maps);
}

static void parses_names(void **state)
{
	(void)state;
	check_one(LINE "/tmp/a b  c\n", "/tmp/a b  c", false);
	check_one(LINE "/tmp/a\\012b\n", "/tmp/a\nb", false);
	check_one(LINE "/tmp/a\\\n", "/tmp/a\\", false);
	check_one(LINE "/tmp/a\\01\n", "/tmp/a\\01", false);
	check_one(LINE "/tmp/a (deleted)\n", "/tmp/a", true);
	check_one(LINE "/tmp/a (deleted) (deleted)\n", "/tmp/a (deleted)", true);
	check_one(LINE " (deleted)\n", "(deleted)", false);
	check_one(LINE "/memfd:x (deleted)\n", "/memfd:x", true);
	check_one("1000-2000 rw-p 00000000 00:00 0 \n", "", false);
	check_one("1000-2000 rw-p 00000000 00:00 0", "", false);
	check_one("1000-2000 rw-p 00000000 00:00 0                          [heap]\n", "[heap]", false);
	check_one("1000-2000 rw-p 00000000 00:00 0                          [anon:x (deleted)\n", "[anon:x (deleted)",
		  false);
	check_one("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n", "[vsyscall]",
		  false);
}

static void refuses_nonsense(void **state)
{
	static const char *const bad[] = {
		"\n",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 rw",
		"1000-2000 rw-p",
		"1000-2000 rw-p ",
		"1000-2000 rw-p 0 ",
		"1000-2000 rw-p 0 fe",
		"1000-2000 rw-p 0 fe:00",
		"1000-2000 rw-p 0 fe:00 ",
		"1000-2000 rw-p 0 fe:00 x",
		"1000-2000 zw-p 0 fe:00 1 /x",
		"1000-2000 rw-q 0 fe:00 1 /x",
		"2000-1000 rw-p 0 fe:00 1 /x",
		"1000-1000 rw-p 0 fe:00 1 /x",
		"10000000000000000-10000000000001000 rw-p 0 fe:00 1 /x",
		"1000-2000 rw-p 10000000000000000 fe:00 1 /x",
		"1000-2000 rw-p 0 100000000:00 1 /x",
		"1000-2000 rw-p 0 fe:00 18446744073709551616 /x",
		"-1000-2000 rw-p 0 fe:00 1 /x",
		" 1000-2000 rw-p 0 fe:00 1 /x",
		"1000-3000 rw-p 0 fe:00 1 /x\n2000-4000 rw-p 0 fe:00 1 /y\n",
		"2000-3000 rw-p 0 fe:00 1 /x\n1000-2000 rw-p 0 fe:00 1 /y\n",
		"1000-2000 rw-p 0 fe:00 1 /x\n\n",
	};
	struct mw_maps maps = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mw_error *err = mw_maps_parse(bad[i], strlen(bad[i]), false, &maps);

		if (!err)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
		assert_null(maps.items);
		mw_error_destroy(err);
	}
	{
		struct mw_error *err = mw_maps_parse("1000-2000 rw-p 0 fe:00 1 /x\0y\n", 30, false, &maps);

		assert_non_null(err);
		mw_error_destroy(err);
	}
	assert_null(mw_maps_parse("", 0, false, &maps));
	assert_int_equal(maps.count, 0);
}

/* Text without a NUL after it, mutated: under ASan this finds reads beyond its end. */
/* Mappings that have grown, or been put together, while the list was read. */
static void cuts_what_overlaps(void **state)
{
	static const char text[] = "1000-3000 rw-p 00000000 00:00 0\n"
				   "2000-5000 rw-p 00001000 08:01 7 /a\n"
				   "4000-5000 rw-p 00000000 00:00 0\n"
				   "4800-6000 r--p 00000000 00:00 0\n"
				   "7000-8000 r--p 00000000 00:00 0\n";
	struct mw_maps maps = {0};

	(void)state;
	assert_null(mw_maps_parse(text, sizeof(text) - 1, true, &maps));
	assert_int_equal(maps.count, 4);
	assert_int_equal(maps.items[0].end, 0x3000);
	assert_int_equal(maps.items[1].start, 0x3000);
	assert_int_equal(maps.items[1].end, 0x5000);
	assert_int_equal(maps.items[1].offset, 0x2000);
	assert_int_equal(maps.items[2].start, 0x5000);
	assert_int_equal(maps.items[2].end, 0x6000);
	assert_int_equal(maps.items[3].start, 0x7000);
	mw_maps_deinit(&maps);
}

static void survives_mutations(void **state)
{
	static const char text[] = LINE "/usr/bin/cat (deleted)\n"
					"7ffe00000000-7ffe00001000 rw-s 00000000 00:01 77 /SYSV00000000 (deleted)\n"
					"7fff00000000-7fff00001000 rw-p 00000000 00:00 0 [stack]\n";
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t size = (size_t)rand_r(&seed) % sizeof(text);
		char *copy = malloc(size ? size : 1);
		struct mw_maps maps = {0};

		assert_non_null(copy);
		memcpy(copy, text, size);
		for (int n = rand_r(&seed) % 3; size && n > 0; n--)
			copy[(size_t)rand_r(&seed) % size] = (char)rand_r(&seed);
		mw_error_destroy(mw_maps_parse(copy, size, false, &maps));
		mw_maps_deinit(&maps);
		free(copy);
	}
}

static void reads_itself(void **state)
{
	struct mw_maps maps = {0};
	const struct mw_mapping *mapping;

	(void)state;
	assert_null(mw_maps_read(getpid(), &maps));
	mapping = mw_maps_find(&maps, (mw_addr)(uintptr_t)reads_itself);
	assert_non_null(mapping);
	assert_true(mapping->exec);
	assert_non_null(strstr(mapping->path, "unit_proc"));
	assert_int_not_equal(mapping->inode, 0);
	mw_maps_deinit(&maps);
}

static void tells_gone_from_empty(void **state)
{
	struct mw_maps maps = {0};
	struct mw_error *err;
	siginfo_t info;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	/* A zombie has no mappings; that is no error. */
	assert_null(mw_maps_read(child, &maps));
	assert_int_equal(maps.count, 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	err = mw_maps_read(child, &maps);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_GONE);
	mw_error_destroy(err);
}

/* The mapping of `addr` in this process; its path is copied. */
static bool path_of(const void *addr, char path[256])
{
	struct mw_maps maps = {0};
	const struct mw_mapping *mapping;
	bool deleted;

	assert_null(mw_maps_read(getpid(), &maps));
	mapping = mw_maps_find(&maps, (mw_addr)(uintptr_t)addr);
	assert_non_null(mapping);
	(void)snprintf(path, 256, "%s", mapping->path);
	deleted = mapping->deleted;
	mw_maps_deinit(&maps);
	return deleted;
}

/* Files whose names are made to confuse: a newline in it, and "(deleted)" at its end. */
static void tells_true_names(void **state)
{
	char directory[] = "/tmp/mw-maps-XXXXXX";
	char name[128], path[256];
	void *at;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(name, sizeof(name), "%s/a\nb (deleted)", directory);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	assert_false(path_of(at, path));
	assert_string_equal(path, name);
	assert_int_equal(unlink(name), 0);
	assert_true(path_of(at, path));
	assert_string_equal(path, name);
	(void)munmap(at, 4096);
	close(fd);
	(void)rmdir(directory);
}

UNIT_GROUP(maps)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_fields),         cmocka_unit_test(parses_names),
		cmocka_unit_test(refuses_nonsense),      cmocka_unit_test(survives_mutations),
		cmocka_unit_test(cuts_what_overlaps),    cmocka_unit_test(reads_itself),
		cmocka_unit_test(tells_gone_from_empty), cmocka_unit_test(tells_true_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* perf_map_test.c: names of code in no file, and files that are not to be believed. */
#include "proc/perf_map.h"

#include "proc/root.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PID 4711

static void parse(const char *text, struct mw_perf_map *map)
{
	assert_null(mw_perf_map_parse(strdup(text), strlen(text), map));
}

static const char *name_at(const struct mw_perf_map *map, mw_addr addr)
{
	const struct mw_perf_name *name = mw_perf_map_find(map, addr);

	return name ? name->name : "";
}

static void in_order(void **state)
{
	struct mw_perf_map map;

	(void)state;
	parse("3000 10 third one\n1000 20 first\n0x2000 0x8 second\n", &map);
	assert_int_equal(map.count, 3);
	assert_string_equal(name_at(&map, 0xfff), "");
	assert_string_equal(name_at(&map, 0x1000), "first");
	assert_string_equal(name_at(&map, 0x101f), "first");
	assert_string_equal(name_at(&map, 0x1020), "");
	assert_string_equal(name_at(&map, 0x2007), "second");
	assert_string_equal(name_at(&map, 0x3001), "third one");
	assert_int_equal(mw_perf_map_find(&map, 0x3001)->from, 0x3000);
	mw_perf_map_deinit(&map);
}

/* Code that was thrown away: what was made there later counts, what is left of the older keeps its name. */
static void later_lines_count(void **state)
{
	struct mw_perf_map map;

	(void)state;
	parse("1000 1000 old\n1400 100 new\n1480 10 newest\n1f00 200 end\n800 900 under\n", &map);
	assert_string_equal(name_at(&map, 0x10ff), "under");
	assert_string_equal(name_at(&map, 0x1100), "old");
	assert_string_equal(name_at(&map, 0x1400), "new");
	assert_string_equal(name_at(&map, 0x1480), "newest");
	assert_string_equal(name_at(&map, 0x148f), "newest");
	assert_string_equal(name_at(&map, 0x1490), "new");
	assert_string_equal(name_at(&map, 0x1500), "old");
	assert_string_equal(name_at(&map, 0x1f00), "end");
	assert_string_equal(name_at(&map, 0x20ff), "end");
	assert_int_equal(mw_perf_map_find(&map, 0x1490)->from, 0x1400);
	for (size_t i = 1; i < map.count; i++)
		assert_true(map.items[i - 1].end <= map.items[i].start);
	mw_perf_map_deinit(&map);
}

static void nonsense_is_passed_over(void **state)
{
	struct mw_perf_map map;
	char *longest = malloc(5000);

	(void)state;
	parse("\n \n1000\n1000 \n1000 10\n1000 10 \n1000 0 empty\nffffffffffffff00 200 wraps\n11111111111111111 1 big\n"
	      "-1 10 minus\n0x 10 none\n5000 10 good",
	      &map);
	assert_int_equal(map.count, 1);
	assert_string_equal(name_at(&map, 0x5000), "good");
	mw_perf_map_deinit(&map);
	parse("", &map);
	assert_int_equal(map.count, 0);
	assert_null(mw_perf_map_find(&map, 0));
	mw_perf_map_deinit(&map);
	/* A name of any length is cut. */
	assert_non_null(longest);
	memset(longest, 'x', 4999);
	longest[4999] = '\0';
	memcpy(longest, "1000 10 ", 8);
	parse(longest, &map);
	assert_int_equal(strlen(name_at(&map, 0x1000)), 1024);
	mw_perf_map_deinit(&map);
	free(longest);
}

static void many_overlap(void **state)
{
	size_t count = 20000, size = 0;
	char *text = malloc(count * 40);
	struct mw_perf_map map;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < count; i++)
		size += (size_t)sprintf(text + size, "%zx %zx f%zu\n", 0x10000 - i, 2 * i + 1, i);
	assert_null(mw_perf_map_parse(text, size, &map));
	assert_string_equal(name_at(&map, 0x10000), "f19999");
	assert_int_equal(map.count, 1);
	mw_perf_map_deinit(&map);
}

/* --- files ---------------------------------------------------------------------------------------- */

static char root[64], path[128];

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/perf-map-test-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/tmp", root);
	if (mkdir(path, 0700))
		return -1;
	snprintf(path, sizeof(path), "%s/tmp/perf-%d.map", root, PID);
	return 0;
}

static int remove_root(void **state)
{
	char tmp[96];

	(void)state;
	unlink(path);
	snprintf(tmp, sizeof(tmp), "%s/tmp/other", root);
	unlink(tmp);
	*strrchr(tmp, '/') = '\0';
	rmdir(tmp);
	return rmdir(root);
}

static void write_map(const char *to, const char *text)
{
	FILE *file = fopen(to, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static struct mw_error *read_map(uid_t uid, struct mw_perf_map *map)
{
	struct mw_perf_place place = {.known = true, .pid = PID, .uid = uid, .euid = uid};
	struct mw_error *err;

	place.root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(place.root >= 0);
	err = mw_perf_map_read(&place, map);
	mw_perf_place_deinit(&place);
	return err;
}

static void refused(uid_t uid, const char *word)
{
	struct mw_perf_map map;
	struct mw_error *err = read_map(uid, &map);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DENIED);
	assert_non_null(strstr(mw_error_text(err), word));
	assert_int_equal(map.count, 0);
	mw_error_destroy(err);
}

static void a_file_is_read(void **state)
{
	struct mw_perf_map map;

	(void)state;
	assert_null(read_map(getuid(), &map));
	assert_int_equal(map.count, 0);
	write_map(path, "1000 10 jitted\n");
	assert_null(read_map(getuid(), &map));
	assert_string_equal(name_at(&map, 0x1008), "jitted");
	assert_false(map.cut);
	mw_perf_map_deinit(&map);
}

static void others_files_are_not(void **state)
{
	char other[160];

	(void)state;
	write_map(path, "1000 10 jitted\n");
	/* Neither root's nor the process's. */
	if (getuid() == 0) {
		assert_int_equal(chown(path, 12345, 0), 0);
		refused(54321, "12345");
		assert_int_equal(chown(path, 0, 0), 0);
	} else {
		refused(getuid() + 1, "belongs to");
	}
	snprintf(other, sizeof(other), "%s/tmp/other", root);
	assert_int_equal(link(path, other), 0);
	refused(getuid(), "other names");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("other", path), 0);
	refused(getuid(), "not a file");
	assert_int_equal(unlink(path), 0);
	/* Nobody writes to it, ever. */
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(getuid(), "not a file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(getuid(), "not a file");
	assert_int_equal(rmdir(path), 0);
}

static void a_huge_file_is_cut(void **state)
{
	struct mw_perf_map map;
	FILE *file;

	(void)state;
	/* Sparse, so there are zeros at first: they are no line. */
	write_map(path, "1000 10 first\n");
	assert_int_equal(truncate(path, (off_t)100 << 20), 0);
	file = fopen(path, "a");
	assert_non_null(file);
	fputs("\n2000 10 last\n", file);
	assert_int_equal(fclose(file), 0);
	assert_null(read_map(getuid(), &map));
	assert_true(map.cut);
	assert_int_equal(map.count, 1);
	assert_string_equal(name_at(&map, 0x2000), "last");
	mw_perf_map_deinit(&map);
}

/* Another process had the number before. */
static void an_old_file_is_not_read(void **state)
{
	struct mw_perf_place place = {0};
	struct mw_perf_map map;
	char own[64];

	(void)state;
	mw_perf_place_init(&place, getpid());
	assert_true(place.known && place.pid == getpid() && place.euid == geteuid());
	assert_in_range(place.started, time(NULL) - 120, time(NULL) + 2);
	snprintf(own, sizeof(own), "/tmp/perf-%d.map", getpid());
	unlink(own);
	write_map(own, "1000 10 jitted\n");
	assert_null(mw_perf_map_read(&place, &map));
	assert_int_equal(map.count, 1);
	mw_perf_map_deinit(&map);
	assert_int_equal(utimensat(AT_FDCWD, own,
				   (struct timespec[]){{.tv_sec = place.started - 10}, {.tv_sec = place.started - 10}},
				   0),
			 0);
	assert_null(mw_perf_map_read(&place, &map));
	assert_int_equal(map.count, 0);
	assert_int_equal(unlink(own), 0);
	mw_perf_place_deinit(&place);
}

/* Links in a root lead to what is in it, and links of /proc nowhere. */
static void links_stay_inside(void **state)
{
	int at, fd;

	(void)state;
	at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(at >= 0);
	assert_int_equal(symlink("/../../../../../../etc/passwd", path), 0);
	fd = mw_root_open_at(at, strrchr(path, '/') - 4, false);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/proc/self/root/etc/passwd", path), 0);
	assert_int_equal(mw_root_open_at(at, strrchr(path, '/') - 4, false), -1);
	close(at);
	/* Nor does what is a root's own view of /proc. */
	assert_int_equal(mw_root_open(getpid(), path), -1);
	assert_int_equal(unlink(path), 0);
}

UNIT_GROUP(perf_map)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(later_lines_count),
		cmocka_unit_test(nonsense_is_passed_over),
		cmocka_unit_test(many_overlap),
		cmocka_unit_test_setup_teardown(a_file_is_read, make_root, remove_root),
		cmocka_unit_test_setup_teardown(others_files_are_not, make_root, remove_root),
		cmocka_unit_test_setup_teardown(a_huge_file_is_cut, make_root, remove_root),
		cmocka_unit_test(an_old_file_is_not_read),
		cmocka_unit_test_setup_teardown(links_stay_inside, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

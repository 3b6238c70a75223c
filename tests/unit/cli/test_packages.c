// SPDX-License-Identifier: MIT
/* test_packages.c: distributions, owners of files and the commands that get debug information, in made-up roots. */
#include "cli/advice.h"
#include "cli/package_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <lz4frame.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

static char directory[] = "/tmp/mw-packages-XXXXXX";
static char base[64]; /* of the test's root */
static int root;

static int make_root(void **state)
{
	static unsigned number;

	(void)state;
	snprintf(base, sizeof(base), "%s/%u", directory, number++);
	assert_int_equal(mkdir(base, 0700), 0);
	root = open(base, O_PATH | O_DIRECTORY);
	return root < 0;
}

static int close_root(void **state)
{
	(void)state;
	return close(root);
}

/* A file inside the root, with all directories that lead there. */
static void put_bytes(const char *path, const void *bytes, size_t size)
{
	char name[300];
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", base, path);
	for (char *slash = name + strlen(base) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(name, 0700);
		*slash = '/';
	}
	file = fopen(name, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static struct mw_distribution system_of(const char *release)
{
	struct mw_distribution system;

	put("/etc/os-release", release);
	mw_distribution_read(root, &system);
	return system;
}

/* --- distributions ------------------------------------------------------------------------------------- */

static void test_distributions(void **state)
{
	static const struct {
		const char *release, *name, *codename;
		enum mw_packaging packaging;
	} cases[] = {
		{"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_CODENAME=bookworm\n",
		 "Debian GNU/Linux 12 (bookworm)", "bookworm", MW_PACKAGING_DEBIAN},
		{"NAME='Linux Mint'\nID=linuxmint\nID_LIKE='ubuntu debian'\nVERSION_CODENAME=wilma\n"
		 "UBUNTU_CODENAME=noble\n",
		 "linuxmint", "noble", MW_PACKAGING_UBUNTU},
		{"ID=fedora\nPRETTY_NAME=\"Fedora Linux 40\"", "Fedora Linux 40", "", MW_PACKAGING_FEDORA},
		{"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "rocky", "", MW_PACKAGING_FEDORA},
		{"ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "opensuse-leap", "", MW_PACKAGING_SUSE},
		{"ID=arch\n", "arch", "", MW_PACKAGING_ARCH},
		{"ID=alpine\nPRETTY_NAME=\"Alpine Linux v3.19\"\n", "Alpine Linux v3.19", "", MW_PACKAGING_ALPINE},
		{"ID=debianish\nID_LIKE=debian2\n", "debianish", "", MW_PACKAGING_UNKNOWN},
		/* What would be put into a command must not be one. */
		{"ID=debian\nVERSION_CODENAME=\"x;reboot\"\nPRETTY_NAME=\"a\\\"b\\\\c\"\n", "a\"b\\c", "",
		 MW_PACKAGING_DEBIAN},
		{"", "", "", MW_PACKAGING_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_distribution system = system_of(cases[i].release);

		assert_string_equal(system.name, cases[i].name);
		assert_string_equal(system.codename, cases[i].codename);
		assert_int_equal(system.packaging, cases[i].packaging);
	}
}

static void test_release_elsewhere(void **state)
{
	struct mw_distribution system;

	(void)state;
	mw_distribution_read(root, &system);
	assert_int_equal(system.packaging, MW_PACKAGING_UNKNOWN);
	put("/usr/lib/os-release", "ID=alpine\n");
	mw_distribution_read(root, &system);
	assert_int_equal(system.packaging, MW_PACKAGING_ALPINE);
}

/* --- lines --------------------------------------------------------------------------------------------- */

static void test_lines(void **state)
{
	static char text[300000];
	struct mw_lines *lines;
	char *line;

	(void)state;
	memset(text, 'x', 200000);
	strcpy(text + 200000, "\n\nsecond\nlast");
	put("/file", text);
	lines = mw_lines_open(root, "/file", UINT64_MAX);
	assert_non_null(lines);
	line = mw_lines_next(lines);
	assert_int_equal(strlen(line), 65536);
	assert_string_equal(mw_lines_next(lines), "");
	assert_string_equal(mw_lines_next(lines), "second");
	assert_string_equal(mw_lines_next(lines), "last");
	assert_null(mw_lines_next(lines));
	mw_lines_close(lines);
	lines = mw_lines_open(root, "/file", 5);
	assert_int_equal(mw_lines_spend(lines, 100), 100);
	assert_string_equal(mw_lines_next(lines), "xxxxx");
	assert_null(mw_lines_next(lines));
	assert_int_equal(mw_lines_spend(lines, 100), 95);
	assert_int_equal(mw_lines_spend(lines, 5), 0);
	assert_int_equal(mw_lines_spend(lines, 3), 0);
	mw_lines_close(lines);
	assert_null(mw_lines_open(root, "/none", 5));
	assert_null(mw_lines_open(root, "/", 5));
}

static void test_lines_of_a_fifo(void **state)
{
	char name[100];

	(void)state;
	snprintf(name, sizeof(name), "%s/fifo", base);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_null(mw_lines_open(root, "/fifo", 5));
	snprintf(name, sizeof(name), "%s/link", base);
	assert_int_equal(symlink("/../../../../etc/passwd", name), 0);
	/* It leads nowhere inside that root. */
	assert_null(mw_lines_open(root, "/link", 5));
}

/* --- packed files -------------------------------------------------------------------------------------- */

static size_t pack_gzip(const char *text, void *out, size_t room)
{
	z_stream stream = {.next_in = (const Bytef *)text,
			   .avail_in = (uInt)strlen(text),
			   .next_out = out,
			   .avail_out = (uInt)room};

	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return room - stream.avail_out;
}

static size_t pack_lz4(const char *text, void *out, size_t room)
{
	size_t size = LZ4F_compressFrame(out, room, text, strlen(text), NULL);

	assert_false(LZ4F_isError(size));
	return size;
}

static size_t pack_zstd(const char *text, void *out, size_t room)
{
	size_t size = ZSTD_compress(out, room, text, strlen(text), 19);

	assert_false(ZSTD_isError(size));
	return size;
}

static const struct {
	const char *end;
	size_t (*pack)(const char *text, void *out, size_t room);
} packings[] = {{".gz", pack_gzip}, {".lz4", pack_lz4}, {".zst", pack_zstd}};

#define PACKINGS (sizeof(packings) / sizeof(packings[0]))

/* As many numbers as there are, one a line, in the order. */
static unsigned count_numbers(struct mw_lines *lines)
{
	unsigned count = 0;

	for (const char *line; (line = mw_lines_next(lines)); count++)
		if (strtoul(line, NULL, 10) != count)
			break;
	return count;
}

#define NUMBERS 150000u

static void test_packed_lines(void **state)
{
	static char text[2000000];
	static unsigned char packed[2000000];
	size_t at = 0, middle = 0;

	(void)state;
	for (unsigned i = 0; i < NUMBERS; i++) {
		middle = i == NUMBERS / 2 ? at : middle;
		at += (size_t)sprintf(text + at, "%u\n", i);
	}
	for (size_t i = 0; i < PACKINGS; i++) {
		char path[40];
		struct mw_lines *lines;
		size_t size, first;
		char begun = text[middle];

		snprintf(path, sizeof(path), "/numbers%s", packings[i].end);
		/* Two that were packed one by one. */
		text[middle] = '\0';
		first = packings[i].pack(text, packed, sizeof(packed));
		text[middle] = begun;
		size = first + packings[i].pack(text + middle, packed + first, sizeof(packed) - first);
		put_bytes(path, packed, size);
		lines = mw_lines_open(root, path, UINT64_MAX);
		assert_non_null(lines);
		assert_int_equal(count_numbers(lines), NUMBERS);
		assert_true(mw_lines_are_whole(lines));
		/* What was read of the file counts as well. */
		assert_int_equal(mw_lines_spend(lines, 1 << 30), (1 << 30) - strlen(text) - size);
		assert_int_equal(mw_lines_spend(lines, strlen(text) + 1), 0);
		mw_lines_close(lines);
		/* Of too much text, or too much that is packed, what is within the limit. */
		lines = mw_lines_open(root, path, 1000);
		assert_in_range(count_numbers(lines), 0, 300);
		assert_false(mw_lines_are_whole(lines));
		mw_lines_close(lines);
		/* Cut off: what there is, and that it is not all. */
		put_bytes(path, packed, first - 5);
		lines = mw_lines_open(root, path, UINT64_MAX);
		assert_in_range(count_numbers(lines), 0, NUMBERS / 2);
		assert_false(mw_lines_are_whole(lines));
		mw_lines_close(lines);
		/* Broken behind the first. */
		memset(packed + first, 0x5a, 64);
		put_bytes(path, packed, first + 64);
		lines = mw_lines_open(root, path, UINT64_MAX);
		assert_int_equal(count_numbers(lines), NUMBERS / 2);
		assert_false(mw_lines_are_whole(lines));
		mw_lines_close(lines);
	}
	put("/text.xz", "0\n");
	assert_null(mw_lines_open(root, "/text.xz", UINT64_MAX));
}

/* --- owners -------------------------------------------------------------------------------------------- */

#define LIBC   "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
#define SERVER "0123456789abcdef0123456789abcdef01234567"

static void put_dpkg(void)
{
	put("/var/lib/dpkg/info/libc6:amd64.list", "/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n");
	put("/var/lib/dpkg/info/libc6.list", "/lib/x86_64-linux-gnu/libc.so.66\n");
	put("/var/lib/dpkg/info/redis-tools.list", "/usr/bin/redis-check-rdb\n");
	put("/var/lib/dpkg/info/libpython3.11-stdlib:amd64.list", "/usr/lib/python3.11/lib-dynload/_ssl.so\n");
	put("/var/lib/dpkg/info/$(reboot).list", "/usr/bin/evil\n");
	put("/var/lib/dpkg/info/-x.list", "/usr/bin/evil\n");
}

static void test_dpkg(void **state)
{
	struct mw_lacking files[] = {
		{.path = "/usr/bin/redis-check-rdb", .build_id = SERVER},
		{.path = "/usr/lib/x86_64-linux-gnu/libc.so.6", .build_id = LIBC},
		{.path = "/usr/lib/python3.11/lib-dynload/_ssl.so", .build_id = ""},
		{.path = "/bin/redis-check-rdb", .build_id = ""},
		{.path = "/usr/bin/evil", .build_id = ""},
		{.path = "/usr/bin/redis-check-rd", .build_id = ""},
		{.path = "/usr/bin/redis-check-rdb", .build_id = ""},
	};
	static const char *const packages[] = {"redis-tools", "libc6", "libpython3.11-stdlib", "redis-tools", "", "",
					       "redis-tools"};
	static const char *const debugs[] = {"redis-tools-dbgsym", "libc6-dbg", "python3.11-dbg",
					     "redis-tools-dbgsym", "",          "",
					     "redis-tools-dbgsym"};

	(void)state;
	put_dpkg();
	mw_package_find(root, MW_PACKAGING_DEBIAN, files, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(files[i].package, packages[i]);
		assert_string_equal(files[i].debug, debugs[i]);
		assert_int_equal(files[i].known, MW_PACKAGE_UNSURE);
	}
}

/* What apt's lists say by build-id goes before what is usual; where they are all there, what they don't have is not. */
static void test_apt(void **state)
{
	struct mw_lacking files[] = {
		{.path = "/usr/bin/redis-check-rdb", .build_id = SERVER},
		{.path = "/usr/lib/x86_64-linux-gnu/libc.so.6", .build_id = LIBC},
		{.path = "/usr/lib/python3.11/lib-dynload/_ssl.so", .build_id = ""},
	};

	(void)state;
	put_dpkg();
	put("/var/lib/apt/lists/deb_bookworm_main_binary-amd64_Packages",
	    "Package: libc6\nVersion: 1\n\nPackage: libc6-dbg\n\nPackage: a b\nBuild-Ids: " SERVER "\n");
	put("/var/lib/apt/lists/deb_debian-debug_Packages", "Package: redis-dbgsym\nBuild-Ids: ffff " SERVER " eeee\n");
	mw_package_find(root, MW_PACKAGING_DEBIAN, files, 3);
	assert_string_equal(files[0].debug, "redis-dbgsym");
	assert_int_equal(files[0].known, MW_PACKAGE_LISTED);
	assert_string_equal(files[1].debug, "libc6-dbg");
	assert_int_equal(files[1].known, MW_PACKAGE_LISTED);
	assert_int_equal(files[2].known, MW_PACKAGE_ABSENT);
	/* One that can't be read may have it. */
	put("/var/lib/apt/lists/deb_other_Packages.lz4", "");
	put("/var/lib/dpkg/info/libc6-dbg:amd64.list", "/.\n");
	mw_package_find(root, MW_PACKAGING_DEBIAN, files, 3);
	assert_int_equal(files[1].known, MW_PACKAGE_INSTALLED);
	assert_int_equal(files[2].known, MW_PACKAGE_UNSURE);
}

/* As apt has them in containers. */
static void test_apt_of_packed_lists(void **state)
{
	static const char *const others[] = {".xz", ".bz2"};
	unsigned char packed[1000];

	(void)state;
	put_dpkg();
	for (size_t i = 0; i < PACKINGS; i++) {
		struct mw_lacking files[] = {
			{.path = "/usr/bin/redis-check-rdb", .build_id = SERVER},
			{.path = "/usr/lib/python3.11/lib-dynload/_ssl.so", .build_id = ""},
		};
		char path[80];
		size_t size =
			packings[i].pack("Package: redis-dbgsym\nBuild-Ids: " SERVER "\n", packed, sizeof(packed));

		snprintf(path, sizeof(path), "/var/lib/apt/lists/deb_debian-debug_Packages%s", packings[i].end);
		put_bytes(path, packed, size);
		mw_package_find(root, MW_PACKAGING_DEBIAN, files, 2);
		assert_string_equal(files[0].debug, "redis-dbgsym");
		assert_int_equal(files[0].known, MW_PACKAGE_LISTED);
		assert_int_equal(files[1].known, MW_PACKAGE_ABSENT);
		put_bytes(path, packed, size - 1);
		mw_package_find(root, MW_PACKAGING_DEBIAN, files, 2);
		assert_int_equal(files[1].known, MW_PACKAGE_UNSURE);
		put_bytes(path, packed, size);
	}
	for (size_t i = 0; i < 2; i++) {
		struct mw_lacking file = {.path = "/usr/lib/python3.11/lib-dynload/_ssl.so", .build_id = ""};
		char path[80];

		snprintf(path, sizeof(path), "/var/lib/apt/lists/deb_main_Packages%s", others[i]);
		put(path, "");
		mw_package_find(root, MW_PACKAGING_DEBIAN, &file, 1);
		assert_int_equal(file.known, MW_PACKAGE_UNSURE);
	}
}

static void test_apk(void **state)
{
	struct mw_lacking files[] = {
		{.path = "/lib/ld-musl-x86_64.so.1", .build_id = ""},
		{.path = "/usr/bin/redis-server", .build_id = ""},
		{.path = "/usr/lib/libssl.so.3", .build_id = ""},
		{.path = "/app/program", .build_id = ""},
	};

	(void)state;
	put("/lib/apk/db/installed", "C:Q1\nP:musl\no:musl\nF:lib\nR:ld-musl-x86_64.so.1\n\n"
				     "P:libssl3\no:openssl\nF:lib\nR:libssl.so.3\n\n"
				     "P:redis\nF:usr/bin\nR:redis-server\n\nR:program\nF:app\nR:program\n");
	mw_package_find(root, MW_PACKAGING_ALPINE, files, 4);
	assert_string_equal(files[0].debug, "musl-dbg");
	assert_string_equal(files[1].debug, "redis-dbg");
	assert_string_equal(files[2].package, "libssl3");
	assert_string_equal(files[2].debug, "openssl-dbg");
	assert_string_equal(files[3].debug, "");
}

/* --- commands ------------------------------------------------------------------------------------------ */

typedef void print_advice(FILE *out, const struct mw_advice *advice);

static void print_commands(FILE *out, const struct mw_advice *advice)
{
	mw_advice_command(out, advice, false);
	mw_advice_command(out, advice, true);
}

static void assert_advice(print_advice *print, const struct mw_advice *advice, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	print(out, advice);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void test_install(void **state)
{
	struct mw_distribution system = {.packaging = MW_PACKAGING_DEBIAN, .codename = "bookworm"};
	struct mw_lacking files[] = {
		{.path = "/usr/bin/a", .build_id = "", .debug = "a-dbgsym"},
		{.path = "/usr/lib/b", .build_id = "", .debug = "b-dbgsym"},
		{.path = "/usr/lib/a", .build_id = "", .debug = "a-dbgsym"},
		{.path = "/usr/lib/libc.so.6", .build_id = "", .debug = "libc6-dbg", .runtime = true},
		{.path = "/usr/lib/a.so", .build_id = "", .debug = "a-dbgsym", .runtime = true},
	};
	struct mw_advice advice = {&system, files, 5, "sudo ", 80};

	(void)state;
	assert_advice(print_commands, &advice,
		      "    sudo apt install a-dbgsym b-dbgsym\n    sudo apt install libc6-dbg\n");
	assert_advice(mw_advice_needs, &advice,
		      "  Packages -dbgsym stand in an archive of their own, debian-debug. Where apt\n"
		      "  does not have it yet:\n"
		      "    echo deb http://deb.debian.org/debian-debug bookworm-debug main |\n"
		      "        sudo tee /etc/apt/sources.list.d/debug.list && sudo apt update\n");
	for (size_t i = 0; i < 5; i++)
		files[i].known = MW_PACKAGE_LISTED;
	assert_advice(mw_advice_needs, &advice, "");
	files[0].known = MW_PACKAGE_INSTALLED;
	assert_advice(mw_advice_needs, &advice,
		      "  Installed already, but of another version than what is running: a-dbgsym\n"
		      "  (upgrade both, and restart the program).\n");
	/* Long ones go on in the next line, as a shell takes it. */
	advice.width = 34;
	advice.sudo = "";
	assert_advice(print_commands, &advice,
		      "    apt install a-dbgsym \\\n    b-dbgsym\n    apt install libc6-dbg\n");
	advice.count = 3;
	files[2].runtime = true;
	/* All that this would install is in the other command. */
	assert_advice(print_commands, &advice, "    apt install a-dbgsym \\\n    b-dbgsym\n");
	system.packaging = MW_PACKAGING_ALPINE;
	snprintf(files[1].debug, sizeof(files[1].debug), "b-dbg");
	assert_advice(print_commands, &advice, "    apk add a-dbgsym b-dbg\n");
}

#define EVIL "/usr/lib/it's $(reboot)\n\033[2J.so"

static void test_other_systems(void **state)
{
	struct mw_distribution system = {.packaging = MW_PACKAGING_FEDORA};
	const struct mw_lacking files[] = {
		{.path = "/usr/bin/a b", .build_id = ""},
		{.path = EVIL, .build_id = "abcdef"},
		{.path = "/opt/own", .build_id = "0123abcd"},
		{.path = "/usr/local/bin/own", .build_id = ""},
		{.path = "/lib64/libc.so.6", .build_id = "", .runtime = true},
	};
	const struct mw_advice advice = {&system, files, 5, "sudo ", 200};

	(void)state;
	assert_advice(print_commands, &advice,
		      "    sudo dnf debuginfo-install $(rpm -qf '/usr/bin/a b' "
		      "$'/usr/lib/it\\'s $(reboot)\\012\\033[2J.so')\n"
		      "    sudo dnf debuginfo-install $(rpm -qf /lib64/libc.so.6)\n");
	assert_advice(mw_advice_others, &advice,
		      "  No package is known of these: build them with -g, or put their debug information where it is "
		      "looked for:\n"
		      "    /opt/own\n      /usr/lib/debug/.build-id/01/23abcd.debug\n    /usr/local/bin/own\n");
	system.packaging = MW_PACKAGING_SUSE;
	assert_advice(print_commands, &advice,
		      "    sudo zypper install $(rpm -qf --qf '%{NAME}-debuginfo ' '/usr/bin/a b' "
		      "$'/usr/lib/it\\'s $(reboot)\\012\\033[2J.so')\n"
		      "    sudo zypper install $(rpm -qf --qf '%{NAME}-debuginfo ' /lib64/libc.so.6)\n");
	system.packaging = MW_PACKAGING_ARCH;
	assert_advice(print_commands, &advice, "    export DEBUGINFOD_URLS=https://debuginfod.archlinux.org\n");
	system.packaging = MW_PACKAGING_UNKNOWN;
	assert_advice(print_commands, &advice, "");
	assert_advice(mw_advice_others, &advice,
		      "  No package is known of these: build them with -g, or put their debug information where it is "
		      "looked for:\n"
		      "    /usr/bin/a b\n"
		      "    /usr/lib/it's $(reboot)\\x0a\\x1b[2J.so\n      /usr/lib/debug/.build-id/ab/cdef.debug\n"
		      "    /opt/own\n      /usr/lib/debug/.build-id/01/23abcd.debug\n    /usr/local/bin/own\n"
		      "    /lib64/libc.so.6\n");
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *place)
{
	(void)st;
	(void)flag;
	(void)place;
	return remove(path);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_root, close_root)
	const struct CMUnitTest tests[] = {
		TEST(test_distributions), TEST(test_release_elsewhere),
		TEST(test_lines),         TEST(test_lines_of_a_fifo),
		TEST(test_packed_lines),  TEST(test_dpkg),
		TEST(test_apt),           TEST(test_apt_of_packed_lists),
		TEST(test_apk),           TEST(test_install),
		TEST(test_other_systems),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return failed;
}

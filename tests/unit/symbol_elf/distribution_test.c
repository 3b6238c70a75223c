// SPDX-License-Identifier: MIT
/* distribution_test.c: which row of the table a root's os-release leads to, also where it is hostile. */
#include "symbol/distribution.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/mw-distribution-XXXXXX";
static int root;

static int make_root(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(base));
	root = open(base, O_PATH | O_DIRECTORY);
	assert_int_equal(mkdirat(root, "etc", 0700), 0);
	assert_int_equal(mkdirat(root, "usr", 0700), 0);
	assert_int_equal(mkdirat(root, "usr/lib", 0700), 0);
	return root < 0;
}

static int remove_files(void **state)
{
	(void)state;
	(void)unlinkat(root, "etc/os-release", 0);
	(void)unlinkat(root, "usr/lib/os-release", 0);
	return 0;
}

static int remove_root(void **state)
{
	(void)remove_files(state);
	(void)unlinkat(root, "usr/lib", AT_REMOVEDIR);
	(void)unlinkat(root, "usr", AT_REMOVEDIR);
	(void)unlinkat(root, "etc", AT_REMOVEDIR);
	close(root);
	return rmdir(base);
}

static void put(const char *path, const void *bytes, size_t size)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(close(fd), 0);
}

static void check_bytes(const void *bytes, size_t size, const char *id, const char *name)
{
	char found[MW_DISTRIBUTION_NAME_MAX];
	const struct mw_distribution *distribution;

	put("etc/os-release", bytes, size);
	distribution = mw_distribution_find(root, found);
	if (id)
		assert_string_equal(distribution->id ? distribution->id : "none", id);
	else
		assert_null(distribution->id);
	assert_string_equal(found, name);
}

static void check(const char *release, const char *id, const char *name)
{
	check_bytes(release, strlen(release), id, name);
}

static void test_distributions(void **state)
{
	(void)state;
	check("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian "
	      "GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n",
	      "debian", "Debian GNU/Linux 12 (bookworm)");
	check("PRETTY_NAME=\"Ubuntu 24.04 LTS\"\nID=ubuntu\nID_LIKE=debian\n", "ubuntu", "Ubuntu 24.04 LTS");
	check("NAME='Linux Mint'\nID=linuxmint\nID_LIKE='ubuntu debian'\n", "ubuntu", "linuxmint");
	check("ID=fedora\nPRETTY_NAME=\"Fedora Linux 40\"", "fedora", "Fedora Linux 40");
	check("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "rhel", "rocky");
	check("ID=\"rhel\"\nID_LIKE=\"fedora\"\n", "rhel", "rhel");
	check("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nPRETTY_NAME=\"openSUSE Leap 15.6\"\n", "suse",
	      "openSUSE Leap 15.6");
	check("ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", "suse", "opensuse-tumbleweed");
	check("ID=alpine\nPRETTY_NAME=\"Alpine Linux v3.19\"\n", "alpine", "Alpine Linux v3.19");
	check("ID=arch\nPRETTY_NAME=\"Arch Linux\"\n", "arch", "Arch Linux");
	check("ID=manjaro\nID_LIKE=arch\n", "arch", "manjaro");
	check("ID=nixos\nPRETTY_NAME=\"NixOS 24.05\"\n", NULL, "NixOS 24.05");
}

/* Without the NUL. */
static void lay(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
}

static void test_hostile(void **state)
{
	static char large[1 << 20];
	char cut[MW_DISTRIBUTION_NAME_MAX];

	(void)state;
	check("", NULL, "");
	check("\n\n=\nID\nID_LIKE\nPRETTY_NAME", NULL, "");
	check("ID=", NULL, "");
	check("ID=\"", NULL, "");
	check("ID=debian", "debian", "debian");
	check("ID=debianish\nID_LIKE=\"debian2  arch-not\"\n", NULL, "debianish");
	check("#ID=debian\n ID=debian\nXID=debian\n", NULL, "");
	check("ID=\"$(reboot)\"\nID_LIKE=\"`reboot` ../../arch arch\"\nPRETTY_NAME=\"a\\\"b\\\\c\n", "arch", "a\"b\\c");
	check("ID='arch\\'\nPRETTY_NAME='it\\s'", NULL, "it\\s");
	check("PRETTY_NAME=\"\x1b[2J\\\nID=arch\n", "arch", "\x1b[2J\\");
	check_bytes("ID=arch\0\nID=debian\n", sizeof("ID=arch\0\nID=debian\n"), "arch", "arch");

	/* Of 1 MiB without a newline, and of lines that stand behind so much, nothing is taken but a name that is cut.
	 */
	memset(large, 'x', sizeof(large));
	check_bytes(large, sizeof(large), NULL, "");
	lay(large + sizeof(large) - 9, "\nID=arch\n");
	check_bytes(large, sizeof(large), NULL, "");
	memset(cut, 'x', sizeof(cut));
	cut[sizeof(cut) - 1] = '\0';
	lay(large, "ID=arch\nPRETTY_NAME=");
	check_bytes(large, sizeof(large), "arch", cut);
	memset(large, ' ', sizeof(large));
	lay(large, "ID=x\nID_LIKE=");
	check_bytes(large, sizeof(large), NULL, "x");
}

static void test_places(void **state)
{
	char name[MW_DISTRIBUTION_NAME_MAX];

	(void)state;
	assert_null(mw_distribution_find(-1, name)->id);
	assert_null(mw_distribution_find(root, name)->id);
	assert_string_equal(name, "");
	put("usr/lib/os-release", "ID=alpine\n", 10);
	assert_string_equal(mw_distribution_find(root, name)->id, "alpine");
	/* A link does not lead out of the root, and what is no file is not opened. */
	assert_int_equal(symlinkat("/usr/lib/os-release", root, "etc/os-release"), 0);
	assert_string_equal(mw_distribution_find(root, name)->id, "alpine");
	put("usr/lib/os-release", "ID=arch\n", 8);
	assert_string_equal(mw_distribution_find(root, name)->id, "arch");
	(void)remove_files(NULL);
	assert_int_equal(mkfifoat(root, "etc/os-release", 0600), 0);
	assert_null(mw_distribution_find(root, name)->id);
}

/* What every row has to have, the last one too. */
static void test_rows(void **state)
{
	static const char *const ids[] = {"debian", "ubuntu", "fedora", "rhel", "suse", "alpine", "arch", "none"};
	char name[MW_DISTRIBUTION_NAME_MAX], release[40];

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const struct mw_distribution *row;

		put("etc/os-release", release, (size_t)snprintf(release, sizeof(release), "ID=%s\n", ids[i]));
		row = mw_distribution_find(root, name);
		assert_int_equal(strncmp(row->server, "https://debuginfod.", 19), 0);
		assert_int_equal(!row->begin, !row->end);
		assert_true(row->begin || row->note);
		assert_true(!*row->sudo || strcmp(row->sudo, "sudo ") == 0);
	}
}

UNIT_GROUP(distribution)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_distributions, remove_files),
		cmocka_unit_test_teardown(test_hostile, remove_files),
		cmocka_unit_test_teardown(test_places, remove_files),
		cmocka_unit_test_teardown(test_rows, remove_files),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}

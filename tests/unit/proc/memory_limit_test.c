// SPDX-License-Identifier: MIT
/* memory_limit_test.c: limits of cgroups of both versions, and the machine's. */
#include "proc/memory_limit.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

static char root[64];

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(full, 0700);
		*at = '/';
	}
	file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static uint64_t room_in(const char *membership)
{
	struct mw_memory_limit limit;

	mw_cgroup_limit_in(root, membership, true, &limit);
	assert_true(limit.of == (limit.bytes ? MW_LIMIT_CGROUP : MW_LIMIT_NONE));
	return mw_memory_limit_room(&limit);
}

static void cgroups(void **state)
{
	struct mw_memory_limit limit;
	char command[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/mw-cgroup-XXXXXX");
	assert_non_null(mkdtemp(root));
	/* Nothing known. */
	assert_true(room_in("0::/a/b\n") == UINT64_MAX);
	assert_true(room_in("") == UINT64_MAX);
	put("/a/b/memory.max", "max\n");
	put("/a/b/memory.current", "1000\n");
	assert_true(room_in("0::/a/b\n") == UINT64_MAX);
	/* The tightest of those around it. */
	put("/a/memory.max", "50000\n");
	put("/a/memory.current", "20000\n");
	assert_int_equal(room_in("0::/a/b\n"), 30000);
	assert_int_equal(room_in("0::/a/b"), 30000);
	assert_int_equal(room_in("5:cpu:/z\n0::/a/b/\n"), 30000);
	put("/a/b/memory.max", "1500\n");
	assert_int_equal(room_in("0::/a/b\n"), 500);
	assert_int_equal(room_in("0::/a\n"), 30000);
	put("/a/b/memory.current", "2000\n");
	assert_int_equal(room_in("0::/a/b\n"), 0);
	/* A container sees its own group as the root. */
	put("/memory.max", "900\n");
	put("/memory.current", "100\n");
	assert_int_equal(room_in("0::/\n"), 800);
	assert_int_equal(room_in("0::/away\n"), 800);
	/* The older version, alone or beside. */
	put("/memory/c/memory.limit_in_bytes", "7000\n");
	put("/memory/c/memory.usage_in_bytes", "6600\n");
	put("/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/memory/memory.usage_in_bytes", "1\n");
	assert_int_equal(room_in("4:cpu,memory,pids:/c\n1:name=systemd:/\n"), 400);
	assert_int_equal(room_in("4:memory:/c\n0::/\n"), 400);
	assert_true(room_in("4:memory:/\n") == UINT64_MAX);
	assert_true(room_in("4:mem:/c\n") == UINT64_MAX);
	/* Nonsense. */
	assert_true(room_in("0::/../a\n") == UINT64_MAX);
	assert_true(room_in("0::a\n0:\n:\n::\n::/..\n\n") == UINT64_MAX);
	put("/memory/c/memory.limit_in_bytes", "-7000\n");
	assert_true(room_in("4:memory:/c\n") == UINT64_MAX);
	put("/memory/c/memory.limit_in_bytes", "99999999999999999999999\n");
	assert_true(room_in("4:memory:/c\n") == UINT64_MAX);
	(void)mw_cgroup_room(getpid());
	/* Page cache that is given up at once is none of what is used; the limit may be another's then. */
	put("/x/memory.max", "5000\n");
	put("/x/memory.current", "4000\n");
	put("/x/memory.stat", "anon 500\nfile 3500\ninactive_file 3000\nactive_file 500\n");
	mw_cgroup_limit_in(root, "0::/x\n", false, &limit);
	assert_int_equal(limit.bytes, 900);
	put("/memory.max", "max\n");
	mw_cgroup_limit_in(root, "0::/x\n", false, &limit);
	assert_int_equal(limit.bytes, 5000);
	assert_int_equal(limit.used, 1000);
	mw_cgroup_limit_in(root, "0::/x\n", true, &limit);
	assert_int_equal(limit.used, 4000);
	put("/x/memory.stat", "not_inactive_file 3000\ninactive_file x\n");
	mw_cgroup_limit_in(root, "0::/x\n", false, &limit);
	assert_int_equal(limit.used, 4000);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void machine(void **state)
{
	struct mw_memory_limit limit;

	(void)state;
	mw_machine_limit_in("MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:   4000 kB\n", &limit);
	assert_int_equal(limit.of, MW_LIMIT_MACHINE);
	assert_int_equal(limit.bytes, 16000 << 10);
	assert_int_equal(limit.used, 12000 << 10);
	mw_machine_limit_in("MemTotal: 16000 kB\nMemFree:  1 kB\n", &limit);
	assert_int_equal(limit.of, MW_LIMIT_NONE);
	mw_machine_limit_in("MemTotal: 1 kB\nMemAvailable: 2 kB\n", &limit);
	assert_int_equal(limit.of, MW_LIMIT_NONE);
	mw_machine_limit_in("MemTotal", &limit);
	assert_int_equal(limit.of, MW_LIMIT_NONE);
	/* Whatever the cgroups say, this machine has so much memory. */
	mw_memory_limit_read(getpid(), &limit);
	assert_int_not_equal(limit.of, MW_LIMIT_NONE);
	assert_true(limit.used > 0);
}

UNIT_GROUP(memory_limit)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroups),
		cmocka_unit_test(machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

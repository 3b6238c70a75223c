// SPDX-License-Identifier: MIT
/* processes_test.c: processes by name, cgroup, container and user. */
#include "proc/processes.h"
#include "unit.h"

#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#define ID  "4c01db0b339c8a4b0b2b0d2b1bd1ee7d11ff3bf5b3b43a0ff3e5eaae59fbb0f1"
#define ID2 "0dd1e5d3f2b0c7a60dd1e5d3f2b0c7a60dd1e5d3f2b0c7a60dd1e5d3f2b0c7a6"

static void test_cgroup(void **state)
{
	static const char v2[] = "0::/system.slice/nginx.service/worker\n";
	static const char v1[] =
		"12:pids:/system.slice/cron.service\n4:memory:/shop/web\n1:name=systemd:/\n0::/init.scope\n";
	static const struct {
		const char *lines, *wanted;
		bool matches;
	} cases[] = {
		{v2, "nginx.service", true},
		{v2, "nginx", true},
		{v2, "worker", true},
		{v2, "system", true}, /* system.slice */
		{v2, "ngin", false},
		{v2, "nginx.servic", false},
		{v2, "service", false},
		{v2, "/system.slice/nginx.service", true},
		{v2, "/system.slice/nginx.service/", true},
		{v2, "system.slice/nginx.service", true},
		{v2, "/system.slice", true},
		{v2, "/system.slice/nginx.service/worker", true},
		{v2, "/system.slice/nginx.service/worker/x", false},
		{v2, "/system.slice/nginx.service/work", false},
		{v2, "/nginx.service", false},
		{v2, "/sys/fs/cgroup/system.slice/nginx.service", true},
		{v2, "/sys/fs/cgroup/system.slice/cron.service", false},
		{v2, "/", true},
		{v1, "cron", true},
		{v1, "web", true},
		{v1, "/shop", true},
		{v1, "/sys/fs/cgroup/memory/shop/web", true},
		{v1, "/sys/fs/cgroup/memory/shop/webs", false},
		{v1, "init", true},
		{"", "/", false},
		{"nonsense\n\n:\n", "nonsense", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (mw_cgroup_matches(cases[i].lines, cases[i].wanted) != cases[i].matches)
			fail_msg("%s in %s", cases[i].wanted, cases[i].lines);
}

static void test_container(void **state)
{
	static const char *const with_id[] = {
		"0::/system.slice/docker-" ID ".scope\n",
		"4:memory:/docker/" ID "\n",
		"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope\n",
		"0::/kubepods/besteffort/pod1234/crio-" ID "\n",
		"0::/user.slice/user-1000.slice/libpod-" ID ".scope/container\n",
		"0::/k8s.io/" ID "\n",
		"0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID "\n",
	};
	static const struct {
		const char *lines, *wanted;
		bool matches;
	} named[] = {
		{"0::/lxc.payload.web/init.scope\n", "web", true},
		{"0::/lxc.payload.web2/init.scope\n", "web", false},
		{"3:pids:/lxc/web\n", "web", true},
		{"0::/machine.slice/machine-web.scope/payload\n", "web", true},
		{"0::/machine.slice/systemd-nspawn@web.service/payload\n", "web", true},
		{"0::/web\n", "web", false},
		{"0::/system.slice/web.service\n", "web", false},
		{"0::/\n", "web", false},
		/* Digits of a user's session are no id. */
		{"0::/user.slice/user-1000.slice/session-1234.scope\n", "1234", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(with_id) / sizeof(with_id[0]); i++) {
		assert_true(mw_container_matches(with_id[i], ID));
		assert_true(mw_container_matches(with_id[i], "4c01db0b339c"));
		assert_true(mw_container_matches(with_id[i], "4c01"));
		assert_false(mw_container_matches(with_id[i], ID2));
		assert_false(mw_container_matches(with_id[i], "c01db0b339c8"));
		assert_false(mw_container_matches(with_id[i], ID "0"));
	}
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (mw_container_matches(named[i].lines, named[i].wanted) != named[i].matches)
			fail_msg("%s in %s", named[i].wanted, named[i].lines);
}

/* A child that waits, called so. */
static pid_t start(const char *name)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_true(pid > 0);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* How many there are, and whether that one is among them. */
static size_t find(const struct mw_process_match *match, pid_t pid, bool *is_there)
{
	MW_FREE pid_t *pids = NULL;
	size_t count = 0;

	assert_null(mw_processes_find(match, &pids, &count));
	*is_there = false;
	for (size_t i = 0; i < count; i++) {
		*is_there |= pids[i] == pid;
		assert_true(pids[i] != getpid());
		assert_true(i == 0 || pids[i - 1] < pids[i]);
	}
	return count;
}

static void test_find(void **state)
{
	char name[32], other[40];
	pid_t first, second, third;
	bool is_there;

	(void)state;
	snprintf(name, sizeof(name), "mwp%d", (int)getpid() % 4194305);
	snprintf(other, sizeof(other), "%sx", name);
	first = start(name);
	second = start(name);
	third = start(other);
	assert_int_equal(find(&(struct mw_process_match){.name = name}, first, &is_there), 2);
	assert_true(is_there);
	assert_int_equal(find(&(struct mw_process_match){.name = name}, third, &is_there), 2);
	assert_false(is_there);
	/* By the program's file, which this one is as well. */
	assert_true(find(&(struct mw_process_match){.name = program_invocation_short_name}, third, &is_there) >= 3);
	assert_true(is_there);
	assert_int_equal(
		find(&(struct mw_process_match){.name = name, .by_user = true, .user = geteuid()}, second, &is_there),
		2);
	assert_true(is_there);
	assert_int_equal(find(&(struct mw_process_match){.name = name, .by_user = true, .user = geteuid() + 1}, second,
			      &is_there),
			 0);
	assert_int_equal(find(&(struct mw_process_match){.name = name, .cgroup = "/"}, second, &is_there), 2);
	assert_int_equal(find(&(struct mw_process_match){.name = name, .container = "nothing"}, second, &is_there), 0);
	/* What has ended is no process any more. */
	kill(first, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)first, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(find(&(struct mw_process_match){.name = name}, first, &is_there), 1);
	assert_false(is_there);
	kill(second, SIGKILL);
	kill(third, SIGKILL);
	while (wait(NULL) > 0)
		;
}

UNIT_GROUP(processes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

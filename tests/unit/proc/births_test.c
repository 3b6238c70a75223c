// SPDX-License-Identifier: MIT
/* births_test.c: forks and execs as the kernel tells of them. */
#include "proc/births.h"
#include "unit.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Until that comes; others' come as well. */
static struct mw_birth await(int fd, enum mw_birth_kind kind, pid_t pid)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	struct mw_birth birth;

	do {
		birth = mw_birth_next(fd);
		assert_int_not_equal(birth.kind, MW_BIRTH_LOST);
		if (birth.kind == MW_BIRTH_NONE)
			assert_int_equal(poll(&wait, 1, 10000), 1);
	} while (birth.kind != kind || birth.pid != pid);
	return birth;
}

static void test_fork_and_exec(void **state)
{
	int fd = mw_births_open(), status;
	pid_t pid;

	(void)state;
	if (fd < 0)
		skip(); /* the kernel does not tell us */
	pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	assert_int_equal(await(fd, MW_BIRTH_FORK, pid).parent, getpid());
	await(fd, MW_BIRTH_EXEC, pid);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
}

/* What does not fit into the kernel's buffer is lost, and said to be. */
static void test_lost(void **state)
{
	int fd = mw_births_open();
	bool lost = false;

	(void)state;
	if (fd < 0)
		skip();
	for (int i = 0; i < 20000 && !lost; i++) {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		/* Read it slower than it comes. */
		if (i % 4000 == 3999)
			for (struct mw_birth birth; (birth = mw_birth_next(fd)).kind != MW_BIRTH_NONE && !lost;)
				lost = birth.kind == MW_BIRTH_LOST;
	}
	assert_true(lost);
	close(fd);
}

UNIT_GROUP(births)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_and_exec),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

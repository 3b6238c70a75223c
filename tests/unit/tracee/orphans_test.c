// SPDX-License-Identifier: MIT
/* orphans_test.c: tracees that nobody has announced, and those that only somebody else knows of. */
#include "tracee/quiesce.h"
#include "tracee/tracee.h"
#include "tracee_child.h"
#include "unit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t child; /* stands for a signal that nobody has waited for */

struct finder {
	bool knows;
	unsigned found, others;
};

static bool knows(void *context, pid_t pid)
{
	const struct finder *finder = context;

	return pid == child && finder->knows;
}

static void stopped(void *context, pid_t pid)
{
	struct finder *finder = context;

	finder->found += pid == child;
	finder->others += pid != child;
}

static unsigned find(struct finder *finder)
{
	const struct mw_orphans orphans = {.known = knows, .stopped = stopped, .context = finder};

	finder->found = 0;
	mw_orphans_find(&orphans);
	assert_int_equal(finder->others, 0);
	return finder->found;
}

static int setup(void **state)
{
	siginfo_t info;

	(void)state;
	child = child_start(child_sleep, NULL);
	assert_false(mw_orphans_unheard(child, WSTOPPED));
	kill(child, SIGUSR1);
	return waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT | __WALL);
}

static int teardown(void **state)
{
	(void)state;
	child_kill(child);
	return 0;
}

static void test_found(void **state)
{
	struct finder finder = {.knows = false};

	(void)state;
	assert_int_equal(find(&finder), 1);
	/* It is for the caller to let it go. */
	assert_true(mw_orphans_unheard(child, WSTOPPED));
	finder.knows = true;
	assert_int_equal(find(&finder), 0);
}

/* Two engines may trace by one thread: neither takes what is the other's. */
static void test_known_to_others(void **state)
{
	struct finder finder = {.knows = false}, first = {.knows = false}, second = {.knows = true};
	struct mw_orphans others[] = {{.known = knows, .context = &first}, {.known = knows, .context = &second}};

	(void)state;
	mw_orphans_spare(&others[0]);
	assert_int_equal(find(&finder), 1);
	mw_orphans_spare(&others[1]);
	assert_int_equal(find(&finder), 0);
	mw_orphans_spare_no_more(&others[0]);
	assert_int_equal(find(&finder), 0);
	mw_orphans_spare_no_more(&others[1]);
	assert_int_equal(find(&finder), 1);
}

UNIT_GROUP(orphans)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_known_to_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

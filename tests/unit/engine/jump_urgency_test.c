// SPDX-License-Identifier: MIT
/* jump_urgency_test.c: the priority of the thread that reads the rings: what it has, for how long, and that nobody else
 * gets it. */
#include "engine/jump/jump.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cmocka.h>

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void *policy_of_thread(void *out)
{
	*(int *)out = policy();
	return NULL;
}

/* Time that has passed, without waiting for it. */
static void pass(struct jump_urgency *urgency, uint64_t ns, bool worked)
{
	urgency->seen_ns -= ns;
	jump_urgency_note(urgency, worked);
}

/* As it was, whatever it is: without the privilege nothing but a slice is changed. */
static void test_gives_back(void **state)
{
	int before = policy(), nice = getpriority(PRIO_PROCESS, 0), slack = prctl(PR_GET_TIMERSLACK);
	struct jump_urgency urgency = {.on = false};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		jump_urgency_begin(&urgency);
		assert_true(policy() != SCHED_IDLE);
		pass(&urgency, UINT64_C(1000000000) * i, true);
		jump_urgency_end(&urgency);
		assert_int_equal(policy(), before);
		assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
		assert_int_equal(prctl(PR_GET_TIMERSLACK), slack);
	}
}

/* At work all the time it is a real-time thread for most of it, but not for all. */
static void test_bounded(void **state)
{
	uint64_t realtime_ms = 0, longest = 0, run = 0;
	struct jump_urgency urgency = {.on = false};
	pthread_t thread;
	int others = -1;

	(void)state;
	jump_urgency_begin(&urgency);
	if (policy() != SCHED_FIFO) {
		jump_urgency_end(&urgency);
		skip();
	}
	/* Whoever is made meanwhile is an ordinary thread. */
	assert_int_equal(pthread_create(&thread, NULL, policy_of_thread, &others), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(others, SCHED_OTHER);
	for (unsigned ms = 0; ms < 1000; ms++) {
		run = policy() == SCHED_FIFO ? run + 1 : 0;
		realtime_ms += run > 0;
		longest = run > longest ? run : longest;
		pass(&urgency, 1000000, true);
	}
	assert_in_range(realtime_ms, 700, 850);
	assert_in_range(longest, 10, 51);
	/* While it rests for a fifth of the time it always is. */
	pass(&urgency, 100000000, false);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(policy(), SCHED_FIFO);
		pass(&urgency, i % 5 ? 1000000 : 1100000, i % 5);
	}
	jump_urgency_end(&urgency);
	assert_int_equal(policy(), SCHED_OTHER);
}

static void *nice_of_thread(void *out)
{
	*(int *)out = getpriority(PRIO_PROCESS, 0);
	return NULL;
}

/* While processes are stopped, and between runs, it is before others, but leaves them CPUs; who is made then is not. */
static void test_lowered(void **state)
{
	int nice = getpriority(PRIO_PROCESS, 0), others = -100;
	struct jump_urgency urgency = {.on = false};
	pthread_t thread;

	(void)state;
	jump_urgency_lower(&urgency);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
	jump_urgency_begin(&urgency);
	if (policy() != SCHED_FIFO) {
		jump_urgency_end(&urgency);
		skip();
	}
	jump_urgency_lower(&urgency);
	assert_int_equal(policy(), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), -15);
	assert_int_equal(pthread_create(&thread, NULL, nice_of_thread, &others), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(others, 0);
	/* The next run begins, and what there was before stays known. */
	jump_urgency_begin(&urgency);
	assert_int_equal(policy(), SCHED_FIFO);
	jump_urgency_lower(&urgency);
	pass(&urgency, 1000000, true);
	assert_int_equal(policy(), SCHED_FIFO);
	jump_urgency_end(&urgency);
	assert_int_equal(policy(), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
	/* Nothing is given back twice. */
	assert_int_equal(setpriority(PRIO_PROCESS, 0, nice + 1), 0);
	jump_urgency_end(&urgency);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice + 1);
	assert_int_equal(setpriority(PRIO_PROCESS, 0, nice), 0);
}

/* Who has made memwatch something else keeps that. */
static void test_left_alone(void **state)
{
	const struct sched_param none = {.sched_priority = 0};
	struct jump_urgency urgency = {.on = false};

	(void)state;
	if (sched_setscheduler(0, SCHED_BATCH, &none) != 0)
		skip();
	jump_urgency_begin(&urgency);
	assert_int_equal(policy(), SCHED_BATCH);
	pass(&urgency, 1000000000, true);
	pass(&urgency, 1000000000, false);
	jump_urgency_end(&urgency);
	assert_int_equal(policy(), SCHED_BATCH);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

UNIT_GROUP(jump_urgency)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gives_back),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_lowered),
		cmocka_unit_test(test_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

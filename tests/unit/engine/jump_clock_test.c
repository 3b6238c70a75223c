// SPDX-License-Identifier: MIT
/* jump_clock_test.c: from ticks to nanoseconds, and when not to trust the ticks. */
#include "base/clock.h"
#include "engine/jump/drain.h"
#include "proc/file.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static void test_judge(void **state)
{
	const char *const good =
		"processor\t: 0\nflags\t\t: fpu tsc constant_tsc rep_good nonstop_tsc cpuid\nbugs\t: x\n";
	const char *why = NULL;

	(void)state;
	assert_true(jump_clock_judge(good, "tsc hpet acpi_pm \n", false, &why));
	assert_true(jump_clock_judge(good, "kvm-clock tsc\n", false, &why));
	assert_null(why);
	assert_false(jump_clock_judge(good, "kvm-clock acpi_pm \n", false, &why));
	assert_non_null(strstr(why, "clock source"));
	assert_true(jump_clock_judge(good, "kvm-clock acpi_pm \n", true, &why));
	assert_false(jump_clock_judge(good, "not_tsc tsc_early\n", false, &why));
	assert_false(jump_clock_judge("processor: 0\nflags: tsc constant_tsc\nx: nonstop_tsc\n", "tsc\n", false, &why));
	assert_non_null(strstr(why, "sleep"));
	assert_false(jump_clock_judge("processor: 0\nflags: tsc nonstop_tsc constant_tsc_not\n", "tsc\n", false, &why));
	assert_non_null(strstr(why, "constant"));
	assert_false(jump_clock_judge("processor: 0\nflags: tsc constant_tsc\n", "kvm-clock\n", true, &why));
	assert_false(jump_clock_judge("", "", false, &why));
	assert_false(jump_clock_judge("\nflags", "tsc", false, &why));
}

static void test_needs_no_call(void **state)
{
	bool answer = jump_clock_needs_no_call();
	char *source = NULL;
	struct timespec now;

	(void)state;
	assert_true(mw_error_none(
		mw_proc_file_read(&source, NULL, "/sys/devices/system/clocksource/clocksource0/current_clocksource")));
	if (strcmp(source, "tsc\n") == 0 || strcmp(source, "hpet\n") == 0 || strcmp(source, "acpi_pm\n") == 0)
		assert_int_equal(answer, source[0] == 't');
	free(source);
	/* This thread has no filter. */
	assert_int_equal(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now), 0);
	assert_int_equal(jump_clock_needs_no_call(), answer);
}

static struct jump_clock clock_of(uint64_t rate)
{
	return (struct jump_clock){.start_tick = 1000,
				   .known_tick = 1000,
				   .rate = rate,
				   .before_tick = 1000,
				   .before_rate = rate,
				   .measured_tick = 1000};
}

static void test_reckoning(void **state)
{
	struct jump_clock clock = clock_of(UINT64_C(1) << 31); /* 2 GHz */

	(void)state;
	assert_int_equal(jump_clock_ns(&clock, 0), 0);
	assert_int_equal(jump_clock_ns(&clock, 1000), 0);
	assert_int_equal(jump_clock_ns(&clock, 1002), 1);
	assert_int_equal(jump_clock_ns(&clock, 1000 + 2 * SECOND), SECOND);
	/* A month. */
	assert_int_equal(jump_clock_ns(&clock, 1000 + 2 * SECOND * 86400 * 30), SECOND * 86400 * 30);
	assert_int_equal(jump_clock_ns(&clock, UINT64_MAX), (UINT64_MAX - 1000) / 2);
	assert_int_equal(jump_clock_ticks(&clock, SECOND), 2 * SECOND);
	assert_int_equal(jump_clock_ticks(&clock, UINT64_MAX), UINT64_MAX);
	clock.rate = UINT64_MAX;
	assert_int_equal(jump_clock_ns(&clock, UINT64_MAX), UINT64_MAX);
}

/* The clocks disagree by up to a thousandth, this way and that: time goes on, and the error is made good. */
static void test_adjusted(void **state)
{
	struct jump_clock clock = clock_of((UINT64_C(1) << 32) + (1 << 22));
	uint64_t tick = 1000, real = 0, last = 0;

	(void)state;
	srand(1);
	for (int i = 0; i < 2000; i++) {
		uint64_t step = SECOND / 4 + (uint64_t)rand() % SECOND, before = tick, error;

		tick += step;
		real += step + step / 2000 - (uint64_t)rand() % (step / 1000);
		for (uint64_t at = before; at < tick; at += step / 50 + 1) {
			uint64_t ns = jump_clock_ns(&clock, at);

			assert_true(ns >= last);
			last = ns;
		}
		jump_clock_take(&clock, tick, real);
		/* What lies between the two newest pairs, which may be asked again, is told as before. */
		assert_true(jump_clock_ns(&clock, tick - 1) <= jump_clock_ns(&clock, tick));
		last = jump_clock_ns(&clock, before);
		for (uint64_t at = before; at < tick; at += step / 50 + 1) {
			uint64_t ns = jump_clock_ns(&clock, at);

			assert_true(ns >= last);
			last = ns;
		}
		error = jump_clock_ns(&clock, tick) > real ? jump_clock_ns(&clock, tick) - real
							   : real - jump_clock_ns(&clock, tick);
		assert_true(i == 0 || error < 8000000);
	}
	/* What is no later, or went back, is not taken. */
	last = clock.known_tick;
	jump_clock_take(&clock, tick, real + SECOND);
	jump_clock_take(&clock, tick + SECOND, real - SECOND);
	jump_clock_take(&clock, tick + 1000, real + 1000);
	assert_int_equal(clock.known_tick, last);
	/* A jump of the real clock does not stop time. */
	jump_clock_take(&clock, tick + SECOND, real + 100000 * SECOND);
	assert_true(clock.rate > 0);
	assert_true(jump_clock_ns(&clock, tick + 2 * SECOND) > jump_clock_ns(&clock, tick + SECOND));
}

/* This machine's clocks: roughly right is all that can be said of a busy one. */
static void test_measured(void **state)
{
	struct jump_clock clock;
	uint64_t tick, ns, start;

	(void)state;
	jump_clock_init(&clock);
	jump_clock_start(&clock);
	start = mw_clock_ns();
	while (mw_clock_ns() - start < 20000000)
		;
	jump_clock_adjust(&clock);
	tick = jump_clock_tick();
	ns = jump_clock_ns(&clock, tick);
	assert_true(ns >= 15000000);
	assert_true(jump_clock_ns(&clock, jump_clock_tick()) >= ns);
	assert_int_equal(jump_clock_ns(&clock, clock.start_tick), 0);
}

UNIT_GROUP(jump_clock)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),    cmocka_unit_test(test_needs_no_call), cmocka_unit_test(test_reckoning),
		cmocka_unit_test(test_adjusted), cmocka_unit_test(test_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

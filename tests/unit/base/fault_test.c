// SPDX-License-Identifier: MIT
/* fault_test.c: which passes of a fault point fail. The wish is read once, so each case is a process. */
#include "base/fault.h"
#include "unit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PASSES 6

/* Passes "a.b" and another point in turn; which passes of "a.b" failed, as bits, and bit 7 where the other did. */
static int passes_failing(void)
{
	int failed = 0;

	for (int pass = 0; pass < PASSES; pass++) {
		struct mw_error *other = mw_fault("a.bc"), *err = mw_fault("a.b");

		if (other)
			failed |= 1 << 7;
		if (err)
			failed |= 1 << pass;
		if (err && (mw_error_kind(err) != MW_ERROR_SYSTEM || !strstr(mw_error_text(err), "\"a.b\"")))
			failed |= 1 << 6;
		mw_error_destroy(other);
		mw_error_destroy(err);
	}
	return failed;
}

#define KILLED (-1)
#define STOPS  3 /* it is continued so often, less one, then killed */

/* Which passes failed, KILLED where it stood still; `*stops`: how often. */
static int with_wish(const char *wish, int *stops)
{
	pid_t child = fork();
	int status;

	*stops = 0;
	assert_true(child >= 0);
	if (child == 0) {
		if (wish ? setenv("MEMWATCH_FAULT", wish, 1) : unsetenv("MEMWATCH_FAULT"))
			_exit(255);
		_exit(passes_failing());
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) {
		assert_int_equal(kill(child, ++*stops < STOPS ? SIGCONT : SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	}
	assert_true(WIFEXITED(status) || (*stops == STOPS && WIFSIGNALED(status)));
	return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
}

static void fails_as_wished(void **state)
{
	static const struct {
		const char *wish;
		int failing, stops;
	} cases[] = {
		{NULL, 0, 0},
		{"", 0, 0},
		{"a.b", 1 << 0, 0},
		{"a.b:1", 1 << 0, 0},
		{"a.b:2", 1 << 1, 0},
		{"a.b:6", 1 << 5, 0},
		{"a.b:7", 0, 0},
		{"a.b:0", 0, 0},
		{"a.b:", 0, 0},
		{"a.b:x", 0, 0},
		{"a", 0, 0},
		{"a.", 0, 0},
		{"a.bcd", 0, 0},
		{"b", 0, 0},
		{":1", 0, 0},
		{"a.bc:4", 1 << 7, 0},
		{"a.b!", KILLED, STOPS},
		{"a.b:3!", KILLED, STOPS},
		{"a.b:7!", 0, 0},
		{"a.b?", 0, 1},
		{"a.b:3?", 0, 1},
		{"a.b:7?", 0, 0},
		{"!", 0, 0},
		{"a!", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int stops, failing = with_wish(cases[i].wish, &stops);

		if (failing != cases[i].failing || stops != cases[i].stops)
			fail_msg("MEMWATCH_FAULT=%s: %#x, not %#x, with %d stops, not %d",
				 cases[i].wish ? cases[i].wish : "(none)", failing, cases[i].failing, stops,
				 cases[i].stops);
	}
}

/* The environment is looked at once: a program that changes it later changes nothing. */
static void is_read_once(void **state)
{
	(void)state;
	unsetenv("MEMWATCH_FAULT");
	assert_null(mw_fault("a.b"));
	setenv("MEMWATCH_FAULT", "a.b", 1);
	assert_null(mw_fault("a.b"));
	unsetenv("MEMWATCH_FAULT");
}

UNIT_GROUP(fault)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fails_as_wished),
		cmocka_unit_test(is_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

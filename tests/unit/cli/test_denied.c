// SPDX-License-Identifier: MIT
/* test_denied.c: each reason for which the kernel denies a ptrace, from made-up facts. */
#include "tracee/preflight.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

/* An ordinary user's own process that nothing protects. */
static struct mw_denied_facts ordinary(void)
{
	return (struct mw_denied_facts){
		.pid = 1234, .name = "victim", .errnum = EPERM, .our_uid = 1000, .uids = {1000, 1000, 1000}};
}

static void assert_says(const struct mw_denied_facts *facts, const char *text, const char *hint)
{
	struct mw_error *err = mw_denied_error(facts);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DENIED);
	assert_non_null(strstr(mw_error_text(err), "1234 (victim)"));
	if (!strstr(mw_error_text(err), text))
		print_error("%s\n", mw_error_text(err));
	assert_non_null(strstr(mw_error_text(err), text));
	assert_non_null(mw_error_hint_text(err));
	if (!strstr(mw_error_hint_text(err), hint))
		print_error("%s\n", mw_error_hint_text(err));
	assert_non_null(strstr(mw_error_hint_text(err), hint));
	mw_error_destroy(err);
}

static void test_yama(void **state)
{
	struct mw_denied_facts facts = ordinary();

	(void)state;
	facts.ptrace_scope = 1;
	assert_says(&facts, "ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0");
	facts.descendant = true;
	assert_says(&facts, "security module", "log");
	facts.ptrace_scope = 2;
	assert_says(&facts, "ptrace_scope is 2", "root");
	facts.ptrace_scope = 3;
	assert_says(&facts, "ptrace_scope is 3", "reboot");
	/* Which not even root with every capability gets around. */
	facts.our_uid = 0;
	facts.our_ptrace_capability = true;
	assert_says(&facts, "ptrace_scope is 3", "reboot");
}

static void test_user(void **state)
{
	struct mw_denied_facts facts = ordinary();

	(void)state;
	facts.uids[0] = facts.uids[1] = facts.uids[2] = 4242;
	assert_says(&facts, "belongs to uid 4242", "sudo");
	/* That it is also protected, or Yama's scope, is not what to begin with. */
	facts.ptrace_scope = 1;
	facts.protected = true;
	assert_says(&facts, "belongs to uid 4242", "sudo");
	facts = ordinary();
	facts.uids[1] = 0;
	assert_says(&facts, "belongs to root", "CAP_SYS_PTRACE");
	facts = ordinary();
	facts.groups_differ = true;
	assert_says(&facts, "group ids", "sudo");
}

static void test_container_root(void **state)
{
	struct mw_denied_facts facts = ordinary();

	(void)state;
	facts.our_uid = 0;
	assert_says(&facts, "no CAP_SYS_PTRACE", "--cap-add=SYS_PTRACE");
	facts = ordinary();
	facts.container = true;
	facts.uids[0] = 0;
	assert_says(&facts, "no CAP_SYS_PTRACE", "--cap-add=SYS_PTRACE");
}

static void test_protected(void **state)
{
	struct mw_denied_facts facts = ordinary();

	(void)state;
	facts.protected = true;
	assert_says(&facts, "PR_SET_DUMPABLE", "root");
	facts = ordinary();
	facts.their_permitted = 1ULL << 12;
	assert_says(&facts, "capabilities", "root");
	facts.our_permitted = facts.their_permitted;
	assert_says(&facts, "security module", "log");
}

static void test_namespace(void **state)
{
	struct mw_denied_facts facts = ordinary();

	(void)state;
	facts.other_user_namespace = true;
	assert_says(&facts, "user namespace", "inside that namespace");
	facts.our_ptrace_capability = true;
	assert_says(&facts, "user namespace", "inside that namespace");
}

static void test_confinement(void **state)
{
	struct mw_denied_facts facts = ordinary();

	(void)state;
	facts.our_uid = 0;
	facts.our_ptrace_capability = true;
	facts.our_seccomp = true;
	assert_says(&facts, "seccomp", "--cap-add=SYS_PTRACE");
	facts.confinement = "docker-default (enforce)";
	assert_says(&facts, "docker-default (enforce)", "unconfined");
	facts = ordinary();
	assert_says(&facts, "Operation not permitted", "log");
}

UNIT_GROUP(denied)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_yama),           cmocka_unit_test(test_user),
		cmocka_unit_test(test_container_root), cmocka_unit_test(test_protected),
		cmocka_unit_test(test_namespace),      cmocka_unit_test(test_confinement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

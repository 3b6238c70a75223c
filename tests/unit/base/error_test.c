// SPDX-License-Identifier: MIT
/* error_test.c: what an error says, and that it can be made without memory. */
#include "rig.h"
#include "unit.h"

#include <memwatch/error.h>

#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

/* What can't be formatted: in the C locale no such character can be told. */
#define UNTELLABLE "%ls", L"\x7fffffff"

static void says_what_and_why(void **state)
{
	struct mw_error *err = mw_error_create(MW_ERROR_DENIED, EACCES, "cannot open %s", "x");
	char expected[128];

	(void)state;
	snprintf(expected, sizeof(expected), "cannot open x: %s", strerror(EACCES));
	assert_string_equal(mw_error_text(err), expected);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DENIED);
	assert_int_equal(mw_error_errno(err), EACCES);
	assert_null(mw_error_hint_text(err));
	mw_error_destroy(err);
	err = mw_error_create(MW_ERROR_DATA, 0, "%d%%", 7);
	assert_string_equal(mw_error_text(err), "7%");
	assert_int_equal(mw_error_errno(err), 0);
	mw_error_destroy(err);
	mw_error_destroy(NULL);
}

static struct mw_error *make(int errnum)
{
	return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot write");
}

static void a_reader_that_ends_is_told_last(void **state)
{
	static const struct {
		int first, second, told; /* 0: none */
	} cases[] = {{EPIPE, ENOSPC, ENOSPC}, {ENOSPC, EPIPE, ENOSPC}, {EPIPE, 0, EPIPE},
		     {0, EPIPE, EPIPE},       {ENOSPC, EIO, ENOSPC},   {EPIPE, EPIPE, EPIPE}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_error *err = mw_error_first(cases[i].first ? make(cases[i].first) : NULL,
						      cases[i].second ? make(cases[i].second) : NULL);

		assert_int_equal(mw_error_errno(err), cases[i].told);
		mw_error_destroy(err);
	}
}

static void hint_and_prefix(void **state)
{
	struct mw_error *err = mw_error_create(MW_ERROR_SYSTEM, 0, "inner");

	(void)state;
	assert_ptr_equal(mw_error_hint(err, "first %d", 1), err);
	assert_ptr_equal(mw_error_hint(err, "second %s", "2"), err);
	assert_string_equal(mw_error_hint_text(err), "second 2");
	assert_ptr_equal(mw_error_prefix(err, "process %d", 5), err);
	assert_ptr_equal(mw_error_prefix(err, "outer"), err);
	assert_string_equal(mw_error_text(err), "outer: process 5: inner");
	assert_string_equal(mw_error_hint_text(err), "second 2");
	/* What can't be made takes nothing away. */
	assert_ptr_equal(mw_error_hint(err, UNTELLABLE), err);
	assert_ptr_equal(mw_error_prefix(err, UNTELLABLE), err);
	assert_string_equal(mw_error_hint_text(err), "second 2");
	assert_string_equal(mw_error_text(err), "outer: process 5: inner");
	mw_error_destroy(err);
	assert_null(mw_error_hint(NULL, "nobody"));
	assert_null(mw_error_prefix(NULL, "nobody"));
}

static void is_made_without_memory(void **state)
{
	struct mw_error *nomem = mw_error_nomem(), *err;

	(void)state;
	rig_starve = true;
	err = mw_error_create(MW_ERROR_SYSTEM, EIO, "lost");
	rig_starve = false;
	assert_ptr_equal(err, nomem);
	err = mw_error_create(MW_ERROR_SYSTEM, EIO, UNTELLABLE);
	assert_ptr_equal(err, nomem);
	/* It belongs to everybody: nothing changes it, and it outlives its destruction. */
	assert_ptr_equal(mw_error_hint(err, "buy some"), nomem);
	assert_ptr_equal(mw_error_prefix(err, "here"), nomem);
	mw_error_destroy(err);
	assert_int_equal(mw_error_kind(nomem), MW_ERROR_MEMORY);
	assert_string_equal(mw_error_text(nomem), "memwatch is out of memory");
	assert_null(mw_error_hint_text(nomem));
}

static struct mw_error *gone(void)
{
	return mw_error_create(MW_ERROR_GONE, 0, "it has ended");
}

static void what_is_gone_is_in_nobodys_way(void **state)
{
	struct mw_error *err = mw_error_create(MW_ERROR_SYSTEM, 0, "failed");

	(void)state;
	assert_null(mw_error_unless_gone(NULL));
	assert_null(mw_error_unless_gone(gone()));
	assert_ptr_equal(mw_error_unless_gone(err), err);
	assert_ptr_equal(mw_error_worse(err, gone()), err);
	assert_ptr_equal(mw_error_worse(err, NULL), err);
	assert_ptr_equal(mw_error_worse(gone(), err), err);
	assert_ptr_equal(mw_error_worse(NULL, err), err);
	/* What could not be cleaned up comes first. */
	assert_ptr_equal(mw_error_worse(mw_error_create(MW_ERROR_DATA, 0, "cause"), err), err);
	mw_error_keep_first(&err, gone());
	mw_error_keep_first(&err, mw_error_create(MW_ERROR_DATA, 0, "later"));
	assert_string_equal(mw_error_text(err), "failed");
	mw_error_destroy(err);
	err = NULL;
	mw_error_keep_first(&err, gone());
	assert_null(err);
	mw_error_keep_first(&err, mw_error_create(MW_ERROR_DATA, 0, "first"));
	assert_string_equal(mw_error_text(err), "first");
	mw_error_destroy(err);
	assert_null(mw_error_worse(NULL, gone()));
}

UNIT_GROUP(error)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_and_why),
		cmocka_unit_test(hint_and_prefix),
		cmocka_unit_test(is_made_without_memory),
		cmocka_unit_test(what_is_gone_is_in_nobodys_way),
		cmocka_unit_test(a_reader_that_ends_is_told_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

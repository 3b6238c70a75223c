// SPDX-License-Identifier: MIT
/* test_labels.c: labels of profiles. */
#include "serve/push.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void set(struct mw_labels *labels, const char *name, const char *value)
{
	struct mw_error *err = mw_labels_set(labels, name, value);

	assert_null(err);
}

static void test_the_last_counts(void **state)
{
	struct mw_labels labels = {.count = 0};

	(void)state;
	set(&labels, "host", "db1");
	set(&labels, "comm", "redis");
	set(&labels, "host", "db2");
	assert_int_equal(labels.count, 2);
	assert_string_equal(labels.items[0].name, "host");
	assert_string_equal(labels.items[0].value, "db2");
	assert_string_equal(labels.items[1].value, "redis");
	mw_labels_deinit(&labels);
	assert_int_equal(labels.count, 0);
}

/* Nothing is sent, so there is nothing that was not. */
static void test_nothing_to_send(void **state)
{
	struct mw_push *push = NULL;
	struct mw_error *err = mw_push_create("http://127.0.0.1:1/ingest", &push);

	(void)state;
	assert_null(err);
	assert_true(mw_push_end(push));
}

static void test_no_url(void **state)
{
	static const char *const urls[] = {"", "nothing", "ftp://localhost/", "http://", "file:///etc/passwd"};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct mw_push *push = NULL;
		struct mw_error *err = mw_push_create(urls[i], &push);

		assert_non_null(err);
		assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
		assert_null(push);
		mw_error_destroy(err);
	}
}

UNIT_GROUP(labels)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_counts),
		cmocka_unit_test(test_nothing_to_send),
		cmocka_unit_test(test_no_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

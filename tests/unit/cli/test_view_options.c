// SPDX-License-Identifier: MIT
/* test_view_options.c: the options that say what of a recording is shown. */
#include "cli/options.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* An option of report's into the options it is for. */
static struct mw_error *parse(const char *name, const char *value, struct mw_cli_view_options *out)
{
	const struct mw_cli_option *option = mw_cli_command_options(&mw_cli_command_report);
	struct mw_cli_options options = {.view = *out};
	char text[40];
	struct mw_error *err;

	while (strcmp(option->name, name) != 0)
		option++;
	(void)snprintf(text, sizeof(text), "--%s", name);
	err = mw_cli_parse(option->type, text, value, (char *)&options + option->member);
	*out = options.view;
	return err;
}

/* Pairs of an option and a value, up to NULL. Fails the test where one is refused. */
struct given {
	const char *option, *value;
};

static struct mw_cli_view_options take(const struct given *given)
{
	struct mw_cli_view_options options = {0};

	for (; given->option; given++) {
		struct mw_error *err = parse(given->option, given->value, &options);

		if (err)
			fail_msg("%s: %s", given->value, mw_error_text(err));
	}
	return options;
}

static void assert_question(const struct given *given, size_t by_count, enum mw_fate type, enum mw_sort sort)
{
	struct mw_cli_view_options options = take(given);

	assert_null(mw_cli_view_options_finish(&options,
					       &(struct mw_session_options){.top = 7, .frames = MW_FRAMES_SCRIPT}));
	assert_int_equal(options.question.by_count, by_count);
	assert_int_equal(options.question.type, type);
	assert_int_equal(options.question.sort, sort);
	assert_int_equal(options.question.top, 7);
	assert_int_equal(options.question.frames, MW_FRAMES_SCRIPT);
	assert_ptr_equal(options.question.filter, options.filter);
	mw_cli_view_options_deinit(&options);
}

static void test_defaults(void **state)
{
	(void)state;
	assert_question((struct given[]){{NULL, NULL}}, 0, MW_FATE_IMPACTING, MW_SORT_IMPACTING);
	assert_question((struct given[]){{"type", "transient"}, {NULL, NULL}}, 1, MW_FATE_TRANSIENT, MW_SORT_TRANSIENT);
	assert_question((struct given[]){{"type", "aofi"}, {"tree", "up"}, {NULL, NULL}}, 0, MW_FATE_AOFI,
			MW_SORT_AOFI);
	assert_question((struct given[]){{"type", "all"}, {"blocks", "5"}, {NULL, NULL}}, 0, MW_FATE_ALL, MW_SORT_SIZE);
	assert_question((struct given[]){{"sort", "lifetime"}, {NULL, NULL}}, 1, MW_FATE_IMPACTING, MW_SORT_LIFETIME);
	assert_question((struct given[]){{"filter", "kind:vm"}, {NULL, NULL}}, 1, MW_FATE_IMPACTING, MW_SORT_IMPACTING);
	assert_question((struct given[]){{"by", "thread,type"}, {NULL, NULL}}, 2, MW_FATE_ALL, MW_SORT_SIZE);
	assert_question((struct given[]){{"by", "type"}, {"type", "impacting"}, {NULL, NULL}}, 1, MW_FATE_IMPACTING,
			MW_SORT_IMPACTING);
	/* The last word counts. */
	assert_question(
		(struct given[]){{"filter", "a"}, {"filter", "b"}, {"by", "api"}, {"by", "size,kind"}, {NULL, NULL}}, 2,
		MW_FATE_IMPACTING, MW_SORT_IMPACTING);
}

static void test_values(void **state)
{
	struct mw_cli_view_options options = take(
		(struct given[]){{"by", "process,kind,heap,type,thread,module,function,stack,size,api,line,language"},
				 {"tree", "down"},
				 {"blocks", "100000"},
				 {"sort", "peak"},
				 {NULL, NULL}});

	(void)state;
	assert_int_equal(options.question.by_count, MW_COLUMN_COUNT);
	for (unsigned i = 0; i < MW_COLUMN_COUNT; i++)
		assert_int_equal(options.question.by[i], i);
	assert_int_equal(options.question.tree, MW_TREE_DOWN);
	assert_int_equal(options.question.blocks, 100000);
	assert_int_equal(options.question.sort, MW_SORT_PEAK);
	assert_true(mw_cli_view_options_any(&options));
	mw_cli_view_options_deinit(&options);
	assert_false(mw_cli_view_options_any(&options));
}

static const struct {
	const char *option, *value, *says;
} mistakes[] = {
	{"type", "aofo", "--type 'aofo': no such type"},
	{"type", "", "--type ''"},
	{"sort", "bytes", "--sort 'bytes'"},
	{"tree", "left", "--tree 'left'"},
	{"by", "", "--by '': a column is missing"},
	{"by", "thread,", "--by 'thread,': a column is missing"},
	{"by", ",thread", "a column is missing"},
	{"by", "thread,file", "--by 'file': no such column"},
	{"by", "api,thread,api", "given twice"},
	{"by", "process,kind,heap,type,thread,module,function,stack,size,api,line,language,api", "given twice"},
	{"by", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "no such column"},
	{"blocks", "0", "--blocks '0'"},
	{"blocks", "100001", "out of range"},
	{"blocks", "x", "not a whole number"},
	{"filter", "kind:x", "--filter, at character 1"},
};

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct mw_cli_view_options options = {0};
		struct mw_error *err = parse(mistakes[i].option, mistakes[i].value, &options);

		if (!err)
			fail_msg("%s: taken", mistakes[i].value);
		assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
		if (!strstr(mw_error_text(err), mistakes[i].says))
			fail_msg("%s: %s", mistakes[i].value, mw_error_text(err));
		assert_non_null(mw_error_hint_text(err));
		mw_error_destroy(err);
		mw_cli_view_options_deinit(&options);
	}
}

static void test_tree_has_no_lifetimes(void **state)
{
	struct mw_cli_view_options options = take((struct given[]){{"tree", "up"}, {"sort", "lifetime"}, {NULL, NULL}});
	struct mw_error *err = mw_cli_view_options_finish(&options, &(struct mw_session_options){.top = 10});

	(void)state;
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	mw_error_destroy(err);
	mw_cli_view_options_deinit(&options);
}

static void test_moments(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"0", 0},
		{"0.0", 0},
		{"30", 30000000000},
		{"2.5", 2500000000},
		{".25", 250000000},
		{"7.", 7000000000},
		{"0.29", 290000000},
		{"12.345678901", 12345678901},
		{"12.3456789019", 12345678901},
	};
	static const char *const bad[] = {"",     ".",   "-1", "+1",    "1x",   "nan",       "inf",
					  "0x10", "1e3", " 1", "1.2.3", "peak", "315360001", "99999999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t ns = 1;

		assert_null(mw_cli_parse(MW_CLI_TYPE_MOMENT, "--from", good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t ns = 77;
		struct mw_error *err = mw_cli_parse(MW_CLI_TYPE_MOMENT, "--from", bad[i], &ns);

		if (!err)
			fail_msg("'%s' is taken", bad[i]);
		assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
		assert_int_equal(ns, 77);
		mw_error_destroy(err);
	}
}

UNIT_GROUP(view_options)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_values),
		cmocka_unit_test(test_mistakes), cmocka_unit_test(test_tree_has_no_lifetimes),
		cmocka_unit_test(test_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

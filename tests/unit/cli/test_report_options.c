// SPDX-License-Identifier: MIT
/* test_report_options.c: the command line of memwatch report. */
#include "cli/options.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MOST 40

static struct mw_error *parse(const char *const *words, struct mw_cli_options *out)
{
	static char storage[MOST][200];
	static char *argv[MOST + 1];
	int argc = 0;

	argv[argc++] = strcpy(storage[0], "report");
	for (; *words; words++, argc++) {
		assert_true(argc < MOST && strlen(*words) < sizeof(storage[0]));
		argv[argc] = strcpy(storage[argc], *words);
	}
	argv[argc] = NULL;
	return mw_cli_options_parse(&mw_cli_command_report, argc, argv, out);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct mw_cli_options take(const char *const *words)
{
	struct mw_cli_options options = {0};
	struct mw_error *err = parse(words, &options);

	if (err)
		fail_msg("%s: %s", words[0], mw_error_text(err));
	return options;
}

/* Where that format goes. */
static const char *file_of(const struct mw_cli_options *options, const char *format)
{
	size_t number = 0;

	while (strcmp(mw_output_get(number)->name, format) != 0)
		number++;
	return options->session.files[number];
}

/* As a usage error, whose message (or what it says is to be done) names all that `words` has. */
static void refuse(const char *const *given, const char *const *words)
{
	struct mw_cli_options options = {.report = {.recording = "untouched"}};
	struct mw_error *err = parse(given, &options);
	const char *hint;

	assert_non_null(err);
	hint = mw_error_hint_text(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	assert_string_equal(options.report.recording, "untouched");
	for (; *words; words++)
		if (!strstr(mw_error_text(err), *words) && !(hint && strstr(hint, *words)))
			fail_msg("no '%s' in: %s. %s", *words, mw_error_text(err), hint ? hint : "");
	mw_error_destroy(err);
}

static void test_defaults(void **state)
{
	struct mw_cli_options options = take(WORDS("leak.mw"));

	(void)state;
	assert_string_equal(options.report.recording, "leak.mw");
	assert_int_equal(options.report.from_ns, 0);
	assert_int_equal(options.report.to_ns, UINT64_MAX);
	assert_int_equal(options.session.top, 10);
	assert_null(file_of(&options, "json"));
	assert_false(options.session.quiet || options.report.at_peak);
	assert_int_equal(options.report.symbols_count, 0);
	assert_false(mw_cli_view_options_any(&options.view));
	mw_cli_options_deinit(&options);
}

static void test_interval(void **state)
{
	struct mw_cli_options options = take(WORDS("--from", "1.25", "leak.mw", "--to=2.000000001"));

	(void)state;
	assert_int_equal(options.report.from_ns, 1250000000);
	assert_int_equal(options.report.to_ns, 2000000001);
	options = take(WORDS("leak.mw", "--from", "0.123456789"));
	assert_int_equal(options.report.from_ns, 123456789);
	options = take(WORDS("leak.mw", "--at", "3.5"));
	assert_int_equal(options.report.from_ns, 0);
	assert_int_equal(options.report.to_ns, 3500000000);
	assert_true(options.report.at_moment);
	options = take(WORDS("leak.mw", "--at", "peak", "--from", "1"));
	assert_true(options.report.at_peak);
	assert_int_equal(options.report.from_ns, 1000000000);
}

static void test_intervals_that_make_no_sense(void **state)
{
	static const char *const bad[] = {"", "x", "-1", "1x", "nan", "inf", "1e99", "0x", "1,5"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		refuse(WORDS("leak.mw", "--from", bad[i]), WORDS("--from"));
		refuse(WORDS("leak.mw", "--to", bad[i]), WORDS("--to"));
		refuse(WORDS("leak.mw", "--at", bad[i]), WORDS("--at"));
	}
	refuse(WORDS("leak.mw", "--from", "2", "--to", "2"), WORDS("2.000 s", "--from", "--to"));
	refuse(WORDS("leak.mw", "--from", "2", "--to", "1"), WORDS("1.000"));
	refuse(WORDS("leak.mw", "--to", "0"), WORDS("0.000"));
	refuse(WORDS("leak.mw", "--at", "3", "--to", "2"), WORDS("--at", "--to"));
	refuse(WORDS("leak.mw", "--to", "2", "--at", "3"), WORDS("--at", "--to"));
	refuse(WORDS("leak.mw", "--at", "peak", "--at", "3"), WORDS("--at TIME", "--at peak"));
}

static void test_outputs(void **state)
{
	struct mw_cli_options options = take(WORDS("--json", "-", "--quiet", "--top", "0", "--symbols", "/tmp",
						   "leak.mw", "--symbols", "/", "--html", "page.html"));

	(void)state;
	assert_string_equal(file_of(&options, "json"), "-");
	assert_string_equal(file_of(&options, "html"), "page.html");
	assert_true(options.session.quiet);
	assert_int_equal(options.session.top, 0);
	assert_int_equal(options.report.symbols_count, 2);
	assert_string_equal(options.report.symbols[1], "/");
	mw_cli_options_deinit(&options);
	refuse(WORDS("leak.mw", "--json", ""), WORDS("--json"));
	refuse(WORDS("leak.mw", "--html", ""), WORDS("--html"));
	refuse(WORDS("leak.mw", "--top", "many"), WORDS("--top"));
	refuse(WORDS("leak.mw", "--symbols", "/dev/null"), WORDS("/dev/null", "directory"));
	refuse(WORDS("leak.mw", "--symbols", "/no/such/place"), WORDS("/no/such/place"));
}

static void test_too_many_directories(void **state)
{
	const char *words[2 * MW_CLI_SYMBOLS_MAX + 4] = {"leak.mw"};

	(void)state;
	for (size_t i = 0; i < MW_CLI_SYMBOLS_MAX; i++) {
		words[1 + 2 * i] = "--symbols";
		words[2 + 2 * i] = "/";
	}
	assert_int_equal(take(words).report.symbols_count, MW_CLI_SYMBOLS_MAX);
	words[2 * MW_CLI_SYMBOLS_MAX + 1] = "--symbols";
	words[2 * MW_CLI_SYMBOLS_MAX + 2] = "/";
	refuse(words, WORDS("--symbols", "16"));
}

static void test_words(void **state)
{
	(void)state;
	refuse(WORDS("--quiet"), WORDS("no recording", "-o"));
	refuse(WORDS("one.mw", "two.mw"), WORDS("'two.mw'"));
	refuse(WORDS(""), WORDS("''"));
	refuse(WORDS("leak.mw", "--form", "3"), WORDS("--form", "--from", "memwatch report --help"));
	refuse(WORDS("leak.mw", "--to"), WORDS("--to", "TIME", "memwatch report --help"));
	refuse(WORDS("leak.mw", "-p"), WORDS("-p", "memwatch report --help"));
}

/* Whatever else stands there, and needs no recording. */
static void test_help(void **state)
{
	struct mw_cli_options options = take(WORDS("--help"));

	(void)state;
	assert_int_equal(options.action, MW_CLI_HELP);
	assert_int_equal(take(WORDS("leak.mw", "-h", "--nonsense")).action, MW_CLI_HELP);
}

/* What views are wanted is looked at elsewhere; here that it comes through, and is given back. */
static void test_views(void **state)
{
	struct mw_cli_options options = take(WORDS("leak.mw", "--by", "thread,stack", "--filter", "size:>1K"));

	(void)state;
	assert_true(mw_cli_view_options_any(&options.view));
	assert_int_equal(options.view.question.by_count, 2);
	assert_non_null(options.view.question.filter);
	mw_cli_options_deinit(&options);
	refuse(WORDS("leak.mw", "--filter", "size:>1K", "--by", "colour"), WORDS("--by", "colour"));
	refuse(WORDS("leak.mw", "--by", "thread", "--filter", "size:("), WORDS("--filter"));
}

UNIT_GROUP(report_options)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_intervals_that_make_no_sense),
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_too_many_directories),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_views),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

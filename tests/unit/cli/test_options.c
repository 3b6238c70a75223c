// SPDX-License-Identifier: MIT
/* test_options.c: whole command lines. */
#include "cli/options.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

#define ARGS_MAX 24

/* Split at blanks; "''" is an empty word. argv[0] is memwatch. */
static int split(char *line, char *argv[ARGS_MAX])
{
	int argc = 1;

	argv[0] = (char *)"memwatch";
	for (char *word = strtok(line, " "); word && argc < ARGS_MAX - 1; word = strtok(NULL, " "))
		argv[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
	argv[argc] = NULL;
	return argc;
}

/* The command points into `argv`, which must outlive the options. */
static struct mw_error *parse(const struct mw_cli_command *command, const char *text, char *line, char **argv,
			      struct mw_cli_options *out)
{
	strcpy(line, text);
	return mw_cli_options_parse(command, split(line, argv), argv, out);
}

static void assert_refused(const struct mw_cli_command *command, const char *text, const char *mentions)
{
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];
	struct mw_error *err = parse(command, text, line, argv, &options);

	if (!err || !strstr(mw_error_text(err), mentions))
		print_error("memwatch %s: %s\n", text, err ? mw_error_text(err) : "taken");
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	assert_non_null(strstr(mw_error_text(err), mentions));
	assert_non_null(mw_error_hint_text(err));
	mw_error_destroy(err);
}

static void test_attach(void **state)
{
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	assert_null(parse(&mw_cli_command_record,
			  "-p 12,13 -d 3 --json - --duration=2.5 --track vm --quiet -p13 --top 0 --html a.html", line,
			  argv, &options));
	assert_int_equal(options.action, MW_CLI_RUN);
	assert_int_equal(options.session.pids.count, 2);
	assert_int_equal(options.session.duration_ns, 2500000000);
	for (size_t i = 0; mw_output_get(i); i++) {
		const char *expected = strcmp(mw_output_get(i)->name, "json") == 0   ? "-"
				       : strcmp(mw_output_get(i)->name, "html") == 0 ? "a.html"
										     : NULL;

		assert_int_equal(!options.session.files[i], !expected);
		if (expected)
			assert_string_equal(options.session.files[i], expected);
	}
	assert_true(options.session.quiet && options.session.track_vm && !options.session.track_heap);
	assert_int_equal(options.session.depth, 128);
	assert_int_equal(options.session.top, 0);
	assert_string_equal(options.session.engine, "auto");
	assert_null(options.session.engine_reason);
	assert_null(options.session.command);
	mw_cli_options_deinit(&options);
}

static void test_engine(void **state)
{
	static const struct {
		const char *line, *engine, *reason;
	} cases[] = {
		{"-p 1", "auto", NULL}, /* the engine says itself why */
		{"-p 1 --engine auto", "auto", NULL},
		{"-p 1 --engine jump", "jump", "asked for by --engine jump"},
		{"-p 1 --engine=trap", "trap", "asked for by --engine trap"},
		{"-p 1 --engine trap --engine auto", "auto", NULL},
		{"-p 1 --engine auto --engine jump", "jump", "asked for by --engine jump"},
	};
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const char *reason = cases[i / 2].reason;

		assert_null(parse(i % 2 ? &mw_cli_command_doctor : &mw_cli_command_record, cases[i / 2].line, line,
				  argv, &options));
		assert_string_equal(options.session.engine, cases[i / 2].engine);
		assert_int_equal(!options.session.engine_reason, !reason);
		if (reason)
			assert_string_equal(options.session.engine_reason, reason);
		mw_cli_options_deinit(&options);
	}
}

static void test_fail_on(void **state)
{
	static const struct {
		const char *line;
		struct mw_fail_on expected;
	} cases[] = {
		{"-p 1", {false, false, 0}},
		{"-p 1 --fail-on leak", {true, false, 0}},
		{"-p 1 --fail-on growth", {false, true, 0}},
		{"-p 1 --fail-on=growth:10M", {false, true, 10 << 20}},
		{"-p 1 --fail-on growth:1.5KiB --fail-on leak", {true, true, 1536}},
		{"-p 1 --fail-on growth:10M --fail-on growth", {false, true, 0}},
	};
	static const char *const refused[] = {
		"leaks", "leak:5", "growth:", "growth:0", "growth:-1", "growth:x", "''", "leak,growth", "Growth",
	};
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mw_fail_on *expected = &cases[i].expected;

		assert_null(parse(&mw_cli_command_record, cases[i].line, line, argv, &options));
		assert_int_equal(options.session.fail_on.leak, expected->leak);
		assert_int_equal(options.session.fail_on.growth, expected->growth);
		assert_int_equal(options.session.fail_on.bytes_per_hour, expected->bytes_per_hour);
		mw_cli_options_deinit(&options);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "-p 1 --fail-on %s", refused[i]);
		assert_refused(&mw_cli_command_record, text, "--fail-on");
	}
	/* One moment has no rate; a live table has an end of its own. */
	assert_refused(&mw_cli_command_heap, "-p 1 --fail-on growth", "--fail-on growth");
	assert_refused(&mw_cli_command_top, "-p 1 --fail-on leak", "fail-on");
	assert_refused(&mw_cli_command_heap, "-p 1 --junit a.xml", "junit");
	assert_null(parse(&mw_cli_command_heap, "-p 1 --fail-on leak", line, argv, &options));
	assert_true(options.session.fail_on.leak);
	mw_cli_options_deinit(&options);
	assert_null(parse(&mw_cli_command_report, "a.mw --fail-on leak --junit a.xml --sarif -", line, argv, &options));
	assert_true(options.session.fail_on.leak);
	mw_cli_options_deinit(&options);
}

static void test_launch(void **state)
{
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	assert_null(parse(&mw_cli_command_record, "--depth 7 -- ls -l -- --quiet", line, argv, &options));
	assert_int_equal(options.session.command_count, 4);
	assert_string_equal(options.session.command[0], "ls");
	assert_string_equal(options.session.command[3], "--quiet");
	assert_null(options.session.command[4]);
	assert_false(options.session.quiet);
	assert_int_equal(options.session.depth, 7);
	assert_int_equal(options.session.top, 10);
	mw_cli_options_deinit(&options);
}

static void test_limits(void **state)
{
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	assert_null(parse(&mw_cli_command_record, "-p 1", line, argv, &options));
	assert_true(options.session.max_memory == 0 && options.session.max_stopped == 0);
	mw_cli_options_deinit(&options);
	assert_null(parse(&mw_cli_command_record, "-p 1 --max-memory 64M --max-stopped=20", line, argv, &options));
	assert_int_equal(options.session.max_memory, 64 << 20);
	assert_int_equal(options.session.max_stopped, 200000);
	mw_cli_options_deinit(&options);
	assert_refused(&mw_cli_command_record, "-p 1 --max-memory many", "--max-memory");
	assert_refused(&mw_cli_command_record, "-p 1 --max-stopped 100", "--max-stopped");
	assert_refused(&mw_cli_command_record, "-p 1 --max-memory", "--max-memory");
}

/* What recording may cost: what is given, and what comes of it. */
static void test_cost(void **state)
{
	static const struct {
		const char *line;
		uint64_t interval;
		uint32_t budget;
		enum mw_overload overload;
		uint32_t max_wait;
	} cases[] = {
		{"-p 1", 0, 0, MW_OVERLOAD_WAIT, 50000},
		{"-p 1 --overload wait", 0, 0, MW_OVERLOAD_WAIT, 50000},
		{"-p 1 --max-wait 20", 0, 0, MW_OVERLOAD_WAIT, 200000},
		{"-p 1 --max-wait 100 --overload wait", 0, 0, MW_OVERLOAD_WAIT, 0},
		{"-p 1 --overload sample", 0, 0, MW_OVERLOAD_SAMPLE, 0},
		{"-p 1 --overload drop --engine jump", 0, 0, MW_OVERLOAD_DROP, 0},
		{"-p 1 --sample 512K", 512 << 10, 0, MW_OVERLOAD_SAMPLE, 0},
		{"-p 1 --sample 1MiB --budget 2.5 --engine jump", 1 << 20, 25000, MW_OVERLOAD_SAMPLE, 0},
		{"-p 1 --budget 5%", 512 << 10, 50000, MW_OVERLOAD_SAMPLE, 0},
	};
	static const struct {
		const char *line, *mentions;
	} bad[] = {
		{"-p 1 --sample 0", "--sample"},
		{"-p 1 --sample 2T", "--sample"},
		{"-p 1 --budget 100", "--budget"},
		{"-p 1 --budget 0", "--budget"},
		{"-p 1 --budget 5 --engine trap", "engine trap"},
		{"-p 1 --overload never", "--overload"},
		{"-p 1 --max-wait 101", "--max-wait"},
		{"-p 1 --engine trap --overload drop", "engine trap"},
		{"-p 1 --engine trap --max-wait 5", "--max-wait"},
		{"-p 1 --sample 512K --overload wait", "--sample"},
		{"-p 1 --budget 5 --max-wait 5", "--max-wait"},
		{"-p 1 --overload sample --max-wait 5", "--overload sample"},
	};
	const struct mw_cli_command *const commands[] = {&mw_cli_command_record, &mw_cli_command_top};
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(parse(commands[i % 2], cases[i / 2].line, line, argv, &options));
		assert_int_equal(options.session.sample_interval, cases[i / 2].interval);
		assert_int_equal(options.session.budget, cases[i / 2].budget);
		assert_int_equal(options.session.overload, cases[i / 2].overload);
		assert_int_equal(options.session.max_wait, cases[i / 2].max_wait);
		mw_cli_options_deinit(&options);
	}
	for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(commands[i % 2], bad[i / 2].line, bad[i / 2].mentions);
}

static void test_help(void **state)
{
	static const char *const lines[] = {"--help", "-h", "-p 1 --help --nonsense", "--hel"};
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_null(parse(&mw_cli_command_record, lines[i], line, argv, &options));
		assert_int_equal(options.action, MW_CLI_HELP);
		mw_cli_options_deinit(&options);
	}
	assert_null(parse(&mw_cli_command_record, "-V", line, argv, &options));
	assert_int_equal(options.action, MW_CLI_VERSION);
	mw_cli_options_deinit(&options);
	assert_null(parse(&mw_cli_command_doctor, "--help", line, argv, &options));
	assert_int_equal(options.action, MW_CLI_HELP);
	mw_cli_options_deinit(&options);
}

static void test_refused(void **state)
{
	static const struct {
		const char *line, *mentions;
	} bad[] = {
		{"-d 5", "nothing to watch"},
		{"--", "empty"},
		{"-- ''", "empty"},
		{"-p 1 --", "empty"},
		{"-p 1 -- ls", "both"},
		{"-p 1 ls", "'ls'"},
		{"-p", "--pid needs a value"},
		{"-p 1 --duration", "--duration needs a value"},
		{"-Vp", "--pid needs a value"},
		{"-hZ", "no such option: -Z"},
		{"-p 1 --durations 5", "--durations"},
		{"-p 1 --nonsense", "--nonsense"},
		{"-p 1 --quiet=yes", "--quiet takes no value"},
		{"-p 1 --d 5", "--d is ambiguous"},
		{"-p 1 -x", "-x"},
		{"-p 1 -xV", "-x"},
		{"--quiet -Zp 1", "-Z"},
		{"-p 1 --engine jum", "'jum'"},
		{"-p 1 --engine jump,trap", "'jump,trap'"},
		{"-p 1 --engine ''", "--engine"},
		{"-p 1 --engine magic", "magic"},
		{"-p 1 --json ''", "--json"},
		{"-p 1 --html ''", "--html"},
		{"-p 1 --depth 0", "--depth"},
		{"-p 1 --depth 1025", "--depth"},
		{"-p 1 --top -1", "--top"},
		{"-p 1 -d -1", "--duration"},
		{"-p 1 -d 0", "--duration"},
		{"-p 1 --track stack", "--track"},
		{"-p 1,,2", "--pid"},
		{"-p 0", "--pid"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(&mw_cli_command_record, bad[i].line, bad[i].mentions);
}

static void test_doctor(void **state)
{
	struct mw_cli_options options;
	char *argv[ARGS_MAX];
	char line[200];

	(void)state;
	assert_null(parse(&mw_cli_command_doctor, "-p 12 --track heap", line, argv, &options));
	assert_int_equal(options.session.pids.items[0], 12);
	assert_true(options.session.track_heap && !options.session.track_vm);
	mw_cli_options_deinit(&options);
	assert_refused(&mw_cli_command_doctor, "-p 1,2", "several");
	assert_refused(&mw_cli_command_doctor, "--track vm", "none is");
	assert_refused(&mw_cli_command_doctor, "12", "'12'");
	assert_refused(&mw_cli_command_doctor, "-p 1 --json x", "--json");
	assert_refused(&mw_cli_command_doctor, "-p 1 -- ls", "'ls'");
}

UNIT_GROUP(options)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attach),  cmocka_unit_test(test_engine), cmocka_unit_test(test_launch),
		cmocka_unit_test(test_fail_on), cmocka_unit_test(test_help),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_doctor),  cmocka_unit_test(test_cost),   cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

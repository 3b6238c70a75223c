// SPDX-License-Identifier: MIT
/* test_parse.c: words of a command line, good and bad. */
#include "cli/options.h"
#include "session/select.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* A refusal is of kind USAGE, names the word and says what would be right. */
static void assert_usage(struct mw_error *err, const char *word)
{
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	assert_non_null(strstr(mw_error_text(err), word));
	assert_non_null(mw_error_hint_text(err));
	mw_error_destroy(err);
}

static void test_seconds(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"1", 1000000000},       {"2.5", 2500000000},     {"0.001", 1000000},
		{".5", 500000000},       {"30.", 30000000000},    {"315360000", 315360000000000000},
		{"007", 7000000000},     {"10s", 10000000000},    {"500ms", 500000000},
		{"1m", 60000000000},     {"1h", 3600000000000},   {"1h30m", 5400000000000},
		{"2d", 172800000000000}, {"1.5h", 5400000000000}, {"1m30.25s", 90250000000},
		{"1s1us", 1000001000},   {"90m", 5400000000000},  {"3650d", 315360000000000000},
		{"1500us", 1500000},     {"0.000001h", 3600000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t ns = 0;

		assert_null(mw_cli_parse(MW_CLI_TYPE_SECONDS, "--duration", good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
}

static void test_seconds_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"abc",
		"-1",
		"+1",
		"nan",
		"inf",
		"infinity",
		"0",
		"0.0",
		"1e99",
		"1e3",
		"5x",
		" 5",
		"5 ",
		"0x10",
		"1.2.3",
		".",
		"0.0009",
		"--",
		"315360001",
		"1,5",
		"1h30",
		"30m1h",
		"1m1m",
		"1s 1ms",
		"1M",
		"10sec",
		"1ns",
		"s",
		".s",
		"1..5s",
		"m1",
		"-1s",
		"999us",
		"0h",
		"3650d1us",
		"99999999999999999999999999d",
		"18446744073709551616us",
		"99999999999999999999999999999999999999999999999999999999999999999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t ns = 77;

		assert_usage(mw_cli_parse(MW_CLI_TYPE_SECONDS, "--duration", bad[i], &ns), "--duration");
		assert_int_equal(ns, 77);
	}
}

static void test_moment(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"0", 0},           {"0s", 0}, {"0.000000001", 1}, {"0.0000000019", 1}, {"1m30s", 90000000000},
		    {"2.5", 2500000000}};
	static const char *const bad[] = {"", ".", "x", "-1", "1x", "1 s", "3651d", "1h30"};
	uint64_t ns = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_usage(mw_cli_parse(MW_CLI_TYPE_MOMENT, "--from", bad[i], &ns), "--from");
		assert_int_equal(ns, 77);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(mw_cli_parse(MW_CLI_TYPE_MOMENT, "--from", good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
}

static void test_is_pids(void **state)
{
	(void)state;
	assert_true(mw_cli_is_pids("1") && mw_cli_is_pids("29067") && mw_cli_is_pids("1,29067"));
	assert_false(mw_cli_is_pids("") || mw_cli_is_pids("0") || mw_cli_is_pids("ls") || mw_cli_is_pids("7z") ||
		     mw_cli_is_pids("4194305") || mw_cli_is_pids("1,"));
}

static void test_count(void **state)
{
	static const char *const bad[] = {"", "0", "-1", "1025", "x", "5x", "1.5", " 1", "0x1", "18446744073709551617"};
	uint32_t value = 0;

	(void)state;
	assert_null(mw_cli_parse(MW_CLI_TYPE_DEPTH, "--depth", "1", &value));
	assert_int_equal(value, 1);
	assert_null(mw_cli_parse(MW_CLI_TYPE_DEPTH, "--depth", "1024", &value));
	assert_int_equal(value, 1024);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_usage(mw_cli_parse(MW_CLI_TYPE_DEPTH, "--depth", bad[i], &value), "--depth");
		assert_int_equal(value, 1024);
	}
}

static void test_pids(void **state)
{
	struct mw_pids pids = {0};

	(void)state;
	assert_null(mw_cli_parse(MW_CLI_TYPE_PIDS, "--pid", "12", &pids));
	assert_null(mw_cli_parse(MW_CLI_TYPE_PIDS, "--pid", "4194304,13,12,13", &pids));
	assert_int_equal(pids.count, 3);
	assert_int_equal(pids.items[0], 12);
	assert_int_equal(pids.items[1], 4194304);
	assert_int_equal(pids.items[2], 13);
	assert_int_equal(pids.name_count, 0);
	mw_pids_deinit(&pids);
}

static void test_names_of_processes(void **state)
{
	static const char *const names[] = {"nginx", "Web Content", "7z", "-bash", "0x1", "1.5", "/usr/sbin/nginx"};
	struct mw_pids pids = {0};

	(void)state;
	assert_null(mw_cli_parse(MW_CLI_TYPE_PIDS, "--pid", "nginx,12,Web Content", &pids));
	assert_null(mw_cli_parse(MW_CLI_TYPE_PIDS, "--pid", "7z,-bash,0x1,1.5,/usr/sbin/nginx", &pids));
	assert_int_equal(pids.count, 1);
	assert_int_equal(pids.items[0], 12);
	assert_int_equal(pids.name_count, 7);
	for (size_t i = 0; i < 7; i++)
		assert_string_equal(pids.names[i], names[i]);
	mw_pids_deinit(&pids);
	assert_int_equal(pids.name_count, 0);
}

static void test_pids_refused(void **state)
{
	static const char *const bad[] = {
		"", ",", "0", "1,,2", ",1", "1,", "99999999999", "4194305", "nginx,", "18446744073709551617",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mw_pids pids = {0};

		assert_usage(mw_cli_parse(MW_CLI_TYPE_PIDS, "--pid", bad[i], &pids), "--pid");
		mw_pids_deinit(&pids);
	}
}

static void test_track(void **state)
{
	static const char *const bad[] = {"", ",", "heap,", ",vm", "all", "HEAP", "heap vm", "heap,,vm", "heapvm"};
	struct mw_session_options options = {.track_vm = true};

	(void)state;
	assert_null(mw_cli_parse(MW_CLI_TYPE_TRACK, "--track", "heap", &options));
	assert_true(options.track_heap && !options.track_vm);
	assert_null(mw_cli_parse(MW_CLI_TYPE_TRACK, "--track", "vm", &options));
	assert_true(!options.track_heap && options.track_vm);
	assert_null(mw_cli_parse(MW_CLI_TYPE_TRACK, "--track", "vm,heap", &options));
	assert_true(options.track_heap && options.track_vm);
	assert_null(mw_cli_parse(MW_CLI_TYPE_TRACK, "--track", "vm,vm", &options));
	assert_true(!options.track_heap && options.track_vm);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_usage(mw_cli_parse(MW_CLI_TYPE_TRACK, "--track", bad[i], &options), "--track");
		assert_true(!options.track_heap && options.track_vm);
	}
}

static void test_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"1", 1},          {"4096", 4096},       {"1k", 1024},
		    {"64M", 67108864}, {"1.5G", 1610612736}, {"2T", UINT64_C(2199023255552)},
		    {"1MiB", 1048576}, {"0.5KiB", 512},      {"2kiB", 2048}};
	static const char *const bad[] = {"",       "0",           "K",     "0K",    "-1",  "1.5", "64 M",
					  "64MB",   "M64",         "1e9",   "0x1",   "1,5", ".",   "nan",
					  "1.2.3G", "9999999999T", "64M\n", "iB",    "KiB", "1iB", "1MiBB",
					  "1 MiB",  "1XiB",        "1Mib",  "1MiBiB"};
	uint64_t bytes = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(mw_cli_parse(MW_CLI_TYPE_SIZE, "--max-memory", good[i].text, &bytes));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bytes = 7;
		assert_usage(mw_cli_parse(MW_CLI_TYPE_SIZE, "--max-memory", bad[i], &bytes), "--max-memory");
		assert_int_equal(bytes, 7);
	}
}

static void test_percent(void **state)
{
	static const char *const bad[] = {"", "0", "100", "-1", "%", "1%%", "20 %", "a", "1e1", "0.00001", "250"};
	uint32_t millionths = 7;

	(void)state;
	assert_null(mw_cli_parse(MW_CLI_TYPE_PERCENT, "--max-stopped", "20", &millionths));
	assert_int_equal(millionths, 200000);
	assert_null(mw_cli_parse(MW_CLI_TYPE_PERCENT, "--max-stopped", "2.5%", &millionths));
	assert_int_equal(millionths, 25000);
	assert_null(mw_cli_parse(MW_CLI_TYPE_PERCENT, "--max-stopped", "99.99", &millionths));
	assert_int_equal(millionths, 999900);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		millionths = 7;
		assert_usage(mw_cli_parse(MW_CLI_TYPE_PERCENT, "--max-stopped", bad[i], &millionths), "--max-stopped");
		assert_int_equal(millionths, 7);
	}
}

static void test_share(void **state)
{
	static const char *const bad[] = {"", "0", "100.1", "-1", "all"};
	uint32_t millionths = 7;

	(void)state;
	assert_null(mw_cli_parse(MW_CLI_TYPE_SHARE, "--max-wait", "2.5%", &millionths));
	assert_int_equal(millionths, 25000);
	assert_null(mw_cli_parse(MW_CLI_TYPE_SHARE, "--max-wait", "100", &millionths));
	assert_int_equal(millionths, 1000000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_usage(mw_cli_parse(MW_CLI_TYPE_SHARE, "--max-wait", bad[i], &millionths), "--max-wait");
	assert_int_equal(millionths, 1000000);
}

static void test_nearest(void **state)
{
	static const char *const words[] = {"doctor", "report", "top", NULL};
	char longest[500];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal(mw_cli_nearest("docter", words), "doctor");
	assert_string_equal(mw_cli_nearest("doc", words), "doctor");
	assert_string_equal(mw_cli_nearest("topp", words), "top");
	assert_string_equal(mw_cli_nearest("report", words), "report");
	assert_null(mw_cli_nearest("xyzzy", words));
	assert_null(mw_cli_nearest("", words));
	assert_null(mw_cli_nearest(longest, words));
}

UNIT_GROUP(parse)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_seconds_refused),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_names_of_processes),
		cmocka_unit_test(test_pids_refused),
		cmocka_unit_test(test_track),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_moment),
		cmocka_unit_test(test_is_pids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

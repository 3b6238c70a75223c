// SPDX-License-Identifier: MIT
/* test_ci.c: reports for pipelines: JUnit's XML, SARIF, and what is a failure. test_formats.py has the golden files validated. */
#include "fixture.h"
#include "output/findings.h"
#include "render.h"
#include "unit.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What each format gives a meaning of its own, and what is no text: control characters, U+FFFE, lone bytes. */
#define EVIL "a<b>&amp;\"'\x01\x1b[2J]]>{0}[x](1)\n\t\xc0\xaf\xff\xef\xbf\xbe\xed\xa0\x80%41 é"

static const struct mw_output_options plain = {.top = 10, .root = "/home/build/shop"};

/* A report with one suspect that leaks, whose names are all `name`. */
struct evil {
	struct mw_report_frame frames[2];
	struct mw_report_stack stack;
	struct mw_report_suspect suspect;
	struct mw_report report;
	size_t stacks[1];
};

static const struct mw_report *evil(struct evil *evil, const char *name, const char *module, const char *file)
{
	evil->frames[0] = (struct mw_report_frame){
		.function = name, .module = module, .offset = 18, .address = 4096, .file = file, .line = 7};
	evil->frames[1] = (struct mw_report_frame){.module = module, .offset = 5, .address = 4096};
	evil->stack = (struct mw_report_stack){.id = "00c0ffee00c0ffee",
					       .api = name,
					       .frames = evil->frames,
					       .frame_count = 2,
					       .impacting = {300, 1 << 20}};
	evil->suspect = (struct mw_report_suspect){.frame = evil->frames,
						   .verdict = MW_GROWTH_STEADY,
						   .bytes = 1 << 20,
						   .blocks = 300,
						   .bytes_per_hour = 360.0 * (1 << 20),
						   .seconds_to_limit = -1,
						   .stacks = evil->stacks,
						   .stack_count = 1,
						   .sentence = "It grows."};
	evil->report = (struct mw_report){.target = {.pid = 7, .comm = name, .exe = module},
					  .window = {.seconds = 10, .to = 10},
					  .engine = {.name = "jump"},
					  .stacks = &evil->stack,
					  .stack_count = 1,
					  .suspects = &evil->suspect,
					  .suspect_count = 1};
	return &evil->report;
}

static json_t *sarif(const struct mw_report *report, struct mw_output_options options)
{
	return render_json("sarif", &report, 1, options);
}

/* The version in it is another with each release. */
static void assert_sarif(const char *name, const struct mw_report *const *reports, size_t count)
{
	static const char before[] = "\"name\":\"memwatch\",\"version\":\"";
	char *text = render("sarif", reports, count, plain), *version = strstr(text, before);

	assert_non_null(version);
	version += sizeof(before) - 1;
	memmove(version, strchr(version, '"'), strlen(strchr(version, '"')) + 1);
	assert_golden(name, text);
	free(text);
}

static void assert_junit(const char *name, const struct mw_report *const *reports, size_t count)
{
	char *text = render("junit", reports, count, plain);

	assert_golden(name, text);
	free(text);
}

static void test_golden(void **state)
{
	const struct mw_report *const all[] = {fixture_server(), fixture_empty(), fixture_server()};
	const struct mw_report *hostile;
	struct evil names = {.stacks = {0}};

	(void)state;
	hostile = evil(&names, EVIL, "/tmp/" EVIL, EVIL);
	assert_junit("server.junit.xml", all, 3);
	assert_sarif("server.sarif", all, 3);
	assert_junit("hostile.junit.xml", &hostile, 1);
	assert_sarif("hostile.sarif", &hostile, 1);
}

/* A suspect of this verdict and rate, lost or not. */
static bool fails(struct mw_fail_on fail_on, enum mw_growth_verdict verdict, double rate, uint64_t lost)
{
	const struct mw_report_suspect suspect = {.verdict = verdict, .bytes_per_hour = rate, .lost = {lost, lost}};

	return mw_finding_fails(&fail_on, &suspect);
}

static void test_failures(void **state)
{
	const struct mw_fail_on nothing = {0}, leak = {.leak = true}, growth = {.growth = true};
	const struct mw_fail_on fast = {.growth = true, .bytes_per_hour = 1000}, both = {true, true, 1000};

	(void)state;
	for (enum mw_growth_verdict verdict = MW_GROWTH_TOO_SHORT; verdict <= MW_GROWTH_CONTAINER; verdict++) {
		bool grows = verdict >= MW_GROWTH_STEADY, leaks = grows && verdict != MW_GROWTH_CONTAINER;

		assert_int_equal(fails(nothing, verdict, 1, 0), grows);
		assert_int_equal(fails(leak, verdict, 1, 0), leaks);
		assert_int_equal(fails(growth, verdict, 1, 0), grows);
		assert_int_equal(fails(fast, verdict, 1001, 0), grows);
		assert_false(fails(fast, verdict, 1000, 0));
		assert_int_equal(fails(both, verdict, 1, 0), leaks);
		/* Nothing leads to a lost block, whether there are more of them or not. */
		assert_true(fails(nothing, verdict, 0, 1) && fails(leak, verdict, 0, 1) && fails(both, verdict, 0, 1));
		assert_int_equal(fails(growth, verdict, 0, 1), grows);
	}
}

/* In a window of 40 s: what is said of an RSS of these bytes at each second. */
static bool grows(uint64_t (*rss)(unsigned second), unsigned step, struct mw_fail_on fail_on)
{
	struct mw_report_sample samples[41] = {{0}};
	struct mw_report report = {.window = {.seconds = 40, .to = 40}, .memory = samples};
	struct mw_line line = {0};
	bool found;

	for (unsigned second = 0; second <= 40; second += step)
		samples[report.memory_count++] = (struct mw_report_sample){.at = second, .rss = rss(second)};
	found = mw_finding_process(&fail_on, &report, &line);
	assert_int_equal(found, line.length > 0);
	mw_line_deinit(&line);
	return found;
}

static uint64_t rising(unsigned second)
{
	return 1000000 + 1000 * second;
}

static uint64_t warming_up(unsigned second)
{
	return 1000000 + 1000 * (second < 25 ? second : 25);
}

static uint64_t waving(unsigned second)
{
	return 1000000 + 1000 * (second % 10);
}

static void test_process(void **state)
{
	const struct mw_fail_on below = {.growth = true, .bytes_per_hour = 3500000};
	const struct mw_fail_on above = {.growth = true, .bytes_per_hour = 3700000};

	(void)state;
	/* 3,600,000 an hour. */
	assert_true(grows(rising, 1, below));
	assert_false(grows(rising, 1, above));
	assert_false(grows(warming_up, 1, below));
	assert_false(grows(waving, 1, below));
	assert_false(grows(rising, 4, below)); /* too few samples */
	/* Without a rate it is the verdicts that count; of leaks as well. */
	assert_false(grows(rising, 1, (struct mw_fail_on){.growth = true}));
	assert_false(grows(rising, 1, (struct mw_fail_on){.leak = true}));
}

/* Each is below the limit, and all together are above it. */
static void test_sum(void **state)
{
	struct mw_fail_on fail_on = {.growth = true, .bytes_per_hour = 1500};
	struct mw_report_suspect suspects[] = {{.verdict = MW_GROWTH_STEADY, .bytes_per_hour = 1000},
					       {.verdict = MW_GROWTH_PLATEAU, .bytes_per_hour = 5000},
					       {.verdict = MW_GROWTH_CONTAINER, .bytes_per_hour = 1000}};
	const struct mw_report report = {.window = {.seconds = 9, .to = 9}, .suspects = suspects, .suspect_count = 3};
	struct mw_line line = {0};

	(void)state;
	assert_true(mw_finding_process(&fail_on, &report, &line));
	assert_non_null(strstr(line.data, "2 lines"));
	mw_line_deinit(&line);
	fail_on.bytes_per_hour = 2000;
	assert_false(mw_finding_process(&fail_on, &report, &line));
}

static void check_gaps(const struct mw_report *report, const char *mentions)
{
	struct mw_line line = {0};

	assert_int_equal(mw_finding_gaps(report, &line), mentions != NULL);
	if (mentions && !strstr(line.data, mentions))
		fail_msg("%s: not in: %s", mentions, line.data);
	mw_line_deinit(&line);
}

static void test_gaps(void **state)
{
	struct mw_report report = {.window = {.seconds = 10, .to = 10, .ended = MW_END_INTERRUPT}};

	(void)state;
	check_gaps(&report, NULL);
	report.lost.events = 3;
	check_gaps(&report, "lost 3 events");
	report.lost.cut = "its end is missing";
	check_gaps(&report, "its end is missing");
	report.lost.cut = NULL;
	report.lost.events = 0;
	check_gaps(fixture_server(), "no call was seen of sbrk");
	report.window.ended = MW_END_LIMIT;
	check_gaps(&report, "a limit was reached");
	report.window.ended = MW_END_LOST;
	check_gaps(&report, "the process was lost");
	report.window.ended = MW_END_EXIT;
	check_gaps(&report, NULL);
}

/* What is a failure to --fail-on is one to both formats; what only grows is none. */
static void test_rate(void **state)
{
	struct mw_output_options options = plain;
	struct evil names = {.stacks = {0}};
	const struct mw_report *report = evil(&names, "f", "/opt/f", "/home/build/shop/f.c");
	const json_t *result;
	json_t *root;
	char *text;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		options.fail_on = (struct mw_fail_on){.growth = true, .bytes_per_hour = i ? 1 << 30 : 1 << 20};
		root = sarif(report, options);
		result =
			json_array_get(json_object_get(json_array_get(json_object_get(root, "runs"), 0), "results"), 0);
		assert_string_equal(json_string_value(json_object_get(result, "level")), i ? "warning" : "error");
		assert_string_equal(json_string_value(json_object_get(result, "ruleId")), "leak");
		json_decref(root);
		text = render("junit", &report, 1, options);
		assert_int_equal(!strstr(text, "<failure type=\"leak\""), i);
		assert_int_equal(!strstr(text, "tests=\"3\" failures=\"1\""), i);
		free(text);
	}
}

static const char *fingerprint(const json_t *root, const char *kind, const char *name)
{
	const json_t *runs = json_object_get(root, "runs");
	const json_t *result = json_array_get(json_object_get(json_array_get(runs, 0), "results"), 0);

	return json_string_value(json_object_get(json_object_get(result, kind), name));
}

/* The same functions, built anew and loaded elsewhere, are known again; others are not. */
static void test_fingerprints(void **state)
{
	struct evil one = {.stacks = {0}}, two = {.stacks = {0}}, three = {.stacks = {0}};
	json_t *a = sarif(evil(&one, "f", "/opt/old/f", "f.c"), plain), *b, *c;

	(void)state;
	(void)evil(&two, "f", "/opt/new/f", "f.c");
	two.frames[0].address = 0x7f0000001000;
	two.frames[0].offset = 99;
	two.frames[0].line = 12;
	two.report.target.pid = 8;
	b = sarif(&two.report, plain);
	c = sarif(evil(&three, "g", "/opt/old/f", "f.c"), plain);
	assert_string_equal(fingerprint(a, "fingerprints", "memwatchStack/v1"), "00c0ffee00c0ffee");
	assert_string_equal(fingerprint(a, "partialFingerprints", "memwatchFunctions/v1"),
			    fingerprint(b, "partialFingerprints", "memwatchFunctions/v1"));
	assert_string_not_equal(fingerprint(a, "partialFingerprints", "memwatchFunctions/v1"),
				fingerprint(c, "partialFingerprints", "memwatchFunctions/v1"));
	json_decref(a);
	json_decref(b);
	json_decref(c);
}

/* Of what they wrote themselves, and of nothing else. */
static void test_own(void **state)
{
	const struct mw_report *report = fixture_empty();
	static const char *const forms[] = {"junit", "sarif", "json", "html"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char *text = render(forms[i], &report, 1, plain);

		for (size_t j = 0; j < 4; j++)
			assert_int_equal(find_output(forms[j])->is_own(text, strlen(text)), i == j);
		assert_false(find_output(forms[i])->is_own(text, 8));
		free(text);
	}
	assert_false(find_output("sarif")->is_own("{\"version\":\"2.1.0\"}", 19));
}

UNIT_GROUP(ci)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),       cmocka_unit_test(test_failures), cmocka_unit_test(test_process),
		cmocka_unit_test(test_sum),          cmocka_unit_test(test_gaps),     cmocka_unit_test(test_rate),
		cmocka_unit_test(test_fingerprints), cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

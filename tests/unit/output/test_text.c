// SPDX-License-Identifier: MIT
/* test_text.c: the report for reading. */
#include "fixture.h"
#include "output/line.h"
#include "output/text.h"
#include "render.h"
#include "unit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void check_golden(const char *name, const struct mw_report *report, unsigned width, bool color)
{
	char *text = render("text", &report, 1,
			    (struct mw_output_options){.top = 10, .width = width, .color = color, .all = !width});

	assert_golden(name, text);
	free(text);
}

static void test_golden(void **state)
{
	(void)state;
	check_golden("server-80.txt", fixture_server(), 80, false);
	check_golden("server-unlimited.txt", fixture_server(), 0, false);
	check_golden("server-80-color.txt", fixture_server(), 80, true);
	check_golden("sampled-80.txt", fixture_sampled(), 80, false);
	check_golden("sampled-unlimited.txt", fixture_sampled(), 0, false);
	check_golden("empty-80.txt", fixture_empty(), 80, false);
	check_golden("hostile-80.txt", fixture_hostile(), 80, false);
}

/* What is next to nothing is not negative; what only comes and goes does not rise. */
static void test_growth(void **state)
{
	struct mw_report report = *fixture_server();
	struct mw_report_stack stack = report.stacks[0];
	const struct mw_report *reports[] = {&report};
	char *text;

	(void)state;
	report.stacks = &stack;
	report.stack_count = 1;
	stack.growth.verdict = MW_GROWTH_CHURN;
	stack.growth.bytes_per_second = -0.25;
	stack.growth.growing_until = report.window.from;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1, .all = true});
	assert_non_null(
		strstr(text, "   churn: 0 B a second on average (fit 1.00), floor from 12.0 KiB to 2.3 MiB; 12.5 %"));
	assert_null(strstr(text, "rising"));
	free(text);
}

/* What is told of an interval is not told of the window. */
static void test_interval(void **state)
{
	struct mw_report report = *fixture_server();
	const struct mw_report *reports[] = {&report};
	char *text;

	(void)state;
	report.window.from = 1;
	text = render("text", reports, 1, (struct mw_output_options){.top = 10, .all = true});
	assert_non_null(
		strstr(text, "Not freed: stacks that allocated in the interval what was not freed by its end\n"));
	assert_non_null(
		strstr(text, "Freed: stacks that allocated in the interval what was freed in it, most bytes first\n"));
	assert_non_null(strstr(text, "; older: from before the interval"));
	assert_non_null(
		strstr(text, "  - Blocks from before the interval are not in it: only what was allocated since"));
	assert_null(strstr(text, "before the window"));
	free(text);
	/* Of no block that was freed the size is known. */
	report = *fixture_server();
	report.totals[MW_KIND_HEAP].aofi = (struct mw_amount){100, 0};
	report.totals[MW_KIND_HEAP].aofi_unknown = 100;
	text = render("text", reports, 1, (struct mw_output_options){.top = 10, .all = true});
	assert_non_null(strstr(text, " 100 older blocks were freed inside it (size unknown).\n"));
	assert_non_null(strstr(text, "size unknown in 100 "));
	free(text);
	report = *fixture_empty();
	report.window.to = report.window.seconds / 2;
	text = render("text", reports, 1, (struct mw_output_options){.top = 10, .all = true});
	assert_non_null(strstr(text, "\nNothing was allocated in the interval, and nothing freed; its 1 child was not "
				     "watched: -p 78, or --children\n"));
	free(text);
}

/* How the window of a recording ended that was cut off, it does not say. */
static void test_cut_off(void **state)
{
	struct mw_report report = *fixture_server();
	const struct mw_report *reports[] = {&report};
	char *text;

	(void)state;
	report.window.ended = MW_END_LOST;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1, .all = true});
	assert_non_null(strstr(text, "ended: the process was lost\n"));
	free(text);
	report.lost.cut = "its end is missing";
	text = render("text", reports, 1, (struct mw_output_options){.top = 1, .all = true});
	assert_non_null(strstr(text, "ended: not known, as the recording is not complete\n"));
	free(text);
}

/* Functions that were not hooked stand in the first line, by name as far as there is room. */
static void test_not_hooked(void **state)
{
	static struct mw_report_hook hooks[] = {
		{"malloc", "libc.so.6", "malloc", NULL, 1, false}, {"memalign", "libc.so.6", "malloc", "why", 2, true},
		{"valloc", "libc.so.6", "malloc", "why", 3, true}, {"pvalloc", "libc.so.6", "malloc", "why", 4, true},
		{"sbrk", "libc.so.6", "sbrk", "why", 5, false},    {"realloc", "libc.so.6", "realloc", "why", 6, true},
		{"calloc", "libc.so.6", "calloc", "why", 7, true},
	};
	struct mw_report report = *fixture_server();
	const struct mw_report *reports[] = {&report};
	char *text;

	(void)state;
	report.engine.hooks = hooks;
	report.engine.hook_count = sizeof(hooks) / sizeof(hooks[0]);
	report.lost.hooks = 5;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1, .all = true});
	assert_non_null(
		strstr(text, ": INCOMPLETE, no call was seen of memalign, valloc, pvalloc, realloc and 1 more"));
	free(text);
	report.lost.events = 3;
	report.lost.hooks = 0;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1, .all = true});
	assert_non_null(strstr(text, ": INCOMPLETE, lost 3 events;"));
	free(text);
	report.lost.events = 0;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1, .all = true});
	assert_non_null(strstr(text, ": nothing lost;"));
	free(text);
}

static void test_function_names(void **state)
{
	static const char *const names[][2] = {
		{"zmalloc", "zmalloc()"},
		{"add(int)", "add()"},
		{"shop::Basket::add(std::vector<int> const&) const", "shop::Basket::add()"},
		{"(anonymous namespace)::add(int)", "add()"},
		{"run(int)::{lambda(int)#1}::operator()(int) const", "run(int)::{lambda(int)#1}::operator()()"},
		{"Order::operator()", "Order::operator()"},
		{"operator new[](unsigned long)", "operator new[]()"},
		{"bool operator< <int>(Order const&)", "operator< <int>()"},
		{"std::shared_ptr<shop::Order> shop::make<int>(int (*)(int))", "shop::make<int>()"},
		{"node::Run(std::unique_ptr<a>) [clone .part.0]", "node::Run()"},
		{"<T as core::fmt::Display>::fmt", "<T as core::fmt::Display>::fmt()"},
		{"unfinished(", "unfinished("},
		{")", ")()"},
		{"", "()"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct mw_line line = {0};

		mw_text_short_function(&line, names[i][0]);
		assert_string_equal(line.data, names[i][1]);
		mw_line_deinit(&line);
	}
}

/* What can't be judged yet is in the answer where it is more than all that grows. */
static void test_open(void **state)
{
	struct mw_report report = *fixture_server();
	const struct mw_report *reports[] = {&report};
	struct mw_report_suspect suspects[8];
	char *text;

	(void)state;
	assert_in_range(report.suspect_count, 2, 8);
	memcpy(suspects, report.suspects, report.suspect_count * sizeof(suspects[0]));
	report.suspects = suspects;
	suspects[1].bytes = suspects[0].bytes;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1});
	assert_null(strstr(text, "\nOPEN "));
	free(text);
	suspects[1].bytes++;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1});
	assert_non_null(
		strstr(text, "none freed\nOPEN  (no stack): 12.0 MiB in 30.0 s, too short to tell, 40 blocks, "));
	free(text);
}

/* Whose the blocks of a suspect are, in both forms. */
static void test_pool(void **state)
{
	static const struct mw_report_pool_user users[] = {
		{"ExecutorState", "TopMemoryContext > PortalContext", "", {100, 3 << 20}},
		{"CachedPlanSource", "TopMemoryContext", "SELECT \x1b", {9, 2 << 20}},
		{"TopMemoryContext", "", "", {8, 1 << 20}},
		{"a", "", "b", {7, 7 << 10}},
		{"c", "", "", {6, 2048}},
		{"d", "", "", {5, 1024}}};
	struct mw_report_pool pool = {.name = "PostgreSQL's memory contexts",
				      .users = (struct mw_report_pool_user *)users,
				      .user_count = sizeof(users) / sizeof(users[0]),
				      .looked = {1000, 9 << 20},
				      .others = {3, 5 << 10}};
	struct mw_report report = *fixture_server();
	const struct mw_report *reports[] = {&report};
	struct mw_report_suspect suspect = report.suspects[0];
	char *text;

	(void)state;
	suspect.pool = &pool;
	report.suspects = &suspect;
	report.suspect_count = 1;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1});
	assert_non_null(strstr(
		text,
		"   In PostgreSQL's memory contexts: ExecutorState 3.0 MiB (in TopMemoryContext > "
		"PortalContext), CachedPlanSource 2.0 MiB (in TopMemoryContext; one is for SELECT \\x1b), "
		"TopMemoryContext 1.0 MiB, a 7.0 KiB (one is for b), 2 more 3.0 KiB, others or not known 5.0 KiB; "
		"1,000 of the 2,048 blocks were read\n"));
	free(text);
	pool.user_count = 0;
	pool.hint = "Nobody knows.";
	text = render("text", reports, 1, (struct mw_output_options){.top = 1});
	assert_non_null(strstr(text, "   Nobody knows.\n"));
	assert_null(strstr(text, "memory contexts"));
	free(text);
	text = render("json", reports, 1, (struct mw_output_options){.top = 1});
	assert_non_null(strstr(
		text, "\"pool\":{\"name\":\"PostgreSQL's memory contexts\",\"hint\":\"Nobody knows.\",\"users\":[],"
		      "\"looked\":{\"count\":1000,\"bytes\":9437184},\"others\":{\"count\":3,\"bytes\":5120}}"));
	free(text);
}

static void put_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Set when it was changed; the report's window begins in 2023. */
static void change_at(const char *path, time_t seconds)
{
	const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool has_line(const struct mw_report *report, const char *line)
{
	char *text = render("text", &report, 1, (struct mw_output_options){.top = 1});
	bool has = strstr(text, line);

	free(text);
	return has;
}

/* Does a report of one stack with scripts' frames have that text, and those frames? */
static void assert_frames(enum mw_frames frames, bool all, const char *expected)
{
	static struct mw_report_frame script[] = {
		{.function = "list_append", .module = "/usr/bin/python3.11", .offset = 16, .interprets = true},
		{.function = "eval", .module = "/usr/bin/python3.11", .offset = 32, .interprets = true},
		{.function = "handle",
		 .module = "[python]",
		 .file = "/srv/app.py",
		 .line = 41,
		 .language = MW_LANGUAGE_PYTHON},
		{.function = "<module>",
		 .module = "[python]",
		 .file = "/srv/app.py",
		 .line = 7,
		 .language = MW_LANGUAGE_PYTHON},
		{.function = "main", .module = "/usr/bin/python3.11", .offset = 48, .interprets = true},
		{.function = "_start", .module = "/usr/bin/shopd", .offset = 33},
	};
	struct mw_report report = *fixture_server();
	struct mw_report_stack stack = report.stacks[0];
	struct mw_report_suspect suspect = report.suspects[0];
	const struct mw_report *reports[] = {&report};
	size_t first = 0;
	char *text, *at, *end;

	stack.frames = script;
	stack.frame_count = 6;
	stack.charged = 2;
	suspect.frame = &script[2];
	suspect.stacks = &first;
	suspect.stack_count = 1;
	report.stacks = &stack;
	report.stack_count = 1;
	report.suspects = &suspect;
	report.suspect_count = 1;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1, .all = all, .frames = frames});
	at = strstr(text, "   #");
	assert_non_null(at);
	end = at;
	while (strncmp(end, "   #", 4) == 0)
		end = strchr(end, '\n') + 1;
	*end = '\0';
	assert_string_equal(at, expected);
	free(text);
}

static void test_frames(void **state)
{
	static const char all[] = "   #0  python3.11!list_append+0x10\n"
				  "   #1  python3.11!eval+0x20\n"
				  "   #2  handle (/srv/app.py:41)\n"
				  "   #3  <module> (/srv/app.py:7)\n"
				  "   #4  python3.11!main+0x30\n"
				  "   #5  shopd!_start+0x21\n",
			  own[] = "   #0-1 (interpreter, 2 frames)\n"
				  "   #2  handle (/srv/app.py:41)\n"
				  "   #3  <module> (/srv/app.py:7)\n"
				  "   #4  (interpreter)\n"
				  "   #5  shopd!_start+0x21\n",
			  scripts[] = "   #2  handle (/srv/app.py:41)\n"
				      "   #3  <module> (/srv/app.py:7)\n";

	(void)state;
	assert_frames(MW_FRAMES_DEFAULT, false, own);
	assert_frames(MW_FRAMES_DEFAULT, true, all);
	assert_frames(MW_FRAMES_OWN, true, own);
	assert_frames(MW_FRAMES_ALL, false, all);
	assert_frames(MW_FRAMES_SCRIPT, false, scripts);
}

/* The line of the source, and whether it may be another by now; only files are read. */
static void test_source(void **state)
{
	static const char line[] = "\n      52 | items.push_back(item);\n", note[] = "\n   (its file is newer than";
	char directory[] = "/tmp/memwatch-source-XXXXXX", source[64], module[64], text[128];
	struct mw_report report = *fixture_server();
	struct mw_report_frame frame = *report.suspects[0].frame;
	struct mw_report_suspect suspect = report.suspects[0];

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(source, sizeof(source), "%s/basket.cc", directory);
	(void)snprintf(module, sizeof(module), "%s/shopd", directory);
	suspect.frame = &frame;
	frame.file = source;
	frame.module = module;
	report.suspects = &suspect;
	report.suspect_count = 1;
	assert_int_equal(mkfifo(source, 0600), 0);
	assert_false(has_line(&report, " 52 | "));
	assert_int_equal(unlink(source), 0);
	memset(text, '\n', 51);
	strcpy(text + 51, "\titems.push_back(item);\r\n");
	put_file(source, text);
	put_file(module, "");
	change_at(source, 1000);
	change_at(module, 2000);
	assert_true(has_line(&report, line) && !has_line(&report, note));
	change_at(source, 3000);
	assert_true(has_line(&report, line) && has_line(&report, note));
	change_at(source, 4000000000);
	change_at(module, 5000000000);
	assert_true(has_line(&report, line) && has_line(&report, note));
	frame.line = 53;
	assert_false(has_line(&report, " 53 | "));
	assert_int_equal(unlink(source), 0);
	assert_int_equal(unlink(module), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void test_several(void **state)
{
	const struct mw_report *reports[] = {fixture_server(), fixture_empty()};
	const struct mw_report *many[] = {fixture_server(), fixture_empty(), fixture_server(), fixture_server()};
	char *text = render("text", reports, 2, (struct mw_output_options){.top = 1, .all = true});

	(void)state;
	assert_non_null(strstr(text, "=== process 1 of 2: shopd (pid 4242) ===\n"));
	assert_non_null(strstr(text, "=== process 2 of 2: idle (pid 77) ===\n"));
	/* What `top` leaves out is summed: 2 MiB of the cache and 1 MiB mapped. */
	assert_non_null(strstr(text, "… and 2 more stacks: 3.0 MiB in 41 blocks\n"));
	assert_non_null(strstr(text, "… and 1 more module: 3.0 MiB in 41 blocks\n"));
	assert_null(strstr(text, "\033"));
	free(text);
	/* All of them in a table before, the worst first. */
	text = render("text", reports, 2, (struct mw_output_options){.top = 10});
	assert_memory_equal(text, "2 processes, watched ", 21);
	assert_non_null(strstr(text, " in 1 of 2 processes: "));
	assert_non_null(strstr(text, "\n     4242  shopd "));
	assert_true(strstr(text, "\n     4242  shopd ") < strstr(text, "\n       77  idle "));
	assert_true(strstr(text, "\n       77  idle ") < strstr(text, "=== process 1 of 2"));
	free(text);
	/* Many are summed by place, and not reported one after another. */
	text = render("text", many, 4, (struct mw_output_options){.top = 2});
	assert_non_null(strstr(text, " in 3 of 4 processes: "));
	assert_non_null(strstr(text, "and 2 more: --all\n"));
	assert_null(strstr(text, "=== process"));
	free(text);
	text = render("text", many, 4, (struct mw_output_options){.top = 2, .all = true});
	assert_non_null(strstr(text, "=== process 4 of 4: shopd (pid 4242) ===\n"));
	assert_null(strstr(text, "more: --all"));
	free(text);
	text = render("text", reports, 0, (struct mw_output_options){.top = 1, .all = true});
	assert_string_equal(text, "");
	free(text);
}

/* Of heap blocks that were not recorded nothing is said. */
static void test_nothing(void **state)
{
	struct mw_report report = *fixture_empty();
	const struct mw_report *reports[] = {&report};
	char *text;

	(void)state;
	report.tracked[MW_KIND_HEAP] = false;
	report.tracked[MW_KIND_VM] = true;
	text = render("text", reports, 1, (struct mw_output_options){.top = 1});
	assert_non_null(strstr(text, "\nNothing was mapped in the window, and nothing unmapped; its 1 child was not "));
	assert_null(strstr(text, "Nothing was allocated"));
	free(text);
}

/* A number stands in one line with its unit. */
static void test_units(void **state)
{
	const struct mw_report *report = fixture_sampled();

	(void)state;
	for (unsigned width = 60; width <= 200; width++) {
		char *text = render("text", &report, 1, (struct mw_output_options){.top = 10, .width = width});

		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			const char *word = line + strspn(line, " ");

			if (strncmp(word, "MiB", 3) == 0 || strncmp(word, "GiB", 3) == 0 || word[0] == '%')
				fail_msg("a unit begins a line of %u columns: %s", width, line);
		}
		free(text);
	}
}

/* No line is wider than asked for, whatever names do. */
static void test_width(void **state)
{
	const struct mw_report *reports[] = {fixture_server(), fixture_empty(), fixture_hostile()};

	(void)state;
	for (unsigned width = 60; width <= 200; width++) {
		char *text = render("text", reports, 3, (struct mw_output_options){.top = 10, .width = width});

		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			/* A word of a command is not cut. */
			if (mw_utf8_columns(line, strlen(line)) > width && strncmp(line, "      $'", 8) != 0)
				fail_msg("wider than %u: %s", width, line);
		free(text);
	}
}

/* Nothing that drives a terminal or reorders a line comes through, nor anything that is no UTF-8. */
static void test_harmless(void **state)
{
	const struct mw_report *report = fixture_hostile();
	char *text = render("text", &report, 1, (struct mw_output_options){.top = 10, .all = true});
	uint32_t character;
	size_t taken;

	(void)state;
	for (const char *at = text; (taken = mw_utf8_decode(at, &character)) != 0; at += taken) {
		assert_true(character == '\n' || mw_utf8_is_printable(character));
		/* A true U+FFFD takes three bytes. */
		assert_true(character != MW_UTF8_REPLACEMENT || taken == 3);
	}
	assert_non_null(strstr(text, "a\\x1b[2Jb\uFFFD\uFFFDz\\x0a\"\\\\u202eq"));
	free(text);
}

static void test_decode(void **state)
{
	static const struct {
		const char *bytes;
		uint32_t character;
		size_t taken;
	} rows[] = {
		{"", 0, 0},
		{"a", 'a', 1},
		{"\xc3\xa9", 0xe9, 2},
		{"\xe2\x82\xac", 0x20ac, 3},
		{"\xf0\x9f\x90\xa2", 0x1f422, 4},
		{"\xf4\x8f\xbf\xbf", 0x10ffff, 4},
		{"\x80", 0xfffd, 1},
		{"\xc0\xaf", 0xfffd, 1},
		{"\xc1\xbf", 0xfffd, 1},
		{"\xe0\x9f\xbf", 0xfffd, 1},
		{"\xed\xa0\x80", 0xfffd, 1},
		{"\xf0\x8f\xbf\xbf", 0xfffd, 1},
		{"\xf4\x90\x80\x80", 0xfffd, 1},
		{"\xf5\x80\x80\x80", 0xfffd, 1},
		{"\xe2\x82", 0xfffd, 1},
		{"\xf0", 0xfffd, 1},
		{"\xff", 0xfffd, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t character = 0;
		char encoded[4];

		assert_int_equal(mw_utf8_decode(rows[i].bytes, &character), rows[i].taken);
		assert_int_equal(character, rows[i].character);
		if (rows[i].taken > 1) {
			assert_int_equal(mw_utf8_encode(character, encoded), rows[i].taken);
			assert_memory_equal(encoded, rows[i].bytes, rows[i].taken);
		}
	}
}

static void test_numbers(void **state)
{
	(void)state;
	assert_string_equal(mw_show_count(0).text, "0");
	assert_string_equal(mw_show_count(999).text, "999");
	assert_string_equal(mw_show_count(1000).text, "1,000");
	assert_string_equal(mw_show_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
	assert_string_equal(mw_show_size(1023).text, "1023 B");
	assert_string_equal(mw_show_size(1024).text, "1.0 KiB");
	assert_string_equal(mw_show_size((1 << 20) - 1).text, "1.0 MiB");
	assert_string_equal(mw_show_size(UINT64_MAX).text, "16.0 EiB");
	assert_string_equal(mw_show_change(2048, 1024).text, "-1.0 KiB");
	assert_string_equal(mw_show_change(5, 5).text, "0 B");
	assert_string_equal(mw_show_seconds(0).text, "0 ns");
	assert_string_equal(mw_show_seconds(850e-9).text, "850 ns");
	assert_string_equal(mw_show_seconds(12.5e-6).text, "12.5 µs");
	assert_string_equal(mw_show_seconds(0.9999).text, "999.9 ms");
	assert_string_equal(mw_show_seconds(30).text, "30.0 s");
	assert_string_equal(mw_show_seconds(310).text, "5 min 10 s");
	assert_string_equal(mw_show_seconds(7384).text, "2 h 3 min");
	assert_string_equal(mw_show_percent(1, 8).text, "12.5 %");
	assert_string_equal(mw_show_percent(1, 0).text, "");
}

static void test_elide(void **state)
{
	struct mw_line line = {0};

	(void)state;
	mw_line_printf(&line, "ab0123456789");
	mw_line_elide(&line, 2, 10);
	assert_string_equal(line.data, "ab0123456789");
	mw_line_elide(&line, 2, 6);
	assert_string_equal(line.data, "ab01…789");
	mw_line_cut(&line, 2);
	mw_line_name(&line, "ééééé");
	mw_line_elide(&line, 2, 3);
	assert_string_equal(line.data, "abé…é");
	mw_line_elide(&line, 0, 0);
	assert_string_equal(line.data, "…");
	mw_line_deinit(&line);
}

UNIT_GROUP(text)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_names), cmocka_unit_test(test_golden),
		cmocka_unit_test(test_growth),         cmocka_unit_test(test_interval),
		cmocka_unit_test(test_cut_off),        cmocka_unit_test(test_not_hooked),
		cmocka_unit_test(test_several),        cmocka_unit_test(test_width),
		cmocka_unit_test(test_harmless),       cmocka_unit_test(test_decode),
		cmocka_unit_test(test_units),          cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_open),           cmocka_unit_test(test_source),
		cmocka_unit_test(test_frames),         cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_elide),          cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

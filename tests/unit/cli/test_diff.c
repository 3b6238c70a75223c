// SPDX-License-Identifier: MIT
/* test_diff.c: memwatch diff, on recordings made by hand. */
#include "../view/tape.h"
#include "cli/diff.h"
#include "unit.h"
#include "view/replay.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Take words, NULL at the end, as `memwatch diff` gets them. */
static struct mw_error *call(struct mw_error *(*with)(int, char **, void *), void *out, va_list words)
{
	char *argv[16] = {"diff"};
	int argc = 1;

	for (const char *word; (word = va_arg(words, const char *)); argc++) {
		assert_true(argc < 15);
		argv[argc] = (char *)word;
	}
	return with(argc, argv, out);
}

static struct mw_error *with_parse(int argc, char **argv, void *out)
{
	return mw_cli_options_parse(&mw_cli_command_diff, argc, argv, out);
}

static struct mw_error *with_run(int argc, char **argv, void *out)
{
	struct mw_cli_options options;

	(void)out;
	MW_TRY(mw_cli_options_parse(&mw_cli_command_diff, argc, argv, &options));
	return mw_cli_diff(&options);
}

static struct mw_error *parse(struct mw_cli_options *out, ...)
{
	struct mw_error *err;
	va_list words;

	va_start(words, out);
	err = call(with_parse, out, words);
	va_end(words);
	return err;
}

static struct mw_error *run(int dummy, ...)
{
	struct mw_error *err;
	va_list words;

	va_start(words, dummy);
	err = call(with_run, NULL, words);
	va_end(words);
	return err;
}

/* An error of that kind whose text and hint have these words in them. */
static void expect(struct mw_error *err, enum mw_error_kind kind, const char *text, const char *hint)
{
	assert_non_null(err);
	if (mw_error_kind(err) != kind || !strstr(mw_error_text(err), text) ||
	    (hint && (!mw_error_hint_text(err) || !strstr(mw_error_hint_text(err), hint))))
		fail_msg("%s. %s", mw_error_text(err), mw_error_hint_text(err) ? mw_error_hint_text(err) : "");
	mw_error_destroy(err);
}

static void test_options(void **state)
{
	struct mw_cli_options options = {.action = MW_CLI_RUN};

	(void)state;
	assert_null(parse(&options, "a.mw", "b.mw", NULL));
	assert_string_equal(options.diff.files[MW_DIFF_OLD], "a.mw");
	assert_string_equal(options.diff.files[MW_DIFF_NEW], "b.mw");
	assert_false(options.diff.single);
	assert_true(options.diff.kinds[MW_KIND_HEAP] && options.diff.kinds[MW_KIND_VM]);
	assert_false(options.diff.kinds[MW_KIND_VM_INTERNAL]);
	assert_true(options.diff.top == SIZE_MAX && !options.diff.all && !options.diff.process &&
		    !options.session.files[0]);
	assert_null(parse(&options, "a.mw", "--from", "1", "--to=end", "--top", "3", "--all", "--json", "-", "--kind",
			  "vm-internal,heap", "--process", "2", "--quiet", NULL));
	assert_true(options.diff.single);
	assert_string_equal(options.diff.files[MW_DIFF_NEW], "a.mw");
	assert_string_equal(options.diff.moments[MW_DIFF_OLD], "1");
	assert_string_equal(options.diff.moments[MW_DIFF_NEW], "end");
	assert_true(options.diff.top == 3 && options.diff.all && options.diff.process == 2 && options.session.quiet);
	assert_true(options.diff.kinds[MW_KIND_VM_INTERNAL] && options.diff.kinds[MW_KIND_HEAP]);
	assert_false(options.diff.kinds[MW_KIND_VM]);
	assert_null(parse(&options, "-h", "--nonsense", NULL));
	assert_int_equal(options.action, MW_CLI_HELP);

	expect(parse(&options, NULL), MW_ERROR_USAGE, "no recording", "old.mw new.mw");
	expect(parse(&options, "a", NULL), MW_ERROR_USAGE, "only one recording", "--from");
	expect(parse(&options, "a", "b", "c", NULL), MW_ERROR_USAGE, "unexpected argument 'c'", "two recordings");
	expect(parse(&options, "a", "", NULL), MW_ERROR_USAGE, "unexpected argument ''", NULL);
	expect(parse(&options, "a", "b", "--kind", "heap,", NULL), MW_ERROR_USAGE, "'heap,'", "vm-internal");
	expect(parse(&options, "a", "b", "--kind", "he", NULL), MW_ERROR_USAGE, "'he'", "vm-internal");
	expect(parse(&options, "a", "b", "--process", "0", NULL), MW_ERROR_USAGE, "--process '0'", NULL);
	expect(parse(&options, "a", "b", "--top", "-1", NULL), MW_ERROR_USAGE, "--top '-1'", NULL);
	expect(parse(&options, "a", "b", "--json", "", NULL), MW_ERROR_USAGE, "--json", NULL);
	expect(parse(&options, "a", "--from", "", NULL), MW_ERROR_USAGE, "--from", NULL);
	expect(parse(&options, "a", "b", "--frm", "1", NULL), MW_ERROR_USAGE, "--frm", "--from");
}

static void check_moment(const char *word, const struct mw_metadata *metadata, uint64_t time_ns, const char *text)
{
	struct mw_cli_moment moment;

	assert_null(mw_cli_moment_find("--to", word, metadata, false, &moment));
	assert_true(moment.time_ns == time_ns);
	assert_string_equal(moment.text, text);
}

static void test_moments(void **state)
{
	struct mw_stored_mark marks[] = {
		{1, 10 * TAPE_SECOND, "mark 1"}, {2, 20 * TAPE_SECOND, "deployed"}, {3, 25 * TAPE_SECOND, NULL},
		{4, 30 * TAPE_SECOND, "twice"},  {5, 31 * TAPE_SECOND, "twice"},    {6, 40 * TAPE_SECOND, "7s"},
	};
	struct mw_metadata metadata = {
		.marks = marks, .mark_count = 6, .has_end = true, .window = {.length_ns = 40 * TAPE_SECOND}};
	struct mw_cli_moment moment;

	(void)state;
	check_moment("start", &metadata, 0, "start");
	check_moment("end", &metadata, MW_REPLAY_END, "end");
	check_moment("1", &metadata, 10 * TAPE_SECOND, "mark 1");
	check_moment("mark 1", &metadata, 10 * TAPE_SECOND, "mark 1");
	check_moment("2", &metadata, 20 * TAPE_SECOND, "mark 2 (deployed)");
	check_moment("deployed", &metadata, 20 * TAPE_SECOND, "mark 2 (deployed)");
	check_moment("3", &metadata, 25 * TAPE_SECOND, "mark 3");
	/* A mark at the window's end holds all of it. */
	check_moment("6", &metadata, MW_REPLAY_END, "mark 6 (7s)");
	check_moment("7s", &metadata, MW_REPLAY_END, "mark 6 (7s)");
	check_moment("12.5s", &metadata, 12 * TAPE_SECOND + TAPE_SECOND / 2, "");
	check_moment("12.5", &metadata, 12 * TAPE_SECOND + TAPE_SECOND / 2, "");
	check_moment("0s", &metadata, 0, "");
	check_moment("500ms", &metadata, TAPE_SECOND / 2, "");
	check_moment("0m12.5s", &metadata, 12 * TAPE_SECOND + TAPE_SECOND / 2, "");
	check_moment("0.0", &metadata, 0, "");
	check_moment("40s", &metadata, MW_REPLAY_END, "");

	expect(mw_cli_moment_find("--to", "8", &metadata, false, &moment), MW_ERROR_USAGE, "--to '8': no such mark",
	       "1 at 10.000 s, 2 (deployed) at 20.000 s, 3 at 25.000 s, 4 (twice) at");
	expect(mw_cli_moment_find("--to", "02", &metadata, false, &moment), MW_ERROR_USAGE, "no such mark", NULL);
	expect(mw_cli_moment_find("--to", "s", &metadata, false, &moment), MW_ERROR_USAGE, "no such mark", NULL);
	expect(mw_cli_moment_find("--to", "1.2.3s", &metadata, false, &moment), MW_ERROR_USAGE, "1.2.3", NULL);
	expect(mw_cli_moment_find("--to", "twice", &metadata, false, &moment), MW_ERROR_USAGE, "2 marks", "which is 4");
	expect(mw_cli_moment_find("--to", "12ss", &metadata, false, &moment), MW_ERROR_USAGE, "not a time", "1m30s");
	expect(mw_cli_moment_find("--to", "1h", &metadata, false, &moment), MW_ERROR_USAGE, "ends at 40.000 s", NULL);
	expect(mw_cli_moment_find("--to", "12s ", &metadata, false, &moment), MW_ERROR_USAGE, "no such mark", NULL);
	expect(mw_cli_moment_find("--to", "40.1s", &metadata, false, &moment), MW_ERROR_USAGE, "ends at 40.000 s",
	       "'end'");
	/* Nobody knows yet where a recording ends that was cut off. */
	assert_null(mw_cli_moment_find("--to", "40.1s", &metadata, true, &moment));
	assert_true(moment.time_ns == 40 * TAPE_SECOND + TAPE_SECOND / 10);
	metadata.mark_count = 0;
	expect(mw_cli_moment_find("--from", "1", &metadata, false, &moment), MW_ERROR_USAGE, "has no marks",
	       "--mark-every");
}

/* More marks than a message has room for. */
static void test_many_marks(void **state)
{
	static char name[] = "a very long name of a mark, which somebody has thought about for a long time, or a liar";
	struct mw_stored_mark marks[100];
	const struct mw_metadata metadata = {.marks = marks, .mark_count = 100};
	struct mw_cli_moment moment;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		marks[i] = (struct mw_stored_mark){UINT32_MAX - i, UINT64_MAX, name};
	expect(mw_cli_moment_find("--to", "8", &metadata, false, &moment), MW_ERROR_USAGE, "no such", "and 92 more");
	assert_null(mw_cli_moment_find("--to", "4294967295", &metadata, false, &moment));
	assert_int_equal(strncmp(moment.text, "mark 4294967295 (a very", 23), 0);
}

/* --- recordings ---------------------------------------------------------------------------------------- */

/* 10 bytes more every second, from second 1 on, and a block that is there from 1.5 to 3.5; marks at 2 and 4, in the
 * second process at 3 and 5. */
static void record(struct tape *tape, uint32_t process, unsigned seconds)
{
	uint32_t leak = tape_stack(tape, process, MW_KIND_HEAP, 0x100);
	uint32_t cache = tape_stack(tape, process, MW_KIND_HEAP, 0x200);

	for (unsigned i = 1; i <= seconds; i++) {
		tape_alloc(tape, process, leak, 0x1000 * i, 10, i * TAPE_SECOND);
		if (i == 1)
			tape_alloc(tape, process, cache, 0x900000, 1000, TAPE_SECOND * 3 / 2);
		if (i == 3)
			tape_free(tape, process, 0x900000, TAPE_SECOND * 7 / 2);
	}
	tape_symbol(tape, process, 0x100, "leak");
	tape_mark(tape, process, 1, "mark 1", (2 + process) * TAPE_SECOND);
	tape_mark(tape, process, 2, "later", (4 + process) * TAPE_SECOND);
}

static const char *make(const char *name, unsigned processes, unsigned seconds, bool whole)
{
	const char *path = tape_path(name);
	struct tape tape;

	tape_open(&tape, path);
	for (unsigned i = 0; i < processes; i++)
		tape_add(&tape,
			 &(struct tape_process){.pid = 10 + (pid_t)i,
						.base = 0x400000,
						.build = (uint8_t)(i + 1),
						.later_ns = strcmp(name, "new.mw") == 0 ? (int64_t)TAPE_SECOND : 0});
	for (unsigned i = 0; i < processes; i++)
		record(&tape, i, seconds + i);
	for (unsigned i = 0; i < processes && whole; i++)
		tape_end(&tape, i, 6 * TAPE_SECOND);
	tape_close(&tape);
	return path;
}

static json_t *load(const char *path)
{
	json_error_t error;
	json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (!json)
		fail_msg("%s: %s", path, error.text);
	assert_int_equal(unlink(path), 0);
	return json;
}

static json_int_t heap(json_t *json, const char *side, const char *what)
{
	json_t *totals = json_object_get(json_object_get(json, "totals"), "heap");

	return json_integer_value(json_object_get(json_object_get(totals, side), what));
}

static double at(json_t *json, const char *side)
{
	return json_real_value(json_object_get(json_object_get(json, side), "at"));
}

static void test_files(void **state)
{
	const char *old = make("old.mw", 1, 3, true), *new = make("new.mw", 1, 5, true), *out = tape_path("out.json");
	json_t *json;

	(void)state;
	assert_null(run(0, old, new, "--json", out, "--quiet", NULL));
	json = load(out);
	assert_int_equal(heap(json, "old", "bytes"), 30);
	assert_int_equal(heap(json, "new", "bytes"), 50);
	assert_int_equal(heap(json, "delta", "count"), 2);
	assert_true(at(json, "old") == 6);
	assert_string_equal(json_string_value(json_object_get(json_object_get(json, "old"), "file")), old);
	json_decref(json);

	/* Each at a moment of its own. */
	assert_null(run(0, old, new, "--from", "2.5s", "--to", "1", "--json", out, "--quiet", NULL));
	json = load(out);
	assert_int_equal(heap(json, "old", "bytes"), 1020);
	assert_int_equal(heap(json, "new", "bytes"), 1010);
	json_decref(json);
}

static void check_marks(const char *file, const char *from, const char *to, json_int_t old, json_int_t new)
{
	const char *out = tape_path("out.json");
	json_t *json;

	assert_null(run(0, file, "--from", from, "--to", to, "--json", out, "--quiet", NULL));
	json = load(out);
	assert_int_equal(heap(json, "old", "bytes"), old);
	assert_int_equal(heap(json, "new", "bytes"), new);
	assert_int_equal(heap(json, "delta", "bytes"), new - old);
	json_decref(json);
}

static void test_marks(void **state)
{
	const char *file = make("one.mw", 1, 5, true);

	(void)state;
	check_marks(file, "1", "later", 1010, 30);
	check_marks(file, "start", "1", 0, 1010);
	check_marks(file, "1.2s", "3.2s", 10, 1030);
	check_marks(file, "2", "end", 30, 50);
	check_marks(file, "5s", "6s", 40, 50);
	expect(run(0, file, "--from", "2", "--to", "1", NULL), MW_ERROR_USAGE, "later than", "earlier");
	expect(run(0, file, "--from", "end", NULL), MW_ERROR_USAGE, "the same moment", NULL);
	expect(run(0, file, "--from", "3", NULL), MW_ERROR_USAGE, "--from '3': no such mark", "2 (later)");
	expect(run(0, file, "--to", "7s", NULL), MW_ERROR_USAGE, "--to '7s': the window ends at 6.000 s", NULL);
}

static void test_processes(void **state)
{
	const char *one = make("one.mw", 1, 2, true), *two = make("two.mw", 2, 3, true), *out = tape_path("out.json");
	json_t *json, *list;

	(void)state;
	/* Read as one recording, and as two: each process at its own mark. */
	for (unsigned i = 0; i < 2; i++) {
		assert_null(run(0, two, i ? two : "--quiet", "--from", "1", "--json", out, "--quiet", NULL));
		json = load(out);
		list = json_object_get(json, "processes");
		assert_int_equal(json_array_size(list), 2);
		assert_int_equal(heap(json_array_get(list, 0), "old", "bytes"), 1010);
		assert_int_equal(heap(json_array_get(list, 0), "new", "bytes"), 30);
		assert_int_equal(heap(json_array_get(list, 1), "old", "bytes"), 1020);
		assert_int_equal(heap(json_array_get(list, 1), "new", "bytes"), 40);
		json_decref(json);
	}
	assert_null(run(0, two, "--to", "end", "--process", "2", "--json", out, "--quiet", NULL));
	json = load(out);
	assert_int_equal(heap(json, "new", "bytes"), 40);
	json_decref(json);
	/* Only what both have. */
	assert_null(run(0, one, two, "--json", out, "--quiet", NULL));
	json = load(out);
	assert_int_equal(heap(json, "new", "bytes"), 30);
	json_decref(json);
	expect(run(0, one, two, "--process", "2", NULL), MW_ERROR_USAGE, "has 1 process", "from 1");
}

/* The text on standard output, to the word. */
static void test_text(void **state)
{
	const char *file = make("text.mw", 1, 5, true), *out = tape_path("out.txt");
	char text[8192] = "", *found;
	int keep = dup(STDOUT_FILENO), fd = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)state;
	assert_true(keep >= 0 && fd >= 0);
	fflush(stdout);
	assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	assert_null(run(0, file, "--from", "1", "--to", "2", NULL));
	assert_int_equal(dup2(keep, STDOUT_FILENO), STDOUT_FILENO);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(keep);
	close(fd);
	found = strstr(text, "\n\n+ 20 ( 30 - 10 ) 3 allocs BackTrace");
	assert_non_null(found);
	found = strstr(found, "\n+ 2 ( 3 - 1 ) BackTrace");
	assert_non_null(found);
	found = strstr(found, "\tapp!leak+0x4 (/src/app.c, 7)\n");
	assert_non_null(found);
	found = strstr(found, "\n- 1000 ( 0 - 1000 ) 0 allocs BackTrace");
	assert_non_null(found);
	found = strstr(found, "\n\tapp+0x200\n");
	assert_non_null(found);
	assert_non_null(strstr(found, "\n\nTotal decrease == 980\n"));
	assert_non_null(strstr(text, "at 2.000 s, mark 1 of a window"));
	assert_non_null(strstr(text, "at 4.000 s, mark 2 (later) of a window"));
}

/* Of two windows it is rates that are compared, and amounts stay in the JSON. */
static void test_windows(void **state)
{
	const char *old = make("old.mw", 1, 3, true), *new = make("new.mw", 1, 5, true), *out = tape_path("out.json");
	json_t *json;

	(void)state;
	assert_null(run(0, old, new, "--json", out, "--quiet", NULL));
	json = load(out);
	assert_string_equal(json_string_value(json_object_get(json, "basis")), "rates");
	json_decref(json);
	assert_null(run(0, old, "--to", "end", "--json", out, "--quiet", NULL));
	json = load(out);
	assert_string_equal(json_string_value(json_object_get(json, "basis")), "outstanding");
	json_decref(json);
}

/* As far as it goes. */
static void test_cut(void **state)
{
	const char *cut = make("cut.mw", 1, 5, false), *out = tape_path("out.json");
	json_t *json;

	(void)state;
	assert_null(run(0, cut, "--to", "end", "--json", out, "--quiet", NULL));
	json = load(out);
	assert_int_equal(heap(json, "new", "bytes"), 50);
	assert_true(at(json, "new") == 5);
	assert_true(json_is_true(json_object_get(json_object_get(json, "new"), "cut")));
	json_decref(json);
	assert_null(run(0, cut, "--to", "100s", "--json", out, "--quiet", NULL));
	json = load(out);
	assert_true(at(json, "new") == 5);
	json_decref(json);
}

/* Cut anywhere: refused, or compared up to there and said so, never more than there is. */
static void test_truncated(void **state)
{
	const char *cut = make("cut.mw", 1, 5, true), *out = tape_path("out.json");
	unsigned good = 0, bad = 0;
	struct stat status;

	(void)state;
	assert_int_equal(stat(cut, &status), 0);
	for (off_t size = status.st_size - 1; size >= 0; size -= 1 + size / 64) {
		struct mw_error *err;
		json_t *json;

		assert_int_equal(truncate(cut, size), 0);
		err = run(0, cut, "--to", "end", "--json", out, "--quiet", NULL);
		if (err) {
			assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
			mw_error_destroy(err);
			bad++;
			continue;
		}
		json = load(out);
		assert_true(heap(json, "new", "bytes") <= 50);
		assert_true(json_is_true(json_object_get(json_object_get(json, "new"), "cut")));
		json_decref(json);
		good++;
	}
	assert_true(good && bad);
}

static void test_bad(void **state)
{
	const char *good = make("good.mw", 1, 5, true), *out = tape_path("out.json"), *text = tape_path("text");
	const char *linked = tape_path("linked.mw");
	struct stat status;
	FILE *file = fopen(text, "w");

	(void)state;
	assert_non_null(file);
	fputs("This is no recording, whatever its name says.\n", file);
	fclose(file);
	assert_int_equal(link(good, linked), 0);
	expect(run(0, good, good, "--json", out, NULL), MW_ERROR_USAGE, "the same recording", "--from");
	expect(run(0, good, linked, NULL), MW_ERROR_USAGE, "the same recording", "--from");
	expect(run(0, good, tape_path("none.mw"), "--json", out, NULL), MW_ERROR_SYSTEM, "none.mw", NULL);
	expect(run(0, text, good, "--json", out, NULL), MW_ERROR_DATA, "text", NULL);
	expect(run(0, good, text, "--json", out, NULL), MW_ERROR_DATA, "text", NULL);
	expect(run(0, good, "--from", "1", "--json", "/nowhere/out.json", NULL), MW_ERROR_SYSTEM, "/nowhere", NULL);
	/* Nothing is left behind. */
	assert_int_equal(stat(out, &status), -1);
}

UNIT_GROUP(diff)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),   cmocka_unit_test(test_moments), cmocka_unit_test(test_many_marks),
		cmocka_unit_test(test_files),     cmocka_unit_test(test_marks),   cmocka_unit_test(test_processes),
		cmocka_unit_test(test_text),      cmocka_unit_test(test_windows), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, tape_cleanup);
}

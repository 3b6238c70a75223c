// SPDX-License-Identifier: MIT
/* test_export.c: what formats make of names that are meant to do harm, of recursions, of stacks that begin alike, and of
 * nothing. */
#include "unit.h"

#include <jansson.h>
#include <memwatch/export.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define SIZE(array) (sizeof(array) / sizeof((array)[0]))

static const struct mw_export_format *format_of(const char *name)
{
	size_t i = 0;

	while (strcmp(mw_export_get(i)->name, name) != 0)
		i++;
	return mw_export_get(i);
}

/* Malloc'ed, with a NUL behind it. */
static char *written(const char *name, const struct mw_export *export, size_t *size)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, size);

	assert_non_null(stream);
	assert_null(format_of(name)->write(export, stream));
	assert_int_equal(fclose(stream), 0);
	return text;
}

static char *text_of(const char *name, const struct mw_export *export)
{
	size_t size;

	return written(name, export, &size);
}

static json_t *json_of(const char *name, const struct mw_export *export)
{
	char *text = text_of(name, export);
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s at line %d", error.text, error.line);
	free(text);
	return root;
}

#define FRAME(name, at)                                                                                                \
	{                                                                                                              \
		.function = (name), .module = "/bin/program", .address = (at)                                          \
	}

/* All that came and went; NULL: nothing. */
struct events {
	const struct mw_export_event *items;
	size_t count;
};

static struct mw_error *read_events(void *context, mw_export_take *take, void *taker)
{
	const struct events *events = context;

	for (size_t i = 0; events && i < events->count; i++)
		take(taker, &events->items[i]);
	return NULL;
}

/* A process with these stacks, each with that many bytes in one block that was not freed. */
#define EXPORT(...)                                                                                                    \
	struct mw_report_stack stacks[] = {__VA_ARGS__};                                                               \
	struct mw_export_sample samples[SIZE(stacks)];                                                                 \
	struct mw_report report = {.target = {.pid = 7, .comm = "it"}, .window = {.to = 1}};                           \
	struct mw_export_process process = {.report = &report,                                                         \
					    .samples = samples,                                                        \
					    .sample_count = SIZE(stacks),                                              \
					    .peak_at = 0.5,                                                            \
					    .read_events = read_events};                                               \
	const struct mw_export export = {.processes = &process, .count = 1};                                           \
                                                                                                                       \
	for (size_t i = 0; i < SIZE(stacks); i++)                                                                      \
		samples[i] = (struct mw_export_sample)                                                                 \
		{                                                                                                      \
			.stack = &stacks[i], .sums = {.fates = {[MW_FATE_IMPACTING] = {1, UINT64_C(1) << i}} }         \
		}

#define STACK(list)                                                                                                    \
	{                                                                                                              \
		.frames = (list), .frame_count = SIZE(list)                                                            \
	}

static struct mw_report_frame hostile[] = {
	FRAME("ends in 12", 1),     FRAME("a;b\nc\r\td", 2), FRAME("\xff\xfe\xc3", 3),      FRAME("", 4),
	FRAME("(3) \"quoted\\", 5), FRAME(NULL, 6),          FRAME("operator new(int)", 7),
};

static void test_hostile_collapsed(void **state)
{
	EXPORT(STACK(hostile));
	char *text = text_of("collapsed", &export);

	(void)state;
	/* No line is broken, no ';' but between frames, and no number behind a blank but the figure. */
	assert_string_equal(text, "operator new(int);program+0x0;(3) \"quoted\\;program+0x0;"
				  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd;a:b\\x0ac\\x0d\\x09d;ends in_12 1\n");
	free(text);
}

static void test_hostile_json(void **state)
{
	EXPORT(STACK(hostile));
	json_t *speedscope = json_of("speedscope", &export), *dhat = json_of("dhat", &export);
	const json_t *frames = json_object_get(json_object_get(speedscope, "shared"), "frames");
	const json_t *table = json_object_get(dhat, "ftbl");

	(void)state;
	assert_int_equal(json_array_size(frames), SIZE(hostile));
	assert_string_equal(json_string_value(json_object_get(json_array_get(frames, 1), "name")),
			    "a;b\\x0ac\\x0d\\x09d");
	assert_int_equal(json_array_size(table), SIZE(hostile) + 1);
	assert_string_equal(json_string_value(json_array_get(table, 0)), "[root]");
	assert_string_equal(json_string_value(json_array_get(table, 5)), "0x5: (3) \"quoted\\");
	json_decref(speedscope);
	json_decref(dhat);
}

static void test_hostile_callgrind(void **state)
{
	EXPORT(STACK(hostile));
	char *text = text_of("callgrind", &export);

	(void)state;
	assert_non_null(strstr(text, "\nfn=(1) process it 7\n"));
	assert_non_null(strstr(text, ") a;b\\x0ac\\x0d\\x09d\n"));
	assert_non_null(strstr(text, ") (3) \"quoted\\\n"));
	free(text);
}

static char *inflated(const char *bytes, size_t size, size_t *length)
{
	z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)size};
	char *out = calloc(1, 1 << 16);

	assert_non_null(out);
	assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
	stream.next_out = (Bytef *)out;
	stream.avail_out = (1 << 16) - 1;
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	*length = stream.total_out;
	inflateEnd(&stream);
	return out;
}

static void test_hostile_pprof(void **state)
{
	EXPORT(STACK(hostile));
	size_t size, length;
	char *bytes = written("pprof", &export, &size);
	char *message = inflated(bytes, size, &length);

	(void)state;
	assert_true(format_of("pprof")->is_own(bytes, size));
	assert_non_null(memmem(message, length, "a;b\\x0ac\\x0d\\x09d", 17));
	assert_non_null(memmem(message, length, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 9));
	assert_null(memchr(message, 0xff, length));
	free(message);
	free(bytes);
}

/* A function that is on a stack three times is three, so that sums with what is called are right. */
/* Every line of it. Numbers are hexadecimal, and what is named is written before, once. */
static void test_heaptrack(void **state)
{
	static struct mw_report_frame first[] =
		{{.function = "in", .file = "a.c", .line = 3, .inlined = true},
		 {.function = "of\n", .module = "/bin/program", .file = "b.c", .line = 31, .address = 0xabc},
		 FRAME("main", 2)},
				      second[] = {FRAME("other", 3), FRAME("main", 2)};
	EXPORT(STACK(first), STACK(second));
	const struct mw_export_event items[] = {
		{.time_ns = 2000000999, .stack = &stacks[0], .bytes = 64, .blocks = 1},
		{.time_ns = 2003999999, .stack = &stacks[0], .bytes = 16, .part = true, .blocks = 1, .gone = true},
		{.time_ns = 2003999999, .stack = &stacks[1], .bytes = 64, .blocks = 2},
		{.time_ns = 2018000000, .stack = NULL, .bytes = 0, .blocks = 1},
		{.time_ns = 2018000001, .stack = &stacks[0], .bytes = 48, .part = true, .blocks = 1, .gone = true},
		{.time_ns = 2019000000, .stack = &stacks[1], .bytes = 64, .blocks = 2, .gone = true},
	};
	struct events events = {items, SIZE(items)};
	struct mw_report_sample memory[] = {{.at = 2.0025, .rss = 8192}, {.at = 2.5, .rss = 1 << 20}};
	size_t size, length;
	char *bytes, *text;

	(void)state;
	process.events = &events;
	samples[0].kind = MW_KIND_VM;
	report.stacks = stacks;
	report.stack_count = SIZE(stacks);
	report.memory = memory;
	report.memory_count = SIZE(memory);
	report.target.limit = (struct mw_memory_limit){.bytes = 1 << 20, .of = MW_LIMIT_MACHINE};
	report.window.from = 2;
	report.window.to = 3;
	bytes = written("heaptrack", &export, &size);
	text = inflated(bytes, size, &length);
	assert_string_equal(text, "v 10200 2\nX it\nI 1000 100\nA\n"
				  "s /bin/program\ns main\ni 2 1 2 0 0\nt 1 0\n"
				  "s in\ns a.c\ns of\\x0a\ns b.c\ni abc 1 3 4 3 5 6 1f\nt 2 1\n"
				  "a 40 2\ns other\ni 3 1 7 0 0\nt 3 1\na 40 3\n"
				  "s (no stack)\ni 0 0 8 0 0\nt 4 0\na 0 4\na 10 2\na 30 2\n"
				  "+ 0\nc 2\nR 2\nc 3\n- 3\n+ 1\n+ 1\nc 12\n+ 2\n- 4\nc 13\n- 1\n- 1\n"
				  "c 1f4\nR 100\nc 3e8\n");
	free(text);
	free(bytes);
}

/* Blocks are sampled that stand for more than can be written. */
static void test_heaptrack_refuses(void **state)
{
	static struct mw_report_frame frames[] = {FRAME("leaf", 1)};
	EXPORT(STACK(frames));
	struct mw_error *err;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_non_null(stream);
	samples[0].sums.fates[MW_FATE_TRANSIENT].count = 1000000000;
	report.sampling.interval = 1;
	err = format_of("heaptrack")->write(&export, stream);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
	assert_non_null(strstr(mw_error_text(err), "stand for 1000000001 ones"));
	mw_error_destroy(err);
	fclose(stream);
	free(text);
}

static void test_recursion(void **state)
{
	static struct mw_report_frame frames[] = {FRAME("walk", 1), FRAME("step", 2), FRAME("walk", 3),
						  FRAME("walk", 4)};
	EXPORT(STACK(frames));
	char *text = text_of("callgrind", &export);

	(void)state;
	assert_non_null(strstr(text, ") walk\n"));
	assert_non_null(strstr(text, ") walk'2\n"));
	assert_non_null(strstr(text, ") walk'3\n"));
	assert_null(strstr(text, ") step'2"));
	assert_non_null(strstr(text, "summary: 1 1 1 1\n"));
	free(text);
}

/* One stack is the beginning of another; two are the same, of different threads. DHAT's viewer wants each once. */
static void test_dhat_merges(void **state)
{
	static struct mw_report_frame frames[] = {FRAME("leaf", 1), FRAME("main", 2)};
	EXPORT(STACK(frames), {.frames = frames, .frame_count = 1}, STACK(frames));
	json_t *root = json_of("dhat", &export);
	const json_t *places = json_object_get(root, "pps");

	(void)state;
	assert_int_equal(json_array_size(places), 2);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 0), "tb")), 1 + 4);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 0), "mb")), 1 + 4);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 1), "eb")), 2);
	assert_int_equal(json_integer_value(json_object_get(root, "te")), 1000000);
	assert_int_equal(json_integer_value(json_object_get(root, "tg")), 500000);
	json_decref(root);
}

/* A stack that is not known, and one that does not reach the thread's start, say so. */
static void test_cut(void **state)
{
	static struct mw_report_frame frames[] = {FRAME("leaf", 1)};
	EXPORT({.frames = frames, .frame_count = 1, .cut = MW_STACK_TRUNCATED}, {.frame_count = 0});
	char *text = text_of("collapsed", &export);

	(void)state;
	assert_string_equal(text, "(cut here: the wanted depth was reached);leaf 1\n(no stack) 2\n");
	free(text);
}

static void test_nothing(void **state)
{
	const struct mw_report report = {.target = {.pid = 7}};
	const struct mw_export_process process = {.report = &report, .read_events = read_events};
	const struct mw_export export = {.processes = &process, .count = 1};

	(void)state;
	for (size_t i = 0; mw_export_get(i); i++) {
		const struct mw_export_format *format = mw_export_get(i);
		size_t size;
		char *bytes = written(format->name, &export, &size);

		/* An empty file may be replaced by anything. */
		assert_true(size == 0 || format->is_own(bytes, size));
		free(bytes);
	}
	json_decref(json_of("speedscope", &export));
	json_decref(json_of("dhat", &export));
}

/* Each format knows its own files, and none of the others'. */
static void test_own(void **state)
{
	static struct mw_report_frame frames[] = {FRAME("leaf", 1)};
	EXPORT(STACK(frames));

	(void)state;
	for (size_t i = 0; mw_export_get(i); i++) {
		size_t size;
		char *bytes = written(mw_export_get(i)->name, &export, &size);

		for (size_t j = 0; mw_export_get(j); j++)
			assert_int_equal(mw_export_get(j)->is_own(bytes, size), i == j);
		assert_false(mw_export_get(i)->is_own("precious 1 data\n", 16) &&
			     strcmp(mw_export_get(i)->name, "collapsed") != 0);
		assert_false(mw_export_get(i)->is_own("precious\n", 9));
		free(bytes);
	}
}

UNIT_GROUP(export)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_collapsed),
		cmocka_unit_test(test_hostile_json),
		cmocka_unit_test(test_hostile_callgrind),
		cmocka_unit_test(test_hostile_pprof),
		cmocka_unit_test(test_heaptrack),
		cmocka_unit_test(test_heaptrack_refuses),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_dhat_merges),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}

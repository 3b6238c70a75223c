// SPDX-License-Identifier: MIT
/* test_html.c: the page, taken apart again. */
#include "fixture.h"
#include "output/html.h"
#include "render.h"
#include "unit.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

extern const char mw_html_page[];
extern const uint64_t mw_html_page_size;

struct bytes {
	unsigned char *data;
	size_t size, at;
};

static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* What stands in `text`, which is nothing but base64 of a zlib stream. */
static struct bytes unpack(const char *text, size_t length)
{
	unsigned char *packed = malloc(length);
	struct bytes out = {.data = malloc((size_t)1 << 24), .size = 0};
	z_stream zip = {.next_in = NULL};
	size_t size = 0;

	assert_int_equal(length % 4, 0);
	for (size_t i = 0; i < length; i += 4) {
		unsigned int held = 0, padding = 0;

		for (size_t j = 0; j < 4; j++) {
			bool pads = text[i + j] == '=' && i + 4 == length && j >= 2;

			assert_true(pads || (!padding && digit(text[i + j]) >= 0));
			padding += pads;
			held = held << 6 | (pads ? 0u : (unsigned int)digit(text[i + j]));
		}
		for (unsigned int j = 0; j + padding < 3; j++)
			packed[size++] = (unsigned char)(held >> (16 - 8 * j));
	}
	zip.next_in = packed;
	zip.avail_in = (unsigned int)size;
	zip.next_out = out.data;
	zip.avail_out = 1u << 24;
	assert_int_equal(inflateInit(&zip), Z_OK);
	assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
	assert_int_equal(zip.avail_in, 0);
	out.size = zip.total_out;
	inflateEnd(&zip);
	free(packed);
	return out;
}

/* A page is its template with two texts put in: get these, and check that there is nothing else. */
static void take_apart(const char *page, struct bytes *report, struct bytes *cells)
{
	static const char *const marks[] = {"@@MEMWATCH_REPORT@@", "@@MEMWATCH_CELLS@@"};
	struct bytes *const parts[] = {report, cells};
	const char *from = mw_html_page;

	assert_int_equal(strlen(mw_html_page), mw_html_page_size);
	for (size_t i = 0; i < 2; i++) {
		const char *mark = strstr(from, marks[i]);
		size_t before, length;

		assert_non_null(mark);
		before = (size_t)(mark - from);
		assert_memory_equal(page, from, before);
		assert_int_equal(page[before - 1], '>');
		length = strcspn(page + before, "<");
		*parts[i] = unpack(page + before, length);
		page += before + length;
		from = mark + strlen(marks[i]);
		assert_memory_equal(from, "</script>", 9);
	}
	assert_null(strstr(from, "@@MEMWATCH_"));
	assert_string_equal(page, from);
}

static json_t *json_of(const struct bytes *bytes)
{
	json_error_t error;
	json_t *root = json_loadb((const char *)bytes->data, bytes->size, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s at line %d", error.text, error.line);
	return root;
}

/* Frames in place of their numbers. */
static void unshare(json_t *report)
{
	json_t *frames = json_object_get(report, "frames"), *stack, *number;
	size_t i, j;

	assert_true(json_is_array(frames));
	json_array_foreach(json_object_get(report, "stacks"), i, stack)
	{
		json_t *own = json_object_get(stack, "frames");

		json_array_foreach(own, j, number)
		{
			json_t *frame = json_array_get(frames, (size_t)json_integer_value(number));

			assert_non_null(frame);
			json_array_set(own, j, frame);
		}
	}
	json_object_del(report, "frames");
}

static json_t *json_report(const struct mw_report *const *reports, size_t count)
{
	char *text = render("json", reports, count, (struct mw_output_options){0});
	json_t *root = json_loads(text, 0, NULL);

	assert_non_null(root);
	free(text);
	return root;
}

/* The report in the page is that of --json. */
static void assert_report(json_t *page, const struct mw_report *const *reports, size_t count)
{
	json_t *report = json_object_get(page, "report"), *expected = json_report(reports, count);
	json_t *processes = json_object_get(report, "processes"), *one;
	size_t i;

	if (count == 1)
		unshare(report);
	else
		json_array_foreach(processes, i, one) unshare(one);
	assert_true(json_equal(report, expected));
	json_decref(expected);
}

static void assert_number(json_t *root, const char *key, json_int_t expected)
{
	assert_true(json_is_integer(json_object_get(root, key)));
	assert_int_equal(json_integer_value(json_object_get(root, key)), expected);
}

static uint64_t next(struct bytes *bytes)
{
	uint64_t number = 0;
	unsigned int shift = 0;
	unsigned char byte;

	do {
		assert_true(bytes->at < bytes->size);
		byte = bytes->data[bytes->at++];
		number |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	return number;
}

static void assert_numbers(struct bytes *bytes, const uint64_t *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(next(bytes), expected[i]);
}

static struct mw_timeline_row cells[] = {
	{{0, 0, 0}, 0, 3, 1, 0, 1, 0},
	{{0, 1, 1}, 3, 0, 2, 300, 0, 0},
	{{2, 300, 0}, 1, 4, 1, UINT64_MAX / 4, 0, 2999999},
	{{1, 2, 0}, 2, 2, 1, 128, 0, 1000},
};
static struct mw_timeline_row lifetimes[] = {
	{{0, 255, 0}, 2, 0, 1, 0, 0, 0},
	{{41, 7, 2}, 0, 2, 3, 127, 0, 0},
};
static uint32_t threads[] = {1, MW_TIMELINE_UNKNOWN};
static char *heaps[] = {(char *)"main", (char *)"</script>"};
static const struct mw_timeline timeline = {
	.from_ns = 5,
	.to_ns = 4005,
	.cells = {cells, 4, 1000, 4},
	.owners = {cells, 2, 2000, 2},
	.coarse = true,
	.lifetimes = {lifetimes, 2, 2000, 2},
	.threads = threads,
	.thread_count = 2,
	.heaps = heaps,
	.heap_count = 2,
};

static void check_process(json_t *process)
{
	json_t *place;
	json_int_t end;

	assert_number(process, "bin_ns", 1000);
	assert_number(process, "bins", 4);
	assert_number(process, "from_ns", 5);
	assert_number(process, "to_ns", 4005);
	assert_true(json_is_true(json_object_get(process, "coarse")));
	assert_int_equal(json_integer_value(json_array_get(json_object_get(process, "threads"), 0)), 1);
	assert_true(json_is_null(json_array_get(json_object_get(process, "threads"), 1)));
	assert_string_equal(json_string_value(json_array_get(json_object_get(process, "heaps"), 1)), "</script>");
	place = json_object_get(process, "cells");
	assert_number(place, "offset", 0);
	assert_number(place, "rows", 4);
	assert_number(place, "bins", 4);
	end = json_integer_value(json_object_get(place, "length"));
	place = json_object_get(process, "owners");
	assert_number(place, "offset", end);
	assert_number(place, "rows", 2);
	assert_number(place, "bins", 2);
	assert_number(place, "bin_ns", 2000);
	end += json_integer_value(json_object_get(place, "length"));
	place = json_object_get(process, "lifetimes");
	assert_number(place, "offset", end);
	assert_number(place, "rows", 2);
	assert_number(place, "bins", 2);
	assert_number(place, "bin_ns", 2000);
}

static void test_rows(void **state)
{
	/* Of before, died in bin 2; born in bin 2, lives; born in bin 0, died in bin 3; born and died in bin 1. */
	static const uint64_t expected[] = {
		0,
		0,
		4,
		1, /* stack */
		0,
		1,
		300,
		2, /* thread */
		0,
		1,
		0,
		0, /* heap */
		0,
		6,
		3,
		2, /* born */
		3,
		0,
		4,
		1, /* died */
		1,
		2,
		1,
		1, /* count */
		0,
		600,
		UINT64_MAX / 4 * 2,
		256, /* bytes */
		1,
		0,
		0,
		0, /* unknown */
		0,
		0,
		14 * 128 + 183,
		2 * 128 + 250, /* lived */
		/* Owners, the first two of these. */
		0,
		0,
		0,
		1,
		0,
		1,
		0,
		6,
		3,
		0,
		1,
		2,
		0,
		600,
		1,
		0,
		0,
		0,
		/* Lifetimes. */
		0,
		82,
		255,
		7,
		0,
		2,
		4,
		3,
		0,
		2,
		1,
		3,
		0,
		254,
	};
	const struct mw_report *report = fixture_server();
	const struct mw_timeline *all = &timeline;
	char *page = render("html", &report, 1, (struct mw_output_options){.timelines = &all});
	struct bytes json, raw;
	json_t *root;

	(void)state;
	take_apart(page, &json, &raw);
	assert_numbers(&raw, expected, sizeof(expected) / sizeof(expected[0]));
	assert_int_equal(raw.at, raw.size);
	root = json_of(&json);
	assert_number(root, "version", 2);
	assert_string_equal(json_string_value(json_object_get(root, "frames")), "own");
	assert_report(root, &report, 1);
	check_process(json_array_get(json_object_get(root, "processes"), 0));
	json_decref(root);
	free(json.data);
	free(raw.data);
	free(page);
}

/* A page of a look has what --json has, and no rows. */
static void test_heap(void **state)
{
	static char *holder[] = {(char *)"global </script><!--", (char *)"block"};
	static struct mw_heap_line lines[] = {{"live blocks", (char *)"</script>", 4096, 0, 0, 0, 0}};
	static struct mw_heap_group groups[] = {
		{.class_name = (char *)"</script><script>x()</script>",
		 .size = 24,
		 .allocator = "glibc",
		 .verdict = MW_REACH_DEFINITE,
		 .blocks = {2, 48},
		 .samples = {0x1000},
		 .sample_count = 1},
		{.size = MW_SIZE_UNKNOWN,
		 .verdict = MW_REACH_REACHABLE,
		 .blocks = {1, 100},
		 .holder = holder,
		 .holder_count = 2},
	};
	static const struct mw_heap_report heap = {
		.pid = 42,
		.comm = "@@MEMWATCH_CELL",
		.rss = 4096,
		.page_tables = MW_SIZE_UNKNOWN,
		.lines = lines,
		.line_count = 1,
		.groups = groups,
		.group_count = 2,
		.leaks = {[MW_REACH_DEFINITE] = {2, 48}, [MW_REACH_REACHABLE] = {1, 100}},
	};
	struct bytes json, raw;
	json_t *root, *expected;
	char *page = render_heap("html", &heap, false), *text = render_heap("json", &heap, false);

	(void)state;
	take_apart(page, &json, &raw);
	assert_int_equal(raw.size, 0);
	root = json_of(&json);
	assert_number(root, "version", 2);
	assert_int_equal(json_object_size(root), 2);
	expected = json_loads(text, 0, NULL);
	assert_non_null(expected);
	assert_int_equal(json_array_size(json_object_get(expected, "groups")), 2);
	assert_true(json_equal(json_object_get(root, "heap"), expected));
	json_decref(expected);
	json_decref(root);
	free(json.data);
	free(raw.data);
	free(page);
	free(text);
}

/* Offsets go on from one process to the next; one without a timeline has no rows. */
static void test_several(void **state)
{
	const struct mw_report *reports[] = {fixture_server(), fixture_empty(), fixture_hostile()};
	const struct mw_timeline *all[] = {&timeline, NULL, &timeline};
	char *page = render("html", reports, 3, (struct mw_output_options){.timelines = all});
	struct bytes json, raw;
	json_t *root, *last;

	(void)state;
	take_apart(page, &json, &raw);
	root = json_of(&json);
	assert_report(root, reports, 3);
	assert_int_equal(json_array_size(json_object_get(root, "processes")), 3);
	assert_number(json_object_get(json_array_get(json_object_get(root, "processes"), 1), "cells"), "rows", 0);
	last = json_array_get(json_object_get(root, "processes"), 2);
	assert_number(json_object_get(last, "cells"), "offset", (json_int_t)raw.size / 2);
	assert_int_equal(raw.size % 2, 0);
	assert_memory_equal(raw.data, raw.data + raw.size / 2, raw.size / 2);
	json_decref(root);
	free(json.data);
	free(raw.data);
	free(page);
}

/* Nothing that a process says stands in the page as it says it: take_apart() finds the template and base64. */
static void test_hostile(void **state)
{
	const struct mw_report *report = fixture_hostile();
	char *page = render("html", &report, 1, (struct mw_output_options){0});
	struct bytes json, raw;
	json_t *root;

	(void)state;
	take_apart(page, &json, &raw);
	assert_int_equal(raw.size, 0);
	root = json_of(&json);
	assert_report(root, &report, 1);
	json_decref(root);
	free(json.data);
	free(raw.data);
	free(page);
}

/* Any length comes back, and in one piece. */
static void test_pack(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 3, 4, 100, 49151, 49152, 49153, 200000, 3000001};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *in = malloc(sizes[i] + 1);
		FILE *stream = NULL;
		struct bytes back;
		char *text = NULL;
		size_t length = 0;
		FILE *out = open_memstream(&text, &length);
		uint64_t seed = 7;

		for (size_t j = 0; j < sizes[i]; j++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			in[j] = (unsigned char)(seed >> 33);
		}
		assert_null(mw_html_pack(out, &stream));
		assert_int_equal(fwrite(in, 1, sizes[i], stream), sizes[i]);
		assert_int_equal(fclose(stream), 0);
		assert_int_equal(fclose(out), 0);
		back = unpack(text, length);
		assert_int_equal(back.size, sizes[i]);
		assert_memory_equal(back.data, in, sizes[i]);
		free(back.data);
		free(text);
		free(in);
	}
}

/* A full disk is left for the caller to see in the stream. */
static void test_full(void **state)
{
	const struct mw_report *report = fixture_server();
	const struct mw_output_options options = {.top = 1};
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	if (!full)
		skip();
	setvbuf(full, NULL, _IONBF, 0);
	assert_null(find_output("html")->write(&report, 1, &options, full));
	assert_true(ferror(full));
	fclose(full);
}

UNIT_GROUP(html)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),    cmocka_unit_test(test_heap), cmocka_unit_test(test_several),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_pack), cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

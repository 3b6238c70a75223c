// SPDX-License-Identifier: MIT
/* Chunks whose checksums fit, made by somebody who means no good: each number is checked. */
#include "rig.h"

#include "store/format.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* A file that is being made. */
static uint8_t file[8U << 20];
static size_t used;
static uint64_t sequence;

static char *path;

static void begin(void)
{
	mw_store_pack_file(file);
	used = MW_STORE_FILE_HEADER;
	sequence = 0;
}

static void add_chunk(struct mw_store_chunk chunk, const void *stored)
{
	chunk.sequence = sequence++;
	mw_store_pack_chunk(&chunk, stored, file + used);
	used += MW_STORE_CHUNK_HEADER;
	memcpy(file + used, stored, chunk.stored_size);
	used += chunk.stored_size;
}

static void add_raw(uint16_t type, uint32_t count, const void *content, size_t size)
{
	add_chunk(
		(struct mw_store_chunk){
			.type = type, .count = count, .raw_size = (uint32_t)size, .stored_size = (uint32_t)size},
		content);
}

static void add_zstd(uint16_t type, uint32_t count, uint32_t raw_size, const void *stored, size_t size)
{
	add_chunk((struct mw_store_chunk){.type = type,
					  .coding = MW_STORE_ZSTD,
					  .count = count,
					  .raw_size = raw_size,
					  .stored_size = (uint32_t)size},
		  stored);
}

/* The end of a good recording. */
static void add_close(void)
{
	uint8_t record[] = {1, (uint8_t)sequence};

	assert_true(sequence < 128);
	add_raw(MW_STORE_CLOSE, 1, record, sizeof(record));
}

/* Read what was made: returns why it is bad, NULL if it is not; what it told is in `told`. */
static const char *read_file(struct rig_told *told)
{
	struct mw_store_state read = {0};

	rig_save(path, file, used);
	rig_good(rig_read(path, told, &read));
	assert_int_equal(read.cut, read.why != NULL);
	return read.why;
}

/* Good chunks first, so that something is good: a thread and a stack 0. */
static void begin_good(void)
{
	static const uint8_t thread[] = {4, 0, 1, 2, 0};
	static const uint8_t stack[] = {8, 0, 1, 0, 1, 0, 1, 16, 1};

	begin();
	add_raw(MW_STORE_THREADS, 1, thread, sizeof(thread));
	add_raw(MW_STORE_STACKS, 1, stack, sizeof(stack));
}

#define GOOD "0 thread 0 1 -\n0 stack 0 0 0 0 8@0\n"

/* What follows the good chunks is damage, and nothing is told of it. */
static void expect_bad(const char *why)
{
	struct rig_told told;
	const char *found;

	add_close();
	rig_told_init(&told);
	found = read_file(&told);
	if (!found || !strstr(found, why))
		fail_msg("it is bad because of '%s', not '%s'", found ? found : "nothing", why);
	assert_string_equal(told.text, GOOD);
	rig_told_deinit(&told);
}

static void expect_good(const char *text)
{
	struct rig_told told;

	add_close();
	rig_told_init(&told);
	assert_null(read_file(&told));
	assert_string_equal(told.text, text);
	rig_told_deinit(&told);
}

static void expect_bad_raw(uint16_t type, uint32_t count, const void *content, size_t size, const char *why)
{
	begin_good();
	add_raw(type, count, content, size);
	expect_bad(why);
}

#define BAD_RECORD(type, why, ...)                                                                                     \
	expect_bad_raw(type, 1, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), why)

static void test_records(void **state)
{
	(void)state;
	begin_good();
	expect_good(GOOD);
	expect_bad_raw(MW_STORE_BEFORE, 0, "\2\1\2", 3, "more records");
	BAD_RECORD(MW_STORE_BEFORE, "fewer records", 9, 1, 2);
	BAD_RECORD(MW_STORE_BEFORE, "fewer records", 0xff, 0xff);
	expect_bad_raw(MW_STORE_BEFORE, UINT32_MAX, "", 0, "fewer records");
	expect_bad_raw(MW_STORE_SAMPLES, 2, "", 1, "is invalid");
	/* one field; the end before the start; numbers that are too long or too large */
	BAD_RECORD(MW_STORE_BEFORE, "is invalid", 1, 1);
	BAD_RECORD(MW_STORE_BEFORE, "is invalid", 2, 2, 1);
	BAD_RECORD(MW_STORE_BEFORE, "is invalid", 12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 1);
	BAD_RECORD(MW_STORE_BEFORE, "is invalid", 11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 1);
	/* strings: without an end, with another 0 in it, longer than the record */
	BAD_RECORD(MW_STORE_MARKS, "is invalid", 5, 1, 7, 2, 'a', 'b');
	BAD_RECORD(MW_STORE_MARKS, "is invalid", 6, 1, 7, 3, 'a', 0, 0);
	BAD_RECORD(MW_STORE_MARKS, "is invalid", 5, 1, 7, 9, 'a', 0);
	BAD_RECORD(MW_STORE_MARKS, "is invalid", 13, 1, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0);
	/* a hook's and a module's number are bounded, and a kind is one that there is */
	BAD_RECORD(MW_STORE_HOOKS, "is invalid", 9, 0x80, 0x80, 0x40, 0, 0, 0, 0, 0, 0);
	BAD_RECORD(MW_STORE_HOOKS, "is invalid", 7, 1, 0, 0, 0, 0, 0, 3);
	BAD_RECORD(MW_STORE_MODULES, "is invalid", 9, 0x80, 0x80, 0x40, 0, 0, 0, 0, 0, 0);
	BAD_RECORD(MW_STORE_MODULES, "is invalid", 7, 1, 0, 0x7f, 0, 0, 0, 0);
	BAD_RECORD(MW_STORE_MAPPINGS, "is invalid", 6, 2, 0, 0, 0, 0, 0);
	BAD_RECORD(MW_STORE_MAPPINGS, "is invalid", 6, 0, 0, 0, 0x7f, 0, 0);
	BAD_RECORD(MW_STORE_MAPPINGS, "is invalid", 6, 0, 1, 0, 0, 0, 0);
	/* lists that are longer than what there is */
	BAD_RECORD(MW_STORE_TARGETS, "is invalid", 11, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 3);
	BAD_RECORD(MW_STORE_TARGETS, "is invalid", 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	BAD_RECORD(MW_STORE_SYMBOLS, "is invalid", 5, 1, 0, 0xff, 0xff, 3);
	BAD_RECORD(MW_STORE_SYMBOLS, "is invalid", 8, 1, 0, 1, 0, 0, 0, 0, 2);
	BAD_RECORD(MW_STORE_ENDS, "is invalid", 8, 0, 0, 0, 0, 0, 1, 0, 0);
	BAD_RECORD(MW_STORE_ENDS, "is invalid", 7, 0, 0, 2, 0, 0, 0, 0);
}

static void test_numbers_of_stacks_and_threads(void **state)
{
	(void)state;
	/* 0 was told: 2 leaves one out; and what was used is not taken back */
	BAD_RECORD(MW_STORE_THREADS, "is invalid", 4, 2, 1, 2, 0);
	BAD_RECORD(MW_STORE_THREADS, "is invalid", 2, 0, 0);
	BAD_RECORD(MW_STORE_THREADS, "is invalid", 8, 0xfe, 0xff, 0xff, 0xff, 0x0f, 1, 2, 0);
	BAD_RECORD(MW_STORE_THREADS, "is invalid", 4, 1, 2, 2, 0);
	BAD_RECORD(MW_STORE_STACKS, "is invalid", 6, 2, 1, 0, 1, 0, 0);
	BAD_RECORD(MW_STORE_STACKS, "is invalid", 2, 0, 0);
	BAD_RECORD(MW_STORE_STACKS, "is invalid", 6, 1, 1, 3, 1, 0, 0);
	BAD_RECORD(MW_STORE_STACKS, "is invalid", 6, 1, 1, 0, 1, 3, 0);
	BAD_RECORD(MW_STORE_STACKS, "is invalid", 8, 1, 1, 0, 1, 0, 2, 2, 1);
	/* the intervals' numbers are 1, 2, …, and none is of 0 bytes */
	BAD_RECORD(MW_STORE_INTERVALS, "is invalid", 2, 2, 100);
	BAD_RECORD(MW_STORE_INTERVALS, "is invalid", 2, 0, 100);
	BAD_RECORD(MW_STORE_INTERVALS, "is invalid", 2, 1, 0);
	BAD_RECORD(MW_STORE_INTERVALS, "is invalid", 3, 0x81, 8, 100);
	/* a frame's module is bounded */
	BAD_RECORD(MW_STORE_STACKS, "is invalid", 10, 1, 1, 0, 1, 0, 1, 2, 0x82, 0x80, 0x40);
}

/* Events in a chunk as the writer makes them. */
static size_t events_content(const struct mw_event *events, size_t count, uint8_t *out)
{
	struct mw_store_planes planes;

	return mw_store_columns_encode(events, count, out, &planes);
}

static void expect_bad_event(struct mw_event event, const char *why)
{
	static uint8_t content[MW_STORE_CHUNK_MAX];

	expect_bad_raw(MW_STORE_EVENTS, 1, content, events_content(&event, 1, content), why);
}

static void test_events(void **state)
{
	const struct mw_event event = {1, 16, 24, 0, 0, MW_EVENT_ALLOC, MW_KIND_HEAP, 0, false};
	static uint8_t content[MW_STORE_CHUNK_MAX];
	struct mw_event other;
	size_t size;

	(void)state;
	begin_good();
	add_raw(MW_STORE_EVENTS, 1, content, events_content(&event, 1, content));
	expect_good(GOOD "0 event 0 0 1 10 24 0 0\n");
	other = event;
	other.stack = 1;
	expect_bad_event(other, "not in it");
	other.stack = UINT32_MAX - 1;
	expect_bad_event(other, "not in it");
	other = event;
	other.thread = 1;
	expect_bad_event(other, "not in it");
	other.thread = UINT32_MAX;
	expect_bad_event(other, "not in it");
	other = event;
	other.type = (enum mw_event_type)(MW_EVENT_REMAP_FAIL + 1);
	expect_bad_event(other, "of a kind that there is not");
	other = event;
	other.interval = 1;
	expect_bad_event(other, "not in it");
	other = event;
	other.kind = MW_KIND_COUNT;
	expect_bad_event(other, "of a kind that there is not");
	/* The head: shift, widths, zeros. */
	size = events_content(&event, 1, content);
	for (size_t i = 0; i < 8; i++) {
		uint8_t before = content[i];

		content[i] = 0xff;
		expect_bad_raw(MW_STORE_EVENTS, 1, content, size, "a chunk of events");
		content[i] = before;
	}
	/* A thread's number of five bytes, which are all there. */
	memset(content, 0, 64);
	content[2] = 5;
	expect_bad_raw(MW_STORE_EVENTS, 1, content, 24 + 1 + 5, "too wide");
	size = events_content(&event, 1, content);
	expect_bad_raw(MW_STORE_EVENTS, 0, content, size, "no sensible number");
	expect_bad_raw(MW_STORE_EVENTS, 2, content, size, "a chunk of events");
	expect_bad_raw(MW_STORE_EVENTS, UINT32_MAX, content, size, "no sensible number");
	expect_bad_raw(MW_STORE_EVENTS, 1, content, size - 1, "too short");
	expect_bad_raw(MW_STORE_EVENTS, 1, content, size + 1, "too long");
	expect_bad_raw(MW_STORE_EVENTS, 1, content, 23, "no sensible number");
	expect_bad_raw(MW_STORE_EVENTS, 1, content, 0, "no sensible number");
}

/* An event that names a number that was left out, or a stack of another process. */
static void test_events_of_others(void **state)
{
	const struct mw_event event = {1, 16, 24, 1, 0, MW_EVENT_ALLOC, MW_KIND_HEAP, 0, false};
	const struct mw_event bare = {1, 16, 24, MW_STACK_NONE, 0, MW_EVENT_ALLOC, MW_KIND_HEAP, 0, false};
	static const uint8_t unused[] = {2, 1, 0};
	uint8_t content[256];
	size_t size = events_content(&event, 1, content);

	(void)state;
	begin_good();
	add_raw(MW_STORE_STACKS, 1, unused, sizeof(unused));
	add_raw(MW_STORE_EVENTS, 1, content, size);
	expect_bad("not in it");
	begin_good();
	add_raw(MW_STORE_STACKS, 1, unused, sizeof(unused));
	add_raw(MW_STORE_EVENTS, 1, content, events_content(&bare, 1, content));
	expect_good(GOOD "0 event 0 0 1 10 24 4294967295 0\n");
	size = events_content(&event, 1, content);
	begin_good();
	add_chunk((struct mw_store_chunk){.type = MW_STORE_EVENTS,
					  .process = 1,
					  .count = 1,
					  .raw_size = (uint32_t)size,
					  .stored_size = (uint32_t)size},
		  content);
	expect_bad("not in it");
}

static void test_headers(void **state)
{
	const struct mw_store_chunk good = {.type = MW_STORE_BEFORE, .count = 1, .raw_size = 3, .stored_size = 3};
	static const uint8_t before[] = {2, 1, 2};
	struct mw_store_chunk chunk = good;

	(void)state;
	begin_good();
	add_chunk(good, before);
	expect_good(GOOD "0 before 1 2\n");
	begin_good();
	chunk.raw_size = 2;
	add_chunk(chunk, before);
	expect_bad("invalid size");
	begin_good();
	chunk.raw_size = MW_STORE_CHUNK_MAX + 1;
	add_chunk(chunk, before);
	expect_bad("invalid size");
	begin_good();
	chunk.raw_size = 4;
	add_chunk(chunk, before);
	expect_bad("unknown way");
	begin_good();
	chunk = good;
	chunk.coding = 2;
	add_chunk(chunk, before);
	expect_bad("unknown way");
	begin_good();
	chunk = good;
	chunk.process = MW_STORE_PROCESS_MAX;
	add_chunk(chunk, before);
	expect_bad("header is invalid");
	begin_good();
	chunk = good;
	chunk.type = 0;
	add_chunk(chunk, before);
	expect_bad("header is invalid");
	begin_good();
	sequence++;
	add_chunk(good, before);
	expect_bad("a chunk is missing");
}

/* The end says how many chunks there are. */
static void test_ends(void **state)
{
	static const uint8_t records[][4] = {{1, 0}, {1, 3}, {2, 0x82, 0}, {0}};
	struct rig_told told;

	(void)state;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		begin_good();
		add_raw(MW_STORE_CLOSE, 1, records[i], records[i][0] + 1U);
		rig_told_init(&told);
		if (i == 2) /* 2 in two bytes is 2 */
			assert_null(read_file(&told));
		else
			assert_string_equal(read_file(&told), "its end is invalid");
		rig_told_deinit(&told);
	}
	begin_good();
	add_raw(MW_STORE_CLOSE, 0, "", 0);
	expect_bad("its end is invalid");
	begin_good();
	add_close();
	add_raw(MW_STORE_BEFORE, 1, "\2\1\2", 3);
	expect_bad("more behind its end");
}

/* What newer writers add is left out. */
static void test_additions(void **state)
{
	static const uint8_t longer[] = {4, 1, 2, 9, 9};

	(void)state;
	begin_good();
	add_raw(MW_STORE_BEFORE, 1, longer, sizeof(longer));
	add_raw(99, 7, "whatever", 8);
	add_chunk(
		(struct mw_store_chunk){
			.type = 98, .coding = 77, .process = UINT32_MAX, .raw_size = 9, .stored_size = 2},
		"ab");
	expect_good(GOOD "0 before 1 2\n");
}

static void test_compressed(void **state)
{
	static uint8_t zeros[2U << 20], packed[1U << 16], before[64];
	size_t size = ZSTD_compress(packed, sizeof(packed), zeros, sizeof(zeros), 1), half;

	(void)state;
	/* More or less than it says; a bomb. */
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, MW_STORE_CHUNK_MAX, packed, size);
	expect_bad("can't be decompressed");
	half = ZSTD_compress(packed, sizeof(packed), zeros, 100, 1);
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, 101, packed, half);
	expect_bad("can't be decompressed");
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, 99, packed, half);
	expect_bad("can't be decompressed");
	/* Nothing that is no frame of zstd's: rubbish, a frame that is cut off, one that is skipped, one of old. */
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, 100, "rubbish", 7);
	expect_bad("can't be decompressed");
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, 100, packed, half - 1);
	expect_bad("can't be decompressed");
	memcpy(packed + half, "\x50\x2a\x4d\x18\0\0\0\0", 8);
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, 100, packed, half + 8);
	expect_bad("can't be decompressed");
	memcpy(packed, "\x25\xb5\x2f\xfd", 4);
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, 100, packed, half);
	expect_bad("can't be decompressed");
	/* Two frames are one content. */
	memcpy(before, (const uint8_t[]){62, 1, 2}, 3);
	half = ZSTD_compress(packed, sizeof(packed), before, 3, 1);
	half += ZSTD_compress(packed + half, sizeof(packed) - half, before + 3, 60, 1);
	assert_true(half <= 63);
	begin_good();
	add_zstd(MW_STORE_BEFORE, 1, 63, packed, half);
	expect_good(GOOD "0 before 1 2\n");
}

static int setup(void **state)
{
	(void)state;
	path = strdup(rig_path("hostile.mw"));
	return path ? 0 : -1;
}

static int teardown(void **state)
{
	free(path);
	return rig_cleanup(state);
}

UNIT_GROUP(hostile)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),   cmocka_unit_test(test_numbers_of_stacks_and_threads),
		cmocka_unit_test(test_events),    cmocka_unit_test(test_events_of_others),
		cmocka_unit_test(test_headers),   cmocka_unit_test(test_ends),
		cmocka_unit_test(test_additions), cmocka_unit_test(test_compressed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

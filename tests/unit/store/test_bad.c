// SPDX-License-Identifier: MIT
/* Recordings that are none, were cut off, or have a bit that changed: a message or a word about it, never other news.
 */
#include "rig.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *small, *bad; /* paths */
static uint8_t *whole;    /* the small recording's bytes */
static size_t whole_size;
static struct rig_told all; /* what it tells */

static int setup(void **state)
{
	struct mw_store_state read;

	(void)state;
	small = strdup(rig_path("small.mw"));
	bad = strdup(rig_path("bad.mw"));
	rig_write_small(small);
	whole = rig_load(small, &whole_size);
	rig_told_init(&all);
	rig_good(rig_read(small, &all, &read));
	assert_false(read.cut);
	return 0;
}

static int teardown(void **state)
{
	rig_told_deinit(&all);
	free(whole);
	free(small);
	free(bad);
	return rig_cleanup(state);
}

/* Opening it must fail with that kind of error, its name, and a text that says so. */
static void refuse_open(const char *path, enum mw_error_kind kind, const char *why)
{
	struct mw_store_reader *reader = (void *)1;
	struct mw_error *err = mw_store_open(path, &reader);

	assert_non_null(err);
	assert_ptr_equal(reader, (void *)1);
	assert_int_equal(mw_error_kind(err), kind);
	assert_non_null(strstr(mw_error_text(err), path));
	if (!strstr(mw_error_text(err), why))
		fail_msg("'%s' does not say '%s'", mw_error_text(err), why);
	mw_error_destroy(err);
}

static void refuse_bytes(const void *bytes, size_t size, const char *why)
{
	rig_save(bad, bytes, size);
	refuse_open(bad, MW_ERROR_DATA, why);
}

static void test_other_files(void **state)
{
	uint8_t header[16];

	(void)state;
	refuse_open("/nonexistent/x.mw", MW_ERROR_SYSTEM, "No such file");
	refuse_open("/tmp", MW_ERROR_DATA, "a directory");
	refuse_open("/dev/null", MW_ERROR_DATA, "no regular file");
	refuse_bytes("", 0, "empty");
	refuse_bytes("\x7f"
		     "ELF\2\1\1\0 and so on and on",
		     24, "does not begin as one");
	refuse_bytes("{", 1, "does not begin as one");
	memcpy(header, whole, sizeof(header));
	header[8] = 2;
	refuse_bytes(header, sizeof(header), "version 2");
	header[8] = 1;
	header[15] = 1;
	refuse_bytes(header, sizeof(header), "damaged");
	unlink(bad);
	assert_int_equal(mkfifo(bad, 0600), 0);
	refuse_open(bad, MW_ERROR_DATA, "no regular file");
	unlink(bad);
}

/* What is told of a bad recording is how the good one begins, and it is known to be bad. Returns the bytes told. */
static size_t read_bad(const uint8_t *bytes, size_t size)
{
	struct mw_store_state read = {0};
	struct rig_told told;
	struct mw_error *err;
	size_t length;

	rig_save(bad, bytes, size);
	rig_told_init(&told);
	err = rig_read(bad, &told, &read);
	if (err) {
		assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
		mw_error_destroy(err);
	} else {
		assert_true(read.cut);
		assert_non_null(read.why);
		assert_int_equal(read.size, size);
		assert_true(read.good <= size);
	}
	fflush(told.stream);
	length = told.size;
	assert_memory_equal(told.text, all.text, length);
	rig_told_deinit(&told);
	return length;
}

static void test_cut_at_every_byte(void **state)
{
	size_t told = 0;

	(void)state;
	for (size_t size = 0; size < whole_size; size++) {
		size_t more = read_bad(whole, size);

		assert_true(more >= told);
		told = more;
	}
	/* All but the end's chunk is there. */
	assert_int_equal(told, all.size);
}

static void test_every_bit_flipped(void **state)
{
	size_t least = SIZE_MAX, most = 0;

	(void)state;
	for (size_t bit = 0; bit < 8 * whole_size; bit++) {
		size_t told;

		whole[bit / 8] ^= (uint8_t)(1U << bit % 8);
		told = read_bad(whole, whole_size);
		whole[bit / 8] ^= (uint8_t)(1U << bit % 8);
		least = told < least ? told : least;
		most = told > most ? told : most;
	}
	assert_int_equal(least, 0);
	assert_int_equal(most, all.size);
}

static void test_more_behind_the_end(void **state)
{
	uint8_t *longer = malloc(2 * whole_size);

	(void)state;
	assert_non_null(longer);
	memcpy(longer, whole, whole_size);
	memset(longer + whole_size, 0, whole_size);
	assert_int_equal(read_bad(longer, whole_size + 1), all.size);
	assert_int_equal(read_bad(longer, 2 * whole_size), all.size);
	/* Two recordings, one behind the other. */
	memcpy(longer + whole_size, whole, whole_size);
	assert_int_equal(read_bad(longer, 2 * whole_size), all.size);
	memmove(longer + whole_size, whole + 16, whole_size - 16);
	assert_int_equal(read_bad(longer, 2 * whole_size - 16), all.size);
	free(longer);
}

/* A chunk that is missing, or there twice, is not taken for a recording that is whole. */
static void test_chunks_missing_and_repeated(void **state)
{
	uint8_t *other = malloc(2 * whole_size);
	size_t at = 16;

	(void)state;
	assert_non_null(other);
	while (at < whole_size) {
		size_t stored = whole[at + 28] | (size_t)whole[at + 29] << 8, end = at + 40 + stored;

		memcpy(other, whole, at);
		memcpy(other + at, whole + end, whole_size - end);
		read_bad(other, whole_size - (end - at));
		memcpy(other, whole, end);
		memcpy(other + end, whole + at, whole_size - at);
		read_bad(other, whole_size + (end - at));
		at = end;
	}
	assert_int_equal(at, whole_size);
	free(other);
}

static void test_damage_is_told(void **state)
{
	struct mw_store_state read;
	struct rig_told told;
	struct mw_error *err;

	(void)state;
	rig_told_init(&told);
	/* The last byte of the last chunk but one. */
	rig_save(bad, whole, whole_size - 1);
	rig_good(rig_read(bad, &told, &read));
	assert_string_equal(read.why, "it ends inside a chunk");
	whole[whole_size - 1] ^= 1;
	rig_save(bad, whole, whole_size);
	whole[whole_size - 1] ^= 1;
	rig_good(rig_read(bad, &told, &read));
	assert_string_equal(read.why, "a chunk's checksum does not fit its bytes");
	rig_save(bad, whole, 16);
	err = rig_read(bad, &told, &read);
	assert_non_null(err);
	assert_non_null(strstr(mw_error_text(err), "its end is missing"));
	assert_non_null(mw_error_hint_text(err));
	mw_error_destroy(err);
	rig_told_deinit(&told);
}

/* Nobody wants to know: damage is found all the same. */
static void test_damage_in_what_is_skipped(void **state)
{
	const struct mw_store_visitor nothing = {0};
	struct mw_store_reader *reader;
	struct mw_store_state read;

	(void)state;
	rig_good(mw_store_open(small, &reader));
	rig_good(mw_store_read(reader, &nothing, &read));
	assert_false(read.cut);
	assert_int_equal(read.processes, 1);
	mw_store_close(reader);
	whole[whole_size / 2] ^= 1;
	rig_save(bad, whole, whole_size);
	whole[whole_size / 2] ^= 1;
	rig_good(mw_store_open(bad, &reader));
	rig_good(mw_store_read(reader, &nothing, &read));
	assert_true(read.cut);
	mw_store_close(reader);
}

static struct mw_error *refuse(void *context, uint32_t process, const struct mw_stored_sample *sample)
{
	int *calls = context;

	(void)process, (void)sample;
	++*calls;
	return mw_error_create(MW_ERROR_GONE, 0, "enough");
}

static void test_visitor_ends_it(void **state)
{
	int calls = 0;
	const struct mw_store_visitor visitor = {.context = &calls, .sample = refuse};
	struct mw_store_state read = {.why = "untouched"};
	struct mw_store_reader *reader;
	struct mw_error *err;

	(void)state;
	rig_good(mw_store_open(small, &reader));
	err = mw_store_read(reader, &visitor, &read);
	assert_non_null(err);
	assert_string_equal(mw_error_text(err), "enough");
	assert_string_equal(read.why, "untouched");
	assert_int_equal(calls, 1);
	mw_error_destroy(err);
	mw_store_close(reader);
	mw_store_close(NULL);
}

UNIT_GROUP(bad)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_every_bit_flipped),
		cmocka_unit_test(test_more_behind_the_end),
		cmocka_unit_test(test_chunks_missing_and_repeated),
		cmocka_unit_test(test_damage_is_told),
		cmocka_unit_test(test_damage_in_what_is_skipped),
		cmocka_unit_test(test_visitor_ends_it),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

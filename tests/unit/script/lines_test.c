// SPDX-License-Identifier: MIT
/* lines_test.c: tables of lines as CPython's compilers have made them of one function, and any bytes. */
#include "script/python.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* From that byte of the code on, that line (0: none); the last one says where the code ends. */
struct run {
	uint64_t at;
	uint32_t line;
};

/*
 * def f(a,
 *       b):
 *     x = a
 *
 *     if b:
 *         y = [
 *             a,
 *             b]
 *     else:
 *         y = (x +
 *   b)
 *     for i in y:
 *         try:
 *             g(i)
 *         except E as e:
 *             pass
 *     return y
 */
static const uint8_t of_3_9[] = {
	0x00, 0x02, 0x04, 0x02, 0x04, 0x02, 0x02, 0x01, 0x02, 0xfe, 0x06, 0x04, 0x02, 0x01,
	0x02, 0xff, 0x04, 0x02, 0x08, 0x01, 0x02, 0x01, 0x0c, 0x01, 0x0e, 0x01, 0x18, 0x01,
};
static const struct run runs_of_3_9[] = {{0, 3},   {4, 5},   {8, 7},   {10, 8},  {12, 6},  {18, 10}, {20, 11}, {22, 10},
					 {26, 12}, {34, 13}, {36, 14}, {48, 15}, {62, 16}, {86, 17}, {90, 0}};

static const uint8_t of_3_10[] = {
	0x04, 0x02, 0x04, 0x02, 0x02, 0x02, 0x02, 0x01, 0x06, 0xfe, 0x02, 0x04, 0x02, 0x01, 0x04, 0xff,
	0x08, 0x02, 0x02, 0x01, 0x0c, 0x01, 0x0e, 0x01, 0x0c, 0x01, 0x08, 0x80, 0x02, 0xff, 0x04, 0x02,
};
static const struct run runs_of_3_10[] = {{0, 3},   {4, 5},   {8, 7},   {10, 8},  {12, 6},  {18, 10},
					  {20, 11}, {22, 10}, {26, 12}, {34, 13}, {36, 14}, {48, 15},
					  {62, 16}, {74, 0},  {82, 15}, {84, 17}, {88, 0}};

static const uint8_t of_3_11[] = {
	0x80, 0x00, 0xe0, 0x08, 0x09, 0x80, 0x41, 0xe0, 0x07, 0x08, 0xf0, 0x00, 0x06, 0x05, 0x05, 0xe0, 0x0c, 0x0d,
	0xd8, 0x0c, 0x0d, 0xf0, 0x05, 0x02, 0x0d, 0x0f, 0x88, 0x01, 0x88, 0x01, 0xf0, 0x08, 0x00, 0x0e, 0x0f, 0xd8,
	0x02, 0x03, 0xf1, 0x03, 0x01, 0x0e, 0x04, 0x88, 0x01, 0xe0, 0x0d, 0x0e, 0xf0, 0x00, 0x04, 0x05, 0x11, 0xf0,
	0x00, 0x04, 0x05, 0x11, 0x88, 0x01, 0xf0, 0x02, 0x03, 0x09, 0x11, 0xdd, 0x0c, 0x0d, 0x88, 0x61, 0x89, 0x44,
	0x8c, 0x44, 0x88, 0x44, 0x88, 0x44, 0xf8, 0xdd, 0x0f, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x11, 0xf0, 0x00, 0x01,
	0x09, 0x11, 0xf0, 0x00, 0x01, 0x09, 0x11, 0xd8, 0x0c, 0x10, 0x88, 0x44, 0x88, 0x44, 0x88, 0x44, 0x88, 0x44,
	0xf8, 0xf8, 0xf8, 0xf8, 0xf0, 0x03, 0x01, 0x09, 0x11, 0xf8, 0xf8, 0xf8, 0xe0, 0x0b, 0x0c, 0x80, 0x48,
};
static const struct run runs_of_3_11[] = {{0, 1},   {2, 3},   {6, 5},    {10, 7},  {12, 8},   {14, 6}, {20, 10},
					  {22, 11}, {24, 10}, {30, 12},  {38, 13}, {40, 14},  {72, 0}, {74, 15},
					  {92, 16}, {102, 0}, {110, 15}, {112, 0}, {118, 17}, {122, 0}};

static const uint8_t of_3_13[] = {
	0x80, 0x00, 0xe0, 0x08, 0x09, 0x80, 0x41, 0xe6, 0x07, 0x08, 0xe0, 0x0c, 0x0d, 0xd8, 0x0c, 0x0d, 0xf0, 0x05,
	0x02, 0x0d, 0x0f, 0x89, 0x01, 0xf0, 0x08, 0x00, 0x0e, 0x0f, 0xd8, 0x02, 0x03, 0xf1, 0x03, 0x01, 0x0e, 0x04,
	0x88, 0x01, 0xe3, 0x0d, 0x0e, 0x88, 0x01, 0xf0, 0x02, 0x03, 0x09, 0x11, 0xdc, 0x0c, 0x0d, 0x88, 0x61, 0x8e,
	0x44, 0xf1, 0x05, 0x00, 0x0e, 0x0f, 0xf0, 0x0a, 0x00, 0x0c, 0x0d, 0x80, 0x48, 0xf8, 0xf4, 0x05, 0x00, 0x10,
	0x11, 0xf3, 0x00, 0x01, 0x09, 0x11, 0xdd, 0x0c, 0x10, 0xfb, 0xf0, 0x03, 0x01, 0x09, 0x11, 0xfa,
};
static const struct run runs_of_3_13[] = {{0, 1},   {2, 3},   {6, 5},    {20, 7},  {22, 8},   {24, 6},  {30, 10},
					  {32, 11}, {34, 10}, {40, 12},  {50, 13}, {52, 14},  {78, 12}, {82, 17},
					  {86, 0},  {88, 15}, {106, 16}, {118, 0}, {126, 15}, {128, 0}, {134, 0}};

static void check(enum python_lines kind, const uint8_t *table, size_t size, const struct run *runs, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++)
		for (uint64_t at = runs[i].at; at < runs[i + 1].at; at++) {
			assert_int_equal(python_line(kind, table, size, 1, at), runs[i].line);
			if (runs[i].line)
				assert_int_equal(python_line(kind, table, size, 1001, at), runs[i].line + 1000);
		}
}

#define CHECK(kind, name) check(kind, name, sizeof(name), runs_##name, sizeof(runs_##name) / sizeof(runs_##name[0]))

static void test_compiled(void **state)
{
	(void)state;
	CHECK(PYTHON_LNOTAB, of_3_9);
	CHECK(PYTHON_LINETABLE, of_3_10);
	CHECK(PYTHON_LOCATIONS, of_3_11);
	CHECK(PYTHON_LOCATIONS, of_3_13);
}

/* Beyond the table there is no line; the oldest kind does not know where the code ends. */
static void test_ends(void **state)
{
	(void)state;
	assert_int_equal(python_line(PYTHON_LINETABLE, of_3_10, sizeof(of_3_10), 1, 100000), 0);
	assert_int_equal(python_line(PYTHON_LOCATIONS, of_3_11, sizeof(of_3_11), 1, 100000), 0);
	assert_int_equal(python_line(PYTHON_LNOTAB, of_3_9, sizeof(of_3_9), 1, 100000), 17);
	assert_int_equal(python_line(PYTHON_LNOTAB, NULL, 0, 5, 0), 5);
	assert_int_equal(python_line(PYTHON_LINETABLE, NULL, 0, 5, 0), 0);
	assert_int_equal(python_line(PYTHON_LOCATIONS, NULL, 0, 5, 0), 0);
	/* An entry that a byte of no entry stands for, and a number that goes on beyond the end. */
	assert_int_equal(python_line(PYTHON_LOCATIONS, (const uint8_t[]){0x00}, 1, 5, 0), 0);
	assert_int_equal(python_line(PYTHON_LOCATIONS, (const uint8_t[]){0xe8, 0x7f}, 2, 5, 0), (uint32_t)(5 - 31));
}

/* Nothing is read that is not the table's: each is a block of its own, which a sanitizer knows the end of. */
static void test_any_bytes(void **state)
{
	uint64_t x = 88172645463325252u;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		size_t size = i % 40;
		uint8_t *table = malloc(size ? size : 1);

		assert_non_null(table);
		for (size_t j = 0; j < size; j++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			table[j] = (uint8_t)(x >> 20);
		}
		for (unsigned kind = PYTHON_LNOTAB; kind <= PYTHON_LOCATIONS; kind++)
			(void)python_line(kind, table, size, (uint32_t)x, x >> 40 & 255);
		free(table);
	}
}

UNIT_GROUP(lines)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

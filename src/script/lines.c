// SPDX-License-Identifier: MIT
/* lines.c: CPython's tables of lines (python.h). A table that ends amid an entry has no more. */
#include "script/python.h"

/* Pairs of how many bytes of code, and how many lines further. */
static uint32_t by_lnotab(const uint8_t *table, size_t size, uint32_t line, uint64_t at)
{
	uint64_t code = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		code += table[i];
		if (code > at)
			break;
		line = (uint32_t)((int64_t)line + (int8_t)table[i + 1]);
	}
	return line;
}

/* The same, but that a pair's line is that of the bytes it counts; -128: they have none. */
static uint32_t by_linetable(const uint8_t *table, size_t size, uint32_t line, uint64_t at)
{
	uint64_t code = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		if (delta != INT8_MIN)
			line = (uint32_t)((int64_t)line + delta);
		code += table[i];
		if (code > at)
			return delta == INT8_MIN ? 0 : line;
	}
	return 0;
}

/* Six bits a byte, the least first; bit 6: more follow. */
static uint64_t take_varint(const uint8_t *table, size_t size, size_t *i)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		if (*i >= size || shift > 30)
			return value;
		byte = table[(*i)++];
		value |= (uint64_t)(byte & 0x3f) << shift;
		shift += 6;
	} while (byte & 0x40);
	return value;
}

/* The sign is the lowest bit. */
static uint32_t take_signed(const uint8_t *table, size_t size, size_t *i)
{
	uint64_t value = take_varint(table, size, i);

	return (uint32_t)(value & 1 ? 0 - (value >> 1) : value >> 1);
}

enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };

static uint32_t by_locations(const uint8_t *table, size_t size, uint32_t line, uint64_t at)
{
	uint64_t code = 0;

	for (size_t i = 0; i < size;) {
		uint8_t first = table[i++];
		unsigned kind = first >> 3 & 15;

		/* Each entry begins with such a byte, and none of its others is one. */
		if (!(first & 0x80))
			return 0;
		if (kind >= ONE_LINE && kind < NO_COLUMNS)
			line += kind - ONE_LINE;
		else if (kind == NO_COLUMNS || kind == LONG)
			line += take_signed(table, size, &i);
		code += ((first & 7) + UINT64_C(1)) * 2;
		if (code > at)
			return kind == NO_LOCATION ? 0 : line;
		while (i < size && !(table[i] & 0x80))
			i++;
	}
	return 0;
}

uint32_t python_line(enum python_lines kind, const uint8_t *table, size_t size, uint32_t first_line, uint64_t at)
{
	switch (kind) {
	case PYTHON_LNOTAB:
		return by_lnotab(table, size, first_line, at);
	case PYTHON_LINETABLE:
		return by_linetable(table, size, first_line, at);
	default:
		return by_locations(table, size, first_line, at);
	}
}

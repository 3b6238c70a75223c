// SPDX-License-Identifier: MIT
/* v8_lines.c: lines of JavaScript, from tables of source positions and from the source (v8_parts.h). */
#include "script/v8_parts.h"

#include "base/vector.h"
#include "proc/peek.h"
#include "symbol/frames.h"

#include <stdlib.h>
#include <string.h>

#define SOURCE_MAX  (64u << 20) /* characters of a source that are looked through */
#define LINES_MAX   (64u << 20) /* bytes of ends of lines that are kept, of all scripts */
#define TABLE_MAX   (4u << 20)  /* bytes of a table of positions */
#define SCRIPT_LINE 24u         /* in a Script: the line that it begins with, from 0, in all versions */
#define SCRIPT_ID   64u         /* … its number, or the one beside that */

/* --- ends of lines ------------------------------------------------------------------------------------------------ */

struct scan {
	struct v8_lines *lines;
	size_t capacity;
	uint32_t at;
	bool after_return, failed;
};

static bool scan(void *context, const void *chars, size_t count, bool one_byte)
{
	struct scan *scan = context;

	for (size_t i = 0; i < count; i++, scan->at++) {
		uint32_t c = one_byte ? ((const uint8_t *)chars)[i] : ((const uint16_t *)chars)[i];

		/* The two of "\r\n" are one end, at the second. */
		if (c == '\n' && scan->after_return) {
			scan->lines->ends[scan->lines->count - 1] = scan->at;
		} else if (c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029) {
			if (!MW_VECTOR_ROOM(scan->lines->ends, scan->lines->count, scan->capacity)) {
				scan->failed = true;
				return false;
			}
			scan->lines->ends[scan->lines->count++] = scan->at;
		}
		scan->after_return = c == '\r';
	}
	return true;
}

void v8_lines_deinit(struct mw_v8 *v8)
{
	void *value;

	for (size_t i = 0; mw_map_next(&v8->lines, &i, &value);) {
		struct v8_lines *lines = value;

		free(lines->ends);
		free(lines);
	}
	mw_map_deinit(&v8->lines);
	v8->line_bytes = 0;
}

static struct v8_lines *read_lines(struct mw_v8 *v8, pid_t tid, mw_addr source)
{
	struct v8_lines *lines = calloc(1, sizeof(*lines));
	struct scan context = {.lines = lines};

	if (!lines)
		return NULL;
	if (v8_each_char(v8, tid, source, SOURCE_MAX, scan, &context) && !context.failed)
		return lines;
	free(lines->ends);
	free(lines);
	return NULL;
}

/* NULL: they can't be known. Good until the next call. */
static const struct v8_lines *lines_of(struct mw_v8 *v8, pid_t tid, mw_addr script)
{
	uint64_t source, id, key;
	struct v8_lines *lines;

	if (!v8_field(tid, script, (uint32_t)v8->constants[V8_SCRIPT_SOURCE], &source) ||
	    !v8_field(tid, script, SCRIPT_ID, &id))
		return NULL;
	key = mw_script_mix(mw_script_mix(mw_script_mix(0, script), source), id);
	lines = mw_map_get(&v8->lines, key);
	if (lines)
		return lines;
	lines = read_lines(v8, tid, source);
	if (!lines)
		return NULL;
	if (v8->line_bytes > LINES_MAX)
		v8_lines_deinit(v8);
	if (!mw_error_none(mw_map_set(&v8->lines, key, lines))) {
		free(lines->ends);
		free(lines);
		return NULL;
	}
	v8->line_bytes += sizeof(*lines) + lines->count * sizeof(*lines->ends);
	return lines;
}

/* The line, from 1, of a place in a script. */
static uint32_t line_at(struct mw_v8 *v8, pid_t tid, mw_addr script, uint32_t position)
{
	const struct v8_lines *lines = lines_of(v8, tid, script);
	size_t low = 0, high = lines ? lines->count : 0;
	uint32_t first;
	uint64_t word;

	if (!lines || !v8_field(tid, script, SCRIPT_LINE, &word) || !v8_number(word, &first))
		return 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines->ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return first + (uint32_t)low + 1;
}

/* --- tables of positions ------------------------------------------------------------------------------------------ */

/* The sign is the lowest bit. */
static int64_t take_number(struct mw_cursor *table)
{
	uint64_t bits = mw_cursor_uleb(table);

	return (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
}

bool v8_find_position(const uint8_t *bytes, uint32_t size, uint32_t offset, uint64_t *raw, uint32_t *at)
{
	struct mw_cursor table = {.at = bytes, .left = size, .ok = true};
	int64_t place = 0, by;
	bool found = false;

	*raw = 0;
	while (table.left) {
		/* Of what is no statement the complement. */
		by = take_number(&table);
		if (!table.ok)
			return false;
		place = (int64_t)((uint64_t)place + (uint64_t)(by >= 0 ? by : -(by + 1)));
		if (place < 0 || place > (int64_t)offset)
			break;
		by = take_number(&table);
		if (!table.ok)
			return false;
		*raw += (uint64_t)by;
		*at = (uint32_t)place;
		found = true;
	}
	return found;
}

uint8_t *v8_bytes(const struct mw_v8 *v8, pid_t tid, mw_addr array, uint32_t *size)
{
	uint64_t length;
	uint8_t *bytes;

	if ((!v8_is(v8, tid, array, V8_TYPE_BYTES) && !v8_is(v8, tid, array, V8_TYPE_TRUSTED_BYTES)) ||
	    !v8_field(tid, array, (uint32_t)v8->constants[V8_ARRAY_LENGTH], &length) || !v8_number(length, size) ||
	    *size > TABLE_MAX)
		return NULL;
	bytes = malloc(*size + 1);
	if (bytes && mw_peek(tid, array - 1 + (uint32_t)v8->constants[V8_ARRAY_DATA], bytes, *size))
		return bytes;
	free(bytes);
	return NULL;
}

uint32_t v8_line_of(struct mw_v8 *v8, pid_t tid, mw_addr script, const struct v8_place *at)
{
	uint32_t size, found, line = 0;
	uint64_t table, raw;
	uint8_t *bytes;

	if (at->in_source)
		return line_at(v8, tid, script, at->offset);
	/* Where V8 has not kept positions there is no table. */
	if (!v8_is(v8, tid, at->bytecode, V8_TYPE_BYTECODE) ||
	    !v8_field(tid, at->bytecode, v8->version->positions, &table))
		return 0;
	bytes = v8_bytes(v8, tid, table, &size);
	if (bytes && v8_find_position(bytes, size, at->offset, &raw, &found) && V8_POSITION_AT(raw))
		line = line_at(v8, tid, script, V8_POSITION_AT(raw) - 1);
	free(bytes);
	return line;
}

// SPDX-License-Identifier: MIT
/* v8_objects.c: reading V8's objects (v8_parts.h). */
#include "script/v8_parts.h"

#include "proc/peek.h"

#include <string.h>

#define PIECES   4096u  /* parts that a string is made of */
#define DEPTH    64u    /* … and how deep in each other */
#define AT_ONCE  16384u /* bytes that are read */
#define FIRST_NO 0x80u  /* instance types from here on are no strings' */

/* In an instance type of a string. */
enum { SEQUENTIAL, CONS, EXTERNAL, SLICED, THIN = 5 };
#define REPRESENTATION 7u
#define ONE_BYTE       8u
#define UNCACHED       16u

bool v8_field(pid_t tid, mw_addr object, uint32_t field, uint64_t *word)
{
	return object % 8 == 1 && mw_peek(tid, object - 1 + field, word, sizeof(*word));
}

bool v8_type(const struct mw_v8 *v8, pid_t tid, mw_addr object, uint16_t *type)
{
	uint64_t map;

	return v8_field(tid, object, 0, &map) && map % 8 == 1 &&
	       mw_peek(tid, map - 1 + (uint32_t)v8->constants[V8_MAP_TYPE], type, sizeof(*type));
}

bool v8_is(const struct mw_v8 *v8, pid_t tid, mw_addr object, enum v8_constant type)
{
	uint16_t found;

	return v8_type(v8, tid, object, &found) && found == v8->constants[type];
}

bool v8_number(uint64_t word, uint32_t *number)
{
	*number = (uint32_t)(word >> 32);
	return !(word & UINT32_MAX) && *number <= INT32_MAX;
}

bool v8_element(const struct mw_v8 *v8, pid_t tid, mw_addr array, uint32_t index, uint64_t *word)
{
	uint64_t length;
	uint32_t count;

	return v8_field(tid, array, (uint32_t)v8->constants[V8_ARRAY_LENGTH], &length) && v8_number(length, &count) &&
	       index < count &&
	       mw_peek(tid, array - 1 + (uint32_t)v8->constants[V8_ARRAY_DATA] + (uint64_t)index * 8, word,
		       sizeof(*word));
}

/* Part of a string. */
struct part {
	mw_addr string;
	uint32_t from, count;
};

struct reader {
	const struct mw_v8 *v8;
	pid_t tid;
	struct part parts[DEPTH]; /* still to be read, the next one last */
	unsigned part_count;
	v8_visit *visit;
	void *context;
};

static bool push(struct reader *reader, mw_addr string, uint32_t from, uint32_t count)
{
	if (!count)
		return true;
	if (reader->part_count == DEPTH)
		return false;
	reader->parts[reader->part_count++] = (struct part){string, from, count};
	return true;
}

/* False: it can't be read. `*ended`: the visitor wants no more. */
static bool read_chars(struct reader *reader, mw_addr at, uint32_t count, bool one_byte, bool *ended)
{
	uint8_t bytes[AT_ONCE];
	uint64_t size = one_byte ? count : (uint64_t)count * 2;

	while (size && !*ended) {
		size_t part = size < AT_ONCE ? size : AT_ONCE;

		if (!mw_peek(reader->tid, at, bytes, part))
			return false;
		*ended = !reader->visit(reader->context, bytes, one_byte ? part : part / 2, one_byte);
		at += part;
		size -= part;
	}
	return true;
}

static bool string_length(const struct mw_v8 *v8, pid_t tid, mw_addr string, uint16_t *type, uint32_t *length)
{
	return v8_type(v8, tid, string, type) && *type < FIRST_NO &&
	       mw_peek(tid, string - 1 + (uint32_t)v8->constants[V8_STRING_LENGTH], length, sizeof(*length)) &&
	       *length <= INT32_MAX;
}

static bool read_cons(struct reader *reader, const struct part *part)
{
	const int32_t *constants = reader->v8->constants;
	mw_addr first, second;
	uint32_t length, before;
	uint16_t type;

	if (!v8_field(reader->tid, part->string, (uint32_t)constants[V8_CONS_FIRST], &first) ||
	    !v8_field(reader->tid, part->string, (uint32_t)constants[V8_CONS_SECOND], &second) ||
	    !string_length(reader->v8, reader->tid, first, &type, &length))
		return false;
	before = part->from < length ? length - part->from : 0;
	before = before < part->count ? before : part->count;
	return push(reader, second, part->from > length ? part->from - length : 0, part->count - before) &&
	       push(reader, first, part->from, before);
}

static bool read_part(struct reader *reader, const struct part *part, bool *ended)
{
	const int32_t *constants = reader->v8->constants;
	uint32_t length, offset;
	uint16_t type;
	uint64_t word;
	bool one_byte;
	mw_addr at;

	if (!string_length(reader->v8, reader->tid, part->string, &type, &length) || part->from > length ||
	    part->count > length - part->from)
		return false;
	one_byte = type & ONE_BYTE;
	switch (type & REPRESENTATION) {
	case SEQUENTIAL:
		at = part->string - 1 + (uint32_t)constants[one_byte ? V8_ONE_BYTE_CHARS : V8_TWO_BYTE_CHARS];
		break;
	case EXTERNAL:
		/* Its characters are elsewhere; where, stands behind the resource. */
		if (type & UNCACHED ||
		    !v8_field(reader->tid, part->string, (uint32_t)constants[V8_EXTERNAL_RESOURCE] + 8, &at))
			return false;
		break;
	case CONS:
		return read_cons(reader, part);
	case SLICED:
		return v8_field(reader->tid, part->string, (uint32_t)constants[V8_SLICED_OFFSET], &word) &&
		       v8_number(word, &offset) && offset <= INT32_MAX - part->from &&
		       v8_field(reader->tid, part->string, (uint32_t)constants[V8_SLICED_PARENT], &word) &&
		       push(reader, word, part->from + offset, part->count);
	case THIN:
		return v8_field(reader->tid, part->string, (uint32_t)constants[V8_THIN_ACTUAL], &word) &&
		       push(reader, word, part->from, part->count);
	default:
		return false;
	}
	return read_chars(reader, at + (uint64_t)part->from * (one_byte ? 1 : 2), part->count, one_byte, ended);
}

bool v8_each_char(const struct mw_v8 *v8, pid_t tid, mw_addr string, uint32_t most, v8_visit *visit, void *context)
{
	struct reader reader = {.v8 = v8, .tid = tid, .visit = visit, .context = context};
	uint32_t length;
	uint16_t type;
	bool ended = false;

	if (!string_length(v8, tid, string, &type, &length) || !push(&reader, string, 0, length < most ? length : most))
		return false;
	for (unsigned i = 0; reader.part_count && !ended; i++) {
		const struct part part = reader.parts[--reader.part_count];

		if (i == PIECES || !read_part(&reader, &part, &ended))
			return false;
	}
	return true;
}

struct text {
	char *out;
	size_t size, used;
	uint32_t high; /* the first half of a character */
};

/* False: there is no room. */
static bool put(struct text *text, uint32_t c)
{
	unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};

	if (text->size - text->used < more + 2)
		return false;
	text->out[text->used++] = (char)(first[more] | c >> 6 * more);
	while (more--)
		text->out[text->used++] = (char)(0x80 | (c >> 6 * more & 0x3f));
	return true;
}

static bool put_all(void *context, const void *chars, size_t count, bool one_byte)
{
	struct text *text = context;

	for (size_t i = 0; i < count; i++) {
		uint32_t c = one_byte ? ((const uint8_t *)chars)[i] : ((const uint16_t *)chars)[i];

		if (c >= 0xd800 && c < 0xdc00) {
			text->high = c;
			continue;
		}
		if (c >= 0xdc00 && c < 0xe000)
			c = text->high ? 0x10000 + ((text->high - 0xd800) << 10) + (c - 0xdc00) : 0xfffd;
		text->high = 0;
		if (!put(text, c < ' ' || c == 0x7f ? '?' : c))
			return false;
	}
	return true;
}

bool v8_text(const struct mw_v8 *v8, pid_t tid, mw_addr string, char *out, size_t size)
{
	struct text text = {.out = out, .size = size};

	if (!v8_each_char(v8, tid, string, (uint32_t)size, put_all, &text))
		return false;
	out[text.used] = '\0';
	return true;
}

// SPDX-License-Identifier: MIT
/* line.c: lines of text, see line.h. */
#include "output/line.h"

#include "output/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "…"

void mw_line_deinit(struct mw_line *line)
{
	free(line->data);
	*line = (struct mw_line){0};
}

void mw_line_clear(struct mw_line *line)
{
	line->length = 0;
	if (line->data)
		line->data[0] = '\0';
}

static bool reserve(struct mw_line *line, size_t more)
{
	size_t needed = line->length + more + 1;
	char *data;

	if (needed <= line->capacity)
		return true;
	needed = needed < 256 ? 256 : needed * 2;
	data = realloc(line->data, needed);
	if (!data) {
		line->failed = true;
		return false;
	}
	line->data = data;
	line->capacity = needed;
	return true;
}

static void append(struct mw_line *line, const char *bytes, size_t size)
{
	if (!reserve(line, size))
		return;
	memcpy(line->data + line->length, bytes, size);
	line->length += size;
	line->data[line->length] = '\0';
}

void mw_line_printf(struct mw_line *line, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0 || !reserve(line, (size_t)size))
		return;
	va_start(args, format);
	vsnprintf(line->data + line->length, (size_t)size + 1, format, args);
	va_end(args);
	line->length += (size_t)size;
}

void mw_line_name(struct mw_line *line, const char *name)
{
	uint32_t character;
	size_t taken;

	if (!name)
		name = "?";
	for (; (taken = mw_utf8_decode(name, &character)) != 0; name += taken) {
		char encoded[4];
		size_t size = mw_utf8_encode(character, encoded);

		if (mw_utf8_is_printable(character))
			append(line, encoded, size);
		else
			mw_line_printf(line, character < 0x100 ? "\\x%02x" : "\\u%04x", character);
	}
}

size_t mw_line_columns(const struct mw_line *line, size_t from)
{
	return from < line->length ? mw_utf8_columns(line->data + from, line->length - from) : 0;
}

/* The byte at which column `column` begins, counted from byte `from`. */
static size_t byte_of_column(const struct mw_line *line, size_t from, size_t column)
{
	size_t at = from;

	while (at < line->length) {
		if ((line->data[at] & 0xc0) != 0x80 && column-- == 0)
			break;
		at++;
	}
	return at;
}

void mw_line_elide(struct mw_line *line, size_t from, size_t columns)
{
	size_t now = mw_line_columns(line, from);
	size_t head, tail, rest;

	if (now <= columns || !reserve(line, sizeof(ELLIPSIS)))
		return;
	if (columns < 1)
		columns = 1;
	/* The end of a name tells more than its beginning: namespaces come first. */
	head = byte_of_column(line, from, (columns - 1) / 2);
	tail = byte_of_column(line, from, now - (columns - 1 - (columns - 1) / 2));
	rest = line->length - tail;
	memmove(line->data + head + strlen(ELLIPSIS), line->data + tail, rest + 1);
	memcpy(line->data + head, ELLIPSIS, strlen(ELLIPSIS));
	line->length = head + strlen(ELLIPSIS) + rest;
}

void mw_line_cut(struct mw_line *line, size_t from)
{
	if (from >= line->length)
		return;
	line->length = from;
	line->data[from] = '\0';
}

// SPDX-License-Identifier: MIT
/* line.c: decoding that cannot be led astray, lines, and numbers as people read them (line.h). */
#include "output/line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t mw_utf8_decode(const char *text, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xc2 ? 0 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	uint32_t value;

	if (!bytes[0])
		return 0;
	if (length == 1) {
		*character = bytes[0];
		return 1;
	}
	*character = MW_UTF8_REPLACEMENT;
	if (!length || bytes[0] > 0xf4)
		return 1;
	value = bytes[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		/* The NUL at the end is no continuation byte, so nothing behind it is read. */
		if ((bytes[i] & 0xc0) != 0x80)
			return 1;
		value = value << 6 | (bytes[i] & 0x3f);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 1;
	*character = value;
	return length;
}

size_t mw_utf8_encode(uint32_t character, char out[4])
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	for (size_t i = length - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (character & 0x3f));
		character >>= 6;
	}
	out[0] = (char)(lead[length] | character);
	return length;
}

bool mw_utf8_is_printable(uint32_t character)
{
	/* C0 and C1 controls and DEL drive terminals. */
	if (character < 0x20 || (character >= 0x7f && character < 0xa0))
		return false;
	/* Marks and overrides of direction, line and paragraph separators make a line read as another. */
	if (character >= 0x200b && character <= 0x200f)
		return false;
	if (character >= 0x2028 && character <= 0x202e)
		return false;
	if (character >= 0x2060 && character <= 0x206f)
		return false;
	return character != 0xfeff && character != 0x061c;
}

/* --- lines -------------------------------------------------------------------------------------------------- */

#define ELLIPSIS "…"

void mw_line_deinit(struct mw_line *line)
{
	free(line->data);
	*line = (struct mw_line){0};
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

/* --- numbers, without locale: a report reads the same everywhere -------------------------------------------- */

struct mw_shown mw_show_count(uint64_t count)
{
	struct mw_shown shown = {0};
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count);
	size_t at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			shown.text[at++] = ',';
		shown.text[at++] = digits[i];
	}
	return shown;
}

struct mw_shown mw_show_size(uint64_t bytes)
{
	static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	struct mw_shown shown = {0};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(shown.text, sizeof(shown.text), "%u B", (unsigned)bytes);
		return shown;
	}
	/* 1023.95 would be shown as 1024.0. */
	for (; value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	snprintf(shown.text, sizeof(shown.text), "%.1f %s", value, units[unit]);
	return shown;
}

struct mw_shown mw_show_change(uint64_t from, uint64_t to)
{
	struct mw_shown size = mw_show_size(to > from ? to - from : from - to);
	struct mw_shown shown = {0};

	snprintf(shown.text, sizeof(shown.text), "%s%.40s", to > from ? "+" : to < from ? "-" : "", size.text);
	return shown;
}

struct mw_shown mw_show_seconds(double seconds)
{
	struct mw_shown shown = {0};
	uint64_t whole;

	if (seconds < 0.9995e-6)
		snprintf(shown.text, sizeof(shown.text), "%.0f ns", seconds * 1e9);
	else if (seconds < 0.99995e-3)
		snprintf(shown.text, sizeof(shown.text), "%.1f µs", seconds * 1e6);
	else if (seconds < 0.99995)
		snprintf(shown.text, sizeof(shown.text), "%.1f ms", seconds * 1e3);
	else if (seconds < 119.95)
		snprintf(shown.text, sizeof(shown.text), "%.1f s", seconds);
	else if (whole = (uint64_t)(seconds + 0.5), whole < 7200)
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
	else
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 " h %" PRIu64 " min", whole / 3600,
			 whole % 3600 / 60);
	return shown;
}

struct mw_shown mw_show_percent(double part, double whole)
{
	struct mw_shown shown = {0};

	if (part > 0 && part / whole < 0.0005)
		snprintf(shown.text, sizeof(shown.text), "< 0.1 %%");
	else if (whole > 0)
		snprintf(shown.text, sizeof(shown.text), "%.1f %%", part / whole * 100);
	return shown;
}

/* --- words for a shell --------------------------------------------------------------------------------- */

#define SAFE "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_"

static bool is_printable(const char *text)
{
	uint32_t character;

	for (size_t taken; (taken = mw_utf8_decode(text, &character)) != 0; text += taken)
		if (!mw_utf8_is_printable(character) || character == MW_UTF8_REPLACEMENT)
			return false;
	return true;
}

/* Bytes that are no printable ASCII become \ooo: always three digits, so that none that follows is taken for one. */
static void put_escaped(FILE *out, const char *text)
{
	fputs("$'", out);
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte >= 0x7f)
			fprintf(out, "\\%03o", byte);
		else
			fprintf(out, byte == '\\' || byte == '\'' ? "\\%c" : "%c", byte);
	}
	fputc('\'', out);
}

static void put_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	fputc('\'', out);
}

char *mw_shell_word(const char *text)
{
	char *word = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&word, &size);
	bool failed;

	if (!out)
		return NULL;
	if (*text && !text[strspn(text, SAFE)])
		fputs(text, out);
	else if (is_printable(text))
		put_quoted(out, text);
	else
		put_escaped(out, text);
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(word);
		return NULL;
	}
	return word;
}

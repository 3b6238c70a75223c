// SPDX-License-Identifier: MIT
/* paragraph.c: see paragraph.h. */
#include "doctor/paragraph.h"

#include "output/line.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* `first`: of its line, which no space comes before. */
static void put_word(struct mw_paragraph *paragraph, const char *word, bool first)
{
	struct mw_line line = {0};
	size_t columns;

	mw_line_name(&line, word);
	columns = mw_line_columns(&line, 0);
	if (!first && paragraph->column + 1 + columns + strlen(paragraph->end) > paragraph->width) {
		fprintf(paragraph->out, "%s\n%*s", paragraph->end, (int)paragraph->indent, "");
		paragraph->column = paragraph->indent;
		first = true;
	}
	fprintf(paragraph->out, "%s%s", first ? "" : " ", line.data ? line.data : "");
	paragraph->column += (unsigned)columns + !first;
	mw_line_deinit(&line);
}

void mw_paragraph_word(struct mw_paragraph *paragraph, const char *word)
{
	put_word(paragraph, word, paragraph->column <= paragraph->indent);
}

void mw_paragraph_text(struct mw_paragraph *paragraph, const char *text)
{
	char *copy = strdup(text), *state = NULL;

	for (char *word = copy ? strtok_r(copy, " ", &state) : NULL; word; word = strtok_r(NULL, " ", &state))
		mw_paragraph_word(paragraph, word);
	free(copy);
}

void mw_paragraph_vprintf(struct mw_paragraph *paragraph, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return;
	mw_paragraph_text(paragraph, text);
	free(text);
}

void mw_paragraph_printf(struct mw_paragraph *paragraph, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	mw_paragraph_vprintf(paragraph, format, args);
	va_end(args);
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

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

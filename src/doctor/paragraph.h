/* SPDX-License-Identifier: MIT */
/* paragraph.h: text for people, broken into lines; and words for a shell. */
#ifndef MW_DOCTOR_PARAGRAPH_H
#define MW_DOCTOR_PARAGRAPH_H

#include <stdarg.h>
#include <stdio.h>

struct mw_paragraph {
	FILE *out;
	unsigned width;  /* columns of a line; what has no space in it may be longer */
	unsigned indent; /* of all lines but the first */
	unsigned column; /* where the cursor is now */
	const char *end; /* of a line that goes on in the next: "" or " \\" */
};

/* Begin, with the cursor in column `at`. */
static inline void mw_paragraph_begin(struct mw_paragraph *paragraph, FILE *out, unsigned width, unsigned at,
				      unsigned indent)
{
	*paragraph = (struct mw_paragraph){.out = out, .width = width, .indent = indent, .column = at, .end = ""};
}
/* One word and a space before it where it is not the first of its line. It may come from a target: what is no printable
 * character is shown as \x1b. */
void mw_paragraph_word(struct mw_paragraph *paragraph, const char *word);
/* All words of a text, that are parted by spaces. */
void mw_paragraph_text(struct mw_paragraph *paragraph, const char *text);
/* … as printf makes it. */
void mw_paragraph_printf(struct mw_paragraph *paragraph, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mw_paragraph_vprintf(struct mw_paragraph *paragraph, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static inline void mw_paragraph_end(struct mw_paragraph *paragraph)
{
	fputc('\n', paragraph->out);
}

#endif

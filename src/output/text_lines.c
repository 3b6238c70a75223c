// SPDX-License-Identifier: MIT
/* text_lines.c: lines, paragraphs and headings of the text (text.h), and phrases that several of its parts have. */
#include "output/line.h"
#include "output/text.h"

#include <string.h>

#define RESET   "\033[0m"
#define HEADING "\033[1m"
#define ALARM   "\033[31m"

void mw_text_line(struct mw_text *text, enum mw_style style)
{
	const char *data = text->line.length ? text->line.data : "";

	if (!text->options->color || style == MW_STYLE_PLAIN)
		fprintf(text->stream, "%s\n", data);
	else
		fprintf(text->stream, "%s%s" RESET "\n", style == MW_STYLE_HEADING ? HEADING : ALARM, data);
	mw_line_cut(&text->line, 0);
}

void mw_text_heading(struct mw_text *text, const char *heading)
{
	fputc('\n', text->stream);
	mw_line_printf(&text->line, "%s", heading);
	if (text->options->width && mw_line_columns(&text->line, 0) > text->options->width)
		mw_text_paragraph(text, 2);
	else
		mw_text_line(text, MW_STYLE_HEADING);
}

/* Write a word from `column` on, broken where it reaches the width; gives the column after it. */
static size_t put_word(struct mw_text *text, const char *word, size_t size, size_t column, unsigned indent)
{
	for (size_t i = 0; i < size; i++) {
		bool begins = (word[i] & 0xc0) != 0x80;

		if (begins && text->options->width > indent && column >= text->options->width) {
			fprintf(text->stream, "\n%*s", (int)indent, "");
			column = indent;
		}
		column += begins;
		fputc(word[i], text->stream);
	}
	return column;
}

void mw_text_styled_paragraph(struct mw_text *text, unsigned indent, enum mw_style style)
{
	const char *at = text->line.length ? text->line.data : "";
	size_t width = text->options->width ? text->options->width : SIZE_MAX;
	size_t column = strspn(at, " ");
	bool begun = false, colored = text->options->color && style != MW_STYLE_PLAIN;

	if (colored)
		fputs(style == MW_STYLE_HEADING ? HEADING : ALARM, text->stream);
	fprintf(text->stream, "%*s", (int)column, "");
	for (at += column; *at; at += strspn(at, " ")) {
		size_t size = strcspn(at, " ");

		if (begun && column + 1 + mw_utf8_columns(at, size) > width) {
			fprintf(text->stream, "\n%*s", (int)indent, "");
			column = indent;
		} else if (begun) {
			fputc(' ', text->stream);
			column++;
		}
		column = put_word(text, at, size, column, indent);
		begun = true;
		at += size;
	}
	fputs(colored ? RESET "\n" : "\n", text->stream);
	mw_line_cut(&text->line, 0);
}

void mw_text_paragraph(struct mw_text *text, unsigned indent)
{
	mw_text_styled_paragraph(text, indent, MW_STYLE_PLAIN);
}

const char *mw_text_span(const struct mw_text *text)
{
	const struct mw_report *report = text->report;

	return report->window.from > 0 || report->window.to < report->window.seconds ? "interval" : "window";
}

bool mw_text_has_older(const struct mw_text *text)
{
	const struct mw_report *report = text->report;
	bool freed = false;

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		freed = freed || report->totals[kind].aofi.count;
	return !report->target.launched || report->window.from > 0 || freed;
}

const char *mw_text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* SPDX-License-Identifier: MIT */
/* text.h: the report as someone on call reads it. */
#ifndef MW_OUTPUT_TEXT_H
#define MW_OUTPUT_TEXT_H

#include "output/line.h"

#include <memwatch/output.h>

#define MW_TEXT_LEAST_WIDTH 60 /* a narrower terminal gets lines of so many columns */

struct mw_error *mw_text_write(const struct mw_report *const *reports, size_t count,
			       const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;

/* One report on its way out. */
struct mw_text {
	const struct mw_report *report;
	const struct mw_output_options *options;
	FILE *stream;
	struct mw_line line;        /* scratch */
	struct mw_amount impacting; /* heap and vm: what shares are shares of */
};

enum mw_style { MW_STYLE_PLAIN, MW_STYLE_HEADING, MW_STYLE_ALARM };
/* Write the scratch line as one line, and empty it. */
void mw_text_line(struct mw_text *text, enum mw_style style);
/* The same, wrapped at spaces where it is too wide. Continuation lines are indented. */
void mw_text_paragraph(struct mw_text *text, unsigned indent);
void mw_text_styled_paragraph(struct mw_text *text, unsigned indent, enum mw_style style);

/* An empty line and a heading. */
void mw_text_heading(struct mw_text *text, const char *heading);

/* What the figures are about: the "window", or an "interval" of it. */
const char *mw_text_span(const struct mw_text *text);
/* May there be blocks from before the interval? Not in a command that memwatch has launched, in its whole
 * window. */
bool mw_text_has_older(const struct mw_text *text);

/* Was anything allocated or freed? */
bool mw_text_any(const struct mw_report *report);

/* The part of a path behind its last slash. */
const char *mw_text_base_name(const char *path);

/* The parts of a report, each in its own file. Each writes nothing where there is nothing to say. */
void mw_text_header(struct mw_text *text);
void mw_text_answer(struct mw_text *text);   /* what leaks, in a line or some */
void mw_text_suspects(struct mw_text *text); /* why, with stacks */
/* One line of a suspect or a stack: what of it was only in flight. */
void mw_text_settled(struct mw_text *text, const struct mw_amount *settled_later);
void mw_text_totals(struct mw_text *text);
void mw_text_tables(struct mw_text *text); /* memory, the address space, modules */
/* What there is of the views, each with a heading of its own. Uses the report's stacks for frames. */
void mw_text_views(struct mw_text *text, const struct mw_views *views);
void mw_text_stacks(struct mw_text *text); /* impacting, then transient */
/* A function's name with its long template arguments left out. */
void mw_text_function(struct mw_line *line, const char *function);
/* "module!", or what stands for it before the function's name. */
void mw_text_module(struct mw_line *line, const struct mw_report_frame *frame);
void mw_text_frames(struct mw_text *text, const struct mw_report_stack *stack, size_t most);
/* What the figures leave out (text_missing.c): below the answer … */
void mw_text_rss(struct mw_text *text);
void mw_text_children(struct mw_text *text);
/* How many children were not watched, and the option that watches them. */
size_t mw_text_unwatched(const struct mw_report *report);
void mw_text_add_unwatched(struct mw_text *text);
/* … and among the limits. */
/* How these names are had; NULL: none are missing. */
const char *mw_text_nameless_hint(const struct mw_report_nameless *nameless);
void mw_text_nameless(struct mw_text *text);
void mw_text_runtimes(struct mw_text *text);
void mw_text_limits(struct mw_text *text); /* what the report can't know */

#endif

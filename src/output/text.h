/* SPDX-License-Identifier: MIT */
/* text.h: the report as someone on call reads it. */
#ifndef MW_OUTPUT_TEXT_H
#define MW_OUTPUT_TEXT_H

#include "output/line.h"

#include <memwatch/output.h>

#define MW_TEXT_LEAST_WIDTH 60 /* a narrower terminal gets lines of so many columns */

/* As UMDH does. */
struct mw_error *mw_text_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;

struct mw_error *mw_text_heap_diff_write(const struct mw_heap_diff *diff, const struct mw_output_options *options,
					 FILE *stream) MW_MUST_CHECK;
struct mw_error *mw_text_heap_write(const struct mw_heap_report *heap, const struct mw_output_options *options,
				    FILE *stream) MW_MUST_CHECK;

/* One report on its way out. */
struct mw_text {
	const struct mw_report *report;
	const struct mw_output_options *options;
	FILE *stream;
	struct mw_line line;        /* scratch */
	const char *heading;        /* of what may come: written before the next line */
	struct mw_amount impacting; /* heap and vm: what shares are shares of */
};

enum mw_style { MW_STYLE_PLAIN, MW_STYLE_HEADING, MW_STYLE_ALARM };
/* Write the scratch line as one line, and empty it. */
void mw_text_line(struct mw_text *text, enum mw_style style);
/* The same, wrapped at spaces where it is too wide. Continuation lines are indented. */
void mw_text_paragraph(struct mw_text *text, unsigned indent);
void mw_text_styled_paragraph(struct mw_text *text, unsigned indent, enum mw_style style);

/* printf() into the scratch line, behind what it holds, and write it as a line, or as a paragraph. */
#define MW_TEXT_ROW(text, ...)         (mw_line_printf(&(text)->line, __VA_ARGS__), mw_text_line(text, MW_STYLE_PLAIN))
#define MW_TEXT_SAY(text, indent, ...) (mw_line_printf(&(text)->line, __VA_ARGS__), mw_text_paragraph(text, indent))
/* Append a cell of so many columns, to the right in it. */
void mw_text_cell(struct mw_line *line, size_t columns, const char *cell);
/* Cut out of the middle of what stands from byte `from` on, so that the scratch line fits the width. */
void mw_text_fit(struct mw_text *text, size_t from);

/* An empty line and a heading: what the scratch line holds, and this. */
void mw_text_heading(struct mw_text *text, const char *heading);

/* What the figures are about: the "window", or an "interval" of it. */
const char *mw_text_span(const struct mw_text *text);
/* May there be blocks from before the interval? Not in a command that memwatch has launched, in its whole
 * window. */
bool mw_text_has_older(const struct mw_text *text);

/* Behind an estimate of bytes, or of blocks: its standard error, " ± 1.2 MiB". Nothing where it is exact. */
void mw_text_error(struct mw_line *line, bool sampled, double variance);
void mw_text_count_error(struct mw_line *line, bool sampled, double variance);

/* What blocks of a heap are alike in: "shop::Session, 40 bytes, arena 1"; class and arena NULL, size unknown: not that. */
void mw_text_heap_kind(struct mw_line *line, const char *class_name, uint64_t size, const char *arena);

/* Of heap and vm blocks, what was not freed. */
struct mw_amount mw_text_impacting(const struct mw_report *report);

/* The part of a path behind its last slash. */
const char *mw_text_base_name(const char *path);

/* The parts of a report. Each writes nothing where there is nothing to say. */
void mw_text_answer(struct mw_text *text);   /* what leaks, in a line or some, and by what else the process grew */
void mw_text_suspects(struct mw_text *text); /* why, with stacks */
void mw_text_suspect(struct mw_text *text, size_t number, const struct mw_report_suspect *suspect); /* … one of them */
/* What a suspect is called in a word: LOST, LEAK, GROWS, OPEN. */
const char *mw_text_suspect_word(const struct mw_report_suspect *suspect);
/* The line of a frame: shop::link_session() server.cpp:25 */
void mw_text_source(struct mw_line *line, const struct mw_report_frame *frame);
/* That of a suspect. */
void mw_text_place(struct mw_text *text, const struct mw_report_suspect *suspect);
/* Of several processes: a table of them, and the answer of all together. */
void mw_text_processes(struct mw_text *text, const struct mw_report *const *reports, size_t count);
/* One line of a suspect or a stack: what of it was only in flight. */
void mw_text_settled(struct mw_text *text, const struct mw_amount *settled_later, const struct mw_spreads *spreads);
void mw_text_totals(struct mw_text *text);
/* Where there were looks at both ends of the window: by what the RSS grew, as a line of the answer, and in full. */
void mw_text_change_answer(struct mw_text *text, bool leads);
void mw_text_change(struct mw_text *text);
/* Memory, the address space, modules; `stacks`: then those that hold memory, and those that only pass it through. */
void mw_text_tables(struct mw_text *text, bool stacks);
/* What there is of the views, each with a heading of its own. Uses the report's stacks for frames. */
void mw_text_views(struct mw_text *text, const struct mw_views *views);
/* A function's name with its long template arguments left out. */
void mw_text_function(struct mw_line *line, const char *function);
/* The same without parameters: shop::add(). */
void mw_text_short_function(struct mw_line *line, const char *function);
/* "module!", or what stands for it before the function's name. */
void mw_text_module(struct mw_line *line, const struct mw_report_frame *frame);
/* Inlined code has no start of its own to count from, nor has a whole region, or a script. */
static inline bool mw_text_has_offset(const struct mw_report_frame *frame)
{
	return !frame->inlined && !frame->generated && !mw_language_is_script(frame->language);
}
/* The innermost frame of the module that the stack is charged to, but for std::; NULL: there are no frames. */
const struct mw_report_frame *mw_text_own_frame(const struct mw_report_stack *stack);
void mw_text_frames(struct mw_text *text, const struct mw_report_stack *stack, size_t most);
/* What is missing of a window that is not complete: "lost 12 events, no call was seen of sbrk (…)". */
void mw_text_lost(struct mw_line *line, const struct mw_report *report);
/* What ended the window: "interrupted". */
void mw_text_end(struct mw_line *line, const struct mw_report *report);
/* How names that are missing are had; NULL: none are. */
const char *mw_text_nameless_hint(const struct mw_report_nameless *nameless);

#endif

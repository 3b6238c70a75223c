// SPDX-License-Identifier: MIT
/* text_lines.c: lines, paragraphs and headings of the text (text.h), and phrases that several of its parts have. */
#include "base/function_name.h"
#include "output/line.h"
#include "output/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESET   "\033[0m"
#define HEADING "\033[1m"
#define ALARM   "\033[31m"

/* The heading that waits for what stands below it. */
static void put_heading(struct mw_text *text)
{
	bool colored = text->options->color;

	if (text->heading)
		fprintf(text->stream, "\n%s%s%s\n", colored ? HEADING : "", text->heading, colored ? RESET : "");
	text->heading = NULL;
}

void mw_text_line(struct mw_text *text, enum mw_style style)
{
	const char *data = text->line.length ? text->line.data : "";

	put_heading(text);
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

/* Does what stands behind the blank belong to what stands before it? "12.0 MiB ± 4.0 KiB", "96.2 %" */
static bool belongs(const char *blank, size_t before)
{
	static const char plus_minus[] = "±";
	size_t size = strlen(plus_minus);

	if (before > size && memcmp(blank - size, plus_minus, size) == 0)
		return true;
	return isdigit((unsigned char)blank[-1]) &&
	       (isalpha((unsigned char)blank[1]) || blank[1] == '%' || strncmp(blank + 1, plus_minus, size) == 0);
}

/* Bytes of a word; a number and what it counts are one. */
static size_t word_size(const char *text)
{
	size_t size = strcspn(text, " ");

	while (size && text[size] && belongs(text + size, size))
		size += 1 + strcspn(text + size + 1, " ");
	return size;
}

void mw_text_styled_paragraph(struct mw_text *text, unsigned indent, enum mw_style style)
{
	const char *at = text->line.length ? text->line.data : "";
	size_t width = text->options->width ? text->options->width : SIZE_MAX;
	size_t column = strspn(at, " ");
	size_t gap = 0;
	bool colored = text->options->color && style != MW_STYLE_PLAIN;

	put_heading(text);
	if (colored)
		fputs(style == MW_STYLE_HEADING ? HEADING : ALARM, text->stream);
	fprintf(text->stream, "%*s", (int)column, "");
	for (at += column; *at; at += gap) {
		size_t size = word_size(at);

		if (gap && column + gap + mw_utf8_columns(at, size) > width) {
			fprintf(text->stream, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			fprintf(text->stream, "%*s", (int)gap, "");
			column += gap;
		}
		column = put_word(text, at, size, column, indent);
		at += size;
		gap = strspn(at, " ");
	}
	fputs(colored ? RESET "\n" : "\n", text->stream);
	mw_line_cut(&text->line, 0);
}

void mw_text_paragraph(struct mw_text *text, unsigned indent)
{
	mw_text_styled_paragraph(text, indent, MW_STYLE_PLAIN);
}

void mw_text_cell(struct mw_line *line, size_t columns, const char *cell)
{
	size_t taken = mw_utf8_columns(cell, strlen(cell));

	mw_line_printf(line, "%*s%s", taken < columns ? (int)(columns - taken) : 0, "", cell);
}

void mw_text_fit(struct mw_text *text, size_t from)
{
	size_t width = text->options->width;
	size_t before = mw_line_columns(&text->line, 0) - mw_line_columns(&text->line, from);

	if (width)
		mw_line_elide(&text->line, from, width > before ? width - before : 1);
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

void mw_text_error(struct mw_line *line, bool sampled, double variance)
{
	if (sampled)
		mw_line_printf(line, " ± %s", mw_show_size((uint64_t)(sqrt(variance) + 0.5)).text);
}

void mw_text_count_error(struct mw_line *line, bool sampled, double variance)
{
	if (sampled)
		mw_line_printf(line, " ± %s", mw_show_count((uint64_t)(sqrt(variance) + 0.5)).text);
}

const char *mw_text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* --- the frames of a stack, each on one line ------------------------------------------------------------------ */

#define NAME_COLUMNS   16 /* least that is left of a function's name */
#define NUMBER_COLUMNS 7

/* The source position: with its whole path where that takes at most `columns`, else the file's own name. */
static void add_position(struct mw_line *line, const struct mw_report_frame *frame, size_t columns)
{
	const char *shown = frame->file;
	size_t from = line->length;

	if (!frame->file)
		return;
	for (;;) {
		mw_line_put(line, " (", shown);
		if (frame->line)
			mw_line_printf(line, ":%" PRIu32, frame->line);
		mw_line_printf(line, ")");
		if (mw_line_columns(line, from) <= columns || shown != frame->file)
			return;
		shown = mw_text_base_name(frame->file);
		if (shown == frame->file)
			return;
		mw_line_cut(line, from);
	}
}

/* Where the list of parameters begins; the name's end where there is none. */
static const char *parameters(const char *function)
{
	const char *last = strrchr(function, ')'), *begin = last;
	int depth = 1;

	/* (anonymous namespace)::add, add(int)::{lambda()#1}: more of the name follows. */
	if (!last || (last[1] && last[1] != ' '))
		return function + strlen(function);
	while (begin > function && depth > 0) {
		begin--;
		depth += *begin == ')';
		depth -= *begin == '(';
	}
	if (begin == function || (begin - function >= 8 && strncmp(begin - 8, "operator", 8) == 0))
		return function + strlen(function);
	return begin;
}

#define ANONYMOUS "(anonymous namespace)::"
#define ARGUMENTS 12 /* bytes of template arguments that are shown */

/* The name's first `length` bytes with long template arguments left out. */
static void add_function(struct mw_line *line, const char *function, size_t length)
{
	char *name = strdup(function);
	char *to = name;

	if (!name) {
		line->failed = true;
		return;
	}
	for (const char *from = function; *from && from < function + length;) {
		int depth = 0;
		size_t size = 0;

		/* operator<, operator<<, operator-> and the like are no arguments. */
		if (*from == '<' && from > function && from[1] != '<' && from[-1] != '<' &&
		    (from - function < 8 || strncmp(from - 8, "operator", 8) != 0)) {
			do {
				depth += from[size] == '<';
				depth -= from[size] == '>' && from[size - 1] != '-';
				size++;
			} while (from[size] && depth > 0);
			if (depth == 0 && size > ARGUMENTS) {
				memcpy(to, "<…>", strlen("<…>"));
				to += strlen("<…>");
				from += size;
				continue;
			}
		}
		/* Whose file it is says more. */
		if (strncmp(from, ANONYMOUS, strlen(ANONYMOUS)) == 0)
			from += strlen(ANONYMOUS);
		else
			*to++ = *from++;
	}
	*to = '\0';
	mw_line_name(line, name);
	free(name);
}

void mw_text_function(struct mw_line *line, const char *function)
{
	add_function(line, function, strlen(function));
}

/* Past the return type, which templates' functions have. */
static const char *past_type(const char *function, const char *end)
{
	const char *name = function;
	int depth = 0;

	for (const char *at = function; at < end && strncmp(at, "operator", 8) != 0; at++) {
		depth += strchr("(<{", *at) != NULL;
		depth -= strchr(")>}", *at) != NULL;
		if (*at == ' ' && depth == 0)
			name = at + 1;
	}
	return name;
}

void mw_text_short_function(struct mw_line *line, const char *function)
{
	const char *end = parameters(function), *begin = *end ? past_type(function, end) : function;

	add_function(line, begin, (size_t)(end - begin));
	mw_line_printf(line, "%s", *end || !strchr(function, '(') ? "()" : "");
}

void mw_text_module(struct mw_line *line, const struct mw_report_frame *frame)
{
	/* Neither what says all of a region nor the file of a script has need of it. */
	if (mw_language_is_script(frame->language))
		return;
	if (frame->generated && frame->function && frame->module && frame->module[0] != '/')
		return;
	if (frame->module)
		mw_line_name(line, mw_text_base_name(frame->module));
	else
		mw_line_printf(line, "(code in no file)");
	mw_line_printf(line, "%s", frame->function ? "!" : "");
}

/* Everything behind the function's name. `columns` is what the line has left for it. */
static void add_tail(struct mw_line *tail, const struct mw_report_frame *frame, size_t columns)
{
	const char *mark = frame->inlined ? " [inlined]" : "";
	size_t taken;

	if (mw_text_has_offset(frame))
		mw_line_printf(tail, "+0x%" PRIx64, frame->offset);
	taken = mw_line_columns(tail, 0) + strlen(mark);
	add_position(tail, frame, columns > taken ? columns - taken : 0);
	mw_line_printf(tail, "%s", mark);
}

/*
 * module!function+0xoff (file:line) [inlined]. Where that is too wide the path's directories go first, then the
 * parameters, then the middle of the function's name, and last of all the middle of the line.
 */
static void put_frame(struct mw_text *text, size_t number, const struct mw_report_frame *frame)
{
	size_t width = text->options->width ? text->options->width : SIZE_MAX;
	struct mw_line *line = &text->line;
	struct mw_line tail = {0};
	size_t name, head, whole, rest;

	mw_line_printf(line, "   #%-2zu ", number);
	mw_text_module(line, frame);
	name = line->length;
	head = mw_line_columns(line, 0);
	if (frame->function)
		mw_text_function(line, frame->function);
	whole = mw_line_columns(line, 0);
	add_tail(&tail, frame, width > whole ? width - whole : 0);
	rest = head + mw_line_columns(&tail, 0);
	if (frame->function && whole - head + rest > width) {
		mw_line_cut(line, name);
		mw_text_short_function(line, frame->function);
	}
	if (frame->function)
		mw_line_elide(line, name, width > rest + NAME_COLUMNS ? width - rest : NAME_COLUMNS);
	mw_line_printf(line, "%s", tail.length ? tail.data : "");
	mw_line_elide(line, NUMBER_COLUMNS, width > 2 * NUMBER_COLUMNS ? width - NUMBER_COLUMNS : NUMBER_COLUMNS);
	line->failed = line->failed || tail.failed;
	mw_line_deinit(&tail);
	mw_text_line(text, MW_STYLE_PLAIN);
}

#define LEAST_FOLDED 2

/* The insides of a standard library. */
static bool is_std(const struct mw_report_frame *frame)
{
	return frame->function && mw_function_is_std(frame->function);
}

const struct mw_report_frame *mw_text_own_frame(const struct mw_report_stack *stack)
{
	for (size_t i = 0; i < stack->frame_count && stack->suspect; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		if (frame->module && strcmp(frame->module, stack->suspect) == 0 && !is_std(frame))
			return frame;
	}
	return stack->frame_count ? &stack->frames[0] : NULL;
}

/* What calls main(), or a thread's function. */
static bool is_start(const struct mw_report_frame *frame)
{
	static const char *const names[] = {"__libc_start_main",
					    "__libc_start_main_impl",
					    "__libc_start_call_main",
					    "_start",
					    "start_thread",
					    "__clone3",
					    "__clone",
					    "clone3",
					    "clone"};

	for (size_t i = 0; frame->function && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(frame->function, names[i]) == 0)
			return true;
	return false;
}

static size_t run_of(const struct mw_report_stack *stack, size_t from, size_t end,
		     bool (*is)(const struct mw_report_frame *))
{
	size_t next = from;

	while (next < end && is(&stack->frames[next]))
		next++;
	return next - from;
}

static void put_interpreter(struct mw_text *text, size_t first, size_t count)
{
	if (count == 1)
		MW_TEXT_ROW(text, "   #%-2zu (interpreter)", first);
	else
		MW_TEXT_ROW(text, "   #%zu-%zu (interpreter, %zu frames)", first, first + count - 1, count);
}

static enum mw_frames frames_of(const struct mw_text *text)
{
	if (text->options->frames != MW_FRAMES_DEFAULT)
		return text->options->frames;
	return text->options->all ? MW_FRAMES_ALL : MW_FRAMES_OWN;
}

/* Put up to `most` frames; how many were left out behind them. */
static size_t put_folded(struct mw_text *text, const struct mw_report_stack *stack, size_t most)
{
	enum mw_frames frames = frames_of(text);
	/* One left-out frame would take the line that tells of it. */
	size_t shown = stack->frame_count - most == 1 || stack->frame_count <= most ? stack->frame_count : most;

	for (size_t i = 0; i < shown;) {
		size_t of_std = run_of(stack, i, shown, is_std),
		       of_start = run_of(stack, i, stack->frame_count, is_start),
		       of_interpreter = mw_report_interpreter(frames, &stack->frames[i], stack->frame_count - i);

		if (frames == MW_FRAMES_ALL || (of_std < LEAST_FOLDED && of_start < LEAST_FOLDED && !of_interpreter)) {
			put_frame(text, i, &stack->frames[i]);
			i++;
		} else if (of_start) {
			MW_TEXT_ROW(text, "   #%zu-%zu (start)", i, i + of_start - 1);
			i += of_start;
		} else if (of_interpreter) {
			put_interpreter(text, i, of_interpreter);
			i += of_interpreter;
		} else {
			MW_TEXT_ROW(text, "   #%zu-%zu std:: (%zu frames)", i, i + of_std - 1, of_std);
			i += of_std;
		}
		shown = i > shown ? i : shown;
	}
	return stack->frame_count - shown;
}

static size_t put_scripts(struct mw_text *text, const struct mw_report_stack *stack, size_t most)
{
	size_t left = 0;

	for (size_t i = 0; i < stack->frame_count; i++)
		left += mw_language_is_script(stack->frames[i].language);
	most = left - most == 1 || left <= most ? left : most;
	for (size_t i = 0; most; i++) {
		if (!mw_language_is_script(stack->frames[i].language))
			continue;
		put_frame(text, i, &stack->frames[i]);
		most--;
		left--;
	}
	return left;
}

void mw_text_frames(struct mw_text *text, const struct mw_report_stack *stack, size_t most)
{
	bool scripts = frames_of(text) == MW_FRAMES_SCRIPT && mw_report_has_script(stack->frames, stack->frame_count);
	size_t left = scripts ? put_scripts(text, stack, most) : put_folded(text, stack, most);

	if (left)
		mw_line_printf(&text->line, "   … %zu more frames", left);
	else if (stack->cut == MW_STACK_TRUNCATED)
		mw_line_printf(&text->line, "   … cut here: the wanted depth was reached");
	else if (stack->cut == MW_STACK_BROKEN)
		mw_line_printf(&text->line, "   … cut here: no unwind information");
	else if (stack->end != MW_STACK_END_NONE)
		mw_line_printf(&text->line, "   … ends here: %s", mw_stack_end_name(stack->end));
	else
		return;
	mw_text_line(text, MW_STYLE_PLAIN);
}

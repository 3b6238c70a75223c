// SPDX-License-Identifier: MIT
/* text_frames.c: the frames of a stack, each on one line. */
#include "output/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
		mw_line_printf(line, " (");
		mw_line_name(line, shown);
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

#define ARGUMENTS 12 /* bytes of template arguments that are shown */

void mw_text_function(struct mw_line *line, const char *function)
{
	char *name = strdup(function);
	char *to = name;

	if (!name) {
		line->failed = true;
		return;
	}
	for (const char *from = function; *from;) {
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
		*to++ = *from++;
	}
	*to = '\0';
	mw_line_name(line, name);
	free(name);
}

void mw_text_module(struct mw_line *line, const struct mw_report_frame *frame)
{
	/* What says all of a region has no need of it. */
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

	if (!frame->inlined && !frame->generated)
		mw_line_printf(tail, "+0x%" PRIx64, frame->offset);
	taken = mw_line_columns(tail, 0) + strlen(mark);
	add_position(tail, frame, columns > taken ? columns - taken : 0);
	mw_line_printf(tail, "%s", mark);
}

/*
 * module!function+0xoff (file:line) [inlined]. Where that is too wide the path's directories go first,
 * then the middle of the function's name, and last of all the middle of the line.
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
	if (frame->function)
		mw_line_elide(line, name, width > rest + NAME_COLUMNS ? width - rest : NAME_COLUMNS);
	mw_line_printf(line, "%s", tail.length ? tail.data : "");
	mw_line_elide(line, NUMBER_COLUMNS, width > 2 * NUMBER_COLUMNS ? width - NUMBER_COLUMNS : NUMBER_COLUMNS);
	line->failed = line->failed || tail.failed;
	mw_line_deinit(&tail);
	mw_text_line(text, MW_STYLE_PLAIN);
}

#define LEAST_FOLDED 2

/* The insides of C++'s standard library. */
static bool is_folded(const struct mw_report_frame *frame)
{
	const char *name = frame->function, *at;

	if (!name)
		return false;
	/* Behind a return type. */
	at = strstr(name, " std::");
	if (at && (size_t)(at - name) < strcspn(name, "<("))
		name = at + 1;
	return strncmp(name, "std::", 5) == 0 || strncmp(name, "__gnu_cxx::", 11) == 0;
}

void mw_text_frames(struct mw_text *text, const struct mw_report_stack *stack, size_t most)
{
	/* One left-out frame would take the line that tells of it. */
	size_t shown = stack->frame_count - most == 1 || stack->frame_count <= most ? stack->frame_count : most;

	for (size_t i = 0; i < shown;) {
		size_t next = i;

		while (next < shown && is_folded(&stack->frames[next]))
			next++;
		if (next - i < LEAST_FOLDED || text->options->all) {
			put_frame(text, i, &stack->frames[i]);
			i++;
			continue;
		}
		mw_line_printf(&text->line, "   #%zu-%zu std:: (%zu frames)", i, next - 1, next - i);
		mw_text_line(text, MW_STYLE_PLAIN);
		i = next;
	}
	if (shown < stack->frame_count)
		mw_line_printf(&text->line, "   … %zu more frames", stack->frame_count - shown);
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

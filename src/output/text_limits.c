// SPDX-License-Identifier: MIT
/* text_limits.c: what the report can't know. A reader must not take silence for health. */
#include "output/text.h"

#include <stdlib.h>
#include <string.h>

/* So many refusals are reported one by one. */
#define REFUSALS 8

/* A point of the list: the scratch line holds its text. */
static void put_point(struct mw_text *text)
{
	mw_text_paragraph(text, 4);
}

static void put_before(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;
	struct mw_amount freed = {0};
	uint64_t unknown = 0;

	if (!mw_text_has_older(text))
		return;
	for (unsigned kind = 0; kind < MW_KIND_VM_INTERNAL; kind++) {
		freed.count += report->totals[kind].aofi.count;
		freed.bytes += report->totals[kind].aofi.bytes;
		unknown += report->totals[kind].aofi_unknown;
	}
	mw_line_printf(line,
		       "  - Blocks from before the %s are not in it: only what was allocated since can "
		       "show as not freed.",
		       mw_text_span(text));
	if (freed.count) {
		mw_line_printf(line, " %s older block%s freed inside it (%s", mw_show_count(freed.count).text,
			       freed.count == 1 ? " was" : "s were",
			       unknown >= freed.count ? "size unknown" : mw_show_size(freed.bytes).text);
		if (unknown && unknown < freed.count)
			mw_line_printf(line, "; %s of them of unknown size", mw_show_count(unknown).text);
		mw_line_printf(line, ").");
	}
	put_point(text);
}

/* What is killed, or becomes another program, is not looked at before. */
static void put_space(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	const struct mw_report_space *space = report->space;
	bool ended = report->window.ended == MW_END_EXIT || report->window.ended == MW_END_EXEC;

	if (!ended || (space && space->end.known))
		return;
	mw_line_printf(&text->line,
		       "  - What the address space held at the end, and so in which heap some blocks were: "
		       "a process that ends by itself is looked at before it does, not one that is killed or becomes "
		       "another program.");
	put_point(text);
}

static void put_refusals(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;
	size_t refused = 0;

	for (size_t i = 0; i < report->engine.hook_count; i++) {
		const struct mw_report_hook *hook = &report->engine.hooks[i];

		if (!hook->refused || ++refused > REFUSALS)
			continue;
		mw_line_printf(line, "  - Not hooked, so its calls were not seen: ");
		mw_line_name(line, hook->function);
		mw_line_printf(line, " in ");
		mw_line_name(line, hook->module);
		mw_line_printf(line, ": ");
		mw_line_name(line, hook->refused);
		put_point(text);
	}
	if (refused > REFUSALS) {
		mw_line_printf(line, "  - … and %s more entry points were not hooked; the JSON report has them all.",
			       mw_show_count(refused - REFUSALS).text);
		put_point(text);
	}
}

#define CUT_MODULES 3

struct cut_module {
	const char *path; /* NULL: code in no file */
	size_t stacks;
};

static int most_stacks(const void *a, const void *b)
{
	const struct cut_module *left = a, *right = b;

	if (left->stacks != right->stacks)
		return left->stacks > right->stacks ? -1 : 1;
	return strcmp(left->path ? left->path : "", right->path ? right->path : "");
}

/* In which modules stacks end early; to be freed, NULL without memory. */
static struct cut_module *cut_modules(const struct mw_report *report, size_t *count)
{
	struct cut_module *modules = calloc(report->stack_count ? report->stack_count : 1, sizeof(*modules));

	*count = 0;
	for (size_t i = 0; modules && i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		const char *path;
		size_t at = 0;

		if (stack->cut != MW_STACK_BROKEN || stack->end == MW_STACK_END_GENERATED || !stack->frame_count)
			continue;
		path = stack->frames[stack->frame_count - 1].module;
		while (at < *count &&
		       (!path || !modules[at].path ? path != modules[at].path : strcmp(path, modules[at].path) != 0))
			at++;
		*count += at == *count;
		modules[at].path = path;
		modules[at].stacks++;
	}
	if (modules)
		qsort(modules, *count, sizeof(*modules), most_stacks);
	return modules;
}

static void put_cut_modules(struct mw_text *text)
{
	size_t count;
	struct cut_module *modules = cut_modules(text->report, &count);

	for (size_t i = 0; i < count && i < CUT_MODULES; i++) {
		const char *path = modules[i].path, *slash = path ? strrchr(path, '/') : NULL;

		mw_line_printf(&text->line, "%s%s in ", i ? ", " : ": ", mw_show_count(modules[i].stacks).text);
		if (path)
			mw_line_name(&text->line, slash && slash[1] ? slash + 1 : path);
		else
			mw_line_printf(&text->line, "code of no file");
	}
	mw_line_printf(&text->line, "%s.", count > CUT_MODULES ? ", …" : "");
	free(modules);
}

static void put_cut(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t broken = 0, truncated = 0, generated = 0;

	for (size_t i = 0; i < report->stack_count; i++) {
		bool ends = report->stacks[i].end == MW_STACK_END_GENERATED;

		generated += ends;
		broken += report->stacks[i].cut == MW_STACK_BROKEN && !ends;
		truncated += report->stacks[i].cut == MW_STACK_TRUNCATED;
	}
	if (generated) {
		mw_line_printf(
			&text->line,
			"  - %s of %s stacks end%s at code that was generated at run time, and that says nothing of "
			"its callers.",
			mw_show_count(generated).text, mw_show_count(report->stack_count).text,
			generated == 1 ? "s" : "");
		put_point(text);
	}
	if (broken) {
		mw_line_printf(
			&text->line, "  - %s of %s stacks end%s early, as there is no unwind information from there on",
			mw_show_count(broken).text, mw_show_count(report->stack_count).text, broken == 1 ? "s" : "");
		put_cut_modules(text);
		put_point(text);
	}
	if (truncated) {
		mw_line_printf(&text->line, "  - %s of %s stacks %s cut at the wanted depth (--depth).",
			       mw_show_count(truncated).text, mw_show_count(report->stack_count).text,
			       truncated == 1 ? "is" : "are");
		put_point(text);
	}
}

void mw_text_limits(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;

	mw_text_heading(text, "What this report cannot know");
	if (report->lost.events) {
		mw_line_printf(line,
			       "  - %s event%s lost: a block shown as not freed may have been freed unseen, and an "
			       "allocation may be missing.",
			       mw_show_count(report->lost.events).text, report->lost.events == 1 ? " was" : "s were");
		put_point(text);
	}
	if (report->lost.stacks) {
		mw_line_printf(line, "  - %s stack%s lost.", mw_show_count(report->lost.stacks).text,
			       report->lost.stacks == 1 ? " was" : "s were");
		put_point(text);
	}
	if (!report->tracked[MW_KIND_HEAP] || !report->tracked[MW_KIND_VM]) {
		mw_line_printf(line, "  - Not recorded, as it was not asked for: %s%s%s.",
			       report->tracked[MW_KIND_HEAP] ? "" : "heap",
			       report->tracked[MW_KIND_HEAP] || report->tracked[MW_KIND_VM] ? "" : ", ",
			       report->tracked[MW_KIND_VM] ? "" : "vm");
		put_point(text);
	}
	mw_text_runtimes(text);
	mw_text_nameless(text);
	put_before(text);
	put_space(text);
	put_refusals(text);
	put_cut(text);
}

// SPDX-License-Identifier: MIT
/* text_missing.c: what the figures leave out: children, growth of the RSS, names, objects of runtimes. */
#include "output/text.h"

#include <stdlib.h>
#include <string.h>

#define CHILDREN 16                  /* so many are named */
#define LEAST    (UINT64_C(1) << 20) /* bytes: less of the RSS's growth is not worth a word */

/* --- children ------------------------------------------------------------------------------------------------ */

size_t mw_text_unwatched(const struct mw_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->target.child_count; i++)
		count += !report->target.children[i].watched;
	return count;
}

/* -p 24386,24387 */
void mw_text_add_unwatched(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t named = 0;

	for (size_t i = 0; i < report->target.child_count && named < CHILDREN; i++)
		if (!report->target.children[i].watched)
			mw_line_printf(&text->line, "%s%d", named++ ? "," : "-p ", report->target.children[i].pid);
	if (mw_text_unwatched(report) > named)
		mw_line_printf(&text->line, " and %s more", mw_show_count(mw_text_unwatched(report) - named).text);
}

void mw_text_children(struct mw_text *text)
{
	size_t count = mw_text_unwatched(text->report);

	if (!count)
		return;
	mw_line_printf(&text->line, "      %s child%s not watched: ", mw_show_count(count).text,
		       count == 1 ? "" : "ren");
	mw_text_add_unwatched(text);
	mw_text_styled_paragraph(text, 6, MW_STYLE_HEADING);
}

/* --- growth of the RSS --------------------------------------------------------------------------------------- */

static const char *const kinds[MW_REGION_KIND_COUNT] = {
	[MW_REGION_HEAP] = "of the heap beside them", [MW_REGION_ARENA] = "of allocators' arenas beside them",
	[MW_REGION_STACK] = "stacks of threads",      [MW_REGION_ANONYMOUS] = "anonymous mappings",
	[MW_REGION_FILE_TEXT] = "files' code",        [MW_REGION_FILE_DATA] = "files' data",
	[MW_REGION_SHARED] = "shared memory",         [MW_REGION_OWN] = "memwatch's own",
	[MW_REGION_SPECIAL] = "special mappings",
};

/* Most first. */
static void add_kinds(struct mw_line *line, const struct mw_report_rss *rss)
{
	uint64_t left[MW_REGION_KIND_COUNT];

	memcpy(left, rss->kinds, sizeof(left));
	for (;;) {
		unsigned most = 0;

		for (unsigned kind = 1; kind < MW_REGION_KIND_COUNT; kind++)
			if (left[kind] > left[most])
				most = kind;
		if (left[most] < LEAST)
			return;
		mw_line_printf(line, ", %s %s", mw_show_size(left[most]).text, kinds[most]);
		left[most] = 0;
	}
}

void mw_text_rss(struct mw_text *text)
{
	const struct mw_report_rss *rss = &text->report->rss;
	struct mw_line *line = &text->line;

	if (!rss->unexplained)
		return;
	mw_line_printf(line, "      RSS +%s: %s explained by blocks not freed", mw_show_size(rss->growth).text,
		       mw_show_size(rss->blocks).text);
	if (rss->has_kinds)
		add_kinds(line, rss);
	else
		mw_line_printf(line, ", %s by none of them", mw_show_size(rss->growth - rss->blocks).text);
	mw_text_styled_paragraph(text, 6, MW_STYLE_HEADING);
}

/* --- names of functions -------------------------------------------------------------------------------------- */

/* Fit for a shell, in lines that can be copied to one. */
static void put_command(struct mw_text *text)
{
	const struct mw_report_nameless *nameless = &text->report->nameless;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "      %s%s", nameless->sudo, nameless->begin);
	for (size_t i = 0; i < nameless->argument_count; i++) {
		char *word = mw_shell_word(nameless->arguments[i]);
		size_t columns = word ? mw_utf8_columns(word, strlen(word)) : 0;

		if (i + 1 == nameless->argument_count)
			columns += strcspn(nameless->end, "\n");

		line->failed |= !word;
		if (text->options->width && mw_line_columns(line, 0) + columns + 3 > text->options->width) {
			mw_line_printf(line, " \\");
			mw_text_line(text, MW_STYLE_PLAIN);
			mw_line_printf(line, "     ");
		}
		mw_line_printf(line, " %s", word ? word : "");
		free(word);
	}
	mw_line_printf(line, "%s", nameless->end);
	mw_text_line(text, MW_STYLE_PLAIN);
}

const char *mw_text_nameless_hint(const struct mw_report_nameless *nameless)
{
	if (!nameless->module_count)
		return NULL;
	if (nameless->argument_count)
		return nameless->begin ? "the debug packages have them"
				       : "install the debug packages of this distribution";
	return nameless->module_count == 1 ? "build it with -g, and do not strip it"
					   : "build them with -g, and do not strip them";
}

void mw_text_nameless(struct mw_text *text)
{
	const struct mw_report_nameless *nameless = &text->report->nameless;
	struct mw_line *line = &text->line;

	if (!nameless->module_count)
		return;
	mw_line_printf(line, "  - Names of functions in ");
	for (size_t i = 0; i < nameless->module_count; i++) {
		mw_line_printf(line, "%s", i == 0 ? "" : i + 1 == nameless->module_count ? " and " : ", ");
		mw_line_name(line, mw_text_base_name(nameless->modules[i]));
	}
	mw_line_printf(line, " (they are shown as offsets): %s%s", mw_text_nameless_hint(nameless),
		       nameless->begin ? ":" : ".");
	mw_text_paragraph(text, 4);
	if (nameless->begin)
		put_command(text);
}

/* --- objects of runtimes ------------------------------------------------------------------------------------- */

void mw_text_runtimes(struct mw_text *text)
{
	for (size_t i = 0; i < text->report->runtime_count; i++) {
		mw_line_printf(&text->line, "  - %s", text->report->runtimes[i].text);
		mw_text_paragraph(text, 4);
	}
}

// SPDX-License-Identifier: MIT
/* heap_report.c: what a look at a heap owns (memwatch/heap.h). */
#include "base/vector.h"

#include <memwatch/heap.h>

#include <stdlib.h>

static void destroy_content(const struct mw_heap_content *content)
{
	MW_EACH(note, content->notes, content->note_count)
		free(note->text);
	free(content->notes);
	free(content->bytes);
}

void mw_heap_report_destroy(struct mw_heap_report *report)
{
	if (!report)
		return;
	free(report->exe);
	free(report->build_id);
	free(report->why);
	MW_EACH(line, report->lines, report->line_count)
		free(line->detail);
	free(report->lines);
	MW_EACH(figures, report->allocators, report->allocator_count) {
		free(figures->version);
		free(figures->module);
		free(figures->why);
	}
	free(report->allocators);
	MW_EACH(group, report->groups, report->group_count) {
		free(group->class_name);
		free(group->arena);
		for (size_t i = 0; i < group->holder_count; i++)
			free(group->holder[i]);
		free(group->holder);
		MW_EACH(content, group->contents, group->content_count)
			destroy_content(content);
		free(group->contents);
	}
	free(report->groups);
	free(report->gaps);
	MW_EACH(holder, report->holders, report->holder_count)
		free(holder->name);
	free(report->holders);
	for (size_t i = 0; i < report->advice_count; i++)
		free(report->advice[i]);
	free(report->advice);
	for (size_t i = 0; i < report->text_count; i++)
		free(report->texts[i]);
	free(report->texts);
	free(report);
}

// SPDX-License-Identifier: MIT
/* kept_heap.c: see kept_heap.h. */
#include "view/kept_heap.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ITEMS ((size_t)1 << 21) /* of a list */
#define MOST_TEXTS 256u              /* names that are static where a look is taken: there are some twenty */

/* --- emission ------------------------------------------------------------------------------------------------------ */

struct emission {
	const struct mw_store_visitor *receiver;
	uint32_t process;
};

static struct mw_error *put(const struct emission *to, const struct mw_stored_heap *part)
{
	return to->receiver->heap(to->receiver->context, to->process, part);
}

/* Each item of a list as a part, whose struct it is. */
#define EMIT_ALL(to, number, member, items, count)                                                                     \
	do {                                                                                                           \
		for (size_t i_ = 0; i_ < (count); i_++)                                                                \
			MW_TRY(put(to, &(const struct mw_stored_heap){.part = (number), .member = (items)[i_]}));      \
	} while (0)

static struct mw_error *check_length(size_t count, const char *what)
{
	return count <= MOST_ITEMS ? NULL
				   : mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "a recording holds at most %zu %s of a look at a heap, not %zu",
						     MOST_ITEMS, what, count);
}

struct mw_error *mw_kept_heap_emit(const struct mw_heap_report *report, uint32_t process,
				   const struct mw_store_visitor *receiver)
{
	const struct emission to = {receiver, process};

	MW_TRY(check_length(report->line_count, "lines"));
	MW_TRY(check_length(report->group_count, "groups of blocks"));
	MW_TRY(check_length(report->gap_count, "ranges that were skipped"));
	MW_TRY(check_length(report->holder_count, "holders"));
	MW_TRY(put(&to, &(const struct mw_stored_heap){.part = MW_STORED_HEAP_HEAD, .head = *report}));
	EMIT_ALL(&to, MW_STORED_HEAP_LINE, line, report->lines, report->line_count);
	EMIT_ALL(&to, MW_STORED_HEAP_ALLOCATOR, allocator, report->allocators, report->allocator_count);
	MW_EACH(group, report->groups, report->group_count) {
		MW_TRY(put(&to, &(const struct mw_stored_heap){.part = MW_STORED_HEAP_GROUP, .group = *group}));
		EMIT_ALL(&to, MW_STORED_HEAP_CONTENT, content, group->contents, group->content_count);
	}
	EMIT_ALL(&to, MW_STORED_HEAP_GAP, gap, report->gaps, report->gap_count);
	EMIT_ALL(&to, MW_STORED_HEAP_HOLDER, holder, report->holders, report->holder_count);
	EMIT_ALL(&to, MW_STORED_HEAP_ADVICE, advice, report->advice, report->advice_count);
	return NULL;
}

/* --- reception ----------------------------------------------------------------------------------------------------- */

/* Copies of texts, until there is no memory for one. */
struct copies {
	struct mw_kept_heap *kept;
	bool failed;
};

/* NULL stays NULL. */
static char *copy_of(struct copies *copies, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	copies->failed = copies->failed || (text && !copy);
	return copy;
}

static struct mw_error *invalid(const char *why)
{
	return mw_error_create(MW_ERROR_DATA, 0, "the look at the heap is damaged: %s", why);
}

/* Words of memwatch's own are shown as they are: they may be nothing but that. */
static bool is_plain(const char *text)
{
	for (; *text >= ' ' && *text <= '~'; text++)
		;
	return !*text;
}

/* A name that is static where a look is taken: the same pointer for the same text. */
static struct mw_error *name_of(struct mw_kept_heap *kept, const char *text, const char **out)
{
	struct mw_heap_report *report = kept->report;

	*out = NULL;
	for (size_t i = 0; text && i < report->text_count && !*out; i++)
		if (strcmp(report->texts[i], text) == 0)
			*out = report->texts[i];
	if (!text || *out)
		return NULL;
	if (report->text_count == MOST_TEXTS || !is_plain(text))
		return invalid("a name in it is invalid");
	if (!MW_VECTOR_ROOM(report->texts, report->text_count, kept->text_room))
		return mw_error_nomem();
	report->texts[report->text_count] = strdup(text);
	if (!report->texts[report->text_count])
		return mw_error_nomem();
	*out = report->texts[report->text_count++];
	return NULL;
}

static struct mw_error *take_head(struct mw_kept_heap *kept, const struct mw_heap_report *head)
{
	struct copies copies = {.kept = kept};
	struct mw_heap_report *report;

	if (kept->report)
		return invalid("there are two of them");
	if (head->line_count > MOST_ITEMS || head->allocator_count > MOST_ITEMS || head->group_count > MOST_ITEMS ||
	    head->gap_count > MOST_ITEMS || head->holder_count > MOST_ITEMS || head->advice_count > MOST_ITEMS)
		return invalid("a list in it is too long");
	kept->report = report = malloc(sizeof(*report));
	if (!report)
		return mw_error_nomem();
	kept->lines = head->line_count;
	kept->allocators = head->allocator_count;
	kept->groups = head->group_count;
	kept->gaps = head->gap_count;
	kept->holders = head->holder_count;
	kept->advice = head->advice_count;
	*report = *head;
	report->lines = NULL;
	report->allocators = NULL;
	report->groups = NULL;
	report->gaps = NULL;
	report->holders = NULL;
	report->advice = report->texts = NULL;
	report->line_count = report->allocator_count = report->group_count = report->gap_count = 0;
	report->holder_count = report->advice_count = report->text_count = 0;
	report->exe = copy_of(&copies, head->exe);
	report->build_id = copy_of(&copies, head->build_id);
	report->why = copy_of(&copies, head->why);
	if (head->holders)
		report->holders = calloc(1, sizeof(*report->holders));
	return copies.failed || (head->holders && !report->holders) ? mw_error_nomem() : NULL;
}

/* The next item of a list, of which there are to be `most`; *out is zeroed, and of the report. */
#define NEXT(items, count, room, most, out)                                                                            \
	do {                                                                                                           \
		if ((count) >= (most))                                                                                 \
			return invalid("a list in it is longer than its head says");                                   \
		if (!MW_VECTOR_ROOM(items, count, room))                                                               \
			return mw_error_nomem();                                                                       \
		*(out) = &(items)[(count)++];                                                                          \
		memset(*(out), 0, sizeof(**(out)));                                                                    \
	} while (0)

static struct mw_error *take_line(struct mw_kept_heap *kept, const struct mw_heap_line *line)
{
	struct mw_heap_report *report = kept->report;
	struct copies copies = {.kept = kept};
	struct mw_heap_line *out;

	NEXT(report->lines, report->line_count, kept->line_room, kept->lines, &out);
	out->bytes = line->bytes;
	out->swapped = line->swapped;
	out->reserved = line->reserved;
	out->committed = line->committed;
	out->used = line->used;
	out->detail = copy_of(&copies, line->detail);
	MW_TRY(name_of(kept, line->name, &out->name));
	return copies.failed ? mw_error_nomem() : NULL;
}

static struct mw_error *take_allocator(struct mw_kept_heap *kept, const struct mw_heap_figures *figures)
{
	struct mw_heap_report *report = kept->report;
	struct copies copies = {.kept = kept};
	struct mw_heap_figures *out;

	if (!figures->walked && !figures->why)
		return invalid("it does not say why an allocator was not walked");
	NEXT(report->allocators, report->allocator_count, kept->allocator_room, kept->allocators, &out);
	*out = *figures;
	out->version = copy_of(&copies, figures->version);
	out->module = copy_of(&copies, figures->module);
	out->why = copy_of(&copies, figures->why);
	MW_TRY(name_of(kept, figures->name, &out->name));
	return copies.failed ? mw_error_nomem() : NULL;
}

static struct mw_error *take_group(struct mw_kept_heap *kept, const struct mw_heap_group *group)
{
	struct mw_heap_report *report = kept->report;
	struct copies copies = {.kept = kept};
	struct mw_heap_group *out;

	if (kept->contents)
		return invalid("contents of a block are missing");
	if (!group->sample_count || group->content_count > MOST_ITEMS)
		return invalid("a group of blocks is invalid");
	NEXT(report->groups, report->group_count, kept->group_room, kept->groups, &out);
	out->size = group->size;
	out->verdict = group->verdict;
	out->blocks = group->blocks;
	memcpy(out->samples, group->samples, sizeof(out->samples));
	out->sample_count = group->sample_count;
	out->class_name = copy_of(&copies, group->class_name);
	out->arena = copy_of(&copies, group->arena);
	out->holder = calloc(group->holder_count + 1, sizeof(*out->holder));
	for (size_t i = 0; out->holder && i < group->holder_count; i++)
		out->holder[out->holder_count++] = copy_of(&copies, group->holder[i]);
	kept->contents = group->content_count;
	kept->content_room = 0;
	MW_TRY(name_of(kept, group->allocator, &out->allocator));
	return copies.failed || !out->holder ? mw_error_nomem() : NULL;
}

static struct mw_error *take_content(struct mw_kept_heap *kept, const struct mw_heap_content *content)
{
	struct mw_heap_report *report = kept->report;
	struct copies copies = {.kept = kept};
	struct mw_heap_group *group;
	struct mw_heap_content *out;

	if (!kept->contents || !report->group_count)
		return invalid("it has more contents of blocks than it says");
	kept->contents--;
	group = &report->groups[report->group_count - 1];
	NEXT(group->contents, group->content_count, kept->content_room, MOST_ITEMS, &out);
	out->at = content->at;
	out->size = content->size;
	out->bytes = malloc(content->byte_count + 1);
	out->notes = calloc(content->note_count + 1, sizeof(*out->notes));
	if (!out->bytes || !out->notes)
		return mw_error_nomem();
	if (content->byte_count)
		memcpy(out->bytes, content->bytes, content->byte_count);
	out->byte_count = content->byte_count;
	for (; out->note_count < content->note_count; out->note_count++) {
		out->notes[out->note_count].offset = content->notes[out->note_count].offset;
		out->notes[out->note_count].text = copy_of(&copies, content->notes[out->note_count].text);
	}
	return copies.failed ? mw_error_nomem() : NULL;
}

static struct mw_error *take_gap(struct mw_kept_heap *kept, const struct mw_heap_gap *gap)
{
	struct mw_heap_gap *out;

	NEXT(kept->report->gaps, kept->report->gap_count, kept->gap_room, kept->gaps, &out);
	out->start = gap->start;
	out->bytes = gap->bytes;
	return name_of(kept, gap->why, &out->why);
}

static struct mw_error *take_holder(struct mw_kept_heap *kept, const struct mw_heap_holder *holder)
{
	struct copies copies = {.kept = kept};
	struct mw_heap_holder *out;

	NEXT(kept->report->holders, kept->report->holder_count, kept->holder_room, kept->holders, &out);
	*out = *holder;
	out->name = copy_of(&copies, holder->name);
	return copies.failed ? mw_error_nomem() : NULL;
}

static struct mw_error *take_advice(struct mw_kept_heap *kept, const char *advice)
{
	struct copies copies = {.kept = kept};
	char **out;

	if (!is_plain(advice))
		return invalid("advice in it is not text");
	NEXT(kept->report->advice, kept->report->advice_count, kept->advice_room, kept->advice, &out);
	*out = copy_of(&copies, advice);
	return copies.failed ? mw_error_nomem() : NULL;
}

struct mw_error *mw_kept_heap_take(struct mw_kept_heap *kept, const struct mw_stored_heap *part)
{
	if (part->part >= MW_STORED_HEAP_PARTS)
		return NULL;
	if (!kept->report && part->part != MW_STORED_HEAP_HEAD)
		return invalid("its head is missing");
	switch ((enum mw_stored_heap_part)part->part) {
	case MW_STORED_HEAP_HEAD:
		return take_head(kept, &part->head);
	case MW_STORED_HEAP_LINE:
		return take_line(kept, &part->line);
	case MW_STORED_HEAP_ALLOCATOR:
		return take_allocator(kept, &part->allocator);
	case MW_STORED_HEAP_GROUP:
		return take_group(kept, &part->group);
	case MW_STORED_HEAP_CONTENT:
		return take_content(kept, &part->content);
	case MW_STORED_HEAP_GAP:
		return take_gap(kept, &part->gap);
	case MW_STORED_HEAP_HOLDER:
		return take_holder(kept, &part->holder);
	case MW_STORED_HEAP_ADVICE:
		return take_advice(kept, part->advice);
	case MW_STORED_HEAP_PARTS:
		break;
	}
	return NULL;
}

bool mw_kept_heap_is_whole(const struct mw_kept_heap *kept)
{
	const struct mw_heap_report *report = kept->report;

	return report && report->line_count == kept->lines && report->allocator_count == kept->allocators &&
	       report->group_count == kept->groups && report->gap_count == kept->gaps &&
	       report->holder_count == kept->holders && report->advice_count == kept->advice && !kept->contents;
}

void mw_kept_heap_deinit(struct mw_kept_heap *kept)
{
	mw_heap_report_destroy(kept->report);
	*kept = (struct mw_kept_heap){.report = NULL};
}

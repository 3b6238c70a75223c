// SPDX-License-Identifier: MIT
/* survey.c: account, allocators and groups of blocks (survey.h). */
#include "heap/survey.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/vector.h"
#include "heap/first_word.h"
#include "heap/pinned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the account ---------------------------------------------------------------------------------------------------- */

/* Lines are found by their name, which is static, and what stands beside it. */
struct account {
	struct mw_heap_line *lines;
	size_t count, capacity;
};

static struct mw_error *charge(struct account *account, const char *name, const char *detail,
			       struct mw_image_residence of)
{
	struct mw_heap_line *line = NULL;

	if (!of.resident && !of.swapped)
		return NULL;
	for (size_t i = 0; i < account->count && !line; i++)
		if (account->lines[i].name == name && strcmp(account->lines[i].detail, detail) == 0)
			line = &account->lines[i];
	if (!line) {
		char *copy = strdup(detail);

		if (!copy || !MW_VECTOR_ROOM(account->lines, account->count, account->capacity)) {
			free(copy);
			return mw_error_nomem();
		}
		line = &account->lines[account->count++];
		*line = (struct mw_heap_line){.name = name, .detail = copy};
	}
	line->bytes += of.resident;
	line->swapped += of.swapped;
	return NULL;
}

const char mw_survey_live[] = "live blocks", mw_survey_free[] = "free, kept by the allocator",
	   mw_survey_bookkeeping[] = "allocator bookkeeping", mw_survey_anonymous[] = "other anonymous memory",
	   mw_survey_own[] = "memwatch's own memory";
static const char stacks[] = "stacks", code[] = "code", data[] = "file data", shared[] = "shared memory",
		  generated[] = "generated code", special[] = "kernel mappings (vdso)",
		  zeroed[] = "zeroed data of files (.bss)";

/* What an arena's memory is for. */
struct arena_sums {
	struct mw_image_residence live, free, own;
};

static bool holds_sp(const struct mw_image *image, const struct mw_image_mapping *mapping)
{
	MW_EACH(thread, image->threads, image->thread_count)
		if (thread->sp >= mapping->start && thread->sp < mapping->end)
			return true;
	return false;
}

/* What a mapping is for, where no allocator has it. */
static const char *use_of(const struct mw_image *image, const struct mw_image_mapping *mapping)
{
	if (mapping->shared)
		return shared;
	if (mapping->inode)
		return mapping->exec ? code : data;
	if (strcmp(mapping->path, "[heap]") == 0)
		return mw_survey_anonymous;
	if (strncmp(mapping->path, "[stack", 6) == 0 || holds_sp(image, mapping))
		return stacks;
	if (mapping->path[0] == '[' && strncmp(mapping->path, "[anon", 5) != 0)
		return special;
	return mapping->exec ? generated : mw_survey_anonymous;
}

/* --- groups --------------------------------------------------------------------------------------------------------- */

struct key {
	const char *class_name;
	uint64_t size;
	uint32_t arena;
	enum mw_reach verdict;
};

struct survey {
	const struct mw_survey_input *input;
	struct mw_heap_report *report;
	struct account account;
	struct arena_sums *arenas;     /* by arena */
	struct mw_amount *live, *free; /* by allocator */
	struct mw_index index;
	struct key *keys; /* by group */
	struct mw_heap_group *groups;
	size_t key_capacity, group_capacity;
	struct mw_first_words words;
	/* The part of memory, of one state, that was found last. */
	struct mw_image_residence part;
	mw_addr part_start, part_end;
	bool no_memory;                /* for a text */
	struct mw_image_residence own; /* memwatch's */
};

/* NULL stays NULL. */
static char *copy_of(struct survey *survey, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	survey->no_memory = survey->no_memory || (text && !copy);
	return copy;
}

static uint32_t hash_of(const struct key *key)
{
	uint64_t hash = mw_hash_add(0, (uintptr_t)key->class_name);

	hash = mw_hash_add(hash, key->size);
	return (uint32_t)mw_hash_mix(mw_hash_add(hash, key->arena * UINT64_C(16) + key->verdict));
}

static uint32_t hash_of_number(const void *context, uint32_t number)
{
	return hash_of(&((const struct key *)context)[number]);
}

/* NULL without memory. */
static struct mw_heap_group *group_of(struct survey *survey, const struct key *key)
{
	uint32_t hash = hash_of(key), number;

	MW_INDEX_EACH(&survey->index, hash, number) {
		const struct key *other = &survey->keys[number];

		if (other->class_name == key->class_name && other->size == key->size && other->arena == key->arena &&
		    other->verdict == key->verdict) {
			return &survey->groups[number];
		}
	}
	if (!mw_index_reserve(&survey->index, hash_of_number, survey->keys) ||
	    !MW_VECTOR_ROOM(survey->keys, survey->index.count, survey->key_capacity) ||
	    !MW_VECTOR_ROOM(survey->groups, survey->index.count, survey->group_capacity))
		return NULL;
	number = mw_index_put(&survey->index, hash);
	survey->keys[number] = *key;
	survey->groups[number] = (struct mw_heap_group){.size = key->size, .verdict = key->verdict};
	return &survey->groups[number];
}

static struct mw_error *add_block(struct survey *survey, const struct mw_span *span, const struct mw_segment *segment)
{
	const struct mw_survey_input *input = survey->input;
	struct key key = {.size = MW_SIZE_UNKNOWN, .arena = UINT32_MAX, .verdict = MW_REACH_COUNT};
	struct mw_heap_group *group;

	if (input->by & MW_HEAP_BY_CLASS) {
		uint64_t word;

		MW_TRY(mw_first_word(&survey->words, input->image, segment->start, &word));
		MW_TRY(mw_classes_of_block(input->classes, segment->start, segment->size, word, &key.class_name));
	}
	if (input->by & MW_HEAP_BY_SIZE)
		key.size = segment->size;
	if (input->by & MW_HEAP_BY_ARENA)
		key.arena = span->arena;
	if (input->reached) {
		key.verdict = mw_reached_of(input->reached, segment->number);
		mw_amount_add(&survey->report->leaks[key.verdict], (struct mw_amount){1, segment->size});
	}
	group = group_of(survey, &key);
	if (!group)
		return mw_error_nomem();
	mw_amount_add(&group->blocks, (struct mw_amount){1, segment->size});
	if (group->sample_count < MW_HEAP_SAMPLES)
		group->samples[group->sample_count++] = segment->start;
	return NULL;
}

/* --- once through ---------------------------------------------------------------------------------------------------- */

/* As mw_image_residence(), of ranges by address: most lie in one part. */
static void add_residence(struct survey *survey, mw_addr start, mw_addr end, struct mw_image_residence *sum)
{
	const struct mw_image *image = survey->input->image;
	struct mw_image_residence of;

	if (start >= survey->part_end || start < survey->part_start) {
		survey->part_start = start;
		if (!mw_image_next_present(image, start, UINT64_MAX, &survey->part_start, &survey->part_end))
			survey->part_end = UINT64_MAX;
		else if (survey->part_start > start) {
			/* Nothing up to there. */
			survey->part_end = survey->part_start;
			survey->part_start = start;
			survey->part = (struct mw_image_residence){0};
		}
		survey->part = mw_image_residence(image, survey->part_start, survey->part_end);
	}
	if (end <= survey->part_end && (!survey->part.swapped || !survey->part.resident)) {
		sum->resident += survey->part.resident ? end - start : 0;
		sum->swapped += survey->part.swapped ? end - start : 0;
		return;
	}
	of = mw_image_residence(image, start, end);
	sum->resident += of.resident;
	sum->swapped += of.swapped;
}

static struct mw_error *survey_span(struct survey *survey, const struct mw_span *span)
{
	size_t count;
	uint32_t allocator = mw_blocks_arenas(survey->input->blocks, &count)[span->arena].allocator;
	struct arena_sums *sums = &survey->arenas[span->arena];
	struct mw_segment segment;

	for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
		mw_addr end = segment.start + segment.size;

		add_residence(survey, segment.start, end, segment.live ? &sums->live : &sums->free);
		if (end < at)
			add_residence(survey, end, at, &sums->own);
		mw_amount_add(segment.live ? &survey->live[allocator] : &survey->free[allocator],
			      (struct mw_amount){1, segment.size});
		if (segment.live)
			MW_TRY(add_block(survey, span, &segment));
	}
	return NULL;
}

static struct mw_error *charge_arenas(struct survey *survey)
{
	size_t count, allocator_count;
	const struct mw_heap_arena *arenas = mw_blocks_arenas(survey->input->blocks, &count);
	const struct mw_heap_allocator *allocators = mw_blocks_allocators(survey->input->blocks, &allocator_count);

	for (size_t i = 0; i < count; i++) {
		const char *allocator = allocators[arenas[i].allocator].name;
		char detail[64];

		/* Of many arenas a line each would be no account: threads' are one. */
		snprintf(detail, sizeof(detail), "%s, %s", allocator,
			 strncmp(arenas[i].name, "arena ", 6) == 0 ? "threads' arenas" : arenas[i].name);
		if (strcmp(arenas[i].name, "") == 0)
			snprintf(detail, sizeof(detail), "%s", allocator);
		MW_TRY(charge(&survey->account, mw_survey_live, detail, survey->arenas[i].live));
		MW_TRY(charge(&survey->account, mw_survey_free, detail, survey->arenas[i].free));
		MW_TRY(charge(&survey->account, mw_survey_bookkeeping, detail, survey->arenas[i].own));
	}
	return NULL;
}

/* The next range from `at` on that an allocator has, of spans and bookkeeping, which are by address. */
struct owned {
	const struct mw_span *spans;
	const struct mw_bookkeeping *ranges;
	size_t span_count, range_count, span, range;
};

static bool next_owned(struct owned *owned, mw_addr at, mw_addr *start, mw_addr *end)
{
	bool has_span, has_range;

	while (owned->span < owned->span_count && owned->spans[owned->span].end <= at)
		owned->span++;
	while (owned->range < owned->range_count && owned->ranges[owned->range].end <= at)
		owned->range++;
	has_span = owned->span < owned->span_count;
	has_range = owned->range < owned->range_count;
	if (has_span && (!has_range || owned->spans[owned->span].start <= owned->ranges[owned->range].start)) {
		*start = owned->spans[owned->span].start;
		*end = owned->spans[owned->span].end;
		return true;
	}
	if (has_range) {
		*start = owned->ranges[owned->range].start;
		*end = owned->ranges[owned->range].end;
	}
	return has_range;
}

/* Of a range that no allocator has: what is not memwatch's. */
static void add_unowned(struct survey *survey, mw_addr at, mw_addr end, struct mw_image_residence *rest)
{
	for (size_t i = 0; i < survey->input->hole_count && at < end; i++) {
		const struct mw_reach_hole *hole = &survey->input->holes[i];
		mw_addr start = hole->start > at ? hole->start : at, stop = hole->end < end ? hole->end : end;

		if (start >= stop)
			continue;
		if (start > at)
			add_residence(survey, at, start, rest);
		add_residence(survey, start, stop, &survey->own);
		at = stop;
	}
	if (at < end)
		add_residence(survey, at, end, rest);
}

/* What of [at, end) no allocator has. */
static struct mw_image_residence residence_of_rest(struct survey *survey, struct owned *owned, mw_addr at, mw_addr end)
{
	struct mw_image_residence rest = {0};

	while (at < end) {
		mw_addr from, to;

		if (!next_owned(owned, at, &from, &to) || from >= end)
			from = to = end;
		if (from > at)
			add_unowned(survey, at, from, &rest);
		at = to > at ? to : from;
	}
	return rest;
}

/* The part of [at, end) that begins there: where it ends, and which space of a runtime it is in; NULL: in
 * none. */
static mw_addr part_of(const struct mw_survey_input *input, mw_addr at, mw_addr end,
		       const struct mw_script_space **space)
{
	size_t i = mw_vector_up_to(input->spaces, input->space_count, sizeof(*input->spaces),
				   offsetof(struct mw_script_space, high), at);
	mw_addr part_end = end;

	*space = NULL;
	if (i < input->space_count && input->spaces[i].low > at)
		part_end = input->spaces[i].low;
	else if (i < input->space_count) {
		*space = &input->spaces[i];
		part_end = (*space)->high;
	}
	return part_end < end ? part_end : end;
}

static struct mw_error *charge_mapping(struct survey *survey, const struct mw_image_mapping *mapping, mw_addr at,
				       struct owned *owned)
{
	const char *use = use_of(survey->input->image, mapping);
	const char *path = use == mw_survey_anonymous || use == shared ? mapping->path : "";
	bool may_be_a_space = use == mw_survey_anonymous || use == generated || use == stacks || use == shared;

	while (at < mapping->end) {
		const struct mw_script_space *space = NULL;
		mw_addr end = may_be_a_space ? part_of(survey->input, at, mapping->end, &space) : mapping->end;
		struct mw_image_residence rest = residence_of_rest(survey, owned, at, end);

		if (space)
			MW_TRY(charge(&survey->account, space->is_stack ? stacks : space->runtime,
				      space->is_stack ? "" : space->name, rest));
		else
			MW_TRY(charge(&survey->account, use, path, rest));
		at = end;
	}
	return NULL;
}

/* What runtimes say of what they have, beside how much of it is resident. */
static void tell_spaces(const struct mw_survey_input *input, const struct account *account)
{
	for (size_t i = 0; i < input->space_count; i++) {
		const struct mw_script_space *space = &input->spaces[i];

		for (size_t j = 0; j < account->count && !space->is_stack; j++) {
			struct mw_heap_line *line = &account->lines[j];

			if (line->name != space->runtime || strcmp(line->detail, space->name) != 0)
				continue;
			line->reserved += space->high - space->low;
			line->committed += space->committed;
			line->used += space->used;
			break;
		}
	}
}

/* What of the mappings no allocator has. */
static struct mw_error *charge_mappings(struct survey *survey)
{
	const struct mw_image *image = survey->input->image;
	struct owned owned = {0};

	owned.spans = mw_blocks_spans(survey->input->blocks, &owned.span_count);
	owned.ranges = mw_blocks_bookkeeping(survey->input->blocks, &owned.range_count);
	MW_EACH(mapping, image->mappings, image->mapping_count) {
		mw_addr at = mapping->bss_end ? mapping->bss_end : mapping->start;

		if (at > mapping->start)
			MW_TRY(charge(&survey->account, zeroed, "",
				      residence_of_rest(survey, &owned, mapping->start, at)));
		MW_TRY(charge_mapping(survey, mapping, at, &owned));
	}
	tell_spaces(survey->input, &survey->account);
	return charge(&survey->account, mw_survey_own, "", survey->own);
}

/* Where what allocators have begins that ends behind `at`. */
static struct owned owned_from(const struct mw_blocks *blocks, mw_addr at)
{
	struct owned owned = {0};

	owned.spans = mw_blocks_spans(blocks, &owned.span_count);
	owned.ranges = mw_blocks_bookkeeping(blocks, &owned.range_count);
	owned.span =
		mw_vector_up_to(owned.spans, owned.span_count, sizeof(*owned.spans), offsetof(struct mw_span, end), at);
	/* These may lie in one another: the first that begins behind it, and those before. */
	while (owned.range < owned.range_count && owned.ranges[owned.range].end <= at)
		owned.range++;
	return owned;
}

/* The same of a part of a mapping that is on that line. */
static uint64_t mapped_in(const struct mw_survey_input *input, mw_addr at, mw_addr end)
{
	struct survey survey = {.input = input};
	struct owned owned = owned_from(input->blocks, at);

	return residence_of_rest(&survey, &owned, at, end).resident;
}

uint64_t mw_survey_mapped(const struct mw_survey_input *input, mw_addr start, mw_addr end)
{
	const struct mw_image *image = input->image;
	size_t i = mw_vector_up_to(image->mappings, image->mapping_count, sizeof(*image->mappings),
				   offsetof(struct mw_image_mapping, end), start);
	uint64_t bytes = 0;

	for (; i < image->mapping_count && image->mappings[i].start < end; i++) {
		const struct mw_image_mapping *mapping = &image->mappings[i];
		mw_addr from = mapping->bss_end ? mapping->bss_end : mapping->start,
			to = mapping->end < end ? mapping->end : end;

		if (from < start)
			from = start;
		while (from < to && use_of(image, mapping) == mw_survey_anonymous) {
			const struct mw_script_space *space;
			mw_addr part_end = part_of(input, from, to, &space);

			bytes += space ? 0 : mapped_in(input, from, part_end);
			from = part_end;
		}
	}
	return bytes;
}

/* Bookkeeping that lies in a span or in an earlier range would count twice: what is left of each. */
static void add_bookkeeping(struct survey *survey)
{
	const struct mw_blocks *blocks = survey->input->blocks;
	size_t count, span_count, span = 0;
	const struct mw_bookkeeping *ranges = mw_blocks_bookkeeping(blocks, &count);
	const struct mw_span *spans = mw_blocks_spans(blocks, &span_count);
	mw_addr done = 0;

	for (size_t i = 0; i < count; i++) {
		mw_addr at = ranges[i].start > done ? ranges[i].start : done;

		while (span < span_count && spans[span].end <= at)
			span++;
		for (size_t j = span; at < ranges[i].end; j++) {
			mw_addr end = ranges[i].end;

			if (j < span_count && spans[j].start < end)
				end = spans[j].start;
			if (end > at)
				add_residence(survey, at, end, &survey->arenas[ranges[i].arena].own);
			at = j < span_count && spans[j].start < ranges[i].end ? spans[j].end : ranges[i].end;
		}
		if (ranges[i].end > done)
			done = ranges[i].end;
	}
}

/* --- the report ------------------------------------------------------------------------------------------------------ */

static struct mw_error *report_allocators(struct survey *survey)
{
	size_t count, arena_count;
	const struct mw_heap_allocator *allocators = mw_blocks_allocators(survey->input->blocks, &count);
	const struct mw_heap_arena *arenas = mw_blocks_arenas(survey->input->blocks, &arena_count);
	struct mw_heap_figures *figures = calloc(count + 1, sizeof(*figures));
	struct mw_pinned *pinned;

	if (!figures)
		return mw_error_nomem();
	survey->report->allocators = figures;
	survey->report->allocator_count = count;
	for (size_t i = 0; i < count; i++)
		figures[i] = (struct mw_heap_figures){
			.name = allocators[i].name,
			.version = copy_of(survey, allocators[i].version),
			.module = copy_of(survey, allocators[i].module),
			.walked = allocators[i].walked,
			.why = copy_of(survey, allocators[i].why),
			.live = survey->live[i],
			.free = survey->free[i],
			.trimmable = allocators[i].trimmable,
			.cached = allocators[i].cached,
			.skipped = allocators[i].skipped,
		};
	pinned = calloc(arena_count + 1, sizeof(*pinned));
	if (!pinned)
		return mw_error_nomem();
	mw_pinned(survey->input->image, survey->input->blocks, pinned);
	for (size_t i = 0; i < arena_count; i++) {
		struct mw_heap_figures *of = &figures[arenas[i].allocator];

		of->arenas++;
		of->retained += survey->arenas[i].free.resident;
		of->pinned_pages += pinned[i].pages;
		of->pinned += pinned[i].free;
	}
	free(pinned);
	return NULL;
}

static struct mw_error *report_gaps(struct survey *survey)
{
	size_t count;
	const struct mw_heap_skipped *skipped = mw_blocks_skipped(survey->input->blocks, &count);
	struct mw_heap_gap *gaps = calloc(count + 1, sizeof(*gaps));

	if (!gaps)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		gaps[i] = (struct mw_heap_gap){skipped[i].start, skipped[i].bytes, skipped[i].why};
	survey->report->gaps = gaps;
	survey->report->gap_count = count;
	return NULL;
}

static int by_loss(const void *a, const void *b)
{
	const struct mw_heap_group *x = a, *y = b;

	if (x->verdict != y->verdict)
		return x->verdict < y->verdict ? -1 : 1;
	if (x->blocks.bytes != y->blocks.bytes)
		return x->blocks.bytes > y->blocks.bytes ? -1 : 1;
	return x->samples[0] < y->samples[0] ? -1 : x->samples[0] > y->samples[0];
}

static int by_bytes(const void *a, const void *b)
{
	const struct mw_heap_line *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* The groups become the report's, with their names. */
static void report_groups(struct survey *survey)
{
	size_t count, allocator_count;
	const struct mw_heap_arena *arenas = mw_blocks_arenas(survey->input->blocks, &count);
	const struct mw_heap_allocator *allocators = mw_blocks_allocators(survey->input->blocks, &allocator_count);

	survey->report->groups = survey->groups;
	survey->report->group_count = survey->index.count;
	survey->groups = NULL;
	for (uint32_t i = 0; i < survey->index.count; i++) {
		struct mw_heap_group *group = &survey->report->groups[i];
		uint32_t arena = survey->keys[i].arena;

		group->class_name = copy_of(survey, survey->keys[i].class_name);
		if (arena < count) {
			group->arena = copy_of(survey, arenas[arena].name);
			group->allocator = allocators[arenas[arena].allocator].name;
		} else if (allocator_count == 1) {
			group->allocator = allocators[0].name;
		}
	}
	if (survey->report->groups)
		qsort(survey->report->groups, survey->report->group_count, sizeof(*survey->report->groups), by_loss);
}

static struct mw_error *run(struct survey *survey)
{
	struct mw_heap_report *report = survey->report;
	size_t span_count;
	const struct mw_span *spans = mw_blocks_spans(survey->input->blocks, &span_count);

	MW_EACH(span, spans, span_count)
		MW_TRY(survey_span(survey, span));
	add_bookkeeping(survey);
	MW_TRY(charge_arenas(survey));
	MW_TRY(charge_mappings(survey));
	MW_TRY(report_allocators(survey));
	MW_TRY(report_gaps(survey));
	report_groups(survey);
	report->lines = survey->account.lines;
	report->line_count = survey->account.count;
	survey->account = (struct account){0};
	if (report->lines)
		qsort(report->lines, report->line_count, sizeof(*report->lines), by_bytes);
	MW_EACH(line, report->lines, report->line_count) {
		report->rss += line->bytes;
		report->swapped += line->swapped;
	}
	return survey->no_memory ? mw_error_nomem() : NULL;
}

struct mw_error *mw_survey(const struct mw_survey_input *input, struct mw_heap_report *report)
{
	struct survey survey = {.input = input, .report = report};
	struct mw_error *err = mw_error_nomem();
	size_t arenas, allocators;

	mw_blocks_arenas(input->blocks, &arenas);
	mw_blocks_allocators(input->blocks, &allocators);
	survey.arenas = calloc(arenas + 1, sizeof(*survey.arenas));
	survey.live = calloc(allocators + 1, sizeof(*survey.live));
	survey.free = calloc(allocators + 1, sizeof(*survey.free));
	if (survey.arenas && survey.live && survey.free) {
		mw_error_destroy(err);
		err = run(&survey);
	}
	MW_EACH(line, survey.account.lines, survey.account.count)
		free(line->detail);
	free(survey.account.lines);
	free(survey.arenas);
	free(survey.live);
	free(survey.free);
	mw_first_words_deinit(&survey.words);
	free(survey.keys);
	free(survey.groups);
	mw_index_deinit(&survey.index);
	return err;
}

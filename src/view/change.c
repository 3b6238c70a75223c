// SPDX-License-Identifier: MIT
/* change.c: see change.h. */
#include "view/change.h"

#include "base/cleanup.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

static const char blocks_name[] = "blocks not freed", mappings_name[] = "anonymous mappings";

struct parts {
	struct mw_arena *arena;
	struct mw_heap_change *items;
	size_t count, capacity;
	int64_t sums[MW_HEAP_CHANGE_COUNT], sum;
	bool overflow; /* of what is read: they can't be right */
};

static void parts_deinit(struct parts *parts)
{
	free(parts->items);
}

static struct mw_error *add(void *context, const struct mw_heap_change *part)
{
	struct parts *parts = context;

	if (!part->bytes)
		return NULL;
	if (!MW_VECTOR_ROOM(parts->items, parts->count, parts->capacity))
		return mw_error_nomem();
	parts->items[parts->count] = *part;
	parts->items[parts->count].name = mw_arena_string(parts->arena, part->name);
	parts->items[parts->count++].detail = mw_arena_string(parts->arena, part->detail);
	parts->overflow = __builtin_add_overflow(parts->sums[part->kind], part->bytes, &parts->sums[part->kind]) ||
			  __builtin_add_overflow(parts->sum, part->bytes, &parts->sum) || parts->overflow;
	return mw_arena_failed(parts->arena) ? mw_error_nomem() : NULL;
}

static uint64_t magnitude(int64_t bytes)
{
	return bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
}

static int by_magnitude(const void *a, const void *b)
{
	const struct mw_heap_change *x = a, *y = b;
	int order;

	if (magnitude(x->bytes) != magnitude(y->bytes))
		return magnitude(x->bytes) > magnitude(y->bytes) ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	order = strcmp(x->name, y->name);
	if (!order)
		order = strcmp(x->detail, y->detail);
	return order ? order : (x->stack > y->stack) - (x->stack < y->stack);
}

/* The parts become the report's. */
static struct mw_error *finish(struct parts *parts, struct mw_report *report, uint64_t before, uint64_t after)
{
	struct mw_report_change *change = mw_arena_array(parts->arena, 1, sizeof(*change));

	if (!change)
		return mw_error_nomem();
	*change = (struct mw_report_change){.before = before, .after = after, .part_count = parts->count};
	memcpy(change->sums, parts->sums, sizeof(change->sums));
	change->parts = mw_arena_array(parts->arena, parts->count, sizeof(*change->parts));
	if (!change->parts)
		return mw_error_nomem();
	if (parts->count) {
		memcpy(change->parts, parts->items, parts->count * sizeof(*parts->items));
		qsort(change->parts, parts->count, sizeof(*change->parts), by_magnitude);
	}
	report->change = change;
	return NULL;
}

/* --- by asking looks ------------------------------------------------------------------------------------------------- */

struct found {
	uint64_t blocks, mapped;
};

struct walk {
	const struct mw_summary_change *change;
	struct found *found; /* by the report's stacks */
};

/* Blocks that were freed since the window's end may have been there yet when the heap was looked at, as may others that
 * stand in a block's place: the look knows. */
static void visit(void *context, uint32_t group, const struct mw_track_block *block, bool first)
{
	const struct walk *walk = context;
	const struct mw_summary_change *change = walk->change;

	(void)first;
	if (block->kind == MW_KIND_HEAP)
		walk->found[group].blocks += change->block(change->context, block->addr);
	else if (block->kind == MW_KIND_VM)
		walk->found[group].mapped += change->mapping(change->context, block->addr, block->addr + block->bytes);
}

static struct mw_error *ask(const struct mw_summary_input *input, struct parts *parts, struct mw_report *report,
			    const uint32_t *group_of)
{
	MW_FREE struct found *found = calloc(report->stack_count + 1, sizeof(*found));
	struct walk walk = {input->change, found};
	uint64_t before = 0, after = 0;

	if (!found)
		return mw_error_nomem();
	mw_view_each_block(input->track, group_of, visit, &walk);
	for (size_t i = 0; i < report->stack_count; i++) {
		uint64_t stack = strtoull(report->stacks[i].id, NULL, 16);

		MW_TRY(add(parts, &(const struct mw_heap_change){MW_HEAP_CHANGE_BLOCKS, blocks_name, "", stack,
								 (int64_t)found[i].blocks}));
		MW_TRY(add(parts, &(const struct mw_heap_change){MW_HEAP_CHANGE_MAPPINGS, mappings_name, "", stack,
								 (int64_t)found[i].mapped}));
	}
	MW_TRY(input->change->rest(input->change->context, add, parts, &before, &after));
	return finish(parts, report, before, after);
}

/* --- from a recording -------------------------------------------------------------------------------------------------- */

static struct mw_error *find(const struct mw_summary_input *input, struct parts *parts, struct mw_report *report)
{
	int64_t rss[2] = {-1, -1};

	for (size_t i = 0; i < input->stored_changes_count; i++) {
		const struct mw_stored_change *stored = &input->stored_changes[i];
		const struct mw_heap_change part = {(enum mw_heap_change_kind)stored->kind, stored->name,
						    stored->detail, stored->stack, stored->bytes};

		if (stored->kind == MW_STORED_CHANGE_RSS_BEFORE || stored->kind == MW_STORED_CHANGE_RSS_AFTER)
			rss[stored->kind == MW_STORED_CHANGE_RSS_AFTER] = stored->bytes;
		else if (stored->kind < MW_HEAP_CHANGE_COUNT)
			MW_TRY(add(parts, &part));
	}
	/* A recording that was cut off has not all of them. */
	if (rss[0] < 0 || rss[1] < 0 || parts->overflow || rss[1] - rss[0] != parts->sum)
		return NULL;
	return finish(parts, report, (uint64_t)rss[0], (uint64_t)rss[1]);
}

struct mw_error *mw_view_change(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
				const uint32_t *group_of)
{
	bool whole = !input->from_ns && (!input->to_ns || !input->window || input->to_ns >= input->window->length_ns);
	MW_CLEANUP(parts_deinit) struct parts parts = {.arena = arena};

	if (input->change)
		return ask(input, &parts, report, group_of);
	return whole && input->stored_changes_count ? find(input, &parts, report) : NULL;
}

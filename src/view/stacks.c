// SPDX-License-Identifier: MIT
/* stacks.c: tracker stacks grouped by id, their sums, frames, threads and ages. */
#include "view/stacks.h"

#include "base/map.h"
#include "base/vector.h"
#include "view/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what only the live blocks know of a stack: its threads and ages ---------------------------------------- */

/* Blocks of one stack that one thread allocated. */
struct share {
	uint32_t stack, thread;
	struct mw_amount impacting;
};

struct walk {
	struct mw_report *report;
	const uint32_t *group_of;
	uint32_t stack_count; /* of the tracker */
	struct mw_map numbering;
	struct share *shares;
	size_t capacity;
	bool failed;
};

static struct share *share_of(struct walk *walk, uint32_t stack, uint32_t thread)
{
	size_t before = walk->numbering.count;
	uint32_t number;

	if (!mw_map_number(&walk->numbering, (uint64_t)stack << 32 | thread, &number))
		return NULL;
	if (walk->numbering.count > before) {
		if (!MW_VECTOR_ROOM(walk->shares, number, walk->capacity))
			return NULL;
		walk->shares[number] = (struct share){.stack = stack, .thread = thread};
	}
	return &walk->shares[number];
}

static bool visit(void *context, const struct mw_track_block *block, bool first)
{
	struct walk *walk = context;
	double at = (double)block->time_ns / 1e9;
	struct mw_report_stack *stack;
	struct share *share;
	uint32_t group;

	if (block->stack >= walk->stack_count)
		return true;
	group = walk->group_of[block->stack];
	if (group == UINT32_MAX)
		return true;
	stack = &walk->report->stacks[group];
	if (!stack->has_ages || at < stack->oldest)
		stack->oldest = at;
	if (!stack->has_ages || at > stack->newest)
		stack->newest = at;
	stack->has_ages = true;
	share = share_of(walk, group, block->thread);
	if (!share) {
		walk->failed = true;
		return false;
	}
	/* A mapping that was cut into pieces is still one block. */
	share->impacting.count += first;
	share->impacting.bytes += block->bytes;
	return true;
}

static int compare_shares(const void *left, const void *right)
{
	const struct share *a = left, *b = right;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->impacting.bytes != b->impacting.bytes)
		return a->impacting.bytes > b->impacting.bytes ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static void fill_thread(const struct mw_track *track, struct mw_arena *arena, const struct share *share,
			struct mw_report_thread *out)
{
	struct mw_track_thread thread;

	out->impacting = share->impacting;
	if (share->thread >= mw_track_thread_count(track))
		return;
	mw_track_thread(track, share->thread, &thread);
	out->tid = thread.tid;
	out->name = mw_arena_string(arena, thread.name);
}

/* Shares, sorted by stack, become each stack's part of one array of threads. */
static struct mw_error *hand_out(struct walk *walk, const struct mw_track *track, struct mw_arena *arena)
{
	size_t count = walk->numbering.count;
	struct mw_report_thread *threads = mw_arena_array(arena, count, sizeof(*threads));

	if (!threads)
		return mw_error_nomem();
	if (count)
		qsort(walk->shares, count, sizeof(*walk->shares), compare_shares);
	for (size_t i = 0; i < count; i++) {
		struct mw_report_stack *stack = &walk->report->stacks[walk->shares[i].stack];

		fill_thread(track, arena, &walk->shares[i], &threads[i]);
		if (!stack->thread_count)
			stack->threads = &threads[i];
		stack->thread_count++;
	}
	return NULL;
}

static struct mw_error *add_live_blocks(const struct mw_summary_input *input, struct mw_arena *arena,
					struct mw_report *report, const uint32_t *group_of)
{
	struct walk walk = {.report = report, .group_of = group_of};
	struct mw_error *err;

	walk.stack_count = mw_track_stack_count(input->track);
	mw_track_each_block(input->track, visit, &walk);
	err = walk.failed ? mw_error_nomem() : hand_out(&walk, input->track, arena);
	mw_map_deinit(&walk.numbering);
	free(walk.shares);
	return err;
}

/* --- stacks ------------------------------------------------------------------------------------------------- */

#define PROGRESS_EVERY 256

struct builder {
	const struct mw_summary_input *input;
	struct mw_arena *arena;
	struct mw_report *report;
	struct mw_stack_ids *ids;
	struct mw_framer *framer;
	struct mw_map numbering; /* id to group */
	uint32_t *group_of;      /* of each tracker stack */
	uint32_t *members;       /* tracker stacks in order of their groups … */
	uint32_t *begin;         /* … and where each group begins among them */
	struct mw_raw_frame *raw;
	size_t raw_capacity;
};

static bool is_empty(const struct mw_track_totals *totals)
{
	/* Of an older mapping a piece may have gone, which counts as no block yet. */
	return !totals->size.count && !totals->aofi.count && !totals->aofi.bytes && !totals->aofo.count;
}

/* Read a tracker stack's frames into the builder's buffer. */
static struct mw_error *read_frames(struct builder *builder, uint32_t stack, uint32_t count)
{
	if (!MW_VECTOR_ROOM(builder->raw, count, builder->raw_capacity))
		return mw_error_nomem();
	mw_track_frames(builder->input->track, stack, builder->raw, count);
	return NULL;
}

/* The entry point's name, or NULL: the tracker makes stacks of no hook for events that came without one. */
static const char *api_of(const struct mw_summary_input *input, uint32_t hook)
{
	return hook < input->hook_count ? input->hooks[hook].function : NULL;
}

/*
 * Give each tracker stack its group; ids[] receives the groups' ids. Twice over the tracker, here and
 * for the sums, because only then is it known how many groups there are to make room for.
 */
static struct mw_error *group_stacks(struct builder *builder, uint64_t *ids)
{
	const struct mw_summary_input *input = builder->input;
	uint32_t count = mw_track_stack_count(input->track);

	for (uint32_t i = 0; i < count; i++) {
		struct mw_track_stack stack;
		size_t before = builder->numbering.count;
		uint32_t group;
		uint64_t id;

		mw_track_stack(input->track, i, &stack);
		builder->group_of[i] = UINT32_MAX;
		/* A call that failed leaves a stack under which nothing happened. */
		if (is_empty(&stack.totals))
			continue;
		MW_TRY(read_frames(builder, i, stack.frame_count));
		MW_TRY(mw_stack_id(builder->ids, stack.kind, api_of(input, stack.hook), builder->raw, stack.frame_count,
				   &id));
		if (!mw_map_number(&builder->numbering, id, &group))
			return mw_error_nomem();
		builder->group_of[i] = group;
		if (builder->numbering.count > before)
			ids[group] = id;
	}
	return NULL;
}

static void list_members(struct builder *builder)
{
	uint32_t count = mw_track_stack_count(builder->input->track);
	/* One further than where the groups' beginnings are to be: putting its members in moves each there. */
	uint32_t *next = builder->begin + 1;

	for (uint32_t i = 0; i < count; i++)
		if (builder->group_of[i] != UINT32_MAX)
			next[builder->group_of[i] + 1]++;
	for (uint32_t group = 0; group < builder->numbering.count; group++)
		next[group + 1] += next[group];
	for (uint32_t i = 0; i < count; i++)
		if (builder->group_of[i] != UINT32_MAX)
			builder->members[next[builder->group_of[i]]++] = i;
}

/*
 * Two peaks at different times can't be added, and what both held at one moment is not recorded. The
 * higher one is kept: the true peak of the sum is that or more.
 */
static void merge_peak(struct mw_report_peak *peak, const struct mw_track_peak *other)
{
	if (other->amount.bytes < peak->bytes || (other->amount.bytes == peak->bytes && peak->count))
		return;
	peak->count = other->amount.count;
	peak->bytes = other->amount.bytes;
	peak->at = (double)other->at_ns / 1e9;
}

static void set_lifetime(struct mw_report_stack *stack, const struct mw_track_lifetime *lifetime)
{
	stack->has_lifetime = lifetime->count > 0;
	stack->lifetime_min_ns = lifetime->min_ns;
	stack->lifetime_median_ns = lifetime->median_ns;
	stack->lifetime_p99_ns = lifetime->p99_ns;
	stack->lifetime_max_ns = lifetime->max_ns;
}

static void merge(struct mw_report_stack *stack, const struct mw_track_stack *other)
{
	merge_peak(&stack->peak, &other->totals.peak);
	mw_amount_add(&stack->size, other->totals.size);
	mw_amount_add(&stack->impacting, other->totals.impacting);
	mw_amount_add(&stack->transient, other->totals.transient);
	mw_amount_add(&stack->aofi, other->totals.aofi);
	mw_amount_add(&stack->aofo, other->totals.aofo);
	stack->aofi_unknown += other->totals.aofi_unknown;
	if (other->cut > stack->cut)
		stack->cut = other->cut;
}

static struct mw_error *sum_groups(struct builder *builder)
{
	const struct mw_track *track = builder->input->track;

	for (size_t group = 0; group < builder->report->stack_count; group++) {
		struct mw_report_stack *sum = &builder->report->stacks[group];
		const uint32_t *members = builder->members + builder->begin[group];
		size_t count = builder->begin[group + 1] - builder->begin[group];
		struct mw_track_lifetime lifetime = {0};

		for (size_t i = 0; i < count; i++) {
			struct mw_track_stack stack;

			mw_track_stack(track, members[i], &stack);
			merge(sum, &stack);
			lifetime = stack.lifetime;
		}
		if (count > 1)
			MW_TRY(mw_track_lifetime(track, members, count, &lifetime));
		set_lifetime(sum, &lifetime);
	}
	return NULL;
}

static struct mw_error *name_groups(struct builder *builder, const uint64_t *ids)
{
	const struct mw_summary_input *input = builder->input;
	size_t total = builder->report->stack_count;

	for (size_t group = 0; group < total; group++) {
		struct mw_report_stack *stack = &builder->report->stacks[group];
		uint32_t first = builder->members[builder->begin[group]];
		struct mw_track_stack tracked;

		if (input->progress && group % PROGRESS_EVERY == 0)
			input->progress(input->progress_context, group, total);
		mw_track_stack(input->track, first, &tracked);
		snprintf(stack->id, sizeof(stack->id), "%016" PRIx64, ids[group]);
		stack->kind = tracked.kind;
		stack->api = mw_arena_string(builder->arena, api_of(input, tracked.hook));
		MW_TRY(read_frames(builder, first, tracked.frame_count));
		MW_TRY(mw_framer_fill(builder->framer, builder->raw, tracked.frame_count, stack));
	}
	if (input->progress)
		input->progress(input->progress_context, total, total);
	return NULL;
}

static struct mw_error *build(struct builder *builder, uint64_t *ids)
{
	const struct mw_view_code code = {builder->input->regions, builder->input->symbols};
	struct mw_report *report = builder->report;

	MW_TRY(mw_stack_ids_create(builder->input->modules, builder->input->module_count, &code, &builder->ids));
	MW_TRY(mw_framer_create(builder->input, builder->arena, &builder->framer));
	MW_TRY(group_stacks(builder, ids));
	report->stacks = mw_arena_array(builder->arena, builder->numbering.count, sizeof(*report->stacks));
	if (!report->stacks)
		return mw_error_nomem();
	report->stack_count = builder->numbering.count;
	list_members(builder);
	MW_TRY(sum_groups(builder));
	return name_groups(builder, ids);
}

struct mw_error *mw_view_stacks(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
				uint32_t **group_of)
{
	struct builder builder = {.input = input, .arena = arena, .report = report};
	size_t count = mw_track_stack_count(input->track);
	uint64_t *ids = calloc(count + 1, sizeof(*ids));
	struct mw_error *err = NULL;

	builder.group_of = calloc(count + 1, sizeof(*builder.group_of));
	builder.members = calloc(count + 1, sizeof(*builder.members));
	builder.begin = calloc(count + 2, sizeof(*builder.begin));
	if (!ids || !builder.group_of || !builder.members || !builder.begin)
		err = mw_error_nomem();
	else
		err = build(&builder, ids);
	mw_stack_ids_destroy(builder.ids);
	mw_framer_destroy(builder.framer);
	mw_map_deinit(&builder.numbering);
	free(builder.members);
	free(builder.begin);
	free(builder.raw);
	free(ids);
	if (!err)
		err = add_live_blocks(input, arena, report, builder.group_of);
	if (err) {
		free(builder.group_of);
		return err;
	}
	*group_of = builder.group_of;
	return NULL;
}

// SPDX-License-Identifier: MIT
/* summary.c: the report of a whole window, put together. */
#include "view/summary.h"

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vector.h"
#include "track/sampling.h"
#include "view/arena.h"
#include "view/change.h"
#include "view/frames.h"
#include "view/growth.h"
#include "view/leaks.h"
#include "view/missing.h"
#include "view/pools.h"
#include "view/suspects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* --- what only the live blocks know of a stack: its threads and ages ---------------------------------------- */

/* Blocks of one stack that one thread allocated. */
struct share {
	uint32_t stack, thread;
	struct mw_amount impacting;
	struct mw_spread spread;
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
	bool stays;

	if (block->stack >= walk->stack_count)
		return true;
	group = walk->group_of[block->stack];
	if (group == UINT32_MAX)
		return true;
	stack = &walk->report->stacks[group];
	/* Blocks that have been freed since matter only where there are no others. */
	stays = stack->settled_later.count == stack->impacting.count || !block->settled;
	if (stays && (!stack->has_ages || at < stack->oldest))
		stack->oldest = at;
	if (stays && (!stack->has_ages || at > stack->newest))
		stack->newest = at;
	stack->has_ages |= stays;
	share = share_of(walk, group, block->thread);
	if (!share) {
		walk->failed = true;
		return false;
	}
	/* A mapping that was cut into pieces is still one block. */
	share->impacting.count += first ? 1 + block->others : 0;
	share->impacting.bytes += (1 + block->others) * block->bytes;
	if (block->kind == MW_KIND_HEAP)
		mw_spread_add(&share->spread,
			      mw_weight_spread((struct mw_weight){block->others, block->variance}, block->bytes));
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
	out->spreads.impacting = share->spread;
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
	struct mw_framer *framer;
	struct mw_map numbering; /* id to group */
	uint32_t *group_of;      /* of each tracker stack */
	uint32_t *members;       /* tracker stacks in order of their groups … */
	uint32_t *begin;         /* … and where each group begins among them */
};

static bool is_empty(const struct mw_track_totals *totals)
{
	/* Of an older mapping a piece may have gone, which counts as no block yet. */
	return !totals->size.count && !totals->aofi.count && !totals->aofi.bytes && !totals->aofo.count;
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
		MW_TRY(mw_framer_id(builder->framer, i, &stack, &id));
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
static void merge_peak(struct mw_report_stack *stack, const struct mw_track_totals *totals)
{
	const struct mw_track_peak *other = &totals->peak;
	struct mw_report_peak *peak = &stack->peak;

	if (other->amount.bytes < peak->bytes || (other->amount.bytes == peak->bytes && peak->count))
		return;
	stack->spreads.peak = totals->spreads.peak;
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
	merge_peak(stack, &other->totals);
	mw_spreads_add(&stack->spreads, &other->totals.spreads);
	mw_amount_add(&stack->size, other->totals.size);
	mw_amount_add(&stack->impacting, other->totals.impacting);
	mw_amount_add(&stack->transient, other->totals.transient);
	mw_amount_add(&stack->aofi, other->totals.aofi);
	mw_amount_add(&stack->aofo, other->totals.aofo);
	mw_amount_add(&stack->settled_later, other->totals.settled_later);
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
		MW_TRY(mw_framer_fill(builder->framer, first, &tracked, stack));
	}
	if (input->progress)
		input->progress(input->progress_context, total, total);
	return NULL;
}

static struct mw_error *build(struct builder *builder, uint64_t *ids)
{
	struct mw_report *report = builder->report;

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

/*
 * Fill report->stacks, in no order yet. Tracker stacks of one id (the same
 * file mapped twice, or unloaded and loaded again) become one. `*group_of` is malloc'ed: for each
 * tracker stack its index in report->stacks, or UINT32_MAX for one that nothing is counted under.
 * Errors: MEMORY.
 */
static struct mw_error *make_stacks(const struct mw_summary_input *input, struct mw_arena *arena,
				    struct mw_report *report, uint32_t **group_of)
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
	mw_framer_destroy(builder.framer);
	mw_map_deinit(&builder.numbering);
	free(builder.members);
	free(builder.begin);
	free(ids);
	if (!err)
		err = add_live_blocks(input, arena, report, builder.group_of);
	if (!err)
		err = mw_view_leaks(input, arena, report, builder.group_of);
	if (!err)
		err = mw_view_change(input, arena, report, builder.group_of);
	if (!err)
		err = mw_view_pools(input, arena, report, builder.group_of);
	if (err) {
		free(builder.group_of);
		return err;
	}
	*group_of = builder.group_of;
	return NULL;
}

/* --- the report --------------------------------------------------------------------------------------------- */

void mw_report_destroy(struct mw_report *report)
{
	if (!report)
		return;
	mw_arena_destroy(report->arena);
	free(report);
}

static struct mw_error *fill_surroundings(const struct mw_stored_target *target, struct mw_arena *arena,
					  struct mw_report *report)
{
	report->target.limit = target->limit;
	if (!target->knows_children)
		return NULL;
	report->target.children = mw_arena_array(arena, target->child_count, sizeof(*report->target.children));
	if (!report->target.children)
		return mw_error_nomem();
	report->target.child_count = target->child_count;
	for (size_t i = 0; i < target->child_count; i++)
		report->target.children[i] = (struct mw_report_child){target->children[i].pid,
								      mw_arena_string(arena, target->children[i].comm),
								      target->children[i].watched};
	return NULL;
}

static struct mw_error *fill_target(const struct mw_summary_input *input, struct mw_arena *arena,
				    struct mw_report *report)
{
	const struct mw_window_info *window = input->window;

	report->target.pid = input->pid;
	report->target.launched = input->launched;
	report->target.attached = input->attached;
	report->target.comm = mw_arena_string(arena, input->comm);
	report->target.exe = mw_arena_string(arena, input->exe);
	report->target.command = mw_arena_array(arena, input->command_count, sizeof(*report->target.command));
	if (!report->target.command)
		return mw_error_nomem();
	report->target.command_count = input->command_count;
	for (size_t i = 0; i < input->command_count; i++)
		report->target.command[i] = mw_arena_string(arena, input->command[i]);
	if (input->target)
		MW_TRY(fill_surroundings(input->target, arena, report));
	if (!window || !window->has_exit_status)
		return NULL;
	if (WIFEXITED(window->exit_status)) {
		report->target.has_exit_status = true;
		report->target.exit_status = WEXITSTATUS(window->exit_status);
	} else if (WIFSIGNALED(window->exit_status)) {
		report->target.has_exit_status = true;
		report->target.exit_signal = WTERMSIG(window->exit_status);
		report->target.exit_status = 128 + report->target.exit_signal;
	}
	return NULL;
}

static struct mw_error *fill_engine(const struct mw_summary_input *input, struct mw_arena *arena,
				    struct mw_report *report)
{
	if (input->window) {
		report->window.started_realtime_ns = input->window->started_realtime_ns;
		report->window.seconds = (double)input->window->length_ns / 1e9;
		report->window.from = (double)input->from_ns / 1e9;
		report->window.to = input->to_ns ? (double)input->to_ns / 1e9 : report->window.seconds;
		report->window.ended = input->window->ended;
	}
	if (input->stats)
		report->engine.stats = *input->stats;
	/* An event that could not be is one that was missed before it: most often a free. */
	report->lost.events = report->engine.stats.lost_events + mw_track_missed(input->track);
	report->lost.stacks = report->engine.stats.lost_stacks;
	report->lost.cut = mw_arena_string(arena, input->cut);
	report->engine.name = mw_arena_string(arena, input->engine);
	report->engine.reason = mw_arena_string(arena, input->engine_reason);
	report->engine.hooks = mw_arena_array(arena, input->hook_count, sizeof(*report->engine.hooks));
	if (!report->engine.hooks)
		return mw_error_nomem();
	report->engine.hook_count = input->hook_count;
	for (size_t i = 0; i < input->hook_count; i++) {
		const struct mw_hook_info *hook = &input->hooks[i];

		report->engine.hooks[i] = (struct mw_report_hook){
			.function = mw_arena_string(arena, hook->function),
			.module = mw_arena_string(arena, hook->module),
			.role = mw_arena_string(arena, mw_role_name(hook->role)),
			.refused = mw_arena_string(arena, hook->refused),
			.address = hook->address,
			.missed = mw_view_is_missed(hook, input->track_heap, input->track_vm),
		};
		report->lost.hooks += report->engine.hooks[i].missed;
	}
	return NULL;
}

static void fill_totals(const struct mw_summary_input *input, struct mw_report *report)
{
	report->tracked[MW_KIND_HEAP] = input->track_heap;
	report->tracked[MW_KIND_VM] = input->track_vm;
	report->tracked[MW_KIND_VM_INTERNAL] = input->track_vm;
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(input->track, (enum mw_kind)kind, &totals);
		report->totals[kind] = (struct mw_report_totals){
			.size = totals.size,
			.impacting = totals.impacting,
			.transient = totals.transient,
			.aofi = totals.aofi,
			.aofi_unknown = totals.aofi_unknown,
			.aofo = totals.aofo,
			.settled_later = totals.settled_later,
			.peak = {totals.peak.amount.count, totals.peak.amount.bytes, (double)totals.peak.at_ns / 1e9},
			.spreads = totals.spreads,
		};
	}
}

/* Since when are blocks sampled as memwatch could not keep up? UINT64_MAX: they are not. In a recording whose end is
 * missing the first one tells. */
static uint64_t sampled_since(const struct mw_report *report, const struct mw_sampling *sampling)
{
	uint64_t since = report->engine.stats.sampled_from_ns, first = UINT64_MAX;

	if (since != MW_SIZE_UNKNOWN)
		return since ? since : UINT64_MAX;
	for (size_t i = 0; i < sampling->interval_count && sampling->exact; i++)
		if (sampling->intervals[i].first_ns < first)
			first = sampling->intervals[i].first_ns;
	return first;
}

static struct mw_error *fill_sampling(const struct mw_summary_input *input, struct mw_arena *arena,
				      struct mw_report *report)
{
	const struct mw_sampling *sampling = mw_track_sampling(input->track);
	struct mw_report_sampling *out = &report->sampling;
	uint64_t since;

	if (!sampling)
		return NULL;
	since = sampled_since(report, sampling);
	/* An interval may be known before the first event of its time. */
	if (since != UINT64_MAX && input->to_ns && input->to_ns <= since)
		return NULL;
	out->intervals = mw_arena_array(arena, sampling->interval_count, sizeof(*out->intervals));
	if (!out->intervals)
		return mw_error_nomem();
	out->count = sampling->interval_count;
	out->exact = sampling->exact;
	for (size_t i = 0; i < out->count; i++) {
		const struct mw_sampled_interval *interval = &sampling->intervals[i];
		bool held = interval->first_ns != UINT64_MAX;

		out->intervals[i] = (struct mw_report_sampled){
			interval->bytes, held ? (double)interval->first_ns / 1e9 : -1, interval->blocks};
	}
	if (since != UINT64_MAX) {
		out->from = (double)since / 1e9;
		out->why = "memwatch could not keep up; --max-wait 100 records every block";
	}
	out->interval = mw_track_sampled(input->track);
	out->unseen = (uint64_t)mw_sampling_limits(0, 0, (double)out->interval).high;
	return NULL;
}

static struct mw_error *fill_memory(const struct mw_summary_input *input, struct mw_arena *arena,
				    struct mw_report *report)
{
	report->memory = mw_arena_array(arena, input->sample_count, sizeof(*report->memory));
	if (!report->memory)
		return mw_error_nomem();
	for (size_t i = 0; i < input->sample_count; i++) {
		const struct mw_report_sample *sample = &input->samples[i];

		if (sample->at >= report->window.from && (!input->to_ns || sample->at <= report->window.to))
			report->memory[report->memory_count++] = *sample;
	}
	return NULL;
}

static struct mw_error *fill_marks(const struct mw_summary_input *input, struct mw_arena *arena,
				   struct mw_report *report)
{
	report->marks = mw_arena_array(arena, input->mark_count, sizeof(*report->marks));
	if (!report->marks)
		return mw_error_nomem();
	for (size_t i = 0; i < input->mark_count; i++) {
		const struct mw_stored_mark *mark = &input->marks[i];

		if (mark->time_ns >= input->from_ns && (!input->to_ns || mark->time_ns <= input->to_ns))
			report->marks[report->mark_count++] = (struct mw_report_mark){
				mark->number, mark->time_ns, mw_arena_string(arena, mark->name)};
	}
	return NULL;
}

/* Most impacting bytes first, then most bytes at all; by hand where a text decides the rest. */
static int compare_amounts(struct mw_amount a_impacting, struct mw_amount a_size, struct mw_amount b_impacting,
			   struct mw_amount b_size)
{
	if (a_impacting.bytes != b_impacting.bytes)
		return a_impacting.bytes > b_impacting.bytes ? -1 : 1;
	if (a_size.bytes != b_size.bytes)
		return a_size.bytes > b_size.bytes ? -1 : 1;
	if (a_size.count != b_size.count)
		return a_size.count > b_size.count ? -1 : 1;
	return 0;
}

static int compare_threads(const void *left, const void *right)
{
	const struct mw_report_thread *a = left, *b = right;
	int order = compare_amounts(a->impacting, a->size, b->impacting, b->size);

	return order ? order : (a->tid > b->tid) - (a->tid < b->tid);
}

static int compare_modules(const void *left, const void *right)
{
	const struct mw_report_module *a = left, *b = right;
	int order = compare_amounts(a->impacting, a->size, b->impacting, b->size);

	return order ? order : strcmp(a->module ? a->module : "", b->module ? b->module : "");
}

static int compare_stacks(const void *left, const void *right)
{
	const struct mw_report_stack *a = left, *b = right;
	int order = compare_amounts(a->impacting, a->size, b->impacting, b->size);

	return order ? order : strcmp(a->id, b->id);
}

/* A thread and the tracker's number of it. */
struct numbered_thread {
	struct mw_report_thread thread; /* first: compare_threads() */
	uint32_t number;
};

static void sort_threads(const struct mw_summary_input *input, struct mw_arena *arena, struct numbered_thread *threads,
			 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct mw_track_thread thread;

		mw_track_thread(input->track, i, &thread);
		threads[i].number = i;
		threads[i].thread.tid = thread.tid;
		threads[i].thread.name = mw_arena_string(arena, thread.name);
		threads[i].thread.size = thread.size;
		threads[i].thread.impacting = thread.impacting;
		threads[i].thread.transient = thread.transient;
		threads[i].thread.spreads = thread.spreads;
	}
	if (count)
		qsort(threads, count, sizeof(*threads), compare_threads);
}

static struct mw_error *fill_threads(const struct mw_summary_input *input, struct mw_arena *arena,
				     struct mw_report *report)
{
	uint32_t count = mw_track_thread_count(input->track);
	MW_FREE struct numbered_thread *threads = calloc((size_t)count + 1, sizeof(*threads));
	MW_FREE uint32_t *thread_of = input->thread_of ? calloc((size_t)count + 1, sizeof(*thread_of)) : NULL;

	report->threads = mw_arena_array(arena, count, sizeof(*report->threads));
	if (!report->threads || !threads || (input->thread_of && !thread_of))
		return mw_error_nomem();
	sort_threads(input, arena, threads, count);
	report->thread_count = count;
	for (uint32_t i = 0; i < count; i++) {
		report->threads[i] = threads[i].thread;
		if (thread_of)
			thread_of[threads[i].number] = i;
	}
	if (thread_of)
		*input->thread_of = MW_TAKE(thread_of);
	return NULL;
}

/* Sum the stacks by suspect. An allocator's own mappings hold the blocks that are counted already. */
static struct mw_error *sum_modules(struct mw_report *report, struct mw_map *numbering)
{
	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		struct mw_report_module *module;
		uint32_t number;

		if (stack->kind == MW_KIND_VM_INTERNAL || !stack->size.count)
			continue;
		/* Equal paths are one pointer in the arena. */
		if (!mw_map_number(numbering, (uintptr_t)stack->suspect, &number))
			return mw_error_nomem();
		module = &report->modules[number];
		module->module = stack->suspect;
		mw_amount_add(&module->size, stack->size);
		mw_amount_add(&module->impacting, stack->impacting);
		mw_amount_add(&module->transient, stack->transient);
		mw_spreads_add(&module->spreads, &stack->spreads);
	}
	return NULL;
}

static struct mw_error *fill_modules(const struct mw_summary_input *input, struct mw_arena *arena,
				     struct mw_report *report)
{
	struct mw_map numbering = {0};
	struct mw_error *err;

	/* One for each module and one for what is charged to none. */
	report->modules = mw_arena_array(arena, input->module_count + 1, sizeof(*report->modules));
	if (!report->modules)
		return mw_error_nomem();
	err = sum_modules(report, &numbering);
	report->module_count = numbering.count;
	mw_map_deinit(&numbering);
	if (!err)
		qsort(report->modules, report->module_count, sizeof(*report->modules), compare_modules);
	return err;
}

/* Where the tracker's stacks lie now that they are sorted. Takes `*group_of`, or leaves it. */
static struct mw_error *hand_out_order(const struct mw_summary_input *input, const struct mw_report *report,
				       uint32_t **group_of)
{
	MW_FREE uint32_t *position = NULL;
	uint32_t count = mw_track_stack_count(input->track);

	if (!input->stack_of)
		return NULL;
	position = calloc(report->stack_count + 1, sizeof(*position));
	if (!position)
		return mw_error_nomem();
	for (size_t i = 0; i < report->stack_count; i++)
		position[report->stacks[i].group] = (uint32_t)i;
	for (uint32_t i = 0; i < count; i++)
		if ((*group_of)[i] != UINT32_MAX)
			(*group_of)[i] = position[(*group_of)[i]];
	*input->stack_of = MW_TAKE(*group_of);
	return NULL;
}

static struct mw_error *fill(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report)
{
	MW_FREE uint32_t *group_of = NULL;

	MW_TRY(fill_target(input, arena, report));
	MW_TRY(fill_engine(input, arena, report));
	MW_TRY(fill_memory(input, arena, report));
	MW_TRY(fill_marks(input, arena, report));
	MW_TRY(fill_threads(input, arena, report));
	fill_totals(input, report);
	MW_TRY(fill_sampling(input, arena, report));
	MW_TRY(make_stacks(input, arena, report, &group_of));
	MW_TRY(mw_view_growth(input, report, group_of));
	MW_TRY(mw_view_space(input->space, input->track, arena, report, group_of));
	for (size_t i = 0; i < report->stack_count; i++)
		report->stacks[i].group = (uint32_t)i;
	qsort(report->stacks, report->stack_count, sizeof(*report->stacks), compare_stacks);
	MW_TRY(mw_view_suspects(input, arena, report, group_of));
	MW_TRY(mw_view_missing(input, arena, report));
	MW_TRY(hand_out_order(input, report, &group_of));
	MW_TRY(fill_modules(input, arena, report));
	return mw_arena_failed(arena) ? mw_error_nomem() : NULL;
}

struct mw_error *mw_summary_create(const struct mw_summary_input *input, struct mw_report **out)
{
	struct mw_report *report = calloc(1, sizeof(*report));
	struct mw_arena *arena = mw_arena_create();
	struct mw_error *err;

	if (!report || !arena) {
		free(report);
		mw_arena_destroy(arena);
		return mw_error_nomem();
	}
	report->arena = arena;
	err = fill(input, arena, report);
	if (err) {
		mw_report_destroy(report);
		return err;
	}
	*out = report;
	return NULL;
}

/* --- blocks by the report's stacks ----------------------------------------------------------------------------------- */

struct grouped {
	const uint32_t *group_of;
	uint32_t stack_count;
	void (*each)(void *context, uint32_t group, const struct mw_track_block *block, bool first);
	void *context;
};

static bool visit_grouped(void *context, const struct mw_track_block *block, bool first)
{
	const struct grouped *grouped = context;
	uint32_t group = block->stack < grouped->stack_count ? grouped->group_of[block->stack] : UINT32_MAX;

	if (group != UINT32_MAX)
		grouped->each(grouped->context, group, block, first);
	return true;
}

void mw_view_each_block(const struct mw_track *track, const uint32_t *group_of,
			void (*each)(void *context, uint32_t group, const struct mw_track_block *block, bool first),
			void *context)
{
	struct grouped grouped = {group_of, mw_track_stack_count(track), each, context};

	mw_track_each_block(track, visit_grouped, &grouped);
}

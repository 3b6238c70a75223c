// SPDX-License-Identifier: MIT
/* growth.c: see growth.h. */
#include "view/growth.h"

#include "alloc/families.h"
#include "base/cleanup.h"
#include "track/replaced.h"
#include "view/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING  8.0   /* bytes: what is usable of a block, less what was asked for */
#define LIKE      0.1   /* of a mean size */
#define LOAD      16u   /* blocks */
#define INNERMOST 16u   /* frames in which the code is that allocates */
#define BATCH     4096u /* groups whose figures are in memory at once, some KiB each */

struct size_set {
	uint64_t bits[MW_SIZE_CLASSES / 64 + 1];
};

/* Of all blocks of a class of sizes, bytes. */
struct class_course {
	double born;
	float net[MW_SERIES_MAX], older[MW_SERIES_MAX];
	uint32_t alike; /* mw_track_class_flow.alike */
};

struct walk {
	const struct mw_track *track;
	double from, seconds, step;
	uint64_t end_ns, active_ns;
	struct class_course classes[MW_SIZE_CLASSES];
	float all[MW_SERIES_MAX];  /* bytes allocated, of all stacks, … */
	float load[MW_SERIES_MAX]; /* … and of those most of whose blocks are freed */
	double unknown;            /* blocks from before the window that were freed, and whose size is not known */
	double owned, unowned;     /* the same: heap blocks whose owner is known by kin, and others */
	struct mw_verdict_input *inputs; /* of the groups from `first` on */
	struct mw_histogram *lifetimes;
	struct mw_spreads *spreads; /* of their heap blocks, where these are sampled … */
	double *units;              /* … and their units; 0: blocks count as they are */
	struct size_set *sizes;     /* that their outstanding blocks have */
	uint32_t first, count;
	const uint32_t *group_of;
	const struct mw_track_kin *kin;      /* of stacks whose calls freed older blocks: whose these were */
	const bool *has_kin;                 /* stacks whose older blocks are known by kin */
	struct mw_report_growth *const *out; /* by group; NULL: not wanted */
	size_t group_count;
	uint32_t stack_count; /* of the tracker */
	bool sampled;         /* heap blocks are */
	bool older_unknown;
	const struct mw_view_module *modules; /* by number */
	size_t module_count;
	const char *exe;
	uint32_t runtimes; /* that the program itself holds */
};

/* What all stacks allocate: their births, of a mean size each. */
static void find_load(struct walk *walk)
{
	for (uint32_t i = 0; i < walk->stack_count; i++) {
		struct mw_track_series births;
		struct mw_track_stack stack;
		float mean;

		mw_track_stack(walk->track, i, &stack);
		if (stack.kind != MW_KIND_HEAP || !stack.totals.size.count)
			continue;
		mean = (float)((double)stack.totals.size.bytes / (double)stack.totals.size.count);
		mw_track_stack_births(walk->track, i, walk->end_ns, &births);
		for (uint32_t at = 0; at < births.count; at++) {
			walk->all[at] += births.bytes[at] * mean;
			/* A few blocks are no load, but perhaps the storage of a table. */
			if (stack.totals.size.count >= LOAD &&
			    mw_verdict_mostly_freed(&stack.totals.size, &stack.totals.transient))
				walk->load[at] += births.bytes[at] * mean;
		}
	}
}

static void find_classes(struct walk *walk)
{
	for (uint32_t i = 0; i < MW_SIZE_CLASSES; i++) {
		struct class_course *class = &walk->classes[i];
		struct mw_track_class_flow flow;

		if (!mw_track_class_flow(walk->track, i, walk->end_ns, &flow) || !flow.born.count)
			continue;
		if (i == 0)
			walk->unknown = (double)flow.older.bytes[flow.older.count - 1];
		class->alike = flow.alike;
		class->born = (double)flow.born.bytes[flow.born.count - 1];
		for (uint32_t at = 0; at < flow.born.count; at++) {
			class->net[at] = flow.born.bytes[at] - flow.gone.bytes[at];
			class->older[at] = flow.older.bytes[at];
		}
	}
}

/* What all blocks of the sizes, and of sizes that are alike, come to. */
static void add_classes(const struct walk *walk, const struct size_set *sizes, struct mw_verdict_sizes *out)
{
	bool wanted[MW_SIZE_CLASSES] = {false};

	/* Of unknown sizes (class 0) nothing can be said. */
	for (uint32_t i = 1; i < MW_SIZE_CLASSES; i++)
		if (sizes->bits[i / 64] >> i % 64 & 1)
			wanted[walk->classes[i].alike] = true;
	for (uint32_t i = 1; i < MW_SIZE_CLASSES; i++) {
		const struct class_course *class = &walk->classes[i];

		if (!class->alike || !wanted[class->alike])
			continue;
		out->born += class->born;
		for (uint32_t at = 0; at < MW_SERIES_MAX; at++) {
			out->net[at] += (double)class->net[at];
			out->older[at] += (double)class->older[at];
		}
	}
}

/*
 * Where blocks are sampled: how many bytes stand for one independent block. That is about what one recorded block stands for,
 * the sampling interval where blocks are smaller than that, and no less than the blocks themselves have.
 */
static double unit_of(struct mw_amount size, struct mw_spread spread)
{
	double bytes = (double)size.bytes;

	return spread.blocks ? fmax(spread.bytes / fmax(bytes, 1), bytes / (double)spread.blocks) : 0;
}

/* So many units; of blocks without bytes they are the blocks that were recorded. */
static uint64_t units_in(uint64_t bytes, double unit, uint64_t blocks)
{
	return unit > 0 && blocks ? (uint64_t)fmax((double)bytes / unit + 0.5, 1) : blocks;
}

static void visit(void *context, uint32_t group, const struct mw_track_block *block, bool first)
{
	struct walk *walk = context;
	uint32_t age = mw_verdict_age_class(walk->active_ns > block->time_ns ? walk->active_ns - block->time_ns : 0);
	struct mw_verdict_input *input;
	double born, part, counts = first;

	if (group < walk->first || group - walk->first >= walk->count)
		return;
	group -= walk->first;
	input = &walk->inputs[group];
	if (!input->size.count)
		return;
	if (walk->units[group] > 0)
		counts = (double)(1 + block->others) * (double)block->bytes / walk->units[group];
	if (block->kind == MW_KIND_HEAP) {
		uint64_t usable = mw_replaced_usable(block->size);
		uint32_t class = mw_size_class(usable);

		input->sizes.usable += (double)usable;
		walk->sizes[group].bits[class / 64] |= UINT64_C(1) << class % 64;
	}
	/* What was freed since was in flight. */
	if (block->settled) {
		input->later[age] += counts;
		return;
	}
	born = fmax((double)block->time_ns / 1e9 - walk->from, 0);
	part = born / walk->step;
	struct mw_amount *kept = &input->kept[part < input->level.count ? (uint32_t)part : input->level.count];
	kept->count += first;
	kept->bytes += (1 + block->others) * block->bytes;
	input->oldest = fmin(input->oldest, born);
	input->newest = fmax(input->newest, born);
	input->ages[age] += counts;
}

static void add_series(struct mw_track_series *sum, const struct mw_track_series *other)
{
	if (!sum->count)
		*sum = *other;
	else
		for (uint32_t i = 0; i < sum->count && i < other->count; i++)
			sum->bytes[i] += other->bytes[i];
}

/* Does code of a runtime that collects allocate it, and hold it until its collector finds that nobody needs it? */
static bool is_collected(const struct walk *walk, uint32_t stack)
{
	struct mw_raw_frame frames[INNERMOST];
	uint32_t count = mw_track_frames(walk->track, stack, frames, INNERMOST);

	for (uint32_t i = 0; i < count && i < INNERMOST; i++) {
		const struct mw_view_module *module =
			frames[i].module < walk->module_count ? &walk->modules[frames[i].module] : NULL;

		if (module && module->path && module->suspect)
			return mw_runtimes_collect(
				module->path, walk->exe && strcmp(module->path, walk->exe) == 0 ? walk->runtimes : 0);
	}
	return false;
}

static struct mw_error *add_stack(struct walk *walk, uint32_t stack, uint32_t group)
{
	struct mw_verdict_input *input = &walk->inputs[group];
	struct mw_track_replaced replaced;
	struct mw_track_series series;
	struct mw_track_stack tracked;

	mw_track_stack(walk->track, stack, &tracked);
	input->collected |= tracked.kind == MW_KIND_HEAP && is_collected(walk, stack);
	mw_amount_add(&input->size, tracked.totals.size);
	mw_amount_add(&input->impacting, tracked.totals.impacting);
	mw_amount_add(&input->transient, tracked.totals.transient);
	mw_amount_add(&input->settled_later, tracked.totals.settled_later);
	if (walk->sampled && tracked.kind == MW_KIND_HEAP)
		mw_spreads_add(&walk->spreads[group], &tracked.totals.spreads);
	mw_track_stack_series(walk->track, stack, walk->end_ns, &series);
	add_series(&input->level, &series);
	mw_track_stack_births(walk->track, stack, walk->end_ns, &series);
	add_series(&input->births, &series);
	replaced.count = 0;
	if (mw_track_stack_replaced(walk->track, stack, walk->end_ns, &replaced)) {
		/* Where blocks are sampled that is known of storage that is reallocated, but not of older blocks. */
		if (walk->sampled)
			replaced.older.count = 0;
		input->replaced.count += replaced.count;
		input->replaced.larger += replaced.larger;
	}
	if (!walk->has_kin[stack] && replaced.count && replaced.older.count) {
		input->replaced.older.count += replaced.older.count;
		input->replaced.older.bytes += replaced.older.bytes;
		input->replaced.unknown += replaced.unknown;
		input->replaced.ambiguous += replaced.ambiguous;
		add_series(&input->replaced.series, &replaced.series);
	}
	return mw_histogram_merge(&walk->lifetimes[group], mw_track_stack_lifetimes(walk->track, stack));
}

/*
 * Of what went of older blocks, which two stacks share, that of one of them: a block for each of its own, less those that are left
 * over of both. These may be of either stack, and are counted once where both are in one group. Returns how many may be of the
 * other one.
 */
static double take_share(const struct walk *walk, uint32_t own, uint32_t other, struct mw_track_replaced *gone)
{
	double share = walk->group_of[own] == walk->group_of[other] ? 0.5 : 1, all = (double)gone->older.count, left;
	double most = 0;
	struct mw_track_series own_left, other_left;
	struct mw_track_stack own_stack, other_stack;

	mw_track_stack_left(walk->track, own, walk->end_ns, &own_left);
	mw_track_stack_left(walk->track, other, walk->end_ns, &other_left);
	for (uint32_t i = 0; i < gone->series.count; i++) {
		double over = (double)own_left.bytes[i] + (double)other_left.bytes[i] - (double)gone->series.bytes[i];

		gone->series.bytes[i] = (float)((double)own_left.bytes[i] - share * over);
		most = fmax(most, over);
	}
	mw_track_stack(walk->track, own, &own_stack);
	mw_track_stack(walk->track, other, &other_stack);
	left = (double)own_stack.totals.impacting.count;
	left = fmax(left - share * (left + (double)other_stack.totals.impacting.count - all), 0);
	gone->unknown = (uint64_t)((double)gone->unknown * left / all);
	gone->older.count = (uint64_t)left;
	return share < 1 ? 0 : most;
}

/*
 * Add older blocks that went to what `owner` replaced. It may share them with another stack (MW_STACK_NONE: with none); `ahead`:
 * find_ahead(). Where they are of a size, as many as come are held to be as many bytes.
 */
static void add_gone(struct walk *walk, struct mw_track_replaced gone, uint32_t owner, uint32_t other, double ahead)
{
	struct mw_verdict_input *input = &walk->inputs[walk->group_of[owner] - walk->first];
	struct mw_track_stack stack;
	double mean, went;

	input->has_kin = true;
	mw_track_stack(walk->track, owner, &stack);
	mean = (double)stack.totals.impacting.bytes / (double)stack.totals.impacting.count;
	went = (double)gone.older.bytes / (double)(gone.older.count - gone.unknown) - ROUNDING;
	if (other != MW_STACK_NONE) {
		input->by_count = true;
		input->either += mean * take_share(walk, owner, other, &gone);
	} else if (gone.older.count == gone.unknown || fabs(went - mean) <= LIKE * mean + ROUNDING) {
		input->by_count = true;
	} else {
		mean = went;
	}
	for (uint32_t i = 0; i < gone.series.count; i++)
		gone.series.bytes[i] *= (float)mean;
	input->ahead += ahead * mean;
	input->replaced.older.count += gone.older.count;
	input->replaced.older.bytes += (uint64_t)((double)gone.older.count * mean);
	input->replaced.unknown += gone.unknown;
	add_series(&input->replaced.series, &gone.series);
}

static bool is_wanted(const struct walk *walk, uint32_t group)
{
	return group != UINT32_MAX && group >= walk->first && group - walk->first < walk->count && walk->out[group];
}

/* Of a part of entries: how many more blocks are left over than of the part of which fewest are. */
static double find_ahead(const struct walk *walk, uint32_t freeing)
{
	const struct mw_track_kin *kin = &walk->kin[freeing];
	const uint32_t stacks[] = {kin->owner, kin->other, walk->kin[kin->fewest].owner};
	double counts[3] = {0};
	struct mw_track_replaced gone, fewest;

	for (int i = 0; i < 3; i++) {
		struct mw_track_stack stack;

		if (stacks[i] == MW_STACK_NONE)
			continue;
		mw_track_stack(walk->track, stacks[i], &stack);
		counts[i] = (double)stack.totals.impacting.count;
	}
	mw_track_stack_replaced(walk->track, freeing, walk->end_ns, &gone);
	mw_track_stack_replaced(walk->track, kin->fewest, walk->end_ns, &fewest);
	return counts[0] + counts[1] - (double)gone.older.count - counts[2] + (double)fewest.older.count;
}

/* Of heap blocks from before the window that were freed: whose owner is known, and others. */
static void count_owned(struct walk *walk)
{
	struct mw_track_replaced gone;
	struct mw_track_totals totals;

	mw_track_totals(walk->track, MW_KIND_HEAP, &totals);
	for (uint32_t i = 0; i < walk->stack_count; i++)
		if (walk->kin[i].owner != MW_STACK_NONE && mw_track_stack_replaced(walk->track, i, walk->end_ns, &gone))
			walk->owned += (double)gone.older.count;
	walk->unowned = (double)totals.aofi.count - walk->owned;
}

/* What the calls of a stack freed of older blocks goes to the stacks that own these. */
static void add_gone_to_owners(struct walk *walk, uint32_t freeing)
{
	uint32_t owner = walk->kin[freeing].owner, other = walk->kin[freeing].other;
	struct mw_track_replaced gone;
	double ahead;

	if (owner == MW_STACK_NONE || !mw_track_stack_replaced(walk->track, freeing, walk->end_ns, &gone))
		return;
	ahead = walk->kin[freeing].fewest != MW_STACK_NONE ? find_ahead(walk, freeing) : 0;
	if (is_wanted(walk, walk->group_of[owner]))
		add_gone(walk, gone, owner, other, ahead);
	if (other != MW_STACK_NONE && is_wanted(walk, walk->group_of[other]))
		add_gone(walk, gone, other, owner, ahead);
}

/* Has the group of that number heap blocks that are sampled? */
static bool is_sampled(const struct walk *walk, uint32_t i)
{
	return mw_spreads_size(&walk->spreads[i]).blocks > 0;
}

/* From estimated blocks to units (unit_of()), of the group of that number. */
static void count_units(const struct walk *walk, uint32_t i)
{
	struct mw_verdict_input *input = &walk->inputs[i];
	const struct mw_spreads *spreads = &walk->spreads[i];
	struct mw_spread size = mw_spreads_size(spreads);
	double bytes = (double)input->size.bytes, blocks = (double)input->size.count, unit = walk->units[i];

	/* So that exp(-samples) is the chance that nothing of as many bytes would have been sampled; a block counts as a byte. */
	input->samples = fmax(bytes, blocks) / (double)mw_track_sampled(walk->track);
	if (spreads->impacting.blocks && bytes > 0)
		input->larger = (double)input->impacting.bytes / (double)spreads->impacting.blocks /
				(bytes / (double)size.blocks);
	input->size.count = units_in(input->size.bytes, unit, size.blocks);
	input->impacting.count = units_in(input->impacting.bytes, unit, spreads->impacting.blocks);
	input->transient.count = units_in(input->transient.bytes, unit, spreads->transient.blocks);
	input->settled_later.count = units_in(input->settled_later.bytes, unit, spreads->settled.blocks);
	input->replaced.count =
		(uint64_t)((double)input->replaced.count * (double)input->size.count / (double)size.blocks + 0.5);
	input->replaced.larger =
		(uint64_t)((double)input->replaced.larger * (double)input->size.count / (double)size.blocks + 0.5);
	for (uint32_t at = 0; at <= MW_SERIES_MAX; at++)
		input->kept[at].count = units_in(input->kept[at].bytes, unit, input->kept[at].count);
	for (uint32_t at = 0; at < input->births.count; at++)
		input->births.bytes[at] *= (float)((double)input->size.count / blocks);
	if (input->transient.count)
		input->lifetimes_each = (double)walk->lifetimes[i].count / (double)input->transient.count;
}

/* Judge the groups of a batch. */
static struct mw_error *judge(struct walk *walk)
{
	for (uint32_t i = 0; i < walk->stack_count; i++)
		if (is_wanted(walk, walk->group_of[i]))
			MW_TRY(add_stack(walk, i, walk->group_of[i] - walk->first));
	for (uint32_t i = 0; i < walk->stack_count && !walk->sampled; i++)
		add_gone_to_owners(walk, i);
	for (uint32_t i = 0; i < walk->count; i++) {
		walk->inputs[i].oldest = walk->seconds;
		walk->units[i] = unit_of(walk->inputs[i].size, mw_spreads_size(&walk->spreads[i]));
	}
	mw_view_each_block(walk->track, walk->group_of, visit, walk);
	for (uint32_t i = 0; i < walk->count; i++) {
		struct mw_report_growth *growth = walk->out[walk->first + i];
		struct mw_verdict_input *input = &walk->inputs[i];
		double mean;

		if (!growth || !input->size.count)
			continue;
		input->seconds = walk->seconds;
		input->active = (double)walk->active_ns / 1e9 - walk->from;
		input->lifetimes = &walk->lifetimes[i];
		mean = (double)input->size.bytes / (double)input->size.count;
		if (is_sampled(walk, i))
			count_units(walk, i);
		input->older_unknown = walk->older_unknown && is_sampled(walk, i);
		input->sizes.known =
			!walk->sampled && walk->unknown * 8 <= (double)input->size.count &&
			!(walk->owned > 0 && !input->has_kin && walk->unowned * 2 < (double)input->impacting.count);
		input->all = walk->all;
		input->load = walk->load;
		add_classes(walk, &walk->sizes[i], &input->sizes);
		mw_verdict_find(input, growth);
		if (is_sampled(walk, i) && mean > 0)
			growth->settled.count = (uint64_t)((double)growth->settled.bytes / mean + 0.5);
		growth->growing_until += walk->from;
	}
	return NULL;
}

static struct mw_error *judge_all(struct walk *walk)
{
	struct mw_error *err = NULL;

	for (; walk->first < walk->group_count && !err; walk->first += BATCH) {
		size_t rest = walk->group_count - walk->first;

		walk->count = rest < BATCH ? (uint32_t)rest : BATCH;
		walk->inputs = calloc(walk->count, sizeof(*walk->inputs));
		walk->lifetimes = calloc(walk->count, sizeof(*walk->lifetimes));
		walk->sizes = calloc(walk->count, sizeof(*walk->sizes));
		walk->spreads = calloc(walk->count, sizeof(*walk->spreads));
		walk->units = calloc(walk->count, sizeof(*walk->units));
		err = walk->inputs && walk->lifetimes && walk->sizes && walk->spreads && walk->units ? judge(walk)
												     : mw_error_nomem();
		for (uint32_t i = 0; i < walk->count && walk->lifetimes; i++)
			mw_histogram_deinit(&walk->lifetimes[i]);
		free(walk->inputs);
		free(walk->lifetimes);
		free(walk->sizes);
		free(walk->spreads);
		free(walk->units);
	}
	return err;
}

/* The groups of the stacks by the numbers of the tracker of the whole window. */
static struct mw_error *group_whole(const struct mw_summary_input *input, const uint32_t *group_of, uint32_t **out)
{
	uint32_t count = mw_track_stack_count(input->whole), known = mw_track_stack_count(input->track);

	*out = calloc(count + 1u, sizeof(**out));
	if (!*out)
		return mw_error_nomem();
	for (uint32_t i = 0; i < count; i++)
		(*out)[i] = UINT32_MAX;
	for (size_t i = 0; i < input->whole_count && i < known; i++)
		if (input->whole_of[i] < count)
			(*out)[input->whole_of[i]] = group_of[i];
	return NULL;
}

/* The runtimes of the process, less those that are libraries. */
static uint32_t program_runtimes(const struct mw_summary_input *input)
{
	uint32_t held = input->target ? input->target->runtimes : 0;

	for (size_t i = 0; i < input->module_count; i++)
		if (input->modules[i].path && held)
			held &= ~mw_runtimes_of(input->modules[i].path, NULL);
	return held;
}

struct mw_error *mw_view_judge(const struct mw_summary_input *input, const struct mw_report *report,
			       const uint32_t *group_of, struct mw_report_growth *const *out, size_t count)
{
	MW_FREE struct walk *walk = calloc(1, sizeof(*walk));
	MW_FREE struct mw_track_kin *kin = NULL;
	MW_FREE uint32_t *groups = NULL;
	MW_FREE bool *has_kin = NULL;
	struct mw_track_series series;
	double to = report->window.to;

	if (!walk)
		return mw_error_nomem();
	walk->track = input->track;
	walk->group_of = group_of;
	walk->from = report->window.from;
	if (input->whole) {
		MW_TRY(group_whole(input, group_of, &groups));
		walk->track = input->whole;
		walk->group_of = groups;
		walk->from = 0;
		to = report->window.seconds;
	}
	walk->out = out;
	walk->group_count = count;
	walk->stack_count = mw_track_stack_count(walk->track);
	MW_TRY(mw_track_find_kin(walk->track, &kin));
	has_kin = calloc(walk->stack_count + 1u, sizeof(*has_kin));
	if (!has_kin)
		return mw_error_nomem();
	for (uint32_t i = 0; i < walk->stack_count; i++)
		if (kin[i].owner != MW_STACK_NONE)
			has_kin[kin[i].owner] = true;
	for (uint32_t i = 0; i < walk->stack_count; i++)
		if (kin[i].other != MW_STACK_NONE)
			has_kin[kin[i].other] = true;
	walk->kin = kin;
	walk->has_kin = has_kin;
	walk->sampled = mw_track_sampling(walk->track) != NULL;
	walk->modules = input->modules;
	walk->module_count = input->module_count;
	walk->exe = input->exe;
	walk->runtimes = program_runtimes(input);
	walk->older_unknown = walk->sampled && !(input->launched && walk->from == 0);
	walk->seconds = to - walk->from;
	walk->end_ns = (uint64_t)(to * 1e9 + 0.5);
	walk->active_ns = mw_track_now(walk->track) < walk->end_ns ? mw_track_now(walk->track) : walk->end_ns;
	if (walk->stack_count) {
		mw_track_stack_series(walk->track, 0, walk->end_ns, &series);
		walk->step = (double)series.step_ns / 1e9;
		find_load(walk);
		count_owned(walk);
		if (!walk->sampled)
			find_classes(walk);
	}
	return judge_all(walk);
}

struct mw_error *mw_view_growth(const struct mw_summary_input *input, struct mw_report *report,
				const uint32_t *group_of)
{
	MW_FREE struct mw_report_growth **out = calloc(report->stack_count + 1, sizeof(*out));

	if (!out)
		return mw_error_nomem();
	for (size_t i = 0; i < report->stack_count; i++)
		if (report->stacks[i].has_ages)
			out[i] = &report->stacks[i].growth;
	MW_TRY(mw_view_judge(input, report, group_of, out, report->stack_count));
	/* Figures of blocks are of those of the interval. */
	for (size_t i = 0; i < report->stack_count && input->whole; i++) {
		struct mw_report_stack *stack = &report->stacks[i];

		stack->growth.freed_share =
			stack->size.count ? (double)stack->transient.count / (double)stack->size.count : 0;
		stack->growth.oldest_age = report->window.to - stack->oldest;
		stack->growth.newest_age = report->window.to - stack->newest;
	}
	return NULL;
}

// SPDX-License-Identifier: MIT
/* diff.c: two snapshots compared, see diff.h. */
#include "view/diff.h"

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vector.h"
#include "view/arena.h"
#include "view/frames.h"
#include "view/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUILD_ID_MAX 32 /* bytes of one; those of linkers have 20 */

/* --- which modules were built anew between two snapshots, so that stacks through them don't match ------- */

/* A module with a build-id of its own. */
struct build {
	const struct mw_view_module *module;
	enum mw_diff_side side;
};

static int compare_paths(const struct build *a, const struct build *b)
{
	return strcmp(a->module->path, b->module->path);
}

static int compare_ids(const struct build *a, const struct build *b)
{
	size_t a_size = a->module->build_id_size, b_size = b->module->build_id_size;

	return a_size == b_size ? memcmp(a->module->build_id, b->module->build_id, a_size)
				: (a_size > b_size) - (a_size < b_size);
}

/* By path, then by build, so that equal ones stand side by side. */
static int compare_builds(const void *left, const void *right)
{
	const struct build *a = left, *b = right;
	int order = compare_paths(a, b);

	if (!order)
		order = compare_ids(a, b);
	return order ? order : (int)a->side - (int)b->side;
}

static size_t list_builds(const struct mw_diff_input *input, enum mw_diff_side side, struct build *out)
{
	size_t count = 0;

	for (size_t i = 0; i < input->summary->module_count; i++) {
		const struct mw_view_module *module = &input->summary->modules[i];

		if (module->path && module->build_id && module->build_id_size)
			out[count++] = (struct build){module, side};
	}
	return count;
}

/* Of sorted builds of one path: does each side have some, and do none of them agree? */
static bool is_rebuilt(const struct build *builds, size_t count)
{
	bool has[MW_DIFF_SIDES] = {false};

	for (size_t i = 0; i < count; i++) {
		has[builds[i].side] = true;
		if (i && builds[i - 1].side != builds[i].side && compare_ids(&builds[i - 1], &builds[i]) == 0)
			return false;
	}
	return has[MW_DIFF_OLD] && has[MW_DIFF_NEW];
}

/* Fill diff->rebuilt: paths under which each side knows builds, and none of them on both sides. Errors: MEMORY. */
static struct mw_error *diff_builds(const struct mw_diff_input inputs[MW_DIFF_SIDES], struct mw_arena *arena,
				    struct mw_diff *diff)
{
	size_t most = inputs[MW_DIFF_OLD].summary->module_count + inputs[MW_DIFF_NEW].summary->module_count, count;
	MW_FREE struct build *builds = calloc(most + 1, sizeof(*builds));

	diff->rebuilt = mw_arena_array(arena, most, sizeof(*diff->rebuilt));
	if (!builds || !diff->rebuilt)
		return mw_error_nomem();
	count = list_builds(&inputs[MW_DIFF_OLD], MW_DIFF_OLD, builds);
	count += list_builds(&inputs[MW_DIFF_NEW], MW_DIFF_NEW, builds + count);
	qsort(builds, count, sizeof(*builds), compare_builds);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && compare_paths(&builds[first], &builds[end]) == 0;)
			end++;
		if (is_rebuilt(builds + first, end - first))
			diff->rebuilt[diff->rebuilt_count++] = mw_arena_string(arena, builds[first].module->path);
	}
	return NULL;
}

/* The build-id of the process's program, or NULL. */
static const char *find_build(const struct mw_diff_input *input, struct mw_arena *arena)
{
	const char *exe = input->snapshot.exe;
	char digits[2 * BUILD_ID_MAX + 1] = "";

	for (size_t i = 0; exe && i < input->summary->module_count && !*digits; i++) {
		const struct mw_view_module *module = &input->summary->modules[i];

		if (!module->path || strcmp(module->path, exe) != 0 || !module->build_id)
			continue;
		for (size_t j = 0; j < module->build_id_size && j < BUILD_ID_MAX; j++)
			snprintf(digits + 2 * j, 3, "%02x", module->build_id[j]);
	}
	return *digits ? mw_arena_string(arena, digits) : NULL;
}

enum mw_diff_program mw_diff_programs(const char *old_exe, const char *old_build, const char *new_exe,
				      const char *new_build)
{
	bool moved = old_exe && new_exe && strcmp(old_exe, new_exe) != 0;

	if (old_build && new_build && strcmp(old_build, new_build) != 0)
		return MW_DIFF_PROGRAM_REBUILT;
	if (!moved)
		return MW_DIFF_PROGRAM_ONE;
	return old_build && new_build ? MW_DIFF_PROGRAM_MOVED : MW_DIFF_PROGRAM_OTHER;
}

static enum mw_diff_program compare_programs(const struct mw_diff_snapshot snapshots[MW_DIFF_SIDES])
{
	const struct mw_diff_snapshot *old = &snapshots[MW_DIFF_OLD], *new = &snapshots[MW_DIFF_NEW];

	return mw_diff_programs(old->exe, old->build_id, new->exe, new->build_id);
}

/* --- how much is more ------------------------------------------------------------------------------------ */

#define SIGMAS 3    /* that rates may be apart by chance … */
#define SHARE  0.25 /* … and of the faster one at least: the load of a program is never twice the same */

/* Do both sides count from one moment on? A launched command begins with nothing. */
static enum mw_diff_basis choose_basis(const struct mw_diff_snapshot snapshots[MW_DIFF_SIDES])
{
	const struct mw_diff_snapshot *old = &snapshots[MW_DIFF_OLD], *new = &snapshots[MW_DIFF_NEW];
	bool same_window = old->pid == new->pid && old->started_realtime_ns == new->started_realtime_ns &&
			   (old->started_realtime_ns || (old->file && new->file &&strcmp(old->file, new->file) == 0));

	if (same_window || (old->launched && new->launched) || old->at <= 0 || new->at <= 0)
		return MW_DIFF_OUTSTANDING;
	return MW_DIFF_RATES;
}

static double square(double x)
{
	return x * x;
}

/* How fast a side leaves blocks behind, and by how much that may be chance: blocks come one by one, so that twice as many
 * seen are twice as sure. */
struct rate {
	double value, variance;
};

static struct rate rate_of(const struct mw_diff *diff, const struct mw_diff_stack *stack, enum mw_diff_side side)
{
	const struct mw_amount *held = stack->held;
	const struct mw_spread *spread = &stack->spread.held[side];
	bool empty = !held[MW_DIFF_OLD].bytes && !held[MW_DIFF_NEW].bytes; /* blocks of malloc(0) */
	double value = (double)(empty ? held[side].count : held[side].bytes) / diff->snapshots[side].at;

	return (struct rate){value, (held[side].count ? square(value) / (double)held[side].count : 0) +
					    (empty ? spread->count : spread->bytes) / square(diff->snapshots[side].at)};
}

static enum mw_diff_change compare_rates(struct rate old, struct rate new)
{
	double chance = SIGMAS * SIGMAS * (old.variance + new.variance), by = new.value - old.value;

	/* What only one side has is not the same, however little it is. */
	if (old.value > 0 && new.value > 0 && square(by) <= fmax(chance, square(SHARE * fmax(old.value, new.value))))
		return MW_DIFF_SAME;
	if (old.value == new.value)
		return MW_DIFF_SAME;
	return by > 0 ? MW_DIFF_MORE : MW_DIFF_LESS;
}

/* Of two numbers from outside, of any 64 bits each. */
static enum mw_diff_change compare_numbers(uint64_t old, uint64_t new)
{
	if (old == new)
		return MW_DIFF_SAME;
	return new > old ? MW_DIFF_MORE : MW_DIFF_LESS;
}

static enum mw_diff_change compare_amounts(const struct mw_amount held[MW_DIFF_SIDES])
{
	enum mw_diff_change change = compare_numbers(held[MW_DIFF_OLD].bytes, held[MW_DIFF_NEW].bytes);

	return change ? change : compare_numbers(held[MW_DIFF_OLD].count, held[MW_DIFF_NEW].count);
}

static bool is_noise(const struct mw_diff *diff, const struct mw_amount held[MW_DIFF_SIDES],
		     const struct mw_diff_spread *spread)
{
	double by = (double)held[MW_DIFF_NEW].bytes - (double)held[MW_DIFF_OLD].bytes, variance = spread->change.bytes;
	uint64_t old = spread->only[MW_DIFF_OLD], new = spread->only[MW_DIFF_NEW];

	if (diff->basis != MW_DIFF_OUTSTANDING || variance <= 0)
		return false;
	/* Of what one side seems to have nothing there may be one block that was not sampled. */
	if (!old || !new) {
		if (diff->one_reading)
			return false;
		variance += variance / (double)(old + new);
	}
	return square(by) <= 4 * variance;
}

/* Fill what has become of each stack, and of all. */
static void judge(struct mw_diff *diff)
{
	struct mw_amount totals[MW_DIFF_SIDES] = {{0}};
	struct mw_diff_spread sum = {.change = {0}};
	struct rate sums[MW_DIFF_SIDES] = {{0}};

	for (size_t i = 0; i < diff->stack_count; i++) {
		struct mw_diff_stack *stack = &diff->stacks[i];
		struct rate rates[MW_DIFF_SIDES] = {{0}};

		for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
			mw_amount_add(&totals[side], stack->held[side]);
			if (diff->basis != MW_DIFF_RATES)
				continue;
			rates[side] = rate_of(diff, stack, (enum mw_diff_side)side);
			sums[side].value += rates[side].value;
			sums[side].variance += rates[side].variance;
		}
		mw_spread_add(&sum.change, stack->spread.change);
		sum.only[MW_DIFF_OLD] += stack->spread.only[MW_DIFF_OLD];
		sum.only[MW_DIFF_NEW] += stack->spread.only[MW_DIFF_NEW];
		stack->noise = is_noise(diff, stack->held, &stack->spread);
		stack->change = diff->basis == MW_DIFF_RATES ? compare_rates(rates[MW_DIFF_OLD], rates[MW_DIFF_NEW])
							     : compare_amounts(stack->held);
	}
	diff->change = diff->basis == MW_DIFF_RATES ? compare_rates(sums[MW_DIFF_OLD], sums[MW_DIFF_NEW])
						    : compare_amounts(totals);
	diff->noise = is_noise(diff, totals, &sum);
}

/* -------------------------------------------------------------------------------------------------------- */

#define NO_STACK UINT32_MAX

/* A stack of either side or both. */
struct entry {
	uint64_t id;
	uint32_t first[MW_DIFF_SIDES]; /* the tracker's number of one of its stacks there */
	struct mw_amount held[MW_DIFF_SIDES];
	struct mw_diff_spread spread;
};

/* What is asked of one side. */
struct side {
	const struct mw_diff_input *input;
	struct mw_framer *framer;
};

struct builder {
	struct mw_diff *diff;
	struct mw_arena *arena;
	struct side sides[MW_DIFF_SIDES];
	struct mw_map numbering; /* ids to entries */
	struct entry *entries;
	size_t entry_capacity;
};

void mw_diff_destroy(struct mw_diff *diff)
{
	if (!diff)
		return;
	mw_arena_destroy(diff->arena);
	free(diff);
}

/* The entry of that id, a new one where there is none; NULL without memory. */
static struct entry *entry_of(struct builder *builder, uint64_t id)
{
	size_t known = builder->numbering.count;
	uint32_t number;

	if (!mw_map_number(&builder->numbering, id, &number))
		return NULL;
	if (number == known) {
		if (!MW_VECTOR_ROOM(builder->entries, known, builder->entry_capacity))
			return NULL;
		builder->entries[number] = (struct entry){.id = id, .first = {NO_STACK, NO_STACK}};
	}
	return &builder->entries[number];
}

/* What the other side holds as well, `stays`, is off there by the same, and changes nothing. */
static void add_spread(struct mw_diff_spread *sum, enum mw_diff_side side, struct mw_spread held,
		       struct mw_spread stays)
{
	mw_spread_add(&sum->held[side], held);
	mw_spread_add(&sum->change, held);
	sum->only[side] += held.blocks;
	sum->only[MW_DIFF_OLD] -= stays.blocks;
	sum->only[MW_DIFF_NEW] -= stays.blocks;
	sum->change.count = fmax(sum->change.count - 2 * stays.count, 0);
	sum->change.bytes = fmax(sum->change.bytes - 2 * stays.bytes, 0);
}

static struct mw_error *add_stack(struct builder *builder, enum mw_diff_side which, uint32_t number)
{
	struct side *side = &builder->sides[which];
	struct mw_amount held = side->input->held[number];
	struct mw_track_stack stack;
	struct entry *entry;
	uint64_t id;

	if (!held.count && !held.bytes)
		return NULL;
	mw_track_stack(side->input->summary->track, number, &stack);
	if (!builder->diff->compared[stack.kind])
		return NULL;
	MW_TRY(mw_framer_id(side->framer, number, &stack, &id));
	entry = entry_of(builder, id);
	if (!entry)
		return mw_error_nomem();
	if (entry->first[which] == NO_STACK)
		entry->first[which] = number;
	mw_amount_add(&entry->held[which], held);
	mw_amount_add(&builder->diff->totals[stack.kind][which], held);
	if (side->input->spreads && mw_track_sampling(side->input->summary->track)) {
		struct mw_spread stays = side->input->stays ? side->input->stays[number] : (struct mw_spread){0};

		if (which == MW_DIFF_OLD)
			stays = (struct mw_spread){0};
		add_spread(&entry->spread, which, side->input->spreads[number], stays);
		add_spread(&builder->diff->spreads[stack.kind], which, side->input->spreads[number], stays);
	}
	return NULL;
}

static struct mw_error *add_side(struct builder *builder, enum mw_diff_side which)
{
	struct side *side = &builder->sides[which];
	const struct mw_summary_input *summary = side->input->summary;
	size_t count = mw_track_stack_count(summary->track);

	MW_TRY(mw_framer_create(summary, builder->arena, &side->framer));
	for (size_t i = 0; i < count && i < side->input->held_count; i++)
		MW_TRY(add_stack(builder, which, (uint32_t)i));
	return NULL;
}

/* Fill all but id and amounts from one side. */
static struct mw_error *describe(struct builder *builder, struct side *side, uint32_t number, struct mw_diff_stack *out)
{
	const struct mw_summary_input *input = side->input->summary;
	struct mw_report_stack framed = {.frames = NULL};
	struct mw_track_stack stack;

	mw_track_stack(input->track, number, &stack);
	framed.cut = stack.cut;
	MW_TRY(mw_framer_fill(side->framer, number, &stack, &framed));
	out->kind = framed.kind;
	out->cut = framed.cut;
	out->end = framed.end;
	out->api = framed.api;
	if (stack.hook < input->hook_count)
		out->api_module = mw_arena_string(builder->arena, input->hooks[stack.hook].module);
	out->frames = framed.frames;
	out->frame_count = framed.frame_count;
	return NULL;
}

static bool has_names(const struct mw_diff_stack *stack)
{
	for (size_t i = 0; i < stack->frame_count; i++)
		if (stack->frames[i].function)
			return true;
	return false;
}

static struct mw_error *fill_stack(struct builder *builder, const struct entry *entry, struct mw_diff_stack *out)
{
	struct mw_diff_stack other = {.frames = NULL};
	bool in_old = entry->first[MW_DIFF_OLD] != NO_STACK, in_new = entry->first[MW_DIFF_NEW] != NO_STACK;

	if (in_new)
		MW_TRY(describe(builder, &builder->sides[MW_DIFF_NEW], entry->first[MW_DIFF_NEW], out));
	if (in_old && (!in_new || !has_names(out))) {
		MW_TRY(describe(builder, &builder->sides[MW_DIFF_OLD], entry->first[MW_DIFF_OLD], &other));
		if (!in_new || has_names(&other))
			*out = other;
	}
	snprintf(out->id, sizeof(out->id), "%016" PRIx64, entry->id);
	memcpy(out->held, entry->held, sizeof(out->held));
	out->spread = entry->spread;
	return NULL;
}

/* Which of two grew more: sums of bytes from outside may be any number of 64 bits, and so may the change. */
static int compare_growth(uint64_t a_old, uint64_t a_new, uint64_t b_old, uint64_t b_new)
{
	__int128 a = (__int128)a_new - (__int128)a_old, b = (__int128)b_new - (__int128)b_old;

	return (a < b) - (a > b);
}

static int compare_stacks(const void *left, const void *right)
{
	const struct mw_diff_stack *a = left, *b = right;
	int order = compare_growth(a->held[MW_DIFF_OLD].bytes, a->held[MW_DIFF_NEW].bytes, b->held[MW_DIFF_OLD].bytes,
				   b->held[MW_DIFF_NEW].bytes);

	if (!order)
		order = compare_growth(a->held[MW_DIFF_OLD].count, a->held[MW_DIFF_NEW].count,
				       b->held[MW_DIFF_OLD].count, b->held[MW_DIFF_NEW].count);
	return order ? order : strcmp(a->id, b->id);
}

static int compare_speeds(const void *left, const void *right, void *context)
{
	static const int places[] = {[MW_DIFF_MORE] = 0, [MW_DIFF_SAME] = 1, [MW_DIFF_LESS] = 2};
	const struct mw_diff_stack *a = left, *b = right;
	const struct mw_diff *diff = context;
	double a_by = rate_of(diff, a, MW_DIFF_NEW).value, b_by = rate_of(diff, b, MW_DIFF_NEW).value;

	if (a->change != b->change)
		return places[a->change] - places[b->change];
	if (a->change != MW_DIFF_SAME) {
		a_by -= rate_of(diff, a, MW_DIFF_OLD).value;
		b_by -= rate_of(diff, b, MW_DIFF_OLD).value;
	}
	return a_by == b_by ? strcmp(a->id, b->id) : (a_by < b_by) - (a_by > b_by);
}

static struct mw_error *fill_stacks(struct builder *builder)
{
	struct mw_diff *diff = builder->diff;
	size_t count = builder->numbering.count;

	diff->stacks = mw_arena_array(builder->arena, count, sizeof(*diff->stacks));
	if (!diff->stacks)
		return mw_error_nomem();
	diff->stack_count = count;
	for (size_t i = 0; i < count; i++)
		MW_TRY(fill_stack(builder, &builder->entries[i], &diff->stacks[i]));
	judge(diff);
	if (count && diff->basis == MW_DIFF_RATES)
		qsort_r(diff->stacks, count, sizeof(*diff->stacks), compare_speeds, diff);
	else if (count)
		qsort(diff->stacks, count, sizeof(*diff->stacks), compare_stacks);
	return NULL;
}

static void fill_snapshot(struct mw_arena *arena, const struct mw_diff_snapshot *from, struct mw_diff_snapshot *to)
{
	*to = *from;
	to->file = mw_arena_string(arena, from->file);
	to->moment = mw_arena_string(arena, from->moment);
	to->comm = mw_arena_string(arena, from->comm);
	to->exe = mw_arena_string(arena, from->exe);
}

static struct mw_error *build(struct builder *builder, const struct mw_diff_input inputs[MW_DIFF_SIDES],
			      const bool kinds[MW_KIND_COUNT])
{
	struct mw_diff *diff = builder->diff;

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		diff->compared[kind] = kinds[kind] && inputs[MW_DIFF_OLD].snapshot.tracked[kind] &&
				       inputs[MW_DIFF_NEW].snapshot.tracked[kind];
	for (unsigned which = 0; which < MW_DIFF_SIDES; which++) {
		builder->sides[which].input = &inputs[which];
		fill_snapshot(builder->arena, &inputs[which].snapshot, &diff->snapshots[which]);
		diff->snapshots[which].build_id = find_build(&inputs[which], builder->arena);
		diff->snapshots[which].sampled = mw_track_sampled(inputs[which].summary->track);
		MW_TRY(add_side(builder, (enum mw_diff_side)which));
	}
	diff->basis = choose_basis(diff->snapshots);
	diff->one_reading = inputs[MW_DIFF_NEW].stays != NULL;
	diff->program = compare_programs(diff->snapshots);
	MW_TRY(fill_stacks(builder));
	return diff_builds(inputs, builder->arena, diff);
}

static void builder_deinit(struct builder *builder)
{
	for (unsigned which = 0; which < MW_DIFF_SIDES; which++)
		mw_framer_destroy(builder->sides[which].framer);
	mw_map_deinit(&builder->numbering);
	free(builder->entries);
}

struct mw_error *mw_diff_create(const struct mw_diff_input inputs[MW_DIFF_SIDES], const bool kinds[MW_KIND_COUNT],
				struct mw_diff **out)
{
	struct mw_diff *diff = calloc(1, sizeof(*diff));
	struct builder builder = {.diff = diff, .arena = mw_arena_create()};
	struct mw_error *err;

	if (!diff || !builder.arena) {
		free(diff);
		mw_arena_destroy(builder.arena);
		return mw_error_nomem();
	}
	diff->arena = builder.arena;
	err = build(&builder, inputs, kinds);
	builder_deinit(&builder);
	if (!err && mw_arena_failed(diff->arena))
		err = mw_error_nomem();
	if (err) {
		mw_diff_destroy(diff);
		return err;
	}
	*out = diff;
	return NULL;
}

// SPDX-License-Identifier: MIT
/* rows.c: the rows of a live table: what is summed in each, which the filter lets through, in which order (view.h). */
#include "top/view.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

/* --- rows -------------------------------------------------------------------------------------------------- */

static void add_sums(struct mw_top_row *row, const struct mw_track_sum *now, const struct mw_track_sum *before)
{
	row->impacting.bytes += now->impacting.bytes;
	row->impacting.count += now->impacting.count;
	row->allocations += now->allocations;
	row->growth += (int64_t)now->impacting.bytes - (before ? (int64_t)before->impacting.bytes : 0);
	row->new_allocations += now->allocations - (before ? before->allocations : 0);
}

static bool make_room(struct mw_top_rows *rows, size_t count)
{
	rows->count = 0;
	return MW_VECTOR_ROOM(rows->items, count, rows->capacity);
}

/* Those of nothing are taken out. */
static void drop_empty(struct mw_top_rows *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows->items[i].allocations > 0 || rows->items[i].impacting.count > 0)
			rows->items[rows->count++] = rows->items[i];
}

static const struct mw_track_sum *sum_of(const struct mw_track_sum *sums, uint32_t count, uint32_t number)
{
	return number < count ? &sums[number] : NULL;
}

/* --- what the filter lets through --------------------------------------------------------------------------- */

enum { SAYS_NOTHING, SAYS_NO, SAYS_YES }; /* a filter, of a stack */

#define OF_NAMES   (1u << MW_COLUMN_FUNCTION | 1u << MW_COLUMN_MODULE | 1u << MW_COLUMN_STACK)
#define OF_STACKS  (OF_NAMES | 1u << MW_COLUMN_API | 1u << MW_COLUMN_KIND)
#define OF_THREADS (1u << MW_COLUMN_THREAD)

static const struct mw_filter *filter_of(const struct mw_top_view *view, enum mw_top_group group)
{
	return view->filters[group == MW_TOP_THREADS ? MW_TOP_OF_THREADS : MW_TOP_OF_STACKS];
}

/* False: its names are not known yet, and the filter is about these; or there is no memory. */
static bool fill_stack(const struct mw_top_view *view, const struct mw_filter *filter, uint32_t number,
		       struct mw_report_stack *out)
{
	const struct mw_top_stack *stack = mw_top_view_stack(view, number);
	const struct mw_top_named *named = mw_top_view_named(view, number);

	*out = (struct mw_report_stack){.kind = stack->kind, .api = stack->api};
	if (!(mw_filter_columns(filter) & OF_NAMES))
		return true;
	out->frames = named ? calloc(named->line_count + 1, sizeof(*out->frames)) : NULL;
	if (!out->frames)
		return false;
	memcpy(out->id, named->id, sizeof(out->id));
	for (; out->frame_count < named->line_count; out->frame_count++) {
		const struct mw_top_line *line = &named->lines[out->frame_count];

		out->frames[out->frame_count] =
			(struct mw_report_frame){.function = line->function, .module = line->module};
	}
	return true;
}

static uint8_t ask(const struct mw_top_view *view, const struct mw_filter *filter, uint32_t number)
{
	struct mw_report_stack stack;
	uint64_t terms;

	if (!fill_stack(view, filter, number, &stack))
		return SAYS_NOTHING;
	terms = mw_filter_stack(filter, &stack) | mw_filter_block(filter, stack.kind, MW_FATE_IMPACTING, 0);
	free(stack.frames);
	return mw_filter_is_true(filter, terms) ? SAYS_YES : SAYS_NO;
}

/* What it says of a stack does not change once that has its names. */
static bool ask_all(struct mw_top_view *view)
{
	const struct mw_filter *filter = view->filters[MW_TOP_OF_STACKS];
	uint32_t count = view->shown->stack_count;

	view->unnamed = 0;
	if (!filter)
		return true;
	if (!mw_vector_reach(&view->said, &view->said_count, count, sizeof(*view->said)))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_top_stack *stack = mw_top_view_stack(view, i);

		if (stack->as || stack->kind == MW_KIND_VM_INTERNAL)
			continue;
		if (view->said[i] == SAYS_NOTHING)
			view->said[i] = ask(view, filter, i);
		view->unnamed += view->said[i] == SAYS_NOTHING;
	}
	return true;
}

/* Is a stack's row, or what it adds to a module's, to be shown? */
static bool is_let_through(const struct mw_top_view *view, uint32_t number, const struct mw_top_stack *stack)
{
	uint32_t row = stack->as ? stack->as - 1 : number;

	return stack->kind != MW_KIND_VM_INTERNAL && (!view->filters[MW_TOP_OF_STACKS] || view->said[row] == SAYS_YES);
}

static bool is_thread_let_through(const struct mw_top_view *view, uint32_t number)
{
	const struct mw_filter *filter = view->filters[MW_TOP_OF_THREADS];
	const struct mw_top_thread *thread = &view->shown->names[number];

	return !filter ||
	       mw_filter_is_true(filter, mw_filter_name(filter, MW_COLUMN_THREAD, (uint64_t)thread->tid, thread->name));
}

static struct mw_error *check_filter(const struct mw_top_view *view, const struct mw_filter *filter)
{
	bool threads = view->group == MW_TOP_THREADS;
	uint32_t wrong = mw_filter_columns(filter) & ~(threads ? OF_THREADS : OF_STACKS);

	for (unsigned i = 0; i < MW_COLUMN_COUNT; i++)
		if (wrong & 1u << i)
			return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s: is not known of these rows",
							     mw_column_name((enum mw_column)i)),
					     threads ? "Of threads it takes thread:, of stacks (1) the others"
						     : "It takes function, module, api, kind and stack, of threads (3) "
						       "thread:; w writes a recording that report asks for all");
	return NULL;
}

struct mw_error *mw_top_view_filter(struct mw_top_view *view, const char *text)
{
	struct mw_filter **place = &view->filters[view->group == MW_TOP_THREADS ? MW_TOP_OF_THREADS : MW_TOP_OF_STACKS];
	struct mw_filter *filter = NULL;
	struct mw_error *err = NULL;

	if (*text)
		MW_TRY(mw_filter_parse(text, &filter));
	if (filter)
		err = check_filter(view, filter);
	if (err) {
		mw_filter_destroy(filter);
		return err;
	}
	mw_filter_destroy(*place);
	*place = filter;
	if (view->group != MW_TOP_THREADS && view->said)
		memset(view->said, SAYS_NOTHING, view->said_count);
	view->selected = view->first = 0;
	return NULL;
}

const char *mw_top_view_filter_text(const struct mw_top_view *view)
{
	const struct mw_filter *filter = filter_of(view, view->group);

	return filter ? mw_filter_text(filter) : NULL;
}

bool mw_top_view_is_wanted(const struct mw_top_view *view, uint32_t stack)
{
	const struct mw_filter *filter = filter_of(view, view->group);

	return filter && stack < view->said_count && view->said[stack] == SAYS_NOTHING &&
	       !mw_top_view_stack(view, stack)->as && mw_top_view_stack(view, stack)->kind != MW_KIND_VM_INTERNAL;
}

/* --- rows of each group --------------------------------------------------------------------------------------- */

static bool make_stacks(struct mw_top_view *view, struct mw_top_rows *rows)
{
	const struct mw_top_shot *now = view->shown, *base = view->base;

	if (!make_room(rows, now->stack_count))
		return false;
	for (uint32_t i = 0; i < now->stack_count; i++) {
		const struct mw_top_stack *stack = mw_top_view_stack(view, i);

		rows->items[i] = (struct mw_top_row){.key = i, .kind = stack->kind};
		/* It comes before, and has a row. */
		if (is_let_through(view, i, stack))
			add_sums(&rows->items[stack->as ? stack->as - 1 : i], &now->stacks[i],
				 sum_of(base->stacks, base->stack_count, i));
	}
	drop_empty(rows, now->stack_count);
	return true;
}

static bool make_threads(struct mw_top_view *view, struct mw_top_rows *rows)
{
	const struct mw_top_shot *now = view->shown, *base = view->base;

	if (!make_room(rows, now->thread_count))
		return false;
	for (uint32_t i = 0; i < now->thread_count; i++) {
		rows->items[i] = (struct mw_top_row){.key = i, .kind = MW_KIND_HEAP};
		if (is_thread_let_through(view, i))
			add_sums(&rows->items[i], &now->threads[i], sum_of(base->threads, base->thread_count, i));
	}
	drop_empty(rows, now->thread_count);
	return true;
}

static bool make_modules(struct mw_top_view *view, struct mw_top_rows *rows)
{
	const struct mw_top_shot *now = view->shown, *base = view->base;
	size_t none = mw_shared_list_count(&view->known->modules);

	if (!make_room(rows, none))
		return false;
	for (size_t i = 0; i <= none; i++)
		rows->items[i] = (struct mw_top_row){.key = i < none ? (uint32_t)i : MW_MODULE_NONE};
	for (uint32_t i = 0; i < now->stack_count; i++) {
		const struct mw_top_stack *stack = mw_top_view_stack(view, i);

		if (is_let_through(view, i, stack))
			add_sums(&rows->items[stack->module < none ? stack->module : none], &now->stacks[i],
				 sum_of(base->stacks, base->stack_count, i));
	}
	drop_empty(rows, none + 1);
	return true;
}

struct order {
	enum mw_top_sort sort;
	bool reversed;
};

static int compare_numbers(double a, double b)
{
	return a > b ? -1 : a < b ? 1 : 0;
}

static int compare_names(const char *a, const char *b)
{
	/* Those that are not known come last, whichever way it goes. */
	return !a || !b ? (a ? -1 : b ? 1 : 0) : strcmp(a, b);
}

static int compare_rows(const void *one, const void *other, void *context)
{
	const struct mw_top_row *a = one, *b = other;
	const struct order *order = context;
	int result = 0;

	switch (order->sort) {
	case MW_TOP_BY_GROWTH:
		result = compare_numbers((double)a->growth, (double)b->growth);
		break;
	case MW_TOP_BY_BLOCKS:
		result = compare_numbers((double)a->impacting.count, (double)b->impacting.count);
		break;
	case MW_TOP_BY_RATE:
		result = compare_numbers((double)a->new_allocations, (double)b->new_allocations);
		break;
	case MW_TOP_BY_NAME:
		result = compare_names(a->name, b->name);
		if (!a->name || !b->name)
			return result ? result : a->key < b->key ? -1 : a->key > b->key;
		break;
	default:
		break;
	}
	if (!result)
		result = compare_numbers((double)a->impacting.bytes, (double)b->impacting.bytes);
	if (result)
		return order->reversed ? -result : result;
	return a->key < b->key ? -1 : a->key > b->key;
}

/* What names a row; NULL: not known. */
static const char *name_of(const struct mw_top_view *view, enum mw_top_group group, uint32_t key)
{
	const struct mw_view_module *module;
	const struct mw_top_named *named;

	if (group == MW_TOP_THREADS)
		return view->shown->names[key].name;
	if (group == MW_TOP_MODULES) {
		module = mw_top_view_module(view, key);
		return module ? module->path : NULL;
	}
	named = mw_top_view_named(view, key);
	return named && named->line_count ? named->lines[named->charged].function : NULL;
}

/* By what is most, by names from A. Rows that are equal stay where they were. */
static void sort_rows(const struct mw_top_view *view, struct mw_top_rows *rows, enum mw_top_group group)
{
	struct order order = {view->sort, view->reversed};

	for (size_t i = 0; i < rows->count && view->sort == MW_TOP_BY_NAME; i++)
		rows->items[i].name = name_of(view, group, rows->items[i].key);
	qsort_r(rows->items, rows->count, sizeof(*rows->items), compare_rows, &order);
}

bool mw_top_view_rows(struct mw_top_view *view, struct mw_top_rows *rows, enum mw_top_group group)
{
	static bool (*const make[])(struct mw_top_view * view, struct mw_top_rows * rows) = {
		[MW_TOP_STACKS] = make_stacks,
		[MW_TOP_MODULES] = make_modules,
		[MW_TOP_THREADS] = make_threads,
	};
	bool good;

	rows->count = 0;
	good = ask_all(view) && make[group](view, rows);
	sort_rows(view, rows, group);
	return good;
}

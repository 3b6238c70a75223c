// SPDX-License-Identifier: MIT
/* rows.c: see rows.h. */
#include "top/rows.h"

#include <stdlib.h>
#include <string.h>

void mw_top_rows_deinit(struct mw_top_rows *rows)
{
	free(rows->items);
	*rows = (struct mw_top_rows){.items = NULL};
}

/* --- history ----------------------------------------------------------------------------------------------- */

struct mw_top_shot *mw_top_shot_hold(struct mw_top_shot *shot)
{
	if (shot)
		shot->holders++;
	return shot;
}

void mw_top_shot_release(struct mw_top_shot *shot)
{
	if (shot && --shot->holders == 0)
		mw_top_shot_destroy(shot);
}

static void drop_first(struct mw_top_history *history)
{
	mw_top_shot_release(history->shots[0]);
	history->count--;
	memmove(history->shots, history->shots + 1, history->count * sizeof(history->shots[0]));
}

void mw_top_history_deinit(struct mw_top_history *history)
{
	while (history->count)
		drop_first(history);
}

void mw_top_history_add(struct mw_top_history *history, struct mw_top_shot *shot)
{
	/* What was counted before a zero point has nothing to do with what is counted since. */
	while (history->count && history->shots[0]->zeros != shot->zeros)
		drop_first(history);
	/* One that is older than the span is no longer needed where there is a newer one that is as good. */
	while (history->count > 1 && shot->time_ns - history->shots[1]->time_ns >= MW_TOP_SPAN_NS)
		drop_first(history);
	if (history->count == MW_TOP_HISTORY)
		drop_first(history);
	history->shots[history->count++] = mw_top_shot_hold(shot);
}

struct mw_top_shot *mw_top_history_newest(const struct mw_top_history *history)
{
	return history->count ? history->shots[history->count - 1] : NULL;
}

struct mw_top_shot *mw_top_history_base(const struct mw_top_history *history)
{
	struct mw_top_shot *newest = mw_top_history_newest(history);
	/* Shots are a second apart, and a little more. */
	const uint64_t reach_ns = MW_TOP_SPAN_NS + MW_TOP_SPAN_NS / 20;

	for (size_t i = 0; i < history->count; i++)
		if (newest->time_ns - history->shots[i]->time_ns <= reach_ns)
			return history->shots[i];
	return newest;
}

double mw_top_per_second(double change, const struct mw_top_shot *base, const struct mw_top_shot *now)
{
	if (!base || !now || now->time_ns <= base->time_ns)
		return 0;
	return change / ((double)(now->time_ns - base->time_ns) / 1e9);
}

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
	struct mw_top_row *items;

	rows->count = 0;
	if (count <= rows->capacity)
		return true;
	items = reallocarray(rows->items, count + count / 4, sizeof(*items));
	if (!items)
		return false;
	rows->items = items;
	rows->capacity = count + count / 4;
	return true;
}

/* A row for each of so many; those of nothing are taken out again. */
static void add_each(struct mw_top_rows *rows, uint32_t key, enum mw_kind kind, const struct mw_track_sum *now,
		     const struct mw_track_sum *before)
{
	struct mw_top_row *row = &rows->items[rows->count];

	*row = (struct mw_top_row){.key = key, .kind = kind};
	add_sums(row, now, before);
	rows->count += row->allocations > 0 || row->impacting.count > 0;
}

static bool make_stacks(struct mw_top_rows *rows, const struct mw_top_registry *registry,
			const struct mw_top_shot *base, const struct mw_top_shot *now)
{
	size_t count = now->stack_count < registry->stack_count ? now->stack_count : registry->stack_count;

	if (!make_room(rows, count + 1))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_top_stack *stack = registry->stacks[i];

		rows->items[i] = (struct mw_top_row){.key = i, .kind = stack->kind};
		/* It comes before, and has a row. */
		if (stack->kind != MW_KIND_VM_INTERNAL)
			add_sums(&rows->items[stack->as ? stack->as - 1 : i], &now->stacks[i],
				 i < base->stack_count ? &base->stacks[i] : NULL);
	}
	for (size_t i = 0; i < count; i++)
		if (rows->items[i].allocations > 0 || rows->items[i].impacting.count > 0)
			rows->items[rows->count++] = rows->items[i];
	return true;
}

static bool make_threads(struct mw_top_rows *rows, const struct mw_top_registry *registry,
			 const struct mw_top_shot *base, const struct mw_top_shot *now)
{
	if (!make_room(rows, (size_t)now->thread_count + 1))
		return false;
	for (uint32_t i = 0; i < now->thread_count && i < registry->thread_count; i++)
		add_each(rows, i, MW_KIND_HEAP, &now->threads[i], i < base->thread_count ? &base->threads[i] : NULL);
	return true;
}

static bool make_modules(struct mw_top_rows *rows, const struct mw_top_registry *registry,
			 const struct mw_top_shot *base, const struct mw_top_shot *now)
{
	size_t none = registry->module_count, kept = 0;

	if (!make_room(rows, none + 1))
		return false;
	for (size_t i = 0; i <= none; i++)
		rows->items[i] = (struct mw_top_row){.key = i < none ? (uint32_t)i : MW_MODULE_NONE};
	for (uint32_t i = 0; i < now->stack_count && i < registry->stack_count; i++) {
		const struct mw_top_stack *stack = registry->stacks[i];

		if (stack->kind != MW_KIND_VM_INTERNAL)
			add_sums(&rows->items[stack->module < none ? stack->module : none], &now->stacks[i],
				 i < base->stack_count ? &base->stacks[i] : NULL);
	}
	for (size_t i = 0; i <= none; i++)
		if (rows->items[i].allocations || rows->items[i].impacting.count)
			rows->items[kept++] = rows->items[i];
	rows->count = kept;
	return true;
}

bool mw_top_rows_make(struct mw_top_rows *rows, const struct mw_top_registry *registry, const struct mw_top_shot *base,
		      const struct mw_top_shot *now, enum mw_top_group group)
{
	if (group == MW_TOP_MODULES)
		return make_modules(rows, registry, base, now);
	if (group == MW_TOP_THREADS)
		return make_threads(rows, registry, base, now);
	return make_stacks(rows, registry, base, now);
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

void mw_top_rows_sort(struct mw_top_rows *rows, enum mw_top_group group, enum mw_top_sort sort, bool reversed,
		      mw_top_name_of *name_of, void *context)
{
	struct order order = {sort, reversed};

	for (size_t i = 0; i < rows->count && sort == MW_TOP_BY_NAME; i++)
		rows->items[i].name = name_of(context, group, rows->items[i].key);
	qsort_r(rows->items, rows->count, sizeof(*rows->items), compare_rows, &order);
}

const char *mw_top_group_name(enum mw_top_group group)
{
	static const char *const names[] = {"stack", "module", "thread"};

	return names[group];
}

const char *mw_top_sort_name(enum mw_top_sort sort)
{
	static const char *const names[] = {"impacting bytes", "growth", "blocks", "allocations/s", "name"};

	return names[sort];
}

// SPDX-License-Identifier: MIT
/* view.c: see view.h. */
#include "top/view.h"

#include "base/vector.h"
#include "output/line.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is known ----------------------------------------------------------------------------------------- */

static const struct mw_top_stack *stack_of(const struct mw_top_view *view, uint32_t number)
{
	return mw_shared_list_get(&view->known->stacks, number);
}

static const struct mw_view_module *module_of(const struct mw_top_view *view, uint32_t number)
{
	return mw_shared_list_get(&view->known->modules, number);
}

/* NULL: its names are not known yet. */
static const struct mw_top_named *named_of(const struct mw_top_view *view, uint32_t stack)
{
	const struct mw_top_stack *known = stack_of(view, stack);

	return known ? atomic_load(&known->named) : NULL;
}

/* --- history ----------------------------------------------------------------------------------------------- */

static struct mw_top_shot *hold(struct mw_top_shot *shot)
{
	if (shot)
		shot->holders++;
	return shot;
}

static void release(struct mw_top_shot *shot)
{
	if (shot && --shot->holders == 0)
		mw_top_shot_destroy(shot);
}

static void drop_first(struct mw_top_history *history)
{
	release(history->shots[0]);
	history->count--;
	memmove(history->shots, history->shots + 1, history->count * sizeof(history->shots[0]));
}

static void add_shot(struct mw_top_history *history, struct mw_top_shot *shot)
{
	/* What was counted before a zero point has nothing to do with what is counted since. */
	while (history->count && history->shots[0]->zeros != shot->zeros)
		drop_first(history);
	/* One that is older than the span is no longer needed where there is a newer one that is as good. */
	while (history->count > 1 && shot->time_ns - history->shots[1]->time_ns >= MW_TOP_SPAN_NS)
		drop_first(history);
	if (history->count == MW_TOP_HISTORY)
		drop_first(history);
	history->shots[history->count++] = hold(shot);
}

static struct mw_top_shot *newest_of(const struct mw_top_history *history)
{
	return history->count ? history->shots[history->count - 1] : NULL;
}

/* The one that growth is measured since: the first inside the span. The newest itself where there is no other. */
static struct mw_top_shot *base_of(const struct mw_top_history *history)
{
	struct mw_top_shot *newest = newest_of(history);
	/* Shots are a second apart, and a little more. */
	const uint64_t reach_ns = MW_TOP_SPAN_NS + MW_TOP_SPAN_NS / 20;

	for (size_t i = 0; i < history->count; i++)
		if (newest->time_ns - history->shots[i]->time_ns <= reach_ns)
			return history->shots[i];
	return newest;
}

void mw_top_view_deinit(struct mw_top_view *view)
{
	release(view->shown);
	release(view->base);
	while (view->history.count)
		drop_first(&view->history);
	free(view->rows.items);
	free(view->children.items);
	free(view->items);
	*view = (struct mw_top_view){.known = NULL};
}

static void look_at_newest(struct mw_top_view *view)
{
	struct mw_top_shot *shown = hold(newest_of(&view->history));
	struct mw_top_shot *base = hold(base_of(&view->history));

	release(view->shown);
	release(view->base);
	view->shown = shown;
	view->base = base;
}

void mw_top_view_shot(struct mw_top_view *view, struct mw_top_shot *shot)
{
	add_shot(&view->history, shot);
	if (!view->paused)
		look_at_newest(view);
}

void mw_top_view_pause(struct mw_top_view *view, bool paused)
{
	view->paused = paused;
	if (!paused)
		look_at_newest(view);
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

static bool make_stacks(struct mw_top_view *view, struct mw_top_rows *rows)
{
	const struct mw_top_shot *now = view->shown, *base = view->base;

	if (!make_room(rows, now->stack_count))
		return false;
	for (uint32_t i = 0; i < now->stack_count; i++) {
		const struct mw_top_stack *stack = stack_of(view, i);

		rows->items[i] = (struct mw_top_row){.key = i, .kind = stack->kind};
		/* It comes before, and has a row. */
		if (stack->kind != MW_KIND_VM_INTERNAL)
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
		const struct mw_top_stack *stack = stack_of(view, i);

		if (stack->kind != MW_KIND_VM_INTERNAL)
			add_sums(&rows->items[stack->module < none ? stack->module : none], &now->stacks[i],
				 sum_of(base->stacks, base->stack_count, i));
	}
	drop_empty(rows, none + 1);
	return true;
}

/* Of what is shown; not vm-internal. False without memory. */
static bool make_rows(struct mw_top_view *view, struct mw_top_rows *rows, enum mw_top_group group)
{
	static bool (*const make[])(struct mw_top_view * view, struct mw_top_rows * rows) = {
		[MW_TOP_STACKS] = make_stacks,
		[MW_TOP_MODULES] = make_modules,
		[MW_TOP_THREADS] = make_threads,
	};

	return make[group](view, rows);
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
		module = module_of(view, key);
		return module ? module->path : NULL;
	}
	named = named_of(view, key);
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

/* --- items ------------------------------------------------------------------------------------------------- */

static bool is_open(const struct mw_top_view *view, enum mw_top_group group, uint32_t key)
{
	for (size_t i = 0; i < view->open_count; i++)
		if (view->open[i].group == group && view->open[i].key == key)
			return true;
	return false;
}

static bool add_item(struct mw_top_view *view, const struct mw_top_item *item)
{
	if (!MW_VECTOR_ROOM(view->items, view->item_count, view->item_capacity))
		return false;
	view->items[view->item_count++] = *item;
	return true;
}

/* A stack's row, and what is under it where it is open. */
static bool add_stack(struct mw_top_view *view, struct mw_top_item item)
{
	const struct mw_top_stack *stack = stack_of(view, item.key);
	const struct mw_top_named *named = named_of(view, item.key);
	uint32_t count = named ? (uint32_t)named->line_count : stack ? stack->frame_count : 0;
	bool good;

	item.open = is_open(view, MW_TOP_STACKS, item.key);
	good = add_item(view, &item);
	if (!item.open)
		return good;
	item.open = false;
	item.kind = MW_TOP_DETAIL;
	good = good && add_item(view, &item);
	item.kind = MW_TOP_FRAME;
	for (item.frame = 0; item.frame < count && good; item.frame++)
		good = add_item(view, &item);
	return good;
}

/* The stacks of a module, in the order that its siblings have. */
static bool add_children(struct mw_top_view *view, uint32_t module)
{
	size_t shown = 0;

	for (size_t i = 0; i < view->children.count && shown < MW_TOP_CHILDREN_MAX; i++) {
		uint32_t key = view->children.items[i].key;

		if (stack_of(view, key)->module != module)
			continue;
		shown++;
		if (!add_stack(view, (struct mw_top_item){.kind = MW_TOP_CHILD, .key = key, .owner = module, .row = i}))
			return false;
	}
	return true;
}

static bool any_module_open(const struct mw_top_view *view)
{
	for (size_t i = 0; i < view->open_count; i++)
		if (view->open[i].group == MW_TOP_MODULES)
			return true;
	return false;
}

static bool make_items(struct mw_top_view *view)
{
	bool good = true;

	view->item_count = 0;
	for (size_t i = 0; i < view->rows.count && good; i++) {
		struct mw_top_item item = {.kind = MW_TOP_ROW, .key = view->rows.items[i].key, .row = i};

		if (view->group == MW_TOP_STACKS) {
			good = add_stack(view, item);
			continue;
		}
		item.open = is_open(view, view->group, item.key);
		good = add_item(view, &item);
		if (good && item.open)
			good = add_children(view, item.key);
	}
	return good;
}

static bool same_item(const struct mw_top_item *a, const struct mw_top_item *b)
{
	return a->kind == b->kind && a->key == b->key && a->owner == b->owner && a->frame == b->frame;
}

/* Where the item is now; where it is no more, what stands at its place. */
static void select_again(struct mw_top_view *view, const struct mw_top_item *before)
{
	if (before && view->selected < view->item_count && same_item(&view->items[view->selected], before))
		return;
	for (size_t i = 0; before && i < view->item_count; i++)
		if (same_item(&view->items[i], before)) {
			view->selected = i;
			return;
		}
	if (view->selected >= view->item_count)
		view->selected = view->item_count ? view->item_count - 1 : 0;
}

bool mw_top_view_update(struct mw_top_view *view)
{
	const struct mw_top_item *selected = mw_top_view_item(view);
	struct mw_top_item before = selected ? *selected : (struct mw_top_item){.key = 0};
	/* Who has not moved from the first line wants to see what comes to be there. */
	bool follows = view->selected > 0 && selected;
	bool good = true;

	if (!view->shown)
		return true;
	good = make_rows(view, &view->rows, view->group);
	sort_rows(view, &view->rows, view->group);
	view->children.count = 0;
	if (good && view->group == MW_TOP_MODULES && any_module_open(view)) {
		good = make_stacks(view, &view->children);
		sort_rows(view, &view->children, MW_TOP_STACKS);
	}
	good = good && make_items(view);
	select_again(view, follows || (selected && before.open) ? &before : NULL);
	return good;
}

/* --- moving ------------------------------------------------------------------------------------------------ */

void mw_top_view_move(struct mw_top_view *view, long by)
{
	size_t last = view->item_count ? view->item_count - 1 : 0;

	if (by < 0)
		view->selected = view->selected > (size_t)-by ? view->selected - (size_t)-by : 0;
	else
		view->selected = (size_t)by < last - view->selected ? view->selected + (size_t)by : last;
}

void mw_top_view_scroll(struct mw_top_view *view, size_t lines)
{
	size_t most = view->item_count > lines ? view->item_count - lines : 0;

	if (view->selected < view->first)
		view->first = view->selected;
	if (lines && view->selected >= view->first + lines)
		view->first = view->selected - lines + 1;
	if (view->first > most)
		view->first = most;
}

bool mw_top_view_toggle(struct mw_top_view *view, bool open, bool close)
{
	const struct mw_top_item *item = mw_top_view_item(view);
	struct mw_top_open what;

	if (!item || (item->kind == MW_TOP_ROW && view->group == MW_TOP_THREADS))
		return false;
	what.group = item->kind == MW_TOP_ROW ? view->group : MW_TOP_STACKS;
	what.key = item->key;
	for (size_t i = 0; i < view->open_count; i++) {
		if (view->open[i].group != what.group || view->open[i].key != what.key)
			continue;
		if (close)
			view->open[i] = view->open[--view->open_count];
		/* What closes was under it: the row is selected then. */
		while (close && view->selected &&
		       (view->items[view->selected].kind == MW_TOP_DETAIL ||
			view->items[view->selected].kind == MW_TOP_FRAME))
			view->selected--;
		return true;
	}
	if (!open || view->open_count == MW_TOP_OPEN_MAX)
		return false;
	view->open[view->open_count++] = what;
	return true;
}

static bool is_stack(const struct mw_top_view *view, const struct mw_top_item *item)
{
	return item->kind != MW_TOP_ROW || view->group == MW_TOP_STACKS;
}

static size_t add_wanted(const struct mw_top_view *view, uint32_t stack, uint32_t *out, size_t count, size_t capacity)
{
	if (count == capacity || (count && out[count - 1] == stack) || named_of(view, stack))
		return count;
	out[count] = stack;
	return count + 1;
}

size_t mw_top_view_wanted(const struct mw_top_view *view, size_t lines, uint32_t *out, size_t capacity)
{
	size_t count = 0;

	for (size_t i = view->first; i < view->item_count && i - view->first < lines; i++)
		if (is_stack(view, &view->items[i]))
			count = add_wanted(view, view->items[i].key, out, count, capacity);
	/* To sort by names all are needed. */
	for (size_t i = 0; i < view->rows.count && view->group == MW_TOP_STACKS && view->sort == MW_TOP_BY_NAME; i++)
		count = add_wanted(view, view->rows.items[i].key, out, count, capacity);
	return count;
}

/* --- text ------------------------------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void append(char *out, size_t size, const char *text)
{
	size_t length = strlen(out);

	(void)snprintf(out + length, size - length, "%s", text);
}

/* "module!function+0x12 (file:line)" */
static void put_line(const struct mw_top_line *line, bool whole, char *out, size_t size)
{
	const char *module = line->module ? line->module : "code in no file";
	char place[64];

	if (line->function && whole)
		(void)snprintf(out, size, "%s!%s+%#" PRIx64, module, line->function, line->offset);
	else if (line->function)
		(void)snprintf(out, size, "%s", line->function);
	else
		(void)snprintf(out, size, "%s%s%#" PRIx64, line->module ? line->module : "", line->module ? "+" : "",
			       line->offset);
	if (line->function && line->file) {
		append(out, size, " (");
		append(out, size, whole ? line->file : base_name(line->file));
		(void)snprintf(place, sizeof(place), line->line ? ":%u)" : ")", line->line);
		append(out, size, place);
	}
	if (line->inlined && whole)
		append(out, size, " inlined");
}

/* Of one that has no names (yet). */
static void put_raw(const struct mw_top_view *view, const struct mw_raw_frame *frame, char *out, size_t size)
{
	const struct mw_view_module *module = module_of(view, frame->module);

	if (module && module->path)
		(void)snprintf(out, size, "%s+%#" PRIx64, base_name(module->path), frame->addr - module->base);
	else
		(void)snprintf(out, size, "%#" PRIx64, frame->addr);
}

/* The first frame of what the stack is charged to. */
static const struct mw_raw_frame *charged_frame(const struct mw_top_stack *stack)
{
	for (uint32_t i = 0; i < stack->frame_count; i++)
		if (stack->frames[i].module == stack->module && stack->module != MW_MODULE_NONE)
			return &stack->frames[i];
	return stack->frame_count ? &stack->frames[0] : NULL;
}

/* The function, and those that called it as far as there is room. */
static void put_stack(const struct mw_top_view *view, uint32_t key, char *out, size_t size)
{
	const struct mw_top_named *named = named_of(view, key);
	const struct mw_top_stack *stack = stack_of(view, key);
	const struct mw_raw_frame *frame = stack ? charged_frame(stack) : NULL;

	*out = '\0';
	if (named && named->line_count) {
		put_line(&named->lines[named->charged], false, out, size);
		for (size_t i = named->charged + 1; i < named->line_count && i < named->charged + 8; i++) {
			if (!named->lines[i].function)
				break;
			append(out, size, " < ");
			append(out, size, named->lines[i].function);
		}
	} else if (frame) {
		put_raw(view, frame, out, size);
	} else {
		(void)snprintf(out, size, "(stack not known)");
	}
}

static void put_detail(const struct mw_top_view *view, const struct mw_top_item *item, char *out, size_t size)
{
	const struct mw_top_row *row = mw_top_view_row(view, item);
	const struct mw_top_named *named = named_of(view, item->key);
	const struct mw_top_stack *stack = stack_of(view, item->key);

	if (!row) {
		*out = '\0';
		return;
	}
	(void)snprintf(out, size, "   = %s bytes in %s blocks of %s allocated, by %s", //
		       mw_show_count(row->impacting.bytes).text, mw_show_count(row->impacting.count).text,
		       mw_show_count(row->allocations).text, stack && stack->api ? stack->api : "?");
	if (named && named->id[0]) {
		append(out, size, ", stack ");
		append(out, size, named->id);
	}
	if (stack && stack->cut != MW_STACK_COMPLETE)
		append(out, size, stack->cut == MW_STACK_TRUNCATED ? ", truncated" : ", end not found");
}

static void put_frame(const struct mw_top_view *view, const struct mw_top_item *item, char *out, size_t size)
{
	const struct mw_top_named *named = named_of(view, item->key);
	const struct mw_top_stack *stack = stack_of(view, item->key);
	int length = snprintf(out, size, "   #%-2u ", item->frame);

	if (length < 0 || (size_t)length >= size)
		return;
	if (named && item->frame < named->line_count)
		put_line(&named->lines[item->frame], true, out + length, size - (size_t)length);
	else if (stack && item->frame < stack->frame_count)
		put_raw(view, &stack->frames[item->frame], out + length, size - (size_t)length);
}

void mw_top_view_text(const struct mw_top_view *view, const struct mw_top_item *item, char *out, size_t size)
{
	const struct mw_view_module *module = module_of(view, item->key);

	if (item->kind == MW_TOP_DETAIL)
		put_detail(view, item, out, size);
	else if (item->kind == MW_TOP_FRAME)
		put_frame(view, item, out, size);
	else if (item->kind == MW_TOP_CHILD || view->group == MW_TOP_STACKS)
		put_stack(view, item->key, out, size);
	else if (view->group == MW_TOP_THREADS && item->key < view->shown->thread_count)
		(void)snprintf(out, size, "%s (%d)", view->shown->names[item->key].name,
			       (int)view->shown->names[item->key].tid);
	else if (view->group == MW_TOP_MODULES && module)
		(void)snprintf(out, size, "%s", module->path);
	else
		(void)snprintf(out, size, "(the C or C++ library, or code in no file)");
}

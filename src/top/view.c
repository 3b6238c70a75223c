// SPDX-License-Identifier: MIT
/* view.c: see view.h. */
#include "top/view.h"

#include "base/vector.h"
#include "output/line.h"
#include "output/text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLERS 8 /* frames of a stack in its row, at most */

/* --- history ----------------------------------------------------------------------------------------------- */

static void drop_first(struct mw_top_history *history)
{
	free(history->shots[0]);
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
	history->shots[history->count++] = shot;
}

/* Growth is measured since the first inside the span: the newest itself where there is no other. */
static void look_at_newest(struct mw_top_view *view)
{
	const struct mw_top_history *history = &view->history;
	/* Shots are a second apart, and a little more. */
	const uint64_t reach_ns = MW_TOP_SPAN_NS + MW_TOP_SPAN_NS / 20;
	const struct mw_top_shot *newest;
	size_t base = 0;

	if (!history->count)
		return;
	newest = history->shots[history->count - 1];
	while (newest->time_ns - history->shots[base]->time_ns > reach_ns)
		base++;
	view->base = history->shots[base];
	/* There was no time for courses in each; those of before a zero point are of something else. */
	if (newest->course_count || (view->shown && view->course_zeros != newest->zeros)) {
		memcpy(view->courses, newest->courses, newest->course_count * sizeof(*view->courses));
		view->course_count = newest->course_count;
		view->course_zeros = newest->zeros;
	}
	view->shown = newest;
}

void mw_top_view_deinit(struct mw_top_view *view)
{
	while (view->history.count)
		drop_first(&view->history);
	while (view->later.count)
		drop_first(&view->later);
	mw_filter_destroy(view->filters[MW_TOP_OF_STACKS]);
	mw_filter_destroy(view->filters[MW_TOP_OF_THREADS]);
	free(view->said);
	free(view->rows.items);
	free(view->children.items);
	free(view->items);
}

void mw_top_view_shot(struct mw_top_view *view, struct mw_top_shot *shot)
{
	if (view->paused) {
		add_shot(&view->later, shot);
		return;
	}
	add_shot(&view->history, shot);
	look_at_newest(view);
}

void mw_top_view_pause(struct mw_top_view *view, bool paused)
{
	view->paused = paused;
	if (paused)
		return;
	for (size_t i = 0; i < view->later.count; i++)
		add_shot(&view->history, view->later.shots[i]);
	view->later.count = 0;
	look_at_newest(view);
}

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

/* --- rows -------------------------------------------------------------------------------------------------- */

static void add_sums(struct mw_top_row *row, const struct mw_track_sum *now, const struct mw_track_sum *before)
{
	row->impacting.bytes += now->impacting.bytes;
	row->impacting.count += now->impacting.count;
	row->variance += now->variance;
	row->allocations += now->allocations;
	row->growth += (int64_t)now->impacting.bytes - (before ? (int64_t)before->impacting.bytes : 0);
	row->new_allocations += now->allocations - (before ? before->allocations : 0);
}

/* Those of nothing are taken out. */
static void drop_empty(struct mw_top_rows *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows->items[i].allocations > 0 || rows->items[i].impacting.count > 0)
			rows->items[rows->count++] = rows->items[i];
}

/* --- what the filter lets through --------------------------------------------------------------------------- */

enum { SAYS_NOTHING, SAYS_NO, SAYS_YES }; /* a filter, of a stack */

#define OF_NAMES   (MW_COLUMNS_OF_STACKS & ~(1u << MW_COLUMN_API))
#define OF_STACKS  (MW_COLUMNS_OF_STACKS | 1u << MW_COLUMN_KIND)
#define OF_THREADS (1u << MW_COLUMN_THREAD)

static const struct mw_filter *filter_of(const struct mw_top_view *view, enum mw_top_group group)
{
	return view->filters[group == MW_TOP_THREADS ? MW_TOP_OF_THREADS : MW_TOP_OF_STACKS];
}

/* Nothing where its names are not known yet, and the filter is about these. */
static uint8_t ask(const struct mw_top_view *view, const struct mw_filter *filter, uint32_t number)
{
	const struct mw_top_stack *stack = stack_of(view, number);
	const struct mw_top_named *named = named_of(view, number);
	const struct mw_report_stack bare = {.kind = stack->kind, .api = stack->api};
	uint64_t terms;

	if (!named && mw_filter_columns(filter) & OF_NAMES)
		return SAYS_NOTHING;
	terms = mw_filter_stack(filter, named ? &named->stack : &bare) |
		mw_filter_block(filter, stack->kind, MW_FATE_IMPACTING, 0);
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
		const struct mw_top_stack *stack = stack_of(view, i);

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
						     : "It takes function, module, line, language, api, kind and "
						       "stack, of threads (3) "
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

static bool lacks_names(const struct mw_top_view *view, uint32_t stack)
{
	const struct mw_filter *filter = filter_of(view, view->group);

	return filter && stack < view->said_count && view->said[stack] == SAYS_NOTHING && !stack_of(view, stack)->as &&
	       stack_of(view, stack)->kind != MW_KIND_VM_INTERNAL;
}

/* --- rows of a group --------------------------------------------------------------------------------------------- */

static int compare_numbers(double a, double b)
{
	return a > b ? -1 : a < b ? 1 : 0;
}

static int compare_names(const char *a, const char *b)
{
	/* Those that are not known come last, whichever way it goes. */
	return a && b ? strcmp(a, b) : (a == NULL) - (b == NULL);
}

static double value_of(const struct mw_top_row *row, enum mw_top_sort sort)
{
	switch (sort) {
	case MW_TOP_BY_GROWTH:
		return (double)row->growth;
	case MW_TOP_BY_BLOCKS:
		return (double)row->impacting.count;
	case MW_TOP_BY_RATE:
		return (double)row->new_allocations;
	default:
		return (double)row->impacting.bytes;
	}
}

static int compare_rows(const void *one, const void *other, void *context)
{
	const struct mw_top_row *a = one, *b = other;
	const struct mw_top_view *view = context;
	bool names = view->sort == MW_TOP_BY_NAME;
	int result = names ? compare_names(a->name, b->name)
			   : compare_numbers(value_of(a, view->sort), value_of(b, view->sort));

	if (names && (!a->name || !b->name))
		return result ? result : (a->key > b->key) - (a->key < b->key);
	if (!result)
		result = compare_numbers((double)a->impacting.bytes, (double)b->impacting.bytes);
	if (result)
		return view->reversed ? -result : result;
	return (a->key > b->key) - (a->key < b->key);
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
	const struct mw_report_frame *frame = named ? mw_report_line(&named->stack) : NULL;

	return frame ? frame->function : NULL;
}

/* By what is most, by names from A. Rows that are equal stay where they were. */
static void sort_rows(struct mw_top_view *view, struct mw_top_rows *rows, enum mw_top_group group)
{
	for (size_t i = 0; i < rows->count && view->sort == MW_TOP_BY_NAME; i++)
		rows->items[i].name = name_of(view, group, rows->items[i].key);
	qsort_r(rows->items, rows->count, sizeof(*rows->items), compare_rows, view);
}

/* Fill in the rows of a group that its filter lets through, in order. False without memory. */
static bool make_rows(struct mw_top_view *view, struct mw_top_rows *rows, enum mw_top_group group)
{
	const struct mw_top_shot *now = view->shown, *base = view->base;
	const bool threads = group == MW_TOP_THREADS, modules = group == MW_TOP_MODULES;
	const struct mw_track_sum *sums = threads ? now->threads : now->stacks;
	const struct mw_track_sum *before = threads ? base->threads : base->stacks;
	const uint32_t count = threads ? now->thread_count : now->stack_count;
	const uint32_t before_count = threads ? base->thread_count : base->stack_count;
	const uint32_t none = mw_shared_list_count(&view->known->modules), total = modules ? none + 1 : count;

	rows->count = 0;
	if (!ask_all(view) || !MW_VECTOR_ROOM(rows->items, total, rows->capacity))
		return false;
	for (uint32_t i = 0; i < total; i++)
		rows->items[i] = (struct mw_top_row){
			.key = modules && i == none ? MW_MODULE_NONE : i,
			.kind = group == MW_TOP_STACKS ? stack_of(view, i)->kind : MW_KIND_HEAP,
		};
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_top_stack *stack = threads ? NULL : stack_of(view, i);
		uint32_t row = i;

		if (stack ? !is_let_through(view, i, stack) : !is_thread_let_through(view, i))
			continue;
		if (modules)
			row = stack->module < none ? stack->module : none;
		else if (stack && stack->as)
			row = stack->as - 1; /* it comes before, and has a row */
		add_sums(&rows->items[row], &sums[i], i < before_count ? &before[i] : NULL);
	}
	drop_empty(rows, total);
	sort_rows(view, rows, group);
	return true;
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

/* How many frames from that one on are shown as one, as an interpreter's; 0: it is shown as it is. */
static uint32_t folded_at(const struct mw_top_named *named, uint32_t frame)
{
	if (!named || frame >= named->stack.frame_count)
		return 0;
	return (uint32_t)mw_report_interpreter(MW_FRAMES_OWN, &named->stack.frames[frame],
					       named->stack.frame_count - frame);
}

/* A stack's row, and what is under it where it is open. */
static bool add_stack(struct mw_top_view *view, struct mw_top_item item)
{
	const struct mw_top_stack *stack = stack_of(view, item.key);
	const struct mw_top_named *named = named_of(view, item.key);
	uint32_t count = named ? (uint32_t)named->stack.frame_count : stack ? stack->frame_count : 0, folded;
	bool good;

	item.open = is_open(view, MW_TOP_STACKS, item.key);
	good = add_item(view, &item);
	if (!item.open)
		return good;
	item.open = false;
	item.kind = MW_TOP_DETAIL;
	good = good && add_item(view, &item);
	item.kind = MW_TOP_FRAME;
	for (item.frame = 0; item.frame < count && good; item.frame += folded ? folded : 1) {
		folded = folded_at(named, item.frame);
		good = add_item(view, &item);
	}
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

/* See that what is selected is on the screen. */
static void scroll(struct mw_top_view *view)
{
	size_t most = view->item_count > view->lines ? view->item_count - view->lines : 0;

	if (view->selected < view->first)
		view->first = view->selected;
	if (view->lines && view->selected >= view->first + view->lines)
		view->first = view->selected - view->lines + 1;
	if (view->first > most)
		view->first = most;
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
	view->children.count = 0;
	if (good && view->group == MW_TOP_MODULES && any_module_open(view))
		good = make_rows(view, &view->children, MW_TOP_STACKS);
	good = good && make_items(view);
	select_again(view, follows || (selected && before.open) ? &before : NULL);
	scroll(view);
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

/* False: it is not a row that has a course. */
static bool key_of(const struct mw_top_view *view, const struct mw_top_item *item, struct mw_top_key *out)
{
	*out = (struct mw_top_key){.module = item->kind == MW_TOP_ROW && view->group == MW_TOP_MODULES,
				   .key = item->key};
	return item->kind == MW_TOP_CHILD || (item->kind == MW_TOP_ROW && view->group != MW_TOP_THREADS);
}

const struct mw_top_course *mw_top_view_course(const struct mw_top_view *view, const struct mw_top_item *item)
{
	struct mw_top_key key;

	if (!key_of(view, item, &key))
		return NULL;
	for (uint32_t i = 0; i < view->course_count; i++)
		if (view->courses[i].of.module == key.module && view->courses[i].of.key == key.key)
			return &view->courses[i];
	return NULL;
}

static void want_names(const struct mw_top_view *view, uint32_t stack, struct mw_top_wishes *out)
{
	if (out->name_count < MW_TOP_WANTED && !named_of(view, stack) &&
	    !(out->name_count && out->names[out->name_count - 1] == stack))
		out->names[out->name_count++] = stack;
}

void mw_top_view_wishes(const struct mw_top_view *view, struct mw_top_wishes *out)
{
	out->course_count = out->name_count = 0;
	for (size_t i = view->first; i < view->item_count && i - view->first < view->lines; i++) {
		if (out->course_count < MW_TOP_COURSES)
			out->course_count += key_of(view, &view->items[i], &out->courses[out->course_count]);
		if (view->items[i].kind != MW_TOP_ROW || view->group == MW_TOP_STACKS)
			want_names(view, view->items[i].key, out);
	}
	for (uint32_t i = 0; view->unnamed && i < view->shown->stack_count; i++)
		if (lacks_names(view, i))
			want_names(view, i, out);
	/* To sort by names all are needed. */
	for (size_t i = 0; i < view->rows.count && view->group == MW_TOP_STACKS && view->sort == MW_TOP_BY_NAME; i++)
		want_names(view, view->rows.items[i].key, out);
}

/* --- text ------------------------------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "module!function+0x12 (file:line)", or "function (file:line)" with long template arguments left out */
static void put_line(struct mw_line *line, const struct mw_report_frame *frame, bool whole)
{
	const char *module = frame->module ? base_name(frame->module) : "code in no file";

	if (!frame->function) {
		mw_line_printf(line, "%s", module);
		if (frame->module)
			mw_line_printf(line, "+%#" PRIx64, frame->offset);
		return;
	}
	if (whole && !frame->generated && !mw_language_is_script(frame->language))
		mw_line_printf(line, "%s!%s+%#" PRIx64, module, frame->function, frame->offset);
	else
		mw_text_function(line, frame->function);
	if (frame->file) {
		mw_line_printf(line, " (%s", whole ? frame->file : base_name(frame->file));
		if (frame->line)
			mw_line_printf(line, ":%" PRIu32, frame->line);
		mw_line_printf(line, ")");
	}
	if (frame->inlined && whole)
		mw_line_printf(line, " inlined");
}

/* Of one that has no names (yet). */
static void put_raw(const struct mw_top_view *view, struct mw_line *line, const struct mw_raw_frame *frame)
{
	const struct mw_view_module *module = module_of(view, frame->module);

	if (module && module->path)
		mw_line_printf(line, "%s+%#" PRIx64, base_name(module->path), frame->addr - module->base);
	else
		mw_line_printf(line, "%#" PRIx64, frame->addr);
}

/* The first frame of what the stack is charged to. */
static const struct mw_raw_frame *charged_frame(const struct mw_top_stack *stack)
{
	for (uint32_t i = 0; i < stack->frame_count; i++)
		if (stack->frames[i].module == stack->module && stack->module != MW_MODULE_NONE)
			return &stack->frames[i];
	return stack->frame_count ? &stack->frames[0] : NULL;
}

/* The function, and some of those that called it. */
static void put_stack(const struct mw_top_view *view, struct mw_line *line, uint32_t key)
{
	const struct mw_top_named *named = named_of(view, key);
	const struct mw_top_stack *stack = stack_of(view, key);
	const struct mw_raw_frame *raw = stack ? charged_frame(stack) : NULL;

	if (named && named->stack.frame_count) {
		const struct mw_report_frame *frame = mw_report_line(&named->stack);
		const struct mw_report_frame *end = &named->stack.frames[named->stack.frame_count];

		put_line(line, frame, false);
		for (unsigned callers = 1; ++frame < end && callers < CALLERS && frame->function;) {
			if (frame->interprets)
				continue;
			mw_line_printf(line, " < ");
			mw_text_function(line, frame->function);
			callers++;
		}
	} else if (raw) {
		put_raw(view, line, raw);
	} else {
		mw_line_printf(line, "(stack not known)");
	}
}

static void put_detail(const struct mw_top_view *view, struct mw_line *line, const struct mw_top_item *item)
{
	const struct mw_top_row *row = mw_top_view_row(view, item);
	const struct mw_top_named *named = named_of(view, item->key);
	const struct mw_top_stack *stack = stack_of(view, item->key);

	if (!row || !stack)
		return;
	mw_line_printf(line, "   = %s", mw_show_count(row->impacting.bytes).text);
	if (view->shown->sampled && row->kind == MW_KIND_HEAP)
		mw_line_printf(line, " ± %s", mw_show_count((uint64_t)(sqrt(row->variance) + 0.5)).text);
	mw_line_printf(line, " bytes in %s blocks not freed, of %s allocated, by %s",
		       mw_show_count(row->impacting.count).text, mw_show_count(row->allocations).text,
		       stack->api ? stack->api : "?");
	if (named && mw_report_line(&named->stack) && mw_report_line(&named->stack)->language != MW_LANGUAGE_NATIVE)
		mw_line_printf(line, ", in %s", mw_language_name(mw_report_line(&named->stack)->language));
	if (named)
		mw_line_printf(line, ", stack %s", named->stack.id);
	if (stack->cut != MW_STACK_COMPLETE)
		mw_line_printf(line, stack->cut == MW_STACK_TRUNCATED ? ", truncated" : ", end not found");
}

static void put_frame(const struct mw_top_view *view, struct mw_line *line, const struct mw_top_item *item)
{
	const struct mw_top_named *named = named_of(view, item->key);
	const struct mw_top_stack *stack = stack_of(view, item->key);
	uint32_t folded = folded_at(named, item->frame);

	mw_line_printf(line, "   #%-2u ", item->frame);
	if (folded)
		mw_line_printf(line, "(interpreter, %u frame%s)", folded, folded == 1 ? "" : "s");
	else if (named && item->frame < named->stack.frame_count)
		put_line(line, &named->stack.frames[item->frame], true);
	else if (stack && item->frame < stack->frame_count)
		put_raw(view, line, &stack->frames[item->frame]);
}

void mw_top_view_text(const struct mw_top_view *view, const struct mw_top_item *item, struct mw_line *line)
{
	const struct mw_view_module *module = module_of(view, item->key);

	if (item->kind == MW_TOP_DETAIL)
		put_detail(view, line, item);
	else if (item->kind == MW_TOP_FRAME)
		put_frame(view, line, item);
	else if (item->kind == MW_TOP_CHILD || view->group == MW_TOP_STACKS)
		put_stack(view, line, item->key);
	else if (view->group == MW_TOP_THREADS && item->key < view->shown->thread_count)
		mw_line_printf(line, "%s (%d)", view->shown->names[item->key].name,
			       (int)view->shown->names[item->key].tid);
	else if (view->group == MW_TOP_MODULES && module)
		mw_line_printf(line, "%s", module->path);
	else
		mw_line_printf(line, "(the C or C++ library, or code in no file)");
}

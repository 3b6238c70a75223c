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
	release(view->judged);
	while (view->history.count)
		drop_first(&view->history);
	mw_filter_destroy(view->filters[MW_TOP_OF_STACKS]);
	mw_filter_destroy(view->filters[MW_TOP_OF_THREADS]);
	free(view->said);
	free(view->rows.items);
	free(view->children.items);
	free(view->items);
	*view = (struct mw_top_view){.known = NULL};
}

static void look_at_newest(struct mw_top_view *view)
{
	struct mw_top_shot *shown = hold(newest_of(&view->history));
	struct mw_top_shot *base = hold(base_of(&view->history));

	/* There was no time for courses in each; those of before a zero point are of something else. */
	if (shown && (shown->course_count || (view->judged && view->judged->zeros != shown->zeros))) {
		release(view->judged);
		view->judged = shown->course_count ? hold(shown) : NULL;
	}
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
	const struct mw_top_stack *stack = mw_top_view_stack(view, item.key);
	const struct mw_top_named *named = mw_top_view_named(view, item.key);
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

		if (mw_top_view_stack(view, key)->module != module)
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
	good = mw_top_view_rows(view, &view->rows, view->group);
	view->children.count = 0;
	if (good && view->group == MW_TOP_MODULES && any_module_open(view))
		good = mw_top_view_rows(view, &view->children, MW_TOP_STACKS);
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
	if (count == capacity || (count && out[count - 1] == stack) || mw_top_view_named(view, stack))
		return count;
	out[count] = stack;
	return count + 1;
}

/* False: it is not a row that has a course. */
static bool key_of(const struct mw_top_view *view, const struct mw_top_item *item, struct mw_top_key *out)
{
	*out = (struct mw_top_key){.module = item->kind == MW_TOP_ROW && view->group == MW_TOP_MODULES,
				   .key = item->key};
	return item->kind == MW_TOP_CHILD || (item->kind == MW_TOP_ROW && view->group != MW_TOP_THREADS);
}

size_t mw_top_view_courses(const struct mw_top_view *view, size_t lines, struct mw_top_key *out, size_t capacity)
{
	size_t count = 0;

	for (size_t i = view->first; i < view->item_count && i - view->first < lines && count < capacity; i++)
		count += key_of(view, &view->items[i], &out[count]);
	return count;
}

const struct mw_top_course *mw_top_view_course(const struct mw_top_view *view, const struct mw_top_item *item)
{
	struct mw_top_key key;

	if (!key_of(view, item, &key))
		return NULL;
	for (uint32_t i = 0; view->judged && i < view->judged->course_count; i++)
		if (view->judged->courses[i].of.module == key.module && view->judged->courses[i].of.key == key.key)
			return &view->judged->courses[i];
	return NULL;
}

size_t mw_top_view_wanted(const struct mw_top_view *view, size_t lines, uint32_t *out, size_t capacity)
{
	size_t count = 0;

	for (size_t i = view->first; i < view->item_count && i - view->first < lines; i++)
		if (is_stack(view, &view->items[i]))
			count = add_wanted(view, view->items[i].key, out, count, capacity);
	for (uint32_t i = 0; view->unnamed && i < view->shown->stack_count; i++)
		if (mw_top_view_is_wanted(view, i))
			count = add_wanted(view, i, out, count, capacity);
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
	const char *module = line->module ? base_name(line->module) : "code in no file";
	char place[64];

	if (line->function && whole)
		(void)snprintf(out, size, "%s!%s+%#" PRIx64, module, line->function, line->offset);
	else if (line->function)
		(void)snprintf(out, size, "%s", line->function);
	else
		(void)snprintf(out, size, "%s%s%#" PRIx64, line->module ? module : "", line->module ? "+" : "",
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
	const struct mw_view_module *module = mw_top_view_module(view, frame->module);

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
	const struct mw_top_named *named = mw_top_view_named(view, key);
	const struct mw_top_stack *stack = mw_top_view_stack(view, key);
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
	const struct mw_top_named *named = mw_top_view_named(view, item->key);
	const struct mw_top_stack *stack = mw_top_view_stack(view, item->key);

	if (!row) {
		*out = '\0';
		return;
	}
	(void)snprintf(out, size, "   = %s bytes in %s blocks not freed, of %s allocated, by %s", //
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
	const struct mw_top_named *named = mw_top_view_named(view, item->key);
	const struct mw_top_stack *stack = mw_top_view_stack(view, item->key);
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
	const struct mw_view_module *module = mw_top_view_module(view, item->key);

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

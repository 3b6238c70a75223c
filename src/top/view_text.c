// SPDX-License-Identifier: MIT
/* view_text.c: the lines of a live table in words (top_view.h). */
#include "output/line.h"
#include "top/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	const struct mw_view_module *module =
		frame->module < view->registry.module_count ? &view->registry.modules[frame->module] : NULL;

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
	const struct mw_top_named *named = view->names ? mw_top_names_get(view->names, key) : NULL;
	const struct mw_top_stack *stack = key < view->registry.stack_count ? view->registry.stacks[key] : NULL;
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
	const struct mw_top_named *named = view->names ? mw_top_names_get(view->names, item->key) : NULL;
	const struct mw_top_stack *stack =
		item->key < view->registry.stack_count ? view->registry.stacks[item->key] : NULL;

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
	const struct mw_top_named *named = view->names ? mw_top_names_get(view->names, item->key) : NULL;
	const struct mw_top_stack *stack =
		item->key < view->registry.stack_count ? view->registry.stacks[item->key] : NULL;
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
	const struct mw_top_registry *registry = &view->registry;

	if (item->kind == MW_TOP_DETAIL)
		put_detail(view, item, out, size);
	else if (item->kind == MW_TOP_FRAME)
		put_frame(view, item, out, size);
	else if (item->kind == MW_TOP_CHILD || view->group == MW_TOP_STACKS)
		put_stack(view, item->key, out, size);
	else if (view->group == MW_TOP_THREADS && item->key < registry->thread_count)
		(void)snprintf(out, size, "%s (%d)", registry->threads[item->key].name, //
			       (int)registry->threads[item->key].tid);
	else if (view->group == MW_TOP_MODULES && item->key < registry->module_count)
		(void)snprintf(out, size, "%s", registry->modules[item->key].path);
	else
		(void)snprintf(out, size, "(the C or C++ library, or code in no file)");
}

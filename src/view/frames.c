// SPDX-License-Identifier: MIT
/* frames.c: symbols for the frames of a report. */
#include "view/frames.h"

#include "base/vector.h"
#include "view/stack_id.h"

#include <stdlib.h>
#include <string.h>

struct framed_module {
	const char *path; /* in the arena; NULL: nothing is known of it */
	uint64_t base;
	bool suspect, generated;
};

struct mw_framer {
	struct mw_arena *arena;
	struct mw_view_code code;
	struct mw_report_frame *buffer; /* one stack's frames, before their number is known */
	size_t count, capacity;
	size_t module_count;
	struct framed_module modules[];
};

struct mw_error *mw_framer_create(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_framer **out)
{
	size_t count = input->module_count;
	struct mw_framer *framer = calloc(1, sizeof(*framer) + count * sizeof(framer->modules[0]));

	if (!framer)
		return mw_error_nomem();
	framer->arena = arena;
	framer->code = (struct mw_view_code){input->regions, input->symbols};
	framer->module_count = count;
	for (size_t i = 0; i < count; i++) {
		framer->modules[i].path = mw_arena_string(arena, input->modules[i].path);
		framer->modules[i].base = input->modules[i].base;
		framer->modules[i].suspect = input->modules[i].suspect;
		framer->modules[i].generated = mw_view_is_generated(&input->modules[i]);
	}
	*out = framer;
	return NULL;
}

void mw_framer_destroy(struct mw_framer *framer)
{
	if (!framer)
		return;
	free(framer->buffer);
	free(framer);
}

static struct mw_report_frame *append(struct mw_framer *framer)
{
	if (!MW_VECTOR_ROOM(framer->buffer, framer->count, framer->capacity))
		return NULL;
	return memset(&framer->buffer[framer->count++], 0, sizeof(struct mw_report_frame));
}

/* A frame that nothing but its module is known of. */
static struct mw_error *add_bare(struct mw_framer *framer, const struct framed_module *module, mw_addr addr)
{
	struct mw_report_frame *frame = append(framer);

	if (!frame)
		return mw_error_nomem();
	frame->address = addr;
	frame->module = module->path;
	frame->offset = addr - module->base;
	return NULL;
}

/* Code that is in no file, or in one that was made for it, and that nobody names: all of the region is one frame. */
static struct mw_error *add_generated(struct mw_framer *framer, const struct framed_module *module, mw_addr addr)
{
	const struct mw_code_region *region = module ? NULL : mw_code_regions_find(framer->code.regions, addr);
	struct mw_report_frame *frame = append(framer);
	char text[MW_CODE_REGION_TEXT];

	if (!frame)
		return mw_error_nomem();
	frame->generated = true;
	if (module) {
		frame->module = module->path;
		frame->function = "(generated code)";
	} else if (region) {
		frame->module = MW_VIEW_NO_FILE;
		mw_code_region_describe(region, text);
		frame->function = mw_arena_string(framer->arena, text);
		frame->address = region->start;
	}
	return NULL;
}

static struct mw_error *add_frames(struct mw_framer *framer, const struct mw_raw_frame *raw)
{
	const struct framed_module *module = NULL;
	const struct mw_view_symbols *symbols = framer->code.symbols;
	const struct mw_symbol_frame *frames = NULL;
	size_t count = 0;

	if (raw->module < framer->module_count && framer->modules[raw->module].path)
		module = &framer->modules[raw->module];
	if (symbols && !(!module && raw->addr & MW_FRAME_NEAR))
		MW_TRY(symbols->resolve(symbols->context, raw->module, raw->addr, &frames, &count));
	if ((!module || module->generated) && (!count || !frames[0].function))
		return add_generated(framer, module, raw->addr);
	if (!count)
		return add_bare(framer, module, raw->addr);
	for (size_t i = 0; i < count; i++) {
		struct mw_report_frame *frame = append(framer);

		if (!frame)
			return mw_error_nomem();
		frame->function = mw_arena_string(framer->arena, frames[i].function);
		frame->module = module ? module->path : MW_VIEW_NO_FILE;
		frame->offset = frames[i].offset;
		frame->address = raw->addr;
		frame->file = mw_arena_string(framer->arena, frames[i].file);
		frame->line = frames[i].line;
		frame->inlined = frames[i].inlined;
	}
	return NULL;
}

struct mw_error *mw_framer_fill(struct mw_framer *framer, const struct mw_raw_frame *raw, size_t count,
				struct mw_report_stack *stack)
{
	framer->count = 0;
	stack->suspect = NULL;
	for (size_t i = 0; i < count; i++) {
		MW_TRY(add_frames(framer, &raw[i]));
		/* Code in no file has no name to charge: the file whose frame is next outwards made it. */
		if (!stack->suspect && raw[i].module < framer->module_count && framer->modules[raw[i].module].suspect)
			stack->suspect = framer->modules[raw[i].module].path;
	}
	stack->frames = mw_arena_array(framer->arena, framer->count, sizeof(*stack->frames));
	if (!stack->frames)
		return mw_error_nomem();
	if (framer->count)
		memcpy(stack->frames, framer->buffer, framer->count * sizeof(*stack->frames));
	stack->frame_count = framer->count;
	return NULL;
}

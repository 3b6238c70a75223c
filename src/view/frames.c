// SPDX-License-Identifier: MIT
/* frames.c: symbols for the frames of a report. */
#include "view/frames.h"

#include "base/vector.h"
#include "view/stack_id.h"

#include <stdlib.h>
#include <string.h>

/* Where code in no file is, if it has a name all the same. */
static const char no_file[] = "[jit]";

struct framed_module {
	const char *path; /* in the arena; NULL: nothing is known of it */
	uint64_t base;
	bool suspect;
};

struct mw_framer {
	struct mw_arena *arena;
	const struct mw_view_symbols *symbols;
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
	framer->symbols = input->symbols;
	framer->module_count = count;
	for (size_t i = 0; i < count; i++) {
		framer->modules[i].path = mw_arena_string(arena, input->modules[i].path);
		framer->modules[i].base = input->modules[i].base;
		framer->modules[i].suspect = input->modules[i].suspect;
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
	struct mw_report_frame *buffer =
		mw_vector_room(framer->buffer, framer->count, &framer->capacity, sizeof(*buffer));

	if (!buffer)
		return NULL;
	framer->buffer = buffer;
	return memset(&framer->buffer[framer->count++], 0, sizeof(struct mw_report_frame));
}

/* A frame that nothing but its module is known of. */
static struct mw_error *add_bare(struct mw_framer *framer, const struct framed_module *module, mw_addr addr)
{
	struct mw_report_frame *frame = append(framer);

	if (!frame)
		return mw_error_nomem();
	frame->address = addr;
	frame->module = module ? module->path : NULL;
	frame->offset = module ? addr - module->base : addr;
	return NULL;
}

static struct mw_error *add_frames(struct mw_framer *framer, const struct mw_raw_frame *raw)
{
	const struct framed_module *module = NULL;
	const struct mw_symbol_frame *symbols = NULL;
	size_t count = 0;

	if (raw->module < framer->module_count && framer->modules[raw->module].path)
		module = &framer->modules[raw->module];
	if (!framer->symbols)
		return add_bare(framer, module, raw->addr);
	MW_TRY(framer->symbols->resolve(framer->symbols->context, raw->module, raw->addr, &symbols, &count));
	if (!count || (!module && !symbols[0].function))
		return add_bare(framer, module, raw->addr);
	for (size_t i = 0; i < count; i++) {
		struct mw_report_frame *frame = append(framer);

		if (!frame)
			return mw_error_nomem();
		frame->function = mw_arena_string(framer->arena, symbols[i].function);
		frame->module = module ? module->path : no_file;
		frame->offset = symbols[i].offset;
		frame->address = raw->addr;
		frame->file = mw_arena_string(framer->arena, symbols[i].file);
		frame->line = symbols[i].line;
		frame->inlined = symbols[i].inlined;
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

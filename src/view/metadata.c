// SPDX-License-Identifier: MIT
/* metadata.c: see metadata.h. */
#include "view/metadata.h"

#include "base/vector.h"
#include "view/figures.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FRAMES (1u << 23) /* that addresses were resolved to */

/* The frames of one address in one module. Two modules that had the same address, one after the other, are rare. */
struct symbol {
	struct symbol *next;
	uint32_t module;
	size_t count;
	struct mw_symbol_frame *frames;
};

struct mw_error *mw_metadata_init(struct mw_metadata *metadata)
{
	metadata->arena = mw_arena_create();
	return metadata->arena ? NULL : mw_error_nomem();
}

void mw_metadata_deinit(struct mw_metadata *metadata)
{
	mw_map_deinit(&metadata->symbols);
	for (size_t i = 0; i < 2; i++)
		free(metadata->mappings[i].items);
	free(metadata->before.items);
	free(metadata->modules);
	free(metadata->hooks);
	free(metadata->samples);
	free(metadata->marks);
	mw_arena_destroy(metadata->arena);
	*metadata = (struct mw_metadata){.arena = NULL};
}

static struct mw_error *check(const struct mw_metadata *metadata)
{
	return mw_arena_failed(metadata->arena) ? mw_error_nomem() : NULL;
}

static void note_time(struct mw_metadata *metadata, uint64_t time_ns)
{
	if (time_ns > metadata->last_ns)
		metadata->last_ns = time_ns;
}

struct mw_error *mw_metadata_target(struct mw_metadata *metadata, const struct mw_stored_target *target)
{
	const char **command = mw_arena_array(metadata->arena, target->command_count, sizeof(*command));

	if (!command)
		return mw_error_nomem();
	for (size_t i = 0; i < target->command_count; i++)
		command[i] = mw_arena_string(metadata->arena, target->command[i]);
	metadata->target = *target;
	metadata->target.comm = mw_arena_string(metadata->arena, target->comm);
	metadata->target.exe = mw_arena_string(metadata->arena, target->exe);
	metadata->target.engine = mw_arena_string(metadata->arena, target->engine);
	metadata->target.engine_reason = mw_arena_string(metadata->arena, target->engine_reason);
	metadata->target.command = command;
	metadata->window.started_realtime_ns = target->started_realtime_ns;
	return check(metadata);
}

static struct mw_error *check_number(const char *what, uint32_t number)
{
	return number < MW_METADATA_NUMBERS ? NULL : mw_error_create(MW_ERROR_DATA, 0, "%s number %u", what, number);
}

struct mw_error *mw_metadata_hook(struct mw_metadata *metadata, const struct mw_stored_hook *hook)
{
	MW_TRY(check_number("hook", hook->number));
	if (hook->role >= MW_ROLE_COUNT || hook->kind >= MW_KIND_COUNT)
		return mw_error_create(MW_ERROR_DATA, 0, "hook of unknown role %u or kind %u", hook->role, hook->kind);
	if (!MW_VECTOR_ROOM(metadata->hooks, hook->number, metadata->hook_capacity))
		return mw_error_nomem();
	while (metadata->hook_count <= hook->number)
		metadata->hooks[metadata->hook_count++] = (struct mw_hook_info){0};
	metadata->hooks[hook->number] = (struct mw_hook_info){
		.function = mw_arena_string(metadata->arena, hook->function),
		.module = mw_arena_string(metadata->arena, hook->module),
		.refused = mw_arena_string(metadata->arena, hook->refused),
		.address = hook->address,
		.role = (enum mw_role)hook->role,
		.kind = (enum mw_kind)hook->kind,
	};
	return check(metadata);
}

struct mw_error *mw_metadata_module(struct mw_metadata *metadata, const struct mw_stored_module *module)
{
	uint8_t *build_id = mw_arena_array(metadata->arena, module->build_id_size, 1);

	MW_TRY(check_number("module", module->number));
	if (!MW_VECTOR_ROOM(metadata->modules, module->number, metadata->module_capacity) || !build_id)
		return mw_error_nomem();
	while (metadata->module_count <= module->number)
		metadata->modules[metadata->module_count++] = (struct mw_view_module){0};
	if (module->build_id_size)
		memcpy(build_id, module->build_id, module->build_id_size);
	metadata->modules[module->number] = (struct mw_view_module){
		.path = mw_arena_string(metadata->arena, module->path),
		.build_id = module->build_id_size ? build_id : NULL,
		.build_id_size = module->build_id_size,
		.start = module->start,
		.end = module->end,
		.base = module->base,
		.suspect = module->suspect,
		.has_file = module->has_file,
	};
	return check(metadata);
}

struct mw_error *mw_metadata_sample(struct mw_metadata *metadata, const struct mw_stored_sample *sample)
{
	const double at = (double)sample->time_ns / 1e9;

	if (!MW_VECTOR_ROOM(metadata->samples, metadata->sample_count, metadata->sample_capacity))
		return mw_error_nomem();
	/* The last word on a moment counts. */
	if (metadata->sample_count && metadata->samples[metadata->sample_count - 1].at >= at)
		metadata->sample_count--;
	metadata->samples[metadata->sample_count++] = (struct mw_report_sample){
		.at = at,
		.rss = sample->rss,
		.pss = sample->pss,
		.vsize = sample->vsize,
		.heap_impacting = sample->heap_impacting,
		.vm_impacting = sample->vm_impacting,
		.arena_used = sample->arena_used,
		.arena_free = sample->arena_free,
		.arena_size = sample->arena_size,
	};
	note_time(metadata, sample->time_ns);
	return NULL;
}

struct mw_error *mw_metadata_mark(struct mw_metadata *metadata, const struct mw_stored_mark *mark)
{
	if (!MW_VECTOR_ROOM(metadata->marks, metadata->mark_count, metadata->mark_capacity))
		return mw_error_nomem();
	metadata->marks[metadata->mark_count] = *mark;
	metadata->marks[metadata->mark_count++].name = mw_arena_string(metadata->arena, mark->name);
	note_time(metadata, mark->time_ns);
	return check(metadata);
}

struct mw_error *mw_metadata_mapping(struct mw_metadata *metadata, enum mw_stored_moment moment,
				     const struct mw_stored_mapping *mapping)
{
	struct mw_metadata_mapping_list *list = &metadata->mappings[moment == MW_STORED_END];

	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return mw_error_nomem();
	list->items[list->count] = *mapping;
	list->items[list->count++].path = mw_arena_string(metadata->arena, mapping->path);
	return check(metadata);
}

struct mw_error *mw_metadata_before(struct mw_metadata *metadata, mw_addr start, mw_addr end)
{
	return mw_space_ranges_add(&metadata->before, start, end);
}

/* The moments that mw_summary_input asks for. */
static bool moment_of(const struct mw_metadata *metadata, enum mw_stored_moment which, struct mw_space_moment *out)
{
	const struct mw_metadata_mapping_list *list = &metadata->mappings[which == MW_STORED_END];
	const struct mw_report_sample *sample;

	if (!list->count || !metadata->sample_count)
		return false;
	sample = &metadata->samples[which == MW_STORED_END ? metadata->sample_count - 1 : 0];
	*out = (struct mw_space_moment){
		.mappings = list->items,
		.count = list->count,
		.arena_used = sample->arena_used,
		.arena_free = sample->arena_free,
		.arena_size = sample->arena_size,
	};
	return true;
}

bool mw_metadata_space(const struct mw_metadata *metadata, struct mw_space_moment moments[2],
		       struct mw_space_input *out)
{
	bool start = moment_of(metadata, MW_STORED_START, &moments[0]),
	     end = moment_of(metadata, MW_STORED_END, &moments[1]);

	*out = (struct mw_space_input){
		.start = start ? &moments[0] : NULL,
		.end = end ? &moments[1] : NULL,
		.before = metadata->before.items,
		.before_count = metadata->before.count,
		.at_end = true,
		.track_vm = metadata->target.track_vm,
	};
	return start || end;
}

struct mw_error *mw_metadata_symbol(struct mw_metadata *metadata, const struct mw_stored_symbol *symbol)
{
	const struct mw_symbol_frame *known;
	size_t count;
	struct symbol *kept;
	struct mw_symbol_frame *frames;

	if (mw_metadata_resolve(metadata, symbol->module, symbol->addr, &known, &count))
		return NULL;
	metadata->symbol_frames += 1 + symbol->frame_count;
	if (metadata->symbol_frames > MOST_FRAMES)
		return mw_error_create(MW_ERROR_DATA, 0, "more than %u frames", MOST_FRAMES);
	metadata->symbol_count++;
	kept = mw_arena_array(metadata->arena, 1, sizeof(*kept));
	frames = mw_arena_array(metadata->arena, symbol->frame_count, sizeof(*frames));
	if (!kept || !frames)
		return mw_error_nomem();
	for (size_t i = 0; i < symbol->frame_count; i++)
		frames[i] = (struct mw_symbol_frame){
			.function = mw_arena_string(metadata->arena, symbol->frames[i].function),
			.file = mw_arena_string(metadata->arena, symbol->frames[i].file),
			.line = symbol->frames[i].line,
			.offset = symbol->frames[i].offset,
			.inlined = symbol->frames[i].inlined,
		};
	*kept = (struct symbol){
		.next = mw_map_get(&metadata->symbols, symbol->addr),
		.module = symbol->module,
		.count = symbol->frame_count,
		.frames = frames,
	};
	MW_TRY(mw_map_set(&metadata->symbols, symbol->addr, kept));
	return check(metadata);
}

struct mw_error *mw_metadata_end(struct mw_metadata *metadata, const struct mw_stored_end *end)
{
	if (end->ended > MW_END_LOST)
		return mw_error_create(MW_ERROR_DATA, 0, "the window ended in an unknown way (%u)", end->ended);
	metadata->has_end = true;
	metadata->window.length_ns = end->length_ns;
	metadata->window.ended = (enum mw_window_end)end->ended;
	metadata->window.over = true;
	metadata->window.has_exit_status = end->has_exit_status;
	metadata->window.exit_status = end->exit_status;
	metadata->stats.left_behind = mw_arena_string(metadata->arena, end->left_behind);
	for (size_t i = 0; i < end->figure_count; i++)
		mw_figures_set(&metadata->stats, &end->figures[i]);
	return check(metadata);
}

uint64_t mw_metadata_length(const struct mw_metadata *metadata)
{
	return metadata->has_end ? metadata->window.length_ns : metadata->last_ns;
}

bool mw_metadata_resolve(const struct mw_metadata *metadata, uint32_t module, mw_addr addr,
			 const struct mw_symbol_frame **frames, size_t *count)
{
	for (const struct symbol *symbol = mw_map_get(&metadata->symbols, addr); symbol; symbol = symbol->next) {
		if (symbol->module != module)
			continue;
		*frames = symbol->frames;
		*count = symbol->count;
		return true;
	}
	return false;
}

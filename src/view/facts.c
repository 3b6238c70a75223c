// SPDX-License-Identifier: MIT
/* facts.c: see facts.h. */
#include "view/facts.h"

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

struct mw_error *mw_facts_init(struct mw_facts *facts)
{
	facts->arena = mw_arena_create();
	return facts->arena ? NULL : mw_error_nomem();
}

void mw_facts_deinit(struct mw_facts *facts)
{
	mw_map_deinit(&facts->symbols);
	for (size_t i = 0; i < 2; i++)
		free(facts->mappings[i].items);
	free(facts->before.items);
	free(facts->modules);
	free(facts->hooks);
	free(facts->samples);
	free(facts->marks);
	mw_arena_destroy(facts->arena);
	*facts = (struct mw_facts){.arena = NULL};
}

static struct mw_error *check(const struct mw_facts *facts)
{
	return mw_arena_failed(facts->arena) ? mw_error_nomem() : NULL;
}

static void note_time(struct mw_facts *facts, uint64_t time_ns)
{
	if (time_ns > facts->last_ns)
		facts->last_ns = time_ns;
}

struct mw_error *mw_facts_target(struct mw_facts *facts, const struct mw_stored_target *target)
{
	const char **command = mw_arena_array(facts->arena, target->command_count, sizeof(*command));

	if (!command)
		return mw_error_nomem();
	for (size_t i = 0; i < target->command_count; i++)
		command[i] = mw_arena_string(facts->arena, target->command[i]);
	facts->target = *target;
	facts->target.comm = mw_arena_string(facts->arena, target->comm);
	facts->target.exe = mw_arena_string(facts->arena, target->exe);
	facts->target.engine = mw_arena_string(facts->arena, target->engine);
	facts->target.engine_reason = mw_arena_string(facts->arena, target->engine_reason);
	facts->target.command = command;
	facts->window.started_realtime_ns = target->started_realtime_ns;
	return check(facts);
}

static struct mw_error *check_number(const char *what, uint32_t number)
{
	return number < MW_FACTS_NUMBERS ? NULL : mw_error_create(MW_ERROR_DATA, 0, "%s number %u", what, number);
}

struct mw_error *mw_facts_hook(struct mw_facts *facts, const struct mw_stored_hook *hook)
{
	MW_TRY(check_number("hook", hook->number));
	if (hook->role >= MW_ROLE_COUNT || hook->kind >= MW_KIND_COUNT)
		return mw_error_create(MW_ERROR_DATA, 0, "hook of unknown role %u or kind %u", hook->role, hook->kind);
	if (!MW_VECTOR_ROOM(facts->hooks, hook->number, facts->hook_capacity))
		return mw_error_nomem();
	while (facts->hook_count <= hook->number)
		facts->hooks[facts->hook_count++] = (struct mw_hook_info){0};
	facts->hooks[hook->number] = (struct mw_hook_info){
		.function = mw_arena_string(facts->arena, hook->function),
		.module = mw_arena_string(facts->arena, hook->module),
		.refused = mw_arena_string(facts->arena, hook->refused),
		.address = hook->address,
		.role = (enum mw_role)hook->role,
		.kind = (enum mw_kind)hook->kind,
	};
	return check(facts);
}

struct mw_error *mw_facts_module(struct mw_facts *facts, const struct mw_stored_module *module)
{
	uint8_t *build_id = mw_arena_array(facts->arena, module->build_id_size, 1);

	MW_TRY(check_number("module", module->number));
	if (!MW_VECTOR_ROOM(facts->modules, module->number, facts->module_capacity) || !build_id)
		return mw_error_nomem();
	while (facts->module_count <= module->number)
		facts->modules[facts->module_count++] = (struct mw_view_module){0};
	if (module->build_id_size)
		memcpy(build_id, module->build_id, module->build_id_size);
	facts->modules[module->number] = (struct mw_view_module){
		.path = mw_arena_string(facts->arena, module->path),
		.build_id = module->build_id_size ? build_id : NULL,
		.build_id_size = module->build_id_size,
		.start = module->start,
		.end = module->end,
		.base = module->base,
		.suspect = module->suspect,
		.has_file = module->has_file,
	};
	return check(facts);
}

struct mw_error *mw_facts_sample(struct mw_facts *facts, const struct mw_stored_sample *sample)
{
	const double at = (double)sample->time_ns / 1e9;

	if (!MW_VECTOR_ROOM(facts->samples, facts->sample_count, facts->sample_capacity))
		return mw_error_nomem();
	/* The last word on a moment counts. */
	if (facts->sample_count && facts->samples[facts->sample_count - 1].at >= at)
		facts->sample_count--;
	facts->samples[facts->sample_count++] = (struct mw_report_sample){
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
	note_time(facts, sample->time_ns);
	return NULL;
}

struct mw_error *mw_facts_mark(struct mw_facts *facts, const struct mw_stored_mark *mark)
{
	if (!MW_VECTOR_ROOM(facts->marks, facts->mark_count, facts->mark_capacity))
		return mw_error_nomem();
	facts->marks[facts->mark_count] = *mark;
	facts->marks[facts->mark_count++].name = mw_arena_string(facts->arena, mark->name);
	note_time(facts, mark->time_ns);
	return check(facts);
}

struct mw_error *mw_facts_mapping(struct mw_facts *facts, enum mw_stored_moment moment,
				  const struct mw_stored_mapping *mapping)
{
	struct mw_facts_mapping_list *list = &facts->mappings[moment == MW_STORED_END];

	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return mw_error_nomem();
	list->items[list->count] = *mapping;
	list->items[list->count++].path = mw_arena_string(facts->arena, mapping->path);
	return check(facts);
}

struct mw_error *mw_facts_before(struct mw_facts *facts, mw_addr start, mw_addr end)
{
	return mw_space_ranges_add(&facts->before, start, end);
}

/* The moments that mw_summary_input asks for. */
static bool moment_of(const struct mw_facts *facts, enum mw_stored_moment which, struct mw_space_moment *out)
{
	const struct mw_facts_mapping_list *list = &facts->mappings[which == MW_STORED_END];
	const struct mw_report_sample *sample;

	if (!list->count || !facts->sample_count)
		return false;
	sample = &facts->samples[which == MW_STORED_END ? facts->sample_count - 1 : 0];
	*out = (struct mw_space_moment){
		.mappings = list->items,
		.count = list->count,
		.arena_used = sample->arena_used,
		.arena_free = sample->arena_free,
		.arena_size = sample->arena_size,
	};
	return true;
}

bool mw_facts_space(const struct mw_facts *facts, struct mw_space_moment moments[2], struct mw_space_input *out)
{
	bool start = moment_of(facts, MW_STORED_START, &moments[0]), end = moment_of(facts, MW_STORED_END, &moments[1]);

	*out = (struct mw_space_input){
		.start = start ? &moments[0] : NULL,
		.end = end ? &moments[1] : NULL,
		.before = facts->before.items,
		.before_count = facts->before.count,
		.at_end = true,
		.track_vm = facts->target.track_vm,
	};
	return start || end;
}

struct mw_error *mw_facts_symbol(struct mw_facts *facts, const struct mw_stored_symbol *symbol)
{
	const struct mw_symbol_frame *known;
	size_t count;
	struct symbol *kept;
	struct mw_symbol_frame *frames;

	if (mw_facts_resolve(facts, symbol->module, symbol->addr, &known, &count))
		return NULL;
	facts->symbol_frames += 1 + symbol->frame_count;
	if (facts->symbol_frames > MOST_FRAMES)
		return mw_error_create(MW_ERROR_DATA, 0, "more than %u frames", MOST_FRAMES);
	facts->symbol_count++;
	kept = mw_arena_array(facts->arena, 1, sizeof(*kept));
	frames = mw_arena_array(facts->arena, symbol->frame_count, sizeof(*frames));
	if (!kept || !frames)
		return mw_error_nomem();
	for (size_t i = 0; i < symbol->frame_count; i++)
		frames[i] = (struct mw_symbol_frame){
			.function = mw_arena_string(facts->arena, symbol->frames[i].function),
			.file = mw_arena_string(facts->arena, symbol->frames[i].file),
			.line = symbol->frames[i].line,
			.offset = symbol->frames[i].offset,
			.inlined = symbol->frames[i].inlined,
		};
	*kept = (struct symbol){
		.next = mw_map_get(&facts->symbols, symbol->addr),
		.module = symbol->module,
		.count = symbol->frame_count,
		.frames = frames,
	};
	MW_TRY(mw_map_set(&facts->symbols, symbol->addr, kept));
	return check(facts);
}

struct mw_error *mw_facts_end(struct mw_facts *facts, const struct mw_stored_end *end)
{
	if (end->ended > MW_END_LOST)
		return mw_error_create(MW_ERROR_DATA, 0, "the window ended in an unknown way (%u)", end->ended);
	facts->has_end = true;
	facts->window.length_ns = end->length_ns;
	facts->window.ended = (enum mw_window_end)end->ended;
	facts->window.over = true;
	facts->window.has_exit_status = end->has_exit_status;
	facts->window.exit_status = end->exit_status;
	facts->stats.left_behind = mw_arena_string(facts->arena, end->left_behind);
	for (size_t i = 0; i < end->figure_count; i++)
		mw_figures_set(&facts->stats, &end->figures[i]);
	return check(facts);
}

uint64_t mw_facts_length(const struct mw_facts *facts)
{
	return facts->has_end ? facts->window.length_ns : facts->last_ns;
}

bool mw_facts_resolve(const struct mw_facts *facts, uint32_t module, mw_addr addr,
		      const struct mw_symbol_frame **frames, size_t *count)
{
	for (const struct symbol *symbol = mw_map_get(&facts->symbols, addr); symbol; symbol = symbol->next) {
		if (symbol->module != module)
			continue;
		*frames = symbol->frames;
		*count = symbol->count;
		return true;
	}
	return false;
}

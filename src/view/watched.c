// SPDX-License-Identifier: MIT
/* watched.c: what is known of processes: metadata as recordings have them, and the tracker (watched.h). */
#include "view/watched.h"

#include "base/vector.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- the figures of an engine ------------------------------------------------------------------------------- */

#define FIGURE(name)                                                                                                   \
	{                                                                                                              \
#name, offsetof(struct mw_engine_stats, name)                                                          \
	}

static const struct {
	const char *name;
	size_t offset;
} all_figures[] = {
	FIGURE(stops),        FIGURE(longest_stop_ns),   FIGURE(stopped_ns),   FIGURE(stood_ns),
	FIGURE(attach_ns),    FIGURE(detach_ns),         FIGURE(lost_events),  FIGURE(broken_stacks),
	FIGURE(returns_site), FIGURE(returns_exchanged), FIGURE(lost_stacks),  FIGURE(walks),
	FIGURE(slow_walks),   FIGURE(waited_ns),         FIGURE(compared),     FIGURE(differing),
	FIGURE(own_resident), FIGURE(children_cleaned),  FIGURE(limit_memory), FIGURE(limit_stopped),
	FIGURE(settle_ns),    FIGURE(own_cpu_ns),        FIGURE(spent_ns),     FIGURE(sampled_from_ns),
};

#define FIGURES (sizeof(all_figures) / sizeof(all_figures[0]))

_Static_assert(FIGURES <= MW_FIGURES_MAX, "they have room");
/* Whoever adds a figure adds it above: left_behind is a text. */
_Static_assert(sizeof(struct mw_engine_stats) == FIGURES * sizeof(uint64_t) + sizeof(const char *), "all of them");

size_t mw_figures_list(const struct mw_engine_stats *stats, struct mw_stored_figure *out)
{
	for (size_t i = 0; i < FIGURES; i++) {
		out[i].name = all_figures[i].name;
		memcpy(&out[i].value, (const char *)stats + all_figures[i].offset, sizeof(out[i].value));
	}
	return FIGURES;
}

static void set_figure(struct mw_engine_stats *stats, const struct mw_stored_figure *figure)
{
	for (size_t i = 0; i < FIGURES; i++)
		if (strcmp(all_figures[i].name, figure->name) == 0)
			memcpy((char *)stats + all_figures[i].offset, &figure->value, sizeof(figure->value));
}

/* --- metadata ----------------------------------------------------------------------------------------------- */

#define MOST_FRAMES (1u << 23) /* that addresses were resolved to */

/* The frames of one address in one module. Two modules that had the same address, one after the other, are rare. */
struct symbol {
	struct symbol *next;
	uint32_t module;
	size_t count;
	struct mw_symbol_frame *frames;
};

static struct mw_error *metadata_init(struct mw_metadata *metadata)
{
	metadata->arena = mw_arena_create();
	return metadata->arena ? NULL : mw_error_nomem();
}

static void metadata_deinit(struct mw_metadata *metadata)
{
	mw_map_deinit(&metadata->symbols);
	for (size_t i = 0; i < 2; i++)
		free(metadata->mappings[i].items);
	free(metadata->before.items);
	free(metadata->modules);
	free(metadata->hooks);
	free(metadata->samples);
	free(metadata->marks);
	free(metadata->leaks);
	free(metadata->changes);
	free(metadata->pools);
	mw_kept_heap_deinit(&metadata->heap);
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

static struct mw_error *take_target(struct mw_metadata *metadata, const struct mw_stored_target *target)
{
	const char **command = mw_arena_array(metadata->arena, target->command_count, sizeof(*command));
	struct mw_stored_child *children;

	if (!command)
		return mw_error_nomem();
	for (size_t i = 0; i < target->command_count; i++)
		command[i] = mw_arena_string(metadata->arena, target->command[i]);
	metadata->has_target = true;
	metadata->target = *target;
	metadata->target.comm = mw_arena_string(metadata->arena, target->comm);
	metadata->target.exe = mw_arena_string(metadata->arena, target->exe);
	metadata->target.engine = mw_arena_string(metadata->arena, target->engine);
	metadata->target.engine_reason = mw_arena_string(metadata->arena, target->engine_reason);
	metadata->target.command = command;
	metadata->target.distribution = mw_arena_string(metadata->arena, target->distribution);
	metadata->target.frames_missing = mw_arena_string(metadata->arena, target->frames_missing);
	children = mw_arena_array(metadata->arena, target->child_count, sizeof(*children));
	if (!children)
		return mw_error_nomem();
	for (size_t i = 0; i < target->child_count; i++) {
		children[i] = target->children[i];
		children[i].comm = mw_arena_string(metadata->arena, target->children[i].comm);
	}
	metadata->target.children = children;
	metadata->window.started_realtime_ns = target->started_realtime_ns;
	return check(metadata);
}

static struct mw_error *check_number(const char *what, uint32_t number)
{
	return number < MW_METADATA_NUMBERS ? NULL : mw_error_create(MW_ERROR_DATA, 0, "%s number %u", what, number);
}

static struct mw_error *take_hook(struct mw_metadata *metadata, const struct mw_stored_hook *hook)
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

static struct mw_error *take_module(struct mw_metadata *metadata, const struct mw_stored_module *module)
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

static struct mw_error *take_sample(struct mw_metadata *metadata, const struct mw_stored_sample *sample)
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

static struct mw_error *take_mark(struct mw_metadata *metadata, const struct mw_stored_mark *mark)
{
	if (!MW_VECTOR_ROOM(metadata->marks, metadata->mark_count, metadata->mark_capacity))
		return mw_error_nomem();
	metadata->marks[metadata->mark_count] = *mark;
	metadata->marks[metadata->mark_count++].name = mw_arena_string(metadata->arena, mark->name);
	note_time(metadata, mark->time_ns);
	return check(metadata);
}

static struct mw_error *take_leaks(struct mw_metadata *metadata, const struct mw_stored_leaks *leaks)
{
	const char **holder = mw_arena_array(metadata->arena, leaks->holder_count, sizeof(*holder));

	if (!holder || !MW_VECTOR_ROOM(metadata->leaks, metadata->leaks_count, metadata->leaks_capacity))
		return mw_error_nomem();
	for (size_t i = 0; i < leaks->holder_count; i++)
		holder[i] = mw_arena_string(metadata->arena, leaks->holder[i]);
	metadata->leaks[metadata->leaks_count] = *leaks;
	metadata->leaks[metadata->leaks_count++].holder = holder;
	return check(metadata);
}

static struct mw_error *take_change(struct mw_metadata *metadata, const struct mw_stored_change *change)
{
	struct mw_stored_change *out;

	if (!MW_VECTOR_ROOM(metadata->changes, metadata->changes_count, metadata->changes_capacity))
		return mw_error_nomem();
	out = &metadata->changes[metadata->changes_count++];
	*out = *change;
	out->name = mw_arena_string(metadata->arena, change->name);
	out->detail = mw_arena_string(metadata->arena, change->detail);
	return check(metadata);
}

static struct mw_error *take_pool(struct mw_metadata *metadata, const struct mw_stored_pool *pool)
{
	struct mw_stored_pool *out;

	if (!MW_VECTOR_ROOM(metadata->pools, metadata->pools_count, metadata->pools_capacity))
		return mw_error_nomem();
	out = &metadata->pools[metadata->pools_count++];
	*out = *pool;
	out->pool = mw_arena_string(metadata->arena, pool->pool);
	out->name = mw_arena_string(metadata->arena, pool->name);
	out->path = mw_arena_string(metadata->arena, pool->path);
	out->example = mw_arena_string(metadata->arena, pool->example);
	return check(metadata);
}

static struct mw_error *take_heap(struct mw_metadata *metadata, const struct mw_stored_heap *heap)
{
	return mw_kept_heap_take(&metadata->heap, heap);
}

static struct mw_error *take_mapping(struct mw_metadata *metadata, enum mw_stored_moment moment,
				     const struct mw_stored_mapping *mapping)
{
	struct mw_metadata_mapping_list *list = &metadata->mappings[moment == MW_STORED_END];

	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return mw_error_nomem();
	list->items[list->count] = *mapping;
	list->items[list->count++].path = mw_arena_string(metadata->arena, mapping->path);
	return check(metadata);
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

static struct mw_error *take_symbol(struct mw_metadata *metadata, const struct mw_stored_symbol *symbol)
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

static struct mw_error *take_end(struct mw_metadata *metadata, const struct mw_stored_end *end)
{
	if (end->ended > MW_END_RUNNING)
		return mw_error_create(MW_ERROR_DATA, 0, "the window ended in an unknown way (%u)", end->ended);
	metadata->has_end = true;
	metadata->window.length_ns = end->length_ns;
	metadata->window.ended = (enum mw_window_end)end->ended;
	metadata->window.over = true;
	metadata->window.has_exit_status = end->has_exit_status;
	metadata->window.exit_status = end->exit_status;
	metadata->stats.left_behind = mw_arena_string(metadata->arena, end->left_behind);
	for (size_t i = 0; i < end->figure_count; i++)
		set_figure(&metadata->stats, &end->figures[i]);
	return check(metadata);
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

/* --- a watched process -------------------------------------------------------------------------------------- */

#define MOST_PROCESSES 4096u

static void watched_deinit(struct mw_watched *watched)
{
	if (watched->collects && watched->track)
		mw_track_watch(watched->track, NULL, NULL);
	mw_collector_deinit(&watched->collector);
	mw_track_destroy(watched->track);
	mw_track_destroy(watched->whole);
	free(watched->whole_of);
	mw_code_regions_deinit(&watched->regions);
	metadata_deinit(&watched->metadata);
	*watched = (struct mw_watched){.track = NULL};
}

struct mw_error *mw_watched_renew(struct mw_watched *watched)
{
	mw_track_destroy(watched->track);
	mw_track_destroy(watched->whole);
	watched->track = watched->whole = NULL;
	watched->whole_count = 0;
	MW_TRY(mw_track_create(&watched->track));
	watched->sink = mw_track_sink(watched->track);
	return NULL;
}

struct mw_error *mw_watched_settle(struct mw_watched *watched)
{
	struct mw_space_moment moments[2];
	struct mw_space_input space;

	mw_code_regions_deinit(&watched->regions);
	(void)mw_metadata_space(&watched->metadata, moments, &space);
	return mw_code_regions_make(space.start, space.end, &watched->regions);
}

void mw_watched_input(const struct mw_watched *watched, struct mw_summary_input *out)
{
	const struct mw_metadata *metadata = &watched->metadata;

	*out = (struct mw_summary_input){
		.track = watched->track,
		.whole = watched->whole,
		.whole_of = watched->whole_of,
		.whole_count = watched->whole_count,
		.modules = metadata->modules,
		.module_count = metadata->module_count,
		.symbols = watched->symbols.resolve ? &watched->symbols : NULL,
		.regions = &watched->regions,
		.pid = metadata->target.pid,
		.target = &metadata->target,
		.comm = metadata->target.comm,
		.exe = metadata->target.exe,
		.command = (char *const *)metadata->target.command,
		.command_count = metadata->target.command_count,
		.window = &metadata->window,
		.stats = &metadata->stats,
		.cut = watched->cut,
		.engine = metadata->target.engine,
		.engine_reason = metadata->target.engine_reason,
		.hooks = metadata->hooks,
		.hook_count = metadata->hook_count,
		.samples = metadata->samples,
		.sample_count = metadata->sample_count,
		.marks = metadata->marks,
		.mark_count = metadata->mark_count,
		.stored_leaks = metadata->leaks,
		.stored_leaks_count = metadata->leaks_count,
		.leaks = watched->leaks,
		.change = watched->change,
		.pools = watched->pools,
		.stored_pools = metadata->pools,
		.stored_pools_count = metadata->pools_count,
		.stored_changes = metadata->changes,
		.stored_changes_count = metadata->changes_count,
		.track_heap = metadata->target.track_heap,
		.track_vm = metadata->target.track_vm,
		.launched = metadata->target.launched,
		.attached = metadata->target.attached,
	};
}

struct mw_error *mw_watched_reset(struct mw_watched *watched)
{
	watched_deinit(watched);
	MW_TRY(metadata_init(&watched->metadata));
	return mw_watched_renew(watched);
}

/* --- several --------------------------------------------------------------------------------------------- */

static struct mw_error *add(struct mw_watched_set *set)
{
	struct mw_watched **items = reallocarray(set->items, set->count + 1, sizeof(struct mw_watched *));
	struct mw_watched *watched = calloc(1, sizeof(*watched));

	if (items)
		set->items = items;
	if (!items || !watched) {
		free(watched);
		return mw_error_nomem();
	}
	set->items[set->count++] = watched;
	return mw_watched_reset(watched);
}

struct mw_error *mw_watched_set_get(struct mw_watched_set *set, uint32_t number, struct mw_watched **out)
{
	if (number >= MOST_PROCESSES)
		return mw_error_create(MW_ERROR_DATA, 0, "process number %u", number);
	while (set->count <= number)
		MW_TRY(add(set));
	*out = set->items[number];
	return NULL;
}

void mw_watched_set_deinit(struct mw_watched_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		watched_deinit(set->items[i]);
		free(set->items[i]);
	}
	free(set->items);
	*set = (struct mw_watched_set){.count = 0};
}

#define FACT(what)                                                                                                     \
	static struct mw_error *on_##what(void *context, uint32_t number, const struct mw_stored_##what *what)         \
	{                                                                                                              \
		struct mw_watched *watched;                                                                            \
                                                                                                                       \
		MW_TRY(mw_watched_set_get(context, number, &watched));                                                 \
		return take_##what(&watched->metadata, what);                                                          \
	}

MW_STORE_EACH(FACT)

static struct mw_error *on_mapping(void *context, uint32_t number, enum mw_stored_moment moment,
				   const struct mw_stored_mapping *mapping)
{
	struct mw_watched *watched;

	MW_TRY(mw_watched_set_get(context, number, &watched));
	return take_mapping(&watched->metadata, moment, mapping);
}

/* Of a recording, of which events are read another time, this changes nothing. */
static struct mw_error *on_settle(void *context, uint32_t number)
{
	struct mw_watched *watched;

	MW_TRY(mw_watched_set_get(context, number, &watched));
	return mw_track_settle(watched->track);
}

static struct mw_error *on_before(void *context, uint32_t number, mw_addr start, mw_addr end)
{
	struct mw_watched *watched;

	MW_TRY(mw_watched_set_get(context, number, &watched));
	return mw_space_ranges_add(&watched->metadata.before, start, end);
}

struct mw_store_visitor mw_watched_set_visitor(struct mw_watched_set *set)
{
	return MW_STORE_VISITOR(set);
}

// SPDX-License-Identifier: MIT
/* keeper.c: see keeper.h. */
#include "cli/keeper.h"

#include "view/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NS 1e9

static void tell_mappings(struct mw_keeper *keeper, enum mw_stored_moment moment,
			  const struct mw_space_snapshot *snapshot)
{
	for (size_t i = 0; snapshot->taken && i < snapshot->count; i++)
		mw_store_mapping(keeper->writer, keeper->process, moment, &snapshot->mappings[i]);
}

struct mw_error *mw_keeper_target(struct mw_keeper *keeper, const struct mw_recorder *recorder,
				  const struct mw_recorder_view *view)
{
	const struct mw_engine_ops *ops = view->engine->ops;
	const struct mw_window_info *window = ops->window(view->engine, recorder->pid);
	const char *reason = NULL;
	struct mw_stored_target target = {
		.pid = recorder->pid,
		.comm = recorder->comm,
		.exe = recorder->exe,
		.command = (const char *const *)recorder->command,
		.command_count = recorder->command_count,
		.started_realtime_ns = window ? window->started_realtime_ns : 0,
		.track_heap = view->track_heap,
		.track_vm = view->track_vm,
		.depth = view->depth,
	};

	if (!keeper->writer)
		return NULL;
	target.engine = ops->used(view->engine, recorder->pid, &reason);
	target.engine_reason = view->reason ? view->reason : reason;
	mw_store_target(keeper->writer, keeper->process, &target);
	if (!keeper->begun)
		tell_mappings(keeper, MW_STORED_START, &recorder->start);
	keeper->begun = true;
	return mw_keeper_news(keeper, recorder, view);
}

static void tell_hooks(struct mw_keeper *keeper, const struct mw_hook_info *hooks, size_t count)
{
	for (; keeper->hooks < count; keeper->hooks++) {
		const struct mw_hook_info *hook = &hooks[keeper->hooks];
		const struct mw_stored_hook stored = {
			.number = (uint32_t)keeper->hooks,
			.function = hook->function,
			.module = hook->module,
			.refused = hook->refused,
			.address = hook->address,
			.role = hook->role,
			.kind = hook->kind,
		};

		mw_store_hook(keeper->writer, keeper->process, &stored);
	}
}

static void tell_modules(struct mw_keeper *keeper, const struct mw_view_module *modules, size_t count)
{
	for (; keeper->modules < count; keeper->modules++) {
		const struct mw_view_module *module = &modules[keeper->modules];
		const struct mw_stored_module stored = {
			.number = (uint32_t)keeper->modules,
			.path = module->path,
			.build_id = module->build_id,
			.build_id_size = module->build_id_size,
			.start = module->start,
			.end = module->end,
			.base = module->base,
			.suspect = module->suspect,
			.has_file = module->has_file,
		};

		mw_store_module(keeper->writer, keeper->process, &stored);
	}
}

struct mw_stored_sample mw_keeper_sample(const struct mw_report_sample *sample)
{
	return (struct mw_stored_sample){
		.time_ns = (uint64_t)(sample->at * NS + 0.5),
		.rss = sample->rss,
		.pss = sample->pss,
		.vsize = sample->vsize,
		.heap_impacting = sample->heap_impacting,
		.vm_impacting = sample->vm_impacting,
		.arena_used = sample->arena_used,
		.arena_free = sample->arena_free,
		.arena_size = sample->arena_size,
	};
}

static void tell_samples(struct mw_keeper *keeper, const struct mw_recorder *recorder, size_t count)
{
	for (; keeper->samples < count; keeper->samples++) {
		const struct mw_stored_sample stored = mw_keeper_sample(&recorder->samples[keeper->samples]);

		mw_store_sample(keeper->writer, keeper->process, &stored);
	}
}

struct mw_error *mw_keeper_news(struct mw_keeper *keeper, const struct mw_recorder *recorder,
				const struct mw_recorder_view *view)
{
	const struct mw_engine_ops *ops = view->engine->ops;
	struct mw_modules *modules = ops->modules(view->engine, recorder->pid);
	const struct mw_hook_info *hooks = NULL;
	struct mw_view_module *found = NULL;
	size_t count;

	if (!keeper->writer)
		return NULL;
	count = ops->hooks(view->engine, recorder->pid, &hooks);
	tell_hooks(keeper, hooks, count);
	if (recorder->sample_count)
		tell_samples(keeper, recorder, recorder->sample_count - 1);
	if (modules && mw_modules_count(modules) > keeper->modules) {
		MW_TRY(mw_view_modules_of(modules, &found, &count));
		tell_modules(keeper, found, count);
		free(found);
	}
	mw_store_flush(keeper->writer);
	return NULL;
}

void mw_keeper_mark(struct mw_keeper *keeper, struct mw_recorder *recorder, uint64_t time_ns)
{
	char name[32];
	const struct mw_stored_mark mark = {.number = ++keeper->marks, .time_ns = time_ns, .name = name};

	(void)snprintf(name, sizeof(name), "mark %" PRIu32, mark.number);
	mw_recorder_mark(recorder, &mark);
	if (keeper->writer)
		mw_store_mark(keeper->writer, keeper->process, &mark);
}

struct mw_error *mw_keeper_end(struct mw_keeper *keeper, const struct mw_recorder *recorder,
			       const struct mw_recorder_view *view)
{
	const struct mw_engine_ops *ops = view->engine->ops;
	const struct mw_window_info *window = ops->window(view->engine, recorder->pid);
	struct mw_engine_stats stats;
	struct mw_stored_figure figures[MW_FIGURES_MAX];
	struct mw_stored_end end = {.figures = figures};

	if (!keeper->writer)
		return NULL;
	MW_TRY(mw_keeper_target(keeper, recorder, view));
	tell_samples(keeper, recorder, recorder->sample_count);
	tell_mappings(keeper, MW_STORED_END, &recorder->end);
	if (window) {
		end.length_ns = window->length_ns;
		end.ended = window->ended;
		end.has_exit_status = window->has_exit_status;
		end.exit_status = window->exit_status;
	}
	if (mw_recorder_stats(recorder, view, &stats)) {
		end.left_behind = stats.left_behind;
		end.figure_count = mw_figures_list(&stats, figures);
	}
	mw_store_end(keeper->writer, keeper->process, &end);
	return NULL;
}

/* --- symbols ------------------------------------------------------------------------------------------- */

static struct mw_symbol_seen *place_of(struct mw_symbol_seen *seen, size_t capacity, uint32_t module, mw_addr addr)
{
	for (uint64_t at = (addr + module) * UINT64_C(0x9e3779b97f4a7c15) >> 20;; at++) {
		struct mw_symbol_seen *place = &seen[at & (capacity - 1)];

		if (!place->addr || (place->addr == addr && place->module == module))
			return place;
	}
}

/* Note that address; false: it is known, or there is no memory to note it. */
static bool is_new(struct mw_keeper *keeper, uint32_t module, mw_addr addr)
{
	struct mw_symbol_seen *place;

	if (2 * (keeper->seen_count + 1) > keeper->seen_capacity) {
		size_t capacity = keeper->seen_capacity ? 2 * keeper->seen_capacity : 1024;
		struct mw_symbol_seen *seen = calloc(capacity, sizeof(*seen));

		if (!seen)
			return false;
		for (size_t i = 0; i < keeper->seen_capacity; i++)
			if (keeper->seen[i].addr)
				*place_of(seen, capacity, keeper->seen[i].module, keeper->seen[i].addr) =
					keeper->seen[i];
		free(keeper->seen);
		keeper->seen = seen;
		keeper->seen_capacity = capacity;
	}
	place = place_of(keeper->seen, keeper->seen_capacity, module, addr);
	if (!addr || place->addr)
		return false;
	*place = (struct mw_symbol_seen){addr, module};
	keeper->seen_count++;
	return true;
}

static struct mw_error *tell_symbol(struct mw_keeper *keeper, uint32_t module, mw_addr addr,
				    const struct mw_symbol_frame *frames, size_t count)
{
	struct mw_stored_frame *stored = calloc(count + 1, sizeof(*stored));
	const struct mw_stored_symbol symbol = {.module = module, .addr = addr, .frames = stored, .frame_count = count};

	if (!stored)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		stored[i] = (struct mw_stored_frame){
			.function = frames[i].function,
			.file = frames[i].file,
			.line = frames[i].line,
			.offset = frames[i].offset,
			.inlined = frames[i].inlined,
		};
	mw_store_symbol(keeper->writer, keeper->process, &symbol);
	free(stored);
	return NULL;
}

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct mw_keeper *keeper = context;

	MW_TRY(keeper->inner.resolve(keeper->inner.context, module, addr, frames, count));
	/* Of code in no file that has no name there is nothing to be said. */
	if (module == MW_MODULE_NONE && (!*count || !(*frames)[0].function))
		return NULL;
	return is_new(keeper, module, addr) ? tell_symbol(keeper, module, addr, *frames, *count) : NULL;
}

struct mw_view_symbols mw_keeper_symbols(struct mw_keeper *keeper, const struct mw_view_symbols *inner)
{
	if (!keeper->writer || !keeper->symbols)
		return *inner;
	keeper->inner = *inner;
	return (struct mw_view_symbols){.context = keeper, .resolve = resolve};
}

void mw_keeper_deinit(struct mw_keeper *keeper)
{
	free(keeper->seen);
	keeper->seen = NULL;
	keeper->seen_count = keeper->seen_capacity = 0;
}

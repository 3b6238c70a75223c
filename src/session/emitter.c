// SPDX-License-Identifier: MIT
/* emitter.c: see emitter.h. */
#include "session/emitter.h"

#include "alloc/families.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vector.h"
#include "view/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* To all receivers that take it. */
#define EMIT(emitter, what, ...)                                                                                       \
	do {                                                                                                           \
		for (size_t emit_ = 0; emit_ < (emitter)->receiver_count; emit_++) {                                   \
			const struct mw_store_visitor *to_ = &(emitter)->receivers[emit_];                             \
                                                                                                                       \
			if (to_->what)                                                                                 \
				MW_TRY(to_->what(to_->context, (emitter)->process, __VA_ARGS__));                      \
		}                                                                                                      \
	} while (0)

void mw_emitter_add(struct mw_emitter *emitter, const struct mw_store_visitor *receiver)
{
	emitter->receivers[emitter->receiver_count++] = *receiver;
}

static struct mw_error *emit_mappings(const struct mw_emitter *emitter, enum mw_stored_moment moment,
				      const struct mw_space_snapshot *snapshot)
{
	for (size_t i = 0; snapshot->taken && i < snapshot->moment.count; i++)
		EMIT(emitter, mapping, moment, &snapshot->moment.mappings[i]);
	return NULL;
}

/* A file that has several names by links is called as it was executed. */
static const char *name_of(const struct mw_recorder *recorder, const char *path)
{
	return recorder->executed && path && strcmp(path, recorder->exe) == 0 ? recorder->executed : path;
}

/* Those whose objects were not seen. */
static uint32_t find_runtimes(const struct mw_recorder *recorder)
{
	const struct mw_recorder_view *view = recorder->view;
	const struct mw_modules *modules = view->engine->ops->modules(view->engine, recorder->pid);
	uint32_t found = 0;

	for (uint32_t i = 0; modules && i < mw_modules_count(modules); i++) {
		const struct mw_module *module = mw_modules_get(modules, i);
		bool is_exe = recorder->exe && strcmp(module->path, recorder->exe) == 0;

		found |= mw_runtimes_of(module->path, is_exe ? module->elf : NULL);
	}
	return found & ~recorder->visible;
}

static struct mw_stored_child *list_children(const struct mw_recorder *recorder, size_t *count)
{
	const struct mw_recorder_view *view = recorder->view;
	struct mw_stored_child *children = calloc(recorder->child_count + 1, sizeof(*children));

	*count = recorder->child_count < MW_STORED_CHILDREN_MAX ? recorder->child_count : MW_STORED_CHILDREN_MAX;
	for (size_t i = 0; children && i < *count; i++) {
		const struct mw_recorder_child *child = &recorder->children[i];

		children[i] = (struct mw_stored_child){.pid = child->pid, .comm = child->comm};
		for (size_t j = 0; j < view->recorder_count; j++)
			children[i].watched |= view->recorders[j].pid == child->pid;
	}
	return children;
}

struct mw_error *mw_emitter_target(struct mw_emitter *emitter, const struct mw_recorder *recorder)
{
	const struct mw_recorder_view *view = recorder->view;
	const struct mw_engine_ops *ops = view->engine->ops;
	const struct mw_window_info *window = ops->window(view->engine, recorder->pid);
	const char *reason = NULL;
	MW_FREE struct mw_stored_child *children = NULL;
	struct mw_stored_target target = {
		.pid = recorder->pid,
		.comm = recorder->comm,
		.exe = name_of(recorder, recorder->exe),
		.command = (const char *const *)recorder->command,
		.command_count = recorder->command_count,
		.started_realtime_ns = window ? window->started_realtime_ns : 0,
		.track_heap = view->options->track_heap,
		.track_vm = view->options->track_vm,
		.launched = recorder->launched,
		.attached = !recorder->launched,
		.depth = view->options->depth,
		.limit = recorder->limit,
		.distribution = recorder->distribution,
		.own_root = recorder->own_root,
		.by_root = geteuid() == 0,
		.runtimes = emitter->runtimes,
		.knows_children = recorder->knows_children,
	};

	children = list_children(recorder, &target.child_count);
	if (!children)
		return mw_error_nomem();
	target.children = children;

	target.engine = ops->used(view->engine, recorder->pid, &reason);
	target.engine_reason = view->options->engine_reason ? view->options->engine_reason : reason;
	EMIT(emitter, target, &target);
	if (!emitter->begun)
		MW_TRY(emit_mappings(emitter, MW_STORED_START, &recorder->start));
	emitter->begun = true;
	/* The last word on each counts: an attach that was tried again, or an exec, has changed them. */
	emitter->hooks = emitter->modules = 0;
	return mw_emitter_news(emitter, recorder);
}

static struct mw_error *emit_hooks(struct mw_emitter *emitter, const struct mw_recorder *recorder,
				   const struct mw_hook_info *hooks, size_t count)
{
	for (; emitter->hooks < count && emitter->hooks < MW_METADATA_NUMBERS; emitter->hooks++) {
		const struct mw_hook_info *hook = &hooks[emitter->hooks];
		const struct mw_stored_hook stored = {
			.number = (uint32_t)emitter->hooks,
			.function = hook->function,
			.module = name_of(recorder, hook->module),
			.refused = hook->refused,
			.address = hook->address,
			.role = hook->role,
			.kind = hook->kind,
		};

		EMIT(emitter, hook, &stored);
	}
	return NULL;
}

static struct mw_error *emit_modules(struct mw_emitter *emitter, const struct mw_recorder *recorder,
				     const struct mw_view_module *modules, size_t count)
{
	for (; emitter->modules < count && emitter->modules < MW_METADATA_NUMBERS; emitter->modules++) {
		const struct mw_view_module *module = &modules[emitter->modules];
		const struct mw_stored_module stored = {
			.number = (uint32_t)emitter->modules,
			.path = name_of(recorder, module->path),
			.build_id = module->build_id,
			.build_id_size = module->build_id_size,
			.start = module->start,
			.end = module->end,
			.base = module->base,
			.suspect = module->suspect,
			.has_file = module->has_file,
		};

		EMIT(emitter, module, &stored);
	}
	return NULL;
}

struct mw_error *mw_emitter_settle(const struct mw_emitter *emitter)
{
	for (size_t i = 0; i < emitter->receiver_count; i++) {
		const struct mw_store_visitor *to = &emitter->receivers[i];

		if (to->settle)
			MW_TRY(to->settle(to->context, emitter->process));
	}
	return NULL;
}

struct mw_error *mw_emitter_sample(const struct mw_emitter *emitter, const struct mw_stored_sample *sample)
{
	EMIT(emitter, sample, sample);
	return NULL;
}

struct mw_error *mw_emitter_before(const struct mw_emitter *emitter, mw_addr start, mw_addr end)
{
	EMIT(emitter, before, start, end);
	return NULL;
}

struct mw_error *mw_emitter_news(struct mw_emitter *emitter, const struct mw_recorder *recorder)
{
	const struct mw_recorder_view *view = recorder->view;
	const struct mw_engine_ops *ops = view->engine->ops;
	struct mw_modules *modules = ops->modules(view->engine, recorder->pid);
	const struct mw_hook_info *hooks = NULL;
	MW_FREE struct mw_view_module *found = NULL;
	size_t count = ops->hooks(view->engine, recorder->pid, &hooks);

	/* Before the window's start they are not final. */
	if (!emitter->begun)
		return NULL;
	MW_TRY(emit_hooks(emitter, recorder, hooks, count));
	if (!modules || mw_modules_count(modules) <= emitter->modules || emitter->modules >= MW_METADATA_NUMBERS)
		return NULL;
	MW_TRY(mw_view_modules_of(modules, &found, &count));
	return emit_modules(emitter, recorder, found, count);
}

static struct mw_error *emit_mark(const struct mw_emitter *emitter, const struct mw_stored_mark *mark)
{
	EMIT(emitter, mark, mark);
	return NULL;
}

void mw_emitter_mark(struct mw_emitter *emitter, uint64_t time_ns)
{
	char name[32];
	const struct mw_stored_mark mark = {.number = ++emitter->marks, .time_ns = time_ns, .name = name};

	(void)snprintf(name, sizeof(name), "mark %" PRIu32, mark.number);
	mw_error_destroy(emit_mark(emitter, &mark));
}

struct mw_error *mw_emitter_end(struct mw_emitter *emitter, const struct mw_recorder *recorder)
{
	const struct mw_recorder_view *view = recorder->view;
	const struct mw_engine_ops *ops = view->engine->ops;
	const struct mw_window_info *window = ops->window(view->engine, recorder->pid);
	struct mw_engine_stats stats;
	struct mw_stored_figure figures[MW_FIGURES_MAX];
	struct mw_stored_end end = {.figures = figures};

	emitter->runtimes = find_runtimes(recorder);
	MW_TRY(mw_emitter_target(emitter, recorder));
	MW_TRY(emit_mappings(emitter, MW_STORED_END, &recorder->end));
	if (window) {
		end.length_ns = window->length_ns;
		end.ended = window->ended;
		end.has_exit_status = window->has_exit_status;
		end.exit_status = window->exit_status;
	}
	if (mw_recorder_stats(recorder, &stats)) {
		end.left_behind = stats.left_behind;
		end.figure_count = mw_figures_list(&stats, figures);
	}
	EMIT(emitter, end, &end);
	return NULL;
}

/* --- symbols ------------------------------------------------------------------------------------------------------ */

static uint32_t hash_of(const void *seen, uint32_t number)
{
	const struct mw_symbol_seen *symbol = &((const struct mw_symbol_seen *)seen)[number];

	return (uint32_t)mw_hash_mix(mw_hash_add(symbol->module, symbol->addr));
}

/* Note that address; false: it is known, or there is no memory to note it. */
static bool is_new(struct mw_emitter *emitter, uint32_t module, mw_addr addr)
{
	const struct mw_symbol_seen symbol = {addr, module};
	uint32_t hash = hash_of(&symbol, 0), number;

	MW_INDEX_EACH(&emitter->seen_index, hash, number)
		if (emitter->seen[number].addr == addr && emitter->seen[number].module == module)
			return false;
	if (!addr || !mw_index_reserve(&emitter->seen_index, hash_of, emitter->seen) ||
	    !MW_VECTOR_ROOM(emitter->seen, emitter->seen_index.count, emitter->seen_capacity))
		return false;
	emitter->seen[mw_index_put(&emitter->seen_index, hash)] = symbol;
	return true;
}

static struct mw_error *emit_symbol(struct mw_emitter *emitter, uint32_t module, mw_addr addr,
				    const struct mw_symbol_frame *frames, size_t count)
{
	MW_FREE struct mw_stored_frame *stored = calloc(count + 1, sizeof(*stored));
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
	EMIT(emitter, symbol, &symbol);
	return NULL;
}

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct mw_emitter *emitter = context;

	MW_TRY(emitter->inner.resolve(emitter->inner.context, module, addr, frames, count));
	/* Of code in no file that has no name there is nothing to be said. */
	if (module == MW_MODULE_NONE && (!*count || !(*frames)[0].function))
		return NULL;
	return is_new(emitter, module, addr) ? emit_symbol(emitter, module, addr, *frames, *count) : NULL;
}

struct mw_view_symbols mw_emitter_symbols(struct mw_emitter *emitter, const struct mw_view_symbols *inner)
{
	bool wanted = false;

	for (size_t i = 0; i < emitter->receiver_count; i++)
		wanted |= emitter->receivers[i].symbol != NULL;
	if (!wanted)
		return *inner;
	emitter->inner = *inner;
	return (struct mw_view_symbols){.context = emitter, .resolve = resolve};
}

void mw_emitter_deinit(struct mw_emitter *emitter)
{
	free(emitter->seen);
	emitter->seen = NULL;
	emitter->seen_capacity = 0;
	mw_index_deinit(&emitter->seen_index);
}

// SPDX-License-Identifier: MIT
/* recorder.c: what is kept of one process while it is watched, and emitted (recorder.h). */
#include "session/recorder.h"

#include "alloc/families.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/vector.h"
#include "proc/maps.h"
#include "proc/program.h"
#include "proc/status.h"
#include "session/process_setup.h"
#include "session/session.h"
#include "view/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- emission ------------------------------------------------------------------------------------------------------ */

/* To all receivers that take it. */
#define EMIT(emitter, what, ...)                                                                                       \
	do {                                                                                                           \
		for (size_t emit_ = 0; emit_ < (emitter)->receiver_count; emit_++) {                                   \
			const struct mw_store_visitor *to_ = &(emitter)->receivers[emit_];                             \
                                                                                                                       \
			if (to_->what)                                                                                 \
				MW_TRY(to_->what(to_->context, (emitter)->process, ##__VA_ARGS__));                    \
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
	struct mw_engine *engine = recorder->session->engine;
	const struct mw_modules *modules = engine->ops->modules(engine, recorder->key);
	const struct mw_hook_info *hooks = NULL;
	size_t count = engine->ops->hooks(engine, recorder->key, &hooks);
	uint32_t found = 0;

	for (uint32_t i = 0; modules && i < mw_modules_count(modules); i++) {
		const struct mw_module *module = mw_modules_get(modules, i);
		bool is_exe = recorder->exe && strcmp(module->path, recorder->exe) == 0;

		found |= mw_runtimes_of(module->path, is_exe ? module->elf : NULL);
	}
	return found & ~(recorder->visible | mw_runtimes_hooked(hooks, count));
}

static struct mw_stored_child *list_children(const struct mw_recorder *recorder, size_t *count)
{
	const struct mw_session *session = recorder->session;
	struct mw_stored_child *children = calloc(recorder->child_count + 1, sizeof(*children));

	*count = recorder->child_count < MW_STORED_CHILDREN_MAX ? recorder->child_count : MW_STORED_CHILDREN_MAX;
	for (size_t i = 0; children && i < *count; i++) {
		const struct mw_recorder_child *child = &recorder->children[i];

		children[i] = (struct mw_stored_child){.pid = child->pid, .comm = child->comm};
		for (size_t j = 0; j < session->count; j++)
			children[i].watched |= session->recorders[j].pid == child->pid;
	}
	return children;
}

struct mw_error *mw_emitter_target(struct mw_emitter *emitter, const struct mw_recorder *recorder)
{
	const struct mw_session_options *options = recorder->session->options;
	struct mw_engine *engine = recorder->session->engine;
	const struct mw_window_info *window = engine->ops->window(engine, recorder->key);
	const char *reason = NULL;
	MW_FREE struct mw_stored_child *children = NULL;
	struct mw_stored_target target = {
		.pid = recorder->pid,
		.comm = recorder->comm,
		.exe = name_of(recorder, recorder->exe),
		.command = (const char *const *)recorder->command,
		.command_count = recorder->command_count,
		.started_realtime_ns = window ? window->started_realtime_ns : 0,
		.track_heap = options->track_heap,
		.track_vm = options->track_vm,
		.launched = recorder->launched,
		.attached = !recorder->launched,
		.depth = options->depth,
		.limit = recorder->limit,
		.distribution = recorder->distribution,
		.own_root = recorder->own_root,
		.by_root = geteuid() == 0,
		.runtimes = emitter->runtimes,
		.knows_children = recorder->knows_children,
	};
	const struct mw_modules *modules = engine->ops->modules(engine, recorder->key);

	if (modules && *modules->frames_missing)
		target.frames_missing = modules->frames_missing;
	children = list_children(recorder, &target.child_count);
	if (!children)
		return mw_error_nomem();
	target.children = children;

	target.engine = engine->ops->used ? engine->ops->used(engine, recorder->key, &reason) : engine->ops->name;
	target.engine_reason = options->engine_reason ? options->engine_reason : reason;
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

struct mw_error *mw_emitter_sample(const struct mw_emitter *emitter, const struct mw_stored_sample *sample)
{
	EMIT(emitter, sample, sample);
	return NULL;
}

struct mw_error *mw_emitter_news(struct mw_emitter *emitter, const struct mw_recorder *recorder)
{
	struct mw_engine *engine = recorder->session->engine;
	struct mw_modules *modules = engine->ops->modules(engine, recorder->key);
	const struct mw_hook_info *hooks = NULL;
	MW_FREE struct mw_view_module *found = NULL;
	size_t count = engine->ops->hooks(engine, recorder->key, &hooks);

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

struct mw_error *mw_emitter_end(struct mw_emitter *emitter, const struct mw_recorder *recorder,
				const struct mw_window_info *window)
{
	struct mw_engine_stats stats;
	struct mw_stored_figure figures[MW_FIGURES_MAX];
	struct mw_stored_end end = {
		.figures = figures,
		.length_ns = window->length_ns,
		.ended = window->ended,
		.has_exit_status = window->has_exit_status,
		.exit_status = window->exit_status,
	};

	emitter->runtimes = find_runtimes(recorder);
	MW_TRY(mw_emitter_target(emitter, recorder));
	MW_TRY(emit_mappings(emitter, MW_STORED_END, &recorder->end));
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

/* --- events -------------------------------------------------------------------------------------------------------- */

/* Without memory for it a mapping may be reported as unattributed. */
static void note(struct mw_recorder *recorder, const struct mw_event *event)
{
	bool maps = event->type == MW_EVENT_MAP || event->type == MW_EVENT_REMAP_END;

	if (maps && (recorder->noting || event->time_ns > recorder->end_ns) && event->addr + event->size > event->addr)
		mw_error_destroy(mw_space_ranges_add(&recorder->late, event->addr, event->addr + event->size));
}

/* Not every free of a block that came to be after the window: there may be millions. */
static bool is_of_window(const struct mw_recorder *recorder, const struct mw_event *event)
{
	if (event->type == MW_EVENT_FREE)
		return event->addr && recorder->sink.knows(recorder->sink.context, event->addr);
	return event->type != MW_EVENT_ALLOC;
}

/* One that is later than the window. */
static struct mw_error *settle(struct mw_recorder *recorder, const struct mw_event *event)
{
	if (!recorder->settles)
		return NULL;
	if (!recorder->settling)
		EMIT(recorder->emitter, settle);
	recorder->settling = true;
	return is_of_window(recorder, event) ? recorder->sink.event(recorder->sink.context, event) : NULL;
}

static struct mw_error *on_event(void *context, const struct mw_event *event)
{
	struct mw_recorder *recorder = context;

	note(recorder, event);
	return event->time_ns > recorder->end_ns ? settle(recorder, event)
						 : recorder->sink.event(recorder->sink.context, event);
}

/* They come in order of time. */
static struct mw_error *on_events(void *context, const struct mw_event *events, size_t count)
{
	struct mw_recorder *recorder = context;
	size_t within = count;

	while (within > 0 && events[within - 1].time_ns > recorder->end_ns)
		within--;
	for (size_t i = recorder->noting ? 0 : within; i < count; i++)
		note(recorder, &events[i]);
	if (within && recorder->sink.events)
		MW_TRY(recorder->sink.events(recorder->sink.context, events, within));
	for (size_t i = 0; i < within && !recorder->sink.events; i++)
		MW_TRY(recorder->sink.event(recorder->sink.context, &events[i]));
	for (size_t i = within; i < count; i++)
		MW_TRY(settle(recorder, &events[i]));
	return NULL;
}

static struct mw_error *on_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.stack(recorder->sink.context, stack, id);
}

static struct mw_error *on_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.thread(recorder->sink.context, tid, name, fresh, number);
}

static bool on_knows(void *context, mw_addr addr)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.knows(recorder->sink.context, addr);
}

static void on_blocks(void *context, void (*visit)(void *visitor, mw_addr addr), void *visitor)
{
	const struct mw_recorder *recorder = context;

	recorder->sink.blocks(recorder->sink.context, visit, visitor);
}

static struct mw_error *on_interval(void *context, uint64_t bytes, uint16_t *number)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.interval(recorder->sink.context, bytes, number);
}

struct mw_event_sink mw_recorder_sink(struct mw_recorder *recorder)
{
	return (struct mw_event_sink){
		.context = recorder,
		.stack = on_stack,
		.thread = on_thread,
		.event = on_event,
		.events = on_events,
		.knows = on_knows,
		.blocks = on_blocks,
		.interval = on_interval,
	};
}

/* --- who it is -------------------------------------------------------------------------------------------------- */

static void replace(char **text, char *by)
{
	if (!by)
		return;
	free(*text);
	*text = by;
}

void mw_recorder_identify(struct mw_recorder *recorder)
{
	char name[17];
	char **command = NULL;
	char *exe = NULL;
	size_t count = 0;
	/* A first thread that has ended knows neither. */
	pid_t live = mw_live_thread(recorder->pid);

	mw_error_destroy(mw_exe_read(live, &exe));
	mw_error_destroy(mw_command_read(live, &command, &count));
	mw_comm_read(recorder->pid, recorder->pid, name);
	replace(&recorder->comm, strdup(name));
	if (exe) {
		free(recorder->executed);
		recorder->executed = mw_exe_executed(live, exe);
	}
	replace(&recorder->exe, exe);
	if (command) {
		mw_command_free(&recorder->command);
		recorder->command = command;
		recorder->command_count = count;
	}
	recorder->identified = exe != NULL;
}

static void init(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched, struct mw_emitter *emitter)
{
	*recorder = (struct mw_recorder){.pid = pid,
					 .key = pid,
					 .watched = watched,
					 .emitter = emitter,
					 .sink = watched->sink,
					 .end_ns = UINT64_MAX};
	mw_perf_place_init(&recorder->jit, pid);
}

void mw_recorder_init(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched, struct mw_emitter *emitter)
{
	init(recorder, pid, watched, emitter);
	mw_program_read(pid, &recorder->program);
	mw_recorder_identify(recorder);
	recorder->identified = true;
}

/* What a command will be called, until it can be asked. */
static bool expect(struct mw_recorder *recorder, const char *path, char *const *command, size_t count)
{
	recorder->comm = strndup(basename(path), 15);
	recorder->exe = realpath(path, NULL);
	recorder->command = calloc(count + 1, sizeof(*recorder->command));
	if (!recorder->comm || !recorder->command)
		return false;
	for (; recorder->command_count < count; recorder->command_count++) {
		recorder->command[recorder->command_count] = strdup(command[recorder->command_count]);
		if (!recorder->command[recorder->command_count])
			return false;
	}
	return true;
}

struct mw_error *mw_recorder_init_launched(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched,
					   struct mw_emitter *emitter, const char *path, char *const *command,
					   size_t count)
{
	init(recorder, pid, watched, emitter);
	recorder->launched = true;
	if (!expect(recorder, path, command, count)) {
		mw_recorder_deinit(recorder);
		return mw_error_nomem();
	}
	return NULL;
}

/* --- looks at the heap (heap_looks.c) ------------------------------------------------------------------------------- */

static struct mw_error *emit_change(const struct mw_recorder *recorder, const struct mw_report_change *change)
{
	const struct mw_stored_change before = {MW_STORED_CHANGE_RSS_BEFORE, "", "", 0, (int64_t)change->before};
	const struct mw_stored_change after = {MW_STORED_CHANGE_RSS_AFTER, "", "", 0, (int64_t)change->after};

	EMIT(recorder->emitter, change, &before);
	MW_EACH(part, change->parts, change->part_count) {
		const struct mw_stored_change stored = {part->kind, part->name, part->detail, part->stack, part->bytes};

		EMIT(recorder->emitter, change, &stored);
	}
	EMIT(recorder->emitter, change, &after);
	return NULL;
}

/* What the report has of them goes into the recording. */
static struct mw_error *emit_leaks(const struct mw_recorder *recorder, const struct mw_report *report)
{
	const struct mw_stored_leaks looked = {.stack = 0};

	/* There was a look, though it may have found none of these blocks. */
	if (report->leaks)
		EMIT(recorder->emitter, leaks, &looked);
	for (size_t i = 0; report->leaks && i < report->stack_count; i++) {
		const struct mw_report_leaks *leaks = report->stacks[i].leaks;
		struct mw_stored_leaks stored = {.stack = strtoull(report->stacks[i].id, NULL, 16)};

		if (!leaks)
			continue;
		memcpy(stored.amounts, leaks->amounts, sizeof(stored.amounts));
		stored.holder = leaks->holder;
		stored.holder_count = leaks->holder_count;
		EMIT(recorder->emitter, leaks, &stored);
	}
	return report->change ? emit_change(recorder, report->change) : NULL;
}

static struct mw_error *emit_pools(const struct mw_recorder *recorder, const struct mw_report *report)
{
	MW_EACH(stack, report->stacks, report->stack_count) {
		const struct mw_report_pool *pool = stack->pool;
		struct mw_stored_pool stored = {.stack = strtoull(stack->id, NULL, 16)};

		for (size_t i = 0; pool && i < pool->user_count; i++) {
			const struct mw_report_pool_user *user = &pool->users[i];

			stored = (struct mw_stored_pool){stored.stack, pool->name,    user->name,
							 user->path,   user->example, user->blocks};
			EMIT(recorder->emitter, pool, &stored);
		}
		if (!pool || !pool->others.count)
			continue;
		stored = (struct mw_stored_pool){stored.stack, pool->name, "", "", "", pool->others};
		EMIT(recorder->emitter, pool, &stored);
	}
	return NULL;
}

void mw_recorder_deinit(struct mw_recorder *recorder)
{
	mw_error_destroy(mw_recorder_end_look(recorder));
	mw_space_deinit(&recorder->start);
	mw_space_deinit(&recorder->end);
	mw_space_ranges_deinit(&recorder->late);
	mw_perf_place_deinit(&recorder->jit);
	free(recorder->comm);
	free(recorder->exe);
	free(recorder->executed);
	free(recorder->children);
	mw_command_free(&recorder->command);
	memset(recorder, 0, sizeof(*recorder));
}

struct mw_error *mw_recorder_before(struct mw_recorder *recorder)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	/* Before its exec, a command's mappings are a copy of memwatch's own. */
	if (recorder->launched)
		return NULL;
	/* The engine has seen to it that it is the one that is there now that will be watched. */
	if (!mw_error_none(mw_program_check(recorder->pid, &recorder->program))) {
		mw_program_read(recorder->pid, &recorder->program);
		mw_perf_place_init(&recorder->jit, recorder->pid);
		mw_recorder_identify(recorder);
		mw_recorder_look_first(recorder);
	}
	MW_TRY(mw_maps_read(mw_live_thread(recorder->pid), &maps));
	for (size_t i = 0; i < maps.count; i++) {
		MW_TRY(mw_track_before(recorder->watched->track, maps.items[i].start, maps.items[i].end));
		EMIT(recorder->emitter, before, maps.items[i].start, maps.items[i].end);
	}
	return NULL;
}

uint64_t mw_recorder_events(const struct mw_recorder *recorder)
{
	uint64_t events = 0;

	for (enum mw_kind kind = MW_KIND_HEAP; kind <= MW_KIND_VM; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(recorder->watched->track, kind, &totals);
		events += totals.size.count + totals.transient.count + totals.aofi.count;
	}
	return events;
}

bool mw_recorder_stats(const struct mw_recorder *recorder, struct mw_engine_stats *out)
{
	struct mw_engine *engine = recorder->session->engine;
	const struct mw_engine_stats *stats = engine->ops->stats(engine, recorder->key);
	const struct mw_window_info *window = engine->ops->window(engine, recorder->key);

	if (!stats)
		return false;
	*out = *stats;
	out->settle_ns = recorder->settle_ns;
	out->own_cpu_ns = recorder->session->own_cpu_ns;
	if (!out->own_cpu_ns)
		out->own_cpu_ns = mw_clock_ns_of(CLOCK_PROCESS_CPUTIME_ID) - recorder->session->cpu_begin_ns;
	if (window && window->ended == MW_END_LIMIT && !stats->limit_stopped)
		out->limit_memory = recorder->session->options->max_memory;
	return true;
}

#define STOP_SHARE 8 /* what memwatch does at a stop takes as long as what it does with so many records */

static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? mw_clock_ns_of(clock) : 0;
}

/* The figures of one, but for memwatch's own CPU time; gives how much was recorded since the last ones. */
static uint64_t look_at_cost(struct mw_recorder *recorder)
{
	struct mw_engine_stats stats = {0};
	uint64_t before = recorder->cost.recorded;

	(void)mw_recorder_stats(recorder, &stats);
	recorder->cost.time_ns = mw_clock_ns();
	recorder->cost.process_ns = cpu_of(recorder->pid);
	recorder->cost.spent_ns = stats.spent_ns;
	recorder->cost.recorded = stats.walks + STOP_SHARE * stats.stops;
	recorder->recorded = recorder->cost.recorded - before;
	return recorder->recorded;
}

void mw_recorders_keep_budget(struct mw_recorder *recorders, size_t count)
{
	struct mw_session *session = recorders->session;
	const struct mw_engine_ops *ops = session->engine->ops;
	uint64_t own_ns = mw_clock_ns_of(CLOCK_PROCESS_CPUTIME_ID), own = own_ns - session->budget_own_ns, recorded = 0;

	session->budget_own_ns = own_ns;
	for (size_t i = 0; i < count; i++)
		recorded += look_at_cost(&recorders[i]);
	for (size_t i = 0; i < count; i++) {
		struct mw_budget *budget = &recorders[i].budget;
		const struct mw_window_info *window = ops->window(session->engine, recorders[i].key);
		uint64_t interval = budget->interval;

		if (!window || window->over || !recorders[i].cost.process_ns)
			continue;
		if (!interval)
			*budget = (struct mw_budget){.share = session->options->budget / 1e6,
						     .interval = session->options->sample_interval};
		if (recorded)
			recorders[i].cost.own_ns +=
				(uint64_t)((double)own * (double)recorders[i].recorded / (double)recorded);
		if (mw_budget_next(budget, &recorders[i].cost) != interval)
			ops->set_interval(session->engine, recorders[i].key, budget->interval);
	}
}

static bool has_nameless_code(const struct mw_report *report)
{
	for (size_t i = 0; i < report->stack_count; i++)
		for (size_t j = 0; j < report->stacks[i].frame_count; j++)
			if (report->stacks[i].frames[j].generated)
				return true;
	return false;
}

/* Where code in no file has no name, and something was amiss with the list of them. Takes `err`. */
static void emit_names(struct mw_error *err, const struct mw_perf_map *names, const struct mw_report *report)
{
	if ((err || names->cut) && has_nameless_code(report)) {
		fputs("memwatch: names of code in no file: ", stderr);
		mw_message_put(stderr, err ? mw_error_text(err) : "the list is too long, the older ones are missing");
		fputc('\n', stderr);
	}
	mw_error_destroy(err);
}

static void drop_modules(struct mw_modules **modules)
{
	mw_modules_destroy(*modules);
}

struct mw_error *mw_recorder_report(struct mw_recorder *recorder, struct mw_reports *reports, size_t process)
{
	struct mw_session *session = recorder->session;
	struct mw_watched *watched = recorder->watched;
	struct mw_guarded_symbols guarded;
	struct mw_view_symbols symbols;
	struct mw_perf_map names = {.count = 0};
	struct mw_recorder_pools pools;
	const struct mw_modules *modules = session->engine->ops->modules(session->engine, recorder->key);
	MW_CLEANUP(drop_modules) struct mw_modules *none = NULL;
	struct mw_error *err, *unnamed;

	MW_TRY(mw_watched_settle(watched));
	mw_recorder_examine_heap(recorder);
	/* It ended before its window began. */
	if (!modules)
		MW_TRY(mw_modules_create(&none));
	MW_TRY(mw_guarded_symbols_init(&guarded, modules ? modules : none));
	unnamed = mw_perf_map_read(&recorder->jit, &names);
	mw_symbolizer_set_names(guarded.symbolizer, &names);
	symbols = mw_guarded_symbols_of(&guarded);
	watched->symbols = mw_emitter_symbols(recorder->emitter, &symbols);
	mw_recorder_open_pools(recorder, &pools);
	err = mw_reports_make(reports, process, watched);
	mw_recorder_close_pools(recorder, &pools);
	if (!err)
		err = emit_leaks(recorder, reports->items[process]);
	if (!err)
		err = emit_pools(recorder, reports->items[process]);
	err = mw_error_first(err, mw_recorder_end_look(recorder));
	watched->symbols = (struct mw_view_symbols){.resolve = NULL};
	mw_progress_clear(&session->progress); /* a message may come */
	if (!err)
		emit_names(unnamed, &names, reports->items[process]);
	else
		mw_error_destroy(unnamed);
	session->unnamed |= guarded.crashed;
	mw_guarded_symbols_deinit(&guarded);
	mw_perf_map_deinit(&names);
	return err;
}

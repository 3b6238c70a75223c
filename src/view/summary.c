// SPDX-License-Identifier: MIT
/* summary.c: the report of a whole window, put together. */
#include "view/summary.h"

#include "base/map.h"
#include "view/arena.h"
#include "view/growth.h"
#include "view/stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

void mw_report_destroy(struct mw_report *report)
{
	if (!report)
		return;
	mw_arena_destroy(report->arena);
	free(report);
}

static struct mw_error *fill_target(const struct mw_summary_input *input, struct mw_arena *arena,
				    struct mw_report *report)
{
	const struct mw_window_info *window = input->window;

	report->target.pid = input->pid;
	report->target.comm = mw_arena_string(arena, input->comm);
	report->target.exe = mw_arena_string(arena, input->exe);
	report->target.command = mw_arena_array(arena, input->command_count, sizeof(*report->target.command));
	if (!report->target.command)
		return mw_error_nomem();
	report->target.command_count = input->command_count;
	for (size_t i = 0; i < input->command_count; i++)
		report->target.command[i] = mw_arena_string(arena, input->command[i]);
	if (!window || !window->has_exit_status)
		return NULL;
	if (WIFEXITED(window->exit_status)) {
		report->target.has_exit_status = true;
		report->target.exit_status = WEXITSTATUS(window->exit_status);
	} else if (WIFSIGNALED(window->exit_status)) {
		report->target.has_exit_status = true;
		report->target.exit_signal = WTERMSIG(window->exit_status);
		report->target.exit_status = 128 + report->target.exit_signal;
	}
	return NULL;
}

static struct mw_error *fill_engine(const struct mw_summary_input *input, struct mw_arena *arena,
				    struct mw_report *report)
{
	if (input->window) {
		report->window.started_realtime_ns = input->window->started_realtime_ns;
		report->window.seconds = (double)input->window->length_ns / 1e9;
		report->window.from = (double)input->from_ns / 1e9;
		report->window.to = input->to_ns ? (double)input->to_ns / 1e9 : report->window.seconds;
		report->window.ended = input->window->ended;
	}
	if (input->stats)
		report->engine.stats = *input->stats;
	/* An event that could not be is one that was missed before it: most often a free. */
	report->lost.events = report->engine.stats.lost_events + mw_track_missed(input->track);
	report->lost.stacks = report->engine.stats.lost_stacks;
	report->lost.cut = mw_arena_string(arena, input->cut);
	report->engine.name = mw_arena_string(arena, input->engine);
	report->engine.reason = mw_arena_string(arena, input->engine_reason);
	report->engine.hooks = mw_arena_array(arena, input->hook_count, sizeof(*report->engine.hooks));
	if (!report->engine.hooks)
		return mw_error_nomem();
	report->engine.hook_count = input->hook_count;
	for (size_t i = 0; i < input->hook_count; i++) {
		const struct mw_hook_info *hook = &input->hooks[i];

		report->engine.hooks[i] = (struct mw_report_hook){
			.function = mw_arena_string(arena, hook->function),
			.module = mw_arena_string(arena, hook->module),
			.role = mw_arena_string(arena, mw_role_name(hook->role)),
			.refused = mw_arena_string(arena, hook->refused),
			.address = hook->address,
			.missed = mw_view_is_missed(hook, input->track_heap, input->track_vm),
		};
		report->lost.hooks += report->engine.hooks[i].missed;
	}
	return NULL;
}

static void fill_totals(const struct mw_summary_input *input, struct mw_report *report)
{
	report->tracked[MW_KIND_HEAP] = input->track_heap;
	report->tracked[MW_KIND_VM] = input->track_vm;
	report->tracked[MW_KIND_VM_INTERNAL] = input->track_vm;
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(input->track, (enum mw_kind)kind, &totals);
		report->totals[kind] = (struct mw_report_totals){
			.size = totals.size,
			.impacting = totals.impacting,
			.transient = totals.transient,
			.aofi = totals.aofi,
			.aofi_unknown = totals.aofi_unknown,
			.aofo = totals.aofo,
			.peak = {totals.peak.amount.count, totals.peak.amount.bytes, (double)totals.peak.at_ns / 1e9},
		};
	}
}

static struct mw_error *fill_memory(const struct mw_summary_input *input, struct mw_arena *arena,
				    struct mw_report *report)
{
	report->memory = mw_arena_array(arena, input->sample_count, sizeof(*report->memory));
	if (!report->memory)
		return mw_error_nomem();
	for (size_t i = 0; i < input->sample_count; i++) {
		const struct mw_report_sample *sample = &input->samples[i];

		if (sample->at >= report->window.from && (!input->to_ns || sample->at <= report->window.to))
			report->memory[report->memory_count++] = *sample;
	}
	return NULL;
}

static struct mw_error *fill_marks(const struct mw_summary_input *input, struct mw_arena *arena,
				   struct mw_report *report)
{
	report->marks = mw_arena_array(arena, input->mark_count, sizeof(*report->marks));
	if (!report->marks)
		return mw_error_nomem();
	for (size_t i = 0; i < input->mark_count; i++) {
		const struct mw_stored_mark *mark = &input->marks[i];

		if (mark->time_ns >= input->from_ns && (!input->to_ns || mark->time_ns <= input->to_ns))
			report->marks[report->mark_count++] = (struct mw_report_mark){
				mark->number, mark->time_ns, mw_arena_string(arena, mark->name)};
	}
	return NULL;
}

/* Most impacting bytes first, then most bytes at all; by hand where a text decides the rest. */
static int compare_amounts(struct mw_amount a_impacting, struct mw_amount a_size, struct mw_amount b_impacting,
			   struct mw_amount b_size)
{
	if (a_impacting.bytes != b_impacting.bytes)
		return a_impacting.bytes > b_impacting.bytes ? -1 : 1;
	if (a_size.bytes != b_size.bytes)
		return a_size.bytes > b_size.bytes ? -1 : 1;
	if (a_size.count != b_size.count)
		return a_size.count > b_size.count ? -1 : 1;
	return 0;
}

static int compare_threads(const void *left, const void *right)
{
	const struct mw_report_thread *a = left, *b = right;
	int order = compare_amounts(a->impacting, a->size, b->impacting, b->size);

	return order ? order : (a->tid > b->tid) - (a->tid < b->tid);
}

static int compare_modules(const void *left, const void *right)
{
	const struct mw_report_module *a = left, *b = right;
	int order = compare_amounts(a->impacting, a->size, b->impacting, b->size);

	return order ? order : strcmp(a->module ? a->module : "", b->module ? b->module : "");
}

static int compare_stacks(const void *left, const void *right)
{
	const struct mw_report_stack *a = left, *b = right;
	int order = compare_amounts(a->impacting, a->size, b->impacting, b->size);

	return order ? order : strcmp(a->id, b->id);
}

/* A thread and the tracker's number of it. */
struct numbered_thread {
	struct mw_report_thread thread; /* first: compare_threads() */
	uint32_t number;
};

static void sort_threads(const struct mw_summary_input *input, struct mw_arena *arena, struct numbered_thread *threads,
			 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct mw_track_thread thread;

		mw_track_thread(input->track, i, &thread);
		threads[i].number = i;
		threads[i].thread.tid = thread.tid;
		threads[i].thread.name = mw_arena_string(arena, thread.name);
		threads[i].thread.size = thread.size;
		threads[i].thread.impacting = thread.impacting;
		threads[i].thread.transient = thread.transient;
	}
	if (count)
		qsort(threads, count, sizeof(*threads), compare_threads);
}

static struct mw_error *fill_threads(const struct mw_summary_input *input, struct mw_arena *arena,
				     struct mw_report *report)
{
	uint32_t count = mw_track_thread_count(input->track);
	struct numbered_thread *threads = calloc((size_t)count + 1, sizeof(*threads));
	uint32_t *thread_of = input->thread_of ? calloc((size_t)count + 1, sizeof(*thread_of)) : NULL;

	report->threads = mw_arena_array(arena, count, sizeof(*report->threads));
	if (!report->threads || !threads || (input->thread_of && !thread_of)) {
		free(threads);
		free(thread_of);
		return mw_error_nomem();
	}
	sort_threads(input, arena, threads, count);
	report->thread_count = count;
	for (uint32_t i = 0; i < count; i++) {
		report->threads[i] = threads[i].thread;
		if (thread_of)
			thread_of[threads[i].number] = i;
	}
	free(threads);
	if (thread_of)
		*input->thread_of = thread_of;
	return NULL;
}

/* Sum the stacks by suspect. An allocator's own mappings hold the blocks that are counted already. */
static struct mw_error *sum_modules(struct mw_report *report, struct mw_map *numbering)
{
	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		struct mw_report_module *module;
		uint32_t number;

		if (stack->kind == MW_KIND_VM_INTERNAL || !stack->size.count)
			continue;
		/* Equal paths are one pointer in the arena. */
		if (!mw_map_number(numbering, (uintptr_t)stack->suspect, &number))
			return mw_error_nomem();
		module = &report->modules[number];
		module->module = stack->suspect;
		mw_amount_add(&module->size, stack->size);
		mw_amount_add(&module->impacting, stack->impacting);
		mw_amount_add(&module->transient, stack->transient);
	}
	return NULL;
}

static struct mw_error *fill_modules(const struct mw_summary_input *input, struct mw_arena *arena,
				     struct mw_report *report)
{
	struct mw_map numbering = {0};
	struct mw_error *err;

	/* One for each module and one for what is charged to none. */
	report->modules = mw_arena_array(arena, input->module_count + 1, sizeof(*report->modules));
	if (!report->modules)
		return mw_error_nomem();
	err = sum_modules(report, &numbering);
	report->module_count = numbering.count;
	mw_map_deinit(&numbering);
	if (!err)
		qsort(report->modules, report->module_count, sizeof(*report->modules), compare_modules);
	return err;
}

/* Where the tracker's stacks lie now that they are sorted. Takes `group_of`. */
static struct mw_error *hand_out_order(const struct mw_summary_input *input, const struct mw_report *report,
				       uint32_t *group_of)
{
	uint32_t *position, count = mw_track_stack_count(input->track);

	if (!input->stack_of) {
		free(group_of);
		return NULL;
	}
	position = calloc(report->stack_count + 1, sizeof(*position));
	if (!position) {
		free(group_of);
		return mw_error_nomem();
	}
	for (size_t i = 0; i < report->stack_count; i++)
		position[report->stacks[i].group] = (uint32_t)i;
	for (uint32_t i = 0; i < count; i++)
		if (group_of[i] != UINT32_MAX)
			group_of[i] = position[group_of[i]];
	free(position);
	*input->stack_of = group_of;
	return NULL;
}

static struct mw_error *fill(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report)
{
	uint32_t *group_of = NULL;
	struct mw_error *err;

	MW_TRY(fill_target(input, arena, report));
	MW_TRY(fill_engine(input, arena, report));
	MW_TRY(fill_memory(input, arena, report));
	MW_TRY(fill_marks(input, arena, report));
	MW_TRY(fill_threads(input, arena, report));
	fill_totals(input, report);
	MW_TRY(mw_view_stacks(input, arena, report, &group_of));
	err = mw_view_growth(input, report, group_of);
	if (!err)
		err = mw_view_space(input->space, input->track, arena, report, group_of);
	if (err) {
		free(group_of);
		return err;
	}
	for (size_t i = 0; i < report->stack_count; i++)
		report->stacks[i].group = (uint32_t)i;
	qsort(report->stacks, report->stack_count, sizeof(*report->stacks), compare_stacks);
	MW_TRY(hand_out_order(input, report, group_of));
	MW_TRY(fill_modules(input, arena, report));
	return mw_arena_failed(arena) ? mw_error_nomem() : NULL;
}

struct mw_error *mw_summary_create(const struct mw_summary_input *input, struct mw_report **out)
{
	struct mw_report *report = calloc(1, sizeof(*report));
	struct mw_arena *arena = mw_arena_create();
	struct mw_error *err;

	if (!report || !arena) {
		free(report);
		mw_arena_destroy(arena);
		return mw_error_nomem();
	}
	report->arena = arena;
	err = fill(input, arena, report);
	if (err) {
		mw_report_destroy(report);
		return err;
	}
	*out = report;
	return NULL;
}

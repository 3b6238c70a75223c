// SPDX-License-Identifier: MIT
/* missing.c: see missing.h. */
#include "view/missing.h"

#include "alloc/families.h"
#include "symbol/distribution.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- functions without names -------------------------------------------------------------------------------- */

#define NAMELESS_MODULES 8 /* so many are named */

static const struct mw_view_module *find_module(const struct mw_summary_input *input, const char *path)
{
	for (size_t i = 0; i < input->module_count; i++)
		if (input->modules[i].path && strcmp(input->modules[i].path, path) == 0)
			return &input->modules[i];
	return NULL;
}

/* Of the C library the functions between a program and its calls matter to nobody. */
static bool lacks_name(const struct mw_summary_input *input, const struct mw_report_frame *frame)
{
	const struct mw_view_module *module;

	if (frame->function || frame->generated || !frame->module || frame->module[0] != '/')
		return false;
	module = find_module(input, frame->module);
	return module && module->suspect;
}

static bool has(const char *const *list, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], text) == 0)
			return true;
	return false;
}

static void add_stack(const struct mw_summary_input *input, const struct mw_report_stack *stack,
		      struct mw_report_nameless *out)
{
	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		if (out->module_count < NAMELESS_MODULES && lacks_name(input, frame) &&
		    !has(out->modules, out->module_count, frame->module))
			out->modules[out->module_count++] = frame->module;
	}
}

/* What the command is given for a module; NULL: nothing. */
static const char *argument_of(const struct mw_summary_input *input, struct mw_arena *arena, bool id, const char *path)
{
	const struct mw_view_module *module = find_module(input, path);
	char text[200] = "debuginfo(build-id)=";
	size_t length = strlen(text);

	if (!mw_distribution_has(path))
		return NULL;
	if (!id)
		return path;
	if (!module || !module->build_id_size)
		return NULL;
	for (size_t i = 0; i < module->build_id_size && length + 2 < sizeof(text); i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%02x", module->build_id[i]);
	return mw_arena_string(arena, text);
}

static struct mw_error *find_nameless(const struct mw_summary_input *input, struct mw_arena *arena,
				      struct mw_report *report)
{
	const struct mw_distribution *distribution =
		mw_distribution_of(input->target ? input->target->distribution : NULL);
	struct mw_report_nameless *nameless = &report->nameless;

	*nameless = (struct mw_report_nameless){.modules = NULL};
	nameless->modules = mw_arena_array(arena, NAMELESS_MODULES, sizeof(*nameless->modules));
	nameless->arguments = mw_arena_array(arena, NAMELESS_MODULES, sizeof(*nameless->arguments));
	if (!nameless->modules || !nameless->arguments)
		return mw_error_nomem();
	for (size_t i = 0; i < report->suspect_count && input->symbols; i++) {
		const struct mw_report_suspect *suspect = &report->suspects[i];

		if (suspect->verdict >= MW_GROWTH_STEADY || suspect->verdict == MW_GROWTH_TOO_SHORT)
			for (size_t j = 0; j < suspect->stack_count; j++)
				add_stack(input, &report->stacks[suspect->stacks[j]], nameless);
	}
	for (size_t i = 0; i < nameless->module_count; i++) {
		const char *argument =
			argument_of(input, arena, distribution->takes == MW_TAKES_IDS, nameless->modules[i]);

		if (argument)
			nameless->arguments[nameless->argument_count++] = argument;
	}
	if (nameless->argument_count && distribution->begin) {
		bool as_user = input->target && !input->target->by_root && !input->target->own_root;

		nameless->sudo = as_user ? distribution->sudo : "";
		nameless->begin = distribution->begin;
		nameless->end = distribution->end;
	}
	return NULL;
}

/* --- runtimes ----------------------------------------------------------------------------------------------- */

/* They are looked at when the window begins and ends, not in between. */
static bool has_both_ends(const struct mw_report *report)
{
	const struct mw_report_space *space = report->space;

	return space && space->start.known && space->end.known && report->window.from <= 0 &&
	       report->window.to >= report->window.seconds;
}

/* Of the mappings whose names begin so. */
static void find_heap_growth(const struct mw_report *report, const char *region, struct mw_report_runtime *runtime)
{
	uint64_t start = 0, end = 0, blocks = 0;
	bool found = false;

	for (size_t i = 0; region && has_both_ends(report) && i < report->space->named_count; i++) {
		const struct mw_report_named *named = &report->space->named[i];

		if (strncmp(named->name, region, strlen(region)) != 0)
			continue;
		if (named->start.resident == MW_SIZE_UNKNOWN || named->end.resident == MW_SIZE_UNKNOWN ||
		    named->blocks == MW_SIZE_UNKNOWN)
			return;
		found = true;
		start += named->start.resident;
		end += named->end.resident;
		blocks += named->blocks;
	}
	if (!found)
		return;
	runtime->has_growth = true;
	runtime->growth = end > start ? end - start : 0;
	runtime->blocks = blocks < runtime->growth ? blocks : runtime->growth;
}

static struct mw_error *find_runtimes(const struct mw_summary_input *input, struct mw_arena *arena,
				      struct mw_report *report)
{
	report->runtimes = mw_arena_array(arena, MW_RUNTIMES, sizeof(*report->runtimes));
	if (!report->runtimes)
		return mw_error_nomem();
	report->frames_missing = input->target ? mw_arena_string(arena, input->target->frames_missing) : NULL;
	for (unsigned i = 0; i < MW_RUNTIMES && input->target; i++) {
		struct mw_report_runtime *runtime = &report->runtimes[report->runtime_count];

		if (!(input->target->runtimes >> i & 1))
			continue;
		*runtime = (struct mw_report_runtime){
			.name = mw_runtimes[i].name, .heap = mw_runtimes[i].heap, .text = mw_runtimes[i].text};
		find_heap_growth(report, mw_runtimes[i].region, runtime);
		report->runtime_count++;
	}
	return NULL;
}

/* --- growth of the RSS -------------------------------------------------------------------------------------- */

static uint64_t take(uint64_t *from, uint64_t most)
{
	uint64_t taken = *from < most ? *from : most;

	*from -= taken;
	return most - taken;
}

/* What kinds of regions grew by, less the blocks that lie in them. */
static void find_kinds(const struct mw_report *report, uint64_t heap, uint64_t vm, struct mw_report_rss *rss)
{
	const struct mw_report_space *space = report->space;
	double rest = (double)rss->growth;
	unsigned unknown = 0, unknowns = 0;

	if (!has_both_ends(report))
		return;
	for (unsigned kind = 0; kind < MW_REGION_KIND_COUNT; kind++) {
		uint64_t start = space->start.kinds[kind].resident, end = space->end.kinds[kind].resident;

		/* Its own is there before the first sample of the RSS. */
		if (kind == MW_REGION_OWN)
			continue;
		if (start == MW_SIZE_UNKNOWN || end == MW_SIZE_UNKNOWN) {
			unknown = kind;
			unknowns++;
			continue;
		}
		rss->kinds[kind] = end > start ? end - start : 0;
		rest -= (double)end - (double)start;
	}
	if (unknowns > 1)
		return;
	/* Terabytes of reserved addresses are not counted at attach: of one kind it is the rest. */
	if (unknowns)
		rss->kinds[unknown] = rest > 0 ? (uint64_t)rest : 0;
	rss->has_kinds = true;
	heap = take(&rss->kinds[MW_REGION_HEAP], heap);
	heap = take(&rss->kinds[MW_REGION_ARENA], heap);
	(void)take(&rss->kinds[MW_REGION_ANONYMOUS], heap + vm);
}

static void find_growth(struct mw_report *report)
{
	const struct mw_report_sample *first, *last;
	uint64_t heap = report->totals[MW_KIND_HEAP].impacting.bytes, vm = 0, rest;
	struct mw_report_rss *rss = &report->rss;
	double open;

	if (report->memory_count < 2)
		return;
	first = &report->memory[0];
	last = &report->memory[report->memory_count - 1];
	if (first->rss == MW_SIZE_UNKNOWN || last->rss == MW_SIZE_UNKNOWN || last->rss <= first->rss)
		return;
	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];

		if (stack->kind == MW_KIND_VM)
			vm += stack->resident == MW_SIZE_UNKNOWN ? stack->impacting.bytes : stack->resident;
	}
	rss->known = true;
	rss->growth = last->rss - first->rss;
	rss->blocks = heap + vm < rss->growth ? heap + vm : rss->growth;
	rest = rss->growth - rss->blocks;
	/* What an estimate of the blocks leaves open explains nothing, nor does it leave anything unexplained. */
	open = 2 * sqrt(report->totals[MW_KIND_HEAP].spreads.impacting.bytes);
	rss->unexplained = (double)rest > MW_RSS_LEAST + open && (double)rest > (double)rss->growth / 4 + open;
	find_kinds(report, heap, vm, rss);
}

/* --- the limit ---------------------------------------------------------------------------------------------- */

static void find_times(const struct mw_summary_input *input, struct mw_report *report)
{
	const struct mw_memory_limit *limit = &report->target.limit;
	uint64_t room = limit->bytes > limit->used ? limit->bytes - limit->used : 0;

	for (size_t i = 0; i < report->suspect_count; i++) {
		struct mw_report_suspect *suspect = &report->suspects[i];
		bool known = input->target && limit->of != MW_LIMIT_NONE && suspect->bytes_per_hour > 0;

		suspect->seconds_to_limit = known ? (double)room * 3600 / suspect->bytes_per_hour : -1;
	}
}

struct mw_error *mw_view_missing(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report)
{
	MW_TRY(find_nameless(input, arena, report));
	MW_TRY(find_runtimes(input, arena, report));
	find_growth(report);
	find_times(input, report);
	return NULL;
}

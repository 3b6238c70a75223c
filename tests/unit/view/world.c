// SPDX-License-Identifier: MIT
/* world.c: see world.h. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void world_refresh(struct world *world)
{
	struct mw_maps maps = {0};

	assert_null(mw_maps_read(getpid(), &maps));
	assert_null(mw_modules_refresh(world->modules, getpid(), &maps, NULL, NULL));
	mw_maps_deinit(&maps);
}

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	return mw_symbolizer_resolve(context, module, addr, true, frames, count);
}

void world_init(struct world *world)
{
	static char name[] = "test", option[] = "--view";
	static char *command[] = {name, option};

	*world = (struct world){
		.hooks = {[HOOK_MALLOC] = {"malloc", "/lib/libc.so.6", 0x1000, MW_ROLE_MALLOC, MW_KIND_HEAP, NULL},
			  [HOOK_FREE] = {"free", "/lib/libc.so.6", 0x2000, MW_ROLE_FREE, MW_KIND_HEAP, NULL},
			  [HOOK_CALLOC] = {"calloc", "/lib/libc.so.6", 0x3000, MW_ROLE_CALLOC, MW_KIND_HEAP, NULL},
			  [HOOK_MMAP] = {"mmap", "/lib/libc.so.6", 0x4000, MW_ROLE_MMAP, MW_KIND_VM, "too short"}},
		.window = {.started_realtime_ns = 5, .length_ns = 10000000000, .ended = MW_END_DURATION},
	};
	assert_null(mw_modules_create(&world->modules));
	world_refresh(world);
	assert_null(mw_symbolizer_create(world->modules, &world->symbolizer));
	world->symbols = (struct mw_view_symbols){.context = world->symbolizer, .resolve = resolve};
	world->input = (struct mw_summary_input){
		.symbols = &world->symbols,
		.pid = getpid(),
		.comm = "test",
		.exe = "/bin/test",
		.command = command,
		.command_count = 2,
		.window = &world->window,
		.stats = &world->stats,
		.engine = "trap",
		.hooks = world->hooks,
		.hook_count = HOOK_COUNT,
		.track_heap = true,
		.track_vm = true,
	};
	world_forget(world);
}

void world_forget(struct world *world)
{
	mw_track_destroy(world->track);
	assert_null(mw_track_create(&world->track));
	world->sink = mw_track_sink(world->track);
	world->input.track = world->track;
}

void world_deinit(struct world *world)
{
	free(world->view_modules);
	mw_track_destroy(world->track);
	mw_symbolizer_destroy(world->symbolizer);
	mw_modules_destroy(world->modules);
}

uint32_t world_stack(struct world *world, enum mw_kind kind, uint32_t hook, const mw_addr *addresses, uint32_t count,
		     enum mw_stack_cut cut)
{
	struct mw_raw_frame frames[16];
	struct mw_raw_stack stack = {.frames = frames, .count = count, .cut = cut, .hook = hook, .kind = kind};
	uint32_t id = 0;

	assert_true(count <= 16);
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_module *module = mw_modules_find(world->modules, addresses[i]);

		frames[i] = (struct mw_raw_frame){addresses[i], module ? module->number : MW_MODULE_NONE};
	}
	assert_null(world->sink.stack(world->sink.context, &stack, &id));
	return id;
}

uint32_t world_thread(struct world *world, pid_t tid, const char *name)
{
	uint32_t number = 0;

	assert_null(world->sink.thread(world->sink.context, tid, name, true, &number));
	return number;
}

void world_event(struct world *world, enum mw_event_type type, enum mw_kind kind, mw_addr addr, uint64_t size,
		 uint32_t stack, uint32_t thread, double at)
{
	struct mw_event event = {.time_ns = (uint64_t)(at * 1e9 + 0.5),
				 .addr = addr,
				 .size = size,
				 .stack = stack,
				 .thread = thread,
				 .type = type,
				 .kind = kind};

	assert_null(world->sink.event(world->sink.context, &event));
}

struct mw_report *world_report(struct world *world)
{
	struct mw_report *report = NULL;

	free(world->view_modules);
	assert_null(mw_view_modules_of(world->modules, &world->view_modules, &world->input.module_count));
	world->input.modules = world->view_modules;
	assert_null(mw_summary_create(&world->input, &report));
	assert_non_null(report);
	assert_sums(report);
	return report;
}

const struct mw_report_stack *find_stack(const struct mw_report *report, const char *api)
{
	for (size_t i = 0; i < report->stack_count; i++)
		if (report->stacks[i].api && strcmp(report->stacks[i].api, api) == 0)
			return &report->stacks[i];
	fail_msg("no stack of %s", api);
	return NULL;
}

static void add(struct mw_amount *sum, struct mw_amount amount)
{
	sum->count += amount.count;
	sum->bytes += amount.bytes;
}

static void assert_same(struct mw_amount a, struct mw_amount b)
{
	assert_int_equal(a.count, b.count);
	assert_int_equal(a.bytes, b.bytes);
}

static void assert_stack_sums(const struct mw_report *report, enum mw_kind kind)
{
	struct mw_amount size = {0}, impacting = {0}, transient = {0}, aofi = {0};
	uint64_t unknown = 0;

	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		struct mw_amount threads = {0};

		for (size_t j = 0; j < stack->thread_count; j++)
			add(&threads, stack->threads[j].impacting);
		assert_same(threads, stack->impacting);
		assert_int_equal(stack->has_ages, stack->impacting.count > 0);
		if (stack->kind != kind)
			continue;
		add(&size, stack->size);
		add(&impacting, stack->impacting);
		add(&transient, stack->transient);
		add(&aofi, stack->aofi);
		unknown += stack->aofi_unknown;
	}
	assert_same(size, report->totals[kind].size);
	assert_same(impacting, report->totals[kind].impacting);
	assert_same(transient, report->totals[kind].transient);
	assert_same(aofi, report->totals[kind].aofi);
	assert_int_equal(unknown, report->totals[kind].aofi_unknown);
}

void assert_sums(const struct mw_report *report)
{
	struct mw_amount both = report->totals[MW_KIND_HEAP].impacting;
	struct mw_amount modules = {0}, threads = {0};

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		assert_stack_sums(report, (enum mw_kind)kind);
	add(&both, report->totals[MW_KIND_VM].impacting);
	for (size_t i = 0; i < report->module_count; i++)
		add(&modules, report->modules[i].impacting);
	for (size_t i = 0; i < report->thread_count; i++)
		add(&threads, report->threads[i].impacting);
	assert_same(modules, both);
	assert_same(threads, both);
}

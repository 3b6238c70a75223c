/* SPDX-License-Identifier: MIT */
/* world.h: this test's own process as a target, fed with events by hand. */
#ifndef TEST_VIEW_WORLD_H
#define TEST_VIEW_WORLD_H

#include "view/summary.h"

enum { HOOK_MALLOC, HOOK_FREE, HOOK_CALLOC, HOOK_MMAP, HOOK_COUNT };

struct world {
	struct mw_modules *modules;
	struct mw_symbolizer *symbolizer;
	struct mw_view_module *view_modules;
	struct mw_view_symbols symbols;
	struct mw_track *track;
	struct mw_event_sink sink;
	struct mw_hook_info hooks[HOOK_COUNT];
	struct mw_window_info window;
	struct mw_engine_stats stats;
	struct mw_summary_input input;
};

void world_init(struct world *world);
void world_deinit(struct world *world);
/* Forget all events and stacks: the modules, which take longest, stay. */
void world_forget(struct world *world);
/* See what has been mapped since. */
void world_refresh(struct world *world);
/* Intern a stack of `count` addresses of this process. */
uint32_t world_stack(struct world *world, enum mw_kind kind, uint32_t hook, const mw_addr *addresses, uint32_t count,
		     enum mw_stack_cut cut);
uint32_t world_thread(struct world *world, pid_t tid, const char *name);
void world_event(struct world *world, enum mw_event_type type, enum mw_kind kind, mw_addr addr, uint64_t size,
		 uint32_t stack, uint32_t thread, double at);
struct mw_report *world_report(struct world *world);
/* The stack of that entry point that has most impacting bytes. Fails the test where there is none. */
const struct mw_report_stack *find_stack(const struct mw_report *report, const char *api);
/* Sums over stacks, modules and threads equal totals. */
void assert_sums(const struct mw_report *report);

#endif

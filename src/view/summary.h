/* SPDX-License-Identifier: MIT */
/* summary.h: the view of a whole window: who allocated what and never freed it. */
#ifndef MW_VIEW_SUMMARY_H
#define MW_VIEW_SUMMARY_H

#include "store/store.h"
#include "track/track.h"
#include "view/frames.h"
#include "view/space.h"

#include <memwatch/view.h>

/* A look at the heap at the window's end, asked about blocks of the tracker. */
struct mw_summary_leaks {
	/* What it has found of the block that was allocated there; false: it is no block any more, or not known. */
	bool (*reach)(void *context, mw_addr addr, enum mw_reach *out);
	/* How it is held, root first; *holder is malloc'ed, as its texts are; none: it is not, or that is not known.
	 * Errors: MEMORY. */
	struct mw_error *(*holder)(void *context, mw_addr addr, char ***holder, size_t *count);
	void *context;
};

/* Looks at the heap at both ends of the window, compared: asked about blocks and mappings of the tracker, then about all
 * the rest (heap/change.h). */
struct mw_summary_change {
	uint64_t (*block)(void *context, mw_addr addr);
	uint64_t (*mapping)(void *context, mw_addr start, mw_addr end);
	struct mw_error *(*rest)(void *context,
				 struct mw_error *(*visit)(void *visitor, const struct mw_heap_change *part),
				 void *visitor, uint64_t *before, uint64_t *after); /* these are the RSS */
	void *context;
};

struct mw_pool_memory; /* alloc/pools.h */

/* What was known about the process beside its events. Everything is borrowed and copied. */
struct mw_summary_input {
	const struct mw_track *track;
	/* Where that is of an interval, a tracker of the whole window, and its numbers of stacks by the other's; NULL. */
	const struct mw_track *whole;
	const uint32_t *whole_of;
	size_t whole_count;
	const struct mw_view_module *modules; /* by number */
	size_t module_count;
	const struct mw_view_symbols *symbols; /* NULL: no function names */
	const struct mw_code_regions *regions; /* of code in no file; NULL: not known */
	const struct mw_stored_target *target; /* NULL: what is around the process is not known */
	pid_t pid;
	const char *comm, *exe;
	char *const *command;
	size_t command_count;
	const struct mw_window_info *window;
	const struct mw_engine_stats *stats;
	const char *engine, *engine_reason;
	const struct mw_hook_info *hooks;
	size_t hook_count;
	const struct mw_report_sample *samples;
	size_t sample_count;
	const struct mw_stored_mark *marks;
	size_t mark_count;
	const struct mw_summary_leaks *leaks; /* NULL: no look, but perhaps what a recording has of one */
	const struct mw_stored_leaks *stored_leaks;
	size_t stored_leaks_count;
	const struct mw_summary_change *change; /* likewise */
	const struct mw_stored_change *stored_changes;
	size_t stored_changes_count;
	const struct mw_pool_memory
		*pools; /* how blocks are read; NULL: not, but perhaps what a recording has of them */
	const struct mw_stored_pool *stored_pools;
	size_t stored_pools_count;
	bool track_heap, track_vm;
	bool launched, attached; /* launched: nothing is from before the window; neither: not known */
	const char *cut;         /* why the recording goes no further; NULL: it does not end early */
	uint64_t from_ns, to_ns; /* the interval that the tracker's figures are of; to_ns 0: up to the window's end */
	const struct mw_space_input *space; /* NULL: not looked at */
	/* NULL, or what receives for each of the tracker's stacks its index in the report's, or UINT32_MAX for one that
	 * nothing is counted under; malloc'ed, untouched on failure. */
	uint32_t **stack_of;
	/* The same for threads: each of the tracker's has its index. */
	uint32_t **thread_of;
	/* Called now and then with what is done of what is to do (stacks); NULL: none. */
	void (*progress)(void *context, size_t done, size_t total);
	void *progress_context;
};

/* Is a function of what is recorded not hooked? Then its calls are not seen, and the report is incomplete. */
static inline bool mw_view_is_missed(const struct mw_hook_info *hook, bool track_heap, bool track_vm)
{
	return hook->refused && (hook->kind == MW_KIND_HEAP ? track_heap : track_vm);
}

/* Call `each` for each live block (as mw_track_each_block() does) whose stack is in the report, with its index there.
 * `group_of` has that of each of the tracker's stacks, or UINT32_MAX. */
void mw_view_each_block(const struct mw_track *track, const uint32_t *group_of,
			void (*each)(void *context, uint32_t group, const struct mw_track_block *block, bool first),
			void *context);

struct mw_error *mw_summary_create(const struct mw_summary_input *input, struct mw_report **out) MW_MUST_CHECK;

#endif

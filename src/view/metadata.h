/* SPDX-License-Identifier: MIT */
/*
 * metadata.h: all that a recording says but the events: who the process is, its modules, hooks, symbols, samples,
 * marks.
 */
#ifndef MW_VIEW_METADATA_H
#define MW_VIEW_METADATA_H

#include "base/map.h"
#include "store/reader.h"
#include "view/arena.h"
#include "view/frames.h"
#include "view/kept_heap.h"
#include "view/space.h"

#include <memwatch/engine.h>
#include <memwatch/view.h>

/* Of modules and of hooks: more are not taken. What a process loads again and again has a number each time. */
#define MW_METADATA_NUMBERS (1u << 20)

/* An array whose items live in the metadata's memory. */
struct mw_metadata_mapping_list {
	struct mw_stored_mapping *items;
	size_t count, capacity;
};

/* Of one process. All strings are the arena's. */
struct mw_metadata {
	struct mw_arena *arena;
	struct mw_stored_target target;
	struct mw_view_module *modules; /* by number */
	size_t module_count, module_capacity;
	struct mw_hook_info *hooks; /* by number */
	size_t hook_count, hook_capacity;
	struct mw_report_sample *samples;
	size_t sample_count, sample_capacity;
	struct mw_stored_mark *marks;
	size_t mark_count, mark_capacity;
	struct mw_stored_leaks *leaks;
	size_t leaks_count, leaks_capacity;
	struct mw_stored_change *changes;
	size_t changes_count, changes_capacity;
	struct mw_stored_pool *pools;
	size_t pools_count, pools_capacity;
	struct mw_kept_heap heap; /* a look at a heap, without a window */
	bool has_target;
	struct mw_metadata_mapping_list mappings[2]; /* by enum mw_stored_moment */
	struct mw_space_ranges before;               /* what was mapped when the window began */
	struct mw_map symbols;                       /* by address: lists of frames */
	size_t symbol_count, symbol_frames;
	bool has_end;
	struct mw_window_info window;
	struct mw_engine_stats stats;
	uint64_t last_ns; /* of all that was received: the end of a recording that was cut off */
};

/* The window's length: as the end says, or up to the last thing that was received. */
static inline uint64_t mw_metadata_length(const struct mw_metadata *metadata)
{
	return metadata->has_end ? metadata->window.length_ns : metadata->last_ns;
}

/* What mw_summary_input.space wants of them, for the window's end; false: nothing was kept. Borrows the moments, and
 * from the metadata. */
bool mw_metadata_space(const struct mw_metadata *metadata, struct mw_space_moment moments[2],
		       struct mw_space_input *out);
/* The frames that were stored for a return address; false where none were. */
bool mw_metadata_resolve(const struct mw_metadata *metadata, uint32_t module, mw_addr addr,
			 const struct mw_symbol_frame **frames, size_t *count);

/* --- an engine's figures by name, as a recording keeps them ------------------------------------------------ */

#define MW_FIGURES_MAX 32

/* All of them, into room for MW_FIGURES_MAX; names are static. Returns how many. */
size_t mw_figures_list(const struct mw_engine_stats *stats, struct mw_stored_figure *out);

#endif

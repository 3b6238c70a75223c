/* SPDX-License-Identifier: MIT */
/*
 * frames.h: what views know of code: modules, symbols, and regions of code in no file; by them the ids of stacks, and
 * the frames of a report.
 */
#ifndef MW_VIEW_FRAMES_H
#define MW_VIEW_FRAMES_H

#include "symbol/symbolizer.h"
#include "view/arena.h"
#include "view/space.h"

#include <memwatch/event.h>

struct mw_summary_input;

/* A file with code that a process has or had mapped. Zeroed: nothing is known of it. */
struct mw_view_module {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_size; /* 0: none */
	mw_addr start, end;   /* lowest and highest address of its mappings */
	uint64_t base;        /* where an address lies in the file: address - base */
	bool suspect;         /* what it allocates is its own: neither an allocator nor the C/C++ runtime */
	bool has_file;
};

/* The modules of a process, by number: malloc'ed; it borrows from `modules`. Errors: MEMORY. */
struct mw_error *mw_view_modules_of(const struct mw_modules *modules, struct mw_view_module **out,
				    size_t *count) MW_MUST_CHECK;

/* Who tells the frames at a return address. */
struct mw_view_symbols {
	void *context;
	/* As mw_symbolizer_resolve(); what it gives is good until the view is made. */
	struct mw_error *(*resolve)(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				    size_t *count);
};

/* --- code in no file -------------------------------------------------------------------------------------- */

/*
 * A JIT makes code all the time, and a stack through each piece of it is a stack of its own by its address. So where
 * nobody names the code, all of a region is one frame. A region is what a JIT has reserved: executable anonymous
 * mappings that touch each other, also where inaccessible memory or small pieces of data lie between them. The lists of
 * mappings at the window's start and end tell them, which recordings keep: what is seen live is seen again.
 */
struct mw_code_region {
	mw_addr start, end;
};

/* In order of address, without overlaps. Zero-initialise; mw_code_regions_deinit frees. */
struct mw_code_regions {
	struct mw_code_region *items;
	size_t count, capacity;
};

/* Those of either moment (each may be NULL). Errors: MEMORY. */
struct mw_error *mw_code_regions_make(const struct mw_space_moment *start, const struct mw_space_moment *end,
				      struct mw_code_regions *out) MW_MUST_CHECK;
void mw_code_regions_deinit(struct mw_code_regions *regions);
/* The region that the call before a return address lies in, or NULL. `regions` may be NULL. */
const struct mw_code_region *mw_code_regions_find(const struct mw_code_regions *regions, mw_addr addr);

/* "(generated code at 0x7f0012340000, 1.5 MiB)" */
#define MW_CODE_REGION_TEXT 80
void mw_code_region_describe(const struct mw_code_region *region, char text[MW_CODE_REGION_TEXT]);

/* Code whose callers and names are known by region alone: what a view asks about it. Zeroed: nothing is known. */
struct mw_view_code {
	const struct mw_code_regions *regions; /* may be NULL */
	const struct mw_view_symbols *symbols; /* may be NULL */
};

/* --- frames ----------------------------------------------------------------------------------------------- */

/* Knows the stacks of a tracker. */
struct mw_framer;

/* Strings and arrays of frames are made in `arena`; `input` and what it points to must outlive the framer. */
struct mw_error *mw_framer_create(const struct mw_summary_input *input, struct mw_arena *arena,
				  struct mw_framer **out) MW_MUST_CHECK;
void mw_framer_destroy(struct mw_framer *framer);
/* The id of the tracker's stack of that number. Errors: MEMORY. */
struct mw_error *mw_framer_id(struct mw_framer *framer, uint32_t number, const struct mw_track_stack *stack,
			      uint64_t *id) MW_MUST_CHECK;
/* Set the stack's frames, their number and whom it is charged to (->suspect), by these its cut and end, and its id if it
 * has none. Its kind, ->api and ->cut are set. Errors: MEMORY. */
struct mw_error *mw_framer_frames(struct mw_framer *framer, const struct mw_raw_frame *raw, size_t count,
				  struct mw_report_stack *stack) MW_MUST_CHECK;
/* Set the report's stack->kind, ->api, ->frames, ->frame_count and ->suspect (whom it is charged to); by these and its
 * ->cut, ->end. Errors: MEMORY. */
struct mw_error *mw_framer_fill(struct mw_framer *framer, uint32_t number, const struct mw_track_stack *tracked,
				struct mw_report_stack *stack) MW_MUST_CHECK;

#endif

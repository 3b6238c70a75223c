/* SPDX-License-Identifier: MIT */
/*
 * space.h: how much of the process is what: from two lists of mappings to a summary of its address space, what came
 * without a hook having seen it, and how much of what is mapped is resident.
 */
#ifndef MW_VIEW_SPACE_H
#define MW_VIEW_SPACE_H

#include "store/store.h"
#include "track/track.h"

#include <memwatch/view.h>

struct mw_arena;

/* What an address space was at a moment. Borrowed. */
struct mw_space_moment {
	/* By address. Where a mapping is reported in parts that end where others' ranges do (live vm blocks, what was
	 * mapped earlier), what is resident is known of those as well. */
	const struct mw_stored_mapping *mappings;
	size_t count;
	uint64_t arena_used, arena_free, arena_size; /* of glibc; MW_SIZE_UNKNOWN */
};

struct mw_space_range {
	mw_addr start, end;
};

struct mw_space_input {
	const struct mw_space_moment *start, *end; /* of the window; NULL: not looked at */
	/* What was mapped when the window began, in any order: beside the mappings of `start`. */
	const struct mw_space_range *before;
	size_t before_count;
	bool at_end;   /* the tracker stands at the window's end: its live blocks are those of `end` */
	bool track_vm; /* mappings were recorded */
};

/*
 * Fill in report->space, and what is resident of the vm blocks of each stack: `group_of` is the report's stack of each
 * of the tracker's. NULL for `input`: unknown. Errors: MEMORY.
 */
struct mw_error *mw_view_space(const struct mw_space_input *input, const struct mw_track *track, struct mw_arena *arena,
			       struct mw_report *report, const uint32_t *group_of) MW_MUST_CHECK;

/* Bytes of a range that are resident by a list of mappings; unknown where only a part of a mapping is in it. */
uint64_t mw_space_resident(const struct mw_space_moment *moment, mw_addr addr, uint64_t bytes);

/* Ranges that are added in any order. Zero-initialise; mw_space_ranges_deinit frees. */
struct mw_space_ranges {
	struct mw_space_range *items;
	size_t count, capacity;
};
struct mw_error *mw_space_ranges_add(struct mw_space_ranges *ranges, mw_addr start, mw_addr end) MW_MUST_CHECK;
void mw_space_ranges_deinit(struct mw_space_ranges *ranges);
/* Put them in order and join those that touch. */
void mw_space_ranges_join(struct mw_space_ranges *ranges);
/* Add the tracker's live vm blocks, rounded to pages. */
struct mw_error *mw_space_ranges_add_blocks(struct mw_space_ranges *ranges, const struct mw_track *track) MW_MUST_CHECK;
/* Add all that is accounted for at the window's end: what was there at its start, and live vm blocks; join it all. */
struct mw_error *mw_space_accounted(const struct mw_space_input *input, const struct mw_track *track,
				    struct mw_space_ranges *out) MW_MUST_CHECK;
/* Call `each` for the parts of [start, end) that are in none of the joined ranges, until it fails. */
struct mw_error *mw_space_ranges_without(const struct mw_space_ranges *ranges, mw_addr start, mw_addr end,
					 struct mw_error *(*each)(void *context, mw_addr start, mw_addr end),
					 void *context) MW_MUST_CHECK;

#endif

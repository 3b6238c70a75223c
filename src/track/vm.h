/* SPDX-License-Identifier: MIT */
/* vm.h: blocks of mapped memory, which may go in parts; for the files of this module only. */
#ifndef MW_TRACK_VM_H
#define MW_TRACK_VM_H

#include "track/state.h"

/* The owner of ranges that were mapped before the window. */
#define MW_VM_BEFORE (UINT32_MAX - 1)

/* One MAP. Its bytes are those of its ranges: in the tree, or held by a pending call. */
struct mw_vm_block {
	uint64_t time_ns;
	uint64_t size; /* that was mapped */
	uint32_t stack;
	uint32_t thread; /* with MW_THREAD_OLDER where it is so */
	uint32_t pieces; /* ranges that it still has */
	uint8_t kind;
	bool visited; /* by the walk under way (walk.c) */
};

/* range_tree's callback: cutting and joining change how many ranges a block has. `context` is the tracker. */
void mw_vm_pieces(void *context, uint32_t owner, int change);
/* [start, end) was mapped before the window; what is known of it already stays as it is. */
struct mw_error *mw_vm_before(struct mw_track *track, mw_addr start, mw_addr end) MW_MUST_CHECK;
/* The mapping events; `family` tells unmap from remap; thread, stack and kind have been checked. Errors: memory. */
struct mw_error *mw_vm_map(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;
struct mw_error *mw_vm_begin(struct mw_track *track, const struct mw_event *event,
			     enum mw_pending_family family) MW_MUST_CHECK;
struct mw_error *mw_vm_end(struct mw_track *track, const struct mw_event *event,
			   enum mw_pending_family family) MW_MUST_CHECK;
struct mw_error *mw_vm_fail(struct mw_track *track, const struct mw_event *event,
			    enum mw_pending_family family) MW_MUST_CHECK;

#endif

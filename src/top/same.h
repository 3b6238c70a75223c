/* SPDX-License-Identifier: MIT */
/*
 * same.h: stacks that differ only in addresses of code in no file, which top shows as one.
 *
 * A JIT makes any number of them. Where the program names its code (proc/perf_map.h) each is shown by itself, with its
 * name.
 */
#ifndef MW_TOP_SAME_H
#define MW_TOP_SAME_H

#include "base/map.h"
#include "proc/perf_map.h"
#include "top/feed.h"

/* Zero-initialise; mw_top_same_deinit frees. */
struct mw_top_same {
	struct mw_map first; /* by hash: the first of its kind, number + 1 */
	uint64_t looked_ns;
	bool named; /* the program names its code */
};

void mw_top_same_deinit(struct mw_top_same *same);
/* The first of `stacks` that is the same as one that will have number `count`: its number, or `count`. */
uint32_t mw_top_same_find(struct mw_top_same *same, const struct mw_perf_place *place,
			  const struct mw_top_stack *const *stacks, size_t count, const struct mw_top_stack *stack);

#endif

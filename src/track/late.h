/* SPDX-License-Identifier: MIT */
/*
 * late.h: blocks that came to be by an event which was reported after later ones.
 *
 * Intervals are cut by the order of events, so such a block lies where the latest event before it does, not where its
 * own time would have it. There are few: engines put events in order of time, and do not wait for ever.
 */
#ifndef MW_TRACK_LATE_H
#define MW_TRACK_LATE_H

#include "base/index.h"

#include <memwatch/error.h>

#include <stddef.h>
#include <stdint.h>

#define MW_LATE_MAX (1u << 20) /* more are not kept: their own times count then */

struct mw_late_item {
	uint64_t time_ns, since_ns;
	uint32_t thread;
};

/* Zero-initialise; mw_late_deinit frees. */
struct mw_late {
	struct mw_late_item *items;
	size_t capacity;
	struct mw_index index; /* of the items */
};

void mw_late_deinit(struct mw_late *late);
/* A thread's event of `time_ns` comes after one of `since_ns`, which is later. Errors: MEMORY. */
struct mw_error *mw_late_add(struct mw_late *late, uint64_t time_ns, uint32_t thread, uint64_t since_ns) MW_MUST_CHECK;
/* The latest time up to that event: `time_ns` where it was not late. */
uint64_t mw_late_since(const struct mw_late *late, uint64_t time_ns, uint32_t thread);
/* Bytes behind the structure. */
uint64_t mw_late_memory(const struct mw_late *late);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * canon.h: a sink that tells events in a form that does not depend on how they were caught, so that two engines'
 * accounts of the same run are the same text: no times, no thread ids, blocks by the order in which they came, stacks
 * as hook, kind, cut and (module, offset) of each frame, numbered by their first use. What an event may carry or leave
 * out (event.h: the stack and size of a free that is known) is left out.
 *
 *     stack 4 malloc heap complete prog+0x1234 libc.so.6+0x5678
 *     alloc heap #17 96 s4 t0
 *     free heap #17 t0
 */
#ifndef MW_TEST_CANON_H
#define MW_TEST_CANON_H

#include "base/map.h"
#include "base/vector.h"

#include <memwatch/engine.h>
#include <stdio.h>

struct canon_stack;
struct canon_thread;

struct canon_region {
	mw_addr start, end;
	uint64_t number;
};

#define CANON_REGIONS 4096

struct canon {
	const struct mw_engine *engine;
	pid_t pid;
	FILE *out; /* NULL: events are counted, not told */
	uint64_t events, stacks_seen;
	struct mw_map raw;   /* hash of a raw stack → its number + 1 */
	struct mw_map texts; /* hash of a stack's text → its struct */
	struct mw_map blocks;
	struct mw_map tids;          /* tid → thread number + 1 */
	struct canon_stack **stacks; /* by the raw stack's number */
	size_t stack_count, stack_capacity;
	struct canon_thread *threads;
	size_t thread_count, thread_capacity;
	uint64_t next_block, next_region, next_stack;
	struct canon_region regions[CANON_REGIONS];
	size_t region_count;
};

/* `out` stays the caller's. The canon must outlive the sink's use. */
void canon_init(struct canon *canon, const struct mw_engine *engine, pid_t pid, FILE *out, struct mw_event_sink *sink);
void canon_deinit(struct canon *canon);

#endif

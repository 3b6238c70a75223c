/* SPDX-License-Identifier: MIT */
/* drain_types.h: what the drain asks of the engine, and what it counts (drain.h). */
#ifndef MW_ENGINE_JUMP_DRAIN_TYPES_H
#define MW_ENGINE_JUMP_DRAIN_TYPES_H

#include "engine/jump/clock.h"
#include "engine/jump/shared.h"

#include <memwatch/event.h>

/* What the drain asks of the engine. */
struct jump_drain_help {
	void *context;
	/* Which thread (as memwatch sees it) has number `tid` in the target's innermost namespace, and its name. What
	 * can't be found any more keeps its number, and is given the process's name; false then. */
	bool (*thread)(void *context, uint32_t tid, pid_t *out, char name[17]);
	/* The module that a call returns to at `pc` (so the one at pc - 1), or MW_MODULE_NONE. */
	uint32_t (*module)(void *context, mw_addr pc);
	/* Does a function begin at `pc` that nothing has called, though a stack leads there (mw_unwinder_ops)? NULL:
	 * that can't be said. */
	bool (*begins)(void *context, mw_addr pc, mw_addr inner);
	/* Walk from a SLOW record's registers; `bytes` stand at slow->start. At most `capacity` frames. */
	void (*walk)(void *context, const struct mw_ring_slow *slow, const uint8_t *bytes, size_t size,
		     struct mw_raw_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut);
	/* Look at a stack that the recorder has walked: it may have to be cut. NULL: none has. */
	void (*check)(void *context, struct mw_raw_frame *frames, uint32_t *count, enum mw_stack_cut *cut);
	/* Does a thread of that number still live? */
	bool (*thread_lives)(void *context, uint32_t tid);
	/* Give `count` rings from number `first` on their memory, before they are offered; false: they can't have it
	 * now. Rings come in order, each once. NULL: all have it. */
	bool (*fill)(void *context, uint32_t first, uint32_t count);
};

/* Counts that the target keeps are reported up to this, which is what a double, and so JSON, can hold exactly. */
#define JUMP_MOST_COUNTED ((UINT64_C(1) << 53) - 1)

struct jump_drain_stats {
	uint64_t events;
	uint64_t lost_events, lost_stacks; /* by the recorder's own count */
	uint64_t bad_records;              /* that made no sense: counted as lost */
	uint64_t walks, slow_walks;        /* stacks captured; by the slow road */
	uint64_t waited;                   /* ticks that threads waited for room */
	uint64_t broken_stacks;
	uint64_t overtaken;           /* times that a thread was not waited for: order was not kept */
	uint64_t compared, differing; /* stacks captured in both ways; those that were not the same */
};

/* How long a thread that is about to record may hold back what is later while a ring is nearly full (ten times that
 * while none is). The recorder's wait_limit must be well above it. */
#define JUMP_HOLD_NS UINT64_C(100000000)

#endif

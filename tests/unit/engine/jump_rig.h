/* SPDX-License-Identifier: MIT */
/* jump_rig.h: made-up rings, a drain that reads them, and a sink that keeps what it is told. */
#ifndef MW_TEST_JUMP_RIG_H
#define MW_TEST_JUMP_RIG_H

#include "engine/jump/drain.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define RIG_SLOTS  64u
#define RIG_RINGS  16u
#define RIG_UNITS  64u
#define RIG_DEPTH  16u
#define RIG_SCRIPT 4u      /* frames of an interpreter */
#define RIG_KNOWN  0x4000u /* a block that the sink says it knows */
#define RIG_TID    100u    /* of ring 0's thread; the next one's is one more */
#define RIG_PID    5000    /* what memwatch calls thread 0 */

struct rig_stack {
	struct mw_raw_frame frames[RIG_DEPTH];
	uint32_t count, hook;
	enum mw_stack_cut cut;
	enum mw_kind kind;
};

struct rig_thread {
	pid_t pid;
	bool fresh;
	char name[17];
};

struct rig {
	struct jump_shared shared;
	struct jump_clock clock; /* a tick is a nanosecond; the window's start was a second ago */
	struct jump_drain *drain;
	/* Told. */
	struct mw_event *events;
	size_t event_count, event_capacity;
	struct rig_stack stacks[64];
	uint32_t stack_count;
	struct rig_thread threads[64]; /* calls; the number given is that of the pid's last fresh one */
	uint32_t thread_count;
	/* What help says. */
	bool dead[256]; /* by tid */
	bool ended;     /* the process; nobody is dead then */
	bool unmapped;  /* all modules */
	const char *name;
	struct mw_raw_frame walked[RIG_DEPTH + 4];
	uint32_t walked_count;
	enum mw_stack_cut walked_cut;
	struct mw_ring_slow slow; /* of the last walk */
	uint8_t slow_bytes[256];
	size_t slow_size;
	uint32_t filled_from, filled_count, fills;
	struct mw_script_ref refs[RIG_SCRIPT]; /* of the last stack with such */
	struct mw_interpreted interpreted;     /* the last one */
	uint32_t ref_count;
	bool refuse_fill;
	bool refuse_event; /* the sink fails */
};

int rig_setup(void **state);
int rig_teardown(void **state);

/* Another drain on the same rings, for another sink. */
void rig_use(struct rig *rig, const struct mw_event_sink *sink);
struct mw_ring_slot *rig_slot(const struct rig *rig, uint32_t ring);
/* A thread takes slot `ring` and the next ring of the queue, and says who it is. */
void rig_thread(struct rig *rig, uint32_t slot);
/* Reserve units; returns the first. */
uint64_t rig_reserve(struct rig *rig, uint32_t slot, uint64_t units);
/* Write what was reserved, and mark it. `time` is ns since the window's start. */
void rig_write(struct rig *rig, uint32_t slot, uint64_t unit, uint64_t time, enum mw_ring_type type, uint32_t flags,
	       uint32_t stack, uint64_t addr, uint64_t size);
/* The bytes behind a record's first unit. */
void rig_payload(struct rig *rig, uint32_t slot, uint64_t unit, const void *bytes, size_t size);
/* Both for one unit. Hook 1. */
void rig_put(struct rig *rig, uint32_t slot, uint64_t time, enum mw_ring_type type, uint32_t flags, uint32_t stack,
	     uint64_t addr, uint64_t size);
void rig_put_stack(struct rig *rig, uint32_t slot, uint64_t time, uint32_t flags, uint32_t id, const uint64_t *frames,
		   uint32_t count, uint32_t cut);
void rig_put_script(struct rig *rig, uint32_t slot, uint64_t time, uint32_t id, const struct mw_script_ref *refs,
		    uint32_t count);
void rig_put_slow(struct rig *rig, uint32_t slot, uint64_t time, uint32_t flags, uint32_t id, const void *bytes,
		  size_t size);
/* Rounds until there is nothing to report; how many events were reported. */
size_t rig_drain(struct rig *rig);
size_t rig_round(struct rig *rig);
void rig_expect(const struct rig *rig, size_t at, struct mw_event event);

#endif

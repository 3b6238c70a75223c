/* SPDX-License-Identifier: MIT */
/*
 * brute.h: what a tracker should say of an interval, by the definitions of the terms.
 *
 * The events are gone through once, without any interval, to find out when each byte of each block came and went.
 * Every figure is then a sum over those. Mapped memory is a few bytes, each of which is looked at alone.
 */
#ifndef MW_TEST_TRACK_BRUTE_H
#define MW_TEST_TRACK_BRUTE_H

#include "rig.h"

#define BRUTE_EVENTS  96U
#define BRUTE_CELLS   10U /* heap addresses */
#define BRUTE_SPACE   24U /* bytes that can be mapped */
#define BRUTE_THREADS 3U
#define BRUTE_STACKS  (4U * MW_KIND_COUNT) /* four a kind; the last of them stands for MW_STACK_NONE */
#define BRUTE_PARTS   (BRUTE_EVENTS * (BRUTE_SPACE + 1))
#define BRUTE_NEVER   UINT32_MAX
#define BRUTE_HEAP_AT UINT64_C(0x5000)
#define BRUTE_VM_AT   UINT64_C(0x9000)

/* An ALLOC, MAP or END. Moments are numbers of events. */
struct brute_block {
	enum mw_kind kind;
	uint32_t stack, thread, born, gone, parts_left;
	uint64_t bytes, born_ns, died_ns;
};

/* The whole of a heap block, or a byte of a mapped one. */
struct brute_part {
	uint32_t block, gone;
	uint64_t addr, bytes, died_ns;
};

/* Something from before the window went. */
struct brute_loss {
	uint32_t event, stack;
	enum mw_kind kind;
	uint64_t addr, bytes, died_ns;
	bool is_first; /* of its event */
};

struct brute_call {
	enum mw_event_type begin;
	uint32_t stack, count;
	uint64_t time_ns, unknown_addr, unknown_bytes;
	bool is_unknown;
	uint32_t places[BRUTE_SPACE];
	int owners[BRUTE_SPACE];
};

struct brute {
	struct brute_block blocks[BRUTE_EVENTS];
	struct brute_part parts[BRUTE_PARTS];
	struct brute_loss losses[BRUTE_PARTS];
	uint32_t block_count, part_count, loss_count;
	bool missed[BRUTE_EVENTS];
	/* While events are gone through: whose a place is (a part, BRUTE_FREE or BRUTE_BEFORE), and open calls. */
	int cells[BRUTE_CELLS], space[BRUTE_SPACE];
	struct brute_call calls[BRUTE_THREADS][BRUTE_EVENTS];
	uint32_t depth[BRUTE_THREADS];
};

#define BRUTE_FREE   (-1)
#define BRUTE_BEFORE (-2)

void brute_init(struct brute *brute);
/* The bytes [first, end) of what can be mapped were there before the window. */
void brute_before(struct brute *brute, uint32_t first, uint32_t end);
/* Event number `number`, all earlier ones having been taken. */
void brute_event(struct brute *brute, const struct mw_event *event, uint32_t number);

/* Whose figures: -1 is any. Of a thread internal mappings do not count, nor what it didn't allocate in the interval. */
struct brute_who {
	int kind, stack, thread;
};

struct brute_figures {
	struct mw_track_totals totals; /* without the peak's time */
	struct mw_track_lifetime lifetime;
	/* Impacting after so many events: */
	struct mw_amount impacting[BRUTE_EVENTS + 1];
	uint32_t peak_event; /* BRUTE_NEVER: no bytes */
};

/* Of the events [begin, end). */
void brute_figures(const struct brute *brute, uint32_t begin, uint32_t end, struct brute_who who,
		   struct brute_figures *out);
uint64_t brute_missed(const struct brute *brute, uint32_t begin, uint32_t end);

#endif

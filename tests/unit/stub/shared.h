/* SPDX-License-Identifier: MIT */
/* shared.h: memory such as memwatch shares with a recorder, and reading what it wrote there. */
#ifndef TEST_STUB_SHARED_H
#define TEST_STUB_SHARED_H

#include "stub/stub.h"

#include <stdbool.h>
#include <stddef.h>

struct shared_plan {
	uint32_t slots, rings, ring_units, depth, stacks, known, cache, dictionary, codes, rows;
};

struct shared {
	struct mw_ring_control *control;
	size_t size;
	struct shared_plan plan;
	uint64_t index, rows; /* offsets: room for one index and its rows */
	uint64_t filter;      /* … of MW_RING_FILTER_SIZE bytes */
};

#define SHARED_DEFAULT                                                                                                 \
	{                                                                                                              \
		.slots = 16, .rings = 4, .ring_units = 64, .depth = 8, .stacks = 64, .known = 1u << 12, .cache = 64,   \
		.dictionary = 64, .codes = 16, .rows = 64                                                              \
	}

void shared_create(struct shared *shared, const struct shared_plan *plan);
void shared_destroy(struct shared *shared);
struct mw_ring_slot *shared_slot(const struct shared *shared, uint32_t number);
struct mw_ring_slot *shared_slot_of(const struct shared *shared, uint64_t owner);
/* More code to be found by the recorder, which is to be added in order. */
void shared_code(struct shared *shared, uint64_t start, uint64_t end, uint64_t row);

/* A record read from a ring, payload included. */
struct shared_record {
	uint64_t time, addr, size;
	uint32_t stack, hook, type, flags;
	uint32_t words;
	uint64_t payload[16384];
};

/* The slot's next record, read as memwatch does: its units are given back. False: there is none (yet). */
bool shared_next(struct shared *shared, struct mw_ring_slot *slot, struct shared_record *out);

#endif

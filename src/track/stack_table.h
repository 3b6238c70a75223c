/* SPDX-License-Identifier: MIT */
/*
 * stack_table.h: the distinct stacks of a process and what is counted for each.
 *
 * Frames form a trie from the thread's start inwards, so stacks share what they have in common there. A
 * stack is a leaf of it (not only a leaf: an inner node too) together with hook, kind and cut.
 */
#ifndef MW_TRACK_STACK_TABLE_H
#define MW_TRACK_STACK_TABLE_H

#include "base/index.h"
#include "base/map.h"
#include "track/histogram.h"
#include "track/pool.h"
#include "track/tally.h"

#include <memwatch/event.h>

#define MW_CODE_ADDRESSES 65536u
#define MW_CODE_PIECE     (UINT64_C(1) << 20)

/*
 * Addresses of code in no file, of which there may be any number: a JIT makes code all the time. They are kept as they
 * are up to MW_CODE_ADDRESSES, so that names that the program gives its code, now or later, find them. From there on a
 * new one stands for all that follow within MW_CODE_PIECE bytes, and is marked (MW_FRAME_NEAR).
 */
struct mw_code_table {
	struct mw_map exact;  /* addresses that are kept */
	struct mw_map pieces; /* by number of the piece: what stands for the others in it */
	struct mw_raw_frame *frames;
	size_t capacity;
};

struct mw_stack_node {
	mw_addr addr;
	uint32_t module;
	uint32_t parent; /* the caller, or MW_POOL_NONE */
};

struct mw_stack_record {
	struct mw_tally tally;
	struct mw_histogram lifetimes;
	uint32_t node; /* the innermost frame, or MW_POOL_NONE: no frames */
	uint32_t frame_count;
	uint32_t hook;
	uint32_t hash;
	uint32_t replaced; /* its number in mw_track.replaced + 1; 0: none */
};

/* Zero-initialise, and the pools; mw_stack_table_deinit frees. */
struct mw_stack_table {
	struct mw_pool nodes, records; /* none is given back: their numbers are those of the indexes */
	struct mw_index node_index, record_index;
	uint8_t *kinds; /* of the records, which most events ask for: apart from what changes */
	size_t kind_capacity;
	struct mw_code_table code;
};

void mw_stack_table_deinit(struct mw_stack_table *table);
/* The number of a stack, which is added where it is new. */
struct mw_error *mw_stack_table_intern(struct mw_stack_table *table, const struct mw_raw_stack *stack,
				       uint32_t *id) MW_MUST_CHECK;

static inline struct mw_stack_record *mw_stack_table_at(const struct mw_stack_table *table, uint32_t id)
{
	return MW_POOL_AT(&table->records, struct mw_stack_record, id);
}

static inline enum mw_kind mw_stack_table_kind(const struct mw_stack_table *table, uint32_t id)
{
	return (enum mw_kind)table->kinds[id];
}

#endif

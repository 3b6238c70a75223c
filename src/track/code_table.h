/* SPDX-License-Identifier: MIT */
/*
 * code_table.h: addresses of code in no file, of which there may be any number: a JIT makes code all the time.
 *
 * They are kept as they are up to MW_CODE_ADDRESSES, so that names that the program gives its code, now or later, find
 * them. From there on a new one stands for all that follow within MW_CODE_PIECE bytes, and is marked (MW_FRAME_NEAR).
 */
#ifndef MW_TRACK_CODE_TABLE_H
#define MW_TRACK_CODE_TABLE_H

#include "base/map.h"

#include <memwatch/event.h>

#define MW_CODE_ADDRESSES 65536u
#define MW_CODE_PIECE     (UINT64_C(1) << 20)

/* Zero-initialise; mw_code_table_deinit frees. */
struct mw_code_table {
	struct mw_map exact;  /* addresses that are kept */
	struct mw_map pieces; /* by number of the piece: what stands for the others in it */
	struct mw_raw_frame *frames;
	size_t capacity;
};

void mw_code_table_deinit(struct mw_code_table *table);
/* The stack as it is to be interned: with other frames (good until the next call) where it has such. */
struct mw_error *mw_code_table_take(struct mw_code_table *table, struct mw_raw_stack *stack) MW_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* columns.h: the content of a chunk of events: a column for each field, byte by byte in planes (FORMAT.md). */
#ifndef MW_STORE_COLUMNS_H
#define MW_STORE_COLUMNS_H

#include "store/format.h"

/* Where each plane begins and the last ends, so that each is compressed for itself. */
#define MW_STORE_PLANES_MAX (1 + 8 + 4 + 4 + 8 + 8)
struct mw_store_planes {
	uint32_t ends[MW_STORE_PLANES_MAX];
	uint32_t count;
};

/* At most MW_STORE_EVENTS_MAX events into MW_STORE_CHUNK_MAX bytes; returns how many. */
size_t mw_store_columns_encode(const struct mw_event *events, size_t count, uint8_t *out,
			       struct mw_store_planes *planes);

/* The highest numbers that events name, plus one; 0: none. */
struct mw_store_named {
	uint64_t threads, stacks;
};

/* NULL, or what is wrong; `out` has room for `count` events, at most MW_STORE_EVENTS_MAX. */
const char *mw_store_columns_decode(const uint8_t *in, size_t size, size_t count, struct mw_event *out,
				    struct mw_store_named *named);

#endif

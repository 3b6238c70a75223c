/* SPDX-License-Identifier: MIT */
/*
 * encode.h: metadata into the bytes of their records (FORMAT.md), without the length before them.
 *
 * All have one signature: `limit` is how many items of the fact's list are put at most.
 */
#ifndef MW_STORE_ENCODE_H
#define MW_STORE_ENCODE_H

#include "store/bytes.h"
#include "store/format.h"

typedef void (*mw_store_encoder)(struct mw_store_put *put, const void *fact, size_t limit);

/* More items than that are not put into one list. */
#define MW_STORE_LIST_MAX        65536u
#define MW_STORE_SYMBOL_LIST_MAX 16384u

struct mw_store_range {
	mw_addr start, end;
};

struct mw_store_moment_mapping {
	enum mw_stored_moment moment;
	const struct mw_stored_mapping *mapping;
};

/* A stack or thread that has a number; `fact` NULL: the number is not used. */
struct mw_store_numbered {
	uint32_t number;
	const void *fact;
};

void mw_store_encode_target(struct mw_store_put *put, const void *fact, size_t limit);
void mw_store_encode_hook(struct mw_store_put *put, const void *fact, size_t limit);
void mw_store_encode_module(struct mw_store_put *put, const void *fact, size_t limit);
void mw_store_encode_before(struct mw_store_put *put, const void *fact, size_t limit); /* struct mw_store_range */
/* struct mw_store_numbered, of a struct mw_stored_thread */
void mw_store_encode_thread(struct mw_store_put *put, const void *fact, size_t limit);
/* struct mw_store_numbered, of a struct mw_raw_stack */
void mw_store_encode_stack(struct mw_store_put *put, const void *fact, size_t limit);
void mw_store_encode_sample(struct mw_store_put *put, const void *fact, size_t limit);
void mw_store_encode_mark(struct mw_store_put *put, const void *fact, size_t limit);
/* struct mw_store_moment_mapping */
void mw_store_encode_mapping(struct mw_store_put *put, const void *fact, size_t limit);
void mw_store_encode_symbol(struct mw_store_put *put, const void *fact, size_t limit);
void mw_store_encode_end(struct mw_store_put *put, const void *fact, size_t limit);

#endif

/* SPDX-License-Identifier: MIT */
/* chunker.h: makes a chunk: encoded, compressed, hashed, with its header. */
#ifndef MW_STORE_CHUNKER_H
#define MW_STORE_CHUNKER_H

#include "store/queue.h"

struct mw_store_chunker;

/* For the chunk of that number and those that follow; NULL without memory. */
struct mw_store_chunker *mw_store_chunker_create(uint64_t first);
void mw_store_chunker_destroy(struct mw_store_chunker *chunker);
/* How many chunks stand before the next one. */
uint64_t mw_store_chunker_count(const struct mw_store_chunker *chunker);
/* Returns the size of the chunk at *out, which is good until the next call. */
size_t mw_store_chunker_make(struct mw_store_chunker *chunker, const struct mw_store_job *job, const uint8_t **out);
/* The chunk that ends a recording. */
size_t mw_store_chunker_close(struct mw_store_chunker *chunker, const uint8_t **out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * glibc.h: what the parts of glibc's walker share: walk_glibc.c (arenas), glibc_memory.c (an image as what
 * src/alloc reads), glibc_mapped.c (blocks with a mapping of their own), glibc_in_flight.c (what threads inside malloc work on),
 * glibc_trim.c (what malloc_trim() would give back). Where arenas are and how chunks follow one another is known
 * by src/alloc alone.
 *
 * A chunk's block begins 16 bytes behind it and ends 8 bytes into the next chunk: so a segment of a span goes from one
 * block's start to the next one's, and its last 8 bytes are the next chunk's size.
 */
#ifndef MW_HEAP_GLIBC_H
#define MW_HEAP_GLIBC_H

#include "alloc/glibc_arenas.h"
#include "alloc/glibc_chunks.h"
#include "heap/walker.h"

#define MW_GLIBC_HEADER 16u /* from a chunk to its block */
#define MW_GLIBC_TAIL   8u
#define MW_GLIBC_PAGE   4096u

/* What malloc_par has of a copy of glibc. */
struct mw_glibc_parameters {
	bool known;
	mw_addr first;       /* where its main arena began (sbrk_base) */
	uint64_t mapped;     /* how many blocks have a mapping of their own */
	uint64_t huge_pages; /* transparent ones that it asks for; 0: none */
};

/* One copy of glibc in an image. */
struct mw_glibc_walk {
	const struct mw_image *image;
	struct mw_blocks *blocks;
	struct mw_glibc_process process;
	struct mw_glibc_window window;
	struct mw_glibc_arenas arenas;
	struct mw_glibc_parameters parameters;
	struct mw_glibc_caches caches;
	uint64_t
		looks_left; /* at what may lead round and round, or nowhere: lists, and memory where chunks are looked for */
	unsigned anchors_left;
	uint32_t allocator;
	uint32_t arena, span; /* that are being walked */
	mw_addr *tops;        /* where spans end that end in a top */
	size_t top_count, top_capacity;
	mw_addr main_end;     /* of the main arena's top; 0: it does not end in one */
	uint32_t main;        /* number of the main arena */
	bool locked;          /* an arena is: a thread works on it, or waits for it */
	const char *refused;  /* why it can't be walked; NULL */
	struct mw_error *err; /* the first that came up where none can be returned */
};

/* What of an image's mappings may have to do with glibc. Zero-initialise. */
struct mw_glibc_spans {
	struct mw_glibc_span *anonymous, *data;
	size_t anonymous_count, anonymous_capacity, data_count, data_capacity;
	struct mw_glibc_span heap;
};

/* Errors: MEMORY. */
struct mw_error *mw_glibc_spans_find(const struct mw_image *image, struct mw_glibc_spans *out) MW_MUST_CHECK;
void mw_glibc_spans_deinit(struct mw_glibc_spans *spans);
/* To be mw_glibc_process's `read`, with an image as its context: pages of anonymous memory that are not there are zeros. */
size_t mw_glibc_read(void *context, mw_addr addr, void *out, size_t size);

/* Memory of the copy's that was passed over. */
struct mw_error *mw_glibc_skip(struct mw_glibc_walk *walk, mw_addr start, mw_addr end, const char *why) MW_MUST_CHECK;

/* Fill in walk->parameters from the copy's data; unknown where there are none. Errors: MEMORY. */
struct mw_error *mw_glibc_parameters_find(struct mw_glibc_walk *walk) MW_MUST_CHECK;
/* Add all blocks that have a mapping of their own, of all copies: `count` of them, MW_SIZE_UNKNOWN. Errors: MEMORY. */
struct mw_error *mw_glibc_add_mapped(struct mw_glibc_walk *walk, uint64_t count) MW_MUST_CHECK;
/* Does a thread work on an arena of this copy's, or wait for one? */
bool mw_glibc_is_locked(const struct mw_glibc_walk *walk);
/*
 * A thread that is about to allocate a block or to free it has the chunk's address, and none may have the block's. So it
 * is no block that somebody could have lost, but what is in it counts: it is passed over. Errors: MEMORY.
 */
struct mw_error *mw_glibc_take_in_flight(struct mw_glibc_walk *walk) MW_MUST_CHECK;
/* Bytes that malloc_trim(0) would give back now: blocks in threads' caches are live as yet, those in fast bins free. */
uint64_t mw_glibc_trimmable(const struct mw_glibc_walk *walk);

#endif

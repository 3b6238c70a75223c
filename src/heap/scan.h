/* SPDX-License-Identifier: MIT */
/*
 * scan.h: looks through memory for words that point into blocks, by several threads.
 *
 *      ranges of addresses     cut into windows that threads take one after another
 *      a frontier of blocks    by address; neighbours are read together, blocks of 1 MiB and more as ranges
 *
 * What is not in memory is not read. What should be there and can't be read is counted, and has no words.
 */
#ifndef MW_HEAP_SCAN_H
#define MW_HEAP_SCAN_H

#include "heap/reach.h"

#include <pthread.h>
#include <stdatomic.h>

/* One bit for each block's number. */
static inline bool mw_bits_test(const _Atomic uint64_t *bits, uint32_t number)
{
	return atomic_load_explicit(&bits[number / 64], memory_order_relaxed) >> (number % 64) & 1;
}

/* False where it was set already. */
static inline bool mw_bits_set(_Atomic uint64_t *bits, uint32_t number)
{
	uint64_t bit = UINT64_C(1) << (number % 64);

	return !(atomic_fetch_or_explicit(&bits[number / 64], bit, memory_order_relaxed) & bit);
}

static inline size_t mw_bits_words(uint32_t count)
{
	return (size_t)count / 64 + 1;
}

/* Blocks to be scanned next: a list, or where it is full, bits. Has room for any. */
struct mw_frontier {
	uint32_t *list;
	size_t count, capacity; /* of the list */
	_Atomic uint64_t *bits; /* all zero but where wide */
	size_t words;
	bool wide; /* also the list's are in `bits` */
};

struct mw_scan_range {
	mw_addr start, end;
	uint32_t source; /* what the words come from: a block, or MW_BLOCK_NONE */
	bool code;       /* words at any address, also of 4 bytes alone: parts of instructions */
};

/* Of an address of a process, with page tables of four levels. Lock-free lists count in the bits above them, runtimes keep types
 * there: Boost.Lockfree, folly, Swift, LuaJIT. */
#define MW_POINTER_BITS 47
#define MW_POINTER_MASK ((UINT64_C(1) << MW_POINTER_BITS) - 1)

/* A word that points into a live block. */
struct mw_pointer {
	mw_addr word; /* less the tag bits */
	mw_addr at;
	uint32_t source;
	bool is_start; /* it points to the block's start, in whose address the three lowest bits are a program's */
	bool altered;  /* it does so only without the bits above MW_POINTER_BITS */
	struct mw_block block; /* of one whose start it points to the number alone */
};

/* `worker` is for mw_scan_peek() and mw_scan_found(). */
struct mw_scan_worker;
typedef void mw_scan_visit(void *context, struct mw_scan_worker *worker, const struct mw_pointer *pointer);

struct mw_scan;

/* `options` must stay. Errors: MEMORY. */
struct mw_error *mw_scan_create(const struct mw_image *image, const struct mw_blocks *blocks,
				const struct mw_reach_options *options, unsigned threads,
				struct mw_scan **out) MW_MUST_CHECK;
void mw_scan_destroy(struct mw_scan *scan);

/*
 * Begin a pass: what is called from now on, by several threads at once, and the bits of blocks that it looks at first, or
 * NULL. `once`: where a word's value is met again in the pass, that adds nothing, and mostly it is passed over.
 */
void mw_scan_begin(struct mw_scan *scan, mw_scan_visit *visit, void *context, const _Atomic uint64_t *bits, bool once);
/* What all passes write to, by number: fetched before they do. */
void mw_scan_set_cells(struct mw_scan *scan, const _Atomic uint32_t *cells);
/* Where mw_scan_found() adds to from now on. */
void mw_scan_set_next(struct mw_scan *scan, struct mw_frontier *next);
/* Bytes that will be scanned in all, for options->progress. */
void mw_scan_expect(struct mw_scan *scan, uint64_t bytes);

void mw_scan_ranges(struct mw_scan *scan, const struct mw_scan_range *ranges, size_t count);
/* All blocks of the frontier, which is empty then. */
void mw_scan_frontier(struct mw_scan *scan, struct mw_frontier *frontier);
/* One block, by this thread alone. */
void mw_scan_block(struct mw_scan *scan, uint32_t number);
/* A word that is in no memory, as if it had been read at `at`. It is never passed over. */
void mw_scan_word(struct mw_scan *scan, mw_addr word, mw_addr at, uint32_t source);

/* Add a block to the next frontier. */
void mw_scan_found(struct mw_scan_worker *worker, uint32_t number);
/* The 8 bytes at an address that is a multiple of 8, from a cache; false: they can't be read. */
bool mw_scan_peek(struct mw_scan_worker *worker, mw_addr addr, uint64_t *out);
/* A number below the count of threads. */
unsigned mw_scan_worker_number(const struct mw_scan_worker *worker);
unsigned mw_scan_workers(const struct mw_scan *scan);

uint64_t mw_scan_bytes(const struct mw_scan *scan);
/* Bytes that should have been there and could not be read. */
uint64_t mw_scan_unread(const struct mw_scan *scan);

/* Errors: MEMORY. */
struct mw_error *mw_frontier_init(struct mw_frontier *frontier, uint32_t blocks) MW_MUST_CHECK;
void mw_frontier_deinit(struct mw_frontier *frontier);
/* Not while others add to it. */
void mw_frontier_add(struct mw_frontier *frontier, uint32_t number);
void mw_frontier_empty(struct mw_frontier *frontier);
static inline bool mw_frontier_is_empty(const struct mw_frontier *frontier)
{
	return frontier->count == 0 && !frontier->wide;
}

#endif

/* SPDX-License-Identifier: MIT */
/* world.h: a process's memory that is made up: mappings, threads, and a heap of blocks that stand one behind another. */
#ifndef TESTS_HEAP_WORLD_H
#define TESTS_HEAP_WORLD_H

#include "heap/reach.h"

#define WORLD_MAPPINGS 24u
#define WORLD_THREADS  4u
#define WORLD_HEAP     UINT64_C(0x555500000000)
#define WORLD_DATA     UINT64_C(0x444400000000) /* a module's: one page */
#define WORLD_TAIL     8u                       /* behind each block */

enum world_mapping {
	WORLD_READ = 1,
	WORLD_WRITE = 2,
	WORLD_EXEC = 4,
	WORLD_SHARED = 8,
	WORLD_FILE = 16,
	WORLD_LOST = 32
};

struct world {
	struct mw_image image;
	struct mw_image_mapping mappings[WORLD_MAPPINGS];
	unsigned char *bytes[WORLD_MAPPINGS]; /* NULL: can't be read */
	struct mw_image_thread threads[WORLD_THREADS];
	struct mw_blocks *blocks;
	uint32_t allocator, arena, span;
	mw_addr next, end; /* of the heap */
	_Atomic uint64_t reads;
};

/* With a heap of so many bytes, whose allocator may be one that is not walked, and a page of data. */
void world_init(struct world *world, uint64_t heap, bool walked);
void world_deinit(struct world *world);
/* `flags` of enum world_mapping; WORLD_LOST: reading it fails. */
void world_map(struct world *world, mw_addr start, uint64_t size, unsigned flags, const char *path);
/* A thread with nothing in its registers. */
struct mw_image_thread *world_thread(struct world *world, pid_t tid, mw_addr sp, mw_addr thread_pointer);
/* A live block of so many usable bytes, which are 8 more than a multiple of 16. */
mw_addr world_block(struct world *world, uint64_t size);
void world_poke(struct world *world, mw_addr at, uint64_t word);
uint64_t world_peek(struct world *world, mw_addr at);
/* After all blocks have been made. */
void world_finish(struct world *world);
uint32_t world_number(const struct world *world, mw_addr block);
struct mw_reached *world_reach(const struct world *world, const struct mw_reach_options *options);

#endif

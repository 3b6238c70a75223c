/* SPDX-License-Identifier: MIT */
/*
 * moves: the only pointer to each of some blocks is moved all the time, between the ends of a large piece of memory; blocks
 * are allocated and freed; and some are lost.
 */
#include "target.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCKS 4000u
#define LOST   20u
#define PART   (UINT64_C(16) << 20) /* bytes between the two places of a pointer */

static void **low, **high;
static volatile bool ended;

/* From one end to the other; a part of the blocks is another one each time. */
static void *move(void *unused)
{
	(void)unused;
	for (unsigned long round = 0; !ended; round++) {
		void **from = round & 1 ? high : low, **to = round & 1 ? low : high;

		for (unsigned i = 0; i < BLOCKS; i++) {
			void *block = from[i];

			if (i % 8 == round % 8) {
				free(block);
				block = calloc(1, 200);
			}
			to[i] = block;
			from[i] = NULL;
		}
	}
	return NULL;
}

static KEEP void drop(void)
{
	void *block = malloc(300);

	OPAQUE(block);
	memset(block, 1, 300);
}

int main(void)
{
	char *memory = mmap(NULL, 2 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t mover;

	if (memory == MAP_FAILED)
		target_fail("no memory");
	memset(memory, 1, 2 * PART); /* all of it is read, and takes its time */
	low = (void **)memory;
	high = (void **)(memory + 2 * PART) - BLOCKS;
	for (unsigned i = 0; i < BLOCKS; i++) {
		low[i] = calloc(1, 200);
		high[i] = NULL;
	}
	for (unsigned i = 0; i < LOST; i++)
		drop();
	if (pthread_create(&mover, NULL, move, NULL) != 0)
		target_fail("no thread");
	target_ready();
	target_say("lost", LOST);
	target_done();
	ended = true;
	pthread_join(mover, NULL);
	return 0;
}

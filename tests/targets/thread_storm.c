/* SPDX-License-Identifier: MIT */
/*
 * thread_storm [THREADS]: short-lived threads that fill their cache of free blocks and leak one block
 * each. glibc gives a dying thread's cache back through its own free(), which is no free of the program's.
 */
#include "target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 8
#define BLOCKS  24

static KEEP void storm_leak(void)
{
	void *block = malloc(40);

	OPAQUE(block);
}

static KEEP void *storm_alloc(size_t size)
{
	void *block = malloc(size);

	OPAQUE(block);
	return block;
}

static void *work(void *unused)
{
	void *blocks[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = storm_alloc(16 + i % 6 * 64);
	for (size_t i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	storm_leak();
	return unused;
}

int main(int argc, char **argv)
{
	size_t total = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	pthread_t threads[AT_ONCE];

	total -= total % AT_ONCE;
	target_ready();
	for (size_t done = 0; done < total; done += AT_ONCE) {
		for (size_t i = 0; i < AT_ONCE; i++) {
			if (pthread_create(&threads[i], NULL, work, NULL) != 0)
				target_fail("pthread_create");
		}
		for (size_t i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	target_say("storm_leak.impacting.count", total);
	target_say("storm_leak.impacting.bytes", total * 40);
	target_say("storm_alloc.size.count", total * BLOCKS);
	target_say("storm_alloc.transient.count", total * BLOCKS);
	target_say("heap.aofi.count", 0);
	target_done();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * thread_storm [THREADS]: short-lived threads that fill their cache of free blocks and leak one block
 * each. glibc gives a dying thread's cache back through its own free(), which is no free of the program's.
 *
 * thread_storm relay [CHAINS]: threads that each start the next one and end, until the harness ends the work.
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static _Atomic bool over;
static _Atomic size_t runners;

static void *run_on(void *unused);

static void start_runner(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	atomic_fetch_add(&runners, 1);
	if (pthread_create(&thread, &attributes, run_on, NULL) != 0)
		target_fail("pthread_create");
	pthread_attr_destroy(&attributes);
}

static void *run_on(void *unused)
{
	free(storm_alloc(32));
	if (!atomic_load(&over))
		start_runner();
	free(storm_alloc(32));
	atomic_fetch_sub(&runners, 1);
	return unused;
}

static void relay(size_t chains)
{
	for (size_t i = 0; i < chains; i++)
		start_runner();
	target_ready();
	atomic_store(&over, true);
	while (atomic_load(&runners) > 0)
		usleep(1000);
	target_done();
}

int main(int argc, char **argv)
{
	size_t total = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	pthread_t threads[AT_ONCE];

	if (argc > 1 && strcmp(argv[1], "relay") == 0) {
		relay(argc > 2 ? strtoul(argv[2], NULL, 10) : 4);
		return 0;
	}
	total -= total % AT_ONCE;
	target_ready_for(280);
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

/* SPDX-License-Identifier: MIT */
/*
 * edges FILE [THREADS]: threads allocate a block, and free it after a moment, again and again until told to end. FILE gets, of
 * each thread's last LOGGED frees, the block's address and size, and when the call began and had returned
 * (CLOCK_MONOTONIC): four uint64_t each, 0 where it has not yet.
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOGGED 65536 /* some seconds */
#define MOST   8

struct entry {
	uint64_t address, size, begun_ns, returned_ns;
};

static struct entry *board; /* LOGGED for each thread */
static atomic_bool over;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static KEEP void *edge_block(size_t size)
{
	return target_filled(size, 1);
}

static void *work(void *argument)
{
	uint64_t thread = (uint64_t)(uintptr_t)argument;
	const struct timespec moment = {.tv_nsec = 1};

	for (uint64_t i = 0; !atomic_load(&over); i++) {
		struct entry *entry = &board[thread * LOGGED + i % LOGGED];
		/* No two blocks of a thread that are in the log have one size. */
		size_t size = 16 + i % LOGGED;
		void *block = edge_block(size);

		*entry = (struct entry){(uint64_t)(uintptr_t)block, size, 0, 0};
		nanosleep(&moment, NULL);
		entry->begun_ns = now_ns();
		free(block);
		entry->returned_ns = now_ns();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t threads = argc > 2 ? strtoull(argv[2], NULL, 10) : 2;
	pthread_t ids[MOST];
	int file = argc > 1 ? open(argv[1], O_RDWR) : -1;

	if (threads > MOST || file < 0)
		target_fail("usage: edges FILE [THREADS]");
	board = mmap(NULL, MOST * LOGGED * sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (board == MAP_FAILED)
		target_fail("mmap");
	target_ready();
	for (uint64_t i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)i))
			target_fail("pthread_create");
	target_wait();
	atomic_store(&over, true);
	for (uint64_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

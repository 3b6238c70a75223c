/* SPDX-License-Identifier: MIT */
/*
 * steady: threads that allocate a little all the time, never more than before, and look at what they got: each block's
 * bytes are what was written, and nothing is where it was not put. Works until it is told to end.
 *
 * steady [THREADS [PAUSE_US]]
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS_MAX 16
#define KEPT        24
#define LIFE        900

static atomic_bool over;
static atomic_ulong rounds;
static struct timespec pause_between;

struct block {
	unsigned char *bytes;
	size_t size;
	unsigned char fill;
};

static void check(const struct block *block)
{
	for (size_t i = 0; i < block->size; i++)
		if (block->bytes[i] != block->fill)
			target_fail("a block holds what was not written to it");
}

static KEEP void make(struct block *block, unsigned number)
{
	block->size = 16 + number * 37 % 900;
	block->fill = (unsigned char)(number * 11 + 1);
	block->bytes = number % 3 ? malloc(block->size) : calloc(1, block->size);
	if (!block->bytes)
		target_fail("there is no memory");
	OPAQUE(block->bytes);
	memset(block->bytes, block->fill, block->size);
}

static KEEP void grow(struct block *block)
{
	unsigned char *bytes = realloc(block->bytes, block->size + 64);

	if (!bytes)
		target_fail("there is no memory");
	block->bytes = bytes;
	check(block);
	memset(bytes + block->size, block->fill, 64);
	block->size += 64;
}

static void *work(void *argument)
{
	struct block blocks[KEPT] = {{0}};
	unsigned number = *(unsigned *)argument * 1000;

	while (!atomic_load(&over)) {
		for (unsigned i = 0; i < 4; i++, number++) {
			struct block *block = &blocks[number % KEPT];

			if (block->bytes) {
				check(block);
				free(block->bytes);
			}
			make(block, number);
			if (number % 5 == 0)
				grow(block);
		}
		atomic_fetch_add(&rounds, 1);
		nanosleep(&pause_between, NULL);
	}
	for (unsigned i = 0; i < KEPT; i++) {
		check(&blocks[i]);
		free(blocks[i].bytes);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2;
	unsigned numbers[THREADS_MAX];
	pthread_t threads[THREADS_MAX];

	pause_between.tv_nsec = (argc > 2 ? strtol(argv[2], NULL, 10) : 1000) * 1000;
	if (count > THREADS_MAX)
		target_fail("too many threads");
	target_ready_for(LIFE);
	for (unsigned i = 0; i < count; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
			target_fail("no thread could be made");
	}
	target_wait();
	atomic_store(&over, true);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	target_say("rounds", atomic_load(&rounds));
	target_done();
	return 0;
}

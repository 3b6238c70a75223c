// SPDX-License-Identifier: MIT
/*
 * heapblocks FILE THREADS OPERATIONS SEED [busy]: threads allocate and free blocks of 1 byte to 16 MiB at random, also
 * those of each other; some end, the others stay. Then the live blocks stand in FILE (heapblocks.h) with what
 * malloc_usable_size() says of each, and the process sleeps; with `busy` the threads go on meanwhile with blocks of their
 * own, which they free at once.
 */
#include "heapblocks.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of the allocator that is there. */
__attribute__((weak)) int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char *property, size_t *value);

static void *_Atomic slots[HEAPBLOCKS_SLOTS];
static struct heapblocks *told;
static pthread_barrier_t done;
static unsigned long operations;
static int busy;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Mostly small. */
static size_t size_of(uint64_t random)
{
	unsigned kind = random % 1000;
	unsigned bits = kind < 900 ? 10 : kind < 995 ? 16 : 24;

	bits = 1 + (unsigned)(random >> 16) % bits;
	return 1 + (size_t)(random >> 24) % ((size_t)1 << bits);
}

static void *allocate(uint64_t *state, void *old)
{
	uint64_t random = next(state);
	size_t size = size_of(random);
	char *block = NULL;

	switch ((random >> 10) % 8) {
	case 0:
		free(old);
		block = calloc(1, size);
		break;
	case 1:
		block = realloc(old, size);
		break;
	case 2:
		free(old);
		if (posix_memalign((void **)&block, (size_t)16 << (random >> 13) % 10, size) != 0)
			block = NULL;
		break;
	default:
		free(old);
		block = malloc(size);
	}
	if (!block)
		abort();
	block[0] = block[size - 1] = 'x';
	return block;
}

static void work(uint64_t state, unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		unsigned slot = (unsigned)(next(&state) % HEAPBLOCKS_SLOTS);
		void *old = atomic_exchange(&slots[slot], NULL), *block = NULL;

		if (next(&state) % 3)
			block = allocate(&state, old);
		else
			free(old);
		block = atomic_exchange(&slots[slot], block);
		free(block);
	}
}

static void *run(void *seed)
{
	uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15 + 1;

	work(state, operations);
	if ((uintptr_t)seed % 4 == 3) /* these end */
		return NULL;
	pthread_barrier_wait(&done);
	while (busy)
		free(malloc(size_of(next(&state)) % 5000));
	for (;;)
		pause();
}

static void ask_statistics(void)
{
	uint64_t epoch = 1;
	size_t size = sizeof(epoch), value = 0;

	if (mallctl && mallctl("epoch", &epoch, &size, &epoch, sizeof(epoch)) == 0) {
		size = sizeof(value);
		if (mallctl("stats.allocated", &value, &size, NULL, 0) == 0)
			told->allocated = value;
		if (mallctl("stats.arenas.4096.tcache_bytes", &value, &size, NULL, 0) == 0)
			told->cached = value;
	}
	if (MallocExtension_GetNumericProperty &&
	    MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &value))
		told->allocated = value;
}

static void tell(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < HEAPBLOCKS_SLOTS; i++)
		if (slots[i]) {
			told->blocks[count].addr = (uintptr_t)slots[i];
			told->blocks[count++].usable = malloc_usable_size(slots[i]);
		}
	told->count = count;
	ask_statistics();
	told->ready = 1;
}

int main(int argc, char **argv)
{
	unsigned threads, ending = 0;
	uintptr_t seed;
	int fd;

	if (argc < 5)
		return 2;
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	threads = (unsigned)atoi(argv[2]);
	operations = strtoul(argv[3], NULL, 10);
	seed = strtoul(argv[4], NULL, 10) * 4096;
	busy = argc > 5;
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (told == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < threads; i++)
		ending += (seed + i) % 4 == 3;
	pthread_barrier_init(&done, NULL, threads - ending + 1);
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, (void *)(seed + i)) != 0)
			return 1;
		if ((seed + i) % 4 == 3)
			pthread_join(thread, NULL);
	}
	pthread_barrier_wait(&done);
	tell();
	for (;;)
		pause();
}

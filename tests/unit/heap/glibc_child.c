// SPDX-License-Identifier: MIT
/*
 * glibc_child THREADS OPERATIONS SEED [WHAT…]: threads that allocate, reallocate and free at random, and write down what
 * they have (glibc_child.h). Then it writes a byte to standard output, and for each byte that it reads does what it says:
 * 't' malloc_trim(0).
 *
 *      break    the main thread takes of the break itself, amidst the arena
 *      blocked  the break can't be moved from the beginning on
 *      blocks   … from half of the work on
 *      small    small blocks only
 *      copy     the main thread takes every second block from another copy of glibc (dlmopen)
 *      churn    they go on for ever, and the byte is written when they have begun
 */
#include "glibc_child.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct child_truth *truth;
static unsigned long operations;
static bool small, takes_break, blocks_break, churns;
static pthread_barrier_t barrier;
static void *(*other_malloc)(size_t size);

struct worker {
	struct child_slot *slots;
	volatile uint64_t *busy;
	uint64_t seed;
	bool main;
};

static uint64_t any(struct worker *worker, uint64_t below)
{
	worker->seed = worker->seed * 6364136223846793005u + 1442695040888963407u;
	return (worker->seed >> 33) % below;
}

static size_t any_size(struct worker *worker)
{
	uint64_t kind = any(worker, 1000);
	unsigned most = kind < 900 || small ? 11 : kind < 992 ? 18 : 26;

	return 1 + (size_t)any(worker, UINT64_C(1) << any(worker, most + 1));
}

static void block_break(void)
{
	char *at = (char *)(((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095);

	/* Where there is something already it can't be moved either. */
	(void)mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void *allocate(struct worker *worker, void *old, size_t size)
{
	size_t alignment = (size_t)16 << any(worker, small ? 6 : 18);

	if (old)
		return realloc(old, size);
	switch (any(worker, 6)) {
	case 0:
		return calloc(1, size);
	case 1:
		return memalign(alignment, size);
	default:
		return malloc(size);
	}
}

static void tell(void);

/* Blocks that stay. */
static void take_others(struct worker *worker)
{
	for (size_t i = 0; i < CHILD_SLOTS; i += 2) {
		free((void *)(uintptr_t)worker->slots[i].addr);
		worker->slots[i].addr = (uintptr_t)other_malloc(40 + i % 900);
		worker->slots[i].usable = malloc_usable_size((void *)(uintptr_t)worker->slots[i].addr);
	}
}

static void open_other(void)
{
#ifndef STATIC
	void *library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);

	if (library)
		other_malloc = (void *(*)(size_t))dlsym(library, "malloc");
#endif
	if (!other_malloc)
		_exit(3);
}

static void work(struct worker *worker)
{
	for (unsigned long i = 0; i < operations || churns; i++) {
		struct child_slot *slot = &worker->slots[any(worker, CHILD_SLOTS)];
		char *old = (char *)(uintptr_t)slot->addr, *block;

		if (worker->main && takes_break && i % (operations / 8 + 1) == 17)
			(void)memset(sbrk(100003), 0x61, 100003);
		if (worker->main && blocks_break && i == operations / 2)
			block_break();
		if (worker->main && churns && i == operations)
			tell();
		*worker->busy = (uint64_t)(slot - worker->slots) + 1;
		if (old && any(worker, 3)) {
			free(old);
			*slot = (struct child_slot){0, 0};
			continue;
		}
		block = allocate(worker, old, any_size(worker));
		if (!block)
			_exit(2);
		slot->addr = (uintptr_t)block;
		slot->usable = malloc_usable_size(block);
		memset(block, (int)any(worker, 256), slot->usable < 3000 ? slot->usable : 3000);
		block[slot->usable - 1] = 1;
	}
}

static void *run(void *argument)
{
	struct worker worker = *(struct worker *)argument;

	work(&worker);
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return NULL;
}

static void tell(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 info = mallinfo2();
#else
	struct mallinfo info = mallinfo();
#endif

	truth->arena = info.arena;
	truth->hblks = info.hblks;
	truth->hblkhd = info.hblkhd;
	truth->fsmblks = info.fsmblks;
	truth->uordblks = info.uordblks;
	truth->fordblks = info.fordblks;
	truth->keepcost = info.keepcost;
	(void)!write(STDOUT_FILENO, "", 1);
}

int main(int argc, char **argv)
{
	static struct worker workers[CHILD_THREADS + 1];
	pthread_t thread;
	char command;

	if (argc < 4)
		return 2;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, CHILD_FD, 0);
	if (truth == MAP_FAILED)
		return 2;
	truth->threads = strtoul(argv[1], NULL, 10);
	operations = strtoul(argv[2], NULL, 10);
	strncpy(truth->version, gnu_get_libc_version(), sizeof(truth->version) - 1);
	for (int i = 4; i < argc; i++) {
		small = small || strcmp(argv[i], "small") == 0;
		takes_break = takes_break || strcmp(argv[i], "break") == 0;
		churns = churns || strcmp(argv[i], "churn") == 0;
		blocks_break = blocks_break || strcmp(argv[i], "blocks") == 0;
		if (strcmp(argv[i], "blocked") == 0)
			block_break();
		if (strcmp(argv[i], "copy") == 0)
			open_other();
	}
	pthread_barrier_init(&barrier, NULL, (unsigned)truth->threads + 1);
	for (size_t i = 0; i <= truth->threads && i <= CHILD_THREADS; i++) {
		workers[i] = (struct worker){truth->slots[i], &truth->busy[i], strtoul(argv[3], NULL, 10) + 1000 * i,
					     i == 0};
		if (i && pthread_create(&thread, NULL, run, &workers[i]))
			return 2;
	}
	work(&workers[0]);
	if (other_malloc)
		take_others(&workers[0]);
	pthread_barrier_wait(&barrier);
	usleep(20000); /* until the others sleep */
	tell();
	while (read(STDIN_FILENO, &command, 1) == 1) {
		if (command == 't')
			(void)malloc_trim(0);
		tell();
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * fragments: grows where no hook sees it, and where the heap's size does not tell what is in use: mappings made by the
 * system call itself, every second block of many freed, threads with stacks of known size, mappings that are used in
 * part only.
 */
#include "target.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE    ((size_t)4096)
#define BLOCKS  40000
#define BLOCK   ((size_t)1000) /* chunks of 1008 */
#define THREADS 3
#define STACK   ((size_t)3 << 20)
#define IN_USE  ((size_t)100000) /* in each thread's arena */

static char *blocks[BLOCKS];
static pthread_barrier_t barrier;
static void *volatile kept;

static KEEP char *raw_map(size_t pages, int protection)
{
	long at = syscall(SYS_mmap, NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == -1)
		target_fail("mmap by system call");
	return (char *)at;
}

static KEEP char *seen_map(size_t pages)
{
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		target_fail("mmap");
	return at;
}

static void touch(char *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		at[i * PAGE] = 1;
}

static KEEP void *thread_main(void *unused)
{
	kept = malloc(IN_USE);
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return unused;
}

static void start_threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, &attributes, thread_main, NULL))
			target_fail("pthread_create");
	pthread_barrier_wait(&barrier);
}

static KEEP void fragment(void)
{
	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(BLOCK);
	for (size_t i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
}

int main(void)
{
	struct mallinfo2 before, after;
	char *unseen, *half;

	kept = malloc(1);
	target_ready();

	before = mallinfo2();
	fragment();
	unseen = raw_map(2560, PROT_READ | PROT_WRITE);
	touch(unseen, 100);
	(void)raw_map(512, PROT_READ);
	half = seen_map(1000);
	touch(half + 100 * PAGE, 400);
	start_threads();
	after = mallinfo2();

	target_say("unseen.bytes", (2560 + 512) * PAGE);
	target_say("unseen.resident", 100 * PAGE);
	target_say("unseen.address", (uint64_t)(uintptr_t)unseen);
	target_say("seen_map.bytes", 1000 * PAGE);
	target_say("seen_map.resident", 400 * PAGE);
	target_say("table", sizeof(blocks));
	target_say("threads", THREADS);
	target_say("stack", STACK);
	target_say("kept.chunks", BLOCKS / 2 * (BLOCK + 8));
	target_say("arena.before.size", before.arena);
	target_say("arena.before.free", before.fordblks);
	target_say("arena.size", after.arena);
	target_say("arena.free", after.fordblks);
	target_done();
	return 0;
}

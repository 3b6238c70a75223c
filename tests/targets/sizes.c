/* SPDX-License-Identifier: MIT */
/*
 * sizes COUNT…: keeps so many blocks of 8 bytes, of 32, and so on, four times larger each, and of 64 MiB at last, and says
 * how many bytes they are. Those of each size have a stack of their own (keep_SIZE). For each three of them a block of
 * another stack (drop_SIZE) is allocated, which is freed some later. Two threads take turns at the sizes. No block is written.
 */
#include "target.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>

#define LATER 64

typedef void *allocate(void);

#define CLASS(size)                                                                                                    \
	static KEEP void *keep_##size(void)                                                                            \
	{                                                                                                              \
		void *block = malloc(size);                                                                            \
                                                                                                                       \
		OPAQUE(block);                                                                                         \
		return block;                                                                                          \
	}                                                                                                              \
	static KEEP void *drop_##size(void)                                                                            \
	{                                                                                                              \
		void *block = malloc(size);                                                                            \
                                                                                                                       \
		OPAQUE(block);                                                                                         \
		return block;                                                                                          \
	}

CLASS(8)
CLASS(32)
CLASS(128)
CLASS(512)
CLASS(2048)
CLASS(8192)
CLASS(32768)
CLASS(131072)
CLASS(524288)
CLASS(2097152)
CLASS(8388608)
CLASS(33554432)
CLASS(67108864)

static const struct {
	allocate *keep, *drop;
	uint64_t size;
} classes[] = {
	{keep_8, drop_8, 8},
	{keep_32, drop_32, 32},
	{keep_128, drop_128, 128},
	{keep_512, drop_512, 512},
	{keep_2048, drop_2048, 2048},
	{keep_8192, drop_8192, 8192},
	{keep_32768, drop_32768, 32768},
	{keep_131072, drop_131072, 131072},
	{keep_524288, drop_524288, 524288},
	{keep_2097152, drop_2097152, 2097152},
	{keep_8388608, drop_8388608, 8388608},
	{keep_33554432, drop_33554432, 33554432},
	{keep_67108864, drop_67108864, 67108864},
};

#define CLASSES ((int)(sizeof(classes) / sizeof(classes[0])))

static uint64_t counts[CLASSES];

static void fill(int class)
{
	void *later[LATER] = {NULL};

	for (uint64_t i = 0; i < counts[class]; i++) {
		void **at = &later[i / 3 % LATER];

		if (!classes[class].keep())
			target_fail("there is no memory any more");
		if (i % 3)
			continue;
		free(*at);
		*at = classes[class].drop();
	}
	for (int i = 0; i < LATER; i++)
		free(later[i]);
}

/* Every second size. */
static void *work(void *first)
{
	for (int i = (int)(intptr_t)first; i < CLASSES; i += 2)
		fill(i);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	for (int i = 0; i < CLASSES && i + 1 < argc; i++)
		counts[i] = strtoull(argv[i + 1], NULL, 10);
	/* The allocator writes a few bytes of each block: these must not be 2 MiB of memory. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	target_ready();
	if (pthread_create(&thread, NULL, work, (void *)1))
		target_fail("pthread_create");
	work(NULL);
	pthread_join(thread, NULL);
	for (int i = 0; i < CLASSES; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "keep_%llu", (unsigned long long)classes[i].size);
		target_say(name, counts[i] * classes[i].size);
	}
	target_done();
	return 0;
}

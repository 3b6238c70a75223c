/* SPDX-License-Identifier: MIT */
/*
 * shared_memory_corrupted [SEED [KIND]]: allocates without pause, and writes nonsense to whatever memory it finds that
 * memwatch shares with it: words or bytes of any value, numbers that are likely to hurt, all of a page, or pieces of it
 * copied to elsewhere. What it does to itself by that is its own affair, so it may die of it; memwatch may not.
 *
 * KIND: any (default), control, slots, rings, rows: which part; gentle: only what memwatch alone reads.
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE      4096u
#define WORKERS   3
#define AT_A_TIME 32

static atomic_bool over;
static uint64_t state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t odd(void)
{
	static const uint64_t edges[] = {0, 1, 2, 4096, INT32_MAX, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX};

	switch (draw() % 4) {
	case 0:
		return draw();
	case 1:
		return draw() >> (draw() % 64);
	case 2:
		return (uintptr_t)&state + draw() % 65536 - 32768;
	default:
		return edges[draw() % (sizeof(edges) / sizeof(edges[0]))];
	}
}

/* Where memwatch's memory is: without any allocation. */
static unsigned char *find(size_t *size)
{
	static char text[1 << 20];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned char *found = NULL;
	char *line;

	if (!maps)
		target_fail("/proc/self/maps");
	setvbuf(maps, text, _IOFBF, sizeof(text) / 2);
	line = text + sizeof(text) / 2;
	while (!found && fgets(line, PAGE, maps)) {
		unsigned long start, end;

		if (strstr(line, "/memfd:memwatch") && sscanf(line, "%lx-%lx", &start, &end) == 2) {
			found = (unsigned char *)(uintptr_t)start;
			*size = end - start;
		}
	}
	fclose(maps);
	return found;
}

/* Which bytes are to be spoilt. */
static void choose(const char *kind, const unsigned char *memory, size_t size, size_t *from, size_t *length)
{
	/* As in memwatch/ring.h: offsets of slots, queue, …, rings stand in the control block. */
	uint64_t offsets[9];

	memcpy(offsets, memory + 56, sizeof(offsets));
	*from = 0;
	*length = size;
	if (strcmp(kind, "control") == 0)
		*length = PAGE;
	else if (strcmp(kind, "slots") == 0)
		*from = PAGE, *length = 1024 * 256;
	else if (strcmp(kind, "rings") == 0)
		*from = offsets[8] < size - PAGE ? offsets[8] : size / 2, *length = 2 << 20;
	else if (strcmp(kind, "rows") == 0)
		*from = offsets[7] < size - PAGE ? offsets[7] : size / 2, *length = 4 << 20;
	if (*length > size - *from)
		*length = size - *from;
}

static void spoil(unsigned char *memory, size_t from, size_t length)
{
	for (unsigned i = 0; i < AT_A_TIME; i++) {
		/* What is near the beginning matters most. */
		size_t span = draw() % 3 ? length : draw() % 2 ? PAGE : 64 * PAGE;
		size_t at = from + draw() % (span < length ? span : length) / 8 * 8;
		uint64_t value = odd();

		switch (draw() % 32) {
		case 0:
			memset(memory + at / PAGE * PAGE, (int)value, PAGE);
			break;
		case 1:
			memmove(memory + at, memory + from + draw() % length / 8 * 8 % (length - 255),
				256 < length - (at - from) ? 256 : 8);
			break;
		case 2:
			memory[at] = (unsigned char)value;
			break;
		default:
			memcpy(memory + at, &value, sizeof(value));
		}
	}
}

static void *work(void *unused)
{
	while (!atomic_load(&over)) {
		void *block = malloc(draw() % 1000);

		OPAQUE(block);
		free(block);
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[2] : "any";
	pthread_t workers[WORKERS];
	size_t size = 0, from, length;

	state = 88172645463325252u + (argc > 1 ? strtoull(argv[1], NULL, 10) * 2654435761u : 0);
	target_ready();
	for (unsigned i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, work, NULL))
			target_fail("pthread_create");
	/* Until SIGALRM, or the harness, ends it. */
	for (;;) {
		unsigned char *memory = find(&size);

		for (unsigned i = 0; memory && i < 200; i++) {
			choose(kind, memory, size, &from, &length);
			spoil(memory, from, length);
			usleep((useconds_t)(draw() % 1000));
		}
		usleep(1000);
	}
}

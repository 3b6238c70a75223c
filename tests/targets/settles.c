/* SPDX-License-Identifier: MIT */
/*
 * settles FILE: serves requests, each of which holds its memory for FLIGHT steps of two milliseconds, until it is told to
 * end: blocks, mappings (of which one half goes before the other), and blocks that are grown before they are freed. So
 * at any moment some are in flight. Beside them some leak. Addresses are used again all the time. FILE gets how many
 * steps were made.
 */
#include "target.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FLIGHT 100
#define PAGE   ((size_t)4096)
#define MAPPED (16 * PAGE)

struct request {
	void *block, *grown;
	char *mapping;
};

static struct request flight[FLIGHT];
static void *leaks[100000];

static KEEP void *request_block(unsigned number)
{
	return target_filled(40 + number % 7 * 100, 1);
}

static KEEP void *request_buffer(void)
{
	return target_filled(64, 2);
}

static KEEP void *request_grow(void *old)
{
	return realloc(old, 20000);
}

static KEEP char *request_map(void)
{
	char *at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		target_fail("mmap");
	return at;
}

static KEEP void *leak(void)
{
	return target_filled(333, 3);
}

static void step(unsigned number)
{
	struct request *now = &flight[number % FLIGHT], *later = &flight[(number + FLIGHT / 2) % FLIGHT];

	free(now->block);
	free(now->grown);
	if (now->mapping)
		munmap(now->mapping + MAPPED / 2, MAPPED / 2);
	if (later->mapping)
		munmap(later->mapping, MAPPED / 2);
	if (later->grown)
		later->grown = request_grow(later->grown);
	now->block = request_block(number);
	now->grown = request_buffer();
	now->mapping = number % 10 == 0 ? request_map() : NULL;
	if (number % 20 == 0)
		leaks[number / 20] = leak();
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	int file = argc > 1 ? open(argv[1], O_RDWR) : -1;
	uint64_t *steps;
	char byte;

	if (file < 0)
		target_fail("usage: settles FILE");
	steps = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (steps == MAP_FAILED)
		target_fail("mmap of the file");
	target_ready();
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	for (unsigned i = 0; i < 20 * 100000 && read(STDIN_FILENO, &byte, 1) < 0; i++) {
		step(i);
		__atomic_store_n(steps, i + 1, __ATOMIC_RELAXED);
		nanosleep(&pause, NULL);
	}
	return 0;
}

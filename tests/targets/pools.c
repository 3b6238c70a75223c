/* SPDX-License-Identifier: MIT */
/*
 * pools: its functions are called as those of pools are, and the heads of its blocks are nearly those of PostgreSQL's memory
 * contexts and talloc's chunks, but each is wrong somewhere: no name may come of any.
 */
#include "target.h"

#include <sys/mman.h>

#define SIZE 1024u

/* Called as pools' functions are. */
KEEP uint64_t *palloc(size_t size);
KEEP uint64_t *talloc_size(size_t size);
KEEP uint64_t *ngx_palloc(size_t size);

static uint64_t random_state = 88172645463325252;

static uint64_t any(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static KEEP void fill(uint64_t *block, size_t size)
{
	if (!block)
		target_fail("malloc");
	for (size_t i = 0; i < size / sizeof(*block); i++)
		block[i] = any();
}

uint64_t *palloc(size_t size)
{
	uint64_t *block = malloc(size);

	fill(block, size);
	return block;
}

uint64_t *talloc_size(size_t size)
{
	uint64_t *block = malloc(size);

	fill(block, size);
	return block;
}

uint64_t *ngx_palloc(size_t size)
{
	uint64_t *block = malloc(size);

	fill(block, size);
	return block;
}

static uint64_t address(const volatile void *of)
{
	return (uint64_t)(uintptr_t)of;
}

static char name[] = "in memory that can be written";
static uint64_t (*writable_methods[9])(void);
static const char garbage[] = "\x1b[31mred\n\xff";

static uint64_t method(void)
{
	return 0;
}

static uint64_t (*const methods[])(void) = {method, method, method};

/* What is wrong with a context, from the smallest flaw on. */
static void make_context(uint64_t *context, unsigned flaw, void *gone)
{
	context[0] = 451;
	context[1] = 8192;
	context[2] = address(methods);
	context[3] = 0;
	context[7] = address("TopMemoryContext");
	context[8] = 0;
	switch (flaw) {
	case 0: /* a node that is no context */
		context[0] = 1 << 20;
		break;
	case 1: /* it can be written */
		context[2] = address(writable_methods);
		break;
	case 2: /* not there any more */
		context[2] = address(gone);
		break;
	case 3:
		context[7] = address(name);
		break;
	case 4:
		context[7] = address(gone);
		break;
	case 5:
		context[7] = address(garbage);
		break;
	case 6: /* its own parent */
		context[3] = address(context);
		break;
	case 7:
		context[3] = address(gone);
		break;
	case 8: /* in the middle of a word */
		context[3] = address(context) + 4;
		break;
	default: /* between it and the next page, where nothing is */
		context[3] = address(gone) - 8;
		break;
	}
}

#define FLAWS 10

/* A block that leads to it, as those of an AllocSet and of a Generation of two versions do; and itself. */
static void make_postgres(unsigned flaw, void *gone)
{
	uint64_t *context = palloc(SIZE), *block;

	make_context(context, flaw, gone);
	block = palloc(SIZE);
	block[0] = address(context);
	block[4] = address(block) + SIZE;
	block = palloc(SIZE);
	block[2] = address(context);
	block[6] = address(block) + SIZE;
	block = palloc(SIZE);
	block[5] = address(block) + SIZE;
	block[7] = address(block);
	block[8] = address(context);
}

static void make_talloc(unsigned flaw, void *gone)
{
	uint64_t *chunk = talloc_size(SIZE), *other = talloc_size(SIZE);
	uint64_t words[] = {0x12345670, 0, 0, 0, 0, 0, 0, address("struct wrong"), SIZE - 96};

	memcpy(chunk, words, sizeof(words));
	switch (flaw) {
	case 0: /* freed */
		chunk[0] |= 1;
		break;
	case 1:
		chunk[0] = 0;
		break;
	case 2: /* its neighbour does not know it */
		chunk[1] = address(other);
		break;
	case 3:
		chunk[2] = address(other);
		break;
	case 4:
		chunk[3] = address(gone);
		break;
	case 5:
		chunk[7] = address(gone);
		break;
	case 6:
		chunk[7] = address(garbage);
		break;
	case 7:
		chunk[8] = SIZE;
		break;
	case 8:
		chunk[8] = UINT64_MAX - 95;
		break;
	default: /* before itself */
		chunk[2] = address(chunk);
		break;
	}
}

int main(void)
{
	char *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (gone == MAP_FAILED || munmap(gone, 4096) != 0)
		target_fail("mmap");
	target_ready();
	for (unsigned flaw = 0; flaw < FLAWS; flaw++) {
		make_postgres(flaw, gone);
		make_talloc(flaw, gone);
		OPAQUE(flaw);
	}
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t *random = palloc(SIZE), *chunk = talloc_size(SIZE);

		OPAQUE(random);
		OPAQUE(chunk);
	}
	for (unsigned i = 0; i < 20; i++) {
		uint64_t *block = ngx_palloc(SIZE);

		OPAQUE(block);
	}
	target_done();
	return 0;
}

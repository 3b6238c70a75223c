/* SPDX-License-Identifier: MIT */
/* blocks.c: blocks whose contents are known; see fleet.h. */
#include "fleet.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(struct blocks *blocks)
{
	uint64_t x = blocks->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return blocks->random = x;
}

/* Mostly small, some of several pages, a few that are mappings of their own. */
static size_t draw_size(struct blocks *blocks)
{
	uint64_t kind = draw(blocks) % 256;

	if (kind == 0 && !blocks->modest)
		return 140000 + draw(blocks) % 200000;
	if (kind < 8)
		return 1000 + draw(blocks) % 20000;
	return draw(blocks) % 300;
}

static unsigned char expected(uint32_t pattern, size_t at)
{
	return (unsigned char)(pattern + at * 167 + (at >> 8));
}

static void compare(const unsigned char *bytes, size_t size, uint32_t pattern)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != expected(pattern, i))
			fleet_wrong("a block does not hold what was written to it");
}

static void fill(struct blocks *blocks, size_t slot, unsigned char *bytes, size_t size)
{
	uint32_t pattern = (uint32_t)draw(blocks);

	for (size_t i = 0; i < size; i++)
		bytes[i] = expected(pattern, i);
	blocks->block[slot].at = bytes;
	blocks->block[slot].size = size;
	blocks->block[slot].pattern = pattern;
}

static void *take(struct blocks *blocks, size_t size)
{
	unsigned char *bytes;
	void *aligned = NULL;
	size_t alignment = (size_t)32 << draw(blocks) % 6;

	switch (draw(blocks) % 6) {
	case 0:
		bytes = calloc(3, (size + 2) / 3);
		for (size_t i = 0; bytes && i < size; i++)
			if (bytes[i] != 0)
				fleet_wrong("calloc's block is not zero");
		return bytes;
	case 1:
		if (posix_memalign(&aligned, alignment, size) != 0)
			return NULL;
		break;
	case 2:
		aligned = aligned_alloc(alignment, size);
		break;
	default:
		return malloc(size);
	}
	if ((uintptr_t)aligned % alignment != 0)
		fleet_wrong("an aligned block is not");
	return aligned;
}

static void give_back(struct blocks *blocks, size_t slot)
{
	int told = (int)(draw(blocks) % 100);

	compare(blocks->block[slot].at, blocks->block[slot].size, blocks->block[slot].pattern);
	errno = told;
	free(blocks->block[slot].at);
	if (errno != told)
		fleet_wrong("free has changed errno");
	blocks->block[slot].at = NULL;
	blocks->live--;
}

static void resize(struct blocks *blocks, size_t slot)
{
	size_t old = blocks->block[slot].size, size = draw_size(blocks) + 1;
	unsigned char *moved = realloc(blocks->block[slot].at, size);

	if (!moved)
		fleet_wrong("realloc gave nothing");
	compare(moved, old < size ? old : size, blocks->block[slot].pattern);
	fill(blocks, slot, moved, size);
}

static void impossible(void)
{
	size_t size = (size_t)PTRDIFF_MAX - 4096;
	void *none;

	__asm__ volatile("" : "+r"(size));
	errno = 0;
	none = malloc(size);
	if (none || errno != ENOMEM)
		fleet_wrong("malloc gave the impossible");
}

void blocks_init(struct blocks *blocks, uint64_t seed)
{
	*blocks = (struct blocks){.random = seed * 0x9e3779b97f4a7c15u + 1};
}

void blocks_step(struct blocks *blocks, unsigned times)
{
	while (times-- > 0) {
		size_t slot = draw(blocks) % BLOCKS, size;
		void *bytes;

		if (blocks->block[slot].at) {
			if (draw(blocks) % 4 == 0)
				resize(blocks, slot);
			else
				give_back(blocks, slot);
			continue;
		}
		if (draw(blocks) % 64 == 0 && !blocks->modest)
			impossible();
		size = draw_size(blocks);
		bytes = take(blocks, size);
		if (!bytes || malloc_usable_size(bytes) < size)
			fleet_wrong("no block, or too small a one");
		fill(blocks, slot, bytes, size);
		blocks->live++;
	}
}

void blocks_check(const struct blocks *blocks)
{
	uint64_t live = 0;

	for (size_t i = 0; i < BLOCKS; i++) {
		if (!blocks->block[i].at)
			continue;
		live++;
		compare(blocks->block[i].at, blocks->block[i].size, blocks->block[i].pattern);
	}
	if (live != blocks->live)
		fleet_wrong("blocks are miscounted");
}

void blocks_deinit(struct blocks *blocks)
{
	blocks_check(blocks);
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks->block[i].at)
			give_back(blocks, i);
	if (blocks->live != 0)
		fleet_wrong("blocks are miscounted at the end");
}

// SPDX-License-Identifier: MIT
/* arena.c: chunks handed out from the front, and an index of the strings in them. */
#include "view/arena.h"

#include "base/index.h"
#include "base/vector.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define CHUNK_SIZE ((size_t)64 * 1024)

struct chunk {
	struct chunk *next;
	alignas(max_align_t) unsigned char bytes[];
};

struct mw_arena {
	struct chunk *chunks;
	unsigned char *free; /* in the newest small chunk */
	size_t left;
	const char **strings;
	size_t capacity;
	struct mw_index index; /* of the strings */
	bool failed;
};

struct mw_arena *mw_arena_create(void)
{
	return calloc(1, sizeof(struct mw_arena));
}

void mw_arena_destroy(struct mw_arena *arena)
{
	struct chunk *chunk, *next;

	if (!arena)
		return;
	for (chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	mw_index_deinit(&arena->index);
	free(arena->strings);
	free(arena);
}

static struct chunk *add_chunk(struct mw_arena *arena, size_t size)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk) + size);

	if (!chunk)
		return NULL;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

static void *take(struct mw_arena *arena, size_t size, size_t align)
{
	size_t pad = arena->free ? (size_t)(-(uintptr_t)arena->free) & (align - 1) : 0;
	struct chunk *chunk;
	void *taken;

	if (pad + size > arena->left) {
		/* What would waste much of a chunk gets one of its own; the begun one stays in use. */
		chunk = add_chunk(arena, size > CHUNK_SIZE / 8 ? size : CHUNK_SIZE);
		if (!chunk)
			return NULL;
		if (size > CHUNK_SIZE / 8)
			return chunk->bytes;
		arena->free = chunk->bytes;
		arena->left = CHUNK_SIZE;
		pad = 0;
	}
	taken = arena->free + pad;
	arena->free += pad + size;
	arena->left -= pad + size;
	return taken;
}

void *mw_arena_array(struct mw_arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX / 2)
		return NULL;
	return take(arena, bytes ? bytes : 1, alignof(max_align_t));
}

static uint32_t hash_of(const char *text, size_t length)
{
	return (uint32_t)XXH64(text, length, 0);
}

static uint32_t hash_of_string(const void *strings, uint32_t number)
{
	const char *text = ((const char *const *)strings)[number];

	return hash_of(text, strlen(text));
}

const char *mw_arena_string(struct mw_arena *arena, const char *text)
{
	uint32_t hash, number;
	size_t length;
	char *copy;

	if (!text)
		return NULL;
	length = strlen(text);
	hash = hash_of(text, length);
	MW_INDEX_EACH(&arena->index, hash, number)
		if (strcmp(arena->strings[number], text) == 0)
			return arena->strings[number];
	copy = mw_index_reserve(&arena->index, hash_of_string, arena->strings) &&
			       MW_VECTOR_ROOM(arena->strings, arena->index.count, arena->capacity)
		       ? take(arena, length + 1, 1)
		       : NULL;
	if (!copy) {
		arena->failed = true;
		return NULL;
	}
	arena->strings[mw_index_put(&arena->index, hash)] = memcpy(copy, text, length + 1);
	return copy;
}

bool mw_arena_failed(const struct mw_arena *arena)
{
	return arena->failed;
}

// SPDX-License-Identifier: MIT
/* arena.c: chunks handed out from the front, and an open hash table of the strings in them. */
#include "view/arena.h"

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
	const char **strings; /* power of two slots, at most half of them used */
	size_t slots, used;
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

static size_t find_slot(const char *const *strings, size_t slots, const char *text, size_t length)
{
	size_t slot = (size_t)XXH64(text, length, 0) & (slots - 1);

	while (strings[slot] && strcmp(strings[slot], text) != 0)
		slot = (slot + 1) & (slots - 1);
	return slot;
}

static bool grow_strings(struct mw_arena *arena)
{
	size_t slots = arena->slots ? arena->slots * 2 : 256;
	const char **strings = calloc(slots, sizeof(*strings));

	if (!strings)
		return false;
	for (size_t i = 0; i < arena->slots; i++) {
		const char *text = arena->strings[i];

		if (text)
			strings[find_slot(strings, slots, text, strlen(text))] = text;
	}
	free(arena->strings);
	arena->strings = strings;
	arena->slots = slots;
	return true;
}

const char *mw_arena_string(struct mw_arena *arena, const char *text)
{
	size_t length, slot;
	char *copy;

	if (!text)
		return NULL;
	if (arena->used * 2 >= arena->slots && !grow_strings(arena)) {
		arena->failed = true;
		return NULL;
	}
	length = strlen(text);
	slot = find_slot(arena->strings, arena->slots, text, length);
	if (arena->strings[slot])
		return arena->strings[slot];
	copy = take(arena, length + 1, 1);
	if (!copy) {
		arena->failed = true;
		return NULL;
	}
	memcpy(copy, text, length + 1);
	arena->strings[slot] = copy;
	arena->used++;
	return copy;
}

bool mw_arena_failed(const struct mw_arena *arena)
{
	return arena->failed;
}

// SPDX-License-Identifier: MIT
/*
 * glibc_cached.c: chunks that look in use and are not: those in fast bins and threads' caches (glibc_layout.h).
 *
 * Both are lists through the chunks' first words. From glibc 2.32 on a link is mangled: the address it is at, shifted
 * right by 12, is mixed in. Both readings are tried: the wrong one leads nowhere.
 *
 * A thread's cache (tcache) is a block of the heap: 64 counts, of two bytes (up to 2.29 one), and 64 lists, of blocks
 * of chunks of 32 bytes, 48, … From 2.42 on it is another, which is not known here: its chunks count as in use.
 */
#include "alloc/glibc_layout.h"

#include <string.h>

#define CACHE_BINS   64u
#define LONGEST_LIST (UINT64_C(1) << 22)

static uint64_t word(const unsigned char *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static unsigned count_at(const unsigned char *cache, size_t size, unsigned bin)
{
	if (size == GLIBC_CACHE_SIZE_OLD)
		return cache[bin];
	return cache[2 * bin] | (unsigned)cache[2 * bin + 1] << 8;
}

static mw_addr entry_at(const unsigned char *cache, size_t size, unsigned bin)
{
	return word(cache, size - CACHE_BINS * sizeof(uint64_t) + bin * sizeof(uint64_t));
}

bool glibc_looks_like_cache(const void *bytes, size_t size)
{
	bool any = false;

	for (unsigned bin = 0; bin < CACHE_BINS; bin++) {
		mw_addr entry = entry_at(bytes, size, bin);
		unsigned count = count_at(bytes, size, bin);

		if (!count != !entry || entry % GLIBC_ALIGNMENT)
			return false;
		any = any || count;
	}
	return any;
}

/* A list that is followed. */
struct list {
	struct glibc_window *window;
	struct mw_glibc_arenas *arenas;
	uint64_t chunk_size; /* of each on it */
	unsigned head;       /* how far links point into a chunk: to its start or to its block */
};

static bool may_follow(const struct list *list, mw_addr at)
{
	return !at || (at % GLIBC_ALIGNMENT == 0 && mw_glibc_arena_of(list->window->process, list->arenas, at));
}

/* The next on the list behind `at`, 0 at its end; false where that is no chunk of such a list. */
static bool step(const struct list *list, mw_addr at, mw_addr *next)
{
	mw_addr chunk = at - list->head;
	const unsigned char *bytes = glibc_window_at(list->window, chunk, 16, 0);
	uint64_t link;

	if (at < list->head || !bytes || (word(bytes, 8) & ~GLIBC_FLAGS) != list->chunk_size)
		return false;
	bytes = glibc_window_at(list->window, chunk + 16, 8, 0);
	if (!bytes)
		return false;
	link = word(bytes, 0);
	*next = link ^ (chunk + 16) >> 12;
	if (may_follow(list, *next))
		return true;
	*next = link;
	return may_follow(list, link);
}

uint64_t glibc_fast_bytes(struct glibc_window *window, struct mw_glibc_arenas *arenas,
			  const struct mw_glibc_arena *arena, uint64_t most)
{
	mw_addr offset = arena->bins - arena->state;
	uint64_t heads[GLIBC_FAST_BINS], sum = 0;
	const struct mw_glibc_process *process = window->process;

	if ((offset != GLIBC_BINS_AT && offset != GLIBC_BINS_AT_OLD) ||
	    process->read(process->context, arena->bins + (mw_addr)GLIBC_FAST, heads, sizeof(heads)) != sizeof(heads))
		return 0;
	for (unsigned bin = 0; bin < GLIBC_FAST_BINS; bin++) {
		struct list list = {.window = window, .arenas = arenas, .chunk_size = GLIBC_LEAST + 16 * bin};
		mw_addr at = heads[bin];

		for (uint64_t i = 0; at && i < LONGEST_LIST && sum <= most && step(&list, at, &at); i++)
			sum += list.chunk_size;
	}
	return sum;
}

/* A list of exactly `count`; false where it is not. */
static bool is_list(const struct list *list, mw_addr first, unsigned count)
{
	mw_addr at = first;

	for (unsigned i = 0; i < count; i++)
		if (!at || !step(list, at, &at))
			return false;
	return !at;
}

void glibc_take_cache(struct glibc_window *window, struct mw_glibc_arenas *arenas, mw_addr cache)
{
	const struct mw_glibc_process *process = window->process;
	unsigned char bytes[GLIBC_CACHE_SIZE];
	uint64_t head;
	size_t size;

	if (process->read(process->context, cache - 8, &head, sizeof(head)) != sizeof(head))
		return;
	size = (head & ~GLIBC_FLAGS) - 16;
	if ((size != GLIBC_CACHE_SIZE && size != GLIBC_CACHE_SIZE_OLD) ||
	    process->read(process->context, cache, bytes, size) != size || !glibc_looks_like_cache(bytes, size))
		return;
	for (unsigned bin = 0; bin < CACHE_BINS; bin++) {
		struct list list = {window, arenas, GLIBC_LEAST + 16 * bin, 16};
		unsigned count = count_at(bytes, size, bin);
		mw_addr at = entry_at(bytes, size, bin);

		if (!count || !may_follow(&list, at) || !is_list(&list, at, count))
			continue;
		for (unsigned i = 0; i < count && at; i++) {
			struct mw_glibc_arena *arena = mw_glibc_arena_of(process, arenas, at);

			if (arena && arena->figures.size != MW_SIZE_UNKNOWN && arena->figures.used >= list.chunk_size) {
				arena->figures.used -= list.chunk_size;
				arena->figures.free += list.chunk_size;
			}
			if (!step(&list, at, &at))
				break;
		}
	}
}

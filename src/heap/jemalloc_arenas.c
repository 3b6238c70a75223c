// SPDX-License-Identifier: MIT
/*
 * jemalloc_arenas.c: jemalloc's arenas, their base blocks, and the threads' caches (jemalloc.h).
 *
 *      arena + a    first tcache_slow, and 16 behind it its descriptor: two lists through the same caches
 *      arena + b    base
 *      tcache_slow  0 next, 8 previous, 16 next and 24 previous descriptor, 32 bins, 40 arena
 *      cache_bin    0 head, 8 requests, 16 low water, 18 full, 20 empty (low 16 bits of addresses)
 *      base         0 index of its arena, … blocks
 *      base block   0 size, 8 next, 16 edata of what is left of it
 *
 * Where a and b are depends on how jemalloc was built; they are the same for all arenas. A cache that is not found has its
 * blocks taken for live, but it also has pointers to them, so none of them is lost.
 */
#include "heap/jemalloc.h"

#include "base/cleanup.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_WORDS  ((size_t)32 << 10) /* of an arena that are looked through */
#define BASE_WORDS   64u
#define MAX_BLOCKS   (1u << 20)
#define MAX_CACHES   (1u << 20) /* of an arena */
#define SLOW_BINS    32u
#define SLOW_ARENA   40u
#define BIN_CLASSES  73u                 /* at most: sizes up to 8 MiB */
#define OWNER_WITHIN ((uint64_t)1 << 20) /* of the thread pointer stands what is thread-local */

struct cache_bin {
	uint64_t head, requests;
	uint16_t low_water, full, empty, padding;
};

struct base_block {
	uint64_t size, next, bits, addr, rest;
};

struct search {
	struct je_heap *heap;
	mw_addr array;             /* of arenas */
	size_t caches_at, base_at; /* in an arena */
};

static bool is_own_memory(const struct je_heap *heap, mw_addr at, unsigned alignment)
{
	const struct mw_image_mapping *mapping;

	if (!at || at % alignment || je_extent_of(heap, at))
		return false;
	mapping = mw_image_mapping_of(heap->image, at);
	return mapping && mapping->write && mapping->read && !mapping->shared && !mapping->inode;
}

/* --- base blocks ---------------------------------------------------------------------------------------------------------- */

static bool read_block(const struct je_heap *heap, mw_addr at, struct base_block *out)
{
	return is_own_memory(heap, at, JE_PAGE) && mw_reader_read(heap->reader, at, out, sizeof(*out)) && out->size &&
	       out->size % JE_PAGE == 0 && out->size < UINT64_C(1) << 40 && out->addr > at &&
	       out->addr + out->rest == at + out->size;
}

/* Does a chain of blocks begin at `first`, of which the last has `base` in it, and one has `arena`? */
static bool is_chain(const struct je_heap *heap, mw_addr first, mw_addr base, mw_addr arena)
{
	struct base_block block = {.next = first};
	bool has_arena = false;

	for (unsigned i = 0; i < MAX_BLOCKS && block.next; i++) {
		mw_addr at = block.next;

		if (!read_block(heap, at, &block))
			return false;
		has_arena |= arena - at < block.size;
		if (!block.next)
			return has_arena && base - at < block.size;
	}
	return false;
}

/* The first block of an arena's base; 0: it is none. */
static mw_addr first_block(const struct je_heap *heap, mw_addr base, mw_addr arena, uint32_t *index)
{
	uint64_t words[BASE_WORDS];

	if (!is_own_memory(heap, base, 64) || !mw_reader_read(heap->reader, base, words, sizeof(words)) ||
	    (uint32_t)words[0] >= JE_MAX_ARENAS)
		return 0;
	for (size_t i = 1; i < BASE_WORDS; i++)
		if (words[i] && words[i] % JE_PAGE == 0 && is_chain(heap, words[i], base, arena)) {
			*index = (uint32_t)words[0];
			return words[i];
		}
	return 0;
}

static struct mw_error *add_base_blocks(struct je_heap *heap)
{
	MW_EACH(arena, heap->arenas, JE_MAX_ARENAS) {
		struct base_block block = {0};
		uint32_t index, number;

		if (!arena->at)
			continue;
		MW_TRY(je_arena_number(heap, (unsigned)(arena - heap->arenas), &number));
		block.next = first_block(heap, arena->base, arena->at, &index);
		for (unsigned i = 0; i < MAX_BLOCKS && block.next; i++) {
			mw_addr at = block.next;

			if (!read_block(heap, at, &block))
				break;
			MW_TRY(mw_blocks_add_bookkeeping(heap->blocks, number, at, at + block.size));
		}
	}
	return NULL;
}

/* --- arenas --------------------------------------------------------------------------------------------------------------- */

/* Where in the arena at `at` its list of caches is: two words that lead to one cache, which says whose it is. */
static bool find_caches(struct search *search, mw_addr at)
{
	struct mw_reader *reader = search->heap->reader;
	uint64_t before = 0, word, owner;

	for (size_t i = 0; i < ARENA_WORDS && mw_reader_word(reader, at + i * 8, &word); before = word, i++)
		if (before && word == before + 16 && mw_reader_word(reader, before + SLOW_ARENA, &owner) &&
		    owner == at) {
			search->caches_at = (i - 1) * 8;
			return true;
		}
	return false;
}

static bool find_base(struct search *search, mw_addr at, uint32_t *index)
{
	uint64_t word;

	for (size_t i = 0; i < ARENA_WORDS && mw_reader_word(search->heap->reader, at + i * 8, &word); i++)
		if (word % 64 == 0 && first_block(search->heap, word, at, index)) {
			search->base_at = i * 8;
			return true;
		}
	return false;
}

/* Is the word at `place` that of an arena with caches? */
static bool leads_to_arenas(struct search *search, mw_addr place, mw_addr at)
{
	uint32_t index;

	if (!is_own_memory(search->heap, at, 64) || !find_caches(search, at) || !find_base(search, at, &index))
		return false;
	search->array = place - (mw_addr)index * 8;
	return true;
}

static void take_arena(const struct search *search, unsigned index)
{
	struct je_arena *arena = &search->heap->arenas[index];
	uint32_t own;
	mw_addr base;

	arena->at = mw_reader_word_or_0(search->heap->reader, search->array + index * 8);
	if (!is_own_memory(search->heap, arena->at, 64)) {
		arena->at = 0;
		return;
	}
	base = mw_reader_word_or_0(search->heap->reader, arena->at + search->base_at);
	if (first_block(search->heap, base, arena->at, &own) && own == index)
		arena->base = base;
	else
		arena->at = 0;
}

/* The caches of an arena: the next one behind `*at`, which begins as 0. */
static bool next_cache(const struct search *search, const struct je_arena *arena, mw_addr *at)
{
	struct mw_reader *reader = search->heap->reader;
	mw_addr first = mw_reader_word_or_0(reader, arena->at + search->caches_at), next;

	next = *at ? mw_reader_word_or_0(reader, *at) : first;
	if (!next || (*at && next == first) || mw_reader_word_or_0(reader, next + SLOW_ARENA) != arena->at)
		return false;
	*at = next;
	return true;
}

/* --- caches --------------------------------------------------------------------------------------------------------------- */

/* The thread that has the cache among its thread-local variables, or NULL. */
static const struct mw_image_thread *owner_of(const struct mw_image *image, mw_addr cache)
{
	const struct mw_image_thread *owner = NULL;

	MW_EACH(thread, image->threads, image->thread_count)
		if (thread->thread_pointer > cache && thread->thread_pointer - cache < OWNER_WITHIN &&
		    (!owner || thread->thread_pointer < owner->thread_pointer))
			owner = thread;
	return owner;
}

static void take_free(struct je_heap *heap, mw_addr block, unsigned size_class)
{
	const struct je_extent *extent = je_extent_of(heap, block);

	if (extent && extent->span != MW_BLOCK_NONE && extent->size_class == size_class &&
	    mw_span_set_live(heap->blocks, extent->span, block, false))
		mw_blocks_allocator_mutable(heap->blocks, heap->allocator)->cached += je_size_of_class(size_class);
}

/* The memory of a cache's stacks is a block itself, and the allocator's own. */
static void take_stacks(struct je_heap *heap, mw_addr head)
{
	const struct je_extent *extent = je_extent_of(heap, head);

	if (!extent || extent->span == MW_BLOCK_NONE)
		return;
	mw_span_set_live(heap->blocks, extent->span,
			 extent->slab ? head - (head - extent->start) % je_size_of_class(extent->size_class)
				      : extent->block,
			 false);
}

/*
 * Set free what a cache has in its bins. A thread that stands in jemalloc may just have filled one whose head does not yet
 * say so: then the stacks, which have pointers to these blocks, stay a live block.
 */
static void take_cache(struct je_heap *heap, mw_addr cache)
{
	const struct mw_image_thread *owner = owner_of(heap->image, cache);
	bool keep = owner && mw_walk_is_inside(heap->reader, heap->image, heap->file, owner);
	mw_addr bins = mw_reader_word_or_0(heap->reader, cache + SLOW_BINS), stacks = 0;
	struct cache_bin bin;
	uint16_t empty = 0;

	for (unsigned i = 0; i < BIN_CLASSES && mw_reader_read(heap->reader, bins + i * sizeof(bin), &bin, sizeof(bin));
	     i++) {
		uint16_t size = (uint16_t)(bin.empty - (uint16_t)bin.head);
		uint64_t block;

		if (!bin.head || bin.head % 8 || size % 8)
			break;
		/* Stacks follow one another; what is between them are blocks that are kept from use for a while. */
		keep |= i && bin.full != empty;
		empty = bin.empty;
		if (!i)
			stacks = bin.head;
		for (mw_addr at = bin.head; at < bin.head + size && mw_reader_word(heap->reader, at, &block); at += 8)
			take_free(heap, block, i);
	}
	if (!keep && stacks)
		take_stacks(heap, stacks);
}

static void take_caches(const struct search *search, const struct je_arena *arena)
{
	mw_addr at = 0;

	for (unsigned i = 0; i < MAX_CACHES && next_cache(search, arena, &at); i++)
		take_cache(search->heap, at);
}

/* --- all of it -------------------------------------------------------------------------------------------------------------- */

static bool find_array(struct search *search, struct mw_walk_data *data)
{
	*data = (struct mw_walk_data){
		.image = search->heap->image, .file = search->heap->file, .mapping = search->heap->file->first};
	while (mw_walk_next_data(data))
		for (size_t i = 0; i < data->count; i++)
			if (data->words[i] && leads_to_arenas(search, data->start + i * 8, data->words[i]))
				return true;
	return false;
}

struct mw_error *je_arenas_take(struct je_heap *heap)
{
	struct search search = {.heap = heap};
	MW_FREE struct mw_walk_data *data = malloc(sizeof(*data));

	if (!data)
		return mw_error_nomem();
	if (!find_array(&search, data))
		return NULL;
	for (unsigned i = 0; i < JE_MAX_ARENAS; i++)
		take_arena(&search, i);
	MW_EACH(arena, heap->arenas, JE_MAX_ARENAS)
		if (arena->at)
			take_caches(&search, arena);
	return add_base_blocks(heap);
}

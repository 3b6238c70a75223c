// SPDX-License-Identifier: MIT
/* glibc_chunks.c: chunks, and lists of them (glibc_chunks.h). */
#include "alloc/glibc_chunks.h"

#include "alloc/glibc_layout.h"
#include "base/clock.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define FENCE        16u
#define MAX_CACHES   65536u
#define PAGE         4096u
#define LOOKS        4096u /* from one at the clock to the next */
#define LONGEST_LIST (UINT64_C(1) << 22)

/* --- memory, read page by page or more at once ------------------------------------------------------------------ */

void mw_glibc_window_forget(struct mw_glibc_window *window)
{
	window->size = 0;
}

static bool is_late(struct mw_glibc_window *window)
{
	window->late = window->late || (window->most_looks && window->looks > window->most_looks) ||
		       (window->deadline_ns != UINT64_MAX && mw_clock_ns() > window->deadline_ns);
	return window->late;
}

static bool fill(struct mw_glibc_window *window, mw_addr addr, uint64_t ahead)
{
	const struct mw_glibc_process *process = window->process;
	mw_addr start = addr & ~(mw_addr)(PAGE - 1);
	size_t wanted = PAGE;

	if (is_late(window))
		return false;
	if (ahead > PAGE)
		wanted = ahead < MW_GLIBC_WINDOW ? ((size_t)ahead + PAGE - 1) & ~(size_t)(PAGE - 1) : MW_GLIBC_WINDOW;
	window->start = start;
	window->size = process->read(process->context, start, window->bytes, wanted);
	return window->size != 0;
}

static bool holds(const struct mw_glibc_window *window, mw_addr addr, size_t size)
{
	mw_addr offset = addr - window->start;

	return offset < window->size && size <= window->size - offset;
}

const void *mw_glibc_window_at(struct mw_glibc_window *window, mw_addr addr, size_t size, uint64_t ahead)
{
	if (++window->looks % LOOKS == 0)
		(void)is_late(window);
	if (window->late)
		return NULL;
	if (!holds(window, addr, size) && (!fill(window, addr, ahead) || !holds(window, addr, size)))
		return NULL;
	return window->bytes + (addr - window->start);
}

/* --- chunks ----------------------------------------------------------------------------------------------------- */

bool mw_glibc_is_chunk(const struct mw_glibc_stretch *stretch, mw_addr at, uint64_t head)
{
	uint64_t size = head & ~GLIBC_FLAGS;

	return !(head & stretch->foreign) && size >= GLIBC_LEAST && size % GLIBC_ALIGNMENT == 0 &&
	       size <= stretch->end - at;
}

mw_addr mw_glibc_first_chunk(const struct mw_glibc_arena *arena, const struct mw_glibc_heap *heap)
{
	mw_addr after = arena->state - heap->start < MW_GLIBC_HEAP_SIZE
				? arena->bins + GLIBC_STATE_END
				: heap->start + arena->state % MW_GLIBC_HEAP_SIZE;

	return (after + GLIBC_ALIGNMENT - 1) & ~(mw_addr)(GLIBC_ALIGNMENT - 1);
}

static void visit(const struct mw_glibc_visitor *visitor, mw_addr at, uint64_t size, enum mw_glibc_kind kind,
		  uint64_t torn)
{
	const struct mw_glibc_chunk chunk = {at, size, kind, torn};

	if (visitor)
		visitor->chunk(visitor->context, &chunk);
}

/* The chunk before `run->at` ends there, as the header there says. Of a free one both ends have the size. */
static void tell_before(const struct mw_glibc_visitor *visitor, const struct mw_glibc_run *run, const uint64_t *header,
			bool last)
{
	uint64_t size = run->before, behind = header[0];
	mw_addr at = run->at - size;

	if (!size)
		return;
	if (!(header[1] & GLIBC_PREV_INUSE))
		visit(visitor, at, size, MW_GLIBC_FREE, size > behind ? size - behind : behind - size);
	else
		visit(visitor, at, size, last && size == GLIBC_LEAST ? MW_GLIBC_FENCE : MW_GLIBC_USED, 0);
}

enum mw_glibc_outcome mw_glibc_run_on(struct mw_glibc_window *window, const struct mw_glibc_stretch *stretch,
				      const struct mw_glibc_visitor *visitor, struct mw_glibc_run *run)
{
	while (stretch->end - run->at >= FENCE) {
		/* A large chunk's inside need not be read, and what was never touched is better not. */
		uint64_t left = (stretch->top > run->at ? stretch->top : stretch->end) - run->at;
		const uint64_t *header =
			mw_glibc_window_at(window, run->at, 16, run->before < PAGE && left > FENCE ? left : FENCE);
		uint64_t size;
		bool is_chunk, is_last;

		if (!header)
			return MW_GLIBC_TORN;
		size = header[1] & ~GLIBC_FLAGS;
		is_chunk = mw_glibc_is_chunk(stretch, run->at, header[1]);
		/* Also where it has grown to here since we asked. */
		if (is_chunk && (run->at == stretch->top || (stretch->top && size == stretch->end - run->at))) {
			tell_before(visitor, run, header, false);
			visit(visitor, run->at, stretch->end - run->at, MW_GLIBC_TOP, 0);
			return MW_GLIBC_WHOLE;
		}
		is_last = !size && stretch->end - run->at == FENCE;
		if (size == FENCE || is_last) {
			tell_before(visitor, run, header, is_last);
			run->at += FENCE;
			run->before = 0;
			return MW_GLIBC_FENCED;
		}
		if (!is_chunk)
			return MW_GLIBC_TORN;
		tell_before(visitor, run, header, false);
		run->at += size;
		run->before = size;
	}
	return MW_GLIBC_TORN;
}

enum mw_glibc_outcome mw_glibc_run_from_next(struct mw_glibc_window *window, const struct mw_glibc_stretch *stretch,
					     const struct mw_glibc_visitor *visitor, mw_addr from, uint64_t gap,
					     struct mw_glibc_run *out)
{
	mw_addr last = stretch->end - from > gap ? from + gap : stretch->end - FENCE;

	for (mw_addr at = from; at <= last && !window->late; at += GLIBC_ALIGNMENT) {
		const uint64_t *header = mw_glibc_window_at(window, at, 16, 65536);
		struct mw_glibc_run run = {.start = at, .at = at};
		enum mw_glibc_outcome outcome;

		if (!header)
			return MW_GLIBC_TORN;
		if (!(header[1] & GLIBC_PREV_INUSE) || !mw_glibc_is_chunk(stretch, at, header[1]))
			continue;
		if (visitor && visitor->begin)
			visitor->begin(visitor->context);
		outcome = mw_glibc_run_on(window, stretch, visitor, &run);
		if (outcome != MW_GLIBC_TORN) {
			*out = run;
			return outcome;
		}
	}
	return MW_GLIBC_TORN;
}

/*
 * --- lists ------------------------------------------------------------------------------------------------------
 *
 * They go through the chunks' first words. From glibc 2.32 on a link is mangled: the address it is at, shifted right by
 * 12, is mixed in. Both readings are tried: the wrong one leads nowhere.
 */

/* A list that is followed. */
struct list {
	struct mw_glibc_window *window;
	const struct mw_glibc_members *members;
	uint64_t least, most; /* bytes of each chunk on it */
	unsigned head;        /* how far links point into a chunk: to its start or to its block */
	uint64_t *key;        /* what each block on it has as its second word; 0: not known yet. NULL: nothing */
};

static bool may_follow(const struct list *list, mw_addr at)
{
	return !at || (at % GLIBC_ALIGNMENT == 0 && list->members->may_hold(list->members->context, at));
}

/* The next on the list behind `at`, 0 at its end, and the size of the one at `at`; false where that is no chunk of such
 * a list. */
static bool step(const struct list *list, mw_addr at, mw_addr *next, uint64_t *size)
{
	mw_addr chunk = at - list->head;
	const unsigned char *bytes = mw_glibc_window_at(list->window, chunk, 16, 0);
	uint64_t link;

	if (at < list->head || !bytes)
		return false;
	*size = glibc_word(bytes, 8) & ~GLIBC_FLAGS;
	if (*size < list->least || *size > list->most)
		return false;
	bytes = mw_glibc_window_at(list->window, chunk + 16, 16, 0);
	if (!bytes)
		return false;
	if (list->key && !*list->key)
		*list->key = glibc_word(bytes, 8);
	if (list->key && (!*list->key || glibc_word(bytes, 8) != *list->key))
		return false;
	link = glibc_word(bytes, 0);
	*next = link ^ (chunk + 16) >> 12;
	if (may_follow(list, *next))
		return true;
	*next = link;
	return may_follow(list, link);
}

bool mw_glibc_fast_chunks(struct mw_glibc_window *window, const struct mw_glibc_arena *arena,
			  const struct mw_glibc_members *members)
{
	mw_addr offset = arena->bins - arena->state;
	uint64_t heads[GLIBC_FAST_BINS], size;
	bool good = true;

	if (offset != GLIBC_BINS_AT && offset != GLIBC_BINS_AT_OLD)
		return true;
	if (!glibc_read(window->process, arena->bins + (mw_addr)GLIBC_FAST, heads, sizeof(heads)))
		return false;
	for (unsigned bin = 0; bin < GLIBC_FAST_BINS; bin++) {
		const uint64_t chunk = GLIBC_LEAST + 16 * bin;
		struct list list = {window, members, chunk, chunk, 0, NULL};
		mw_addr at = heads[bin], next;
		uint64_t i;

		for (i = 0; at && i < LONGEST_LIST && may_follow(&list, at) && step(&list, at, &next, &size); i++) {
			if (!members->each(members->context, at, size))
				return good;
			at = next;
		}
		good = good && !at;
	}
	return good;
}

/*
 * A thread's cache (tcache) is a block of the heap: counts, and lists of blocks of chunks of 32 bytes, 48, …, from 2.42 on
 * also of larger ones by powers of two. Then a count is how many more there may be on a list, and all lists may have
 * equally many. From 2.29 on the second word of each block in a cache is the cache's address, from 2.34 on a random
 * number that the process has for all.
 */
static const struct cache_layout {
	unsigned size; /* bytes that it has to have */
	unsigned bins, count_bytes;
	bool slots; /* counts are of what there is room for */
	bool keys;  /* for certain: not 2.26 to 2.28 */
} cache_layouts[] = {
	{0x240, 64, 1, false, false}, /* glibc 2.26 */
	{0x280, 64, 2, false, true},  /* 2.30 */
	{0x2f8, 76, 2, true, true},   /* 2.42 */
};

#define CACHE_MOST  0x2f8u
#define CACHE_BINS  76u
#define CACHE_SMALL 64u /* bins of one size each */
#define MANY_BLOCKS 8u
#define BLOCK_AT    16u /* from a chunk to its block */

/* What a block would have to be, by its chunk's size; NULL: no cache. A rest of 16 bytes is not cut off. */
static const struct cache_layout *layout_of(uint64_t size)
{
	MW_EACH(layout, cache_layouts, sizeof(cache_layouts) / sizeof(cache_layouts[0])) {
		uint64_t least =
			(layout->size + sizeof(uint64_t) + GLIBC_ALIGNMENT - 1) & ~(uint64_t)(GLIBC_ALIGNMENT - 1);

		if (size == least || size == least + GLIBC_ALIGNMENT)
			return layout;
	}
	return NULL;
}

static unsigned count_at(const struct cache_layout *layout, const unsigned char *cache, unsigned bin)
{
	return layout->count_bytes == 1 ? cache[bin] : cache[2 * bin] | (unsigned)cache[2 * bin + 1] << 8;
}

static mw_addr entry_at(const struct cache_layout *layout, const unsigned char *cache, unsigned bin)
{
	return glibc_word(cache, (size_t)layout->bins * layout->count_bytes + bin * sizeof(uint64_t));
}

/* How many each list may have, where counts are of what there is room for: an empty one shows it. 0: none is empty. */
static unsigned slots_of(const struct cache_layout *layout, const unsigned char *cache)
{
	for (unsigned bin = 0; bin < layout->bins && layout->slots; bin++)
		if (!entry_at(layout, cache, bin))
			return count_at(layout, cache, bin);
	return 0;
}

static unsigned length_at(const struct cache_layout *layout, const unsigned char *cache, unsigned slots, unsigned bin)
{
	unsigned count = count_at(layout, cache, bin);

	if (layout->slots)
		return slots > count ? slots - count : 0;
	return count;
}

/* Is the block a thread's cache that is not empty? */
static bool looks_like_cache(const struct cache_layout *layout, const unsigned char *cache)
{
	unsigned slots = slots_of(layout, cache);
	bool any = false;

	for (unsigned bin = 0; bin < layout->bins; bin++) {
		mw_addr entry = entry_at(layout, cache, bin);
		unsigned count = count_at(layout, cache, bin);

		if (entry % GLIBC_ALIGNMENT || (layout->slots && slots && count > slots))
			return false;
		if ((!layout->slots || slots) && !length_at(layout, cache, slots, bin) != !entry)
			return false;
		any = any || entry;
	}
	return any;
}

struct mw_error *mw_glibc_caches_see(struct mw_glibc_caches *caches, struct mw_glibc_window *window,
				     const struct mw_glibc_chunk *chunk)
{
	const struct cache_layout *layout = chunk->kind == MW_GLIBC_USED ? layout_of(chunk->size) : NULL;
	const unsigned char *bytes;

	if (!layout || caches->count >= MAX_CACHES)
		return NULL;
	/* It may reach into the next page. */
	bytes = mw_glibc_window_at(window, chunk->at + 16, layout->size, 2 * CACHE_MOST + PAGE);
	if (!bytes || !looks_like_cache(layout, bytes))
		return NULL;
	if (!MW_VECTOR_ROOM(caches->items, caches->count, caches->capacity))
		return mw_error_nomem();
	caches->items[caches->count++] = chunk->at + 16;
	return NULL;
}

/* Does the list end, after as many as that, one more, or one less? */
static bool is_list(const struct list *list, mw_addr first, unsigned length)
{
	mw_addr at = first;
	uint64_t size;
	unsigned i;

	for (i = 0; at && i <= length; i++)
		if (!may_follow(list, at) || !step(list, at, &at, &size))
			return false;
	return !at && i + 1 >= length;
}

static unsigned length_of(const struct list *list, mw_addr first)
{
	mw_addr at = first;
	uint64_t size;
	unsigned length = 0;

	while (at && length < UINT16_MAX && may_follow(list, at) && step(list, at, &at, &size))
		length++;
	return length;
}

/* A cache that is looked through. */
struct cache {
	struct list list; /* the bin's that is looked at */
	const struct cache_layout *layout;
	unsigned char bytes[CACHE_MOST];
	unsigned slots;
	uint64_t key;
	bool good[CACHE_BINS];
	unsigned good_count, bad_count, blocks;
};

/* The list of a bin, its first block, and how many it has. */
static unsigned open_bin(struct cache *cache, unsigned bin, mw_addr *first)
{
	struct list *list = &cache->list;

	list->least = list->most = GLIBC_LEAST + 16 * bin;
	if (bin >= CACHE_SMALL) {
		list->least = UINT64_C(1) << (bin - 54);
		list->most = 2 * list->least - 1;
	}
	*first = entry_at(cache->layout, cache->bytes, bin);
	if (!cache->slots && cache->layout->slots)
		cache->slots = length_of(list, *first) + count_at(cache->layout, cache->bytes, bin);
	return length_at(cache->layout, cache->bytes, cache->slots, bin);
}

static bool open_cache(struct cache *cache, mw_addr at)
{
	uint64_t head;

	if (!glibc_read(cache->list.window->process, at - 8, &head, sizeof(head)))
		return false;
	cache->layout = layout_of(head & ~GLIBC_FLAGS);
	if (!cache->layout || !glibc_read(cache->list.window->process, at, cache->bytes, cache->layout->size) ||
	    !looks_like_cache(cache->layout, cache->bytes))
		return false;
	cache->slots = slots_of(cache->layout, cache->bytes);
	cache->list.head = BLOCK_AT;
	cache->list.key = cache->layout->keys ? &cache->key : NULL;
	for (unsigned bin = 0; bin < cache->layout->bins; bin++) {
		mw_addr first;
		unsigned length = open_bin(cache, bin, &first);
		uint64_t key = cache->key;

		if (!length)
			continue;
		cache->good[bin] = is_list(&cache->list, first, length);
		if (cache->good[bin])
			cache->blocks += length;
		else
			cache->key = key;
		++*(cache->good[bin] ? &cache->good_count : &cache->bad_count);
	}
	/* A few blocks may have the same pointer or small number by chance. */
	if (cache->layout->keys && cache->key != at && !(cache->key >> 48) && cache->blocks < MANY_BLOCKS)
		return false;
	return cache->good_count > cache->bad_count;
}

unsigned mw_glibc_cache_chunks(struct mw_glibc_window *window, mw_addr at, const struct mw_glibc_members *members)
{
	struct cache cache = {.list = {.window = window, .members = members}};

	if (!open_cache(&cache, at))
		return 0;
	for (unsigned bin = 0; bin < cache.layout->bins; bin++) {
		mw_addr block, next;
		unsigned length = open_bin(&cache, bin, &block);
		uint64_t size;

		if (!cache.good[bin] && !(members->torn && cache.layout->keys))
			continue;
		for (unsigned i = 0; block && i <= length && may_follow(&cache.list, block); i++, block = next)
			if (!step(&cache.list, block, &next, &size) ||
			    !members->each(members->context, block - BLOCK_AT, size))
				break;
	}
	return cache.bad_count;
}

// SPDX-License-Identifier: MIT
/*
 * glibc_walk.c: from chunk to chunk through an arena (glibc_arenas.h).
 *
 *      main arena          [heap]:   (others' memory) | chunk | chunk | … | top |
 *      thread's arena      heap:     info, state      | chunk | chunk | … | fences |
 *                          heap:     info             | chunk | … | top |
 *
 * A chunk says in its size's lowest bit whether the one before it is in use. Where somebody else has moved the break,
 * two fences of 16 bytes end a stretch of the main arena, and the next begins somewhere behind.
 */
#include "alloc/glibc_arenas.h"

#include "alloc/glibc_layout.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define ATTEMPTS       6
#define FENCE          16u
#define MAX_GAP        (UINT64_C(4) << 20) /* of others' memory in the main arena that is looked through */
#define MAX_CACHES     65536u
#define TORN_SHARE     200 /* a walk is good if less than one part in so many did not fit together */
#define PAGE           4096u
#define WINDOW_SIZE    ((size_t)256 << 10)
#define LOOKS          4096u /* from one at the clock to the next */
#define CACHE_BINS     64u
#define LONGEST_LIST   (UINT64_C(1) << 22)
#define CACHE_SIZE     0x280u /* of the block: glibc 2.30 to 2.41 … */
#define CACHE_SIZE_OLD 0x240u /* … and from 2.26 on */

/* --- memory of a process, read page by page or more at once ------------------------------------------------ */

/* A view of memory through pages that were read before. */
struct window {
	const struct mw_glibc_process *process;
	uint64_t deadline_ns;
	bool late;      /* the deadline is over */
	unsigned looks; /* a list may lead round and round within what was read */
	mw_addr start;
	size_t size;
	unsigned char *bytes;
};

/* What was read is forgotten. */
static void window_forget(struct window *window)
{
	window->size = 0;
}

static bool is_late(struct window *window)
{
	window->late = window->late || mw_clock_ns() > window->deadline_ns;
	return window->late;
}

static bool fill(struct window *window, mw_addr addr, uint64_t ahead)
{
	const struct mw_glibc_process *process = window->process;
	mw_addr start = addr & ~(mw_addr)(PAGE - 1);
	size_t wanted = PAGE;

	if (is_late(window))
		return false;
	if (ahead > PAGE)
		wanted = ahead < WINDOW_SIZE ? ((size_t)ahead + PAGE - 1) & ~(size_t)(PAGE - 1) : WINDOW_SIZE;
	window->start = start;
	window->size = process->read(process->context, start, window->bytes, wanted);
	return window->size != 0;
}

static bool holds(const struct window *window, mw_addr addr, size_t size)
{
	return addr >= window->start && addr - window->start < window->size &&
	       size <= window->size - (addr - window->start);
}

/*
 * `size` bytes (a page at most) at `addr`; NULL where they can't be read or it is too late. Good until the
 * next call. `ahead`: bytes from `addr` on that will be asked for next, most likely, and may be read at once: at least
 * what reaches into another page.
 */
static const void *window_at(struct window *window, mw_addr addr, size_t size, uint64_t ahead)
{
	if (++window->looks % LOOKS == 0 && is_late(window))
		return NULL;
	if (!holds(window, addr, size) && (!fill(window, addr, ahead) || !holds(window, addr, size)))
		return NULL;
	return window->bytes + (addr - window->start);
}

/*
 * --- chunks that look in use and are not: those in fast bins and threads' caches --------------------------------
 *
 * Both are lists through the chunks' first words. From glibc 2.32 on a link is mangled: the address it is at, shifted
 * right by 12, is mixed in. Both readings are tried: the wrong one leads nowhere.
 *
 * A thread's cache (tcache) is a block of the heap: 64 counts, of two bytes (up to 2.29 one), and 64 lists, of blocks
 * of chunks of 32 bytes, 48, … From 2.42 on it is another, which is not known here: its chunks count as in use.
 */

static unsigned count_at(const unsigned char *cache, size_t size, unsigned bin)
{
	if (size == CACHE_SIZE_OLD)
		return cache[bin];
	return cache[2 * bin] | (unsigned)cache[2 * bin + 1] << 8;
}

static mw_addr entry_at(const unsigned char *cache, size_t size, unsigned bin)
{
	return glibc_word(cache, size - CACHE_BINS * sizeof(uint64_t) + bin * sizeof(uint64_t));
}

/* Is the block, of that many bytes, a thread's cache that is not empty? `bytes` are the block's. */
static bool looks_like_cache(const void *bytes, size_t size)
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
	struct window *window;
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
	const unsigned char *bytes = window_at(list->window, chunk, 16, 0);
	uint64_t link;

	if (at < list->head || !bytes || (glibc_word(bytes, 8) & ~GLIBC_FLAGS) != list->chunk_size)
		return false;
	bytes = window_at(list->window, chunk + 16, 8, 0);
	if (!bytes)
		return false;
	link = glibc_word(bytes, 0);
	*next = link ^ (chunk + 16) >> 12;
	if (may_follow(list, *next))
		return true;
	*next = link;
	return may_follow(list, link);
}

/* The bytes of chunks that an arena's fast bins hold; more than `most` where they make no sense. */
static uint64_t fast_bytes(struct window *window, struct mw_glibc_arenas *arenas, const struct mw_glibc_arena *arena,
			   uint64_t most)
{
	mw_addr offset = arena->bins - arena->state;
	uint64_t heads[GLIBC_FAST_BINS], sum = 0;

	if ((offset != GLIBC_BINS_AT && offset != GLIBC_BINS_AT_OLD) ||
	    !glibc_read(window->process, arena->bins + (mw_addr)GLIBC_FAST, heads, sizeof(heads)))
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

/* Move the chunks that a thread's cache holds from used to free, each in its own arena. */
static void take_cache(struct window *window, struct mw_glibc_arenas *arenas, mw_addr cache)
{
	const struct mw_glibc_process *process = window->process;
	unsigned char bytes[CACHE_SIZE];
	uint64_t head;
	size_t size;

	if (!glibc_read(process, cache - 8, &head, sizeof(head)))
		return;
	size = (head & ~GLIBC_FLAGS) - 16;
	if ((size != CACHE_SIZE && size != CACHE_SIZE_OLD) || !glibc_read(process, cache, bytes, size) ||
	    !looks_like_cache(bytes, size))
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

/* --- the walk ------------------------------------------------------------------------------------------------ */

/* A stretch of chunks. */
struct stretch {
	mw_addr first, end;
	mw_addr top;      /* 0: not in here */
	uint64_t foreign; /* flags that a chunk may not have */
};

enum outcome { WHOLE, FENCED, TORN };

/* One run from chunk to chunk. */
struct run {
	mw_addr start, at; /* where it began, and where it ended */
	uint64_t free;     /* bytes of free chunks, the top included */
	uint64_t torn;     /* bytes of which two chunks said different things */
	size_t caches;     /* how many were known before it */
};

/* What a walk over one arena's chunks finds. */
struct caches {
	mw_addr *items; /* blocks that look like a thread's cache */
	size_t count, capacity;
};

struct walk {
	struct window window;
	struct mw_glibc_arenas *arenas;
	struct caches caches;
	bool no_memory;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A block in use that is as large as a thread's cache may be one. */
static void see_block(struct walk *walk, mw_addr block, uint64_t size)
{
	const void *bytes;

	if ((size != CACHE_SIZE && size != CACHE_SIZE_OLD) || walk->caches.count >= MAX_CACHES)
		return;
	/* It may reach into the next page. */
	bytes = window_at(&walk->window, block, size, 2 * CACHE_SIZE + 4096);
	if (!bytes || !looks_like_cache(bytes, size))
		return;
	if (!MW_VECTOR_ROOM(walk->caches.items, walk->caches.count, walk->caches.capacity)) {
		walk->no_memory = true;
		return;
	}
	walk->caches.items[walk->caches.count++] = block;
}

/* The chunk before is free: both ends of it tell its size. */
static void add_free(struct run *run, uint64_t size, uint64_t size_behind)
{
	run->free += size;
	run->torn += size > size_behind ? size - size_behind : size_behind - size;
}

/* Is that a chunk's header, of one that ends within the stretch? */
static bool is_chunk(const struct stretch *stretch, mw_addr at, uint64_t head)
{
	uint64_t size = head & ~GLIBC_FLAGS;

	return !(head & stretch->foreign) && size >= GLIBC_LEAST && size % GLIBC_ALIGNMENT == 0 &&
	       size <= stretch->end - at;
}

/* From run->at on, until the stretch ends, a fence comes or something makes no sense. */
static enum outcome run_on(struct walk *walk, const struct stretch *stretch, struct run *run)
{
	uint64_t before = 0; /* size of the chunk before */

	run->caches = walk->caches.count;
	while (stretch->end - run->at >= FENCE) {
		/* A large chunk's inside need not be read, and what was never touched is better not. */
		uint64_t left = (stretch->top > run->at ? stretch->top : stretch->end) - run->at;
		const uint64_t *header = window_at(&walk->window, run->at, 16, larger(before < 4096 ? left : 0, FENCE));
		uint64_t head, size;

		if (!header)
			return TORN;
		head = header[1];
		size = head & ~GLIBC_FLAGS;
		if (before && !(head & GLIBC_PREV_INUSE))
			add_free(run, before, header[0]);
		if (run->at == stretch->top && is_chunk(stretch, run->at, head)) {
			run->free += stretch->end - run->at;
			return WHOLE;
		}
		if (size == FENCE || (!size && stretch->end - run->at == FENCE)) {
			run->at += FENCE;
			return FENCED;
		}
		if (!is_chunk(stretch, run->at, head))
			return TORN;
		if (stretch->top && size == stretch->end - run->at) {
			/* The top has grown to here since we asked. */
			run->free += size;
			return WHOLE;
		}
		see_block(walk, run->at + 16, size - 16);
		run->at += size;
		before = size;
	}
	return TORN;
}

/* The next chunk from which a run goes on to the end, or the next fence, behind memory of others. */
static enum outcome run_from_next(struct walk *walk, const struct stretch *stretch, mw_addr from, struct run *out)
{
	mw_addr last = stretch->end - from > MAX_GAP ? from + MAX_GAP : stretch->end - FENCE;

	for (mw_addr at = from; at <= last && !walk->window.late; at += GLIBC_ALIGNMENT) {
		const uint64_t *header = window_at(&walk->window, at, 16, 65536);
		struct run run = {.start = at, .at = at};
		enum outcome outcome;

		if (!header)
			return TORN;
		if (!(header[1] & GLIBC_PREV_INUSE) || !is_chunk(stretch, at, header[1]))
			continue;
		outcome = run_on(walk, stretch, &run);
		if (outcome != TORN) {
			*out = run;
			return outcome;
		}
		walk->caches.count = run.caches;
	}
	return TORN;
}

/* The main arena: its first chunk stands at the break's start, or behind what others took of it before. */
static bool walk_main(struct walk *walk, const struct stretch *stretch, struct mw_glibc_figures *out, uint64_t *torn)
{
	struct mw_glibc_figures sum = {0};
	mw_addr from = stretch->first;
	enum outcome outcome;

	do {
		struct run run = {0};

		outcome = run_from_next(walk, stretch, from, &run);
		if (outcome == TORN)
			return false;
		from = outcome == WHOLE ? stretch->end : run.at;
		sum.size += from - run.start;
		sum.free += run.free;
		*torn += run.torn;
	} while (outcome == FENCED);
	sum.used = sum.size - sum.free;
	*out = sum;
	return true;
}

/* A thread's heap: chunks up to its fences, or its top. */
static bool walk_heap(struct walk *walk, const struct stretch *stretch, struct mw_glibc_figures *sum, uint64_t *torn)
{
	struct run run = {.at = stretch->first};
	enum outcome outcome = run_on(walk, stretch, &run);

	/* One fence may come before the last. */
	if (outcome == FENCED && run.at + FENCE == stretch->end)
		run.at = stretch->end;
	if (outcome == TORN || (outcome == FENCED && run.at != stretch->end))
		return false;
	sum->free += run.free;
	*torn += run.torn;
	return true;
}

static bool try_main(struct walk *walk, struct mw_glibc_arena *arena, struct mw_glibc_figures *out, uint64_t *torn)
{
	const struct mw_glibc_span *heap = &walk->window.process->heap;
	struct stretch stretch = {.first = heap->start, .foreign = GLIBC_MMAPPED | GLIBC_NON_MAIN};
	uint64_t head;

	/* Where the break could not be moved the main arena goes on in mappings that nothing tells from others. */
	if (!glibc_read(walk->window.process, arena->bins + (mw_addr)GLIBC_TOP, &stretch.top, sizeof(stretch.top)) ||
	    stretch.top < heap->start || stretch.top >= heap->end ||
	    !glibc_read(walk->window.process, stretch.top + 8, &head, sizeof(head)))
		return false;
	stretch.end = stretch.top + (head & ~GLIBC_FLAGS);
	return stretch.end > stretch.top && stretch.end <= heap->end && walk_main(walk, &stretch, out, torn);
}

static mw_addr first_chunk(const struct mw_glibc_arena *arena, const struct mw_glibc_heap *heap)
{
	mw_addr after = arena->state - heap->start < MW_GLIBC_HEAP_SIZE
				? arena->bins + GLIBC_STATE_END
				: heap->start + arena->state % MW_GLIBC_HEAP_SIZE;

	return (after + GLIBC_ALIGNMENT - 1) & ~(mw_addr)(GLIBC_ALIGNMENT - 1);
}

static bool try_thread(struct walk *walk, const struct mw_glibc_arena *arena, struct mw_glibc_figures *out,
		       uint64_t *torn)
{
	const struct mw_glibc_arenas *arenas = walk->arenas;
	struct mw_glibc_figures sum = {0};
	uint64_t top;

	if (!glibc_read(walk->window.process, arena->bins + (mw_addr)GLIBC_TOP, &top, sizeof(top)))
		return false;
	MW_EACH(heap, arenas->heaps, arenas->heap_count) {
		struct stretch stretch = {.first = first_chunk(arena, heap), .foreign = GLIBC_MMAPPED};
		uint64_t size;

		if (heap->arena != arena->state)
			continue;
		if (!glibc_read(walk->window.process, heap->start + 16, &size, sizeof(size)) ||
		    size > MW_GLIBC_HEAP_SIZE)
			return false;
		stretch.end = heap->start + size;
		stretch.top = top - heap->start < MW_GLIBC_HEAP_SIZE ? top : 0;
		if (stretch.end <= stretch.first || !walk_heap(walk, &stretch, &sum, torn))
			return false;
		sum.size += size;
	}
	sum.used = sum.size - sum.free;
	*out = sum;
	return true;
}

/* Walk an arena until it fits together; its figures stay unknown where it does not. */
static void walk_arena(struct walk *walk, struct mw_glibc_arena *arena)
{
	bool is_main = arena == &walk->arenas->main;
	size_t caches = walk->caches.count;

	for (unsigned i = 0; i < ATTEMPTS && !walk->window.late; i++) {
		struct mw_glibc_figures figures;
		uint64_t torn = 0, fast;
		bool good;

		window_forget(&walk->window);
		walk->caches.count = caches;
		good = is_main ? try_main(walk, arena, &figures, &torn) : try_thread(walk, arena, &figures, &torn);
		if (!good || torn > figures.size / TORN_SHARE)
			continue;
		fast = fast_bytes(&walk->window, walk->arenas, arena, figures.used);
		if (fast > figures.used)
			continue;
		figures.used -= fast;
		figures.free += fast;
		arena->figures = figures;
		return;
	}
	walk->caches.count = caches;
}

static bool add(struct mw_glibc_figures *sum, const struct mw_glibc_figures *figures)
{
	if (figures->size == MW_SIZE_UNKNOWN)
		return false;
	sum->used += figures->used;
	sum->free += figures->free;
	sum->size += figures->size;
	return true;
}

/* A sum that lacks an arena would be a wrong one. */
static void sum_up(struct mw_glibc_arenas *arenas)
{
	struct mw_glibc_figures sum = {0};
	bool good = arenas->main.state && !arenas->several && add(&sum, &arenas->main.figures);

	for (size_t i = 0; i < arenas->arena_count && good; i++)
		good = add(&sum, &arenas->arenas[i].figures);
	arenas->total = good ? sum : GLIBC_UNKNOWN;
}

struct mw_error *mw_glibc_arenas_walk(const struct mw_glibc_process *process, uint64_t deadline_ns,
				      struct mw_glibc_arenas *arenas)
{
	MW_FREE unsigned char *bytes = malloc(WINDOW_SIZE);
	struct walk walk = {
		.window = {.process = process, .deadline_ns = deadline_ns, .bytes = bytes},
		.arenas = arenas,
	};

	if (!bytes)
		return mw_error_nomem();
	if (arenas->main.state)
		walk_arena(&walk, &arenas->main);
	for (size_t i = 0; i < arenas->arena_count; i++)
		walk_arena(&walk, &arenas->arenas[i]);
	window_forget(&walk.window);
	for (size_t i = 0; i < walk.caches.count && !walk.window.late; i++)
		take_cache(&walk.window, arenas, walk.caches.items[i]);
	sum_up(arenas);
	if (walk.window.late)
		arenas->total = GLIBC_UNKNOWN;
	free(walk.caches.items);
	return walk.no_memory ? mw_error_nomem() : NULL;
}

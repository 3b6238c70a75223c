// SPDX-License-Identifier: MIT
/* glibc_walk.c: how much of each arena is in use (glibc_arenas.h). */
#include "alloc/glibc_arenas.h"

#include "alloc/glibc_chunks.h"
#include "alloc/glibc_layout.h"
#include "base/cleanup.h"
#include "base/vector.h"

#include <stdlib.h>

#define ATTEMPTS   6
#define MAX_GAP    (UINT64_C(4) << 20) /* of others' memory in the main arena that is looked through */
#define TORN_SHARE 200                 /* a walk is good if less than one part in so many did not fit together */

struct walk {
	struct mw_glibc_window window;
	struct mw_glibc_arenas *arenas;
	struct mw_glibc_caches caches;
	bool no_memory;
	/* Of the run that goes on: */
	uint64_t free;     /* bytes of free chunks, the top included */
	uint64_t torn;     /* bytes of which two chunks said different things */
	size_t run_caches; /* how many were known before it */
	/* Of one arena's fast bins: */
	uint64_t fast, most;
};

static void begin_run(void *context)
{
	struct walk *walk = context;

	walk->free = walk->torn = 0;
	walk->caches.count = walk->run_caches;
}

static void see_chunk(void *context, const struct mw_glibc_chunk *chunk)
{
	struct walk *walk = context;

	if (chunk->kind == MW_GLIBC_FREE || chunk->kind == MW_GLIBC_TOP) {
		walk->free += chunk->size;
		walk->torn += chunk->torn;
	}
	if (mw_glibc_is_cache_size(chunk->size) &&
	    !mw_error_none(mw_glibc_caches_see(&walk->caches, &walk->window, chunk)))
		walk->no_memory = true;
}

/* The main arena: its first chunk stands at the break's start, or behind what others took of it before. */
static bool walk_main(struct walk *walk, const struct mw_glibc_stretch *stretch, struct mw_glibc_figures *out,
		      uint64_t *torn)
{
	const struct mw_glibc_visitor visitor = {walk, begin_run, see_chunk};
	struct mw_glibc_figures sum = {0};
	mw_addr from = stretch->first;
	enum mw_glibc_outcome outcome;

	do {
		struct mw_glibc_run run = {0};

		walk->run_caches = walk->caches.count;
		outcome = mw_glibc_run_from_next(&walk->window, stretch, &visitor, from, MAX_GAP, &run);
		if (outcome == MW_GLIBC_TORN)
			return false;
		from = outcome == MW_GLIBC_WHOLE ? stretch->end : run.at;
		sum.size += from - run.start;
		sum.free += walk->free;
		*torn += walk->torn;
	} while (outcome == MW_GLIBC_FENCED);
	sum.used = sum.size - sum.free;
	*out = sum;
	return true;
}

/* A thread's heap: chunks up to its fences, or its top. */
static bool walk_heap(struct walk *walk, const struct mw_glibc_stretch *stretch, struct mw_glibc_figures *sum,
		      uint64_t *torn)
{
	const struct mw_glibc_visitor visitor = {walk, begin_run, see_chunk};
	struct mw_glibc_run run = {.at = stretch->first};
	enum mw_glibc_outcome outcome;

	walk->run_caches = walk->caches.count;
	begin_run(walk);
	outcome = mw_glibc_run_on(&walk->window, stretch, &visitor, &run);
	/* One fence may come before the last. */
	if (outcome == MW_GLIBC_FENCED && run.at + 16 == stretch->end)
		run.at = stretch->end;
	if (outcome == MW_GLIBC_TORN || (outcome == MW_GLIBC_FENCED && run.at != stretch->end))
		return false;
	sum->free += walk->free;
	*torn += walk->torn;
	return true;
}

/* --- fast bins and threads' caches, whose chunks look in use ----------------------------------------------------- */

static bool may_hold(void *context, mw_addr addr)
{
	const struct walk *walk = context;

	return mw_glibc_arena_of(walk->window.process, walk->arenas, addr) != NULL;
}

static bool add_fast(void *context, mw_addr chunk, uint64_t size)
{
	struct walk *walk = context;

	(void)chunk;
	walk->fast += size;
	return walk->fast <= walk->most;
}

/* Move a chunk that a thread's cache holds from used to free, in its own arena. */
static bool move_cached(void *context, mw_addr chunk, uint64_t size)
{
	struct walk *walk = context;
	struct mw_glibc_arena *arena = mw_glibc_arena_of(walk->window.process, walk->arenas, chunk);

	if (arena && arena->figures.size != MW_SIZE_UNKNOWN && arena->figures.used >= size) {
		arena->figures.used -= size;
		arena->figures.free += size;
	}
	return true;
}

/* --- arenas ------------------------------------------------------------------------------------------------------- */

static bool try_main(struct walk *walk, struct mw_glibc_arena *arena, struct mw_glibc_figures *out, uint64_t *torn)
{
	const struct mw_glibc_span *heap = &walk->window.process->heap;
	struct mw_glibc_stretch stretch = {.first = heap->start, .foreign = GLIBC_MMAPPED | GLIBC_NON_MAIN};
	uint64_t head;

	/* Where the break could not be moved the main arena goes on in mappings that nothing tells from others. */
	if (!glibc_read(walk->window.process, arena->bins + (mw_addr)GLIBC_TOP, &stretch.top, sizeof(stretch.top)) ||
	    stretch.top < heap->start || stretch.top >= heap->end ||
	    !glibc_read(walk->window.process, stretch.top + 8, &head, sizeof(head)))
		return false;
	stretch.end = stretch.top + (head & ~GLIBC_FLAGS);
	return stretch.end > stretch.top && stretch.end <= heap->end && walk_main(walk, &stretch, out, torn);
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
		struct mw_glibc_stretch stretch = {.first = mw_glibc_first_chunk(arena, heap),
						   .foreign = GLIBC_MMAPPED};
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
	const struct mw_glibc_members members = {.context = walk, .may_hold = may_hold, .each = add_fast};
	size_t caches = walk->caches.count;

	for (unsigned i = 0; i < ATTEMPTS && !walk->window.late; i++) {
		struct mw_glibc_figures figures;
		uint64_t torn = 0;
		bool good;

		mw_glibc_window_forget(&walk->window);
		walk->caches.count = caches;
		good = is_main ? try_main(walk, arena, &figures, &torn) : try_thread(walk, arena, &figures, &torn);
		if (!good || torn > figures.size / TORN_SHARE)
			continue;
		walk->fast = 0;
		walk->most = figures.used;
		(void)mw_glibc_fast_chunks(&walk->window, arena, &members);
		if (walk->fast > figures.used)
			continue;
		figures.used -= walk->fast;
		figures.free += walk->fast;
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
	MW_FREE unsigned char *bytes = malloc(MW_GLIBC_WINDOW);
	struct walk walk = {
		.window = {.process = process, .deadline_ns = deadline_ns, .bytes = bytes},
		.arenas = arenas,
	};
	const struct mw_glibc_members cached = {.context = &walk, .may_hold = may_hold, .each = move_cached};

	if (!bytes)
		return mw_error_nomem();
	if (arenas->main.state)
		walk_arena(&walk, &arenas->main);
	for (size_t i = 0; i < arenas->arena_count; i++)
		walk_arena(&walk, &arenas->arenas[i]);
	mw_glibc_window_forget(&walk.window);
	for (size_t i = 0; i < walk.caches.count && !walk.window.late; i++)
		(void)mw_glibc_cache_chunks(&walk.window, walk.caches.items[i], &cached);
	sum_up(arenas);
	if (walk.window.late)
		arenas->total = GLIBC_UNKNOWN;
	free(walk.caches.items);
	return walk.no_memory ? mw_error_nomem() : NULL;
}

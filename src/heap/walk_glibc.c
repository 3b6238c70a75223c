// SPDX-License-Identifier: MIT
/*
 * walk_glibc.c: the walker of glibc's malloc (walker.h).
 *
 *      main arena       [heap], and where the break could not be moved, mappings; within it what others took of the break
 *      threads' arenas  heaps at multiples of 64 MiB
 *      mmapped          blocks with a mapping of their own
 *
 * A walk that meets an invalid chunk goes on at the next chunk that is one for certain: a free one whose
 * neighbours on its list point back to it, or the top. A chunk that merely looks like one may be what an older one has
 * left inside a block. What lies between is passed over, from the last chunk before it on.
 */
#include "heap/glibc.h"

#include "alloc/glibc_layout.h"
#include "base/cleanup.h"
#include "base/vector.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FENCE          16u
#define MAX_ANCHORS    (1u << 20) /* free chunks that are looked at behind damage */
#define MAX_LOOKS      (UINT64_C(1) << 25)
#define MAX_CONSTANT   ((uint64_t)64 << 20) /* of a file's constants that are looked through */
#define OLDEST         27u                  /* glibc 2.27 … */
#define NEWEST         43u                  /* … to 2.43 are known */
#define NON_CONTIGUOUS 2u                   /* in an arena's flags */
#define FLAGS_AT       4u

/* --- which glibc it is ------------------------------------------------------------------------------------------------ */

/* From the sentence that every libc.so has among its constants: "… release version 2.36." A program that glibc is linked
 * into has none. */
static void find_version(const struct mw_module *module, char out[32])
{
	static const char library[] = "GNU C Library (", version[] = " version ";
	struct mw_elf_section constants = mw_elf_section(module->elf, ".rodata");
	const char *bytes, *at, *end;
	size_t length = 0;

	if (!constants.present || constants.compressed || constants.size > MAX_CONSTANT)
		return;
	bytes = (const char *)mw_elf_file_bytes(module->elf, constants.offset, (size_t)constants.size);
	at = bytes ? memmem(bytes, (size_t)constants.size, library, sizeof(library) - 1) : NULL;
	if (!at)
		return;
	end = bytes + constants.size - at > 200 ? at + 200 : bytes + constants.size;
	at = memmem(at, (size_t)(end - at), version, sizeof(version) - 1);
	if (!at)
		return;
	for (at += sizeof(version) - 1; at < end && length < 31 && (isdigit((unsigned char)*at) || *at == '.'); at++)
		out[length++] = *at;
	while (length && out[length - 1] == '.')
		length--;
	out[length] = '\0';
}

static bool is_known(const char *version)
{
	unsigned long minor;

	if (!*version)
		return true; /* linked into a program: its arenas are known by what they look like */
	if (strncmp(version, "2.", 2) != 0)
		return false;
	minor = strtoul(version + 2, NULL, 10);
	return minor >= OLDEST && minor <= NEWEST;
}

static struct mw_error *add_allocator(struct mw_glibc_walk *walk, const struct mw_modules *modules)
{
	struct mw_heap_allocator allocator = {.name = "glibc", .walked = true, .trimmable = MW_SIZE_UNKNOWN};
	const struct mw_module *module = modules ? mw_modules_find(modules, walk->arenas.main.state) : NULL;
	const struct mw_image_mapping *mapping = mw_image_mapping_of(walk->image, walk->arenas.main.state);
	char why[160];

	if (module && module->elf)
		find_version(module, allocator.version);
	if (!walk->refused && !is_known(allocator.version)) {
		(void)snprintf(why, sizeof(why), "glibc %s is not known: 2.%u to 2.%u are", allocator.version, OLDEST,
			       NEWEST);
		walk->refused = why;
	}
	allocator.module = strdup(mapping ? mapping->path : "");
	allocator.why = walk->refused ? strdup(walk->refused) : NULL;
	allocator.walked = !walk->refused;
	walk->refused = allocator.why;
	if (!allocator.module || (!allocator.walked && !allocator.why)) {
		free(allocator.module);
		free(allocator.why);
		return mw_error_nomem();
	}
	return mw_blocks_add_allocator(walk->blocks, &allocator, &walk->allocator);
}

/* --- chunks to segments ------------------------------------------------------------------------------------------------ */

struct mw_error *mw_glibc_skip(struct mw_glibc_walk *walk, mw_addr start, mw_addr end, const char *why)
{
	if (end <= start)
		return NULL;
	mw_blocks_allocator_mutable(walk->blocks, walk->allocator)->skipped += end - start;
	return mw_blocks_add_skipped(walk->blocks, start, end - start, why);
}

/* From here on until it is ended, only so much is looked at. */
static void begin_bounded(struct mw_glibc_walk *walk)
{
	walk->window.most_looks = walk->window.looks + walk->looks_left;
}

static void end_bounded(struct mw_glibc_walk *walk)
{
	uint64_t most = walk->window.most_looks;

	walk->looks_left = most > walk->window.looks ? most - walk->window.looks : 1;
	walk->window.most_looks = 0;
	walk->window.late = false;
}

static void note(struct mw_glibc_walk *walk, struct mw_error *err)
{
	if (walk->err)
		mw_error_destroy(err);
	else
		walk->err = err;
}

static void see_chunk(void *context, const struct mw_glibc_chunk *chunk)
{
	struct mw_glibc_walk *walk = context;
	mw_addr block = chunk->at + MW_GLIBC_HEADER;

	mw_span_add(walk->blocks, walk->span, block, chunk->kind == MW_GLIBC_USED);
	if (mw_glibc_is_cache_size(chunk->size))
		note(walk, mw_glibc_caches_see(&walk->caches, &walk->window, chunk));
	if (chunk->torn)
		note(walk, mw_glibc_skip(walk, block, block + chunk->size,
					 "a free chunk's two ends disagree about its size"));
}

/* A chunk that is one for certain? It is free, and its neighbours on its list and the chunk behind it say so. */
static bool is_anchor(struct mw_glibc_walk *walk, mw_addr at, const uint64_t header[4])
{
	uint64_t size = header[1] & ~GLIBC_FLAGS, next = header[2], previous = header[3], link, behind[2];
	const struct mw_glibc_process *process = &walk->process;

	return glibc_read(process, next + 24, &link, sizeof(link)) && link == at &&
	       glibc_read(process, previous + 16, &link, sizeof(link)) && link == at &&
	       glibc_read(process, at + size, behind, sizeof(behind)) && behind[0] == size &&
	       !(behind[1] & GLIBC_PREV_INUSE);
}

/* The next place from `from` on where chunks go on for certain; the stretch's end where there is none. */
static mw_addr next_anchor(struct mw_glibc_walk *walk, const struct mw_glibc_stretch *stretch, mw_addr from)
{
	mw_addr last = stretch->top > from ? stretch->top : stretch->end;

	for (mw_addr at = from; at < last && last - at >= GLIBC_LEAST && walk->anchors_left; at += GLIBC_ALIGNMENT) {
		const uint64_t *bytes = mw_glibc_window_at(&walk->window, at, 32, last - at);
		uint64_t header[4];

		if (!bytes)
			break;
		memcpy(header, bytes, sizeof(header));
		if (!(header[1] & GLIBC_PREV_INUSE) || !mw_glibc_is_chunk(stretch, at, header[1]) || !header[2] ||
		    !header[3] || header[2] % 8 || header[3] % 8)
			continue;
		walk->anchors_left--;
		if (is_anchor(walk, at, header))
			return at;
	}
	return last;
}

/*
 * From run->at to the end of the stretch or to a fence, over what is invalid. A heap of a thread's has fences at its
 * end alone.
 */
static struct mw_error *walk_run(struct mw_glibc_walk *walk, const struct mw_glibc_stretch *stretch, bool fences,
				 struct mw_glibc_run *run)
{
	const struct mw_glibc_visitor visitor = {.context = walk, .chunk = see_chunk};
	struct mw_error *err;
	const char *why = walk->image->consistent ? "a chunk's header is invalid"
						  : "a chunk's header was invalid when it was read";

	while (stretch->end - run->at >= FENCE) {
		enum mw_glibc_outcome outcome = mw_glibc_run_on(&walk->window, stretch, &visitor, run);
		/* The last chunk that had a header, though it may be a wrong one. */
		mw_addr last = run->at - (outcome == MW_GLIBC_FENCED ? FENCE : run->before), next;

		if (outcome == MW_GLIBC_WHOLE)
			run->at = stretch->end;
		if (outcome != MW_GLIBC_TORN && (fences || stretch->end - run->at <= FENCE))
			break;
		/* The top is there, whatever its header says. */
		next = run->at == stretch->top ? run->at : next_anchor(walk, stretch, run->at + FENCE);
		(void)mw_span_cut(walk->blocks, walk->span, last + MW_GLIBC_HEADER);
		MW_TRY(mw_glibc_skip(walk, last + MW_GLIBC_HEADER, next == stretch->end ? next : next + MW_GLIBC_HEADER,
				     why));
		if (run->at == stretch->top) {
			(void)mw_span_cut(walk->blocks, walk->span, next + MW_GLIBC_HEADER);
			next = stretch->end;
		}
		run->at = next;
		run->before = 0;
	}
	err = walk->err;
	walk->err = NULL;
	return err;
}

/* Walk a stretch as one span, from a first chunk that is known, to its end, or to a fence: that is where *end is then. */
static struct mw_error *walk_span(struct mw_glibc_walk *walk, const struct mw_glibc_stretch *stretch, bool fences,
				  mw_addr first, mw_addr *end)
{
	struct mw_glibc_run run = {.start = first, .at = first};
	mw_addr start = first + MW_GLIBC_HEADER;

	*end = stretch->end;
	MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, walk->arena, first, start));
	MW_TRY(mw_blocks_add_span(walk->blocks, walk->arena, start, stretch->end, 0, MW_GLIBC_TAIL, &walk->span));
	if (walk->span == MW_BLOCK_NONE)
		return NULL;
	MW_TRY(walk_run(walk, stretch, fences, &run));
	*end = run.at;
	mw_blocks_end_span(walk->blocks, walk->span, run.at);
	if (!stretch->top || run.at != stretch->end)
		return NULL;
	if (!MW_VECTOR_ROOM(walk->tops, walk->top_count, walk->top_capacity))
		return mw_error_nomem();
	walk->tops[walk->top_count++] = run.at;
	return NULL;
}

/* --- arenas ------------------------------------------------------------------------------------------------------------ */

static bool in_heap(const struct mw_glibc_walk *walk, mw_addr addr)
{
	return addr >= walk->process.heap.start && addr < walk->process.heap.end;
}

/* Behind the first fence there is another, and before them the rest of a top that was as small. */
static mw_addr behind_fences(const struct mw_glibc_walk *walk, mw_addr at, mw_addr end)
{
	uint64_t head;

	for (unsigned i = 0; i < 2 && end - at >= FENCE; i++) {
		if (!glibc_read(&walk->process, at + 8, &head, sizeof(head)) || (head & ~GLIBC_FLAGS) != FENCE)
			break;
		at += FENCE;
	}
	return at;
}

/* The main arena in [heap], and behind what others took of the break. */
static struct mw_error *walk_break(struct mw_glibc_walk *walk, mw_addr top)
{
	const struct mw_glibc_span *heap = &walk->process.heap;
	struct mw_glibc_stretch stretch = {
		.first = heap->start, .end = heap->end, .foreign = GLIBC_MMAPPED | GLIBC_NON_MAIN};
	uint64_t head;
	mw_addr at, next;

	if (in_heap(walk, walk->parameters.first))
		stretch.first = (walk->parameters.first + GLIBC_ALIGNMENT - 1) & ~(mw_addr)(GLIBC_ALIGNMENT - 1);
	if (in_heap(walk, top)) {
		stretch.top = top;
		if (glibc_read(&walk->process, top + 8, &head, sizeof(head)) &&
		    (head & ~GLIBC_FLAGS) % 4096 == (0 - top) % 4096 && mw_glibc_is_chunk(&stretch, top, head))
			stretch.end = top + (head & ~GLIBC_FLAGS);
		walk->main_end = stretch.end;
	}
	for (at = stretch.first; at < stretch.end;) {
		struct mw_glibc_run run = {0};

		/* Where the first chunk is not known, and behind a fence, it is looked for. */
		if (at != stretch.first || !in_heap(walk, walk->parameters.first)) {
			enum mw_glibc_outcome outcome;

			begin_bounded(walk);
			outcome = mw_glibc_run_from_next(&walk->window, &stretch, NULL, at, stretch.end - at, &run);
			end_bounded(walk);
			if (outcome == MW_GLIBC_TORN) {
				run.start = next_anchor(walk, &stretch, at);
				MW_TRY(mw_glibc_skip(walk, at, run.start, "no chunk goes on from there to the top"));
				if (run.start == stretch.end)
					break;
			}
			at = run.start;
		}
		MW_TRY(walk_span(walk, &stretch, true, at, &at));
		next = behind_fences(walk, at, stretch.end);
		MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, walk->arena, at, next));
		at = next;
	}
	return NULL;
}

/* Is there a stretch of the main arena from `first` on that ends with fences, or the top? */
static bool is_region(struct mw_glibc_walk *walk, mw_addr first, mw_addr end, mw_addr top,
		      struct mw_glibc_stretch *stretch)
{
	struct mw_glibc_run run = {.start = first, .at = first};
	uint64_t head;

	*stretch = (struct mw_glibc_stretch){first, end, 0, GLIBC_MMAPPED | GLIBC_NON_MAIN};
	if (!glibc_read(&walk->process, first + 8, &head, sizeof(head)) || !(head & GLIBC_PREV_INUSE) ||
	    !mw_glibc_is_chunk(stretch, first, head))
		return false;
	if (top >= first && top < end) {
		stretch->top = top;
		if (!glibc_read(&walk->process, top + 8, &head, sizeof(head)) || !mw_glibc_is_chunk(stretch, top, head))
			return false;
		stretch->end = top + (head & ~GLIBC_FLAGS);
	}
	switch (mw_glibc_run_on(&walk->window, stretch, NULL, &run)) {
	case MW_GLIBC_WHOLE:
		return true;
	case MW_GLIBC_FENCED:
		/* The last fence ends a mapping, of whole pages. */
		stretch->end = behind_fences(walk, run.at, end);
		return stretch->end != run.at && stretch->end % MW_GLIBC_PAGE == 0;
	default:
		return false;
	}
}

/* The main arena where the break could not be moved: mappings that only their chunks tell from others. */
static struct mw_error *walk_mappings(struct mw_glibc_walk *walk, mw_addr top)
{
	MW_EACH(span, walk->process.anonymous, walk->process.anonymous_count) {
		mw_addr at = span->start, from, to;

		while (mw_image_next_present(walk->image, at, span->end, &from, &to)) {
			struct mw_glibc_stretch stretch;
			bool good;

			at = from + MW_GLIBC_PAGE;
			if (mw_blocks_may_hold(walk->blocks, from))
				continue;
			begin_bounded(walk);
			good = is_region(walk, from, span->end, top, &stretch);
			end_bounded(walk);
			if (!good)
				continue;
			MW_TRY(walk_span(walk, &stretch, true, from, &at));
			MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, walk->arena, at, stretch.end));
			if (stretch.top)
				walk->main_end = stretch.end;
			at = stretch.end;
		}
	}
	return NULL;
}

static struct mw_error *walk_main(struct mw_glibc_walk *walk)
{
	const struct mw_glibc_arena *arena = &walk->arenas.main;
	uint32_t flags;
	uint64_t top;

	MW_TRY(mw_blocks_add_arena(walk->blocks, walk->allocator, "main", &walk->arena));
	walk->main = walk->arena;
	MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, walk->arena, arena->state, arena->bins + GLIBC_STATE_END));
	if (!glibc_read(&walk->process, arena->bins + (mw_addr)GLIBC_TOP, &top, sizeof(top)) ||
	    !glibc_read(&walk->process, arena->state + FLAGS_AT, &flags, sizeof(flags)))
		return NULL;
	/* Of several copies one alone moves the break. */
	if (in_heap(walk, top) || in_heap(walk, walk->parameters.first))
		MW_TRY(walk_break(walk, top));
	if (flags & NON_CONTIGUOUS || !in_heap(walk, top))
		MW_TRY(walk_mappings(walk, top));
	return NULL;
}

static struct mw_error *walk_heap(struct mw_glibc_walk *walk, const struct mw_glibc_arena *arena,
				  const struct mw_glibc_heap *heap, mw_addr top)
{
	struct mw_glibc_stretch stretch = {.first = mw_glibc_first_chunk(arena, heap), .foreign = GLIBC_MMAPPED};
	uint64_t sizes[2]; /* in use, and writable */
	mw_addr end;

	if (!glibc_read(&walk->process, heap->start + 16, sizes, sizeof(sizes)) || sizes[0] > MW_GLIBC_HEAP_SIZE ||
	    sizes[1] > MW_GLIBC_HEAP_SIZE || sizes[0] % MW_GLIBC_PAGE ||
	    heap->start + sizes[0] <= stretch.first + FENCE)
		return mw_glibc_skip(walk, heap->start, heap->start + MW_GLIBC_PAGE, "a heap's size is invalid");
	stretch.end = heap->start + sizes[0];
	stretch.top = top - heap->start < sizes[0] ? top : 0;
	MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, walk->arena, heap->start, stretch.first));
	MW_TRY(walk_span(walk, &stretch, false, stretch.first, &end));
	MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, walk->arena, end, stretch.end));
	return mw_blocks_add_bookkeeping(walk->blocks, walk->arena, stretch.end, heap->start + sizes[1]);
}

static struct mw_error *walk_threads(struct mw_glibc_walk *walk)
{
	const struct mw_glibc_arenas *arenas = &walk->arenas;

	for (size_t i = 0; i < arenas->arena_count; i++) {
		const struct mw_glibc_arena *arena = &arenas->arenas[i];
		char name[24];
		bool has_top = false;
		uint64_t top;

		(void)snprintf(name, sizeof(name), "arena %u", (unsigned)i + 1);
		MW_TRY(mw_blocks_add_arena(walk->blocks, walk->allocator, name, &walk->arena));
		if (!glibc_read(&walk->process, arena->bins + (mw_addr)GLIBC_TOP, &top, sizeof(top)))
			continue;
		MW_EACH(heap, arenas->heaps, arenas->heap_count) {
			if (heap->arena != arena->state)
				continue;
			MW_TRY(walk_heap(walk, arena, heap, top));
			has_top = has_top || top - heap->start < MW_GLIBC_HEAP_SIZE;
		}
		if (!has_top)
			MW_TRY(mw_glibc_skip(walk, arena->state, arena->bins + GLIBC_STATE_END,
					     "an arena's top is in none of its heaps"));
	}
	return NULL;
}

/* --- chunks that look in use and are not (with 2.43, caches have blocks with mappings of their own, too) -------------------------------------------------------------------------------- */

static bool may_hold(void *context, mw_addr addr)
{
	const struct mw_glibc_walk *walk = context;

	return mw_blocks_may_hold(walk->blocks, addr);
}

static bool free_fast(void *context, mw_addr chunk, uint64_t size)
{
	struct mw_glibc_walk *walk = context;

	(void)size;
	return mw_blocks_set_live(walk->blocks, chunk + MW_GLIBC_HEADER, false);
}

static bool free_cached(void *context, mw_addr chunk, uint64_t size)
{
	struct mw_glibc_walk *walk = context;

	if (mw_blocks_set_live(walk->blocks, chunk + MW_GLIBC_HEADER, false))
		mw_blocks_allocator_mutable(walk->blocks, walk->allocator)->cached += size - MW_GLIBC_TAIL;
	return true;
}

static struct mw_error *free_fast_bins(struct mw_glibc_walk *walk, const struct mw_glibc_arena *arena)
{
	const struct mw_glibc_members members = {.context = walk, .may_hold = may_hold, .each = free_fast};
	bool good;

	begin_bounded(walk);
	good = mw_glibc_fast_chunks(&walk->window, arena, &members);
	end_bounded(walk);
	if (good)
		return NULL;
	return mw_glibc_skip(walk, arena->bins + (mw_addr)GLIBC_FAST, arena->bins + (mw_addr)GLIBC_TOP,
			     "a fast bin's list is corrupt");
}

static struct mw_error *free_caches(struct mw_glibc_walk *walk)
{
	const struct mw_glibc_members members = {
		.context = walk, .may_hold = may_hold, .each = free_cached, .torn = true};

	MW_EACH(cache, walk->caches.items, walk->caches.count) {
		unsigned bad;

		begin_bounded(walk);
		bad = mw_glibc_cache_chunks(&walk->window, *cache, &members);
		end_bounded(walk);
		if (bad)
			MW_TRY(mw_glibc_skip(walk, *cache, *cache + 1, "a list of a thread's cache is corrupt"));
	}
	return NULL;
}

/* --- a copy of glibc ------------------------------------------------------------------------------------------------------ */

static mw_addr next_arena(const struct mw_glibc_walk *walk, mw_addr bins)
{
	uint64_t next;

	return glibc_read(&walk->process, bins + GLIBC_NEXT, &next, sizeof(next)) ? next : 0;
}

static struct mw_glibc_arena *find_arena(const struct mw_glibc_arenas *arenas, mw_addr state)
{
	MW_EACH_MUTABLE(arena, arenas->arenas, arenas->arena_count)
		if (arena->state == state)
			return arena;
	return NULL;
}

/* The arenas are in a ring. One that is not known has its heaps where they are not looked for (huge pages, before 2.43). */
static struct mw_error *check_ring(struct mw_glibc_walk *walk)
{
	const struct mw_glibc_arena *arena = &walk->arenas.main;

	for (size_t i = 0; arena->bins && i <= walk->arenas.arena_count; i++) {
		mw_addr next = next_arena(walk, arena->bins);

		if (next == walk->arenas.main.state)
			return NULL;
		arena = find_arena(&walk->arenas, next);
		if (!arena)
			return mw_glibc_skip(walk, next ? next : walk->arenas.main.state,
					     (next ? next : walk->arenas.main.state) + GLIBC_STATE_END,
					     "an arena that is not understood");
	}
	return NULL;
}

static struct mw_error *walk_copy(struct mw_glibc_walk *walk, const struct mw_modules *modules)
{
	MW_TRY(add_allocator(walk, modules));
	if (walk->refused)
		return NULL;
	MW_TRY(mw_glibc_parameters_find(walk));
	if (walk->arenas.main.bins)
		MW_TRY(walk_main(walk));
	MW_TRY(walk_threads(walk));
	MW_TRY(check_ring(walk));
	if (walk->arenas.main.bins)
		MW_TRY(free_fast_bins(walk, &walk->arenas.main));
	MW_EACH(arena, walk->arenas.arenas, walk->arenas.arena_count)
		MW_TRY(free_fast_bins(walk, arena));
	mw_blocks_allocator_mutable(walk->blocks, walk->allocator)->trimmable = mw_glibc_trimmable(walk);
	walk->locked = walk->locked || mw_glibc_is_locked(walk);
	return NULL;
}

/* A main arena that was never used is known by the ring of arenas alone. */
static void find_unused_main(struct mw_glibc_walk *walk)
{
	struct mw_glibc_arenas *arenas = &walk->arenas;
	const struct mw_glibc_arena *arena = arenas->arena_count ? &arenas->arenas[0] : NULL;

	for (size_t i = 0; arena && i <= arenas->arena_count; i++) {
		mw_addr next = next_arena(walk, arena->bins);

		arena = find_arena(arenas, next);
		if (!arena)
			arenas->main.state = next;
	}
}

/* Of all threads' arenas, those of this copy are in the ring with its main one. */
static void keep_ring(struct mw_glibc_walk *walk)
{
	struct mw_glibc_arenas *arenas = &walk->arenas;
	MW_FREE bool *kept = calloc(arenas->arena_count + 1, sizeof(*kept));
	const struct mw_glibc_arena *arena = &arenas->main;
	size_t count = 0;

	for (size_t i = 0; kept && arena && i <= arenas->arena_count; i++) {
		arena = find_arena(arenas, next_arena(walk, arena->bins));
		if (arena)
			kept[arena - arenas->arenas] = true;
	}
	for (size_t i = 0; i < arenas->arena_count; i++)
		if (kept && kept[i])
			arenas->arenas[count++] = arenas->arenas[i];
	arenas->arena_count = count;
}

/* The copies that were walked. */
struct copies {
	uint32_t allocator; /* the first one's; MW_BLOCK_NONE: there is none */
	uint64_t mapped;    /* how many blocks have mappings of their own; MW_SIZE_UNKNOWN */
};

/* The copy whose main arena is in walk->process.data. */
static struct mw_error *walk_data(struct mw_glibc_walk *walk, const struct mw_modules *modules, bool several,
				  struct copies *copies)
{
	if (several)
		keep_ring(walk);
	else if (!walk->arenas.main.state)
		find_unused_main(walk);
	if (!walk->arenas.main.state)
		return NULL;
	MW_TRY(walk_copy(walk, modules));
	if (walk->refused || !walk->parameters.known || copies->mapped == MW_SIZE_UNKNOWN)
		copies->mapped = MW_SIZE_UNKNOWN;
	else
		copies->mapped += walk->parameters.mapped;
	if (!walk->refused && copies->allocator == MW_BLOCK_NONE)
		copies->allocator = walk->allocator;
	return NULL;
}

static void walk_deinit(struct mw_glibc_walk *walk)
{
	mw_glibc_arenas_deinit(&walk->arenas);
	free(walk->caches.items);
	free(walk->tops);
	mw_error_destroy(walk->err);
}

static struct mw_error *walk_glibc(const struct mw_image *image, const struct mw_modules *modules,
				   struct mw_blocks *blocks)
{
	MW_CLEANUP(mw_glibc_spans_deinit) struct mw_glibc_spans spans = {0};
	MW_FREE unsigned char *bytes = malloc(MW_GLIBC_WINDOW);
	MW_CLEANUP(walk_deinit) struct mw_glibc_walk walk = {.image = image, .blocks = blocks};
	struct copies copies = {.allocator = MW_BLOCK_NONE};
	bool several;

	if (!bytes)
		return mw_error_nomem();
	MW_TRY(mw_glibc_spans_find(image, &spans));
	walk.process = (struct mw_glibc_process){
		.read = mw_glibc_read,
		.context = (void *)image,
		.anonymous = spans.anonymous,
		.anonymous_count = spans.anonymous_count,
		.data = spans.data,
		.data_count = spans.data_count,
		.heap = spans.heap,
	};
	walk.window = (struct mw_glibc_window){.process = &walk.process, .deadline_ns = UINT64_MAX, .bytes = bytes};
	walk.looks_left = MAX_LOOKS;
	walk.anchors_left = MAX_ANCHORS;
	MW_TRY(mw_glibc_arenas_find(&walk.process, &walk.arenas));
	several = walk.arenas.several;
	if (!several)
		MW_TRY(walk_data(&walk, modules, false, &copies));
	for (size_t i = 0; i < spans.data_count && several; i++) {
		mw_glibc_arenas_deinit(&walk.arenas);
		walk.main_end = 0;
		walk.process.data = &spans.data[i];
		walk.process.data_count = 1;
		MW_TRY(mw_glibc_arenas_find(&walk.process, &walk.arenas));
		MW_TRY(walk_data(&walk, modules, true, &copies));
	}
	if (copies.allocator == MW_BLOCK_NONE)
		return NULL;
	walk.allocator = copies.allocator;
	MW_TRY(mw_glibc_add_mapped(&walk, copies.mapped));
	MW_TRY(free_caches(&walk));
	return mw_glibc_take_in_flight(&walk);
}

const struct mw_walker mw_walker_glibc = {.name = "glibc", .walk = walk_glibc};

// SPDX-License-Identifier: MIT
/* glibc_arenas.c: finding glibc's arenas (glibc_arenas.h), and reading one chunk's header. */
#include "alloc/glibc_arenas.h"

#include "alloc/families.h"
#include "alloc/glibc_layout.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DATA       ((size_t)8 << 20) /* of one file's data that is looked through: its end */
#define MAX_CANDIDATES 65536u            /* multiples of 64 MiB that are looked at */
#define MAX_ARENAS     65536u
#define PAGE           4096u
#define HEADER         16u
#define FENCE          16u                 /* smallest size that stands at an arena's end */
#define HUGE_PAGES     UINT64_C(1)         /* in prev_size of a mapped chunk, from glibc 2.43 on */
#define ADDRESS_LIMIT  (UINT64_C(1) << 56) /* five-level page tables' user half */

struct glibc_heap_info {
	uint64_t arena, before, size, writable, page;
};

/* Are these the list heads of an arena, with what follows them? `at` is where the bytes are from. */
static bool are_bins(const unsigned char *bytes, mw_addr at)
{
	const size_t last = GLIBC_BINS_SIZE - 16;

	/* The last list is never used. */
	if (glibc_word(bytes, last) != at + last - 16 || glibc_word(bytes, last + 8) != at + last - 16)
		return false;
	for (size_t i = 0; i < last; i += 16) {
		uint64_t first = glibc_word(bytes, i), end = glibc_word(bytes, i + 8), self = at + i - 16;

		if (first == self && end == self)
			continue;
		/* One of the two alone points home while a chunk goes or comes. */
		if (!first || !end || first % GLIBC_ALIGNMENT || end % GLIBC_ALIGNMENT)
			return false;
	}
	return glibc_word(bytes, GLIBC_NEXT) && glibc_word(bytes, GLIBC_NEXT) % 8 == 0 &&
	       glibc_word(bytes, GLIBC_ATTACHED) <= UINT32_MAX &&
	       glibc_word(bytes, GLIBC_SYSTEM) <= glibc_word(bytes, GLIBC_MAX_SYSTEM);
}

/* The first bin of the arena whose state is at `state`; 0: there is no arena. */
static mw_addr bins_of(const struct mw_glibc_process *process, mw_addr state)
{
	unsigned char bytes[GLIBC_BINS_AT_MOST + GLIBC_STATE_END];

	if (!glibc_read(process, state, bytes, sizeof(bytes)))
		return 0;
	for (size_t at = 16; at <= GLIBC_BINS_AT_MOST; at += 8)
		if (are_bins(bytes + at, state + at))
			return state + at;
	return 0;
}

static bool is_heap(const struct glibc_heap_info *info, mw_addr start)
{
	mw_addr offset = info->arena % MW_GLIBC_HEAP_SIZE;

	if (info->size < PAGE || info->size > info->writable || info->writable > MW_GLIBC_HEAP_SIZE ||
	    info->size % PAGE || info->writable % PAGE)
		return false;
	if (offset != 32 && offset != 48)
		return false;
	/* Only the first has none before it, and that is the one with the state. */
	return info->before ? info->before % MW_GLIBC_HEAP_SIZE == 0 && info->arena - offset != start
			    : info->arena - offset == start;
}

static struct mw_error *add_heap(struct mw_glibc_arenas *arenas, size_t *capacity, mw_addr start, mw_addr state)
{
	if (!MW_VECTOR_ROOM(arenas->heaps, arenas->heap_count, *capacity))
		return mw_error_nomem();
	arenas->heaps[arenas->heap_count++] = (struct mw_glibc_heap){start, state};
	return NULL;
}

static struct mw_error *add_arena(struct mw_glibc_arenas *arenas, size_t *capacity, mw_addr state, mw_addr bins)
{
	if (!MW_VECTOR_ROOM(arenas->arenas, arenas->arena_count, *capacity))
		return mw_error_nomem();
	arenas->arenas[arenas->arena_count++] = (struct mw_glibc_arena){state, bins, GLIBC_UNKNOWN};
	return NULL;
}

static struct mw_glibc_arena *find_arena(const struct mw_glibc_arenas *arenas, mw_addr state)
{
	size_t count = mw_vector_up_to(arenas->arenas, arenas->arena_count, sizeof(*arenas->arenas),
				       offsetof(struct mw_glibc_arena, state), state);

	return arenas->arenas && count && arenas->arenas[count - 1].state == state ? &arenas->arenas[count - 1] : NULL;
}

/* Heaps whose arena is none are none. */
static void drop_strays(struct mw_glibc_arenas *arenas)
{
	size_t kept = 0;

	for (size_t i = 0; i < arenas->heap_count; i++)
		if (find_arena(arenas, arenas->heaps[i].arena))
			arenas->heaps[kept++] = arenas->heaps[i];
	arenas->heap_count = kept;
}

/* Mappings come in order of address, so heaps and states do. */
static struct mw_error *find_heaps(const struct mw_glibc_process *process, struct mw_glibc_arenas *arenas)
{
	size_t heap_capacity = 0, arena_capacity = 0, looked = 0;

	MW_EACH(span, process->anonymous, process->anonymous_count) {
		mw_addr at = (span->start + MW_GLIBC_HEAP_SIZE - 1) & ~(MW_GLIBC_HEAP_SIZE - 1);

		for (; at >= span->start && at < span->end && looked < MAX_CANDIDATES; at += MW_GLIBC_HEAP_SIZE) {
			struct glibc_heap_info info;
			mw_addr bins;

			looked++;
			if (!glibc_read(process, at, &info, sizeof(info)) || !is_heap(&info, at))
				continue;
			MW_TRY(add_heap(arenas, &heap_capacity, at, info.arena));
			if (info.before || arenas->arena_count >= MAX_ARENAS)
				continue;
			bins = bins_of(process, info.arena);
			if (bins)
				MW_TRY(add_arena(arenas, &arena_capacity, info.arena, bins));
		}
	}
	drop_strays(arenas);
	return NULL;
}

/* The ring of arenas leads from the main one's bins to its state, which stands a little before them. */
static mw_addr main_state(const struct mw_glibc_process *process, const struct mw_glibc_arenas *arenas, mw_addr bins)
{
	mw_addr at = bins;

	for (size_t i = 0; i <= arenas->arena_count; i++) {
		const struct mw_glibc_arena *arena;
		uint64_t next;

		if (!glibc_read(process, at + GLIBC_NEXT, &next, sizeof(next)))
			return 0;
		if (next < bins && bins - next <= GLIBC_BINS_AT_MOST)
			return next;
		arena = find_arena(arenas, next);
		if (!arena)
			break;
		at = arena->bins;
	}
	/* A ring that goes through an arena which came after we looked: layouts differ in 8 bytes only. */
	return bins - GLIBC_BINS_AT;
}

/* A main arena that has never had memory is none. */
static void take_main(const struct mw_glibc_process *process, const unsigned char *bytes, mw_addr bins,
		      struct mw_glibc_arenas *arenas)
{
	if (!glibc_word(bytes, GLIBC_SYSTEM))
		return;
	if (arenas->main.state) {
		arenas->several = true;
		return;
	}
	arenas->main.bins = bins;
	arenas->main.state = main_state(process, arenas, bins);
}

static struct mw_error *find_main(const struct mw_glibc_process *process, const struct mw_glibc_span *data,
				  struct mw_glibc_arenas *arenas)
{
	/* What is linked in stands behind the program's own. */
	size_t size = data->end - data->start < MAX_DATA ? (size_t)(data->end - data->start) : MAX_DATA, got;
	mw_addr start = data->end - size;
	unsigned char *bytes = malloc(size);

	if (!bytes)
		return mw_error_nomem();
	got = process->read(process->context, start, bytes, size);
	for (size_t at = 0; at + GLIBC_STATE_END <= got; at += 8)
		if (are_bins(bytes + at, start + at))
			take_main(process, bytes + at, start + at, arenas);
	free(bytes);
	return NULL;
}

struct mw_error *mw_glibc_arenas_find(const struct mw_glibc_process *process, struct mw_glibc_arenas *out)
{
	struct mw_glibc_arenas arenas = {.main.figures = GLIBC_UNKNOWN, .total = GLIBC_UNKNOWN};
	struct mw_error *err = find_heaps(process, &arenas);

	for (size_t i = 0; i < process->data_count && !err; i++)
		err = find_main(process, &process->data[i], &arenas);
	if (err) {
		mw_glibc_arenas_deinit(&arenas);
		return err;
	}
	*out = arenas;
	return NULL;
}

void mw_glibc_arenas_deinit(struct mw_glibc_arenas *arenas)
{
	if (!arenas)
		return;
	free(arenas->arenas);
	free(arenas->heaps);
	*arenas = (struct mw_glibc_arenas){0};
}

struct mw_glibc_arena *mw_glibc_arena_of(const struct mw_glibc_process *process, struct mw_glibc_arenas *arenas,
					 mw_addr addr)
{
	mw_addr start = addr & ~(MW_GLIBC_HEAP_SIZE - 1);
	size_t count;

	if (addr >= process->heap.start && addr < process->heap.end)
		return arenas->main.state ? &arenas->main : NULL;
	count = mw_vector_up_to(arenas->heaps, arenas->heap_count, sizeof(*arenas->heaps),
				offsetof(struct mw_glibc_heap, start), start);
	if (!count || arenas->heaps[count - 1].start != start)
		return NULL;
	return find_arena(arenas, arenas->heaps[count - 1].arena);
}

/*
 * --- one chunk --------------------------------------------------------------------------------------------------
 *
 *      chunk            block                         next chunk
 *      | prev_size | size|AMP | … usable …            | size|..P |
 *      block-16     block-8                            block-16+size+8
 *
 * The low bits of a size: P the chunk before is in use, M the chunk has a mapping of its own, A it is not of the main
 * arena. A heap chunk's user may also use the next chunk's prev_size. A mapped one has no next chunk: it ends with its
 * mapping; from glibc 2.43 on 16 bytes before that, so that its user has a prev_size as well.
 */

/* What lies before a chunk with a mapping of its own, the chunk, and what lies behind it span whole pages together. */
static uint64_t mapped_usable(mw_addr chunk, uint64_t prev_size, uint64_t size)
{
	prev_size &= ~HUGE_PAGES;
	if (prev_size > chunk || (chunk - prev_size) % PAGE)
		return MW_SIZE_UNKNOWN;
	if ((prev_size + size) % PAGE == 0)
		return size - HEADER;
	return (prev_size + size + HEADER) % PAGE == 0 ? size - sizeof(uint64_t) : MW_SIZE_UNKNOWN;
}

uint64_t mw_glibc_usable_size(mw_addr block, bool (*read)(void *context, mw_addr addr, void *out, size_t size),
			      void *context)
{
	uint64_t header[2], next, size;

	if (block % GLIBC_ALIGNMENT || block < HEADER || block >= ADDRESS_LIMIT)
		return MW_SIZE_UNKNOWN;
	if (!read(context, block - HEADER, header, sizeof(header)))
		return MW_SIZE_UNKNOWN;
	size = header[1] & ~GLIBC_FLAGS;
	if (size < GLIBC_LEAST || size % GLIBC_ALIGNMENT || size >= ADDRESS_LIMIT)
		return MW_SIZE_UNKNOWN;
	if (header[1] & GLIBC_MMAPPED)
		return (header[1] & GLIBC_FLAGS) == GLIBC_MMAPPED ? mapped_usable(block - HEADER, header[0], size)
								  : MW_SIZE_UNKNOWN;
	if (!read(context, block - HEADER + size + sizeof(uint64_t), &next, sizeof(next)))
		return MW_SIZE_UNKNOWN;
	/* The block is in use, so the chunk behind it says so; none behind a heap chunk is mapped. */
	if (!(next & GLIBC_PREV_INUSE) || (next & GLIBC_MMAPPED))
		return MW_SIZE_UNKNOWN;
	next &= ~GLIBC_FLAGS;
	if (next < FENCE || next % GLIBC_ALIGNMENT || next >= ADDRESS_LIMIT)
		return MW_SIZE_UNKNOWN;
	return size - sizeof(uint64_t);
}

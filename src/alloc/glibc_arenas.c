// SPDX-License-Identifier: MIT
/* glibc_arenas.c: finding glibc's arenas (glibc_arenas.h). */
#include "alloc/glibc_arenas.h"

#include "alloc/glibc_layout.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DATA       ((size_t)8 << 20) /* of one file's data that is looked through */
#define MAX_CANDIDATES 65536u            /* multiples of 64 MiB that are looked at */
#define MAX_ARENAS     65536u
#define PAGE           4096u

static const struct mw_glibc_figures unknown = {MW_SIZE_UNKNOWN, MW_SIZE_UNKNOWN, MW_SIZE_UNKNOWN};

static uint64_t word(const unsigned char *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static bool read_all(const struct mw_glibc_process *process, mw_addr addr, void *out, size_t size)
{
	return process->read(process->context, addr, out, size) == size;
}

/* Are these the list heads of an arena, with what follows them? `at` is where the bytes are from. */
static bool are_bins(const unsigned char *bytes, mw_addr at)
{
	const size_t last = GLIBC_BINS_SIZE - 16;

	/* The last list is never used. */
	if (word(bytes, last) != at + last - 16 || word(bytes, last + 8) != at + last - 16)
		return false;
	for (size_t i = 0; i < last; i += 16) {
		uint64_t first = word(bytes, i), end = word(bytes, i + 8), self = at + i - 16;

		if (first == self && end == self)
			continue;
		/* One of the two alone points home while a chunk goes or comes. */
		if (!first || !end || first % GLIBC_ALIGNMENT || end % GLIBC_ALIGNMENT)
			return false;
	}
	return word(bytes, GLIBC_NEXT) && word(bytes, GLIBC_NEXT) % 8 == 0 &&
	       word(bytes, GLIBC_ATTACHED) <= UINT32_MAX && word(bytes, GLIBC_SYSTEM) <= word(bytes, GLIBC_MAX_SYSTEM);
}

/* The first bin of the arena whose state is at `state`; 0: there is no arena. */
static mw_addr bins_of(const struct mw_glibc_process *process, mw_addr state)
{
	unsigned char bytes[GLIBC_BINS_AT_MOST + GLIBC_STATE_END];

	if (!read_all(process, state, bytes, sizeof(bytes)))
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
	arenas->arenas[arenas->arena_count++] = (struct mw_glibc_arena){state, bins, unknown};
	return NULL;
}

static struct mw_glibc_arena *find_arena(const struct mw_glibc_arenas *arenas, mw_addr state)
{
	size_t low = 0, high = arenas->arena_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (arenas->arenas[middle].state == state)
			return &arenas->arenas[middle];
		if (arenas->arenas[middle].state < state)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
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

	for (size_t i = 0; i < process->anonymous_count; i++) {
		const struct mw_glibc_span *span = &process->anonymous[i];
		mw_addr at = (span->start + MW_GLIBC_HEAP_SIZE - 1) & ~(MW_GLIBC_HEAP_SIZE - 1);

		for (; at >= span->start && at < span->end && looked < MAX_CANDIDATES; at += MW_GLIBC_HEAP_SIZE) {
			struct glibc_heap_info info;
			mw_addr bins;

			looked++;
			if (!read_all(process, at, &info, sizeof(info)) || !is_heap(&info, at))
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

		if (!read_all(process, at + GLIBC_NEXT, &next, sizeof(next)))
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
	if (!word(bytes, GLIBC_SYSTEM))
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
	size_t size = data->end - data->start < MAX_DATA ? (size_t)(data->end - data->start) : MAX_DATA, got;
	unsigned char *bytes = malloc(size);

	if (!bytes)
		return mw_error_nomem();
	got = process->read(process->context, data->start, bytes, size);
	for (size_t at = 0; at + GLIBC_STATE_END <= got; at += 8)
		if (are_bins(bytes + at, data->start + at))
			take_main(process, bytes + at, data->start + at, arenas);
	free(bytes);
	return NULL;
}

struct mw_error *mw_glibc_arenas_find(const struct mw_glibc_process *process, struct mw_glibc_arenas *out)
{
	struct mw_glibc_arenas arenas = {.main.figures = unknown, .total = unknown};
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
	size_t low = 0, high = arenas->heap_count;

	if (addr >= process->heap.start && addr < process->heap.end)
		return arenas->main.state ? &arenas->main : NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (arenas->heaps[middle].start == start)
			return find_arena(arenas, arenas->heaps[middle].arena);
		if (arenas->heaps[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

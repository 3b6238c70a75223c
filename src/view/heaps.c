// SPDX-License-Identifier: MIT
/* heaps.c: heap handles (heaps.h). */
#include "view/heaps.h"

#include "base/vector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BEGIN "[arena "

/* Heaps by number: 0 unknown, then allocators, then glibc's main, mmapped, and its arenas. */
enum heap { HEAP_UNKNOWN, HEAP_JEMALLOC, HEAP_TCMALLOC, HEAP_MIMALLOC, HEAP_MUSL, HEAP_MAIN, HEAP_MAPPED, HEAP_ARENAS };

static const char *const names[] = {NULL, "jemalloc", "tcmalloc", "mimalloc", "musl", "main", "mmapped"};

/* Allocators by their libraries' names, and by what they call their functions where they are linked in. */
static const struct sign {
	const char *text;
	enum heap heap;
} modules[] =
	{
		{"libjemalloc", HEAP_JEMALLOC}, {"libtcmalloc", HEAP_TCMALLOC}, {"libmimalloc", HEAP_MIMALLOC},
		{"ld-musl-", HEAP_MUSL},        {"libc.musl-", HEAP_MUSL},
},
  functions[] = {
	  {"je_", HEAP_JEMALLOC},
	  {"_rjem_", HEAP_JEMALLOC},
	  {"tc_", HEAP_TCMALLOC},
	  {"mi_", HEAP_MIMALLOC},
};

struct range {
	mw_addr start, end;
	mw_addr arena; /* 0: main */
};

struct mw_heaps {
	struct range *ranges;
	size_t count, capacity;
	mw_addr *arenas; /* in order: each is numbered by its place */
	size_t arena_count, arena_capacity;
	char (*arena_names)[24];
	enum heap *hooks; /* by number */
	size_t hook_capacity;
	enum heap other; /* an allocator that stands in glibc's place */
	bool sorted;
};

struct mw_error *mw_heaps_create(struct mw_heaps **out)
{
	struct mw_heaps *heaps = calloc(1, sizeof(*heaps));

	if (!heaps)
		return mw_error_nomem();
	*out = heaps;
	return NULL;
}

void mw_heaps_destroy(struct mw_heaps *heaps)
{
	if (!heaps)
		return;
	free(heaps->ranges);
	free(heaps->arenas);
	free(heaps->arena_names);
	free(heaps->hooks);
	free(heaps);
}

void mw_heaps_arena_path(mw_addr state, char out[40])
{
	(void)snprintf(out, 40, PATH_BEGIN "%" PRIx64 "]", state);
}

/* 0: that is no such path. */
static mw_addr arena_of_path(const char *path)
{
	unsigned long long state;
	char *end;

	if (!path || strncmp(path, PATH_BEGIN, strlen(PATH_BEGIN)) != 0)
		return 0;
	state = strtoull(path + strlen(PATH_BEGIN), &end, 16);
	return strcmp(end, "]") == 0 ? state : 0;
}

static struct mw_error *add_arena(struct mw_heaps *heaps, mw_addr arena)
{
	size_t at = 0;
	char(*arena_names)[24];

	while (at < heaps->arena_count && heaps->arenas[at] < arena)
		at++;
	if (at < heaps->arena_count && heaps->arenas[at] == arena)
		return NULL;
	arena_names = reallocarray(heaps->arena_names, heaps->arena_count + 1, sizeof(*arena_names));
	if (!arena_names)
		return mw_error_nomem();
	heaps->arena_names = arena_names;
	if (!MW_VECTOR_ROOM(heaps->arenas, heaps->arena_count, heaps->arena_capacity))
		return mw_error_nomem();
	memmove(&heaps->arenas[at + 1], &heaps->arenas[at], (heaps->arena_count - at) * sizeof(*heaps->arenas));
	heaps->arenas[at] = arena;
	heaps->arena_count++;
	(void)snprintf(arena_names[heaps->arena_count - 1], sizeof(*arena_names), "arena %zu", heaps->arena_count);
	return NULL;
}

struct mw_error *mw_heaps_add_mapping(struct mw_heaps *heaps, const struct mw_stored_mapping *mapping)
{
	mw_addr arena = mapping->kind == MW_REGION_ARENA ? arena_of_path(mapping->path) : 0;

	if ((mapping->kind != MW_REGION_HEAP && !arena) || mapping->end <= mapping->start)
		return NULL;
	if (arena)
		MW_TRY(add_arena(heaps, arena));
	if (!MW_VECTOR_ROOM(heaps->ranges, heaps->count, heaps->capacity))
		return mw_error_nomem();
	heaps->ranges[heaps->count++] = (struct range){mapping->start, mapping->end, arena};
	heaps->sorted = false;
	return NULL;
}

static enum heap find_sign(const struct sign *signs, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(text, signs[i].text, strlen(signs[i].text)) == 0)
			return signs[i].heap;
	return HEAP_UNKNOWN;
}

static enum heap heap_of_hook(const char *function, const char *module)
{
	const char *slash = module ? strrchr(module, '/') : NULL;
	enum heap heap = HEAP_UNKNOWN;

	if (module)
		heap = find_sign(modules, sizeof(modules) / sizeof(modules[0]), slash ? slash + 1 : module);
	if (heap == HEAP_UNKNOWN && function)
		heap = find_sign(functions, sizeof(functions) / sizeof(functions[0]), function);
	return heap;
}

struct mw_error *mw_heaps_add_hook(struct mw_heaps *heaps, uint32_t number, const char *function, const char *module)
{
	enum heap heap = heap_of_hook(function, module);

	if (number == UINT32_MAX)
		return NULL;
	if (number >= heaps->hook_capacity) {
		size_t capacity = (size_t)number + 64;
		enum heap *hooks = reallocarray(heaps->hooks, capacity, sizeof(*hooks));

		if (!hooks)
			return mw_error_nomem();
		for (size_t i = heaps->hook_capacity; i < capacity; i++)
			hooks[i] = HEAP_UNKNOWN;
		heaps->hooks = hooks;
		heaps->hook_capacity = capacity;
	}
	heaps->hooks[number] = heap;
	/* Whose malloc it is decides about all that comes from operator new and the like, too. */
	if (heap != HEAP_UNKNOWN && function && strcmp(function, "malloc") == 0)
		heaps->other = heap;
	return NULL;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

/* In order, each arena's and the heap's parts joined: looks at different times overlap. */
static void tidy(struct mw_heaps *heaps)
{
	size_t kept = 0;

	heaps->sorted = true;
	if (!heaps->count)
		return;
	qsort(heaps->ranges, heaps->count, sizeof(*heaps->ranges), compare_ranges);
	for (size_t i = 1; i < heaps->count; i++) {
		struct range *last = &heaps->ranges[kept], *range = &heaps->ranges[i];

		if (range->arena == last->arena && range->start <= last->end)
			last->end = range->end > last->end ? range->end : last->end;
		else
			heaps->ranges[++kept] = *range;
	}
	heaps->count = kept + 1;
}

static const struct range *find_range(const struct mw_heaps *heaps, mw_addr addr)
{
	size_t low =
		mw_vector_up_to(heaps->ranges, heaps->count, sizeof(*heaps->ranges), offsetof(struct range, end), addr);

	return low < heaps->count && heaps->ranges[low].start <= addr ? &heaps->ranges[low] : NULL;
}

static uint32_t number_of(const struct mw_heaps *heaps, mw_addr arena)
{
	size_t low = 0, high = heaps->arena_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (heaps->arenas[middle] < arena)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)(HEAP_ARENAS + low);
}

uint32_t mw_heaps_of(struct mw_heaps *heaps, mw_addr addr, uint64_t bytes, enum mw_kind kind, uint32_t hook)
{
	enum heap told = hook < heaps->hook_capacity ? heaps->hooks[hook] : HEAP_UNKNOWN;
	const struct range *range;

	if (kind != MW_KIND_HEAP)
		return HEAP_UNKNOWN;
	if (told == HEAP_UNKNOWN)
		told = heaps->other;
	if (told != HEAP_UNKNOWN)
		return told;
	if (!heaps->sorted)
		tidy(heaps);
	range = find_range(heaps, addr);
	if (range)
		return range->arena ? number_of(heaps, range->arena) : (uint32_t)HEAP_MAIN;
	/* Without any region nothing is known, of glibc neither. */
	return heaps->count && mw_heaps_seems_mapped(addr, bytes) ? HEAP_MAPPED : HEAP_UNKNOWN;
}

uint32_t mw_heaps_count(const struct mw_heaps *heaps)
{
	return (uint32_t)(HEAP_ARENAS + heaps->arena_count);
}

const char *mw_heaps_name(const struct mw_heaps *heaps, uint32_t heap)
{
	if (heap < HEAP_ARENAS)
		return names[heap];
	return heap - HEAP_ARENAS < heaps->arena_count ? heaps->arena_names[heap - HEAP_ARENAS] : NULL;
}

// SPDX-License-Identifier: MIT
/* heaps.c: heap handles (heaps.h). */
#include "view/heaps.h"

#include "base/path.h"
#include "base/vector.h"
#include "view/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BEGIN "[arena "

/* Heaps by number: 0 unknown, then allocators, then glibc's main, mmapped, and its arenas. */
enum heap {
	HEAP_UNKNOWN,
	HEAP_JEMALLOC,
	HEAP_TCMALLOC,
	HEAP_MIMALLOC,
	HEAP_MUSL,
	HEAP_PYMALLOC,
	HEAP_MAIN,
	HEAP_MAPPED,
	HEAP_ARENAS
};

static const char *const fixed_names[] = {NULL,   "jemalloc", "tcmalloc", "mimalloc",
					  "musl", "pymalloc", "main",     "mmapped"};

/* Allocators by their libraries' names. */
static const struct sign {
	const char *text;
	enum heap heap;
} signs[] = {
	{"libjemalloc", HEAP_JEMALLOC}, {"libtcmalloc", HEAP_TCMALLOC}, {"libmimalloc", HEAP_MIMALLOC},
	{"ld-musl-", HEAP_MUSL},        {"libc.musl-", HEAP_MUSL},
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
	const char **names; /* of all heaps, by number */
	enum heap other;    /* an allocator that stands in glibc's place */
};

void mw_heaps_destroy(struct mw_heaps *heaps)
{
	if (!heaps)
		return;
	free(heaps->ranges);
	free(heaps->arenas);
	free(heaps->arena_names);
	free(heaps->names);
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

static struct mw_error *add_mapping(struct mw_heaps *heaps, const struct mw_stored_mapping *mapping)
{
	mw_addr arena = mapping->kind == MW_REGION_ARENA ? arena_of_path(mapping->path) : 0;

	if ((mapping->kind != MW_REGION_HEAP && !arena) || mapping->end <= mapping->start)
		return NULL;
	if (arena)
		MW_TRY(add_arena(heaps, arena));
	if (!MW_VECTOR_ROOM(heaps->ranges, heaps->count, heaps->capacity))
		return mw_error_nomem();
	heaps->ranges[heaps->count++] = (struct range){mapping->start, mapping->end, arena};
	return NULL;
}

/* Whose malloc it is decides about all that comes from operator new and the like, too. */
static void note_malloc(struct mw_heaps *heaps, const char *module)
{
	const char *name = mw_path_name(module);

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (strncmp(name, signs[i].text, strlen(signs[i].text)) == 0) {
			heaps->other = signs[i].heap;
			return;
		}
	}
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
	size_t before =
		arena ? mw_vector_up_to(heaps->arenas, heaps->arena_count, sizeof(*heaps->arenas), 0, arena - 1) : 0;

	return (uint32_t)(HEAP_ARENAS + before);
}

static struct mw_error *name_all(struct mw_heaps *heaps)
{
	heaps->names = calloc(HEAP_ARENAS + heaps->arena_count, sizeof(*heaps->names));
	if (!heaps->names)
		return mw_error_nomem();
	memcpy(heaps->names, fixed_names, sizeof(fixed_names));
	for (size_t i = 0; i < heaps->arena_count; i++)
		heaps->names[HEAP_ARENAS + i] = heaps->arena_names[i];
	return NULL;
}

static struct mw_error *fill(struct mw_heaps *heaps, const struct mw_metadata *metadata)
{
	for (size_t moment = 0; moment < 2; moment++)
		for (size_t i = 0; i < metadata->mappings[moment].count; i++)
			MW_TRY(add_mapping(heaps, &metadata->mappings[moment].items[i]));
	for (size_t i = 0; i < metadata->hook_count; i++) {
		const struct mw_hook_info *hook = &metadata->hooks[i];

		if (hook->module && hook->function && strcmp(hook->function, "malloc") == 0)
			note_malloc(heaps, hook->module);
	}
	tidy(heaps);
	return name_all(heaps);
}

struct mw_error *mw_heaps_create(const struct mw_metadata *metadata, struct mw_heaps **out)
{
	struct mw_heaps *heaps = calloc(1, sizeof(*heaps));
	struct mw_error *err = heaps ? fill(heaps, metadata) : mw_error_nomem();

	if (err) {
		mw_heaps_destroy(heaps);
		return err;
	}
	*out = heaps;
	return NULL;
}

uint32_t mw_heaps_of(const struct mw_heaps *heaps, mw_addr addr, uint64_t bytes, enum mw_kind kind)
{
	const struct range *range;

	if (kind != MW_KIND_HEAP)
		return HEAP_UNKNOWN;
	if (heaps->other != HEAP_UNKNOWN)
		return heaps->other;
	range = find_range(heaps, addr);
	if (range)
		return range->arena ? number_of(heaps, range->arena) : (uint32_t)HEAP_MAIN;
	/* Without any region nothing is known, of glibc neither. */
	return heaps->count && mw_heaps_seems_mapped(addr, bytes) ? HEAP_MAPPED : HEAP_UNKNOWN;
}

uint32_t mw_heaps_of_pymalloc(const struct mw_heaps *heaps, mw_addr addr, uint64_t bytes)
{
	return find_range(heaps, addr) ? mw_heaps_of(heaps, addr, bytes, MW_KIND_HEAP) : HEAP_PYMALLOC;
}

const char *const *mw_heaps_names(const struct mw_heaps *heaps, size_t *count)
{
	*count = HEAP_ARENAS + heaps->arena_count;
	return heaps->names;
}

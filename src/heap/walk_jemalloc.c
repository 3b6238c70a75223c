// SPDX-License-Identifier: MIT
/*
 * walk_jemalloc.c: jemalloc 5.3, shared or linked into a program, under any prefix (jemalloc.h).
 *
 * A file has jemalloc in it if its constants have the version that mallctl("version") gives. Each active extent becomes a
 * span: a slab's regions are segments, live by its bitmap; a large one is one segment. Those that are not in use are free.
 * What the caches of threads have is free. An extent that is being changed (its counts don't agree, it is being merged,
 * or a thread that stands in jemalloc has just begun to make it) is passed over.
 */
#include "heap/jemalloc.h"
#include "heap/walker.h"

#include "base/cleanup.h"
#include "base/vector.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE     "<jemalloc>: " /* begins what it prints */
#define HASH        40u            /* hex digits of the commit at a version's end */
#define BITMAP_AT   64u            /* in edata */
#define MAX_REGIONS 512u           /* of a slab */
#define NFREE(bits) ((bits) >> 28 & 0x3ff)

/* --- which jemalloc --------------------------------------------------------------------------------------------------------- */

/* "5.3.0-0-g" and 40 digits: its length without what follows the third number; 0: that is none. */
static size_t version_length(const char *text, size_t size)
{
	size_t at = 0, length = 0;

	for (unsigned part = 0; part < 4; part++) {
		size_t begin = at;

		while (at < size && isdigit((unsigned char)text[at]))
			at++;
		if (at == begin || at - begin > 5 || at >= size || text[at] != (part < 2 ? '.' : '-'))
			return 0;
		if (part == 2)
			length = at;
		at++;
	}
	if (at + 1 + HASH >= size || text[at++] != 'g')
		return 0;
	for (unsigned i = 0; i < HASH; i++)
		if (!isxdigit((unsigned char)text[at + i]))
			return 0;
	return text[at + HASH] ? 0 : length;
}

static bool find_version(const char *bytes, size_t size, char version[32], bool *release)
{
	for (size_t i = 0; i + 2 + HASH < size; i++) {
		size_t length;

		if (bytes[i] != '\0' || !isdigit((unsigned char)bytes[i + 1]))
			continue;
		length = version_length(bytes + i + 1, size - i - 1);
		if (!length || length >= 32)
			continue;
		memcpy(version, bytes + i + 1, length);
		version[length] = '\0';
		/* Commits after the release: Rust's jemallocator has the first. */
		*release = bytes[i + 1 + length + 1] <= '1' && bytes[i + 1 + length + 2] == '-';
		return true;
	}
	return false;
}

/* Looks around its message, where the compiler has put all of its strings. "" where the version was not found. */
static struct mw_error *read_version(const struct mw_image *image, const struct mw_walk_file *file, char version[32],
				     bool *release, bool *found)
{
	const size_t room = (size_t)1 << 20;
	const struct mw_image_mapping *mapping;
	MW_FREE char *bytes = malloc(room);
	mw_addr message, from;

	if (!bytes)
		return mw_error_nomem();
	MW_TRY(mw_walk_find_constant(image, file, MESSAGE, strlen(MESSAGE), &message));
	*found = message != 0;
	version[0] = '\0';
	mapping = mw_image_mapping_of(image, message);
	if (!message || !mapping)
		return NULL;
	from = message - mapping->start > room / 2 ? message - room / 2 : mapping->start;
	find_version(bytes,
		     mw_image_read_some(image, from, bytes, mapping->end - from < room ? mapping->end - from : room),
		     version, release);
	return NULL;
}

static const char *refusal(const char *version, bool release)
{
	if (!version[0])
		return "the version of jemalloc could not be found: its memory is treated as roots";
	if (strcmp(version, "5.3.0") != 0 || !release)
		return "this version of jemalloc is not known: its memory is treated as roots";
	return NULL;
}

/* --- extents to spans --------------------------------------------------------------------------------------------------------- */

uint64_t je_size_of_class(unsigned size_class)
{
	unsigned group, step;

	if (!size_class)
		return 8;
	group = (size_class - 1) / 4;
	step = (size_class - 1) % 4 + 1;
	return group ? (UINT64_C(32) << group) + ((uint64_t)step << (group + 3)) : (uint64_t)step << 4;
}

struct mw_error *je_arena_number(struct je_heap *heap, unsigned index, uint32_t *number)
{
	struct je_arena *arena = &heap->arenas[index];
	char name[24];

	if (arena->number == MW_BLOCK_NONE) {
		snprintf(name, sizeof(name), "arena %u", index);
		MW_TRY(mw_blocks_add_arena(heap->blocks, heap->allocator, name, &arena->number));
	}
	*number = arena->number;
	return NULL;
}

static struct mw_error *skip(struct je_heap *heap, mw_addr start, mw_addr end, const char *why)
{
	mw_blocks_allocator_mutable(heap->blocks, heap->allocator)->skipped += end - start;
	return mw_blocks_add_skipped(heap->blocks, start, end - start, why);
}

/* Does a slab's bitmap, of which a bit that is set is a free region, agree with its count? */
static bool slab_agrees(struct je_heap *heap, const struct je_extent *extent, uint64_t regions, uint64_t *bitmap)
{
	unsigned count = 0;
	uint64_t bits;

	if (!regions || regions > MAX_REGIONS || !mw_reader_word(heap->reader, extent->edata, &bits) ||
	    !mw_reader_read(heap->reader, extent->edata + BITMAP_AT, bitmap, (regions + 63) / 64 * 8))
		return false;
	if (regions % 64 && bitmap[regions / 64] >> (regions % 64))
		return false;
	for (size_t i = 0; i < (regions + 63) / 64; i++)
		count += (unsigned)__builtin_popcountll(bitmap[i]);
	if (count != NFREE(bits))
		return false;
	/* All of it in use may be one that is not set up yet. */
	return count || !mw_walk_in_flight_has(&heap->in_flight, extent->edata, extent->edata + 1);
}

static struct mw_error *add_slab(struct je_heap *heap, struct je_extent *extent, uint32_t arena)
{
	uint64_t size = je_size_of_class(extent->size_class), regions = (extent->end - extent->start) / size;
	uint64_t bitmap[MAX_REGIONS / 64];

	if (!slab_agrees(heap, extent, regions, bitmap))
		return skip(heap, extent->start, extent->end, "a slab of jemalloc that is being changed");
	MW_TRY(mw_blocks_add_span(heap->blocks, arena, extent->start, extent->end, size, 0, &extent->span));
	for (uint64_t i = 0; i < regions; i++)
		if (!(bitmap[i / 64] >> (i % 64) & 1))
			mw_span_set_live(heap->blocks, extent->span, extent->start + i * size, true);
	return NULL;
}

static struct mw_error *add_large(struct je_heap *heap, struct je_extent *extent, uint32_t arena)
{
	uint64_t size = je_size_of_class(extent->size_class);

	if (mw_walk_in_flight_has(&heap->in_flight, extent->edata, extent->edata + 1))
		return skip(heap, extent->start, extent->end, "a large block of jemalloc that may just be made");
	if (size > extent->end - extent->block)
		return skip(heap, extent->start, extent->end,
			    "a large block of jemalloc that is larger than its extent");
	MW_TRY(mw_blocks_add_span(heap->blocks, arena, extent->block, extent->block + size, size, 0, &extent->span));
	mw_span_set_live(heap->blocks, extent->span, extent->block, true);
	MW_TRY(mw_blocks_add_bookkeeping(heap->blocks, arena, extent->start, extent->block));
	return mw_blocks_add_bookkeeping(heap->blocks, arena, extent->block + size, extent->end);
}

static struct mw_error *add_extent(struct je_heap *heap, struct je_extent *extent)
{
	uint32_t arena, span;

	if (extent->state > JE_RETAINED || extent->arena >= JE_MAX_ARENAS ||
	    (extent->state == JE_ACTIVE && extent->size_class >= JE_SIZE_CLASSES))
		return skip(heap, extent->start, extent->end, "an extent of jemalloc that is being changed");
	MW_TRY(je_arena_number(heap, extent->arena, &arena));
	if (extent->state == JE_ACTIVE)
		return extent->slab ? add_slab(heap, extent, arena) : add_large(heap, extent, arena);
	return mw_blocks_add_span(heap->blocks, arena, extent->start, extent->end, extent->end - extent->start, 0,
				  &span);
}

static struct mw_error *add_extents(struct je_heap *heap)
{
	MW_EACH_MUTABLE(extent, heap->extents, heap->extent_count)
		MW_TRY(add_extent(heap, extent));
	return je_arenas_take(heap);
}

/* --- one file's ------------------------------------------------------------------------------------------------------------------ */

static struct mw_error *walk_heap(struct je_heap *heap, const char *version)
{
	const char *why = NULL;
	bool found;

	MW_TRY(je_extents_find(heap, &found));
	if (!found)
		why = "jemalloc's radix tree was not found: its memory is treated as roots";
	else if (heap->strange > 16 + heap->extent_count / 64)
		why = "jemalloc's radix tree is inconsistent: its memory is treated as roots";
	MW_TRY(mw_walk_add(heap->blocks, "jemalloc", version, heap->file->path, why, &heap->allocator));
	if (why)
		return NULL;
	MW_TRY(mw_walk_in_flight_read(heap->reader, heap->image, heap->file, &heap->in_flight));
	return add_extents(heap);
}

static struct mw_error *walk_file(const struct mw_image *image, const struct mw_walk_file *file,
				  struct mw_reader *reader, struct mw_blocks *blocks)
{
	struct je_heap heap = {.image = image, .reader = reader, .blocks = blocks, .file = file};
	struct mw_error *err;
	char version[32];
	const char *why;
	bool found = false, release = false;

	MW_TRY(read_version(image, file, version, &release, &found));
	if (!found)
		return NULL;
	why = refusal(version, release);
	if (why)
		return mw_walk_add(blocks, "jemalloc", version, file->path, why, &heap.allocator);
	heap.arenas = calloc(JE_MAX_ARENAS, sizeof(*heap.arenas));
	if (!heap.arenas)
		return mw_error_nomem();
	for (size_t i = 0; i < JE_MAX_ARENAS; i++)
		heap.arenas[i].number = MW_BLOCK_NONE;
	err = walk_heap(&heap, version);
	free(heap.extents);
	free(heap.arenas);
	free(heap.in_flight.words);
	return err;
}

const struct mw_walker mw_walker_jemalloc = {.name = "jemalloc", .walk_file = walk_file};

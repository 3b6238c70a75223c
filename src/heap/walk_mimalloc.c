// SPDX-License-Identifier: MIT
/*
 * walk_mimalloc.c: mimalloc 2.0 as its release 2.0.9 has it, shared or linked into a program, neither secure nor for
 * debugging.
 *
 *      segment, at a multiple of 32 MiB
 *          0   what it is, `cookie`: its address xor a number that all segments share, and that the file's data has as well
 *        264   slices: one for each 64 KiB; the first of a page says how many the page has, the size of its blocks, how many
 *              are used, and three chains of free ones: free, freed by its thread, freed by others
 *              pages of blocks
 *
 * A chain for a whole heap (mi_heap_t, one for a thread) has blocks that other threads have freed on pages that were full.
 * A page whose chains don't agree with its counts is being changed, and passed over. A block that was made larger so that
 * an aligned one fits into it is added as the whole: the program's pointer leads into it.
 */
#include "heap/walk.h"
#include "heap/walker.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define VERSION      "2.0"
#define MESSAGE      "mimalloc: warning: "
#define SEGMENT      (UINT64_C(32) << 20)
#define SLICE        (UINT64_C(64) << 10)
#define SLICES       512u /* of a segment's entries */
#define SLICES_AT    264u
#define HUGE_SIZE    (UINT32_C(2) << 30) /* a block's size is its page's */
#define SMALL_SIZE   1024u               /* of blocks that begin OFFSET behind their page */
#define OFFSET       384u
#define MAX_SLICES   (UINT64_C(1) << 28)
#define MAX_SEGMENTS 65536u
#define MAX_COOKIES  16u
#define MAX_HEAPS    65536u
#define HEAP_DELAYED 2840u /* thread_delayed_free of mi_heap_t */

struct segment_header {
	uint64_t memid, flags, alignment, align_offset, allow_decommit, decommit_expire, decommit_mask[8],
		commit_mask[8];
	uint64_t abandoned_next, next, abandoned, visits, used, cookie, slices, info_slices;
	uint32_t kind, padding;
	uint64_t slice_entries, thread;
};

struct slice {
	uint32_t count, offset;
	uint8_t flags, padding;
	uint16_t capacity, reserved;
	uint8_t page_flags, zero;
	uint64_t free;
	uint32_t used, block_size;
	uint64_t local_free, thread_free, heap, next, before, unused;
};

_Static_assert(sizeof(struct segment_header) == SLICES_AT && sizeof(struct slice) == 80, "as in memory");

/* A run of slices. */
struct page {
	struct slice slice;
	mw_addr start, end, at; /* of its memory, and its first slice */
	uint64_t size;          /* of a block; 0: it is free */
	const char *skip;       /* why it is passed over; NULL: it is not */
	uint32_t span;
};

struct heap {
	const struct mw_image *image;
	struct mw_reader *reader;
	struct mw_blocks *blocks;
	const struct mw_walk_file *file;
	uint32_t allocator, arena;
	mw_addr *segments; /* by address */
	size_t count, capacity;
	uint64_t cookie;
	mw_addr *heaps; /* mi_heap_t's; sorted in the end */
	size_t heap_count, heap_capacity;
	struct page *pages; /* by address */
	size_t page_count, page_capacity, strange;
	uint64_t steps; /* that chains may have yet */
	struct mw_walk_in_flight in_flight;
};

/* --- segments --------------------------------------------------------------------------------------------------------------- */

static bool read_segment(struct heap *heap, mw_addr at, struct segment_header *out)
{
	return mw_reader_read(heap->reader, at, out, sizeof(*out)) && out->cookie && out->kind <= 1 && out->slices &&
	       out->slices < MAX_SLICES && out->info_slices && out->info_slices < 16 &&
	       out->info_slices < out->slices && out->slice_entries <= SLICES &&
	       out->slice_entries > out->info_slices && out->slice_entries <= out->slices &&
	       (out->kind || out->slices == SLICES) && out->used <= out->slice_entries && out->abandoned <= out->used &&
	       mw_walk_is_mapped(heap->image, at, at + out->slices * SLICE);
}

static struct mw_error *find_segments(struct heap *heap)
{
	MW_EACH(mapping, heap->image->mappings, heap->image->mapping_count) {
		mw_addr at = (mapping->start + SEGMENT - 1) & ~(SEGMENT - 1), from, to;

		if (!mapping->write || !mapping->read || mapping->shared || mapping->inode || mapping->device)
			continue;
		for (; at >= mapping->start && at < mapping->end && heap->count < MAX_SEGMENTS; at += SEGMENT) {
			struct segment_header header;

			/* Go on at the next one that is there at all. */
			if (!mw_image_next_present(heap->image, at, mapping->end, &from, &to))
				break;
			if (from != at) {
				at = (from & ~(SEGMENT - 1)) - (from % SEGMENT ? 0 : SEGMENT);
				continue;
			}
			if (!read_segment(heap, at, &header))
				continue;
			if (!MW_VECTOR_ROOM(heap->segments, heap->count, heap->capacity))
				return mw_error_nomem();
			heap->segments[heap->count++] = at;
		}
	}
	return NULL;
}

/* Does a word of the file's data say that the segments found are its mimalloc's? */
static bool is_cookie(struct heap *heap, uint64_t word)
{
	struct segment_header header;

	for (size_t i = 0; i < heap->count && i < MAX_COOKIES; i++)
		if (read_segment(heap, heap->segments[i], &header) && (header.cookie ^ heap->segments[i]) == word)
			return true;
	return false;
}

static bool find_cookie(struct heap *heap, struct mw_walk_data *data)
{
	*data = (struct mw_walk_data){.image = heap->image, .file = heap->file, .mapping = heap->file->first};
	while (mw_walk_next_data(data))
		for (size_t i = 0; i < data->count; i++)
			if (data->words[i] > UINT32_MAX && is_cookie(heap, data->words[i])) {
				heap->cookie = data->words[i];
				return true;
			}
	return false;
}

/* Keep those segments whose number the file's data has. */
static void choose_segments(struct heap *heap)
{
	struct segment_header header;
	size_t kept = 0;

	for (size_t i = 0; i < heap->count; i++)
		if (read_segment(heap, heap->segments[i], &header) &&
		    (header.cookie ^ heap->segments[i]) == heap->cookie)
			heap->segments[kept++] = heap->segments[i];
	heap->count = kept;
}

/* --- pages ------------------------------------------------------------------------------------------------------------------ */

static bool is_block(const struct page *page, mw_addr at)
{
	return at >= page->start && at < page->start + page->slice.capacity * page->size &&
	       (at - page->start) % page->size == 0;
}

/* The length of a chain, all of whose blocks are the page's; UINT64_MAX: it is corrupt. */
static uint64_t length_of(struct heap *heap, const struct page *page, mw_addr first)
{
	uint64_t count = 0;

	for (mw_addr at = first; at; count++) {
		if (count == page->slice.capacity || !is_block(page, at))
			return UINT64_MAX;
		at = mw_reader_word_or_0(heap->reader, at);
	}
	return count;
}

static void set_chain_free(struct heap *heap, const struct page *page, mw_addr first)
{
	uint64_t count = 0;

	for (mw_addr at = first; at && count++ < page->slice.capacity && is_block(page, at);) {
		mw_span_set_live(heap->blocks, page->span, at, false);
		at = mw_reader_word_or_0(heap->reader, at);
	}
}

static bool is_consistent(struct heap *heap, const struct page *page)
{
	const struct slice *slice = &page->slice;
	uint64_t free, local, foreign;

	if (!page->size || page->size % 8 || slice->capacity > slice->reserved || slice->used > slice->capacity ||
	    slice->reserved > (page->end - page->start) / page->size)
		return false;
	free = length_of(heap, page, slice->free);
	local = length_of(heap, page, slice->local_free);
	foreign = length_of(heap, page, slice->thread_free & ~UINT64_C(3));
	return free != UINT64_MAX && local != UINT64_MAX && foreign <= slice->used &&
	       free + local + slice->used == slice->capacity;
}

static struct mw_error *skip(struct heap *heap, mw_addr start, mw_addr end, const char *why)
{
	mw_blocks_allocator_mutable(heap->blocks, heap->allocator)->skipped += end - start;
	return mw_blocks_add_skipped(heap->blocks, start, end - start, why);
}

static struct mw_error *note_heap(struct heap *heap, mw_addr at)
{
	if (!at || (heap->heap_count && heap->heaps[heap->heap_count - 1] == at) || heap->heap_count == MAX_HEAPS * 64)
		return NULL;
	if (!MW_VECTOR_ROOM(heap->heaps, heap->heap_count, heap->heap_capacity))
		return mw_error_nomem();
	heap->heaps[heap->heap_count++] = at;
	return NULL;
}

static struct mw_error *add_page(struct heap *heap, const struct page *page)
{
	if (!MW_VECTOR_ROOM(heap->pages, heap->page_count, heap->page_capacity))
		return mw_error_nomem();
	heap->strange += page->skip != NULL;
	heap->pages[heap->page_count++] = *page;
	return NULL;
}

/* A run of slices that is not free: where its blocks begin, and whether all fields agree about them. */
static void look_at_page(struct heap *heap, struct page *page)
{
	page->size = page->slice.block_size;
	if (page->size >= HUGE_SIZE)
		page->size = page->end - page->start;
	if (page->size >= 8 && page->size <= SMALL_SIZE)
		page->start += OFFSET;
	if (!is_consistent(heap, page))
		page->skip = "a page of mimalloc that is being changed";
}

static struct mw_error *find_pages(struct heap *heap, mw_addr at)
{
	struct segment_header header;
	mw_addr end;

	if (!read_segment(heap, at, &header))
		return NULL;
	end = at + header.slices * SLICE;
	/* It is kept for later use. */
	if (!header.used && !header.thread)
		return add_page(heap, &(struct page){.start = at, .end = end});
	for (uint64_t i = header.info_slices; i < header.slice_entries;) {
		struct page page = {.at = at + SLICES_AT + i * sizeof(page.slice), .start = at + i * SLICE};

		page.end = end;
		if (!mw_reader_read(heap->reader, page.at, &page.slice, sizeof(page.slice)) || !page.slice.count ||
		    page.slice.count > header.slices - i || page.slice.offset) {
			page.skip = "a segment of mimalloc that is being changed";
			return add_page(heap, &page);
		}
		i += page.slice.count;
		page.end = at + i * SLICE;
		if (page.slice.block_size)
			look_at_page(heap, &page);
		MW_TRY(add_page(heap, &page));
	}
	return NULL;
}

/* --- spans ------------------------------------------------------------------------------------------------------------------ */

static struct mw_error *add_blocks(struct heap *heap, struct page *page)
{
	MW_TRY(note_heap(heap, page->slice.heap));
	MW_TRY(mw_blocks_add_span(heap->blocks, heap->arena, page->start, page->end, page->size, 0, &page->span));
	for (unsigned i = 0; i < page->slice.capacity; i++)
		mw_span_set_live(heap->blocks, page->span, page->start + i * page->size, true);
	set_chain_free(heap, page, page->slice.free);
	set_chain_free(heap, page, page->slice.local_free);
	set_chain_free(heap, page, page->slice.thread_free & ~UINT64_C(3));
	heap->steps += page->slice.capacity;
	return NULL;
}

static struct mw_error *add_span(struct heap *heap, struct page *page)
{
	mw_addr first = page->start & ~(SLICE - 1);

	if (page->skip)
		return skip(heap, first, page->end, page->skip);
	if (!page->size)
		return mw_blocks_add_span(heap->blocks, heap->arena, first, page->end, page->end - first, 0,
					  &page->span);
	MW_TRY(mw_blocks_add_bookkeeping(heap->blocks, heap->arena, first, page->start));
	/* A thread that stands in mimalloc may have it in work, and no pointer to the block yet. */
	if (page->slice.capacity == 1 && page->slice.used &&
	    mw_walk_in_flight_has(&heap->in_flight, page->at, page->at + 1))
		return skip(heap, page->start, page->end, "a page of mimalloc that may just be made");
	return add_blocks(heap, page);
}

/* What lies before a segment's first page is its own. */
static struct mw_error *add_info(struct heap *heap, mw_addr at)
{
	struct segment_header header;

	if (!read_segment(heap, at, &header) || (!header.used && !header.thread))
		return NULL;
	return mw_blocks_add_bookkeeping(heap->blocks, heap->arena, at, at + header.info_slices * SLICE);
}

static struct mw_error *add_all(struct heap *heap)
{
	MW_TRY(mw_walk_in_flight_read(heap->reader, heap->image, heap->file, &heap->in_flight));
	MW_TRY(mw_blocks_add_arena(heap->blocks, heap->allocator, "main", &heap->arena));
	for (size_t i = 0; i < heap->count; i++)
		MW_TRY(add_info(heap, heap->segments[i]));
	MW_EACH_MUTABLE(page, heap->pages, heap->page_count)
		MW_TRY(add_span(heap, page));
	return NULL;
}

/* --- blocks that wait for their heap's thread ----------------------------------------------------------------------------------- */

static int compare_addrs(const void *a, const void *b)
{
	mw_addr x = *(const mw_addr *)a, y = *(const mw_addr *)b;

	return x < y ? -1 : x > y;
}

static bool is_in_segments(const struct heap *heap, mw_addr at)
{
	mw_addr segment = at & ~(SEGMENT - 1);

	/* A huge one's block is in its first 32 MiB. */
	return at && bsearch(&segment, heap->segments, heap->count, sizeof(segment), compare_addrs);
}

static void take_delayed(struct heap *heap)
{
	if (heap->heap_count)
		qsort(heap->heaps, heap->heap_count, sizeof(*heap->heaps), compare_addrs);
	for (size_t i = 0; i < heap->heap_count; i++) {
		mw_addr at;

		if (i && heap->heaps[i] == heap->heaps[i - 1])
			continue;
		at = mw_reader_word_or_0(heap->reader, heap->heaps[i] + HEAP_DELAYED);
		while (is_in_segments(heap, at) && heap->steps && mw_blocks_set_live(heap->blocks, at, false)) {
			heap->steps--;
			at = mw_reader_word_or_0(heap->reader, at);
		}
	}
}

/* --- one file's ------------------------------------------------------------------------------------------------------------------- */

static struct mw_error *find_all(struct heap *heap, const char **why)
{
	struct mw_walk_data *data = malloc(sizeof(*data));
	bool found;

	if (!data)
		return mw_error_nomem();
	found = find_cookie(heap, data);
	free(data);
	choose_segments(heap);
	for (size_t i = 0; found && i < heap->count; i++)
		MW_TRY(find_pages(heap, heap->segments[i]));
	if (!found || heap->strange > 16 + heap->page_count / 64)
		*why = "this version of mimalloc is not known: its memory is treated as roots";
	return NULL;
}

static struct mw_error *walk_heap(struct heap *heap)
{
	const char *why = NULL;

	MW_TRY(find_segments(heap));
	MW_TRY(find_all(heap, &why));
	MW_TRY(mw_walk_add(heap->blocks, "mimalloc", why ? "" : VERSION, heap->file->path, why, &heap->allocator));
	if (why)
		return NULL;
	MW_TRY(add_all(heap));
	take_delayed(heap);
	return NULL;
}

static struct mw_error *walk_file(const struct mw_image *image, const struct mw_walk_file *file,
				  struct mw_reader *reader, struct mw_blocks *blocks)
{
	struct heap heap = {.image = image, .reader = reader, .blocks = blocks, .file = file};
	struct mw_error *err;
	mw_addr message;

	MW_TRY(mw_walk_find_constant(image, file, MESSAGE, sizeof(MESSAGE), &message));
	if (!message)
		return NULL;
	err = walk_heap(&heap);
	free(heap.segments);
	free(heap.pages);
	free(heap.heaps);
	free(heap.in_flight.words);
	return err;
}

const struct mw_walker mw_walker_mimalloc = {.name = "mimalloc", .walk_file = walk_file};

// SPDX-License-Identifier: MIT
/*
 * walk_tcmalloc.c: gperftools' tcmalloc 2.10, with or without its profilers, shared or linked into a program.
 *
 *      page map ──► Span of a run of pages: free, one large block, or objects of one size class
 *      a span's objects        those that are free in it: a chain through their first words
 *      central_cache[class]    chains of free objects that wait for another thread
 *      ThreadCache, a chain    a chain of free objects for each class
 *      SizeMap                 sizes by class
 *
 * None of it has a symbol. The page map is found as a tree whose elements say where they stand; the sizes as numbers that
 * rise to 256 KiB, with as many pages for each as it needs; a ThreadCache by its objects' sizes, which are those; the central
 * caches by the number of its class in each. A span whose free objects don't agree with its count is being changed, and
 * passed over.
 */
#include "heap/radix.h"
#include "heap/walker.h"

#include "base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION       "gperftools 2.10"
#define PREFIX        "gperftools "
#define DEBUG         "TCMALLOC_MAX_FREE_QUEUE_SIZE" /* of the library that puts headers of its own into blocks */
#define CLASSES       128u
#define MAX_SIZE      (256u << 10) /* of an object */
#define MAX_CACHES    (1u << 16)
#define META_PAGE     UINT64_C(4096)
#define ADDRESS_LIMIT (UINT64_C(1) << 47)

enum { IN_USE };

struct span {
	uint64_t start, length; /* in pages */
	uint64_t next, prev, objects;
	uint32_t bits, padding;
};

#define REFERENCES(bits) ((bits)&0xffff)
#define CLASS(bits)      ((bits) >> 16 & 0xff)
#define LOCATION(bits)   ((bits) >> 24 & 3)

struct free_list {
	uint64_t head;
	uint32_t length, low_water, max_length, overages;
	int32_t size;
	uint32_t padding;
};

/* Behind its lists. */
struct thread_cache_end {
	int32_t size, max_size;
	uint64_t until_sample, random, initialized, tid, in_setspecific, next, prev;
};

#define CACHE_SIZE (CLASSES * sizeof(struct free_list) + sizeof(struct thread_cache_end))

/* CentralFreeList */
#define CENTRAL_CLASS UINT64_C(8)
#define CENTRAL_SLOTS UINT64_C(128)
#define CENTRAL_USED  UINT64_C(1152)
#define CENTRAL_SIZE  UINT64_C(1216)
#define SLOTS         64u

struct found_span {
	mw_addr start, end, at;
	uint32_t number; /* of mw_blocks */
	uint32_t bits;
	mw_addr objects;
};

struct heap {
	const struct mw_image *image;
	struct mw_reader *reader;
	struct mw_blocks *blocks;
	const struct mw_walk_file *file;
	uint32_t allocator, arena;
	unsigned page_shift;
	struct found_span *spans; /* by address */
	size_t count, capacity;
	uint64_t strange;
	uint32_t sizes[CLASSES];
	unsigned class_count;
	mw_addr caches, central; /* 0: not found */
	struct mw_walk_in_flight in_flight;
	uint64_t steps; /* that all chains may have yet: no object is free twice */
};

/* --- spans ------------------------------------------------------------------------------------------------------------------ */

static bool read_span(struct heap *heap, mw_addr at, struct span *out)
{
	uint64_t limit = ADDRESS_LIMIT >> heap->page_shift;

	return at % 8 == 0 && mw_reader_read(heap->reader, at, out, sizeof(*out)) && out->start && out->start < limit &&
	       out->length && out->length < limit && LOCATION(out->bits) <= 2 && CLASS(out->bits) < CLASSES;
}

static bool range_of(void *context, uint64_t element, mw_addr *start, mw_addr *end)
{
	struct heap *heap = context;
	struct span span;

	if (!read_span(heap, element, &span))
		return false;
	*start = span.start << heap->page_shift;
	*end = (span.start + span.length) << heap->page_shift;
	return true;
}

/* Elements inside a span are of no more use, or left from another. */
static struct mw_error *take_element(void *context, uint64_t element, mw_addr page)
{
	struct heap *heap = context;
	struct span span;

	if (heap->count && page < heap->spans[heap->count - 1].end)
		return NULL;
	if (!read_span(heap, element, &span) || span.start << heap->page_shift != page ||
	    !mw_walk_is_mapped(heap->image, page, page + (span.length << heap->page_shift))) {
		heap->strange++;
		return NULL;
	}
	if (!MW_VECTOR_ROOM(heap->spans, heap->count, heap->capacity))
		return mw_error_nomem();
	heap->spans[heap->count++] = (struct found_span){
		page, page + (span.length << heap->page_shift), element, MW_BLOCK_NONE, span.bits, span.objects};
	return NULL;
}

static struct mw_error *find_spans(struct heap *heap, bool *found)
{
	static const struct mw_radix_shape shapes[] = {{2, {17, 18}, 1, 13},
						       {2, {18, 18}, 1, 12},
						       {2, {16, 17}, 1, 15},
						       {2, {16, 16}, 1, 16},
						       {2, {15, 15}, 1, 18}};
	const struct mw_radix radix = {heap->image, heap->file, range_of, take_element, heap};
	const struct mw_radix_shape *shape = NULL;
	uint64_t bad = 0;

	/* What a span says depends on the size of pages. */
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes) && !shape; i++) {
		heap->page_shift = shapes[i].page_shift;
		MW_TRY(mw_radix_walk(&radix, &shapes[i], 1, &shape, &bad));
	}
	*found = shape != NULL;
	heap->strange += bad;
	return NULL;
}

static const struct found_span *span_of(const struct heap *heap, mw_addr addr)
{
	size_t count = mw_vector_up_to(heap->spans, heap->count, sizeof(*heap->spans),
				       offsetof(struct found_span, start), addr);

	return count && addr < heap->spans[count - 1].end ? &heap->spans[count - 1] : NULL;
}

/* --- sizes of classes ------------------------------------------------------------------------------------------------------- */

/* Do the sizes of classes stand at `at`, and the pages of their spans behind them? */
static bool read_sizes(struct heap *heap, mw_addr at)
{
	uint64_t pages[CLASSES + 1];
	unsigned count = 1;

	if (!mw_reader_read(heap->reader, at, heap->sizes, sizeof(heap->sizes)) ||
	    !mw_reader_read(heap->reader, (at + sizeof(heap->sizes) + 7) & ~UINT64_C(7), pages, sizeof(pages)))
		return false;
	while (count < CLASSES && heap->sizes[count] > heap->sizes[count - 1] && heap->sizes[count] % 8 == 0)
		count++;
	if (heap->sizes[0] || heap->sizes[1] > 16 || heap->sizes[count - 1] != MAX_SIZE || pages[CLASSES] != count)
		return false;
	for (unsigned i = 1; i < count; i++)
		if (pages[i] << heap->page_shift < heap->sizes[i] || pages[i] > 4096)
			return false;
	heap->class_count = count;
	return true;
}

/* A ThreadCache has the sizes of all classes. */
static bool is_cache(struct heap *heap, mw_addr at, struct thread_cache_end *end)
{
	struct free_list lists[CLASSES];

	if (!at || at % 16 || !mw_reader_read(heap->reader, at, lists, sizeof(lists)) ||
	    !mw_reader_read(heap->reader, at + sizeof(lists), end, sizeof(*end)))
		return false;
	for (unsigned i = 1; i < heap->class_count; i++)
		if ((uint32_t)lists[i].size != heap->sizes[i])
			return false;
	return true;
}

/* Is that the class of the second of the central caches, whose first has 0? */
static bool is_central(struct heap *heap, mw_addr at)
{
	for (unsigned i = 0; i < heap->class_count; i++)
		if (mw_reader_word_or_0(heap->reader, at + (i - 1) * CENTRAL_SIZE) != i)
			return false;
	return true;
}

static bool each_data(struct heap *heap, struct mw_walk_data *data,
		      bool (*see)(struct heap *heap, mw_addr at, uint64_t word))
{
	*data = (struct mw_walk_data){.image = heap->image, .file = heap->file, .mapping = heap->file->first};
	while (mw_walk_next_data(data))
		for (size_t i = 0; i < data->count; i++)
			if (see(heap, data->start + i * 8, data->words[i]))
				return true;
	return false;
}

/* The sizes of the first two classes, in either half of a word. */
static bool see_sizes(struct heap *heap, mw_addr at, uint64_t word)
{
	uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32);

	if (low == 0 && (high == 8 || high == 16))
		return read_sizes(heap, at);
	return (low == 8 || low == 16) && high > low && high <= 32 && read_sizes(heap, at - 4);
}

static bool see_caches(struct heap *heap, mw_addr at, uint64_t word)
{
	struct thread_cache_end end;

	if (!heap->central && word == 1 && is_central(heap, at))
		heap->central = at - CENTRAL_CLASS - CENTRAL_SIZE;
	if (!heap->caches && word % 16 == 0 && is_cache(heap, word, &end) && !end.prev)
		heap->caches = word;
	return heap->central && heap->caches;
}

/* --- what is free ------------------------------------------------------------------------------------------------------------- */

static bool set_free(struct heap *heap, mw_addr object, unsigned size_class)
{
	const struct found_span *span = span_of(heap, object);

	return span && span->number != MW_BLOCK_NONE && CLASS(span->bits) == size_class &&
	       mw_span_set_live(heap->blocks, span->number, object, false);
}

/* Set free a chain of objects, up to `last` or its end; how many they were. */
static uint64_t set_chain_free(struct heap *heap, mw_addr first, mw_addr last, unsigned size_class)
{
	uint64_t count = 0;

	for (mw_addr at = first; at && heap->steps && set_free(heap, at, size_class); count++, heap->steps--) {
		if (at == last)
			return count + 1;
		at = mw_reader_word_or_0(heap->reader, at);
	}
	return count;
}

static void take_central(struct heap *heap)
{
	for (unsigned i = 1; i < heap->class_count; i++) {
		mw_addr at = heap->central + i * CENTRAL_SIZE;
		uint32_t used = (uint32_t)mw_reader_word_or_0(heap->reader, at + CENTRAL_USED);
		uint64_t slot[2];

		for (unsigned j = 0; j < used && j < SLOTS; j++)
			if (mw_reader_read(heap->reader, at + CENTRAL_SLOTS + j * sizeof(slot), slot, sizeof(slot)))
				set_chain_free(heap, slot[0], slot[1], i);
	}
}

static struct mw_error *take_caches(struct heap *heap)
{
	struct mw_heap_allocator *allocator = mw_blocks_allocator_mutable(heap->blocks, heap->allocator);
	mw_addr at = heap->caches, before = 0;
	struct thread_cache_end end;

	for (unsigned n = 0; n < MAX_CACHES && at && is_cache(heap, at, &end) && end.prev == before; n++) {
		MW_TRY(mw_blocks_add_bookkeeping(heap->blocks, heap->arena, at, at + CACHE_SIZE));
		for (unsigned i = 1; i < heap->class_count; i++) {
			mw_addr head = mw_reader_word_or_0(heap->reader, at + i * sizeof(struct free_list));

			allocator->cached += set_chain_free(heap, head, 0, i) * heap->sizes[i];
		}
		before = at;
		at = end.next;
	}
	return NULL;
}

/* --- spans of pages to spans of blocks ------------------------------------------------------------------------------------------ */

static struct mw_error *skip(struct heap *heap, const struct found_span *span, const char *why)
{
	mw_blocks_allocator_mutable(heap->blocks, heap->allocator)->skipped += span->end - span->start;
	return mw_blocks_add_skipped(heap->blocks, span->start, span->end - span->start, why);
}

/* How many objects a span has free; UINT64_MAX: its chain is corrupt. */
static uint64_t count_free(struct heap *heap, const struct found_span *span, uint64_t size, uint64_t objects)
{
	uint64_t count = 0;

	for (mw_addr at = span->objects; at; count++) {
		if (count == objects || at < span->start || at >= span->start + objects * size ||
		    (at - span->start) % size)
			return UINT64_MAX;
		at = mw_reader_word_or_0(heap->reader, at);
	}
	return count;
}

static struct mw_error *add_objects(struct heap *heap, struct found_span *span, unsigned size_class)
{
	uint64_t size = heap->sizes[size_class], objects = (span->end - span->start) / size;

	if (count_free(heap, span, size, objects) + REFERENCES(span->bits) != objects)
		return skip(heap, span, "a span of tcmalloc that is being changed");
	MW_TRY(mw_blocks_add_span(heap->blocks, heap->arena, span->start, span->end, size, 0, &span->number));
	heap->steps += objects;
	for (uint64_t i = 0; i < objects; i++)
		mw_span_set_live(heap->blocks, span->number, span->start + i * size, true);
	set_chain_free(heap, span->objects, 0, size_class);
	return NULL;
}

static struct mw_error *add_span(struct heap *heap, struct found_span *span)
{
	unsigned size_class = CLASS(span->bits);
	bool in_use = LOCATION(span->bits) == IN_USE;

	MW_TRY(mw_blocks_add_bookkeeping(heap->blocks, heap->arena, span->at & ~(META_PAGE - 1),
					 (span->at & ~(META_PAGE - 1)) + META_PAGE));
	if (in_use && size_class)
		return size_class < heap->class_count ? add_objects(heap, span, size_class)
						      : skip(heap, span, "a span of tcmalloc of no class");
	/* A thread that stands in tcmalloc may have it in work, and no pointer to the block yet. */
	if (in_use && mw_walk_in_flight_has(&heap->in_flight, span->at, span->at + 1))
		return skip(heap, span, "a span of tcmalloc that may just be made");
	MW_TRY(mw_blocks_add_span(heap->blocks, heap->arena, span->start, span->end, span->end - span->start, 0,
				  &span->number));
	if (in_use)
		mw_span_set_live(heap->blocks, span->number, span->start, true);
	return NULL;
}

static struct mw_error *add_spans(struct heap *heap)
{
	MW_EACH_MUTABLE(span, heap->spans, heap->count)
		MW_TRY(add_span(heap, span));
	take_central(heap);
	return take_caches(heap);
}

/* --- one file's ------------------------------------------------------------------------------------------------------------------- */

static struct mw_error *read_version(const struct mw_image *image, const struct mw_walk_file *file,
				     struct mw_reader *reader, char version[32], bool *debug)
{
	char text[32] = "";
	mw_addr at;

	version[0] = '\0';
	MW_TRY(mw_walk_find_constant(image, file, PREFIX, strlen(PREFIX), &at));
	if (!at || !mw_reader_read(reader, at, text, sizeof(text) - 1))
		return NULL;
	for (size_t i = 0, from = strlen(PREFIX); from + i < sizeof(text) && i < 31; i++) {
		char c = text[from + i];

		if (c != '.' && (c < '0' || c > '9'))
			break;
		version[i] = c;
		version[i + 1] = '\0';
	}
	if (!version[0])
		return NULL;
	MW_TRY(mw_walk_find_constant(image, file, "\0" DEBUG, sizeof("\0" DEBUG), &at));
	*debug = at != 0;
	return NULL;
}

static struct mw_error *find_all(struct heap *heap, const char **why)
{
	struct mw_walk_data *data = malloc(sizeof(*data));
	struct mw_error *err;
	bool found = false;

	if (!data)
		return mw_error_nomem();
	err = find_spans(heap, &found);
	if (!found)
		*why = "tcmalloc's page map was not found: its memory is treated as roots";
	else if (heap->strange > 16 + heap->count / 64)
		*why = "tcmalloc's page map is inconsistent: its memory is treated as roots";
	else if (!each_data(heap, data, see_sizes))
		*why = "tcmalloc's size classes were not found: its memory is treated as roots";
	else if (!each_data(heap, data, see_caches))
		*why = "tcmalloc's caches were not found: its memory is treated as roots";
	free(data);
	return err;
}

static struct mw_error *walk_heap(struct heap *heap, const char *version, bool debug)
{
	const char *why = NULL;

	if (strcmp(version, "2.10") != 0)
		why = "this version of tcmalloc is not known: its memory is treated as roots";
	else if (debug)
		why = "tcmalloc's library for debugging is not known: its memory is treated as roots";
	else
		MW_TRY(find_all(heap, &why));
	MW_TRY(mw_walk_add(heap->blocks, "tcmalloc", version, heap->file->path, why, &heap->allocator));
	if (why)
		return NULL;
	MW_TRY(mw_walk_in_flight_read(heap->reader, heap->image, heap->file, &heap->in_flight));
	MW_TRY(mw_blocks_add_arena(heap->blocks, heap->allocator, "main", &heap->arena));
	return add_spans(heap);
}

static struct mw_error *walk_file(const struct mw_image *image, const struct mw_walk_file *file,
				  struct mw_reader *reader, struct mw_blocks *blocks)
{
	struct heap heap = {.image = image, .reader = reader, .blocks = blocks, .file = file};
	struct mw_error *err;
	bool debug = false;
	char version[32];

	MW_TRY(read_version(image, file, reader, version, &debug));
	if (!version[0])
		return NULL;
	err = walk_heap(&heap, version, debug);
	free(heap.spans);
	free(heap.in_flight.words);
	return err;
}

const struct mw_walker mw_walker_tcmalloc = {.name = "tcmalloc", .walk_file = walk_file};

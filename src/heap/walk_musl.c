// SPDX-License-Identifier: MIT
/*
 * walk_musl.c: musl's mallocng (1.2.1 and later), shared or linked into a program.
 *
 *      ctx, in libc's data      0 secret, 8 in use, 56 first and 64 last meta area, 464 slots by class
 *      meta area, a page        0 secret, 8 next, 16 how many, 24 metas
 *      meta                     of a group: where it is, which slots were never used or are free, class, pages
 *      group                    0 meta, 16 up to 32 slots of one size; a small group lies in a slot of a larger one
 *      slot                     4 bytes before it: its number, how much of it is not used; an offset to where the block
 *                               begins
 *
 * ctx has no symbol; it is found by its secret, which each area has as well. A block is added with the bytes that the program
 * asked for, up to a multiple of 16; the rest of its slot is free. A group that is being changed is passed over, with all
 * that lies in the same mapping, and so is a slot that is taken but whose header is not that of a block.
 */
#include "heap/walk.h"
#include "heap/walker.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGE   "musl libc ("
#define PAGE      UINT64_C(4096)
#define UNIT      UINT64_C(16)
#define TAIL      4u /* of a slot: the next one's header */
#define CLASSES   48u
#define ALONE     63u /* the class of a group that is one block */
#define METAS     ((PAGE - 24) / sizeof(struct meta))
#define MAX_AREAS (1u << 20)
#define USAGE_AT  464u

/* What stands before a block in its slot's header. */
#define NUMBER(byte)   ((byte)&31)
#define RESERVED(byte) ((byte) >> 5)
enum { RESERVED_FAR = 5, RESERVED_GROUP = 6, RESERVED_OFFSET = 7 };

static const uint16_t units_of_class[CLASSES] = {
	1,   2,   3,   4,    5,    6,    7,    8,    9,    10,   12,   15,   18,   20,   25,   31,
	36,  42,  50,  63,   72,   84,   102,  127,  146,  170,  204,  255,  292,  340,  409,  511,
	584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

struct meta {
	uint64_t before, next, group;
	uint32_t available, freed;
	uint64_t bits;
};

#define LAST(bits)     ((unsigned)((bits)&31))
#define FREEABLE(bits) ((bits) >> 5 & 1)
#define CLASS(bits)    ((unsigned)((bits) >> 6 & 63))
#define PAGES(bits)    ((bits) >> 12)

struct group {
	mw_addr start, end, meta;
	uint64_t stride;
	uint64_t bits;
	uint32_t live; /* slots */
	bool bad;      /* is inconsistent now */
	bool in_work;
};

struct heap {
	const struct mw_image *image;
	struct mw_reader *reader;
	struct mw_blocks *blocks;
	const struct mw_walk_file *file;
	uint32_t allocator, arena;
	mw_addr ctx;
	uint64_t secret;
	struct group *groups; /* by address */
	size_t count, capacity;
	size_t strange;
	mw_addr *areas;
	size_t area_count, area_capacity;
	uint64_t slots[CLASSES];
	struct mw_walk_in_flight in_flight;
};

/* --- ctx and its areas -------------------------------------------------------------------------------------------------------- */

static bool is_ctx(struct heap *heap, mw_addr at, uint64_t secret)
{
	uint64_t words[9];

	if (!mw_reader_read(heap->reader, at, words, sizeof(words)) || (uint32_t)words[1] != 1)
		return false;
	return words[7] && words[7] % PAGE == 0 && words[8] && words[8] % PAGE == 0 &&
	       mw_reader_word_or_0(heap->reader, words[7]) == secret &&
	       mw_reader_word_or_0(heap->reader, words[8]) == secret;
}

static bool find_ctx(struct heap *heap, struct mw_walk_data *data)
{
	*data = (struct mw_walk_data){.image = heap->image, .file = heap->file, .mapping = heap->file->first};
	while (mw_walk_next_data(data))
		for (size_t i = 0; i < data->count; i++)
			if (data->words[i] && is_ctx(heap, data->start + i * 8, data->words[i])) {
				heap->ctx = data->start + i * 8;
				heap->secret = data->words[i];
				return true;
			}
	return false;
}

static struct mw_error *take_meta(struct heap *heap, mw_addr at, const struct meta *meta)
{
	unsigned class = CLASS(meta->bits), last = LAST(meta->bits);
	uint32_t all = (uint32_t)((UINT64_C(2) << last) - 1);
	struct group group = {.start = meta->group, .meta = at, .bits = meta->bits};

	if (!meta->group)
		return NULL;
	if (class >= CLASSES && (class != ALONE || !PAGES(meta->bits))) {
		heap->strange++;
		return NULL;
	}
	group.stride =
		!last && PAGES(meta->bits) ? PAGES(meta->bits) * PAGE - UNIT : UNIT * units_of_class[class % CLASSES];
	group.end = group.start + (PAGES(meta->bits) ? PAGES(meta->bits) * PAGE : UNIT + (last + 1) * group.stride);
	if (group.start % UNIT || group.end >> 47 || group.end - group.start < UNIT + (last + 1) * group.stride ||
	    !mw_walk_is_mapped(heap->image, group.start, group.end)) {
		heap->strange++;
		return NULL;
	}
	group.live = all & ~(meta->available | meta->freed);
	group.bad = mw_reader_word_or_0(heap->reader, group.start) != at || (meta->available & meta->freed) ||
		    ((meta->available | meta->freed) & ~all);
	group.in_work = mw_walk_in_flight_has(&heap->in_flight, at, at + 1);
	heap->strange += group.bad;
	if (class < CLASSES && FREEABLE(meta->bits))
		heap->slots[class] += last + 1;
	if (!MW_VECTOR_ROOM(heap->groups, heap->count, heap->capacity))
		return mw_error_nomem();
	heap->groups[heap->count++] = group;
	return NULL;
}

static struct mw_error *take_area(struct heap *heap, mw_addr at)
{
	struct meta metas[METAS];

	if (!MW_VECTOR_ROOM(heap->areas, heap->area_count, heap->area_capacity))
		return mw_error_nomem();
	heap->areas[heap->area_count++] = at;
	if (!mw_reader_read(heap->reader, at + 24, metas, sizeof(metas))) {
		heap->strange++;
		return NULL;
	}
	for (size_t i = 0; i < METAS; i++)
		MW_TRY(take_meta(heap, at + 24 + i * sizeof(*metas), &metas[i]));
	return NULL;
}

static struct mw_error *take_areas(struct heap *heap)
{
	mw_addr at = mw_reader_word_or_0(heap->reader, heap->ctx + 56), mark = 0;

	for (unsigned i = 1; i < MAX_AREAS && at; i++) {
		if (at % PAGE || mw_reader_word_or_0(heap->reader, at) != heap->secret || at == mark) {
			heap->strange++;
			return NULL;
		}
		MW_TRY(take_area(heap, at));
		/* Of a chain that leads back to itself one place is met again. */
		if ((i & (i - 1)) == 0)
			mark = at;
		at = mw_reader_word_or_0(heap->reader, at + 8);
	}
	return NULL;
}

/* Do the slots of all groups agree with how many are said to be there? A thread may be about to change one class. */
static bool slots_agree(struct heap *heap)
{
	unsigned differing = 0;

	for (unsigned i = 0; i < CLASSES; i++)
		differing += mw_reader_word_or_0(heap->reader, heap->ctx + USAGE_AT + i * 8) != heap->slots[i];
	return differing <= 2;
}

/* --- slots -------------------------------------------------------------------------------------------------------------------- */

static uint64_t read_number(struct heap *heap, mw_addr at, size_t size)
{
	uint64_t number = 0;

	return mw_reader_read(heap->reader, at, &number, size) ? number : 0;
}

/* Does the header before `block` say that it is in that slot? */
static bool is_block(struct heap *heap, const struct group *group, unsigned slot, mw_addr block)
{
	uint64_t offset = read_number(heap, block - 2, 2);

	if (read_number(heap, block - 4, 1))
		offset = read_number(heap, block - 8, 4);
	return NUMBER(read_number(heap, block - 3, 1)) == slot && offset * UNIT == block - group->start - UNIT;
}

/* The bytes of the block that are not asked for; UINT64_MAX: they are invalid. */
static uint64_t reserved_of(struct heap *heap, mw_addr block, mw_addr end)
{
	uint64_t reserved = RESERVED(read_number(heap, block - 3, 1));

	if (reserved == RESERVED_FAR)
		reserved = read_number(heap, end - TAIL, 4);
	else if (reserved > RESERVED_FAR)
		return UINT64_MAX;
	return reserved <= end - block ? reserved : UINT64_MAX;
}

static struct mw_error *skip(struct heap *heap, mw_addr start, mw_addr end, const char *why)
{
	mw_blocks_allocator_mutable(heap->blocks, heap->allocator)->skipped += end - start;
	return mw_blocks_add_skipped(heap->blocks, start, end - start, why);
}

/* A slot that was just taken has no header yet, and one that is being freed has it no longer. The first slot of a group that
 * never was used has a header of zeros, which is one of a block that fills it: what a thread says decides. */
static bool is_known(struct heap *heap, const struct group *group, unsigned slot, mw_addr block, mw_addr end)
{
	if (block >= end || !is_block(heap, group, slot, block))
		return false;
	return slot || RESERVED(read_number(heap, block - 3, 1)) || !group->in_work;
}

static struct mw_error *add_slot(struct heap *heap, uint32_t span, const struct group *group, unsigned slot)
{
	mw_addr start = group->start + UNIT + slot * group->stride, block = start, end = start + group->stride - TAIL;
	mw_addr behind;
	uint64_t reserved;

	mw_span_cut(heap->blocks, span, start);
	if (!(group->live >> slot & 1))
		return NULL;
	if (RESERVED(read_number(heap, start - 3, 1)) == RESERVED_OFFSET)
		block += read_number(heap, start - 2, 2) * UNIT;
	if (!is_known(heap, group, slot, block, end))
		return skip(heap, start, end, "a block of musl's malloc that is being changed");
	if (RESERVED(read_number(heap, block - 3, 1)) == RESERVED_GROUP)
		return NULL;
	reserved = reserved_of(heap, block, end);
	if (reserved == UINT64_MAX)
		reserved = 0;
	mw_span_cut(heap->blocks, span, block);
	mw_span_set_live(heap->blocks, span, block, true);
	behind = block + ((end - reserved - block + UNIT - 1) & ~(UNIT - 1));
	if (behind < end)
		mw_span_cut(heap->blocks, span, behind > block ? behind : block + UNIT);
	return NULL;
}

/* --- groups ------------------------------------------------------------------------------------------------------------------- */

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Groups from `first` to `end` lie in the first one. */
static struct mw_error *add_groups(struct heap *heap, size_t first, size_t end)
{
	const struct group *outer = &heap->groups[first];
	bool whole = true;
	uint32_t span;

	for (size_t i = first; i < end; i++)
		whole = whole && !heap->groups[i].bad && heap->groups[i].end <= outer->end;
	if (!whole)
		return skip(heap, outer->start, outer->end, "a group of musl's malloc that is being changed");
	MW_TRY(mw_blocks_add_span(heap->blocks, heap->arena, outer->start, outer->end, 0, 0, &span));
	for (size_t i = first; i < end; i++) {
		const struct group *group = &heap->groups[i];
		unsigned last = LAST(group->bits);

		for (unsigned slot = 0; slot <= last; slot++)
			MW_TRY(add_slot(heap, span, group, slot));
		mw_span_cut(heap->blocks, span, group->start + UNIT + (last + 1) * group->stride);
	}
	return NULL;
}

static struct mw_error *add_all(struct heap *heap)
{
	size_t end;

	MW_TRY(mw_blocks_add_arena(heap->blocks, heap->allocator, "main", &heap->arena));
	if (!heap->groups)
		return NULL;
	qsort(heap->groups, heap->count, sizeof(*heap->groups), compare_groups);
	for (size_t i = 0; i < heap->count; i = end) {
		for (end = i + 1; end < heap->count && heap->groups[end].start < heap->groups[i].end; end++)
			;
		MW_TRY(add_groups(heap, i, end));
	}
	for (size_t i = 0; i < heap->area_count; i++)
		MW_TRY(mw_blocks_add_bookkeeping(heap->blocks, heap->arena, heap->areas[i], heap->areas[i] + PAGE));
	return NULL;
}

/* --- one file's ------------------------------------------------------------------------------------------------------------------- */

/* A program with musl in it has no version in it. */
static struct mw_error *read_version(struct heap *heap, char version[32])
{
	static const char begin[] = "\0001.2.";
	mw_addr at;

	version[0] = '\0';
	MW_TRY(mw_walk_find_constant(heap->image, heap->file, begin, sizeof(begin) - 1, &at));
	if (at && !mw_reader_read(heap->reader, at + 1, version, 8))
		version[0] = '\0';
	version[strspn(version, "0123456789.")] = '\0';
	return NULL;
}

static struct mw_error *find_all(struct heap *heap, const char **why)
{
	MW_TRY(mw_walk_in_flight_read(heap->reader, heap->image, heap->file, &heap->in_flight));
	MW_TRY(take_areas(heap));
	if (heap->strange > 16 + heap->count / 64 || !slots_agree(heap))
		*why = "the groups of musl's malloc are inconsistent: its memory is treated as roots";
	return NULL;
}

static struct mw_error *walk_heap(struct heap *heap)
{
	struct mw_walk_data *data = malloc(sizeof(*data));
	const char *why = NULL;
	mw_addr message = 0;
	char version[32] = "";

	if (!data)
		return mw_error_nomem();
	find_ctx(heap, data);
	free(data);
	MW_TRY(mw_walk_find_constant(heap->image, heap->file, MESSAGE, strlen(MESSAGE), &message));
	if (!heap->ctx && !message)
		return NULL;
	if (message)
		MW_TRY(read_version(heap, version));
	if (heap->ctx)
		MW_TRY(find_all(heap, &why));
	else
		why = "this malloc of musl is not known: its memory is treated as roots";
	MW_TRY(mw_walk_add(heap->blocks, "musl", version, heap->file->path, why, &heap->allocator));
	return why ? NULL : add_all(heap);
}

static struct mw_error *walk_file(const struct mw_image *image, const struct mw_walk_file *file,
				  struct mw_reader *reader, struct mw_blocks *blocks)
{
	struct heap heap = {.image = image, .reader = reader, .blocks = blocks, .file = file};
	struct mw_error *err = walk_heap(&heap);

	free(heap.groups);
	free(heap.areas);
	free(heap.in_flight.words);
	return err;
}

const struct mw_walker mw_walker_musl = {.name = "musl", .walk_file = walk_file};

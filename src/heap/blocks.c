// SPDX-License-Identifier: MIT
/*
 * blocks.c: spans, their segments, and which span an address lies in (blocks.h).
 *
 * A table of two levels leads from a page to the span on it: 2^18 leaves of 1 GiB each, made as they are needed. Where
 * two spans share a page it has the first one that was added, and all spans are searched behind it.
 */
#include "heap/blocks.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define GRAIN      16u
#define PAGE_SHIFT 12u
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION /* the table is made anew for each input */
#define LEAF_SHIFT   24u
#define ADDRESS_BITS 36u
#else
#define LEAF_SHIFT   30u
#define ADDRESS_BITS 48u
#endif
#define LEAVES     (1u << (ADDRESS_BITS - LEAF_SHIFT))
#define LEAF_PAGES (1u << (LEAF_SHIFT - PAGE_SHIFT))
#define RANK_WORDS 8u /* of 64 bits, from one rank to the next */
#define RANK_BITS  (64u * RANK_WORDS)

struct mw_blocks {
	struct mw_heap_allocator *allocators;
	size_t allocator_count, allocator_capacity;
	struct mw_heap_arena *arenas;
	size_t arena_count, arena_capacity;
	struct mw_span *spans;
	size_t span_count, span_capacity;
	struct mw_bookkeeping *bookkeeping;
	size_t bookkeeping_count, bookkeeping_capacity;
	struct mw_heap_skipped *skipped;
	size_t skipped_count, skipped_capacity;
	uint32_t **leaves; /* LEAVES; of pages, a span's number + 1 */
	bool shared_pages; /* two spans may be on one */
	bool finished;
	uint32_t segments;
};

struct mw_error *mw_blocks_create(struct mw_blocks **out)
{
	struct mw_blocks *blocks = calloc(1, sizeof(*blocks));

	if (blocks)
		blocks->leaves = calloc(LEAVES, sizeof(*blocks->leaves));
	if (!blocks || !blocks->leaves) {
		free(blocks);
		return mw_error_nomem();
	}
	*out = blocks;
	return NULL;
}

void mw_blocks_destroy(struct mw_blocks *blocks)
{
	if (!blocks)
		return;
	MW_EACH(allocator, blocks->allocators, blocks->allocator_count) {
		free(allocator->module);
		free(allocator->why);
	}
	MW_EACH(span, blocks->spans, blocks->span_count) {
		free(span->live);
		free(span->begins);
		free(span->ranks);
	}
	for (size_t i = 0; i < LEAVES; i++)
		free(blocks->leaves[i]);
	free(blocks->leaves);
	free(blocks->allocators);
	free(blocks->arenas);
	free(blocks->spans);
	free(blocks->bookkeeping);
	free(blocks->skipped);
	free(blocks);
}

/* --- filling -------------------------------------------------------------------------------------------------------- */

struct mw_error *mw_blocks_add_allocator(struct mw_blocks *blocks, const struct mw_heap_allocator *allocator,
					 uint32_t *number)
{
	if (!MW_VECTOR_ROOM(blocks->allocators, blocks->allocator_count, blocks->allocator_capacity)) {
		free(allocator->module);
		free(allocator->why);
		return mw_error_nomem();
	}
	*number = (uint32_t)blocks->allocator_count;
	blocks->allocators[blocks->allocator_count++] = *allocator;
	return NULL;
}

struct mw_error *mw_blocks_add_arena(struct mw_blocks *blocks, uint32_t allocator, const char *name, uint32_t *number)
{
	struct mw_heap_arena arena = {.allocator = allocator};

	if (!MW_VECTOR_ROOM(blocks->arenas, blocks->arena_count, blocks->arena_capacity))
		return mw_error_nomem();
	strncpy(arena.name, name, sizeof(arena.name) - 1);
	*number = (uint32_t)blocks->arena_count;
	blocks->arenas[blocks->arena_count++] = arena;
	return NULL;
}

static uint32_t *page_entry(const struct mw_blocks *blocks, mw_addr addr)
{
	uint32_t *leaf = addr >> ADDRESS_BITS ? NULL : blocks->leaves[addr >> LEAF_SHIFT];

	return leaf ? &leaf[(addr >> PAGE_SHIFT) % LEAF_PAGES] : NULL;
}

static bool in_span(const struct mw_span *span, mw_addr addr)
{
	return addr >= span->start && addr < span->end;
}

/* The span on an address's page that holds it, or where several share pages, any that does. */
static const struct mw_span *span_of(const struct mw_blocks *blocks, mw_addr addr)
{
	const uint32_t *entry = page_entry(blocks, addr);
	size_t count;

	if (!entry || !*entry)
		return NULL;
	if (in_span(&blocks->spans[*entry - 1], addr))
		return &blocks->spans[*entry - 1];
	if (!blocks->shared_pages)
		return NULL;
	if (!blocks->finished) {
		MW_EACH(span, blocks->spans, blocks->span_count)
			if (in_span(span, addr))
				return span;
		return NULL;
	}
	count = mw_vector_up_to(blocks->spans, blocks->span_count, sizeof(*blocks->spans),
				offsetof(struct mw_span, start), addr);
	return count && in_span(&blocks->spans[count - 1], addr) ? &blocks->spans[count - 1] : NULL;
}

/* Does any span lie over [start, end)? */
static bool overlaps(const struct mw_blocks *blocks, mw_addr start, mw_addr end)
{
	for (mw_addr at = start; at < end; at = (at | ((1u << PAGE_SHIFT) - 1)) + 1) {
		const uint32_t *entry = page_entry(blocks, at);

		if (!entry) {
			at |= (UINT64_C(1) << LEAF_SHIFT) - 1;
			continue;
		}
		if (!*entry)
			continue;
		if (!blocks->shared_pages) {
			const struct mw_span *span = &blocks->spans[*entry - 1];

			if (span->start < end && span->end > start)
				return true;
			continue;
		}
		MW_EACH(span, blocks->spans, blocks->span_count)
			if (span->start < end && span->end > start)
				return true;
		return false;
	}
	return false;
}

/* Enter a span's pages; those of another stay that one's. */
static bool enter_pages(struct mw_blocks *blocks, const struct mw_span *span, uint32_t number)
{
	for (mw_addr page = span->start >> PAGE_SHIFT; page <= (span->end - 1) >> PAGE_SHIFT; page++) {
		uint32_t **leaf = &blocks->leaves[page >> (LEAF_SHIFT - PAGE_SHIFT)];
		uint32_t *entry;

		if (!*leaf)
			*leaf = calloc(LEAF_PAGES, sizeof(**leaf));
		if (!*leaf)
			return false;
		entry = &(*leaf)[page % LEAF_PAGES];
		if (*entry)
			blocks->shared_pages = true;
		else
			*entry = number + 1;
	}
	return true;
}

static bool get_bit(const uint64_t *bits, uint64_t at)
{
	return bits[at / 64] >> (at % 64) & 1;
}

static void set_bit(uint64_t *bits, uint64_t at, bool value)
{
	uint64_t bit = UINT64_C(1) << (at % 64);

	bits[at / 64] = value ? bits[at / 64] | bit : bits[at / 64] & ~bit;
}

static uint64_t grains_of(const struct mw_span *span)
{
	return (span->end - span->start) / GRAIN;
}

/* Bitmaps have whole groups of RANK_BITS. */
static size_t words_for(uint64_t bits)
{
	return (size_t)((bits + RANK_BITS - 1) / RANK_BITS) * RANK_WORDS;
}

static bool make_bitmaps(struct mw_span *span)
{
	uint64_t bits = span->segment ? (span->end - span->start) / span->segment : grains_of(span);

	span->live = calloc(words_for(bits), sizeof(*span->live));
	if (span->segment) {
		span->segments = (uint32_t)bits;
		return span->live != NULL;
	}
	span->begins = calloc(words_for(bits), sizeof(*span->begins));
	if (!span->live || !span->begins)
		return false;
	set_bit(span->begins, 0, true);
	return true;
}

struct mw_error *mw_blocks_add_span(struct mw_blocks *blocks, uint32_t arena, mw_addr start, mw_addr end,
				    uint64_t segment, uint32_t tail, uint32_t *number)
{
	uint64_t least = segment ? segment : GRAIN;
	struct mw_span span = {.start = start, .segment = segment, .arena = arena, .tail = tail};

	*number = MW_BLOCK_NONE;
	if (end <= start || end - start < least || end >> ADDRESS_BITS || blocks->span_count == MW_BLOCK_NONE - 1 ||
	    overlaps(blocks, start, end))
		return mw_blocks_add_skipped(blocks, start, end > start ? end - start : 0, "overlaps another heap");
	span.end = end - (end - start) % least;
	if (span.end != end)
		MW_TRY(mw_blocks_add_bookkeeping(blocks, arena, span.end, end));
	if (!MW_VECTOR_ROOM(blocks->spans, blocks->span_count, blocks->span_capacity))
		return mw_error_nomem();
	/* The blocks' own at once, so that it is freed with them. */
	blocks->spans[blocks->span_count] = span;
	*number = (uint32_t)blocks->span_count++;
	if (!make_bitmaps(&blocks->spans[*number]) || !enter_pages(blocks, &span, *number))
		return mw_error_nomem();
	return NULL;
}

bool mw_span_cut(struct mw_blocks *blocks, uint32_t number, mw_addr at)
{
	const struct mw_span *span = number < blocks->span_count ? &blocks->spans[number] : NULL;

	if (!span || !span->begins || !in_span(span, at) || (at - span->start) % GRAIN)
		return false;
	set_bit(span->begins, (at - span->start) / GRAIN, true);
	return true;
}

bool mw_span_add(struct mw_blocks *blocks, uint32_t number, mw_addr at, bool live)
{
	const struct mw_span *span = number < blocks->span_count ? &blocks->spans[number] : NULL;
	uint64_t grain, bit;

	if (!span || !span->begins || !in_span(span, at) || (at - span->start) % GRAIN)
		return false;
	grain = (at - span->start) / GRAIN;
	bit = UINT64_C(1) << (grain % 64);
	span->begins[grain / 64] |= bit;
	span->live[grain / 64] = live ? span->live[grain / 64] | bit : span->live[grain / 64] & ~bit;
	return true;
}

void mw_blocks_end_span(struct mw_blocks *blocks, uint32_t number, mw_addr end)
{
	struct mw_span *span = number < blocks->span_count ? &blocks->spans[number] : NULL;

	if (!span || !span->begins || end >= span->end || (end > span->start && (end - span->start) % GRAIN))
		return;
	end = end > span->start ? end : span->start;
	for (mw_addr at = (end + (1u << PAGE_SHIFT) - 1) >> PAGE_SHIFT << PAGE_SHIFT; at < span->end;
	     at += 1u << PAGE_SHIFT) {
		uint32_t *entry = page_entry(blocks, at);

		if (entry && *entry == number + 1)
			*entry = 0;
	}
	span->end = end;
	for (uint64_t grain = grains_of(span); grain < words_for(grains_of(span)) * 64; grain++)
		set_bit(span->begins, grain, false);
	if (end == span->start && number + 1 == blocks->span_count) {
		free(span->live);
		free(span->begins);
		blocks->span_count--;
	}
}

static bool set_live(const struct mw_span *span, mw_addr at, bool live)
{
	uint64_t offset = at - span->start;

	if (span->segment) {
		if (offset % span->segment)
			return false;
		set_bit(span->live, offset / span->segment, live);
		return true;
	}
	if (offset % GRAIN || !get_bit(span->begins, offset / GRAIN))
		return false;
	set_bit(span->live, offset / GRAIN, live);
	return true;
}

bool mw_span_set_live(struct mw_blocks *blocks, uint32_t number, mw_addr at, bool live)
{
	return number < blocks->span_count && in_span(&blocks->spans[number], at) &&
	       set_live(&blocks->spans[number], at, live);
}

bool mw_blocks_set_live(struct mw_blocks *blocks, mw_addr at, bool live)
{
	const struct mw_span *span = span_of(blocks, at);

	return span && set_live(span, at, live);
}

struct mw_error *mw_blocks_add_bookkeeping(struct mw_blocks *blocks, uint32_t arena, mw_addr start, mw_addr end)
{
	if (end <= start)
		return NULL;
	if (!MW_VECTOR_ROOM(blocks->bookkeeping, blocks->bookkeeping_count, blocks->bookkeeping_capacity))
		return mw_error_nomem();
	blocks->bookkeeping[blocks->bookkeeping_count++] = (struct mw_bookkeeping){start, end, arena};
	return NULL;
}

struct mw_error *mw_blocks_add_skipped(struct mw_blocks *blocks, mw_addr start, uint64_t bytes, const char *why)
{
	if (!MW_VECTOR_ROOM(blocks->skipped, blocks->skipped_count, blocks->skipped_capacity))
		return mw_error_nomem();
	blocks->skipped[blocks->skipped_count++] = (struct mw_heap_skipped){start, bytes, why};
	return NULL;
}

struct mw_heap_allocator *mw_blocks_allocator_mutable(struct mw_blocks *blocks, uint32_t number)
{
	return number < blocks->allocator_count ? &blocks->allocators[number] : NULL;
}

static int by_start(const void *a, const void *b)
{
	mw_addr x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

static void join_bookkeeping(struct mw_blocks *blocks)
{
	size_t kept = 0;

	if (blocks->bookkeeping)
		qsort(blocks->bookkeeping, blocks->bookkeeping_count, sizeof(*blocks->bookkeeping), by_start);
	MW_EACH(range, blocks->bookkeeping, blocks->bookkeeping_count) {
		struct mw_bookkeeping *last = kept ? &blocks->bookkeeping[kept - 1] : NULL;

		if (last && last->arena == range->arena && last->end >= range->start) {
			if (range->end > last->end)
				last->end = range->end;
			continue;
		}
		blocks->bookkeeping[kept++] = *range;
	}
	blocks->bookkeeping_count = kept;
}

/* Count a span's segments: how many there are before each group of bits. */
static bool rank(struct mw_span *span)
{
	size_t words = words_for(grains_of(span));
	uint32_t sum = 0;

	if (span->segment)
		return true;
	span->ranks = malloc(words / RANK_WORDS * sizeof(*span->ranks));
	if (!span->ranks)
		return false;
	for (size_t i = 0; i < words; i++) {
		if (i % RANK_WORDS == 0)
			span->ranks[i / RANK_WORDS] = sum;
		sum += (uint32_t)__builtin_popcountll(span->begins[i]);
	}
	span->segments = sum;
	return true;
}

struct mw_error *mw_blocks_finish(struct mw_blocks *blocks)
{
	uint64_t segments = 0;

	if (blocks->spans)
		qsort(blocks->spans, blocks->span_count, sizeof(*blocks->spans), by_start);
	join_bookkeeping(blocks);
	for (size_t i = 0; i < LEAVES; i++)
		if (blocks->leaves[i])
			memset(blocks->leaves[i], 0, LEAF_PAGES * sizeof(**blocks->leaves));
	MW_EACH_MUTABLE(span, blocks->spans, blocks->span_count) {
		if (!rank(span) || !enter_pages(blocks, span, (uint32_t)(span - blocks->spans)))
			return mw_error_nomem();
		span->first = (uint32_t)segments;
		segments += span->segments;
		if (segments >= MW_BLOCK_NONE)
			return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "the heap has more than %u blocks",
					       MW_BLOCK_NONE - 1);
	}
	blocks->segments = (uint32_t)segments;
	blocks->finished = true;
	return NULL;
}

/* --- asking --------------------------------------------------------------------------------------------------------- */

const struct mw_heap_allocator *mw_blocks_allocators(const struct mw_blocks *blocks, size_t *count)
{
	*count = blocks->allocator_count;
	return blocks->allocators;
}

const struct mw_heap_arena *mw_blocks_arenas(const struct mw_blocks *blocks, size_t *count)
{
	*count = blocks->arena_count;
	return blocks->arenas;
}

const struct mw_span *mw_blocks_spans(const struct mw_blocks *blocks, size_t *count)
{
	*count = blocks->span_count;
	return blocks->spans;
}

const struct mw_heap_skipped *mw_blocks_skipped(const struct mw_blocks *blocks, size_t *count)
{
	*count = blocks->skipped_count;
	return blocks->skipped;
}

const struct mw_bookkeeping *mw_blocks_bookkeeping(const struct mw_blocks *blocks, size_t *count)
{
	*count = blocks->bookkeeping_count;
	return blocks->bookkeeping;
}

uint32_t mw_blocks_segments(const struct mw_blocks *blocks)
{
	return blocks->segments;
}

/* The first bit at or behind `at` that is set; `bits` where there is none. */
static uint64_t next_bit(const uint64_t *words, uint64_t at, uint64_t bits)
{
	size_t i = (size_t)(at / 64), end = words_for(bits);
	uint64_t word;

	if (at >= bits)
		return bits;
	word = words[i] & ~UINT64_C(0) << (at % 64);
	while (!word && ++i < end)
		word = words[i];
	return word ? i * 64 + (uint64_t)__builtin_ctzll(word) : bits;
}

/* In which RANK_WORDS words segment `wanted` of a span of any sizes begins, from `low` on: a guess, or 0. */
static size_t select_words(const struct mw_span *span, uint32_t wanted, size_t low)
{
	size_t high = words_for(grains_of(span)) / RANK_WORDS, step = 1;

	if (low >= high || span->ranks[low] > wanted)
		low = 0;
	while (low + step < high && span->ranks[low + step] <= wanted) {
		low += step;
		step *= 2;
	}
	if (low + step < high)
		high = low + step;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (span->ranks[middle] <= wanted)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Where it begins, in grains, by those words. */
static uint64_t select_in(const struct mw_span *span, uint32_t wanted, size_t low)
{
	size_t word;
	uint32_t left;
	uint64_t bits;

	left = wanted - span->ranks[low];
	for (word = low * RANK_WORDS; left >= (uint32_t)__builtin_popcountll(span->begins[word]); word++)
		left -= (uint32_t)__builtin_popcountll(span->begins[word]);
	for (bits = span->begins[word]; left; left--)
		bits &= bits - 1;
	return word * 64 + (uint64_t)__builtin_ctzll(bits);
}

static uint64_t select_begin(const struct mw_span *span, uint32_t wanted)
{
	return select_in(span, wanted, select_words(span, wanted, 0));
}

/* How many segments begin at or before a grain. */
static uint32_t rank_of(const struct mw_span *span, uint64_t grain)
{
	size_t word = (size_t)(grain / 64), from = word / RANK_WORDS * RANK_WORDS;
	uint32_t sum = span->ranks[from / RANK_WORDS];

	for (; from < word; from++)
		sum += (uint32_t)__builtin_popcountll(span->begins[from]);
	return sum + (uint32_t)__builtin_popcountll(span->begins[word] & ~UINT64_C(0) >> (63 - grain % 64));
}

/* Where the segment behind one begins, in grains. Mostly it is near; behind a large one it is searched for by its number. */
static uint64_t begin_behind(const struct mw_span *span, uint32_t rank, uint64_t begin)
{
	uint64_t bits = grains_of(span), limit = begin + RANK_BITS < bits ? begin + RANK_BITS : bits, at;

	if (rank + 1 == span->segments)
		return bits;
	at = next_bit(span->begins, begin + 1, limit);
	return at < limit ? at : select_begin(span, rank + 1);
}

/* A segment of a span, by its number in it. */
static bool segment_at(const struct mw_blocks *blocks, const struct mw_span *span, uint32_t rank, uint64_t begin,
		       struct mw_block *out)
{
	uint64_t size = span->segment;

	if (!get_bit(span->live, span->segment ? rank : begin))
		return false;
	if (!size) {
		size = begin_behind(span, rank, begin) - begin;
		size *= GRAIN;
	}
	if (size <= span->tail)
		return false;
	out->number = span->first + rank;
	out->span = (uint32_t)(span - blocks->spans);
	out->start = span->start + (span->segment ? rank * span->segment : begin * GRAIN);
	out->size = size - span->tail;
	return true;
}

/* Of a slab. The short division takes a third of the time. */
static uint32_t segment_index(const struct mw_span *span, uint64_t offset)
{
	return (offset | span->segment) >> 32 ? (uint32_t)(offset / span->segment)
					      : (uint32_t)offset / (uint32_t)span->segment;
}

static bool find_in(const struct mw_blocks *blocks, const struct mw_span *span, uint64_t offset, struct mw_block *out)
{
	uint64_t grain = offset / GRAIN;
	uint32_t rank;

	if (!span->segment) {
		rank = rank_of(span, grain) - 1; /* one begins at the span's start */
		if (!get_bit(span->begins, grain))
			grain = select_begin(span, rank);
		return segment_at(blocks, span, rank, grain, out);
	}
	return segment_at(blocks, span, segment_index(span, offset), 0, out);
}

bool mw_blocks_find(const struct mw_blocks *blocks, mw_addr addr, struct mw_block *out)
{
	const struct mw_span *span = span_of(blocks, addr);

	return span && find_in(blocks, span, addr - span->start, out) && addr - out->start < out->size;
}

bool mw_blocks_find_start(const struct mw_blocks *blocks, mw_addr addr, uint32_t *number)
{
	const struct mw_span *span = span_of(blocks, addr);
	uint64_t offset, index;

	if (!span)
		return false;
	offset = addr - span->start;
	index = span->segment ? segment_index(span, offset) : offset / GRAIN;
	if (offset != index * (span->segment ? span->segment : GRAIN) || !get_bit(span->live, index))
		return false;
	*number = span->first + (span->segment ? (uint32_t)index : rank_of(span, index) - 1);
	return true;
}

const struct mw_span *mw_blocks_span_of(const struct mw_blocks *blocks, mw_addr addr)
{
	return span_of(blocks, addr);
}

bool mw_blocks_may_hold(const struct mw_blocks *blocks, mw_addr addr)
{
	const uint32_t *entry = page_entry(blocks, addr);

	return entry && *entry;
}

void mw_blocks_prefetch(const struct mw_blocks *blocks, mw_addr addr)
{
	const uint32_t *entry = page_entry(blocks, addr);
	const struct mw_span *span = entry && *entry ? &blocks->spans[*entry - 1] : NULL;
	uint64_t grain;

	if (!span || !in_span(span, addr) || span->segment)
		return;
	grain = (addr - span->start) / GRAIN;
	__builtin_prefetch(&span->begins[grain / 64]);
	__builtin_prefetch(&span->live[grain / 64]);
	__builtin_prefetch(&span->ranks[grain / RANK_BITS]);
}

/* Of a number that there is. */
static const struct mw_span *span_of_number(const struct mw_blocks *blocks, uint32_t number)
{
	size_t low = 0, high = blocks->span_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (blocks->spans[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	return &blocks->spans[low];
}

bool mw_blocks_get(const struct mw_blocks *blocks, uint32_t number, struct mw_block *out)
{
	const struct mw_span *span;

	if (number >= blocks->segments)
		return false;
	span = span_of_number(blocks, number);
	number -= span->first;
	return segment_at(blocks, span, number, span->segment ? 0 : select_begin(span, number), out);
}

/* Each step waits for memory: one for all of them. */
size_t mw_blocks_get_all(const struct mw_blocks *blocks, const uint32_t *numbers, size_t count, struct mw_block *out)
{
	struct {
		const struct mw_span *span;
		size_t words;
	} places[MW_BLOCKS_AT_ONCE];
	const struct mw_span *span = NULL;
	size_t words = 0, live = 0;

	for (size_t i = 0; i < count; i++) {
		if (!span || numbers[i] - span->first >= span->segments) {
			span = numbers[i] < blocks->segments ? span_of_number(blocks, numbers[i]) : NULL;
			words = 0;
		}
		places[i].span = span;
		if (!span || span->segment)
			continue;
		places[i].words = words = select_words(span, numbers[i] - span->first, words);
		__builtin_prefetch(&span->begins[words * RANK_WORDS]);
		__builtin_prefetch(&span->begins[words * RANK_WORDS + RANK_WORDS - 1]);
		__builtin_prefetch(&span->live[words * RANK_WORDS]);
		__builtin_prefetch(&span->live[words * RANK_WORDS + RANK_WORDS - 1]);
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t rank;

		span = places[i].span;
		if (!span)
			continue;
		rank = numbers[i] - span->first;
		live += segment_at(blocks, span, rank, span->segment ? 0 : select_in(span, rank, places[i].words),
				   &out[live]);
	}
	return live;
}

bool mw_span_next(const struct mw_span *span, mw_addr *at, struct mw_segment *out)
{
	uint64_t offset = *at - span->start, size = span->segment, index;

	if (*at >= span->end)
		return false;
	index = offset / (size ? size : GRAIN);
	if (!size)
		size = (next_bit(span->begins, index + 1, grains_of(span)) - index) * GRAIN;
	out->start = *at;
	out->size = size > span->tail ? size - span->tail : 0;
	out->live = get_bit(span->live, index);
	out->number = span->segment        ? span->first + (uint32_t)index
		      : *at == span->start ? span->first
					   : out->number + 1;
	*at += size;
	return true;
}

bool mw_span_next_free(const struct mw_span *span, mw_addr *at, mw_addr *start, mw_addr *end)
{
	uint64_t grains = grains_of(span), grain = (*at - span->start) / GRAIN;
	size_t word = (size_t)(grain / 64), words = words_for(grains);
	uint64_t bits;

	if (*at >= span->end || !span->begins)
		return false;
	bits = span->begins[word] & ~span->live[word] & ~UINT64_C(0) << (grain % 64);
	while (!bits && ++word < words)
		bits = span->begins[word] & ~span->live[word];
	if (!bits)
		return false;
	grain = word * 64 + (uint64_t)__builtin_ctzll(bits);
	*start = span->start + grain * GRAIN;
	*end = *at = span->start + next_bit(span->live, grain, grains) * GRAIN;
	return true;
}

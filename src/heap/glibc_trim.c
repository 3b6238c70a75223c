// SPDX-License-Identifier: MIT
/*
 * glibc_trim.c: what malloc_trim(0) would give back (glibc.h).
 *
 * It frees what fast bins hold, joins it with what is free beside it, and then
 *
 *      of each free chunk      gives back the whole pages behind its first 48 bytes (madvise)
 *      of the main arena's top moves the break down, but for MINSIZE + 1 bytes, rounded up to pages (or to the huge pages
 *                              that glibc asks for), where nobody else has moved it since
 *
 * A thread's top stays, and what threads' caches hold is in use.
 */
#include "heap/glibc.h"

#include "alloc/glibc_layout.h"
#include "base/vector.h"

#define FREE_HEADER 48u /* struct malloc_chunk */

/* Was a part of it passed over? Then it is no free chunk. */
static bool was_skipped(const struct mw_glibc_walk *walk, mw_addr start, mw_addr end)
{
	size_t count;
	const struct mw_heap_skipped *skipped = mw_blocks_skipped(walk->blocks, &count);

	MW_EACH(range, skipped, count)
		if (range->start < end && range->start + range->bytes > start)
			return true;
	return false;
}

static uint64_t of_chunk(const struct mw_glibc_walk *walk, mw_addr chunk, mw_addr end)
{
	mw_addr from = (chunk + FREE_HEADER + MW_GLIBC_PAGE - 1) & ~(mw_addr)(MW_GLIBC_PAGE - 1);
	mw_addr to = end & ~(mw_addr)(MW_GLIBC_PAGE - 1);

	if (end - chunk <= MW_GLIBC_PAGE - 1 + FREE_HEADER || to <= from || was_skipped(walk, chunk, end))
		return 0;
	return mw_image_residence(walk->image, from, to).resident;
}

static uint64_t of_top(const struct mw_glibc_walk *walk, mw_addr chunk, mw_addr end)
{
	uint64_t unit = walk->parameters.huge_pages ? walk->parameters.huge_pages : MW_GLIBC_PAGE;
	uint64_t area = end - chunk - GLIBC_LEAST - 1;

	if (end != walk->process.heap.end || end - chunk <= GLIBC_LEAST + 1 || was_skipped(walk, chunk, end))
		return 0;
	return mw_image_residence(walk->image, end - area / unit * unit, end).resident;
}

static bool ends_in_top(const struct mw_glibc_walk *walk, const struct mw_span *span)
{
	MW_EACH(top, walk->tops, walk->top_count)
		if (*top == span->end)
			return true;
	return false;
}

static uint64_t of_span(const struct mw_glibc_walk *walk, const struct mw_span *span)
{
	mw_addr at = span->start, start, end;
	uint64_t sum = 0;

	while (mw_span_next_free(span, &at, &start, &end)) {
		if (end != span->end || !ends_in_top(walk, span))
			sum += of_chunk(walk, start - MW_GLIBC_HEADER, end - MW_GLIBC_HEADER);
		else if (span->arena == walk->main && end == walk->main_end)
			sum += of_top(walk, start - MW_GLIBC_HEADER, end);
	}
	return sum;
}

uint64_t mw_glibc_trimmable(const struct mw_glibc_walk *walk)
{
	const struct mw_heap_arena *arenas;
	const struct mw_span *spans;
	size_t arena_count, span_count;
	uint64_t sum = 0;

	spans = mw_blocks_spans(walk->blocks, &span_count);
	arenas = mw_blocks_arenas(walk->blocks, &arena_count);
	MW_EACH(span, spans, span_count)
		if (span->arena < arena_count && arenas[span->arena].allocator == walk->allocator)
			sum += of_span(walk, span);
	return sum;
}

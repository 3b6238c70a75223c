// SPDX-License-Identifier: MIT
/* pinned.c: pages that small blocks pin (pinned.h). */
#include "heap/pinned.h"

#include "base/vector.h"

#define PAGE 4096u

/* What is free on the page that was looked at last. */
struct page {
	const struct mw_image *image;
	mw_addr start;
	uint64_t free;
	struct mw_pinned *sum;
};

static void count(struct page *page)
{
	if (page->free <= PAGE / 2 || page->free >= PAGE ||
	    !mw_image_residence(page->image, page->start, page->start + PAGE).resident)
		return;
	page->sum->pages++;
	page->sum->free += page->free;
}

static void add(struct page *page, mw_addr at, uint64_t bytes)
{
	mw_addr start = at & ~(mw_addr)(PAGE - 1);

	if (start != page->start) {
		count(page);
		page->start = start;
		page->free = 0;
	}
	page->free += bytes;
}

/* What is free lies on a first page and a last; those between are wholly free. */
static void add_free(struct page *page, mw_addr start, mw_addr end)
{
	mw_addr first = (start + PAGE - 1) & ~(mw_addr)(PAGE - 1), last = end & ~(mw_addr)(PAGE - 1);

	if (start < first)
		add(page, start, (end < first ? end : first) - start);
	if (last >= first && last < end)
		add(page, last, end - last);
}

static void add_slab(struct page *page, const struct mw_span *span)
{
	struct mw_segment segment = {0};
	mw_addr at = span->start;

	while (mw_span_next(span, &at, &segment))
		if (!segment.live)
			add_free(page, segment.start, at);
}

void mw_pinned(const struct mw_image *image, const struct mw_blocks *blocks, struct mw_pinned *out)
{
	size_t span_count, arena_count;
	const struct mw_span *spans = mw_blocks_spans(blocks, &span_count);

	(void)mw_blocks_arenas(blocks, &arena_count);
	memset(out, 0, arena_count * sizeof(*out));
	MW_EACH(span, spans, span_count) {
		struct page page = {.image = image, .sum = &out[span->arena]};
		mw_addr at = span->start, start, end;

		if (span->segment)
			add_slab(&page, span);
		while (!span->segment && mw_span_next_free(span, &at, &start, &end))
			add_free(&page, start, end);
		count(&page);
	}
}

// SPDX-License-Identifier: MIT
/* passes.c: blocks that were lost in each of several passes (passes.h). */
#include "heap/passes.h"

#include "base/vector.h"

#include <stdlib.h>

/* A pass misses a pointer that goes back and forth between two places in one of four cases, and all that move with it. */
#define PASSES_STABLE 7u  /* after so many that change nothing what is lost is taken as certain */
#define PASSES_MOST   20u /* what each of so many passes has missed is lost */

static bool is_lost(const struct mw_reached *reached, uint32_t number)
{
	enum mw_reach verdict = mw_reached_of(reached, number);

	return verdict == MW_REACH_DEFINITE || verdict == MW_REACH_INDIRECT;
}

struct mw_error *mw_passes_add(struct mw_passes *passes, const struct mw_blocks *blocks,
			       const struct mw_reached *reached)
{
	const struct mw_amount *sums = mw_reached_sums(reached);
	uint64_t most = sums[MW_REACH_DEFINITE].count + sums[MW_REACH_INDIRECT].count;
	mw_addr *lost = calloc(most + 1, sizeof(*lost));
	struct mw_segment segment;
	const struct mw_span *span_of;
	size_t spans, count = 0;

	if (!lost)
		return mw_error_nomem();
	span_of = mw_blocks_spans(blocks, &spans);
	MW_EACH(span, span_of, spans)
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);)
			if (segment.live && count < most && is_lost(reached, segment.number))
				lost[count++] = segment.start;
	passes->stable = passes->lost && count == passes->lost_count ? passes->stable + 1 : 0;
	free(passes->lost);
	passes->lost = lost;
	passes->lost_count = count;
	passes->count++;
	return NULL;
}

bool mw_passes_need_more(const struct mw_passes *passes)
{
	return passes->lost_count && passes->stable < PASSES_STABLE && passes->count < PASSES_MOST;
}

void mw_passes_deinit(struct mw_passes *passes)
{
	free(passes->lost);
	*passes = (struct mw_passes){0};
}

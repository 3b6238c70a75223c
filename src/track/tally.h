/* SPDX-License-Identifier: MIT */
/* tally.h: running totals of a kind or a stack. Size is impacting + transient, so it is not kept. */
#ifndef MW_TRACK_TALLY_H
#define MW_TRACK_TALLY_H

#include "track/series.h"

/* What changes with every event comes first, so that it shares a cache line. */
struct mw_tally {
	struct mw_amount impacting, transient;
	struct mw_track_peak peak;
	struct mw_series series; /* of impacting.bytes */
	struct mw_amount aofi, aofo;
	uint64_t aofi_unknown;
};

/* A block of `bytes` came to be. */
static inline void mw_tally_add(struct mw_tally *tally, uint64_t bytes, uint64_t time_ns)
{
	tally->impacting.count++;
	tally->impacting.bytes += bytes;
	if (tally->impacting.bytes > tally->peak.amount.bytes) {
		tally->peak.amount = tally->impacting;
		tally->peak.at_ns = time_ns;
	}
}

/* `bytes` of what was live went, to what is not; `count` is 1 where they were the last of their block. */
static inline void mw_amount_release(struct mw_amount *live, struct mw_amount *gone, uint64_t count, uint64_t bytes)
{
	live->count -= count;
	live->bytes -= bytes;
	gone->count += count;
	gone->bytes += bytes;
}

/* Something from before the window went; bytes may be MW_SIZE_UNKNOWN. */
static inline void mw_tally_aofi(struct mw_tally *tally, uint64_t bytes)
{
	tally->aofi.count++;
	if (bytes == MW_SIZE_UNKNOWN)
		tally->aofi_unknown++;
	else
		tally->aofi.bytes += bytes;
}

static inline struct mw_amount mw_amount_sum(const struct mw_amount *a, const struct mw_amount *b)
{
	return (struct mw_amount){a->count + b->count, a->bytes + b->bytes};
}

#endif

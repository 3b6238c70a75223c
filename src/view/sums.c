// SPDX-License-Identifier: MIT
/* sums.c: see sums.h. */
#include "view/sums.h"

void mw_sums_add(struct mw_sums *sums, const struct mw_cell *cell)
{
	struct mw_amount *amount = &sums->fates[cell->fate];

	amount->count += cell->amount.count;
	amount->bytes += cell->amount.bytes;
	if (cell->fate == MW_FATE_AOFI)
		sums->aofi_unknown += cell->unknown;
}

void mw_sums_merge(struct mw_sums *sums, const struct mw_sums *other)
{
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++) {
		sums->fates[fate].count += other->fates[fate].count;
		sums->fates[fate].bytes += other->fates[fate].bytes;
	}
	sums->aofi_unknown += other->aofi_unknown;
	sums->peak_bytes += other->peak_bytes;
	sums->peak_exact = false;
}

void mw_sums_set_lifetime(struct mw_sums *sums, const struct mw_histogram *lifetimes)
{
	sums->has_lifetime = lifetimes->count > 0;
	if (!sums->has_lifetime)
		return;
	sums->lifetime_min_ns = lifetimes->min;
	sums->lifetime_median_ns = mw_histogram_quantile(lifetimes, 50);
	sums->lifetime_max_ns = lifetimes->max;
}

uint64_t mw_sums_rank(const struct mw_sums *sums, enum mw_sort sort, enum mw_fate type)
{
	switch (sort) {
	case MW_SORT_SIZE:
		return mw_sums_size(sums).bytes;
	case MW_SORT_COUNT:
		return mw_sums_of(sums, type).count;
	case MW_SORT_TRANSIENT:
		return sums->fates[MW_FATE_TRANSIENT].bytes;
	case MW_SORT_PEAK:
		return sums->peak_bytes;
	case MW_SORT_LIFETIME:
		return sums->lifetime_median_ns;
	case MW_SORT_AOFI:
		return sums->fates[MW_FATE_AOFI].bytes;
	case MW_SORT_IMPACTING:
	case MW_SORT_NUMBER:
		break;
	}
	return sums->fates[MW_FATE_IMPACTING].bytes;
}

static int larger_first(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

int mw_sums_compare(const struct mw_sums *a, const struct mw_sums *b, enum mw_sort sort, enum mw_fate type)
{
	int order = larger_first(mw_sums_rank(a, sort, type), mw_sums_rank(b, sort, type));

	if (!order && sort == MW_SORT_LIFETIME)
		order = larger_first(a->has_lifetime, b->has_lifetime);
	if (!order)
		order = larger_first(a->fates[MW_FATE_IMPACTING].bytes, b->fates[MW_FATE_IMPACTING].bytes);
	if (!order)
		order = larger_first(mw_sums_size(a).bytes, mw_sums_size(b).bytes);
	if (!order)
		order = larger_first(mw_sums_size(a).count, mw_sums_size(b).count);
	return order;
}

bool mw_sums_has(const struct mw_sums *sums, enum mw_fate type)
{
	if (type < MW_FATE_ALL)
		return sums->fates[type].count || sums->fates[type].bytes;
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++)
		if (mw_sums_has(sums, (enum mw_fate)fate))
			return true;
	return false;
}

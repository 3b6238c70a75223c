// SPDX-License-Identifier: MIT
/* query.c: the figures that a tracker is asked for (track.h). */
#include "track/state.h"
#include "track/track.h"
#include "track/vm.h"

static struct mw_track_totals totals_of(const struct mw_track *track, const struct mw_tally *tally)
{
	struct mw_track_totals totals = {
		.size = mw_amount_sum(&tally->impacting, &tally->transient),
		.impacting = tally->impacting,
		.transient = tally->transient,
		.aofi = tally->aofi,
		.aofi_unknown = tally->aofi_unknown,
		.aofo = tally->aofo,
		.peak = tally->peak,
	};

	/* Nothing was highest when the interval began. */
	if (totals.peak.amount.bytes == 0)
		totals.peak.at_ns = track->clock.begin_ns;
	return totals;
}

void mw_track_totals(const struct mw_track *track, enum mw_kind kind, struct mw_track_totals *out)
{
	*out = totals_of(track, &track->totals[kind]);
}

uint64_t mw_track_missed(const struct mw_track *track)
{
	return track->missed;
}

uint32_t mw_track_stack_count(const struct mw_track *track)
{
	return track->stacks.records.used;
}

const struct mw_histogram *mw_track_stack_lifetimes(const struct mw_track *track, uint32_t id)
{
	return &mw_stack_table_at(&track->stacks, id)->lifetimes;
}

static struct mw_track_lifetime lifetime_of(const struct mw_histogram *histogram)
{
	if (histogram->count == 0)
		return (struct mw_track_lifetime){0};
	return (struct mw_track_lifetime){
		.count = histogram->count,
		.min_ns = histogram->min,
		.median_ns = mw_histogram_quantile(histogram, 50),
		.p99_ns = mw_histogram_quantile(histogram, 99),
		.max_ns = histogram->max,
	};
}

struct mw_error *mw_track_lifetime(const struct mw_track *track, const uint32_t *ids, size_t count,
				   struct mw_track_lifetime *out)
{
	struct mw_histogram all;
	struct mw_error *err = NULL;

	mw_histogram_init(&all);
	for (size_t i = 0; i < count && !err; i++)
		err = mw_histogram_merge(&all, &mw_stack_table_at(&track->stacks, ids[i])->lifetimes);
	if (!err)
		*out = lifetime_of(&all);
	mw_histogram_deinit(&all);
	return err;
}

void mw_track_stack(const struct mw_track *track, uint32_t id, struct mw_track_stack *out)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, id);

	*out = (struct mw_track_stack){
		.kind = (enum mw_kind)record->kind,
		.hook = record->hook,
		.cut = (enum mw_stack_cut)record->cut,
		.frame_count = record->frame_count,
		.totals = totals_of(track, &record->tally),
		.lifetime = lifetime_of(&record->lifetimes),
	};
}

uint32_t mw_track_frames(const struct mw_track *track, uint32_t id, struct mw_raw_frame *out, uint32_t capacity)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, id);

	mw_stack_table_frames(&track->stacks, record, out, capacity);
	return record->frame_count;
}

uint32_t mw_track_thread_count(const struct mw_track *track)
{
	return track->threads.records.used;
}

void mw_track_thread(const struct mw_track *track, uint32_t number, struct mw_track_thread *out)
{
	const struct mw_thread_record *thread = mw_thread_table_at(&track->threads, number);

	*out = (struct mw_track_thread){
		.tid = thread->tid,
		.name = thread->name,
		.size = mw_amount_sum(&thread->impacting, &thread->transient),
		.impacting = thread->impacting,
		.transient = thread->transient,
	};
}

static struct mw_track_sum sum_of(const struct mw_amount *impacting, const struct mw_amount *transient)
{
	return (struct mw_track_sum){.impacting = *impacting, .allocations = impacting->count + transient->count};
}

void mw_track_stack_sums(const struct mw_track *track, struct mw_track_sum *out, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, i)->tally;

		out[i] = sum_of(&tally->impacting, &tally->transient);
	}
}

void mw_track_thread_sums(const struct mw_track *track, struct mw_track_sum *out, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_thread_record *thread = mw_thread_table_at(&track->threads, i);

		out[i] = sum_of(&thread->impacting, &thread->transient);
	}
}

uint64_t mw_track_now(const struct mw_track *track)
{
	return track->now_ns;
}

void mw_track_stack_series(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_series *out)
{
	const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, id)->tally;

	mw_series_read(&tally->series, &track->clock, tally->impacting.bytes, end_ns, out);
}

void mw_track_kind_series(const struct mw_track *track, enum mw_kind kind, uint64_t end_ns, struct mw_track_series *out)
{
	const struct mw_tally *tally = &track->totals[kind];

	mw_series_read(&tally->series, &track->clock, tally->impacting.bytes, end_ns, out);
}

void mw_track_memory(const struct mw_track *track, struct mw_track_memory *out)
{
	out->blocks = mw_block_table_memory(&track->heap) + mw_pool_memory(&track->ranges.ranges) +
		      mw_pool_memory(&track->vm_blocks) + mw_pool_memory(&track->pending) +
		      mw_late_memory(&track->late) + sizeof(*track);
	out->stacks = mw_stack_table_memory(&track->stacks);
	for (uint32_t i = 0; i < MW_KIND_COUNT; i++)
		out->stacks += mw_series_memory(&track->totals[i].series);
	out->threads = mw_thread_table_memory(&track->threads);
}

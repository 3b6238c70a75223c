// SPDX-License-Identifier: MIT
/* sampling.c: see sampling.h. */
#include "track/sampling.h"

#include "base/vector.h"
#include "track/state.h"

#include <math.h>
#include <stdlib.h>

#define WEIGHT_MAX 0x1p48 /* so that sums of weighted bytes stay in 64 bits */

/* --- weights ----------------------------------------------------------------------------------------------------- */

struct mw_weight mw_weigh(uint64_t interval, uint64_t size, mw_addr addr, uint64_t time_ns)
{
	double p, inverse, whole, fraction, random;

	if (!interval)
		return (struct mw_weight){0, 0};
	p = -expm1(-(double)(size ? size : 1) / (double)interval);
	inverse = fmin(1 / p, WEIGHT_MAX);
	whole = floor(inverse);
	fraction = inverse - whole;
	random = (double)(mw_hash_mix(mw_hash_add(mw_hash_mix(addr), time_ns)) >> 11) * 0x1p-53;
	return (struct mw_weight){
		.others = (uint64_t)whole - 1 + (random < fraction),
		.variance = (1 - p) * inverse * inverse + fraction * (1 - fraction),
	};
}

/* Mid-P limits of Poisson's distribution where n / 2 were counted. */
static const struct mw_limits few[] = {
	{0.0000, 2.9957},  {0.0020, 4.0149},  {0.0500, 4.9319},  {0.1681, 5.7897},  {0.3353, 6.6080},
	{0.5366, 7.3973},  {0.7631, 8.1645},  {1.0091, 8.9138},  {1.2709, 9.6484},  {1.5459, 10.3707},
	{1.8320, 11.0824}, {2.1277, 11.7849}, {2.4318, 12.4793}, {2.7434, 13.1664}, {3.0616, 13.8471},
	{3.3858, 14.5219}, {3.7154, 15.1915},
};

#define FEW (sizeof(few) / sizeof(few[0]))
#define Z   1.959963984540054 /* of 95 % of a normal distribution */

/* The same of any number. */
static struct mw_limits limits_of(double counted)
{
	double below = floor(counted * 2), part = counted * 2 - below, middle, half;

	if ((uint64_t)below + 1 < FEW) {
		const struct mw_limits *at = &few[(size_t)below];

		return (struct mw_limits){
			.low = at[0].low + (at[1].low - at[0].low) * part,
			.high = at[0].high + (at[1].high - at[0].high) * part,
		};
	}
	middle = counted + (2 * Z * Z + 1) / 6;
	half = Z * sqrt(counted + (Z * Z + 2) / 18);
	return (struct mw_limits){middle - half, middle + half};
}

struct mw_limits mw_sampling_limits(double estimate, double variance, double unseen)
{
	struct mw_limits limits;
	double each, more;

	if (variance <= 0 || estimate <= 0)
		return (struct mw_limits){estimate, estimate > 0 ? estimate : few[0].high * unseen};
	each = variance / estimate;
	limits = limits_of(estimate / each);
	limits = (struct mw_limits){limits.low * each, limits.high * each};
	if (unseen <= each)
		return limits;
	/* With a chance of a half one more would have been recorded, of those that stand for most. */
	more = (unseen - each) / 2;
	variance += (unseen * unseen - each * each) / 2;
	each = variance / (estimate + more);
	limits.high = limits_of((estimate + more) / each).high * each;
	return limits;
}

/* --- what there is once an interval is known ----------------------------------------------------------------------- */

void mw_sampling_destroy(struct mw_sampling *sampling)
{
	if (!sampling)
		return;
	free(sampling->intervals);
	mw_map_deinit(&sampling->of);
	free(sampling->stacks);
	free(sampling->threads);
	free(sampling);
}

/* So many of the spreads as there are numbers. */
static bool reach(struct mw_spreads **items, size_t *count, uint32_t number)
{
	size_t wanted = *count ? *count : 16;
	struct mw_spreads *grown;

	if (number < *count)
		return true;
	while (wanted <= number)
		wanted *= 2;
	grown = reallocarray(*items, wanted, sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + *count, 0, (wanted - *count) * sizeof(*grown));
	*items = grown;
	*count = wanted;
	return true;
}

/* All that has been counted until now was recorded as itself. */
static struct mw_spreads spreads_of(const struct mw_tally *tally)
{
	return (struct mw_spreads){
		.impacting.blocks = tally->impacting.count,
		.transient.blocks = tally->transient.count,
		.aofi.blocks = tally->aofi.count,
		.aofo.blocks = tally->aofo.count,
		.peak.blocks = tally->peak.amount.count,
	};
}

static struct mw_error *begin(struct mw_track *track)
{
	struct mw_sampling *sampling = calloc(1, sizeof(*sampling));
	uint32_t stacks = track->stacks.records.used, threads = track->threads.records.used;

	if (!sampling || !reach(&sampling->stacks, &sampling->stack_count, stacks) ||
	    !reach(&sampling->threads, &sampling->thread_count, threads)) {
		mw_sampling_destroy(sampling);
		return mw_error_nomem();
	}
	sampling->total = spreads_of(&track->totals[MW_KIND_HEAP]);
	sampling->exact = sampling->total.impacting.blocks + sampling->total.transient.blocks;
	for (uint32_t i = 0; i < stacks; i++) {
		if (mw_stack_table_kind(&track->stacks, i) == MW_KIND_HEAP)
			sampling->stacks[i] = spreads_of(&mw_stack_table_at(&track->stacks, i)->tally);
	}
	track->sampling = sampling;
	return NULL;
}

struct mw_error *mw_sampling_number(struct mw_track *track, uint64_t bytes, uint16_t *number)
{
	struct mw_sampling *sampling;
	uint32_t found = 0;

	if (!bytes) {
		*number = 0;
		return NULL;
	}
	if (!track->sampling)
		MW_TRY(begin(track));
	sampling = track->sampling;
	while (found < sampling->interval_count && sampling->intervals[found].bytes != bytes)
		found++;
	if (found == sampling->interval_count) {
		if (found == MW_INTERVAL_MAX)
			return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "more than %u different sampling intervals",
					       MW_INTERVAL_MAX);
		if (!MW_VECTOR_ROOM(sampling->intervals, found, sampling->interval_capacity))
			return mw_error_nomem();
		sampling->intervals[sampling->interval_count++] =
			(struct mw_sampled_interval){.bytes = bytes, .first_ns = UINT64_MAX};
	}
	*number = (uint16_t)(found + 1);
	return NULL;
}

static void restart(struct mw_spreads *spreads)
{
	struct mw_spreads older = {.aofo = spreads->aofo};

	mw_spread_add(&older.aofo, spreads->impacting);
	*spreads = older;
}

void mw_sampling_restart(struct mw_track *track)
{
	struct mw_sampling *sampling = track->sampling;

	if (!sampling)
		return;
	restart(&sampling->total);
	sampling->exact = 0;
	for (uint32_t i = 0; i < sampling->interval_count; i++)
		sampling->intervals[i].blocks = 0;
	for (size_t i = 0; i < sampling->stack_count; i++)
		restart(&sampling->stacks[i]);
	memset(sampling->threads, 0, sampling->thread_count * sizeof(*sampling->threads));
}

uint16_t mw_sampling_interval_at(const struct mw_track *track, mw_addr addr)
{
	return track->sampling ? (uint16_t)(uintptr_t)mw_map_get(&track->sampling->of, addr) : 0;
}

struct mw_weight mw_sampling_weight(const struct mw_track *track, const struct mw_block *block, uint16_t interval)
{
	return mw_weigh(interval ? track->sampling->intervals[interval - 1].bytes : 0, block->bytes, block->addr,
			block->time_ns);
}

struct mw_error *mw_sampling_set_interval(struct mw_track *track, mw_addr addr, uint16_t interval)
{
	if (interval)
		return mw_map_set(&track->sampling->of, addr,
				  (void *)(uintptr_t)interval); // NOLINT(performance-no-int-to-ptr)
	if (track->sampling)
		(void)mw_map_remove(&track->sampling->of, addr);
	return NULL;
}

struct mw_spreads mw_sampling_of_stack(const struct mw_track *track, uint32_t stack)
{
	const struct mw_sampling *sampling = track->sampling;

	return sampling && stack < sampling->stack_count ? sampling->stacks[stack] : (struct mw_spreads){0};
}

struct mw_spreads mw_sampling_of_thread(const struct mw_track *track, uint32_t thread)
{
	const struct mw_sampling *sampling = track->sampling;

	return sampling && thread < sampling->thread_count ? sampling->threads[thread] : (struct mw_spreads){0};
}

uint64_t mw_sampling_memory(const struct mw_track *track)
{
	const struct mw_sampling *sampling = track->sampling;

	return sampling ? sizeof(*sampling) + sampling->interval_capacity * sizeof(*sampling->intervals) +
				  mw_map_memory(&sampling->of) +
				  (sampling->stack_count + sampling->thread_count) * sizeof(struct mw_spreads)
			: 0;
}

/* --- events ---------------------------------------------------------------------------------------------------------- */

/* A block, and what it stands for. */
struct sampled {
	struct mw_block block;
	uint16_t interval;
};

static void move(struct mw_spread *from, struct mw_spread *to, struct mw_spread spread)
{
	/* Not below 0: sums are rounded, and of a thread's earlier blocks it is not known how many were of the heap. */
	from->blocks -= from->blocks ? spread.blocks : 0;
	from->count = fmax(from->count - spread.count, 0);
	from->bytes = fmax(from->bytes - spread.bytes, 0);
	mw_spread_add(to, spread);
}

static struct mw_error *begin_block(struct mw_track *track, const struct sampled *sampled)
{
	struct mw_sampling *sampling = track->sampling;
	const struct mw_block *block = &sampled->block;
	struct mw_tally *total = &track->totals[MW_KIND_HEAP];
	struct mw_tally *stack = &mw_stack_table_at(&track->stacks, block->stack)->tally;
	struct mw_weight weight = mw_sampling_weight(track, block, sampled->interval);
	struct mw_amount amount = mw_weight_amount(weight, block->bytes);
	struct mw_spread spread = mw_weight_spread(weight, block->bytes);
	struct mw_spreads *of_stack = &sampling->stacks[block->stack], *of_thread = &sampling->threads[block->thread];
	struct mw_error *err = mw_tally_follow(stack, &track->clock);

	mw_spread_add(&sampling->total.impacting, spread);
	mw_spread_add(&of_stack->impacting, spread);
	mw_spread_add(&of_thread->impacting, spread);
	if (mw_tally_add_amount(total, amount.count, amount.bytes, block->time_ns))
		sampling->total.peak = sampling->total.impacting;
	if (mw_tally_add_amount(stack, amount.count, amount.bytes, block->time_ns))
		of_stack->peak = of_stack->impacting;
	if (track->born)
		mw_track_tell_birth(track, block, MW_KIND_HEAP, weight);
	mw_amount_add(&mw_thread_table_at(&track->threads, block->thread)->impacting, amount);
	return err;
}

static struct mw_error *end_block(struct mw_track *track, const struct sampled *sampled, uint64_t time_ns)
{
	struct mw_sampling *sampling = track->sampling;
	const struct mw_block *block = &sampled->block;
	struct mw_stack_record *record = mw_stack_table_at(&track->stacks, block->stack);
	struct mw_tally *total = &track->totals[MW_KIND_HEAP], *stack = &record->tally;
	struct mw_weight weight = mw_sampling_weight(track, block, sampled->interval);
	struct mw_amount amount = mw_weight_amount(weight, block->bytes);
	struct mw_spread spread = mw_weight_spread(weight, block->bytes);
	struct mw_spreads *of_stack = &sampling->stacks[block->stack];
	uint32_t thread = block->thread & ~MW_THREAD_OLDER;
	struct mw_error *err;

	if (mw_track_is_watched(track))
		mw_track_tell_end(track, block, time_ns, weight);
	if (block->thread & MW_THREAD_OLDER) {
		mw_amount_release(&total->aofo, &total->aofi, amount.count, amount.bytes);
		mw_amount_release(&stack->aofo, &stack->aofi, amount.count, amount.bytes);
		move(&sampling->total.aofo, &sampling->total.aofi, spread);
		move(&of_stack->aofo, &of_stack->aofi, spread);
		return NULL;
	}
	err = mw_tally_follow(stack, &track->clock);
	mw_amount_release(&total->impacting, &total->transient, amount.count, amount.bytes);
	mw_amount_release(&stack->impacting, &stack->transient, amount.count, amount.bytes);
	mw_amount_release(&mw_thread_table_at(&track->threads, thread)->impacting,
			  &mw_thread_table_at(&track->threads, thread)->transient, amount.count, amount.bytes);
	move(&sampling->total.impacting, &sampling->total.transient, spread);
	move(&of_stack->impacting, &of_stack->transient, spread);
	move(&sampling->threads[thread].impacting, &sampling->threads[thread].transient, spread);
	return mw_track_first_error(err, mw_histogram_add(&record->lifetimes,
							  time_ns > block->time_ns ? time_ns - block->time_ns : 0,
							  amount.count));
}

/* A block from before the window went. */
static struct mw_error *end_unknown(struct mw_track *track, mw_addr addr, uint64_t bytes, uint32_t stack,
				    uint64_t time_ns)
{
	MW_TRY(mw_account_stack(track, MW_KIND_HEAP, stack, &stack));
	if (mw_track_is_watched(track))
		mw_track_tell(track, (struct mw_track_fate){
					     .addr = addr,
					     .bytes = bytes,
					     .size = bytes,
					     .born_ns = MW_TIME_UNKNOWN,
					     .died_ns = time_ns,
					     .stack = stack,
					     .thread = UINT32_MAX,
					     .kind = MW_KIND_HEAP,
					     .last = true,
				     });
	return mw_account_aofi(track, MW_KIND_HEAP, stack, bytes);
}

/* Take a block out of the table; false: there is none. */
static bool take_out(struct mw_track *track, mw_addr addr, struct sampled *out)
{
	if (!mw_block_table_remove(&track->heap, addr, &out->block))
		return false;
	out->interval = (uint16_t)(uintptr_t)mw_map_remove(&track->sampling->of, addr);
	return true;
}

/* The free of a block was missed: its address is used again. */
static struct mw_error *miss_free(struct mw_track *track, mw_addr addr, uint64_t time_ns)
{
	struct sampled old;

	if (!take_out(track, addr, &old))
		return NULL;
	track->missed++;
	return end_block(track, &old, time_ns);
}

static struct mw_error *put(struct mw_track *track, const struct sampled *sampled)
{
	struct mw_block old;
	bool replaced;

	MW_TRY(mw_sampling_set_interval(track, sampled->block.addr, sampled->interval));
	return mw_block_table_insert(&track->heap, &sampled->block, &old, &replaced);
}

static struct mw_error *take_alloc(struct mw_track *track, const struct mw_event *event, uint32_t stack)
{
	struct mw_sampling *sampling = track->sampling;
	struct sampled sampled = {.interval = event->interval};

	if (event->addr == 0)
		return NULL;
	MW_TRY(mw_account_stack(track, MW_KIND_HEAP, stack, &stack));
	if (!reach(&sampling->stacks, &sampling->stack_count, stack) ||
	    !reach(&sampling->threads, &sampling->thread_count, event->thread))
		return mw_error_nomem();
	MW_TRY(miss_free(track, event->addr, event->time_ns));
	sampled.block = (struct mw_block){event->addr, event->size, event->time_ns, stack, event->thread};
	MW_TRY(put(track, &sampled));
	if (event->interval) {
		struct mw_sampled_interval *interval = &sampling->intervals[event->interval - 1];

		interval->blocks++;
		interval->first_ns = interval->first_ns < event->time_ns ? interval->first_ns : event->time_ns;
	} else {
		sampling->exact++;
	}
	return begin_block(track, &sampled);
}

static struct mw_error *take_free(struct mw_track *track, const struct mw_event *event)
{
	struct sampled sampled;

	if (event->addr == 0)
		return NULL;
	return take_out(track, event->addr, &sampled)
		       ? end_block(track, &sampled, event->time_ns)
		       : end_unknown(track, event->addr, event->size, event->stack, event->time_ns);
}

static struct mw_error *begin_realloc(struct mw_track *track, const struct mw_event *event)
{
	struct mw_pending *pending;
	struct sampled old;

	MW_TRY(mw_pending_push(track, event, MW_PENDING_REALLOC, &pending));
	if (event->addr && take_out(track, event->addr, &old)) {
		pending->holds = MW_PENDING_BLOCK;
		pending->block = old.block;
		pending->interval = old.interval;
	} else if (event->addr) {
		pending->holds = MW_PENDING_UNKNOWN;
		pending->block.addr = event->addr;
		pending->block.bytes = event->size;
	}
	return NULL;
}

static struct mw_error *end_realloc(struct mw_track *track, const struct mw_event *event)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);
	uint32_t stack = event->stack;

	if (pending) {
		struct mw_pending held = *pending;
		const struct sampled old = {held.block, held.interval};

		if (stack == MW_STACK_NONE)
			stack = held.stack;
		mw_pending_drop(track, event->thread, MW_PENDING_REALLOC);
		if (held.holds == MW_PENDING_BLOCK)
			MW_TRY(end_block(track, &old, held.time_ns));
		else if (held.holds == MW_PENDING_UNKNOWN)
			MW_TRY(end_unknown(track, held.block.addr, held.block.bytes, stack, held.time_ns));
		/* Both were recorded. What else took the place of what is not known, as calls in between were not. */
		if (held.holds == MW_PENDING_BLOCK && held.block.stack == stack && !event->unsampled && event->addr)
			MW_TRY(mw_replaced_take(track, stack, event->size, held.block.bytes, false));
	}
	return event->unsampled ? miss_free(track, event->addr, event->time_ns) : take_alloc(track, event, stack);
}

static struct mw_error *fail_realloc(struct mw_track *track, const struct mw_event *event)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);
	struct mw_error *err = NULL;

	if (pending && pending->holds == MW_PENDING_BLOCK) {
		const struct sampled old = {pending->block, pending->interval};

		if (mw_block_table_find(&track->heap, old.block.addr, NULL)) {
			/* Someone else was given the address meanwhile, so the block was freed after all. */
			track->missed++;
			err = end_block(track, &old, pending->time_ns);
		} else {
			MW_TRY(put(track, &old));
		}
	}
	if (pending)
		mw_pending_drop(track, event->thread, MW_PENDING_REALLOC);
	return err;
}

struct mw_error *mw_sampling_event(struct mw_track *track, const struct mw_event *event)
{
	switch (event->type) {
	case MW_EVENT_ALLOC:
		return take_alloc(track, event, event->stack);
	case MW_EVENT_FREE:
		return take_free(track, event);
	case MW_EVENT_REALLOC_BEGIN:
		return begin_realloc(track, event);
	case MW_EVENT_REALLOC_END:
		return end_realloc(track, event);
	default:
		return fail_realloc(track, event);
	}
}

void mw_sampling_settled(struct mw_track *track, const struct mw_block *block, struct mw_weight weight)
{
	struct mw_sampling *sampling = track->sampling;
	struct mw_spread spread = mw_weight_spread(weight, block->bytes);

	if (!sampling || block->thread & MW_THREAD_OLDER)
		return;
	mw_spread_add(&sampling->total.settled, spread);
	mw_spread_add(&sampling->stacks[block->stack].settled, spread);
}

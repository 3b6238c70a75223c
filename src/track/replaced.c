// SPDX-License-Identifier: MIT
/* replaced.c: see replaced.h. */
#include "track/replaced.h"

#include "track/state.h"

#define NEAR    16u  /* calls of the thread between the two */
#define FACTOR  8u   /* of sizes: blocks that differ by more have nothing to do with each other */
#define STORAGE 128u /* bytes: what is smaller is hardly a container's storage */

void mw_replaced_deinit(struct mw_replaced *replaced)
{
	mw_series_deinit(&replaced->older);
	*replaced = (struct mw_replaced){0};
}

void mw_class_flows_deinit(struct mw_class_flows *flows)
{
	for (uint32_t i = 0; i < MW_SIZE_CLASSES; i++) {
		mw_series_deinit(&flows->born_series[i]);
		mw_series_deinit(&flows->gone_series[i]);
		mw_series_deinit(&flows->older_series[i]);
	}
	*flows = (struct mw_class_flows){0};
}

struct mw_error *mw_class_flows_follow(struct mw_class_flows *flows, const struct mw_series_clock *clock)
{
	struct mw_error *err = NULL;

	for (uint32_t i = 0; i < MW_SIZE_CLASSES; i++) {
		err = mw_track_first_error(err, mw_series_follow(&flows->born_series[i], clock, flows->born[i]));
		err = mw_track_first_error(err, mw_series_follow(&flows->gone_series[i], clock, flows->gone[i]));
		err = mw_track_first_error(err, mw_series_follow(&flows->older_series[i], clock, flows->older[i]));
	}
	return err;
}

uint64_t mw_class_flows_memory(const struct mw_class_flows *flows)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < MW_SIZE_CLASSES; i++)
		bytes += mw_series_memory(&flows->born_series[i]) + mw_series_memory(&flows->gone_series[i]) +
			 mw_series_memory(&flows->older_series[i]);
	return bytes;
}

/* A stack's, which is made where there is none. */
static struct mw_error *replaced_of(struct mw_track *track, uint32_t stack, struct mw_replaced **out)
{
	struct mw_stack_record *record = mw_stack_table_at(&track->stacks, stack);

	if (!record->replaced) {
		MW_TRY(mw_pool_reserve(&track->replaced, 1));
		record->replaced = mw_pool_take(&track->replaced) + 1;
	}
	*out = mw_pool_at(&track->replaced, record->replaced - 1);
	return NULL;
}

static struct mw_error *take_place(struct mw_track *track, uint32_t stack, uint64_t bytes, uint64_t old_bytes,
				   bool older)
{
	struct mw_replaced *replaced = NULL;

	MW_TRY(replaced_of(track, stack, &replaced));
	replaced->count++;
	if (older) {
		MW_TRY(mw_series_follow(&replaced->older, &track->clock, replaced->older_bytes));
		replaced->older_count++;
		replaced->unknown += old_bytes == MW_SIZE_UNKNOWN;
		/* A block of the same usable size counts as the same size. */
		if (old_bytes == MW_SIZE_UNKNOWN || old_bytes == mw_replaced_usable(bytes))
			old_bytes = bytes;
		replaced->older_bytes += old_bytes;
	}
	replaced->larger += bytes > old_bytes && old_bytes != MW_SIZE_UNKNOWN;
	return NULL;
}

static void make_ambiguous(const struct mw_track *track, uint32_t stack)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, stack);

	((struct mw_replaced *)mw_pool_at(&track->replaced, record->replaced - 1))->ambiguous++;
}

/* Does a block that was allocated `distance` calls from the free of an older one take its place? */
static bool fits(uint64_t bytes, uint64_t old_bytes, uint32_t distance)
{
	return old_bytes == mw_replaced_usable(bytes) ||
	       (distance == 1 &&
		(old_bytes == MW_SIZE_UNKNOWN || (bytes / FACTOR <= old_bytes && old_bytes / FACTOR <= bytes)));
}

/* The thread has freed older blocks of late: does the new one take the place of one of them? */
static struct mw_error *match_frees(struct mw_track *track, struct mw_recent *recent, struct mw_recent_call *own)
{
	for (uint32_t i = 0; i < MW_RECENT; i++) {
		struct mw_recent_call *old = &recent->frees[i];

		if (!old->call)
			continue;
		if (own->call - old->call > NEAR) {
			old->call = 0;
			recent->free_count--;
		} else if (!fits(own->bytes, old->bytes, own->call - old->call)) {
			continue;
		} else if (old->stack != MW_STACK_NONE) {
			if (old->stack != own->stack && own->stack != MW_STACK_NONE)
				make_ambiguous(track, old->stack);
		} else if (own->stack != MW_STACK_NONE) {
			old->stack = own->stack;
			own->stack = MW_STACK_NONE;
			MW_TRY(take_place(track, old->stack, own->bytes, old->bytes, true));
		}
	}
	return NULL;
}

struct mw_error *mw_replaced_alloc(struct mw_track *track, uint32_t thread, const struct mw_block *block)
{
	struct mw_recent *recent = &mw_thread_table_at(&track->threads, thread)->recent;
	struct mw_recent_call *own = &recent->allocations[recent->next_allocation++ % MW_RECENT];

	uint32_t stack = block->stack;

	*own = (struct mw_recent_call){block->addr, block->bytes, stack, ++recent->calls};
	if (recent->own_free.call && recent->own_free.stack == stack && recent->calls - recent->own_free.call == 1) {
		own->stack = MW_STACK_NONE;
		return take_place(track, stack, block->bytes, recent->own_free.bytes, false);
	}
	return __builtin_expect(recent->free_count == 0, 1) ? NULL : match_frees(track, recent, own);
}

struct mw_error *mw_replaced_free(struct mw_track *track, uint32_t thread, const struct mw_block *block)
{
	struct mw_recent *recent = &mw_thread_table_at(&track->threads, thread)->recent;

	uint32_t stack = block->stack;

	recent->own_free = (struct mw_recent_call){.bytes = block->bytes, .stack = stack, .call = ++recent->calls};
	if (block->bytes < STORAGE)
		return NULL;
	for (uint32_t i = 1; i <= MW_RECENT; i++) {
		struct mw_recent_call *own = &recent->allocations[(recent->next_allocation - i) % MW_RECENT];

		if (!own->call || recent->calls - own->call > NEAR)
			break;
		/* What was there before the block is not its replacement. */
		if (own->addr == block->addr)
			break;
		if (own->stack == stack) {
			own->stack = recent->own_free.stack = MW_STACK_NONE;
			return take_place(track, stack, own->bytes, block->bytes, false);
		}
	}
	return NULL;
}

/* The latest allocation of the thread that can have taken the place of what it frees now; NULL: there is none. */
static struct mw_recent_call *match_allocations(struct mw_recent *recent, uint64_t bytes, bool *ambiguous)
{
	struct mw_recent_call *found = NULL;

	*ambiguous = false;
	for (uint32_t i = 1; i <= MW_RECENT; i++) {
		struct mw_recent_call *own = &recent->allocations[(recent->next_allocation - i) % MW_RECENT];
		uint32_t distance = recent->calls - own->call;

		if (!own->call || distance > NEAR)
			break;
		if (own->stack == MW_STACK_NONE || !fits(own->bytes, bytes, distance))
			continue;
		if (found)
			*ambiguous |= found->stack != own->stack;
		else
			found = own;
	}
	return found;
}

struct mw_error *mw_replaced_free_older(struct mw_track *track, uint32_t thread, uint64_t bytes)
{
	struct mw_recent *recent = &mw_thread_table_at(&track->threads, thread)->recent;
	struct mw_recent_call *own, *old = &recent->frees[recent->next_free++ % MW_RECENT];
	bool ambiguous;

	recent->free_count = (uint8_t)(recent->free_count + !old->call);
	*old = (struct mw_recent_call){.bytes = bytes, .stack = MW_STACK_NONE, .call = ++recent->calls};
	own = match_allocations(recent, bytes, &ambiguous);
	if (!own)
		return NULL;
	old->stack = own->stack;
	own->stack = MW_STACK_NONE;
	MW_TRY(take_place(track, old->stack, own->bytes, bytes, true));
	if (ambiguous)
		make_ambiguous(track, old->stack);
	return NULL;
}

struct mw_error *mw_replaced_realloc(struct mw_track *track, uint32_t stack, uint64_t bytes, uint64_t old_bytes,
				     bool older)
{
	return take_place(track, stack, bytes, old_bytes, older);
}

// SPDX-License-Identifier: MIT
/* interval.c: all figures begin anew, while what is live stays known (track.h). */
#include "track/state.h"
#include "track/vm.h"

/* What is impacting becomes what was there before; nothing else stays. */
static void restart_tally(struct mw_tally *tally)
{
	struct mw_amount older = mw_amount_sum(&tally->impacting, &tally->aofo);

	mw_series_deinit(&tally->series);
	*tally = (struct mw_tally){.aofo = older};
}

static void mark_vm_blocks(struct mw_track *track)
{
	/* Those that are not in use are written anew before they are. */
	for (uint32_t i = 0; i < track->vm_blocks.used; i++)
		((struct mw_vm_block *)mw_pool_at(&track->vm_blocks, i))->thread |= MW_THREAD_OLDER;
}

/* Blocks that calls hold which have begun and not ended. */
static void mark_pending(struct mw_track *track, uint32_t id)
{
	while (id != MW_POOL_NONE) {
		struct mw_pending *pending = mw_pool_at(&track->pending, id);

		if (pending->holds == MW_PENDING_BLOCK)
			pending->block.thread |= MW_THREAD_OLDER;
		id = pending->next;
	}
}

struct mw_error *mw_track_interval(struct mw_track *track, uint64_t begin_ns)
{
	mw_block_table_mark(&track->heap, MW_THREAD_OLDER);
	mark_vm_blocks(track);
	for (uint32_t i = 0; i < MW_KIND_COUNT; i++)
		restart_tally(&track->totals[i]);
	for (uint32_t i = 0; i < track->stacks.records.used; i++) {
		struct mw_stack_record *stack = mw_stack_table_at(&track->stacks, i);

		restart_tally(&stack->tally);
		mw_histogram_deinit(&stack->lifetimes);
	}
	for (uint32_t i = 0; i < track->threads.records.used; i++) {
		struct mw_thread_record *thread = mw_thread_table_at(&track->threads, i);

		thread->impacting = thread->transient = (struct mw_amount){0, 0};
		mark_pending(track, thread->pending[MW_PENDING_REALLOC]);
	}
	track->missed = 0;
	mw_series_clock_start(&track->clock, begin_ns);
	return NULL;
}

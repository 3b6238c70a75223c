// SPDX-License-Identifier: MIT
/* pending.c: calls that have begun and not ended (pending.h). */
#include "track/pending.h"

#include "track/state.h"

static struct mw_pending *pending_at(const struct mw_track *track, uint32_t id)
{
	return mw_pool_at(&track->pending, id);
}

struct mw_error *mw_pending_push(struct mw_track *track, const struct mw_event *event, enum mw_pending_family family,
				 struct mw_pending **out)
{
	struct mw_thread_record *thread = mw_thread_table_at(&track->threads, event->thread);
	struct mw_pending *pending;
	uint32_t id;

	MW_TRY(mw_pool_reserve(&track->pending, 1));
	id = mw_pool_take(&track->pending);
	pending = pending_at(track, id);
	pending->next = thread->pending[family];
	pending->holds = MW_PENDING_NOTHING;
	pending->stack = event->stack;
	pending->ranges = MW_RANGE_NONE;
	pending->time_ns = event->time_ns;
	thread->pending[family] = id;
	*out = pending;
	return NULL;
}

struct mw_pending *mw_pending_find(const struct mw_track *track, uint32_t thread, enum mw_pending_family family)
{
	uint32_t id = mw_thread_table_at(&track->threads, thread)->pending[family];

	return id == MW_POOL_NONE ? NULL : pending_at(track, id);
}

void mw_pending_drop(struct mw_track *track, uint32_t thread, enum mw_pending_family family)
{
	uint32_t *link = &mw_thread_table_at(&track->threads, thread)->pending[family];
	uint32_t id = *link;

	*link = pending_at(track, id)->next;
	mw_pool_give(&track->pending, id);
}

// SPDX-License-Identifier: MIT
/* limbo.c: calls that have begun and not ended (limbo.h). */
#include "track/limbo.h"

#include "track/state.h"

static struct mw_limbo *limbo_at(const struct mw_track *track, uint32_t id)
{
	return mw_pool_at(&track->limbo, id);
}

struct mw_error *mw_limbo_push(struct mw_track *track, const struct mw_event *event, enum mw_limbo_family family,
			       struct mw_limbo **out)
{
	struct mw_thread_record *thread = mw_thread_table_at(&track->threads, event->thread);
	struct mw_limbo *limbo;
	uint32_t id;

	MW_TRY(mw_pool_reserve(&track->limbo, 1));
	id = mw_pool_take(&track->limbo);
	limbo = limbo_at(track, id);
	limbo->next = thread->limbo[family];
	limbo->holds = MW_LIMBO_NOTHING;
	limbo->stack = event->stack;
	limbo->ranges = MW_RANGE_NONE;
	limbo->time_ns = event->time_ns;
	thread->limbo[family] = id;
	*out = limbo;
	return NULL;
}

struct mw_limbo *mw_limbo_find(const struct mw_track *track, uint32_t thread, enum mw_limbo_family family)
{
	uint32_t id = mw_thread_table_at(&track->threads, thread)->limbo[family];

	return id == MW_POOL_NONE ? NULL : limbo_at(track, id);
}

void mw_limbo_drop(struct mw_track *track, uint32_t thread, enum mw_limbo_family family)
{
	uint32_t *link = &mw_thread_table_at(&track->threads, thread)->limbo[family];
	uint32_t id = *link;

	*link = limbo_at(track, id)->next;
	mw_pool_give(&track->limbo, id);
}

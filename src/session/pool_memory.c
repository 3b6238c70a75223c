// SPDX-License-Identifier: MIT
/* pool_memory.c: how blocks of pools are read, once a window is over (recorder.h). The process runs meanwhile. */
#include "session/recorder.h"

#include "proc/status.h"
#include "session/session.h"

static bool is_constant(void *context, mw_addr addr)
{
	const struct mw_recorder_pools *pools = context;
	const struct mw_mapping *mapping = mw_maps_find(&pools->maps, addr);

	return mapping && mapping->inode && mapping->read && !mapping->write && !mapping->shared;
}

/* Constants are read from their files where they were not touched; no other page is read that nobody has touched. */
static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	const struct mw_recorder_pools *pools = context;
	const struct mw_mapping *mapping = mw_maps_find(&pools->maps, addr);

	if (!mapping || !mapping->read)
		return 0;
	if (size > mapping->end - addr)
		size = (size_t)(mapping->end - addr);
	return is_constant(context, addr) ? mw_peek_some(pools->touched.tid, addr, out, size)
					  : mw_touched_read(&pools->touched, addr, out, size);
}

void mw_recorder_open_pools(struct mw_recorder *recorder, struct mw_recorder_pools *out)
{
	struct mw_engine *engine = recorder->session->engine;
	const struct mw_window_info *window = engine->ops->window(engine, recorder->key);
	pid_t tid = mw_live_thread(recorder->pid);

	*out = (struct mw_recorder_pools){.memory = {read_some, is_constant, out}, .touched = {.pagemap = -1}};
	if (!window || window->gone || window->ended == MW_END_EXEC ||
	    !mw_error_none(mw_program_check(recorder->pid, &recorder->program)) ||
	    !mw_error_none(mw_maps_read(tid, &out->maps)))
		return;
	mw_touched_init(&out->touched, tid);
	recorder->watched->pools = &out->memory;
}

void mw_recorder_close_pools(struct mw_recorder *recorder, struct mw_recorder_pools *pools)
{
	recorder->watched->pools = NULL;
	mw_maps_deinit(&pools->maps);
	mw_touched_deinit(&pools->touched);
}

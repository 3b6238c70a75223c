// SPDX-License-Identifier: MIT
/* moments.c: see moments.h. */
#include "view/moments.h"

#include <stdlib.h>

/* What goes on while the replay runs. */
struct reading {
	struct mw_moments *moments;
	bool no_memory;
};

/* All that the tracker knows to be outstanding now, whenever it came. */
static bool keep(const struct mw_track *track, struct mw_moments_held *out)
{
	size_t count = mw_track_stack_count(track);
	struct mw_amount *amounts = calloc(count + 1, sizeof(*amounts));

	if (!amounts)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct mw_track_stack stack;

		mw_track_stack(track, (uint32_t)i, &stack);
		amounts[i].count = stack.totals.impacting.count + stack.totals.aofo.count;
		amounts[i].bytes = stack.totals.impacting.bytes + stack.totals.aofo.bytes;
	}
	out->amounts = amounts;
	out->count = count;
	return true;
}

static void begin(void *context, size_t process, struct mw_track *track)
{
	struct reading *reading = context;

	/* A process that was first heard of in this reading is none of those that were counted. */
	if (process < reading->moments->count && !keep(track, &reading->moments->then[process]))
		reading->no_memory = true;
}

struct mw_error *mw_moments_read(struct mw_replay *replay, uint64_t then_ns, uint64_t now_ns, struct mw_moments *out)
{
	struct reading reading = {.moments = out};
	const struct mw_replay_interval interval = {
		.from_ns = then_ns, .to_ns = now_ns, .begin = begin, .context = &reading};
	size_t count = mw_replay_count(replay);

	out->then = calloc(count, sizeof(*out->then));
	out->now = calloc(count, sizeof(*out->now));
	if (!out->then || !out->now)
		return mw_error_nomem();
	out->count = count;
	MW_TRY(mw_replay_run(replay, &interval));
	for (size_t i = 0; i < count; i++)
		if (!keep(mw_replay_watched(replay, i)->track, &out->now[i]))
			return mw_error_nomem();
	return reading.no_memory ? mw_error_nomem() : NULL;
}

void mw_moments_deinit(struct mw_moments *moments)
{
	for (size_t i = 0; i < moments->count; i++) {
		free(moments->then[i].amounts);
		free(moments->now[i].amounts);
	}
	free(moments->then);
	free(moments->now);
	*moments = (struct mw_moments){.count = 0};
}

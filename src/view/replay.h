/* SPDX-License-Identifier: MIT */
/*
 * replay.h: a recording is read, and a tracker of each process fed with its events, over any interval.
 *
 * An event lies in the interval from its first event with from <= time on, up to the first with time >= to. The file
 * may have been cut off: then the window ends with the last thing that is good.
 */
#ifndef MW_VIEW_REPLAY_H
#define MW_VIEW_REPLAY_H

#include "view/watched.h"

struct mw_replay;

/* `phase` is static text; done of total, in bytes or stacks. */
typedef void mw_replay_progress(void *context, const char *phase, uint64_t done, uint64_t total);

/* Open a recording and read all but its events. `progress` may be NULL. Errors: those of mw_store_open(), DATA where it
 * holds nothing, or a look at a heap that is not whole. */
struct mw_error *mw_replay_open(const char *path, mw_replay_progress *progress, void *context,
				struct mw_replay **out) MW_MUST_CHECK;
void mw_replay_close(struct mw_replay *replay);

/* The look at a heap that it holds in place of windows; NULL: it has windows. Good until close. */
const struct mw_heap_report *mw_replay_heap(const struct mw_replay *replay);

/* Where else to look for files with symbols than where the recording says they were; borrowed. To be called before
 * any report is made. */
void mw_replay_symbols(struct mw_replay *replay, const char *const *directories, size_t count);

size_t mw_replay_count(const struct mw_replay *replay);
/* Good until close; its tracker's figures are those of the last run, and good until the next one. */
struct mw_watched *mw_replay_watched(const struct mw_replay *replay, size_t process);
/* The longest window of all of them, as far as the metadata tell: they are all read over one interval. */
uint64_t mw_replay_length(const struct mw_replay *replay);
/* How the file ends. */
const struct mw_store_state *mw_replay_state(const struct mw_replay *replay);

#define MW_REPLAY_END UINT64_MAX

struct mw_replay_interval {
	uint64_t from_ns, to_ns; /* to_ns MW_REPLAY_END: up to the window's end */
	/* The interval begins, for each process; what is fed to the tracker from now on belongs to it. May be NULL. */
	void (*begin)(void *context, size_t process, struct mw_track *track);
	void *context;
	bool judged; /* verdicts are asked for: what the whole window tells of stacks is read as well */
};

/* Read the events and feed the trackers anew. Errors: the store's, the tracker's. */
struct mw_error *mw_replay_run(struct mw_replay *replay, const struct mw_replay_interval *interval) MW_MUST_CHECK;
/* When most bytes of heap and vm together were outstanding of what was allocated since `from_ns`: the first moment of
 * the highest, the end of the event that made it. Reads the events; no run is good any more. */
struct mw_error *mw_replay_peak(struct mw_replay *replay, const struct mw_replay_interval *interval, size_t process,
				uint64_t *at_ns) MW_MUST_CHECK;

/* --- what stacks held at one or two moments of a recording, in one reading of it --------------------------- */

/* Of one process, by the tracker's numbers of stacks. */
struct mw_moments_held {
	struct mw_amount *amounts;
	struct mw_spread *spreads; /* of these, where blocks are sampled … */
	struct mw_spread *stays;   /* … and of what was there at the first moment */
	size_t count;
};

struct mw_moments {
	struct mw_moments_held *then; /* of each process: at the first moment … */
	struct mw_moments_held *now;  /* … and at the second one */
	size_t count;                 /* processes */
};

/*
 * Read the recording up to `now_ns`, which is not before `then_ns`; MW_REPLAY_END: all of it. Events before a moment
 * count, those of its very nanosecond don't. The replay's trackers are then those of the second moment; all that is
 * outstanding there and came before the first is AOFO to them. `out` is zeroed; mw_moments_deinit() frees what it
 * holds, also after an error. Errors: those of mw_replay_run().
 */
struct mw_error *mw_moments_read(struct mw_replay *replay, uint64_t then_ns, uint64_t now_ns,
				 struct mw_moments *out) MW_MUST_CHECK;
void mw_moments_deinit(struct mw_moments *moments);

#endif

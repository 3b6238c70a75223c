/* SPDX-License-Identifier: MIT */
/*
 * work.h: what a live table has done in a thread of its own, for it takes time: names are found, recordings
 * written.
 */
#ifndef MW_TOP_WORK_H
#define MW_TOP_WORK_H

#include "top/view.h"

struct mw_top_work;

/* Starts the thread. `no_writer` says why there is nothing to write a recording from, where the session has no writer; all
 * is borrowed. Errors: MEMORY, SYSTEM. */
struct mw_error *mw_top_work_create(struct mw_top_feeds *feeds, const char *no_writer,
				    struct mw_top_work **out) MW_MUST_CHECK;
/* End the thread. False: it does not end within so many seconds, and all that it was given must stay. */
bool mw_top_work_end(struct mw_top_work *work, unsigned seconds);
/* Once it has ended: the names of all stacks go to the session's recording. `go_on` is asked now and then, false ends
 * it. Errors: MEMORY. */
struct mw_error *mw_top_work_emit(struct mw_top_work *work, bool (*go_on)(void *context, uint64_t done, uint64_t total),
				  void *context) MW_MUST_CHECK;
/* Once it has ended. Names that it found are good until then. */
void mw_top_work_destroy(struct mw_top_work *work);

/* The names of these stacks of a process are wanted, in this order; what was wanted before is not. */
void mw_top_work_want(struct mw_top_work *work, size_t process, const uint32_t *stacks, size_t count);
/* Write what was seen until now to a file of that name. False: another is still being written. */
bool mw_top_work_save(struct mw_top_work *work, const char *path);
/* The message on it, "" for nothing; `*busy`: it is still at it. Given once where it is done. */
void mw_top_work_news(struct mw_top_work *work, char *out, size_t size, bool *busy);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h: a process's memory at one moment, as an image.
 *
 *      mw_heap_snapshot_take      stop the process, read registers, mappings and pages, have it fork a copy, let it go on
 *      (the copy is read)
 *      mw_heap_snapshot_release   end the copy, and have the process reap it: nothing is left
 *
 * The copy is made by an injected clone() with exit signal 0, so that the process gets no SIGCHLD and its own wait() does
 * not see it. It never runs. Should memwatch be killed, it is killed with it (PTRACE_O_EXITKILL); what is left then is a
 * zombie that the next memwatch, or doctor --clean, has reaped (mw_heap_snapshot_clean()).
 *
 * Where a copy may not be made, the process itself is read while it runs (image->consistent is false), and `why` says
 * why.
 */
#ifndef MW_HEAP_SNAPSHOT_H
#define MW_HEAP_SNAPSHOT_H

#include "heap/image.h"
#include "symbol/modules.h"

#include <memwatch/error.h>

struct mw_heap_snapshot;

struct mw_heap_snapshot_options {
	bool no_fork; /* read the running process */
};

/* Errors: GONE, DENIED, UNSUPPORTED, SYSTEM, MEMORY. On failure the process runs on as it was. Nobody else of this
 * process's threads traces it. */
struct mw_error *mw_heap_snapshot_take(pid_t pid, const struct mw_heap_snapshot_options *options,
				       struct mw_heap_snapshot **out) MW_MUST_CHECK;
/* Good until released. */
const struct mw_image *mw_heap_snapshot_image(const struct mw_heap_snapshot *snapshot);
/* Set where the zeroed data of these modules ends in the image's mappings. */
void mw_heap_snapshot_find_bss(struct mw_heap_snapshot *snapshot, const struct mw_modules *modules);
/* Ask the process's threads for their alternate signal stacks, which are the image's kernel words then. Takes a stop.
 * Errors: MEMORY; where not all could be asked the image says that words are hidden. */
struct mw_error *mw_heap_snapshot_ask_signal_stacks(struct mw_heap_snapshot *snapshot) MW_MUST_CHECK;
bool mw_heap_snapshot_is_fork(const struct mw_heap_snapshot *snapshot);
/* Why there is no copy; NULL where there is one, or none was wanted. */
const char *mw_heap_snapshot_why(const struct mw_heap_snapshot *snapshot);
/* How long the process stood, in all its stops until now. */
uint64_t mw_heap_snapshot_pause_ns(const struct mw_heap_snapshot *snapshot);
/* Bytes resident when it stood: the sum of what its mappings have, as smaps counts them, and those of hugetlbfs, which
 * VmRSS leaves out; MW_SIZE_UNKNOWN. */
uint64_t mw_heap_snapshot_rss(const struct mw_heap_snapshot *snapshot);
/* The process has exited or executed another program since. */
bool mw_heap_snapshot_is_stale(const struct mw_heap_snapshot *snapshot);
/* End the copy now, and have it reaped: that pause is then in mw_heap_snapshot_pause_ns(). Nothing can be read of it any more.
 * For the thread that took it. Errors: as of release. */
struct mw_error *mw_heap_snapshot_end_copy(struct mw_heap_snapshot *snapshot) MW_MUST_CHECK;
/* For the thread that took it. Frees also on failure; NULL is fine. Errors: what could not be taken back, and what the user can do. */
struct mw_error *mw_heap_snapshot_release(struct mw_heap_snapshot *snapshot) MW_MUST_CHECK;

/* Have copies reaped that a killed memwatch has left in the process; *count is how many. Errors: as of take. */
struct mw_error *mw_heap_snapshot_clean(pid_t pid, unsigned *count) MW_MUST_CHECK;

#endif

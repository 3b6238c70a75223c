/* SPDX-License-Identifier: MIT */
/*
 * copy.h: a forked copy of a process, to be read while that runs on.
 *
 *      mw_copy_make      while all threads stand (quiesce.h): one of them forks
 *      mw_copy_settle    the copy comes to stand, named MW_COPY_NAME; the process may run by now
 *      (it is read)
 *      mw_copy_end       it is killed
 *      mw_copies_reap    the process waits for it: nothing is left
 *
 * The copy never runs the program's code. Before it stands to be read, all that it does is to name itself; let go at any
 * moment, as when memwatch is killed, it goes on to end itself (mw_inject_fork). Then it stays as a zombie of the process:
 * of that name, exit signal 0, which is how the next memwatch knows it.
 *
 * The process gets no SIGCHLD, and its plain wait() does not see the copy. Descriptors are not doubled: what the process
 * closes is closed. The copy is the first that the kernel kills where memory runs out.
 */
#ifndef MW_TRACEE_COPY_H
#define MW_TRACEE_COPY_H

#include "tracee/inject.h"
#include "tracee/quiesce.h"

#include <memwatch/error.h>

struct mw_copy {
	pid_t pid; /* 0: there is none */
	bool standing;
	/* its own: */
	struct mw_orphans known;
};

/*
 * May the process be copied without harm? Asked before anything is done. Errors: UNSUPPORTED, with the reason: memory
 * would be too short if it wrote to all of its own meanwhile; it may provide pages itself (userfaultfd), or read files
 * straight into memory that would be shared.
 */
struct mw_error *mw_copy_may(pid_t pid) MW_MUST_CHECK;
/*
 * Choose who performs calls (of seccomp_policy.h): of those that stand one that gets back to its work by itself if memwatch
 * is killed amid one, and lives. `inject` has the code (mw_inject_find_code); `maps` may be a little older. Errors:
 * UNSUPPORTED where there is none, with the reason.
 */
struct mw_error *mw_copy_choose(struct mw_inject *inject, const struct mw_quiesce *quiesce, const struct mw_maps *maps,
				uint32_t calls) MW_MUST_CHECK;
/*
 * Have a thread that stands fork the process. `out` stays where it is until mw_copy_end(), which is for the calling
 * thread. `meanwhile` is called while the kernel is at it, if it comes to that. Errors: UNSUPPORTED with the reason, where it may not or can't; GONE, SYSTEM.
 */
struct mw_error *mw_copy_make(const struct mw_inject *inject, void (*meanwhile)(void *context), void *context,
			      struct mw_copy *out) MW_MUST_CHECK;
/* Wait until it stands to be read. Errors: GONE (it was killed), SYSTEM; it is to be ended all the same. */
struct mw_error *mw_copy_settle(struct mw_copy *copy) MW_MUST_CHECK;
/* Kill it, and wait for its end. Safe for a zeroed one, and twice. */
void mw_copy_end(struct mw_copy *copy);

/* Copies that have ended, but that the process has not waited for yet. `*pids` is malloc'ed. Errors: MEMORY, SYSTEM. */
struct mw_error *mw_copies_find(pid_t pid, pid_t **pids, size_t *count) MW_MUST_CHECK;
/*
 * Have the process wait for these, which takes a stop; none where there are none. *count is how many, *stood_ns how long
 * it stood. Errors: DENIED, UNSUPPORTED, SYSTEM, MEMORY; a process that has ended is none.
 */
struct mw_error *mw_copies_reap(pid_t pid, unsigned *count, uint64_t *stood_ns) MW_MUST_CHECK;

#endif

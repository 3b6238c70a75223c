/* SPDX-License-Identifier: MIT */
/*
 * quiesce.h: make a whole process stand still for a moment, and let it go as it was.
 *
 *      mw_quiesce_begin    seize every thread, interrupt it, wait until all stand
 *      mw_quiesce_pause, mw_quiesce_resume    … let them run for a moment in between, and stand again
 *      mw_quiesce_end      detach from every thread; signals that came meanwhile are delivered, a stopped process
 *                          stays stopped, interrupted system calls go on
 *
 * Between begin and end the caller's thread is the tracer. New threads that are born meanwhile belong to it; a child
 * process that is forked meanwhile is told to `forked` while it stands, and let go after that; one that shares the
 * memory (vfork) is held like a thread. Nothing but this uses waitpid for these tids.
 */
#ifndef MW_TARGET_QUIESCE_H
#define MW_TARGET_QUIESCE_H

#include "target/tracee.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

struct mw_quiet_thread {
	pid_t tid;
	bool stopped;
	bool sharing;   /* another process that lives in the same memory (vfork) */
	bool in_event;  /* stands in a clone, fork, exec or exit: its registers can be read, but it can perform no system call */
	bool group_stopped;
	int signal;     /* to be delivered when it goes on */
	/* its own: */
	bool interrupted, newborn, mended;
};

struct mw_quiesce {
	pid_t pid;
	struct mw_quiet_thread *threads; /* those that are there */
	size_t count, capacity;
	bool standing;
	bool gone;      /* the process has ended */
	bool execed;    /* it runs another program now */
	int exit_status; /* where gone and known, as waitpid gives it; else -1 */
	uint64_t stood_ns;  /* time for which all stood still, summed up */
	uint64_t began_ns;
	/* A forked child stands before its first instruction, traced: clean it. May be NULL. */
	struct mw_error *(*forked)(void *context, pid_t child);
	void *context;
	/* its own: */
	struct { pid_t tid; int status; } early[64];
	size_t early_count;
};

/*
 * All threads stand when this returns. Set forked and context before. Threads in a wait that nothing interrupts (vfork, a
 * dead disk) may be left running after two seconds: they are not `stopped`. On failure all are let go. Errors: GONE,
 * DENIED (explained by preflight), SYSTEM, MEMORY.
 */
struct mw_error *mw_quiesce_begin(struct mw_quiesce *quiesce, pid_t pid) MW_MUST_CHECK;
/* Let all go on, still traced, for about `ns`; then stand again. */
struct mw_error *mw_quiesce_breathe(struct mw_quiesce *quiesce, uint64_t ns) MW_MUST_CHECK;
/* Let go. Safe at any time, also where the process has ended, and twice. */
struct mw_error *mw_quiesce_end(struct mw_quiesce *quiesce) MW_MUST_CHECK;
/* A stopped thread that can perform a system call for us, or 0. */
pid_t mw_quiesce_pick(const struct mw_quiesce *quiesce);

#endif

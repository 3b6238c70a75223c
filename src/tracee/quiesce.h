/* SPDX-License-Identifier: MIT */
/*
 * quiesce.h: stop a whole process for a moment, and resume it as it was.
 *
 *      mw_quiesce_begin    seize every thread, interrupt it, wait until all stand
 *      mw_quiesce_run_briefly  let them run for a moment in between, and stand again
 *      mw_quiesce_end      detach from every thread; signals that came meanwhile are delivered, a stopped process
 *                          stays stopped, interrupted system calls go on
 *
 * Between begin and end the caller's thread is the tracer. New threads that are born meanwhile belong to it; a child
 * process that is forked meanwhile is reported to `forked` while it stands, and let go after that; one that shares the
 * memory (vfork) is held like a thread. Nothing but this waits for these tids, and this waits for no others.
 *
 * A thread stands at the border to user mode: a signal that was about to be handled has its frame built, a fork or
 * clone is done. So none holds a signal back, and nearly all can perform a system call.
 */
#ifndef MW_TRACEE_QUIESCE_H
#define MW_TRACEE_QUIESCE_H

#include "tracee/tracee.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

struct mw_quiet_thread {
	pid_t tid;
	bool stopped;
	bool sharing;  /* another process that lives in the same memory (vfork) */
	bool in_event; /* stands in a vfork: its registers can be read, but it can perform no system call */
	bool group_stopped;
	bool urged; /* the caller's: runs when others breathe, though its process is stopped, to come out of our code */
	/* its own: */
	bool interrupted; /* our interrupt is on its way */
	bool newborn;     /* has not had its first stop */
	bool by_vfork;
};

/* Can it perform a system call for us (mw_inject_call)? */
static inline bool mw_quiet_thread_can_call(const struct mw_quiet_thread *thread)
{
	return thread->stopped && !thread->in_event && !thread->sharing && !thread->newborn;
}

struct mw_quiesce {
	pid_t pid;
	struct mw_quiet_thread *threads; /* those that are there, by tid */
	size_t count, capacity;
	bool standing;
	bool gone;         /* the process has ended */
	bool execed;       /* it runs another program now */
	int exit_status;   /* where gone and known, as waitpid gives it; else -1 */
	uint64_t stood_ns; /* time for which any was kept from running, summed up */
	/* A forked child stands before its first instruction, traced: clean it. May be NULL. */
	struct mw_error *(*forked)(void *context, pid_t child);
	void *context;
	/* its own: */
	uint64_t since_ns; /* when they were last asked to stop; 0 while they run */
	bool holding;      /* who stops is to stay so */
	bool peeks;        /* the way into the memory is kept (proc/peek.h) */
};

/*
 * All threads stand when this returns. Zero-initialise; set forked and context before, and mw_quiesce_deinit in the
 * end. Threads in a wait that nothing interrupts may be left unstopped, a vfork's maker where its child stands, others
 * (a dead disk) after two seconds: they run no code of the program before they have stopped. On failure all are let go;
 * gone and execed say what became of the process. Errors: GONE (it ended or runs another program), DENIED (explained by
 * preflight), SYSTEM, MEMORY, and those of `forked`.
 */
struct mw_error *mw_quiesce_begin(struct mw_quiesce *quiesce, pid_t pid) MW_MUST_CHECK;
/* The same of one thread alone, while all others run on: for a system call that needs no more. */
struct mw_error *mw_quiesce_begin_one(struct mw_quiesce *quiesce, pid_t pid, pid_t tid) MW_MUST_CHECK;
/* The same for a process of one thread that the caller has seized and that stands in a stop of the caller's making. */
struct mw_error *mw_quiesce_take(struct mw_quiesce *quiesce, pid_t pid) MW_MUST_CHECK;
/*
 * Let all go on, still traced, for about `ns`; then stand again. That the process has ended or runs another program is
 * no error: see gone and execed. After an error those that could be stopped stand.
 */
struct mw_error *mw_quiesce_run_briefly(struct mw_quiesce *quiesce, uint64_t ns) MW_MUST_CHECK;
/*
 * Let go. Safe at any time, also where the process has ended, and twice. A thread that does not stop within five
 * seconds, or two where nothing interrupts it, can't be let go yet: an error, and it stays listed (count). While it
 * lacks nothing but a CPU, or its vforked child does, that may last a minute longer. It will stop when its wait ends:
 * call this again, or begin anew. All are let go when the caller's thread ends.
 */
struct mw_error *mw_quiesce_end(struct mw_quiesce *quiesce) MW_MUST_CHECK;
/* Forget those that could not be let go. */
void mw_quiesce_deinit(struct mw_quiesce *quiesce);
/* Is the thread one of those that stand, or are let run for a moment? */
bool mw_quiesce_holds(const struct mw_quiesce *quiesce, pid_t tid);
/* A stopped thread that can perform a system call for us (mw_inject_call), or 0. */
pid_t mw_quiesce_pick(const struct mw_quiesce *quiesce);
/*
 * Let them run, moment by moment, until there is one to pick: the maker of a vfork is none before its child has run
 * another program or ended. Errors: GONE, SYSTEM (none within five seconds), and those of breathe; all still stand.
 */
struct mw_error *mw_quiesce_await_injector(struct mw_quiesce *quiesce) MW_MUST_CHECK;

/* --- orphans: tracees that nobody has announced, as who made them was killed before it could (orphans.c) ----------- */

/* One who traces by the calling thread. `context` is given to both. */
struct mw_orphans {
	/* Does it know of the process? Then that is no orphan. */
	bool (*known)(void *context, pid_t pid);
	/* An orphan that it has looked for stands; it lets that go. */
	void (*stopped)(void *context, pid_t pid);
	void *context;
	struct mw_orphans *next; /* orphans.c's */
};

/* What it knows of is no orphan to others either: from now on, and no more. It stays where it is meanwhile. */
void mw_orphans_spare(struct mw_orphans *others);
void mw_orphans_spare_no_more(const struct mw_orphans *others);

/* Is there news of a tracee (WSTOPPED, WEXITED) that nobody has heard? It stays to be heard. */
bool mw_orphans_unheard(pid_t tid, int what);
/* Find all processes that are orphans of the calling thread, and wait for the first stop of each. Best effort: one that
 * doesn't come to it within five seconds is left. */
void mw_orphans_find(const struct mw_orphans *orphans);

#endif

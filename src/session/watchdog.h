/* SPDX-License-Identifier: MIT */
/*
 * watchdog.h: whatever becomes of memwatch, the processes that it watches are let go.
 *
 * memwatch may be killed (kill -9, the kernel for lack of memory), may crash, may run out of memory in the midst of
 * letting go. What it has put into a process is then taken out by a process that has nothing of its trouble:
 *
 *   guard      is forked before the first attach. It sleeps until memwatch's process ends; where that has not said
 *              before that all is done, it executes memwatch anew, which takes out what was left.
 *   exec       a memwatch that can still do something, but can't be trusted to let go (a crash, no memory), executes
 *              itself anew for that, from a thread that stands by. The kernel takes all else away with it: threads,
 *              memory, ptrace, locks. Whoever waits for memwatch gets its exit status, after its message.
 *
 * There is one memwatch a process, so this is global state.
 */
#ifndef MW_SESSION_WATCHDOG_H
#define MW_SESSION_WATCHDOG_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mw_watchdog_plan {
	const pid_t *pids;
	size_t count;
	size_t more;        /* so many may be added (mw_watchdog_add()) */
	const char *output; /* the recording, which keeps what it has, or NULL */
	/* Memory of memwatch's own, bytes: where it has more, `reached` is called once, in another thread. 0: none. */
	uint64_t max_memory;
	void (*reached)(void);
	/* Called where memwatch comes to its end in another way, by itself or by its guard, before anything is said:
	 * async-signal-safe. NULL: nothing. */
	void (*leave)(void);
};

/*
 * Stand by; before the first attach. Without a guard (no more processes may be made) there is none: memwatch goes on.
 * Errors: MEMORY; SYSTEM where no thread can be made.
 */
struct mw_error *mw_watchdog_begin(const struct mw_watchdog_plan *plan) MW_MUST_CHECK;
/* One more, before it is attached to. Errors: UNSUPPORTED: there are as many as were planned for. */
struct mw_error *mw_watchdog_add(pid_t pid) MW_MUST_CHECK;
/* The one that was added last could not be attached to: if nothing is left in it, there is room for another. */
void mw_watchdog_forget_last(void);
/* The guard's process id; 0: there is none. */
pid_t mw_watchdog_guard(void);
/*
 * memwatch has failed, or could not let go: is anything left in one of the processes? Looks, and takes it out. True
 * where nothing is there now, and where a process may not be looked at (any more): another traces it, or it has become
 * another user's; *denied is true then. Nothing of memwatch's may be attached by ptrace any more.
 */
bool mw_watchdog_look(bool *denied);
/* In a forked copy of memwatch: the processes are not its business, and a crash ends it. */
void mw_watchdog_forked(void);
/*
 * All has been taken out: a crash is only one from now on. Waits for the guard to end. Where memwatch has failed (`err`,
 * else NULL) that is looked at first; if something is left, memwatch is executed anew, to take it out and to tell `err`:
 * then this does not return.
 */
void mw_watchdog_end(struct mw_error *err);

/* --- what is executed: memwatch --stand-by ... ------------------------------------------------------------------ */

#define MW_WATCHDOG_VERB "--stand-by"

int mw_watchdog_main(int argc, char **argv);

#endif

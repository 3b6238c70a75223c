/* SPDX-License-Identifier: MIT */
/* orphans.h: tracees of ours that nobody has announced, as who made them was killed before it could. */
#ifndef MW_TRACEE_ORPHANS_H
#define MW_TRACEE_ORPHANS_H

#include <memwatch/error.h>
#include <stdbool.h>
#include <sys/types.h>

/* Who looks for them, and what is done with those that are found. `context` is given to both. */
struct mw_orphans {
	/* Is the process one that the caller knows of? */
	bool (*known)(void *context, pid_t pid);
	/* It stands; the caller lets it go. */
	void (*stopped)(void *context, pid_t pid);
	void *context;
};

/* Another who traces by the calling thread as well: what it knows of is no orphan. */
struct mw_orphans_others {
	bool (*known)(void *context, pid_t pid);
	void *context;
	struct mw_orphans_others *next; /* orphans.c's */
};

/* From now on, and no more. It is the caller's, and stays where it is meanwhile. */
void mw_orphans_spare(struct mw_orphans_others *others);
void mw_orphans_spare_no_more(const struct mw_orphans_others *others);

/* Is there news of a tracee (WSTOPPED, WEXITED) that nobody has heard? It stays to be heard. */
bool mw_orphans_unheard(pid_t tid, int what);
/* Find all processes that are orphans of the calling thread, and wait for the first stop of each. Best effort: one that
 * doesn't come to it within five seconds is left. */
void mw_orphans_find(const struct mw_orphans *orphans);

#endif

/* SPDX-License-Identifier: MIT */
/* quiesce_list.h: what the parts of quiesce share: its list of threads, and those that are not in it yet. */
#ifndef MW_TRACEE_QUIESCE_LIST_H
#define MW_TRACEE_QUIESCE_LIST_H

#include "tracee/quiesce.h"

/* The thread with this id, or NULL. Pointers hold until the next addition or removal. */
struct mw_quiet_thread *mw_quiesce_find(const struct mw_quiesce *quiesce, pid_t tid);
/* The first with a greater id, or NULL: to go through a list that changes meanwhile. */
struct mw_quiet_thread *mw_quiesce_after(const struct mw_quiesce *quiesce, pid_t tid);
/* Add one, or find it where it is there. Errors: MEMORY. */
struct mw_error *mw_quiesce_add(struct mw_quiesce *quiesce, pid_t tid, struct mw_quiet_thread **out) MW_MUST_CHECK;
void mw_quiesce_remove(struct mw_quiesce *quiesce, pid_t tid);

/*
 * Seize all threads that there are; *fresh says whether there was any that had not been. A list of threads that come
 * and go may lack some: only one that is read while all known ones stand and that has nothing new is to be believed.
 * Errors: as mw_quiesce_begin.
 */
struct mw_error *mw_quiesce_seize(struct mw_quiesce *quiesce, bool *fresh) MW_MUST_CHECK;
/* Seize the processes that thread `tid` has made by vfork and that still live in its memory. Best effort. */
void mw_quiesce_adopt(struct mw_quiesce *quiesce, pid_t tid);
/* Is thread `tid` the maker of a process in its memory that stands? Then it waits for that one. */
bool mw_quiesce_awaits_child(const struct mw_quiesce *quiesce, pid_t tid);
/* Does one of the processes that thread `tid` has made by vfork and that live in its memory run, or want to? */
bool mw_quiesce_child_runs(const struct mw_quiesce *quiesce, pid_t tid);
/* List the threads that are traced, but whose maker was killed before it could tell of them. Errors: MEMORY. */
struct mw_error *mw_quiesce_list_orphans(struct mw_quiesce *quiesce) MW_MUST_CHECK;
/* Let forked children go whose maker was killed before it could tell of them. Best effort. */
void mw_quiesce_free_orphans(struct mw_quiesce *quiesce);

/* quiesce_stop.c */
/* Hear of what has happened to those that run, and act on it. Errors: MEMORY, SYSTEM, those of `forked`. */
struct mw_error *mw_quiesce_listen(struct mw_quiesce *quiesce, bool *heard) MW_MUST_CHECK;
/* Detach from a stopped thread, and take it off the list. One that was killed stays until its end is heard of. */
struct mw_error *mw_quiesce_let_go(struct mw_quiesce *quiesce, struct mw_quiet_thread *thread) MW_MUST_CHECK;
/* Resume a stopped thread; where it is in a group stop, leave it there. */
struct mw_error *mw_quiesce_go_on(struct mw_quiet_thread *thread) MW_MUST_CHECK;

#endif

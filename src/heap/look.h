/* SPDX-License-Identifier: MIT */
/*
 * look.h: one look at the whole heap of a process: what is there, who holds it, what is lost.
 *
 *      mw_look_take      the process is paused, and a snapshot of it is there
 *      mw_look_examine   blocks are found, and followed from the roots: what takes long, while the process runs
 *      mw_look_report    all of it
 *      mw_look_reach …   or a question
 *      mw_look_release   nothing is left in the process
 */
#ifndef MW_HEAP_LOOK_H
#define MW_HEAP_LOOK_H

#include "heap/survey.h"

#include <memwatch/error.h>
#include <memwatch/heap.h>

#include <sys/types.h>

struct mw_look_options {
	uint64_t tag_bits; /* as mw_reach_options has it, and so the next two */
	bool holders;
	size_t show;                       /* so many samples of a group are shown with what is in them */
	const struct mw_reach_hole *holes; /* copied */
	size_t hole_count;
	bool no_fork; /* read the running process */
	bool blocks_only; /* no pointers are followed: blocks are found, and the account is made, but what is lost is not known */
	void (*progress)(void *context, const char *phase, double share); /* share < 0: not known. NULL: none */
	void *context;
	const volatile sig_atomic_t *interrupted; /* as mw_reach_options has it */
};

struct mw_look;

/* For all of it: the calling thread is the one that traces. Errors: those of mw_heap_snapshot_take(). */
struct mw_error *mw_look_take(pid_t pid, const struct mw_look_options *options, struct mw_look **out) MW_MUST_CHECK;
/* Show what it does from now on by this; NULL: not. */
void mw_look_show(struct mw_look *look, void (*progress)(void *context, const char *phase, double share),
		  void *context);
/* Errors: MEMORY; the heap has more blocks than can be counted (UNSUPPORTED). */
struct mw_error *mw_look_examine(struct mw_look *look) MW_MUST_CHECK;
/* Once it is examined. `by`: enum mw_heap_by; 0: class and size. For the first `named` groups of a verdict a holder is
 * looked for, and what is in their samples. The caller owns it. Errors: MEMORY, those of mw_heap_snapshot_release(). */
struct mw_error *mw_look_report(struct mw_look *look, unsigned by, size_t named,
				struct mw_heap_report **out) MW_MUST_CHECK;
/* What has been found of the block that the program was given at `addr`; false: there is none, or it can't be known. */
bool mw_look_reach(const struct mw_look *look, mw_addr addr, enum mw_reach *out);
/* How that one is held, root first: *holder and its texts are malloc'ed; none: nothing holds it. Errors: MEMORY. */
struct mw_error *mw_look_holder(struct mw_look *look, mw_addr addr, char ***holder, size_t *count) MW_MUST_CHECK;
/* What a survey takes of it, once it is examined; good until release. */
struct mw_survey_input mw_look_survey(const struct mw_look *look);
/* Frees also on failure; NULL is fine. Errors: what could not be taken back. */
struct mw_error *mw_look_release(struct mw_look *look) MW_MUST_CHECK;

#endif

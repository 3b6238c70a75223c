/* SPDX-License-Identifier: MIT */
/* look.h: one look at the whole heap of a process: what is there, who holds it, what is lost. */
#ifndef MW_HEAP_LOOK_H
#define MW_HEAP_LOOK_H

#include "heap/survey.h"

#include <memwatch/error.h>
#include <memwatch/heap.h>

#include <sys/types.h>

struct mw_look_options {
	unsigned by;       /* enum mw_heap_by; 0: class and size */
	uint64_t tag_bits; /* as mw_reach_options has it */
	bool no_fork;      /* read the running process */
	bool holders;      /* who retains how much */
	size_t named;      /* for so many groups, the first ones of the report, a holder path is found */
	void (*progress)(void *context, const char *phase, double share); /* share < 0: not known. NULL: none */
	void *context;
};

/* Errors: those of mw_heap_snapshot_take(). The process is as it was, and nothing is left in it, also on failure; where that
 * could not be had, the error says so. */
struct mw_error *mw_look(pid_t pid, const struct mw_look_options *options, struct mw_heap_report **out) MW_MUST_CHECK;

#endif

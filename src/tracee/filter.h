/* SPDX-License-Identifier: MIT */
/*
 * filter.h: what a seccomp filter says to a system call, found by going through its program (classic BPF over struct
 * seccomp_data) instead of making the call.
 *
 * What is not known of the call, its instruction pointer always, is taken to be anything: the answer is the set of all
 * that the filter may say then, perhaps more, never less. Where all that matters is known it is exact. A program is
 * gone through once from its beginning to its end, as it can jump only forwards: the time is bounded by its length.
 * Nothing is assumed of it; what the kernel would not have accepted is taken to kill.
 */
#ifndef MW_TRACEE_FILTER_H
#define MW_TRACEE_FILTER_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#define MW_FILTER_MAX 4096u /* instructions of one program: BPF_MAXINSNS */

/* What becomes of a call, the worst first: of several filters' answers the kernel takes the first in this order. */
enum mw_filter_action {
	MW_FILTER_KILL_PROCESS = 1u << 0, /* also what the kernel does at an answer that it doesn't know */
	MW_FILTER_KILL_THREAD = 1u << 1,
	MW_FILTER_TRAP = 1u << 2, /* SIGSYS */
	MW_FILTER_ERRNO = 1u << 3,
	MW_FILTER_NOTIFY = 1u << 4, /* another process is asked, and may never answer */
	MW_FILTER_TRACE = 1u << 5,  /* as ERRNO, with ENOSYS, as no tracer of ours asks to be notified */
	MW_FILTER_LOG = 1u << 6,
	MW_FILTER_ALLOW = 1u << 7,
};

/* The call is made. */
#define MW_FILTER_PASSES ((unsigned)(MW_FILTER_LOG | MW_FILTER_ALLOW))
/* It is made, or fails. */
#define MW_FILTER_HARMLESS (MW_FILTER_PASSES | (unsigned)(MW_FILTER_ERRNO | MW_FILTER_TRACE))

struct mw_filter_call {
	long number;
	uint64_t arguments[6];
	uint8_t known; /* bit i: argument i is that */
};

/* All that the program may say, a set of enum mw_filter_action; never empty. Also where memory runs out: then it may
 * say anything. */
unsigned mw_filter_actions(const struct sock_filter *code, size_t count, const struct mw_filter_call *call);
/* … that two sets of filters may say together. */
unsigned mw_filter_both(unsigned first, unsigned second);

#endif

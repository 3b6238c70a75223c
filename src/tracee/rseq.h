/* SPDX-License-Identifier: MIT */
/* rseq.h: restartable sequences (rseq(2)) of a thread whose registers are put aside. */
#ifndef MW_TRACEE_RSEQ_H
#define MW_TRACEE_RSEQ_H

#include "tracee/tracee.h"

/*
 * A thread that is stopped inside a restartable sequence is to begin it anew: the kernel sees to that when it goes on,
 * unless it finds it elsewhere then, as one that performs a system call for us. So `regs`, which are to be put back
 * later, are led to the sequence's abort handler here. Nothing else is changed; before Linux 5.13 nothing at all.
 */
void mw_rseq_abort(pid_t tid, struct mw_tracee_regs *regs);

#endif

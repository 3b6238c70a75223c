/* SPDX-License-Identifier: MIT */
/* syscall.h: a system call made by a target's thread on our behalf. */
#ifndef MW_TARGET_SYSCALL_H
#define MW_TARGET_SYSCALL_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

/*
 * Make thread `tid` perform a system call with the system call instruction at `insn` (of its own code). The thread must
 * be in a ptrace stop that is no group stop; afterwards it is in the stop of an interrupt, with the registers and the
 * signal mask that it had, a system call that it was in still to be restarted. *result is what the kernel returned
 * (negative errno on failure). Not for a thread under seccomp, whose filter may kill it for the call. Errors: GONE,
 * SYSTEM.
 */
struct mw_error *mw_remote_syscall(pid_t tid, mw_addr insn, long number, const uint64_t arguments[6],
				   int64_t *result) MW_MUST_CHECK;

#endif

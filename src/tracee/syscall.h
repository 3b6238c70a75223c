/* SPDX-License-Identifier: MIT */
/* syscall.h: a system call made by a target's thread on our behalf. */
#ifndef MW_TRACEE_SYSCALL_H
#define MW_TRACEE_SYSCALL_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_room;
struct mw_way_code;

/*
 * Make thread `tid` perform a system call with the system call instruction `code->insn` (of its own). The thread must
 * be in a ptrace stop that is no group stop; afterwards it is in the stop of an interrupt, with the registers and the
 * signal mask that it had, a system call that it was in still to be restarted. *result is what the kernel returned
 * (negative errno on failure). With `code` that leads back and `room` for a frame the thread gets back to its own work
 * by itself should memwatch be killed meanwhile (sigframe.h). Not for a thread under seccomp, whose filter may kill it
 * for the call. Errors: GONE, SYSTEM.
 */
struct mw_error *mw_remote_syscall(pid_t tid, const struct mw_way_code *code, const struct mw_room *room, long number,
				   const uint64_t arguments[6], int64_t *result) MW_MUST_CHECK;

/*
 * A memwatch that was killed may have left a thread amid such a call. Let it perform that and return to its own work;
 * it executes nothing of that. The thread must be in the stop of an interrupt (or a group stop), and is in one
 * afterwards. Nothing is done where it is not amid a call. Errors: GONE, SYSTEM.
 */
struct mw_error *mw_remote_syscall_finish(pid_t tid) MW_MUST_CHECK;

#endif

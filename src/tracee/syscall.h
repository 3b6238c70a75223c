/* SPDX-License-Identifier: MIT */
/* syscall.h: system calls made by a target's thread on our behalf (inject.h), and what a killed memwatch leaves of one. */
#ifndef MW_TRACEE_SYSCALL_H
#define MW_TRACEE_SYSCALL_H

#include "tracee/inject.h"
#include "tracee/tracee.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_SIGFRAME_MAX   16384u
#define MW_SIGFRAME_FIRST 16u  /* bytes of what is popped */
#define MW_SCRATCH_MAX    160u /* bytes */
#define MW_SCRATCH_SIZE   192u /* … with the mark */
#define MW_ROOM_MAX       (MW_SIGFRAME_FIRST + MW_SIGFRAME_MAX + 64u + MW_SCRATCH_SIZE)

/*
 * A memwatch that was killed may have left a thread amid such a call. Let it perform that and return to its own work;
 * it executes nothing of that. The thread must be in the stop of an interrupt (or a group stop), and is in one
 * afterwards. Nothing is done where it is not amid a call. Errors: GONE, SYSTEM.
 */
struct mw_error *mw_remote_syscall_finish(pid_t tid) MW_MUST_CHECK;

/* How large a room the frame and the scratch of a thread in a ptrace stop take, as it is now; 0: it can't be known. */
size_t mw_sigframe_room(pid_t tid);
/* Are these the registers of a thread that performs a call, or returns from one by its frame? */
bool mw_sigframe_is_at(pid_t tid, const struct mw_regs *regs);
/* The first frame or scratch that a killed memwatch has left from `from` on, where nothing but zeros lies in between.
 */
bool mw_sigframe_find_remains(pid_t tid, mw_addr from, mw_addr limit, mw_addr *start, size_t *size);

/* Bytes for a call to read or write, in a thread's room. */
struct mw_scratch {
	mw_addr at; /* of the bytes */
	uint8_t before[MW_SCRATCH_SIZE];
};

/* Put up to MW_SCRATCH_MAX bytes there. Errors: DATA, GONE. */
struct mw_error *mw_scratch_put(pid_t tid, const struct mw_room *room, const void *bytes, size_t size,
				struct mw_scratch *out) MW_MUST_CHECK;

#endif

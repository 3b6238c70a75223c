/* SPDX-License-Identifier: MIT */
/* remote.h: reading and writing a target's memory. */
#ifndef MW_TRACEE_REMOTE_H
#define MW_TRACEE_REMOTE_H

#include "proc/peek.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

/* Read as much of a target's memory as there is (proc/peek.h). */
static inline size_t mw_remote_read(pid_t tid, mw_addr addr, void *out, size_t size)
{
	return mw_peek_some(tid, addr, out, size);
}

/* All or nothing. Errors: DATA where any byte can't be read. */
struct mw_error *mw_remote_read_all(pid_t tid, mw_addr addr, void *out, size_t size) MW_MUST_CHECK;

/* Write into memory that the target itself may write; nothing need be stopped. All or an error: DATA where any byte
 * can't be written, GONE. */
struct mw_error *mw_remote_write(pid_t tid, mw_addr addr, const void *bytes, size_t size) MW_MUST_CHECK;

/*
 * Write bytes, into read-only memory as well (what a debugger may). `tid` is in a ptrace stop as a rule; where it is
 * not, /proc/TID/mem is tried, which some kernels forbid. All in one go where the kernel allows it, else word by word;
 * a concurrent reader of a byte that does not change never sees another value.
 */
struct mw_error *mw_remote_poke(pid_t tid, mw_addr addr, const void *bytes, size_t size) MW_MUST_CHECK;

#endif

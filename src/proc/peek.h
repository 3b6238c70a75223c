/* SPDX-License-Identifier: MIT */
/* peek.h: reading a process's memory, attached to or not. */
#ifndef MW_PROC_PEEK_H
#define MW_PROC_PEEK_H

#include <memwatch/types.h>

#include <sys/types.h>

/*
 * Copy up to `size` bytes at `addr` of the process that `tid` belongs to, running or stopped. Returns how many were
 * copied from the start: fewer where memory ends, 0 where nothing can be read. errno says why they are fewer.
 */
size_t mw_peek_some(pid_t tid, mw_addr addr, void *out, size_t size);

/* All of it, else false (errno says why). */
bool mw_peek(pid_t tid, mw_addr addr, void *out, size_t size);

#endif

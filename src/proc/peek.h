/* SPDX-License-Identifier: MIT */
/* peek.h: a look at a process's memory before anything is attached to it. */
#ifndef MW_PROC_PEEK_H
#define MW_PROC_PEEK_H

#include <memwatch/types.h>

#include <sys/types.h>

/* Copy memory of a process, running or stopped. False where not all of it could be read (errno says why). */
bool mw_peek(pid_t tid, mw_addr addr, void *out, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * touched.h: reading a process's anonymous memory without making it larger.
 *
 * Reading a page that the process has never touched gives it one: a shared page of zeros, which then looks resident.
 * So pages that are neither in memory nor swapped out are not read: they are zeros.
 */
#ifndef MW_PROC_TOUCHED_H
#define MW_PROC_TOUCHED_H

#include <memwatch/types.h>

#include <sys/types.h>

struct mw_touched {
	pid_t tid;
	int pagemap; /* -1: can't be read; then all pages are */
};

/* Begin to read the process that `tid` belongs to; mw_touched_deinit ends it. */
void mw_touched_init(struct mw_touched *touched, pid_t tid);
void mw_touched_deinit(struct mw_touched *touched);
/* As mw_peek_some(), of anonymous memory that is mapped: what is not mapped reads as zeros. */
size_t mw_touched_read(const struct mw_touched *touched, mw_addr addr, void *out, size_t size);
/* The same by itself, where a process is read only once. */
size_t mw_touched_peek(pid_t tid, mw_addr addr, void *out, size_t size);

#endif

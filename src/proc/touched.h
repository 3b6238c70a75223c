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

/*
 * Narrow [*low, *high), a mapping around `addr`, to what no guard page cuts off from it. Guard pages
 * (MADV_GUARD_INSTALL, Linux 6.13) can't be accessed and are no mappings of their own: since glibc 2.42 the stacks of
 * threads, each with its guard, may be one mapping. At most 64 MiB to each side are looked through: *low is not further
 * away then. True: right below *low there is a guard page. Before Linux 6.15 they can't be known: then nothing changes.
 */
bool mw_touched_clip(pid_t tid, mw_addr addr, mw_addr *low, mw_addr *high);

#endif

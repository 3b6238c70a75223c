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

/*
 * A process may provide pages of its memory itself (userfaultfd(2)), by a thread that is stopped while memwatch
 * looks. So while one is held that may, nobody's memory is waited for: what is not there yet can't be read.
 */

/* All of it, else false (errno says why). */
static inline bool mw_peek(pid_t tid, mw_addr addr, void *out, size_t size)
{
	return mw_peek_some(tid, addr, out, size) == size;
}

/* Is there no memory at `addr`, for certain? Not where the process has ended, may not be read, or may provide it yet.
 */
bool mw_peek_ends(pid_t tid, mw_addr addr);

/*
 * Keep the way into a process's memory open (/proc/PID/mem): the right to it is asked for when it is opened. A process
 * that memwatch has changed may take that right away (setuid, PR_SET_DUMPABLE), and must be put right all the same.
 * From then on reads of it that are denied go that way. Each holder lets go once. For any thread; without a right, a
 * descriptor or memory for it nothing is kept. Each time that one is held it is looked at whether it may provide pages.
 */
void mw_peek_hold(pid_t pid);
/* Look again, of one that is held: but only as often as takes a hundredth of the time that goes by. */
void mw_peek_look(pid_t pid);
/* Open it anew, for one that is held: its memory may be another program's by now. Where that fails the old one stays.
 */
void mw_peek_reopen(pid_t pid);
void mw_peek_let_go(pid_t pid);

/* May the process provide pages itself: does it hold a userfaultfd? False where its descriptors can't be listed. */
bool mw_peek_may_provide(pid_t pid);

/* Is a process held that may provide pages itself? */
bool mw_peek_is_careful(void);

/* Write bytes, into read-only memory as well, by the way that was kept for the process of `tid`. False where none was,
 * or where it failed. */
bool mw_peek_kept_write(pid_t tid, mw_addr addr, const void *bytes, size_t size);

/*
 * Reading a process's anonymous memory without making it larger.
 *
 * Reading a page that the process has never touched gives it one: a shared page of zeros, which then looks resident.
 * So pages that are neither in memory nor swapped out are not read: they are zeros.
 */
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
static inline size_t mw_touched_peek(pid_t tid, mw_addr addr, void *out, size_t size)
{
	struct mw_touched touched;
	size_t got;

	mw_touched_init(&touched, tid);
	got = mw_touched_read(&touched, addr, out, size);
	mw_touched_deinit(&touched);
	return got;
}

/*
 * Narrow [*low, *high), a mapping around `addr`, to what no guard page cuts off from it. Guard pages
 * (MADV_GUARD_INSTALL, Linux 6.13) can't be accessed and are no mappings of their own: since glibc 2.42 the stacks of
 * threads, each with its guard, may be one mapping. At most 64 MiB to each side are looked through: *low is not further
 * away then. True: right below *low there is a guard page. Before Linux 6.15 they can't be known: then nothing changes.
 */
bool mw_touched_clip(pid_t tid, mw_addr addr, mw_addr *low, mw_addr *high);

#endif

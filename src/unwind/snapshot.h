/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h: a copy of the top of one thread's stack, made in one system call, that an unwinder
 * reads from instead of the live process.
 */
#ifndef MW_UNWIND_SNAPSHOT_H
#define MW_UNWIND_SNAPSHOT_H

#include <memwatch/unwind.h>

#include <sys/types.h>

#define MW_SNAPSHOT_CAPACITY  (64u * 1024)
#define MW_SNAPSHOT_OVERRIDES 64

/* A word of the stack that holds something of ours in place of the true value. */
struct mw_snapshot_override {
	mw_addr addr;
	uint64_t shown; /* what memory holds */
	uint64_t value; /* what is to be seen */
};

struct mw_snapshot {
	pid_t tid;
	mw_addr base;
	size_t size;
	mw_addr highest; /* end of the highest word asked for */
	struct mw_snapshot_override overrides[MW_SNAPSHOT_OVERRIDES];
	size_t override_count;
	unsigned char bytes[MW_SNAPSHOT_CAPACITY];
};

/* Copy `size` bytes (fewer where memory ends, at most the capacity) from `base` up. The thread is stopped. */
void mw_snapshot_take(struct mw_snapshot *snapshot, pid_t tid, mw_addr base, size_t size);
/* See `value` in place of `shown` at `addr`. Ignored where there are too many. */
void mw_snapshot_override(struct mw_snapshot *snapshot, mw_addr addr, uint64_t shown, uint64_t value);
/* Reads from the copy, lengthens it where a read lies just beyond it, else reads the live process. */
struct mw_memory_view mw_snapshot_view(struct mw_snapshot *snapshot);

#endif

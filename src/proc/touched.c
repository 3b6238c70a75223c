// SPDX-License-Identifier: MIT
/* touched.c: reading what of anonymous memory was touched (touched.h). */
#include "proc/touched.h"

#include "proc/peek.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE    4096u
#define TOUCHED (UINT64_C(3) << 62) /* in memory, or swapped out */
#define AT_ONCE 64u                 /* pages */
#define GUARD   (UINT64_C(1) << 58)
#define ENTRIES 512u                          /* of pagemap, at a time */
#define CLIPPED ((UINT64_C(64) << 20) / PAGE) /* pages to each side that are looked through for guards */

void mw_touched_init(struct mw_touched *touched, pid_t tid)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)tid);
	touched->tid = tid;
	/* Where pages are larger than ours, addresses would be taken for others. */
	touched->pagemap = sysconf(_SC_PAGESIZE) == PAGE ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

void mw_touched_deinit(struct mw_touched *touched)
{
	if (touched->pagemap >= 0)
		close(touched->pagemap);
	touched->pagemap = -1;
}

/* The part of `size` bytes at `addr` that is of as many pages as are looked up at once. */
static size_t part_of(mw_addr addr, size_t size)
{
	size_t part = AT_ONCE * PAGE - (size_t)(addr % PAGE);

	return size < part ? size : part;
}

/* Bytes from `addr` on, at most `size`, in pages that are all touched or all not. */
static size_t run_of(const uint64_t *entries, size_t first, mw_addr addr, size_t size)
{
	bool touched = entries[first] & TOUCHED;
	size_t run = PAGE - (size_t)(addr % PAGE);

	for (size_t i = first + 1; run < size && (bool)(entries[i] & TOUCHED) == touched; i++)
		run += PAGE;
	return run < size ? run : size;
}

/* A part; returns how many bytes were had of it. */
static size_t read_part(const struct mw_touched *touched, mw_addr addr, char *out, size_t size)
{
	uint64_t entries[AT_ONCE];
	size_t pages = (size_t)(addr % PAGE + size + PAGE - 1) / PAGE, done = 0, page = 0;
	size_t wanted = pages * sizeof(entries[0]);

	if (pread(touched->pagemap, entries, wanted, (off_t)(addr / PAGE * sizeof(entries[0]))) != (ssize_t)wanted)
		return mw_peek_some(touched->tid, addr, out, size);
	while (done < size) {
		size_t run = run_of(entries, page, addr + done, size - done);

		if (!(entries[page] & TOUCHED)) {
			memset(out + done, 0, run);
		} else {
			size_t got = mw_peek_some(touched->tid, addr + done, out + done, run);

			if (got < run)
				return done + got;
		}
		page += (size_t)((addr + done) % PAGE + run) / PAGE;
		done += run;
	}
	return done;
}

size_t mw_touched_read(const struct mw_touched *touched, mw_addr addr, void *out, size_t size)
{
	size_t done = 0;

	if (touched->pagemap < 0 || addr + size < addr)
		return mw_peek_some(touched->tid, addr, out, size);
	while (done < size) {
		size_t part = part_of(addr + done, size - done);
		size_t got = read_part(touched, addr + done, (char *)out + done, part);

		done += got;
		if (got < part)
			break;
	}
	return done;
}

size_t mw_touched_peek(pid_t tid, mw_addr addr, void *out, size_t size)
{
	struct mw_touched touched;
	size_t got;

	mw_touched_init(&touched, tid);
	got = mw_touched_read(&touched, addr, out, size);
	mw_touched_deinit(&touched);
	return got;
}

/* The first guard page in [page, end); `end`: there is none. */
static uint64_t guard_above(const struct mw_touched *touched, uint64_t page, uint64_t end)
{
	uint64_t entries[ENTRIES], last = end - page < CLIPPED ? end : page + CLIPPED;

	while (page < last) {
		size_t wanted = last - page < ENTRIES ? (size_t)(last - page) : ENTRIES;
		ssize_t got = pread(touched->pagemap, entries, wanted * sizeof(entries[0]),
				    (off_t)(page * sizeof(entries[0])));

		if (got < (ssize_t)sizeof(entries[0]))
			break;
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++, page++)
			if (entries[i] & GUARD)
				return page;
	}
	return end;
}

/* The page behind the last guard page in [start, page), or the first that was looked at: *found says which. */
static uint64_t guard_below(const struct mw_touched *touched, uint64_t start, uint64_t page, bool *found)
{
	uint64_t entries[ENTRIES], last = page - start < CLIPPED ? start : page - CLIPPED;

	*found = false;
	while (page > last) {
		size_t wanted = page - last < ENTRIES ? (size_t)(page - last) : ENTRIES;
		size_t size = wanted * sizeof(entries[0]);

		if (pread(touched->pagemap, entries, size, (off_t)((page - wanted) * sizeof(entries[0]))) !=
		    (ssize_t)size)
			return start;
		for (size_t i = wanted; i > 0; i--, page--) {
			*found = entries[i - 1] & GUARD;
			if (*found)
				return page;
		}
	}
	return last;
}

bool mw_touched_clip(pid_t tid, mw_addr addr, mw_addr *low, mw_addr *high)
{
	struct mw_touched touched;
	mw_addr below, above;
	bool found = false;

	mw_touched_init(&touched, tid);
	if (touched.pagemap >= 0 && addr >= *low && addr < *high) {
		below = guard_below(&touched, *low / PAGE, addr / PAGE, &found) * PAGE;
		above = guard_above(&touched, addr / PAGE, *high / PAGE) * PAGE;
		*low = below;
		*high = above;
	}
	mw_touched_deinit(&touched);
	return found;
}

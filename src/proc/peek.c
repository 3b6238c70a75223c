// SPDX-License-Identifier: MIT
/* peek.c: a process's memory through process_vm_readv, or through a file that was opened in time (peek.h). */
#include "proc/peek.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "proc/status.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE       4096u
#define MAX_PIECES 32
#define LOOK_SHARE 100 /* of the time may be spent on looking */

/* One of its threads may then be what others wait for that touch a page which is not there yet; and while that thread is
 * stopped, whoever reads the page by process_vm_readv() waits for ever. */
bool mw_peek_may_provide(pid_t pid)
{
	DIR *directory = opendir(mw_path("/proc/%d/fd", (int)pid).text);
	struct dirent *entry;
	char target[64];
	bool held = false;

	while (directory && !held && (entry = readdir(directory))) {
		ssize_t got = isdigit((unsigned char)*entry->d_name)
				      ? readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1)
				      : 0;

		target[got > 0 ? got : 0] = '\0';
		held = strcmp(target, "anon_inode:[userfaultfd]") == 0;
	}
	if (directory)
		closedir(directory);
	return held;
}

/* Processes whose memory is kept open. The lock is held for as long as a descriptor is used. */
static struct {
	pthread_mutex_t lock;
	struct kept {
		pid_t pid;
		int fd; /* -1: it could not be opened */
		size_t holders;
		bool careful;
		uint64_t next_look_ns;
	} * items;
	size_t count;
	atomic_uint careful; /* of them */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct kept *find_kept(pid_t pid)
{
	for (size_t i = 0; i < kept.count; i++)
		if (kept.items[i].pid == pid)
			return &kept.items[i];
	return NULL;
}

static int open_memory(pid_t pid)
{
	return open(mw_path("/proc/%d/mem", (int)pid).text, O_RDWR | O_CLOEXEC);
}

static struct kept *add_kept(pid_t pid)
{
	struct kept *items = realloc(kept.items, (kept.count + 1) * sizeof(*items));

	if (!items)
		return NULL;
	kept.items = items;
	items[kept.count] = (struct kept){.pid = pid, .fd = -1};
	return &items[kept.count++];
}

static void replace(struct kept *item)
{
	int fd = open_memory(item->pid);

	if (fd < 0)
		return;
	if (item->fd >= 0)
		close(item->fd);
	item->fd = fd;
}

static void set_careful(struct kept *item, bool careful)
{
	if (careful && !item->careful)
		atomic_fetch_add(&kept.careful, 1);
	if (!careful && item->careful)
		atomic_fetch_sub(&kept.careful, 1);
	item->careful = careful;
}

static void look(struct kept *item)
{
	uint64_t begin = mw_clock_ns(), end;

	set_careful(item, mw_peek_may_provide(item->pid));
	end = mw_clock_ns();
	item->next_look_ns = end + LOOK_SHARE * (end - begin);
}

bool mw_peek_is_careful(void)
{
	return atomic_load(&kept.careful) > 0;
}

void mw_peek_look(pid_t pid)
{
	struct kept *item;

	pthread_mutex_lock(&kept.lock);
	item = find_kept(pid);
	if (item && mw_clock_ns() >= item->next_look_ns)
		look(item);
	pthread_mutex_unlock(&kept.lock);
}

/* Open its file anew, for one holder more where `holds`; nothing for one that nobody holds. */
static void renew(pid_t pid, bool holds)
{
	struct kept *item;

	pthread_mutex_lock(&kept.lock);
	item = find_kept(pid);
	if (!item && holds)
		item = add_kept(pid);
	if (item) {
		item->holders += holds;
		replace(item);
		look(item);
	}
	pthread_mutex_unlock(&kept.lock);
}

void mw_peek_hold(pid_t pid)
{
	renew(pid, true);
}

void mw_peek_reopen(pid_t pid)
{
	renew(pid, false);
}

void mw_peek_let_go(pid_t pid)
{
	struct kept *item;

	pthread_mutex_lock(&kept.lock);
	item = find_kept(pid);
	if (item && --item->holders == 0) {
		if (item->fd >= 0)
			close(item->fd);
		set_careful(item, false);
		*item = kept.items[--kept.count];
	}
	if (kept.count == 0) {
		free(kept.items);
		kept.items = NULL;
	}
	pthread_mutex_unlock(&kept.lock);
}

/* The process of a thread, which anybody may ask for. */
static pid_t process_of(pid_t tid)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(tid, &status)) ? status.tgid : tid;
}

/* As much as there is; `*there` where there is any memory. */
static size_t read_file(int fd, mw_addr addr, char *out, size_t size, bool *there)
{
	size_t done = 0;
	ssize_t got = 1;

	while (got > 0 && done < size) {
		got = pread(fd, out + done, size - done, (off_t)(addr + done));
		if (got > 0)
			done += (size_t)got;
	}
	*there = got != 0;
	return done;
}

/* As much as there is, by the way that was kept; `*there` where there is any memory, and that way. */
static size_t read_kept(pid_t tid, mw_addr addr, char *out, size_t size, bool *there)
{
	pid_t pid = process_of(tid);
	const struct kept *item;
	size_t done = 0;

	*there = false;
	pthread_mutex_lock(&kept.lock);
	item = find_kept(pid);
	if (item && item->fd >= 0)
		done = read_file(item->fd, addr, out, size, there);
	pthread_mutex_unlock(&kept.lock);
	return done;
}

bool mw_peek_kept_write(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	pid_t pid = process_of(tid);
	const struct kept *item;
	bool done;

	pthread_mutex_lock(&kept.lock);
	item = find_kept(pid);
	done = item && item->fd >= 0 && pwrite(item->fd, bytes, size, (off_t)addr) == (ssize_t)size;
	pthread_mutex_unlock(&kept.lock);
	return done;
}

/* As much as there is, and what is not there is not waited for: so the kernel reads by that file. */
static size_t read_careful(pid_t tid, mw_addr addr, char *out, size_t size)
{
	MW_CLOSE int fd = open_memory(tid);
	bool there = false;
	size_t done;

	if (fd < 0 && errno != ENOENT)
		return read_kept(tid, addr, out, size, &there);
	done = fd >= 0 ? read_file(fd, addr, out, size, &there) : 0;
	if (done < size)
		errno = there ? EFAULT : ESRCH;
	return done;
}

/* One iovec a page: the kernel promises partial transfers only at their borders. */
static size_t split_pages(mw_addr addr, size_t size, struct iovec *pieces)
{
	size_t count = 0;

	while (size > 0 && count < MAX_PIECES) {
		size_t length = PAGE - (size_t)(addr % PAGE);

		if (length > size)
			length = size;
		/* The kernel takes the address as a pointer; it is never followed here. */
		pieces[count].iov_base = (void *)(uintptr_t)addr;
		pieces[count].iov_len = length;
		count++;
		addr += length;
		size -= length;
	}
	return count;
}

size_t mw_peek_some(pid_t tid, mw_addr addr, void *out, size_t size)
{
	size_t done = 0;
	bool known;

	if (addr + size < addr) {
		errno = EFAULT;
		return 0;
	}
	if (mw_peek_is_careful())
		return read_careful(tid, addr, out, size);
	while (done < size) {
		struct iovec there[MAX_PIECES];
		size_t pieces = split_pages(addr + done, size - done, there);
		struct iovec here = {(char *)out + done, size - done};
		ssize_t got = process_vm_readv(tid, &here, 1, there, pieces, 0);

		if (got > 0)
			done += (size_t)got;
		if (got < 0 || done == size)
			break;
		if (got == 0 || pieces < MAX_PIECES) {
			errno = EFAULT;
			break;
		}
	}
	if (done < size && errno == EPERM) {
		done += read_kept(tid, addr + done, (char *)out + done, size - done, &known);
		errno = known ? EFAULT : EPERM;
	}
	return done;
}

bool mw_peek_ends(pid_t tid, mw_addr addr)
{
	char byte;

	return mw_peek_some(tid, addr, &byte, sizeof(byte)) == 0 && errno == EFAULT && !mw_peek_is_careful();
}

#define TOUCHED (UINT64_C(3) << 62) /* in memory, or swapped out */
#define AT_ONCE 64u                 /* pages */
#define GUARD   (UINT64_C(1) << 58)
#define ENTRIES 512u                          /* of pagemap, at a time */
#define CLIPPED ((UINT64_C(64) << 20) / PAGE) /* pages to each side that are looked through for guards */

void mw_touched_init(struct mw_touched *touched, pid_t tid)
{
	const struct mw_path path = mw_path("/proc/%d/pagemap", (int)tid);

	touched->tid = tid;
	/* Where pages are larger than ours, addresses would be taken for others. */
	touched->pagemap = sysconf(_SC_PAGESIZE) == PAGE ? open(path.text, O_RDONLY | O_CLOEXEC) : -1;
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

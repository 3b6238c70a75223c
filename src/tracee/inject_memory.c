// SPDX-License-Identifier: MIT
/* inject_memory.c: memory that is given to a target, its own or shared with memwatch, and its limits (inject.h). */
#include "tracee/inject.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/file.h"
#include "proc/status.h"
#include "tracee/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB         (UINT64_C(1) << 20)
#define PAGE        4096u
#define LEAST       (UINT64_C(1) << 20)
#define MOST        (UINT64_C(1) << 47) /* nothing is mapped above without asking for it */
#define HEAP_ROOM   (UINT64_C(1) << 30)
#define STACK_ROOM  (UINT64_C(128) << 20)
#define STACK_LEAST (UINT64_C(16) << 20)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* The value of a line "Name:  123 kB" of /proc/TID/status in bytes; 0 where there is none. */
static uint64_t status_kib(pid_t tid, const char *name)
{
	MW_FREE char *text = NULL;
	const char *at;
	uint64_t value;

	mw_error_destroy(mw_proc_file_read(&text, NULL, "/proc/%d/status", (int)tid));
	at = text ? strstr(text, name) : NULL;
	value = at ? strtoull(at + strlen(name), NULL, 10) : 0;
	return value < UINT64_MAX / 1024 ? value * 1024 : 0;
}

/* Is `size` more beyond a limit? Says so in `out`. */
static bool beyond(pid_t tid, __rlimit_resource_t resource, const char *name, uint64_t used, uint64_t size, char *out,
		   size_t room)
{
	struct rlimit limit;

	if (prlimit(tid, resource, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return false;
	if (used <= limit.rlim_cur && size <= limit.rlim_cur - used)
		return false;
	(void)snprintf(out, room, "its limit %s is %" PRIu64 " MiB, of which it uses %" PRIu64, name,
		       (uint64_t)limit.rlim_cur / MIB, used / MIB);
	return true;
}

/* What it means; "" where that is not known. */
static const char *meaning(pid_t tid, int errnum, uint64_t size, char *limit, size_t room)
{
	switch (errnum) {
	case ENOMEM:
		if (beyond(tid, RLIMIT_AS, "RLIMIT_AS (ulimit -v)", status_kib(tid, "\nVmSize:"), size, limit, room) ||
		    beyond(tid, RLIMIT_DATA, "RLIMIT_DATA (ulimit -d)", status_kib(tid, "\nVmData:"), size, limit,
			   room))
			return limit;
		return "it may have as many mappings as vm.max_map_count allows, or the system no memory to promise "
		       "(vm.overcommit_memory)";
	case EMFILE:
		return "it has as many files open as RLIMIT_NOFILE (ulimit -n) allows";
	case ENFILE:
		return "the system has as many files open as fs.file-max allows";
	case EAGAIN:
		return "it locks its memory (mlockall), and RLIMIT_MEMLOCK (ulimit -l) forbids more";
	case EPERM:
	case EACCES:
		return "a security policy of the system forbids it to the process";
	case ENOSYS:
		return "the kernel, or what filters its system calls, has no such call";
	case EEXIST:
		return "the place is taken";
	default:
		return "";
	}
}

/* The error for a call that thread `tid` performed and that failed with `errnum`: SYSTEM, with the limit that it ran
 * into where that can be reported. `what` names the operation: "map memory into"; `size` in bytes is what it was about. */
static struct mw_error *call_failed(pid_t tid, int errnum, uint64_t size, const char *what)
{
	char limit[256];
	const char *why = meaning(tid, errnum, size, limit, sizeof(limit));
	struct mw_error *err = mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot %s thread %d (%" PRIu64 " KiB)%s%s",
					       what, (int)tid, size / 1024, *why ? ": " : "", why);

	if (errnum == EPERM || errnum == EACCES || errnum == ENOSYS)
		return mw_error_hint(err, MW_INJECT_UNSAFE_HINT);
	return mw_error_hint(err, MW_INJECT_TRAP_HINT);
}

struct mw_error *mw_inject_check_limit(pid_t tid, uint64_t size)
{
	uint64_t peak = status_kib(tid, "\nVmPeak:");
	char why[256];
	struct mw_error *err;

	if (!beyond(tid, RLIMIT_AS, "RLIMIT_AS (ulimit -v)", peak, size, why, sizeof(why)))
		return NULL;
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			      "the recorder needs %" PRIu64
			      " MiB of address space in process %d, which may be short of it: %s at times",
			      size / MIB, (int)tid, why);
	return mw_error_hint(err, MW_INJECT_TRAP_HINT "; or raise the limit (prlimit --as)");
}

static bool is_failure(int64_t result)
{
	return result < 0 && result >= -4095;
}

struct mw_error *mw_inject_simple(const struct mw_inject *inject, long number, mw_addr addr, uint64_t size,
				  uint64_t third, const char *what)
{
	const uint64_t arguments[6] = {addr, size, third};
	int64_t result;

	MW_TRY(mw_inject_call(inject, number, arguments, &result));
	return result < 0 ? call_failed(inject->tid, (int)-result, size, what) : NULL;
}

struct mw_error *mw_inject_map(const struct mw_inject *inject, mw_addr addr, uint64_t size, int protection,
			       mw_addr *out)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED_NOREPLACE : 0);
	const uint64_t arguments[6] = {addr, size, (uint64_t)protection, (uint64_t)flags, UINT64_MAX, 0};
	int64_t result;

	MW_TRY(mw_inject_call(inject, SYS_mmap, arguments, &result));
	if (is_failure(result))
		return call_failed(inject->tid, (int)-result, size, "map memory into");
	if (addr && (mw_addr)result != addr) {
		/* Before Linux 4.17 it is but a hint. */
		mw_error_destroy(mw_inject_unmap(inject, (mw_addr)result, size));
		return call_failed(inject->tid, EEXIST, size, "map memory into");
	}
	*out = (mw_addr)result;
	return NULL;
}

/* Where in a gap there may be something, and the best place so far. */
struct search {
	mw_addr first, last; /* where there may be a byte */
	uint64_t size;
	bool found;
	mw_addr best;
	uint64_t distance; /* of it from the nearer end of its gap */
};

/* As far from either end as can be. */
static void try_gap(struct search *search, mw_addr start, mw_addr end)
{
	mw_addr least, most, at;
	uint64_t distance;

	start = (start + PAGE - 1) & ~(mw_addr)(PAGE - 1);
	end &= ~(mw_addr)(PAGE - 1);
	if (end < start || end - start < search->size)
		return;
	least = search->first > start ? (search->first + PAGE - 1) & ~(mw_addr)(PAGE - 1) : start;
	most = search->last < end - 1 ? (search->last + 1) & ~(mw_addr)(PAGE - 1) : end;
	if (most < least || most - least < search->size)
		return;
	most -= search->size;
	at = start + ((end - search->size - start) / 2 & ~(mw_addr)(PAGE - 1));
	at = at < least ? least : at > most ? most : at;
	distance = at - start < end - search->size - at ? at - start : end - search->size - at;
	if (search->found && distance <= search->distance)
		return;
	search->found = true;
	search->best = at;
	search->distance = distance;
}

/* Where the heap ends, or will begin: after the program's own mappings, which come first. 0: nobody knows. */
static mw_addr heap_end(const struct mw_maps *maps)
{
	const char *program = NULL;
	mw_addr end = 0;

	for (size_t i = 0; i < maps->count; i++)
		if (strcmp(maps->items[i].path, "[heap]") == 0)
			return maps->items[i].end;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		if (mapping->inode && !program)
			program = mapping->path;
		if (program && (strcmp(mapping->path, program) == 0 || (mapping->start == end && !mapping->inode)))
			end = mapping->end;
		else if (end)
			break;
	}
	return end;
}

static void try_all(struct search *search, const struct mw_maps *maps, uint64_t heap_room, uint64_t stack_room)
{
	const struct mw_mapping *last = NULL;
	mw_addr heap = heap_end(maps);
	mw_addr start = LEAST;

	for (size_t i = 0; i <= maps->count; i++) {
		const struct mw_mapping *next = i < maps->count ? &maps->items[i] : NULL;
		mw_addr end = next && next->start < MOST ? next->start : MOST;
		uint64_t above = last ? PAGE : 0, below = PAGE;

		if (last && last->end == heap)
			above = heap_room;
		if (next && strcmp(next->path, "[stack]") == 0)
			below = stack_room;
		if (end > start && end - start >= above && end - start - above >= below)
			try_gap(search, start + above, end - below);
		if (next && next->end > start)
			start = next->end;
		if (start >= MOST)
			break;
		last = next;
	}
}

bool mw_inject_find_gap(const struct mw_maps *maps, mw_addr low, mw_addr high, uint64_t reach, uint64_t size,
			mw_addr *out)
{
	struct search search = {.size = size};

	if (high <= low || size == 0 || size % PAGE != 0)
		return false;
	search.first = high - 1 > reach ? high - 1 - reach : 0;
	search.last = low > UINT64_MAX - reach ? UINT64_MAX : low + reach;
	try_all(&search, maps, HEAP_ROOM, STACK_ROOM);
	/* What the heap needs is not known: the less is taken of it the better. */
	for (uint64_t room = HEAP_ROOM / 2; !search.found && room >= PAGE; room /= 2)
		try_all(&search, maps, room, room > STACK_LEAST ? STACK_LEAST * 2 : STACK_LEAST);
	if (search.found)
		*out = search.best;
	return search.found;
}

/*
 * Memory that a target and memwatch share:
 *
 *      target                                  memwatch
 *      fd = memfd_create("memwatch")
 *                                              open /proc/TID/fd/FD, ftruncate, mmap
 *      mmap(fd), close(fd)
 *
 * It is sized by memwatch, whose RLIMIT_FSIZE is checked before: beyond it comes a signal. What has a size is sealed:
 * whoever gets hold of the descriptor can't make the file shorter than what memwatch reads. And as somebody who shares
 * the target's table of descriptors could put another file in the place of this one, it is looked at first: what
 * memwatch writes to is a memfd, new and empty.
 */

static const char name[16] = "memwatch";

static struct mw_error *create_there(const struct mw_inject *inject, int *out)
{
	char given[sizeof(name)];
	uint64_t arguments[6] = {0, MFD_CLOEXEC | MFD_NOEXEC_SEAL};
	int64_t result;

	memcpy(given, name, sizeof(given));
	MW_TRY(mw_inject_call_with(inject, SYS_memfd_create, arguments, 0, given, sizeof(given), &result));
	/* Before Linux 6.3 there is no such flag; since then its absence is frowned upon. */
	if (result == -EINVAL) {
		arguments[1] = MFD_CLOEXEC | MFD_ALLOW_SEALING;
		MW_TRY(mw_inject_call_with(inject, SYS_memfd_create, arguments, 0, given, sizeof(given), &result));
	}
	if (is_failure(result))
		return call_failed(inject->tid, (int)-result, 0, "make shared memory (memfd_create) in");
	*out = (int)result;
	return NULL;
}

static struct mw_error *failed_here(const char *what, uint64_t size)
{
	return mw_error_create(errno == ENOMEM ? MW_ERROR_MEMORY : MW_ERROR_SYSTEM, errno,
			       "cannot %s the shared memory of %llu KiB", what, (unsigned long long)size / 1024);
}

/* May memwatch make a file as large? The kernel asks with a signal that ends it. */
static bool may_size(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

/* A file in memory that nobody has written to, and that can be sealed. Others than memfds say that they can't. */
static bool is_new_memory(int fd, const struct stat *file)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return file->st_size == 0 && file->st_nlink == 0 && seals >= 0 && !(seals & F_SEAL_SEAL);
}

/* The target's descriptor itself, as who may trace it may have it; -1 before Linux 5.6. */
static int share_descriptor(pid_t tid, int fd)
{
	struct mw_status status;
	bool known = mw_error_none(mw_status_read(tid, &status));
	MW_CLOSE int process = known ? (int)syscall(SYS_pidfd_open, status.tgid, 0) : -1;

	return process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, fd, 0) : -1;
}

/*
 * A file description of memwatch's own, for the lock on it: the target's one lives as long as the target maps the file,
 * and a lock on that would make a memwatch that was killed look alive for good.
 */
static int open_anew(int fd)
{
	return open(mw_path("/proc/self/fd/%d", fd).text, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

/* Open what a descriptor of the target's leads to; nothing that is no file is ever opened. */
static struct mw_error *open_there(const struct mw_inject *inject, int fd, uint64_t size, struct stat *file, int *out)
{
	const struct mw_path path = mw_path("/proc/%d/fd/%d", (int)inject->tid, fd);
	/* With a capability to trace alone, /proc shows no descriptors of other users' processes. */
	int place = share_descriptor(inject->tid, fd);

	if (place < 0)
		place = open(path.text, O_PATH | O_CLOEXEC);
	if (place < 0)
		return failed_here("open", size);
	if (fstat(place, file) == 0 && S_ISREG(file->st_mode))
		*out = open_anew(place);
	else
		errno = ENXIO;
	close(place);
	if (*out < 0)
		return failed_here("open", size);
	if (fstat(*out, file))
		return failed_here("look at", size);
	if (!S_ISREG(file->st_mode) || !is_new_memory(*out, file))
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not the shared memory that was made", path.text);
	return NULL;
}

static struct mw_error *size_and_seal(int fd, uint64_t size)
{
	struct stat file;

	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
	    fstat(fd, &file))
		return failed_here("size", size);
	/* Somebody else's doing, before there was a seal. */
	if (file.st_size < 0 || (uint64_t)file.st_size != size)
		return mw_error_create(MW_ERROR_DATA, 0, "the size of the shared memory was changed meanwhile");
	return NULL;
}

/* memwatch's side, for a descriptor of the target's. */
static struct mw_error *open_here(const struct mw_inject *inject, int fd, uint64_t size, struct mw_shared_memory *out)
{
	struct stat file;

	MW_TRY(open_there(inject, fd, size, &file, &out->fd));
	/* Held for as long as this memwatch lives: by it the memory of a killed one is known. */
	if (flock(out->fd, LOCK_EX | LOCK_NB))
		return failed_here("lock", size);
	out->device = file.st_dev;
	out->inode = file.st_ino;
	if (!may_size(size))
		return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, EFBIG,
						     "cannot size the shared memory of %llu KiB: memwatch's limit "
						     "RLIMIT_FSIZE (ulimit -f) is less",
						     (unsigned long long)size / 1024),
				     "Run memwatch under ulimit -f unlimited");
	MW_TRY(size_and_seal(out->fd, size));
	out->here = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, out->fd, 0);
	if (out->here == MAP_FAILED) {
		out->here = NULL;
		return failed_here("map", size);
	}
	out->size = size;
	return NULL;
}

/* Does the process lock memory? What it maps may have to be there at once then (mlockall, MCL_FUTURE). */
bool mw_shared_memory_locks(pid_t tid)
{
	return status_kib(tid, "\nVmLck:") > 0;
}

/* Nobody can touch what nobody may read: not the kernel either, that would fill a locked mapping with pages. */
static struct mw_error *unlock_there(const struct mw_inject *inject, mw_addr addr, uint64_t size)
{
	MW_TRY(mw_inject_simple(inject, SYS_munlock, addr, size, 0, "unlock memory of"));
	return mw_inject_protect(inject, addr, size, PROT_READ | PROT_WRITE);
}

static struct mw_error *map_there(const struct mw_inject *inject, int fd, mw_addr hint, uint64_t size, mw_addr *out)
{
	bool locks = mw_shared_memory_locks(inject->tid);
	const uint64_t arguments[6] = {
		hint, size, locks ? PROT_NONE : PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (uint64_t)fd, 0};
	struct mw_error *err;
	int64_t result;

	MW_TRY(mw_inject_call(inject, SYS_mmap, arguments, &result));
	if (is_failure(result))
		return call_failed(inject->tid, (int)-result, size, "map shared memory into");
	err = locks ? unlock_there(inject, (mw_addr)result, size) : NULL;
	if (err) {
		mw_error_destroy(mw_inject_unmap(inject, (mw_addr)result, size));
		return err;
	}
	*out = (mw_addr)result;
	return NULL;
}

struct mw_error *mw_shared_memory_create(const struct mw_inject *inject, mw_addr hint, uint64_t size,
					 struct mw_shared_memory *out)
{
	struct mw_shared_memory memory = {.fd = -1};
	struct mw_error *err, *close_err;
	int64_t result = 0;
	int fd = -1;

	MW_TRY(create_there(inject, &fd));
	const uint64_t arguments[6] = {(uint64_t)fd};

	err = open_here(inject, fd, size, &memory);
	if (!err)
		err = map_there(inject, fd, hint, size, &memory.there);
	close_err = mw_inject_call(inject, SYS_close, arguments, &result);
	err = mw_error_first(err, close_err);
	if (!err) {
		*out = memory;
		return NULL;
	}
	if (memory.there)
		mw_error_destroy(mw_inject_unmap(inject, memory.there, size));
	mw_shared_memory_close(&memory);
	return err;
}

struct mw_error *mw_shared_memory_fill(struct mw_shared_memory *memory, uint64_t offset, uint64_t size)
{
	int result;

	if (offset > memory->size || size > memory->size - offset)
		return mw_error_create(MW_ERROR_SYSTEM, EINVAL, "cannot fill beyond the end of the shared memory");
	if (size == 0)
		return NULL;
	do
		result = fallocate(memory->fd, 0, (off_t)offset, (off_t)size);
	while (result && errno == EINTR);
	return result ? failed_here("fill", size) : NULL;
}

struct mw_error *mw_shared_memory_write(struct mw_shared_memory *memory, uint64_t offset, const void *bytes,
					size_t size)
{
	const uint8_t *from = bytes;

	if (offset > memory->size || size > memory->size - offset)
		return mw_error_create(MW_ERROR_SYSTEM, EINVAL, "cannot write beyond the end of the shared memory");
	while (size > 0) {
		ssize_t written = pwrite(memory->fd, from, size, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return failed_here("write", size);
		from += written;
		offset += (uint64_t)written;
		size -= (size_t)written;
	}
	return NULL;
}

bool mw_shared_memory_leave(struct mw_shared_memory *memory, size_t kept)
{
	void *copy = malloc(kept);
	bool mapped = false;

	if (copy) {
		memcpy(copy, memory->here, kept);
		mapped = mmap(memory->here, memory->size, PROT_READ | PROT_WRITE,
			      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
	}
	if (mapped)
		memcpy(memory->here, copy, kept);
	free(copy);
	if (memory->fd >= 0)
		close(memory->fd);
	memory->fd = -1;
	return mapped;
}

void mw_shared_memory_close(struct mw_shared_memory *memory)
{
	if (memory->here)
		munmap(memory->here, memory->size);
	if (memory->fd >= 0)
		close(memory->fd);
	memory->here = NULL;
	memory->fd = -1;
}

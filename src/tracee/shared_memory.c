// SPDX-License-Identifier: MIT
/*
 * shared_memory.c: memory that a target and memwatch share (inject.h).
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
#include "tracee/inject.h"

#include "proc/file.h"
#include "proc/status.h"
#include "tracee/inject_error.h"
#include "tracee/remote.h"
#include "tracee/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static const char name[16] = "memwatch";

static bool is_failure(int64_t result)
{
	return result < 0 && result >= -4095;
}

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
		return mw_inject_error(inject->tid, (int)-result, 0, "make shared memory (memfd_create) in");
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
	struct mw_error *err = mw_status_read(tid, &status);
	int process = err ? -1 : (int)syscall(SYS_pidfd_open, status.tgid, 0), shared = -1;

	mw_error_destroy(err);
	if (process >= 0) {
		shared = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
		close(process);
	}
	return shared;
}

/*
 * A file description of memwatch's own, for the lock on it: the target's one lives as long as the target maps the file,
 * and a lock on that would make a memwatch that was killed look alive for good.
 */
static int open_anew(int fd)
{
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return open(link, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

/* Open what a descriptor of the target's leads to; nothing that is no file is ever opened. */
static struct mw_error *open_there(const struct mw_inject *inject, int fd, uint64_t size, struct stat *file, int *out)
{
	char path[64];
	int place;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)inject->tid, fd);
	/* With a capability to trace alone, /proc shows no descriptors of other users' processes. */
	place = share_descriptor(inject->tid, fd);
	if (place < 0)
		place = open(path, O_PATH | O_CLOEXEC);
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
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not the shared memory that was made", path);
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
	char *text = NULL;
	size_t size = 0;
	const char *at;
	bool locks;
	struct mw_error *err = mw_proc_file_read(&text, &size, "/proc/%d/status", (int)tid);

	if (err) {
		mw_error_destroy(err);
		return false;
	}
	at = strstr(text, "\nVmLck:");
	locks = at && strtoull(at + sizeof("\nVmLck:") - 1, NULL, 10) > 0;
	free(text);
	return locks;
}

/* Nobody can touch what nobody may read: not the kernel either, that would fill a locked mapping with pages. */
static struct mw_error *unlock_there(const struct mw_inject *inject, mw_addr addr, uint64_t size)
{
	const uint64_t arguments[6] = {addr, size};
	int64_t result;

	MW_TRY(mw_inject_call(inject, SYS_munlock, arguments, &result));
	if (is_failure(result))
		return mw_inject_error(inject->tid, (int)-result, size, "unlock memory of");
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
		return mw_inject_error(inject->tid, (int)-result, size, "map shared memory into");
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
	if (!err && !close_err) {
		*out = memory;
		return NULL;
	}
	if (memory.there)
		mw_error_destroy(mw_inject_unmap(inject, memory.there, size));
	mw_shared_memory_close(&memory);
	if (!err)
		return close_err;
	mw_error_destroy(close_err);
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

void mw_shared_memory_close(struct mw_shared_memory *memory)
{
	if (memory->here)
		munmap(memory->here, memory->size);
	if (memory->fd >= 0)
		close(memory->fd);
	memory->here = NULL;
	memory->fd = -1;
}

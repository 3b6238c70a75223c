// SPDX-License-Identifier: MIT
/* remote.c: a target's memory (remote.h). */
#include "tracee/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

struct mw_error *mw_remote_read_all(pid_t tid, mw_addr addr, void *out, size_t size)
{
	size_t got = mw_remote_read(tid, addr, out, size);

	if (got == size)
		return NULL;
	return mw_error_create(MW_ERROR_DATA, 0, "cannot read %zu bytes at 0x%llx of thread %d", size,
			       (unsigned long long)addr, tid);
}

static ssize_t write_by_call(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	const struct iovec here = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	/* The kernel takes the address as a pointer; it is never followed here. */
	const struct iovec there = {.iov_base = (void *)(uintptr_t)addr, .iov_len = size};

	return process_vm_writev(tid, &here, 1, &there, 1, 0);
}

struct mw_error *mw_remote_write(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	ssize_t done;

	/* A page that is not there yet may not be waited for, as when it is read (mw_peek_some). */
	if (mw_peek_is_careful())
		return mw_remote_poke(tid, addr, bytes, size);
	done = write_by_call(tid, addr, bytes, size);
	if (done == (ssize_t)size)
		return NULL;
	if (done < 0 && errno == EPERM && mw_peek_kept_write(tid, addr, bytes, size))
		return NULL;
	return mw_error_create(done < 0 && errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_DATA, done < 0 ? errno : 0,
			       "cannot write %zu bytes at 0x%llx of thread %d", size, (unsigned long long)addr, tid);
}

/* The way in that needs no stop; kernels of 6.12 and later may be set up to forbid it. */
static bool write_by_file(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	char path[64];
	ssize_t done;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = pwrite(fd, bytes, size, (off_t)addr);
	close(fd);
	return done == (ssize_t)size;
}

static bool in_one_word(mw_addr addr, size_t size)
{
	return addr / sizeof(long) == (addr + size - 1) / sizeof(long);
}

struct mw_error *mw_remote_poke(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	int errnum;

	/* In one go if it can be: a memwatch that is killed must not leave half an instruction. */
	if (size > 0 && !in_one_word(addr, size) && write_by_file(tid, addr, bytes, size))
		return NULL;
	while (size > 0) {
		mw_addr word_addr = addr & ~(mw_addr)(sizeof(long) - 1);
		size_t skip = (size_t)(addr - word_addr);
		size_t length = sizeof(long) - skip;
		long word;

		if (length > size)
			length = size;
		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)word_addr, NULL);
		if (word == -1 && errno)
			break;
		memcpy((char *)&word + skip, from, length);
		if (ptrace(PTRACE_POKEDATA, tid, (void *)(uintptr_t)word_addr, (void *)word))
			break;
		addr += length;
		from += length;
		size -= length;
	}
	errnum = errno;
	if (size == 0 || (errnum == ESRCH && write_by_file(tid, addr, from, size)))
		return NULL;
	/* To a tracer of a process that has become another's (setuid), the kernel says EIO. */
	if (mw_peek_kept_write(tid, addr, from, size))
		return NULL;
	return mw_error_create(errnum == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errnum,
			       "cannot write to address 0x%llx of thread %d", (unsigned long long)addr, tid);
}

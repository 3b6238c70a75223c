// SPDX-License-Identifier: MIT
/* peek.c: a process's memory through process_vm_readv (peek.h). */
#include "proc/peek.h"

#include <errno.h>
#include <sys/uio.h>

#define PAGE       4096u
#define MAX_PIECES 32

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

	if (addr + size < addr) {
		errno = EFAULT;
		return 0;
	}
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
	return done;
}

bool mw_peek(pid_t tid, mw_addr addr, void *out, size_t size)
{
	return mw_peek_some(tid, addr, out, size) == size;
}

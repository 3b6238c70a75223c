// SPDX-License-Identifier: MIT
/* peek.c: a look at a process's memory before anything is attached to it. */
#include "proc/peek.h"

#include <errno.h>
#include <sys/uio.h>

bool mw_peek(pid_t tid, mw_addr addr, void *out, size_t size)
{
	size_t done = 0;

	while (done < size) {
		struct iovec here = {(char *)out + done, size - done};
		/* The kernel takes the address as a pointer; it is never followed here. */
		struct iovec there = {(void *)(uintptr_t)(addr + done), size - done};
		ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);

		if (got < 0)
			return false;
		if (got == 0) {
			errno = EFAULT;
			return false;
		}
		done += (size_t)got;
	}
	return true;
}

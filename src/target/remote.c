// SPDX-License-Identifier: MIT
/* remote.c: a target's memory (remote.h). */
#include "target/remote.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>

struct mw_error *mw_remote_read_all(pid_t tid, mw_addr addr, void *out, size_t size)
{
	size_t got = mw_remote_read(tid, addr, out, size);

	if (got == size)
		return NULL;
	return mw_error_create(MW_ERROR_DATA, 0, "cannot read %zu bytes at 0x%llx of thread %d", size,
			       (unsigned long long)addr, tid);
}

struct mw_error *mw_remote_poke(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;

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
	if (size == 0)
		return NULL;
	return mw_error_create(errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errno,
			       "cannot write to address 0x%llx of thread %d", (unsigned long long)addr, tid);
}

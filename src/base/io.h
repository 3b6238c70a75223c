/* SPDX-License-Identifier: MIT */
/* io.h: reading and writing at a place of a file, whole, whatever signals come. */
#ifndef MW_BASE_IO_H
#define MW_BASE_IO_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/* How many of `size` bytes were read: fewer at the file's end. -1 with errno. */
static inline ssize_t mw_read_at(int fd, void *out, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* Write all `size` bytes. False with errno: some may have been written. */
static inline bool mw_write_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t put = pwrite(fd, (const char *)bytes + done, size - done, (off_t)(offset + done));

		if (put == 0)
			errno = EIO;
		if (put == 0 || (put < 0 && errno != EINTR))
			return false;
		done += put > 0 ? (size_t)put : 0;
	}
	return true;
}

#endif

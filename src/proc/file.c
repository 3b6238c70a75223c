// SPDX-License-Identifier: MIT
/* file.c: whole files of /proc, read into memory. */
#include "proc/file.h"

#include "base/cleanup.h"
#include "base/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_CAPACITY 8192
#define MAX_FILE_SIZE  ((size_t)1 << 30)
#define MAX_LINK_SIZE  ((size_t)1 << 20)

struct mw_error *mw_proc_error(int errnum, const char *what, const char *path)
{
	enum mw_error_kind kind = MW_ERROR_SYSTEM;

	if (errnum == ENOENT || errnum == ESRCH)
		kind = MW_ERROR_GONE;
	else if (errnum == EACCES || errnum == EPERM)
		kind = MW_ERROR_DENIED;
	else if (errnum == ENOMEM)
		kind = MW_ERROR_MEMORY;
	return mw_error_create(kind, errnum, "cannot %s %s", what, path);
}

static struct mw_error *grow(char **buffer, size_t *capacity, size_t limit, const char *path)
{
	size_t larger = *capacity ? *capacity * 2 : FIRST_CAPACITY;
	char *moved;

	if (larger > limit)
		return mw_error_create(MW_ERROR_DATA, 0, "%s is longer than %zu bytes", path, limit);
	moved = realloc(*buffer, larger);
	if (!moved) {
		mw_reserve_release();
		moved = realloc(*buffer, larger);
	}
	if (!moved)
		return mw_error_nomem();
	*buffer = moved;
	*capacity = larger;
	return NULL;
}

static struct mw_error *read_all(int fd, const char *path, char **bytes, size_t *size)
{
	MW_FREE char *buffer = NULL;
	size_t capacity = 0, used = 0;
	ssize_t got;

	do {
		/* One byte stays free for the NUL. */
		if (capacity - used <= 1)
			MW_TRY(grow(&buffer, &capacity, MAX_FILE_SIZE, path));
		got = read(fd, buffer + used, capacity - used - 1);
		if (got < 0 && errno != EINTR)
			return mw_proc_error(errno, "read", path);
		used += got > 0 ? (size_t)got : 0;
	} while (got != 0);
	buffer[used] = '\0';
	*bytes = MW_TAKE(buffer);
	if (size)
		*size = used;
	return NULL;
}

struct mw_error *mw_proc_file_read(char **bytes, size_t *size, const char *format, ...)
{
	MW_FREE char *path = NULL;
	MW_CLOSE int fd = -1;
	va_list args;

	va_start(args, format);
	if (vasprintf(&path, format, args) < 0)
		path = NULL;
	va_end(args);
	if (!path)
		return mw_error_nomem();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? mw_proc_error(errno, "open", path) : read_all(fd, path, bytes, size);
}

struct mw_error *mw_proc_file_read_small(char *bytes, size_t capacity, size_t *size, const char *format, ...)
{
	MW_CLOSE int fd = -1;
	char path[64];
	size_t used = 0;
	ssize_t got = 1;
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return mw_proc_error(errno, "open", path);
	while (got != 0 && used + 1 < capacity) {
		got = read(fd, bytes + used, capacity - used - 1);
		if (got < 0 && errno != EINTR)
			return mw_proc_error(errno, "read", path);
		used += got > 0 ? (size_t)got : 0;
	}
	bytes[used] = '\0';
	if (size)
		*size = used;
	return NULL;
}

struct mw_error *mw_proc_link_read(char **out, const char *path)
{
	MW_FREE char *buffer = NULL;
	size_t capacity = 0;
	ssize_t got;

	/* A full buffer may hold a link that was cut off. */
	do {
		MW_TRY(grow(&buffer, &capacity, MAX_LINK_SIZE, path));
		got = readlink(path, buffer, capacity);
		if (got < 0)
			return mw_proc_error(errno, "read the link", path);
	} while ((size_t)got == capacity);
	buffer[got] = '\0';
	*out = MW_TAKE(buffer);
	return NULL;
}

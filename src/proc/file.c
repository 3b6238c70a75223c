// SPDX-License-Identifier: MIT
/* file.c: whole files of /proc, read into memory. */
#include "proc/file.h"

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

	switch (errnum) {
	case ENOENT:
	case ESRCH:
		kind = MW_ERROR_GONE;
		break;
	case EACCES:
	case EPERM:
		kind = MW_ERROR_DENIED;
		break;
	case ENOMEM:
		kind = MW_ERROR_MEMORY;
		break;
	default:
		break;
	}
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
	struct mw_error *err;
	char *buffer = NULL;
	size_t capacity = 0, used = 0;

	for (;;) {
		ssize_t got;

		/* One byte stays free for the NUL. */
		if (capacity - used <= 1) {
			err = grow(&buffer, &capacity, MAX_FILE_SIZE, path);
			if (err)
				goto fail;
		}
		got = read(fd, buffer + used, capacity - used - 1);
		if (got < 0) {
			if (errno == EINTR)
				continue;
			err = mw_proc_error(errno, "read", path);
			goto fail;
		}
		if (got == 0)
			break;
		used += (size_t)got;
	}
	buffer[used] = '\0';
	*bytes = buffer;
	*size = used;
	return NULL;

fail:
	free(buffer);
	return err;
}

struct mw_error *mw_proc_file_read(char **bytes, size_t *size, const char *format, ...)
{
	struct mw_error *err;
	char *path = NULL;
	va_list args;
	int fd;

	va_start(args, format);
	if (vasprintf(&path, format, args) < 0)
		path = NULL;
	va_end(args);
	if (!path)
		return mw_error_nomem();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = mw_proc_error(errno, "open", path);
	} else {
		err = read_all(fd, path, bytes, size);
		close(fd);
	}
	free(path);
	return err;
}

struct mw_error *mw_proc_file_read_small(char *bytes, size_t capacity, size_t *size, const char *format, ...)
{
	struct mw_error *err = NULL;
	char path[64];
	size_t used = 0;
	ssize_t got = 1;
	va_list args;
	int fd;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return mw_proc_error(errno, "open", path);
	while (got != 0 && used + 1 < capacity && !err) {
		got = read(fd, bytes + used, capacity - used - 1);
		if (got > 0)
			used += (size_t)got;
		else if (got < 0 && errno != EINTR)
			err = mw_proc_error(errno, "read", path);
	}
	close(fd);
	bytes[used] = '\0';
	if (!err)
		*size = used;
	return err;
}

struct mw_error *mw_proc_link_read(char **out, const char *path)
{
	struct mw_error *err;
	char *buffer = NULL;
	size_t capacity = 0;

	for (;;) {
		ssize_t got;

		err = grow(&buffer, &capacity, MAX_LINK_SIZE, path);
		if (err)
			break;
		got = readlink(path, buffer, capacity);
		if (got < 0) {
			err = mw_proc_error(errno, "read the link", path);
			break;
		}
		/* A full buffer may hold a link that was cut off. */
		if ((size_t)got < capacity) {
			buffer[got] = '\0';
			*out = buffer;
			return NULL;
		}
	}
	free(buffer);
	return err;
}

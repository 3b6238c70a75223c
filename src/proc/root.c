// SPDX-License-Identifier: MIT
/* root.c: files under the names by which a target knows them. */
#include "proc/root.h"

#include "proc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 8

/* Where openat2 is missing or filtered: links may lead out of the root, which the caller's checks must catch. */
static int open_plain(pid_t tid, const char *path)
{
	char *full = NULL;
	int saved, fd;

	if (asprintf(&full, "/proc/%d/root/%s", (int)tid, path) < 0) {
		errno = ENOMEM;
		return -1;
	}
	fd = open(full, O_PATH | O_CLOEXEC);
	saved = errno;
	free(full);
	errno = saved;
	return fd;
}

/* A place holder (O_PATH) for the file; nothing is opened by it. */
static int open_place(pid_t tid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char name[40];
	int root, saved;
	long fd = -1;

	(void)snprintf(name, sizeof(name), "/proc/%d/root", (int)tid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	/* EAGAIN: something was renamed meanwhile, and ".." could not be trusted. */
	for (int i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	saved = errno;
	close(root);
	if (fd < 0 && (saved == ENOSYS || saved == EPERM))
		return open_plain(tid, path);
	errno = saved;
	return (int)fd;
}

static int reopen_regular(int place)
{
	struct stat st;
	char name[40];

	if (fstat(place, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = ENXIO;
		return -1;
	}
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int reopen_and_close(int place)
{
	int fd, saved;

	if (place < 0)
		return -1;
	fd = reopen_regular(place);
	saved = errno;
	close(place);
	errno = saved;
	return fd;
}

int mw_root_open(pid_t tid, const char *path)
{
	return reopen_and_close(open_place(tid, path));
}

int mw_root_open_link(const char *path)
{
	return reopen_and_close(open(path, O_PATH | O_CLOEXEC));
}

bool mw_root_has(pid_t tid, const char *path, uint64_t inode)
{
	struct stat st;
	int place = open_place(tid, path);
	bool same;

	if (place < 0)
		return false;
	same = fstat(place, &st) == 0 && st.st_ino == inode;
	close(place);
	return same;
}

char *mw_root_prefix(pid_t tid)
{
	char name[40];
	char *prefix = NULL;
	struct mw_error *err;

	(void)snprintf(name, sizeof(name), "/proc/%d/root", (int)tid);
	err = mw_proc_link_read(&prefix, name);
	if (err || prefix[0] != '/' || prefix[1] == '\0') {
		mw_error_destroy(err);
		free(prefix);
		return strdup("");
	}
	return prefix;
}

const char *mw_root_strip(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (length && strncmp(path, prefix, length) == 0 && path[length] == '/')
		return path + length;
	return path;
}

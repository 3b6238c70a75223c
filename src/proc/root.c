// SPDX-License-Identifier: MIT
/* root.c: files under the names by which a target knows them. */
#include "proc/root.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 8

bool mw_root_is_own(int root)
{
	struct stat theirs, ours;

	return fstat(root, &theirs) == 0 && stat("/", &ours) == 0 && theirs.st_dev == ours.st_dev &&
	       theirs.st_ino == ours.st_ino;
}

/* Where openat2 is missing or filtered (before Linux 5.6): links of another root would lead into ours. */
static int open_plain(int root, const char *path, int flags)
{
	/* In our own root links lead where they lead us. */
	if (!mw_root_is_own(root)) {
		errno = ENOSYS;
		return -1;
	}
	while (*path == '/')
		path++;
	return openat(root, path, flags);
}

/* A place holder (O_PATH) for the file; nothing is opened by it. Neither are links of /proc followed, which lead
 * anywhere. */
static int place_at(int root, const char *path, bool plain)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | (plain ? O_NOFOLLOW : 0),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd = -1;

	/* EAGAIN: something was renamed meanwhile, and ".." could not be trusted. */
	for (int i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return open_plain(root, path, (int)how.flags);
	return (int)fd;
}

static int open_place(pid_t tid, const char *path)
{
	MW_CLOSE int root = mw_root_directory(tid);

	return root < 0 ? -1 : place_at(root, path, false);
}

int mw_root_directory(pid_t tid)
{
	return open(mw_path("/proc/%d/root", (int)tid).text, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int reopen_and_close(int descriptor)
{
	MW_CLOSE int place = descriptor;
	struct stat st;

	if (place < 0 || fstat(place, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = ENXIO;
		return -1;
	}
	return open(mw_path("/proc/self/fd/%d", place).text, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int mw_root_open(pid_t tid, const char *path)
{
	return reopen_and_close(open_place(tid, path));
}

int mw_root_open_at(int root, const char *path, bool plain)
{
	return reopen_and_close(place_at(root, path, plain));
}

int mw_root_open_link(const char *path)
{
	return reopen_and_close(open(path, O_PATH | O_CLOEXEC));
}

bool mw_root_stat(pid_t tid, const char *path, struct stat *out)
{
	MW_CLOSE int place = open_place(tid, path);

	return place >= 0 && fstat(place, out) == 0;
}

char *mw_root_prefix(pid_t tid)
{
	char *prefix = NULL;
	struct mw_error *err = mw_proc_link_read(&prefix, mw_path("/proc/%d/root", (int)tid).text);

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

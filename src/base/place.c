// SPDX-License-Identifier: MIT
/* place.c: see place.h. */
#include "base/place.h"

#include "base/path.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MOST_LINKS 40
#define HOLD       (O_PATH | O_CLOEXEC)

static const char in_shared[] = "it leads through a symbolic link in a directory that all users may write to";
static const char of_others[] = "it belongs to another user, in a directory that all users may write to";
static const char nowhere[] = "it is a symbolic link that leads nowhere";

/* A path on its way to its last part. */
struct walk {
	struct mw_place *place;
	char *rest, *at; /* malloc'ed, and where in it */
	unsigned links;
	bool linked; /* the last part was a link */
};

static void replace(int *fd, int with)
{
	if (*fd >= 0)
		close(*fd);
	*fd = with;
}

static bool all_may_write(int dir)
{
	struct stat info;

	return fstat(dir, &info) != 0 || info.st_mode & S_IWOTH;
}

static bool is_proc(int fd)
{
	struct statfs info;

	return fstatfs(fd, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

/* In a directory as /tmp, only the owner of a file may replace it. */
static bool may_replace(int dir, const struct stat *file)
{
	struct stat info;

	return geteuid() == 0 || fstat(dir, &info) != 0 || !(info.st_mode & S_ISVTX) || info.st_uid == geteuid() ||
	       file->st_uid == geteuid();
}

static int refuse(struct mw_place *place, const char *why, int errnum)
{
	place->why = why;
	return errnum;
}

/* What the path ends in. */
static int take_there(struct mw_place *place, const struct stat *info)
{
	if (S_ISDIR(info->st_mode))
		return EISDIR;
	if (S_ISREG(info->st_mode)) {
		place->kind = MW_PLACE_FILE;
		/* rename would replace a file that its owner has protected from being written. */
		if (faccessat(AT_FDCWD, mw_path("/proc/self/fd/%d", place->there).text, W_OK, AT_EACCESS) != 0)
			return errno;
		return may_replace(place->dir, info) ? 0 : EPERM;
	}
	place->kind = MW_PLACE_OPEN;
	if (all_may_write(place->dir) && info->st_uid != geteuid() && info->st_uid != 0)
		return refuse(place, of_others, EPERM);
	return 0;
}

/* Go on where a link leads. */
static int follow(struct walk *walk, bool last)
{
	char target[PATH_MAX], *rest;
	ssize_t length;

	if (++walk->links > MOST_LINKS)
		return ELOOP;
	length = readlinkat(walk->place->there, "", target, sizeof(target));
	if (length < 0)
		return errno;
	if (length == 0 || length == sizeof(target))
		return ENAMETOOLONG;
	target[length] = '\0';
	if (asprintf(&rest, "%s%s%s", target, *walk->at ? "/" : "", walk->at) < 0)
		return ENOMEM;
	free(walk->rest);
	walk->rest = walk->at = rest;
	walk->linked |= last;
	if (*rest == '/') {
		replace(&walk->place->dir, open("/", HOLD | O_DIRECTORY));
		if (walk->place->dir < 0)
			return errno;
	}
	return 0;
}

/* A link of /proc is no path: it leads to what is open. */
static int take_open(struct walk *walk, const char *part, bool last)
{
	struct mw_place *place = walk->place;

	replace(&place->there, openat(place->dir, part, HOLD | (last ? 0 : O_DIRECTORY)));
	if (place->there < 0)
		return errno;
	if (last) {
		place->kind = MW_PLACE_OPEN;
		return 0;
	}
	replace(&place->dir, place->there);
	place->there = -1;
	return 0;
}

/* Cut off the path's next part. `*last`: no other follows. */
static const char *next_part(struct walk *walk, bool *last, bool *slash)
{
	char *part = walk->at + strspn(walk->at, "/"), *end = part + strcspn(part, "/");

	*slash = *end == '/';
	walk->at = end + strspn(end, "/");
	*last = !*walk->at;
	*end = '\0';
	return part;
}

/* One part of the path. `*done`: it was the last. */
static int step(struct walk *walk, bool *done)
{
	struct mw_place *place = walk->place;
	struct stat info;
	bool last, slash;
	const char *part = next_part(walk, &last, &slash);

	if (strlen(part) > NAME_MAX)
		return ENAMETOOLONG;
	if (!*part)
		return EISDIR;
	memcpy(place->name, part, strlen(part) + 1);
	*done = last;
	replace(&place->there, openat(place->dir, part, HOLD | O_NOFOLLOW));
	if (place->there < 0) {
		if (errno == ENOENT && walk->linked)
			return refuse(place, nowhere, ENOENT);
		place->kind = MW_PLACE_NEW;
		return errno == ENOENT && last && !slash ? 0 : errno;
	}
	if (fstat(place->there, &info) != 0)
		return errno;
	if (S_ISLNK(info.st_mode)) {
		if (all_may_write(place->dir))
			return refuse(place, in_shared, ELOOP);
		if (is_proc(place->there))
			return take_open(walk, place->name, last);
		*done = false;
		return follow(walk, last);
	}
	if (last)
		return slash && !S_ISDIR(info.st_mode) ? ENOTDIR : take_there(place, &info);
	if (!S_ISDIR(info.st_mode))
		return ENOTDIR;
	replace(&place->dir, place->there);
	place->there = -1;
	return 0;
}

int mw_place_find(struct mw_place *place, const char *path)
{
	struct walk walk = {.place = place};
	bool done = false;
	int errnum = 0;

	*place = (struct mw_place){.dir = -1, .there = -1};
	if (!*path)
		return ENOENT;
	walk.rest = walk.at = strdup(path);
	if (!walk.rest)
		return ENOMEM;
	place->dir = open(*path == '/' ? "/" : ".", HOLD | O_DIRECTORY);
	if (place->dir < 0)
		errnum = errno;
	while (!errnum && !done)
		errnum = step(&walk, &done);
	free(walk.rest);
	return errnum;
}

void mw_place_deinit(struct mw_place *place)
{
	if (place->has_temp)
		unlinkat(place->dir, place->temp, 0);
	place->has_temp = false;
	replace(&place->dir, -1);
	replace(&place->there, -1);
}

/* The next name for a file that has none yet. */
static void propose(struct mw_place *place, unsigned attempt)
{
	(void)snprintf(place->temp, sizeof(place->temp), ".memwatch-%06u",
		       ((unsigned)getpid() * 1000 + attempt) % 1000000);
}

static int open_named(struct mw_place *place)
{
	int fd = -1;

	for (unsigned attempt = 0; fd < 0 && attempt < 1000; attempt++) {
		propose(place, attempt);
		fd = openat(place->dir, place->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	place->has_temp = fd >= 0;
	return fd;
}

int mw_place_open(struct mw_place *place)
{
	int fd;

	if (place->kind == MW_PLACE_OPEN)
		return open(mw_path("/proc/self/fd/%d", place->there).text, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	/* A file without a name leaves nothing behind, whatever ends memwatch; not every file system has them. */
	fd = openat(place->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		fd = open_named(place);
	if (fd >= 0)
		(void)fchmod(fd, 0600);
	return fd;
}

/* Only rename() replaces what is there, and it wants a name. */
static int link_temporary(struct mw_place *place, int fd)
{
	const struct mw_path from = mw_path("/proc/self/fd/%d", fd);

	for (unsigned attempt = 0; attempt < 1000; attempt++) {
		propose(place, attempt);
		if (linkat(AT_FDCWD, from.text, place->dir, place->temp, AT_SYMLINK_FOLLOW) == 0) {
			place->has_temp = true;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return errno;
}

int mw_place_name(struct mw_place *place, int fd)
{
	int errnum = place->has_temp ? 0 : link_temporary(place, fd);

	if (errnum)
		return errnum;
	if (renameat(place->dir, place->temp, place->dir, place->name) != 0)
		return errno;
	place->has_temp = false;
	return 0;
}

char *mw_place_partial(const struct mw_place *place)
{
	char directory[PATH_MAX], *path;
	ssize_t length;

	if (!place->has_temp)
		return NULL;
	length = readlink(mw_path("/proc/self/fd/%d", place->dir).text, directory, sizeof(directory) - 1);
	if (length < 0)
		return NULL;
	directory[length] = '\0';
	return asprintf(&path, "%s/%s", directory, place->temp) < 0 ? NULL : path;
}

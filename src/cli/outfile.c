// SPDX-License-Identifier: MIT
/* outfile.c: where a report goes (src/cli/outfile.h). */
#include "cli/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mw_outfile {
	FILE *stream;
	int fd;
	int errnum;  /* of the first write that failed */
	char *name;  /* as the user said it */
	char *path;  /* where it will be; NULL: written directly */
	char *temp;  /* where it is meanwhile */
	bool linked; /* temp exists */
};

static struct mw_error *cannot_write(const char *name, int errnum)
{
	bool is_stdout = strcmp(name, "-") == 0;
	struct mw_error *err = is_stdout ? mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot write to standard output")
					 : mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot write '%s'", name);

	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return mw_error_hint(err, "Its directory does not exist: make it first, or name another file");
	case EISDIR:
		return mw_error_hint(err, "Name a file");
	case ENOSPC:
	case EDQUOT:
		return mw_error_hint(err, "Free some space there, or have it written elsewhere");
	case EFBIG:
		return mw_error_hint(err, "Raise the limit of a file's size (ulimit -f)");
	case EPIPE:
		return mw_error_hint(err, "The program that reads it has ended");
	case EBADF:
		return mw_error_hint(err, "It is closed: redirect it to somewhere");
	default:
		return mw_error_hint(err, "Name a file that you may write");
	}
}

/* The stream's write function: stdio's own would forget why a write failed, and fail where a signal interrupts. */
static ssize_t write_all(void *cookie, const char *bytes, size_t size)
{
	struct mw_outfile *file = cookie;
	size_t done = 0;

	while (done < size && !file->errnum) {
		ssize_t wrote = write(file->fd, bytes + done, size - done);

		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote < 0 && errno != EINTR)
			file->errnum = errno;
	}
	return (ssize_t)done;
}

/* rename would replace a file that its owner has protected from being written. */
static struct mw_error *check_existing(const char *name, const struct stat *info)
{
	if (S_ISDIR(info->st_mode))
		return cannot_write(name, EISDIR);
	if (faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) != 0)
		return cannot_write(name, errno);
	return NULL;
}

/* A name that leads nowhere yet must be one that can be made: no dangling link, no trailing '/'. */
static struct mw_error *check_new(const char *name)
{
	struct mw_error *err;
	struct stat info;
	size_t length = strlen(name);

	if (lstat(name, &info) == 0) {
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "cannot write '%s': it is a symbolic link that leads nowhere",
				      name);
		return mw_error_hint(err, "Remove it, or name another file");
	}
	if (!length || name[length - 1] == '/')
		return cannot_write(name, ENOENT);
	return NULL;
}

/* In a directory as /tmp, only the owner of a file may replace it. */
static bool may_replace(const char *directory, const struct stat *file)
{
	struct stat info;

	return geteuid() == 0 || stat(directory, &info) != 0 || !(info.st_mode & S_ISVTX) || info.st_uid == geteuid() ||
	       file->st_uid == geteuid();
}

/* The directory part with its '/', or "./"; malloc'ed. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
}

/* A file without a name leaves nothing behind, whatever ends memwatch; not every file system has them. */
static int open_temporary(const char *directory, struct mw_outfile *file)
{
	int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	fd = mkostemp(file->temp, O_CLOEXEC);
	file->linked = fd >= 0;
	return fd;
}

static struct mw_error *open_regular(struct mw_outfile *file, const struct stat *existing)
{
	char *directory;

	/* A symbolic link stays one: the file that it leads to is replaced. */
	file->path = existing ? realpath(file->name, NULL) : strdup(file->name);
	if (!file->path)
		return cannot_write(file->name, errno);
	directory = directory_of(file->path);
	if (!directory || asprintf(&file->temp, "%s.memwatch-XXXXXX", directory) < 0) {
		file->temp = NULL;
		free(directory);
		return mw_error_nomem();
	}
	if (existing && !may_replace(directory, existing))
		errno = EPERM;
	else
		file->fd = open_temporary(directory, file);
	free(directory);
	return file->fd < 0 ? cannot_write(file->name, errno) : NULL;
}

static struct mw_error *open_stdout(struct mw_outfile *file)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return cannot_write(file->name, EBADF);
	file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return file->fd < 0 ? cannot_write(file->name, errno) : NULL;
}

static struct mw_error *open_any(struct mw_outfile *file)
{
	struct stat info;

	if (strcmp(file->name, "-") == 0)
		return open_stdout(file);
	if (stat(file->name, &info) != 0) {
		if (errno != ENOENT)
			return cannot_write(file->name, errno);
		MW_TRY(check_new(file->name));
		return open_regular(file, NULL);
	}
	MW_TRY(check_existing(file->name, &info));
	if (S_ISREG(info.st_mode))
		return open_regular(file, &info);
	file->fd = open(file->name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return file->fd < 0 ? cannot_write(file->name, errno) : NULL;
}

struct mw_error *mw_outfile_open(const char *name, struct mw_outfile **out)
{
	struct mw_outfile *file = calloc(1, sizeof(*file));
	struct mw_error *err;

	if (!file)
		return mw_error_nomem();
	file->fd = -1;
	file->name = strdup(name);
	err = file->name ? open_any(file) : mw_error_nomem();
	if (!err) {
		file->stream = fopencookie(file, "w", (cookie_io_functions_t){.write = write_all});
		err = file->stream ? NULL : mw_error_nomem();
	}
	if (err) {
		mw_outfile_abort(file);
		return err;
	}
	*out = file;
	return NULL;
}

bool mw_outfile_same(const char *name, const char *other)
{
	struct stat one, two;
	char *one_in, *two_in;
	bool same;

	if (strcmp(name, "-") == 0 || strcmp(other, "-") == 0)
		return false;
	if (stat(name, &one) == 0 || stat(other, &two) == 0)
		return stat(name, &one) == 0 && stat(other, &two) == 0 && S_ISREG(one.st_mode) &&
		       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
	one_in = directory_of(name);
	two_in = directory_of(other);
	same = one_in && two_in && strcmp(basename(name), basename(other)) == 0 && stat(one_in, &one) == 0 &&
	       stat(two_in, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
	free(one_in);
	free(two_in);
	return same;
}

FILE *mw_outfile_stream(struct mw_outfile *file)
{
	return file->stream;
}

const char *mw_outfile_partial(const struct mw_outfile *file)
{
	return file && file->linked ? file->temp : NULL;
}

/* Give a nameless file a temporary name, as only rename() replaces what is there. */
static int link_temporary(struct mw_outfile *file)
{
	size_t stem = strlen(file->temp) - 6; /* of the XXXXXX */
	char from[32];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", file->fd);
	for (unsigned attempt = 0; attempt < 1000; attempt++) {
		snprintf(file->temp + stem, 7, "%06u", ((unsigned)getpid() * 1000 + attempt) % 1000000);
		if (linkat(AT_FDCWD, from, AT_FDCWD, file->temp, AT_SYMLINK_FOLLOW) == 0) {
			file->linked = true;
			return 0;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Everything up to the last name: 0 or an errno value. */
static int finish_writing(struct mw_outfile *file)
{
	bool failed = fflush(file->stream) != 0 || ferror(file->stream);
	int fd = file->fd;

	if (failed || file->errnum)
		return file->errnum ? file->errnum : EIO;
	/* Pipes and terminals have nothing to sync, and say so. */
	if (file->path && fsync(fd) != 0)
		return errno;
	if (file->path && !file->linked && link_temporary(file) != 0)
		return errno;
	file->fd = -1;
	return close(fd) != 0 && errno != EINTR ? errno : 0;
}

struct mw_error *mw_outfile_commit(struct mw_outfile *file)
{
	int errnum = finish_writing(file);
	struct mw_error *err = NULL;

	if (!errnum && file->path) {
		if (rename(file->temp, file->path) == 0)
			file->linked = false;
		else
			errnum = errno;
	}
	if (errnum)
		err = cannot_write(file->name, errnum);
	mw_outfile_abort(file);
	return err;
}

void mw_outfile_abort(struct mw_outfile *file)
{
	if (!file)
		return;
	if (file->stream) {
		file->errnum = file->errnum ? file->errnum : ECANCELED; /* what is still buffered goes nowhere */
		fclose(file->stream);
	}
	if (file->fd >= 0)
		close(file->fd);
	if (file->linked)
		unlink(file->temp);
	free(file->name);
	free(file->path);
	free(file->temp);
	free(file);
}

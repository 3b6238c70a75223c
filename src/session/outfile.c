// SPDX-License-Identifier: MIT
/* outfile.c: where a report goes (src/session/outfile.h). */
#include "session/outfile.h"

#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mw_outfile {
	FILE *stream;
	int fd;
	int errnum;    /* of the first write that failed */
	char *name;    /* as the user said it */
	bool placed;   /* it is to get its name; else it is written directly */
	char *partial; /* where it is meanwhile; NULL: nowhere */
	struct mw_place place;
};

static struct mw_error *cannot_write(const char *name, int errnum)
{
	bool is_stdout = strcmp(name, "-") == 0;
	struct mw_error *err = is_stdout ? mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot write to standard output")
					 : mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot write '%s'", name);

	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return mw_error_hint(err, "Its directory does not exist: create it first, or give another file");
	case EISDIR:
		return mw_error_hint(err, "Name a file");
	case ENOSPC:
	case EDQUOT:
		return mw_error_hint(err, "Free some space there, or write it elsewhere");
	case EFBIG:
		return mw_error_hint(err, "Raise the limit of a file's size (ulimit -f)");
	case EPIPE:
		return mw_error_hint(err, "The program that reads it has ended");
	case EBADF:
		return mw_error_hint(err, "It is closed: redirect it");
	default:
		return mw_error_hint(err, "Give a file that you may write");
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

/* The directory part with its '/', or "./"; malloc'ed. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
}

static struct mw_error *open_descriptor(struct mw_outfile *file, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return cannot_write(file->name, EBADF);
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return file->fd < 0 ? cannot_write(file->name, errno) : NULL;
}

/* Names of descriptors of our own: what is open is written to, from where it is at. -1: it is none. */
static int descriptor_of(const char *name)
{
	static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};

	if (strcmp(name, "-") == 0 || strcmp(name, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(name, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		size_t length = strlen(directories[i]);
		size_t digits = strspn(name + (strnlen(name, length) < length ? 0 : length), "0123456789");

		if (strncmp(name, directories[i], length) == 0 && digits > 0 && digits < 6 && !name[length + digits])
			return (int)strtol(name + length, NULL, 10);
	}
	return -1;
}

static struct mw_error *open_any(struct mw_outfile *file)
{
	int fd = descriptor_of(file->name), errnum;

	if (fd >= 0)
		return open_descriptor(file, fd);
	errnum = mw_place_find(&file->place, file->name);
	if (file->place.why)
		return mw_error_hint(
			mw_error_create(MW_ERROR_SYSTEM, 0, "cannot write '%s': %s", file->name, file->place.why),
			"Remove it, or give another file");
	if (errnum)
		return cannot_write(file->name, errnum);
	file->fd = mw_place_open(&file->place);
	if (file->fd < 0)
		return cannot_write(file->name, errno);
	file->placed = file->place.kind != MW_PLACE_OPEN;
	file->partial = mw_place_partial(&file->place);
	return NULL;
}

struct mw_error *mw_outfile_open(const char *name, struct mw_outfile **out)
{
	struct mw_outfile *file = calloc(1, sizeof(*file));
	struct mw_error *err;

	if (!file)
		return mw_error_nomem();
	file->fd = file->place.dir = file->place.there = -1;
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

bool mw_outfile_is_terminal(const struct mw_outfile *file)
{
	return isatty(file->fd);
}

const char *mw_outfile_partial(const struct mw_outfile *file)
{
	return file && file->place.has_temp ? file->partial : NULL;
}

/* 0 or an errno value. */
static int finish_writing(struct mw_outfile *file)
{
	bool failed = fflush(file->stream) != 0 || ferror(file->stream);
	int fd = file->fd;

	if (failed || file->errnum)
		return file->errnum ? file->errnum : EIO;
	/* Pipes and terminals have nothing to sync, and say so. */
	if (file->placed && fsync(fd) != 0)
		return errno;
	if (file->placed) {
		int errnum = mw_place_name(&file->place, fd);

		if (errnum)
			return errnum;
	}
	file->fd = -1;
	return close(fd) != 0 && errno != EINTR ? errno : 0;
}

struct mw_error *mw_outfile_commit(struct mw_outfile *file)
{
	int errnum = finish_writing(file);
	struct mw_error *err = errnum ? cannot_write(file->name, errnum) : NULL;

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
	mw_place_deinit(&file->place);
	free(file->partial);
	free(file->name);
	free(file);
}

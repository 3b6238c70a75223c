// SPDX-License-Identifier: MIT
/* writer.c: a recording's file from its begin to its end (writer.h). */
#include "store/writer_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COPY_SIZE (1u << 18) /* bytes at a time */

/* What is to be done about it. */
static const char *remedy(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return "Its directory does not exist: create it first, or give another file by -o.";
	case EACCES:
	case EPERM:
	case EROFS:
		return "Name a file by -o in a directory that you may write to.";
	case ENOSPC:
	case EDQUOT:
		return "Free some space there, or name a file by -o where there is more.";
	case EFBIG:
		return "Raise the limit of a file's size (ulimit -f).";
	case EMFILE:
	case ENFILE:
		return "Raise the limit of open files (ulimit -n).";
	default:
		return "Name another file by -o.";
	}
}

/* `more`: what is to be said before, or "". */
static struct mw_error *cannot_write(const struct mw_store_writer *writer, int errnum, const char *more)
{
	struct mw_error *err = mw_error_create(MW_ERROR_SYSTEM, errnum, "can't write the recording %s", writer->path);

	return mw_error_hint(err, "%s%s", more, remedy(errnum));
}

static struct mw_error *refuse(const struct mw_store_writer *writer, int errnum, const char *why)
{
	return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, errnum, "can't record into %s%s%s", writer->path,
					     why ? ": " : "", why ? why : ""),
			     "Give the name of a file for the recording.");
}

static struct mw_error *open_place(struct mw_store_writer *writer)
{
	int errnum = mw_place_find(&writer->place, writer->path);

	if (writer->place.why)
		return refuse(writer, 0, writer->place.why);
	if (errnum == EISDIR)
		return refuse(writer, EISDIR, NULL);
	if (errnum)
		return cannot_write(writer, errnum, "");
	if (writer->place.kind == MW_PLACE_OPEN)
		return refuse(writer, 0, "it is not a regular file");
	writer->fd = mw_place_open(&writer->place);
	if (writer->fd < 0)
		return cannot_write(writer, errno, "");
	writer->partial = mw_place_partial(&writer->place);
	return NULL;
}

static void free_writer(struct mw_store_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	mw_place_deinit(&writer->place);
	free(writer->scratch);
	free(writer->partial);
	free(writer->path);
	free(writer);
}

/* Where a recording of that name begins to be, and nothing that writes it yet. */
static struct mw_error *open_writer(const char *path, struct mw_store_writer **out)
{
	struct mw_store_writer *writer = calloc(1, sizeof(*writer));
	struct mw_error *err;

	if (!writer)
		return mw_error_nomem();
	writer->fd = writer->place.dir = writer->place.there = -1;
	writer->path = strdup(path);
	writer->scratch = malloc(MW_STORE_CHUNK_MAX);
	err = writer->path && writer->scratch ? open_place(writer) : mw_error_nomem();
	if (err)
		free_writer(writer);
	else
		*out = writer;
	return err;
}

/* Takes the writer where that fails. */
static struct mw_error *start(struct mw_store_writer *writer, const struct mw_store_upto *begin,
			      struct mw_store_writer **out)
{
	struct mw_error *err = mw_store_queue_start(&writer->queue, writer->fd, begin);

	if (err)
		free_writer(writer);
	else
		*out = writer;
	return err;
}

struct mw_error *mw_store_create(const char *path, struct mw_store_writer **out)
{
	const struct mw_store_upto nothing = {0};
	struct mw_store_writer *writer = NULL;

	MW_TRY(open_writer(path, &writer));
	return start(writer, &nothing, out);
}

/* 0, or an errno value. */
static int copy_bytes(int from, int to, uint64_t bytes, bool (*go_on)(void *context, uint64_t done, uint64_t total),
		      void *context)
{
	char *buffer = malloc(COPY_SIZE);
	int errnum = buffer ? 0 : ENOMEM;

	for (uint64_t done = 0; done < bytes && !errnum;) {
		size_t size = bytes - done < COPY_SIZE ? (size_t)(bytes - done) : COPY_SIZE;
		ssize_t got = pread(from, buffer, size, (off_t)done);

		if (go_on && !go_on(context, done, bytes))
			errnum = ECANCELED;
		else if (got <= 0)
			errnum = got < 0 ? errno : EIO;
		for (ssize_t put = 0; put < got && !errnum;) {
			ssize_t wrote = pwrite(to, buffer + put, (size_t)(got - put), (off_t)done + put);

			if (wrote < 0 && errno != EINTR)
				errnum = errno;
			put += wrote > 0 ? wrote : 0;
		}
		done += got > 0 ? (uint64_t)got : 0;
	}
	free(buffer);
	return errnum;
}

/* The descriptor is one to write to; and what it leads to may have no name. */
static int open_to_read(int fd)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return open(name, O_RDONLY | O_CLOEXEC);
}

struct mw_error *mw_store_copy(struct mw_store_writer *from, const struct mw_store_upto *upto, const char *path,
			       bool (*go_on)(void *context, uint64_t done, uint64_t total), void *context,
			       struct mw_store_writer **out)
{
	struct mw_store_writer *writer = NULL;
	int source, errnum;

	MW_TRY(open_writer(path, &writer));
	source = open_to_read(from->fd);
	errnum = source < 0 ? errno : copy_bytes(source, writer->fd, upto->bytes, go_on, context);
	if (source >= 0)
		close(source);
	if (errnum) {
		struct mw_error *err = cannot_write(writer, errnum, "");

		free_writer(writer);
		return err;
	}
	return start(writer, upto, out);
}

uint64_t mw_store_moment(struct mw_store_writer *writer)
{
	mw_store_flush(writer);
	mw_store_queue_moment(&writer->queue);
	return ++writer->moments;
}

bool mw_store_passed(struct mw_store_writer *writer, uint64_t number, struct mw_store_upto *out)
{
	return mw_store_queue_passed(&writer->queue, number, out);
}

int mw_store_broken(struct mw_store_writer *writer)
{
	return mw_store_failed(writer) ? mw_store_queue_errnum(&writer->queue) : 0;
}

void mw_store_give_up(struct mw_store_writer *writer, int errnum)
{
	mw_store_queue_fail(&writer->queue, errnum);
}

/* What was reported until now is on the disk, or it can't be. */
static void settle(struct mw_store_writer *writer)
{
	const struct timespec moment = {.tv_nsec = 200000};

	mw_store_flush(writer);
	while (!mw_store_failed(writer) && !mw_store_queue_idle(&writer->queue))
		nanosleep(&moment, NULL);
}

struct mw_error *mw_store_publish(struct mw_store_writer *writer)
{
	int errnum;

	if (writer->published)
		return NULL;
	/* An old recording of that name is worth more than one that can't be written. */
	settle(writer);
	if (mw_store_failed(writer))
		return cannot_write(writer, mw_store_queue_errnum(&writer->queue),
				    "What stood there before is as it was. ");
	errnum = mw_place_name(&writer->place, writer->fd);
	if (errnum)
		return cannot_write(writer, errnum, "");
	writer->published = true;
	mw_place_deinit(&writer->place);
	return NULL;
}

const char *mw_store_partial(const struct mw_store_writer *writer)
{
	return writer->place.has_temp ? writer->partial : NULL;
}

uint64_t mw_store_written(const struct mw_store_writer *writer)
{
	return atomic_load(&writer->queue.written);
}

void mw_store_flush(struct mw_store_writer *writer)
{
	for (size_t i = 0; i < writer->stream_count; i++)
		if (writer->streams[i])
			mw_store_stream_flush(writer->streams[i]);
}

struct mw_error *mw_store_finish(struct mw_store_writer *writer)
{
	char good[80];
	struct stat st;
	int errnum;

	if (writer->queue.running) {
		mw_store_flush(writer);
		mw_store_queue_stop(&writer->queue, true);
	}
	errnum = writer->queue.errnum;
	if (writer->fd >= 0 && !errnum && fstat(writer->fd, &st) == 0 && writer->published && st.st_nlink == 0)
		return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, ENOENT,
						     "the recording %s was removed while it was written", writer->path),
				     "Give -o a file that nothing removes meanwhile.");
	if (writer->fd >= 0 && close(writer->fd) != 0 && !errnum)
		errnum = errno;
	writer->fd = -1;
	if (!errnum)
		return NULL;
	(void)snprintf(good, sizeof(good), "It is good up to where that happened: its first %" PRIu64 " bytes. ",
		       mw_store_written(writer));
	return cannot_write(writer, errnum, good);
}

void mw_store_destroy(struct mw_store_writer *writer)
{
	if (!writer)
		return;
	if (writer->queue.running) {
		if (!writer->published)
			mw_store_queue_fail(&writer->queue, ECANCELED);
		else
			mw_store_flush(writer);
		mw_store_queue_stop(&writer->queue, false);
	}
	for (size_t i = 0; i < writer->stream_count; i++)
		mw_store_stream_destroy(writer->streams[i]);
	free(writer->streams);
	free_writer(writer);
}

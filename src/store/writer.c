// SPDX-License-Identifier: MIT
/* writer.c: a recording's file from its begin to its end, and the thread that writes it (writer.h). */
#include "store/writer_state.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

/* --- chunks: encoded, compressed, hashed, with their headers -------------------------------------------- */

#define LEVEL     1
#define FRAME_MIN 2048u /* smaller planes are compressed together: a frame for each would cost more than it gains */

struct mw_store_chunker {
	ZSTD_CCtx *zstd;
	uint64_t sequence;
	uint8_t content[MW_STORE_CHUNK_MAX]; /* of events, before it is compressed */
	uint8_t chunk[MW_STORE_CHUNK_HEADER + MW_STORE_CHUNK_MAX];
};

/* For the chunk of that number and those that follow; NULL without memory. */
static struct mw_store_chunker *chunker_create(uint64_t first)
{
	struct mw_store_chunker *chunker = malloc(sizeof(*chunker));

	if (!chunker)
		return NULL;
	chunker->sequence = first;
	chunker->zstd = ZSTD_createCCtx();
	if (!chunker->zstd) {
		free(chunker);
		return NULL;
	}
	return chunker;
}

static void chunker_destroy(struct mw_store_chunker *chunker)
{
	if (!chunker)
		return;
	ZSTD_freeCCtx(chunker->zstd);
	free(chunker);
}

/* Compress planes into frames of their own: their bytes are of different kinds. 0: it does not get smaller. */
static size_t compress(struct mw_store_chunker *chunker, const uint8_t *content, const struct mw_store_planes *planes)
{
	uint8_t *stored = chunker->chunk + MW_STORE_CHUNK_HEADER;
	size_t used = 0, size = planes->ends[planes->count - 1];
	uint32_t begin = 0;

	for (uint32_t i = 0; i < planes->count; i++) {
		uint32_t end = planes->ends[i];
		size_t done;

		if (end == begin || (end - begin < FRAME_MIN && i + 1 < planes->count))
			continue;
		done = ZSTD_compressCCtx(chunker->zstd, stored + used, size - used, content + begin, end - begin,
					 LEVEL);
		if (ZSTD_isError(done))
			return 0;
		used += done;
		begin = end;
	}
	return used < size ? used : 0;
}

static size_t chunker_finish(struct mw_store_chunker *chunker, struct mw_store_chunk *chunk, const uint8_t *content,
			     const struct mw_store_planes *planes, const uint8_t **out)
{
	uint8_t *stored = chunker->chunk + MW_STORE_CHUNK_HEADER;
	size_t compressed = compress(chunker, content, planes);

	chunk->raw_size = planes->ends[planes->count - 1];
	chunk->coding = compressed ? MW_STORE_ZSTD : MW_STORE_RAW;
	chunk->stored_size = compressed ? (uint32_t)compressed : chunk->raw_size;
	if (!compressed)
		memcpy(stored, content, chunk->raw_size);
	chunk->sequence = chunker->sequence++;
	mw_store_pack_chunk(chunk, stored, chunker->chunk);
	*out = chunker->chunk;
	return MW_STORE_CHUNK_HEADER + chunk->stored_size;
}

/* Returns the size of the chunk at *out, which is good until the next call. */
static size_t chunker_make(struct mw_store_chunker *chunker, const struct mw_store_job *job, const uint8_t **out)
{
	struct mw_store_chunk chunk = {.type = job->type, .process = job->process, .count = job->count};
	struct mw_store_planes planes = {.ends = {job->size}, .count = 1};

	if (!mw_store_is_events(job->type))
		return chunker_finish(chunker, &chunk, job->bytes, &planes, out);
	mw_store_columns_encode(job->bytes, job->count, chunker->content, &planes);
	return chunker_finish(chunker, &chunk, chunker->content, &planes, out);
}

/* The chunk that ends a recording. */
static size_t chunker_close(struct mw_store_chunker *chunker, const uint8_t **out)
{
	const union mw_store_fact close = {.chunks = chunker->sequence};
	struct mw_store_chunk chunk = {.type = MW_STORE_CLOSE, .count = 1};
	struct mw_store_planes planes = {.count = 1};

	planes.ends[0] = (uint32_t)mw_store_encode(MW_STORE_CLOSE, &close, chunker->content);
	return chunker_finish(chunker, &chunk, chunker->content, &planes, out);
}

/* --- the queue and its thread ---------------------------------------------------------------------------- */

#define MOMENT 0 /* the type of a job that is no chunk */

/* Nothing is to be written any more. */
static void queue_fail(struct mw_store_queue *queue, int errnum)
{
	pthread_mutex_lock(&queue->lock);
	if (!queue->errnum)
		queue->errnum = errnum;
	pthread_mutex_unlock(&queue->lock);
	atomic_store(&queue->failed, true);
}

/* All of it or nothing: what is left of a chunk that does not fit is taken off again. */
static void write_all(struct mw_store_queue *queue, const uint8_t *bytes, size_t size)
{
	uint64_t begin = atomic_load(&queue->written);

	if (mw_write_at(queue->fd, bytes, size, begin)) {
		atomic_store(&queue->written, begin + size);
		return;
	}
	queue_fail(queue, errno);
	/* Where that fails the reader finds a chunk that is cut off, and says so. */
	if (ftruncate(queue->fd, (off_t)begin) != 0)
		return;
}

/* Wait for the next job. False: there are no more. */
static bool take_job(struct mw_store_queue *queue, struct mw_store_job *job)
{
	bool there;

	pthread_mutex_lock(&queue->lock);
	while (queue->count == 0 && !queue->stopping)
		pthread_cond_wait(&queue->changed, &queue->lock);
	there = queue->count > 0;
	if (there)
		*job = queue->jobs[queue->first];
	pthread_mutex_unlock(&queue->lock);
	return there;
}

/* The first job is done: its buffer is free again, and there is room for another. */
static void drop_job(struct mw_store_queue *queue, const struct mw_store_job *job)
{
	void *bytes = job->bytes;

	pthread_mutex_lock(&queue->lock);
	if (mw_store_is_events(job->type) && queue->idle_count < MW_STORE_QUEUE_MAX) {
		queue->idle[queue->idle_count++] = bytes;
		bytes = NULL;
	}
	queue->first = (queue->first + 1) % MW_STORE_QUEUE_MAX;
	queue->count--;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	free(bytes);
}

static void note_moment(struct mw_store_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->passed++;
	queue->upto.bytes = atomic_load(&queue->written);
	queue->upto.chunks = queue->chunker->sequence;
	pthread_mutex_unlock(&queue->lock);
}

static void *run(void *context)
{
	struct mw_store_queue *queue = context;
	uint8_t header[MW_STORE_FILE_HEADER];
	const uint8_t *chunk;
	struct mw_store_job job;
	size_t size;

	pthread_setname_np(pthread_self(), "memwatch-store");
	if (!atomic_load(&queue->written)) {
		mw_store_pack_file(header);
		write_all(queue, header, sizeof(header));
	}
	while (take_job(queue, &job)) {
		if (job.type == MOMENT) {
			note_moment(queue);
		} else if (!atomic_load(&queue->failed)) {
			size = chunker_make(queue->chunker, &job, &chunk);
			write_all(queue, chunk, size);
		}
		drop_job(queue, &job);
	}
	if (queue->close && !atomic_load(&queue->failed)) {
		size = chunker_close(queue->chunker, &chunk);
		write_all(queue, chunk, size);
	}
	return NULL;
}

/* Begin a file: the thread writes its header; or go on with one whose good part is `begin`, where that is not 0.
 * Where that fails there is nothing to stop. */
static struct mw_error *queue_start(struct mw_store_queue *queue, int fd, const struct mw_store_upto *begin)
{
	int errnum;

	queue->fd = fd;
	atomic_store(&queue->written, begin->bytes);
	queue->chunker = chunker_create(begin->chunks);
	if (!queue->chunker)
		return mw_error_nomem();
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
	/* Signals are others' business; and one for a file that grows too large must not end us. */
	errnum = mw_thread_create(&queue->thread, NULL, run, queue);
	if (!errnum) {
		queue->running = true;
		return NULL;
	}
	chunker_destroy(queue->chunker);
	return mw_error_create(MW_ERROR_SYSTEM, errnum, "can't start the thread that writes the recording");
}

struct mw_event *mw_store_queue_buffer(struct mw_store_queue *queue)
{
	struct mw_event *buffer = NULL;

	pthread_mutex_lock(&queue->lock);
	if (queue->idle_count)
		buffer = queue->idle[--queue->idle_count];
	pthread_mutex_unlock(&queue->lock);
	return buffer ? buffer : malloc(MW_STORE_EVENTS_MAX * sizeof(*buffer));
}

void mw_store_queue_put(struct mw_store_queue *queue, struct mw_store_job job)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->count == MW_STORE_QUEUE_MAX)
		pthread_cond_wait(&queue->changed, &queue->lock);
	queue->jobs[(queue->first + queue->count++) % MW_STORE_QUEUE_MAX] = job;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

/* Has all been written that was handed over, the header as well? */
static bool queue_idle(struct mw_store_queue *queue)
{
	bool empty;

	pthread_mutex_lock(&queue->lock);
	empty = queue->count == 0;
	pthread_mutex_unlock(&queue->lock);
	return empty && atomic_load(&queue->written) >= MW_STORE_FILE_HEADER;
}

/* Write what is there, also the end where `close` says so, and end the thread. Once; not where it never started. */
static void queue_stop(struct mw_store_queue *queue, bool close)
{
	if (!queue->running)
		return;
	pthread_mutex_lock(&queue->lock);
	queue->stopping = true;
	queue->close = close;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(queue->thread, NULL);
	queue->running = false;
	while (queue->idle_count)
		free(queue->idle[--queue->idle_count]);
	chunker_destroy(queue->chunker);
	pthread_cond_destroy(&queue->changed);
	pthread_mutex_destroy(&queue->lock);
}

/* --- the file -------------------------------------------------------------------------------------------- */

#define COPY_SIZE (1u << 18) /* bytes at a time */

/* What is to be done about it. */
static const char *remedy(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return "Its directory does not exist: create it first, or give another file by -o";
	case EACCES:
	case EPERM:
	case EROFS:
		return "Name a file by -o in a directory that you may write to";
	case ENOSPC:
	case EDQUOT:
		return "Free some space there, or name a file by -o where there is more";
	case EFBIG:
		return "Raise the limit of a file's size (ulimit -f)";
	case EMFILE:
	case ENFILE:
		return "Raise the limit of open files (ulimit -n)";
	default:
		return "Name another file by -o";
	}
}

/* `more`: what is to be said before, or "". */
static struct mw_error *cannot_write(const struct mw_store_writer *writer, int errnum, const char *more)
{
	struct mw_error *err = mw_error_create(MW_ERROR_SYSTEM, errnum, "can't write the recording '%s'", writer->path);

	return mw_error_hint(err, "%s%s", more, remedy(errnum));
}

static struct mw_error *refuse(const struct mw_store_writer *writer, int errnum, const char *why)
{
	return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, errnum, "can't record into '%s'%s%s", writer->path,
					     why ? ": " : "", why ? why : ""),
			     "Give the name of a file for the recording");
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
	/* Tells readers that more will come. */
	(void)flock(writer->fd, LOCK_EX | LOCK_NB);
	writer->partial = mw_place_partial(&writer->place);
	return NULL;
}

static void destroy_stream(struct mw_store_stream *stream)
{
	if (!stream)
		return;
	for (size_t type = 0; type < MW_STORE_TYPE_COUNT; type++)
		free(stream->open[type].bytes);
	free(stream->events);
	free(stream->unused);
	free(stream->names);
	free(stream);
}

static void free_writer(struct mw_store_writer *writer)
{
	for (size_t i = 0; i < writer->stream_count; i++)
		destroy_stream(writer->streams[i]);
	free(writer->streams);
	if (writer->fd >= 0)
		close(writer->fd);
	mw_place_deinit(&writer->place);
	free(writer->scratch);
	free(writer->partial);
	free(writer->path);
	free(writer);
}

static void drop_writer(struct mw_store_writer **writer)
{
	if (*writer)
		free_writer(*writer);
}

/* Where a recording of that name begins to be, and nothing that writes it yet; *out is to be freed on failure as well. */
static struct mw_error *open_writer(const char *path, struct mw_store_writer **out)
{
	struct mw_store_writer *writer = *out = calloc(1, sizeof(*writer));

	if (!writer)
		return mw_error_nomem();
	writer->fd = writer->place.dir = writer->place.there = -1;
	writer->path = strdup(path);
	writer->scratch = malloc(MW_STORE_CHUNK_MAX);
	return writer->path && writer->scratch ? open_place(writer) : mw_error_nomem();
}

struct mw_error *mw_store_create(const char *path, struct mw_store_writer **out)
{
	MW_CLEANUP(drop_writer) struct mw_store_writer *writer = NULL;
	const struct mw_store_upto nothing = {0};

	MW_TRY(open_writer(path, &writer));
	MW_TRY(queue_start(&writer->queue, writer->fd, &nothing));
	*out = MW_TAKE(writer);
	return NULL;
}

/* 0, or an errno value. */
static int copy_bytes(int from, int to, uint64_t bytes, bool (*go_on)(void *context, uint64_t done, uint64_t total),
		      void *context)
{
	MW_FREE char *buffer = malloc(COPY_SIZE);

	if (!buffer)
		return ENOMEM;
	for (uint64_t done = 0; done < bytes; done += COPY_SIZE) {
		size_t size = bytes - done < COPY_SIZE ? (size_t)(bytes - done) : COPY_SIZE;
		ssize_t got;

		if (go_on && !go_on(context, done, bytes))
			return ECANCELED;
		got = mw_read_at(from, buffer, size, done);
		if (got != (ssize_t)size)
			return got < 0 ? errno : EIO;
		if (!mw_write_at(to, buffer, size, done))
			return errno;
	}
	return 0;
}

/* The descriptor is one to write to; and what it leads to may have no name. */
int mw_store_reopen(const struct mw_store_writer *writer)
{
	return open(mw_path("/proc/self/fd/%d", writer->fd).text, O_RDONLY | O_CLOEXEC);
}

struct mw_error *mw_store_copy(struct mw_store_writer *from, const struct mw_store_upto *upto, const char *path,
			       bool (*go_on)(void *context, uint64_t done, uint64_t total), void *context,
			       struct mw_store_writer **out)
{
	MW_CLEANUP(drop_writer) struct mw_store_writer *writer = NULL;
	MW_CLOSE int source = mw_store_reopen(from);
	int errnum = source < 0 ? errno : 0;

	MW_TRY(open_writer(path, &writer));
	if (!errnum)
		errnum = copy_bytes(source, writer->fd, upto->bytes, go_on, context);
	if (errnum)
		return cannot_write(writer, errnum, "");
	MW_TRY(queue_start(&writer->queue, writer->fd, upto));
	*out = MW_TAKE(writer);
	return NULL;
}

uint64_t mw_store_moment(struct mw_store_writer *writer)
{
	mw_store_flush(writer);
	mw_store_queue_put(&writer->queue, (struct mw_store_job){.type = MOMENT});
	return ++writer->moments;
}

bool mw_store_passed(struct mw_store_writer *writer, uint64_t number, struct mw_store_upto *out)
{
	struct mw_store_queue *queue = &writer->queue;
	bool passed;

	pthread_mutex_lock(&queue->lock);
	passed = queue->passed >= number && !queue->errnum;
	if (passed)
		*out = queue->upto;
	pthread_mutex_unlock(&queue->lock);
	return passed;
}

int mw_store_broken(struct mw_store_writer *writer)
{
	int errnum;

	if (!mw_store_failed(writer))
		return 0;
	pthread_mutex_lock(&writer->queue.lock);
	errnum = writer->queue.errnum;
	pthread_mutex_unlock(&writer->queue.lock);
	return errnum;
}

void mw_store_give_up(struct mw_store_writer *writer, int errnum)
{
	queue_fail(&writer->queue, errnum);
}

/* What was reported until now is on the disk, or it can't be. */
static void settle(struct mw_store_writer *writer)
{
	const struct timespec moment = {.tv_nsec = 200000};

	mw_store_flush(writer);
	while (!mw_store_failed(writer) && !queue_idle(&writer->queue))
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
		return cannot_write(writer, mw_store_broken(writer), "What stood there before is as it was. ");
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

struct mw_error *mw_store_finish(struct mw_store_writer *writer)
{
	char good[80];
	struct stat st;
	int errnum;

	if (writer->queue.running) {
		mw_store_flush(writer);
		queue_stop(&writer->queue, true);
	}
	errnum = writer->queue.errnum;
	if (writer->fd >= 0 && !errnum && fstat(writer->fd, &st) == 0 && writer->published && st.st_nlink == 0)
		return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, ENOENT,
						     "the recording '%s' was removed while it was written",
						     writer->path),
				     "Give -o a file that nothing removes meanwhile");
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
			queue_fail(&writer->queue, ECANCELED);
		else
			mw_store_flush(writer);
		queue_stop(&writer->queue, false);
	}
	free_writer(writer);
}

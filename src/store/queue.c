// SPDX-License-Identifier: MIT
/* queue.c: the writer's thread (queue.h). */
#include "store/queue.h"

#include "store/bytes.h"
#include "store/columns.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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
static struct mw_store_chunker *store_chunker_create(uint64_t first)
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

static void store_chunker_destroy(struct mw_store_chunker *chunker)
{
	if (!chunker)
		return;
	ZSTD_freeCCtx(chunker->zstd);
	free(chunker);
}

/* How many chunks stand before the next one. */
static uint64_t store_chunker_count(const struct mw_store_chunker *chunker)
{
	return chunker->sequence;
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

static size_t finish(struct mw_store_chunker *chunker, struct mw_store_chunk *chunk, const uint8_t *content,
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
static size_t store_chunker_make(struct mw_store_chunker *chunker, const struct mw_store_job *job, const uint8_t **out)
{
	struct mw_store_chunk chunk = {.type = job->type, .process = job->process, .count = job->count};
	struct mw_store_planes planes = {.ends = {job->size}, .count = 1};

	if (job->type != MW_STORE_EVENTS)
		return finish(chunker, &chunk, job->bytes, &planes, out);
	mw_store_columns_encode(job->bytes, job->count, chunker->content, &planes);
	return finish(chunker, &chunk, chunker->content, &planes, out);
}

/* The chunk that ends a recording. */
static size_t store_chunker_close(struct mw_store_chunker *chunker, const uint8_t **out)
{
	struct mw_store_chunk chunk = {.type = MW_STORE_CLOSE, .count = 1};
	uint8_t record[16];
	struct mw_store_put put = {record + 1, record + sizeof(record), false};
	struct mw_store_planes planes = {.count = 1};

	mw_store_put_number(&put, chunker->sequence);
	record[0] = (uint8_t)(put.at - record - 1);
	planes.ends[0] = (uint32_t)(put.at - record);
	return finish(chunker, &chunk, record, &planes, out);
}

/* -------------------------------------------------------------------------------------------------------- */

#define MOMENT 0 /* the type of a job that is no chunk */

static void fail(struct mw_store_queue *queue, int errnum)
{
	pthread_mutex_lock(&queue->lock);
	if (!queue->errnum)
		queue->errnum = errnum;
	pthread_mutex_unlock(&queue->lock);
	atomic_store(&queue->failed, true);
}

void mw_store_queue_fail(struct mw_store_queue *queue, int errnum)
{
	fail(queue, errnum);
}

/* All of it or nothing: what is left of a chunk that does not fit is taken off again. */
static void write_all(struct mw_store_queue *queue, const uint8_t *bytes, size_t size)
{
	uint64_t begin = atomic_load(&queue->written);
	size_t done = 0;

	while (done < size) {
		ssize_t count = pwrite(queue->fd, bytes + done, size - done, (off_t)(begin + done));
		int errnum = count < 0 ? errno : EIO;

		if (count > 0) {
			done += (size_t)count;
		} else if (errnum != EINTR) {
			fail(queue, errnum);
			/* Where that fails the reader finds a chunk that is cut off, and says so. */
			if (ftruncate(queue->fd, (off_t)begin) != 0)
				return;
			return;
		}
	}
	atomic_store(&queue->written, begin + size);
}

/* Wait for the next job. False: there are no more. */
static bool take(struct mw_store_queue *queue, struct mw_store_job *job)
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
static void drop(struct mw_store_queue *queue, const struct mw_store_job *job)
{
	void *bytes = job->bytes;

	pthread_mutex_lock(&queue->lock);
	if (job->type == MW_STORE_EVENTS && queue->idle_count < MW_STORE_QUEUE_MAX) {
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
	queue->upto.chunks = store_chunker_count(queue->chunker);
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
	while (take(queue, &job)) {
		if (job.type == MOMENT) {
			note_moment(queue);
		} else if (!atomic_load(&queue->failed)) {
			size = store_chunker_make(queue->chunker, &job, &chunk);
			write_all(queue, chunk, size);
		}
		drop(queue, &job);
	}
	if (queue->close && !atomic_load(&queue->failed)) {
		size = store_chunker_close(queue->chunker, &chunk);
		write_all(queue, chunk, size);
	}
	return NULL;
}

struct mw_error *mw_store_queue_start(struct mw_store_queue *queue, int fd, const struct mw_store_upto *begin)
{
	sigset_t all, before;
	int errnum;

	queue->fd = fd;
	atomic_store(&queue->written, begin->bytes);
	queue->chunker = store_chunker_create(begin->chunks);
	if (!queue->chunker)
		return mw_error_nomem();
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
	/* Signals are others' business; and one for a file that grows too large must not end us. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&queue->thread, NULL, run, queue);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!errnum) {
		queue->running = true;
		return NULL;
	}
	store_chunker_destroy(queue->chunker);
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

void mw_store_queue_moment(struct mw_store_queue *queue)
{
	mw_store_queue_put(queue, (struct mw_store_job){.type = MOMENT});
}

bool mw_store_queue_passed(struct mw_store_queue *queue, uint64_t number, struct mw_store_upto *out)
{
	bool passed;

	pthread_mutex_lock(&queue->lock);
	passed = queue->passed >= number && !queue->errnum;
	if (passed)
		*out = queue->upto;
	pthread_mutex_unlock(&queue->lock);
	return passed;
}

bool mw_store_queue_idle(struct mw_store_queue *queue)
{
	bool empty;

	pthread_mutex_lock(&queue->lock);
	empty = queue->count == 0;
	pthread_mutex_unlock(&queue->lock);
	return empty && atomic_load(&queue->written) >= MW_STORE_FILE_HEADER;
}

int mw_store_queue_errnum(struct mw_store_queue *queue)
{
	int errnum;

	pthread_mutex_lock(&queue->lock);
	errnum = queue->errnum;
	pthread_mutex_unlock(&queue->lock);
	return errnum;
}

void mw_store_queue_stop(struct mw_store_queue *queue, bool close)
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
	store_chunker_destroy(queue->chunker);
	pthread_cond_destroy(&queue->changed);
	pthread_mutex_destroy(&queue->lock);
}

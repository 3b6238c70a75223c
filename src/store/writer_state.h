/* SPDX-License-Identifier: MIT */
/* writer_state.h: what the writer's files share. */
#ifndef MW_STORE_WRITER_STATE_H
#define MW_STORE_WRITER_STATE_H

#include "base/place.h"
#include "store/format.h"
#include "store/writer.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- the thread that makes chunks of what it is given and writes them (writer.c) ---------------------------- */

#define MW_STORE_QUEUE_MAX 8u

/* What becomes one chunk. `bytes` is the queue's: MW_STORE_EVENTS_MAX events, or records as they stand. */
struct mw_store_job {
	void *bytes;
	uint32_t size; /* of the records, bytes */
	uint32_t count;
	uint32_t process;
	uint16_t type;
};

struct mw_store_chunker;

struct mw_store_queue {
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct mw_store_job jobs[MW_STORE_QUEUE_MAX];
	unsigned int first, count;
	struct mw_event *idle[MW_STORE_QUEUE_MAX]; /* buffers of events to be used again */
	unsigned int idle_count;
	bool stopping, close;      /* no more jobs come; … and the recording is whole */
	uint64_t passed;           /* how many moments have been come to … */
	struct mw_store_upto upto; /* … and what was written when the last of them was */
	int errnum;                /* why writing failed */
	/* Without the lock. */
	atomic_bool failed;       /* nothing is taken any more */
	_Atomic uint64_t written; /* bytes of the file that are good */
	/* The thread's own. */
	int fd;
	struct mw_store_chunker *chunker;
};

/* Room for MW_STORE_EVENTS_MAX events, for a job to take; NULL without memory. */
struct mw_event *mw_store_queue_buffer(struct mw_store_queue *queue);
/* Hand over a job, as soon as there is room. */
void mw_store_queue_put(struct mw_store_queue *queue, struct mw_store_job job);

/* --- what one process tells, until there is enough for a chunk (stream.c) ------------------------------------- */

/* Records of one type, until they are a chunk. */
struct mw_store_open {
	uint8_t *bytes;
	size_t size, capacity;
	uint32_t count;
};

/* A process's part of a recording. */
struct mw_store_stream {
	struct mw_store_writer *writer;
	uint32_t number;
	struct mw_event *events; /* NULL: none yet */
	uint32_t event_count;
	bool settling; /* they are later than the window */
	struct mw_store_open open[MW_STORE_TYPE_COUNT];
	const struct mw_event_sink *inner; /* NULL: it has no sink */
	uint32_t stack_count;              /* lowest number not written */
	uint32_t *unused;                  /* numbers of stacks below that were left out by the inner sink */
	size_t unused_count, unused_capacity;
	uint32_t interval_count; /* highest number that was written */
	uint64_t *names;         /* hashes of the threads' names, by their number; 0: not written */
	size_t name_count, name_capacity;
};

struct mw_store_writer {
	char *path, *partial; /* as the user named it; where it is before it is published, or NULL */
	bool published;
	struct mw_place place;
	int fd;
	struct mw_store_queue queue;
	struct mw_store_stream **streams; /* by number; NULL: nothing told of it */
	size_t stream_count;
	uint64_t moments; /* that were handed over */
	uint8_t *scratch; /* for one record, MW_STORE_CHUNK_MAX bytes */
};

static inline bool mw_store_failed(struct mw_store_writer *writer)
{
	return atomic_load_explicit(&writer->queue.failed, memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * queue.h: the thread that makes chunks of what it is given and writes them, from a short queue of buffers.
 *
 * All but the thread itself is to be called from one thread.
 */
#ifndef MW_STORE_QUEUE_H
#define MW_STORE_QUEUE_H

#include "store/format.h"
#include "store/writer.h"

#include <pthread.h>
#include <stdatomic.h>

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

/* Begin a file: the thread writes its header; or go on with one whose good part is `begin`, where that is not 0.
 * Errors: SYSTEM, MEMORY; then there is nothing to stop. */
struct mw_error *mw_store_queue_start(struct mw_store_queue *queue, int fd,
				      const struct mw_store_upto *begin) MW_MUST_CHECK;
/* Room for MW_STORE_EVENTS_MAX events, for a job to take; NULL without memory. */
struct mw_event *mw_store_queue_buffer(struct mw_store_queue *queue);
/* Hand over a job, as soon as there is room. */
void mw_store_queue_put(struct mw_store_queue *queue, struct mw_store_job job);
/* Hand over a moment: what was written up to then will be known. */
void mw_store_queue_moment(struct mw_store_queue *queue);
/* Has the moment of that number (from 1) been come to, and nothing failed? What was written when it was, or a later
 * one. From any thread. */
bool mw_store_queue_passed(struct mw_store_queue *queue, uint64_t number, struct mw_store_upto *out);
/* Has all been written that was handed over, the header as well? */
bool mw_store_queue_idle(struct mw_store_queue *queue);
/* Why writing failed; 0: it has not. */
int mw_store_queue_errnum(struct mw_store_queue *queue);
/* Nothing is to be written any more, because of `errnum`. */
void mw_store_queue_fail(struct mw_store_queue *queue, int errnum);
/* Write what is there, also the end where `close` says so, and end the thread. Once; NULL-safe where never started. */
void mw_store_queue_stop(struct mw_store_queue *queue, bool close);

#endif

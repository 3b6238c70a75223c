/* SPDX-License-Identifier: MIT */
/* writer_state.h: what the writer's files share. */
#ifndef MW_STORE_WRITER_STATE_H
#define MW_STORE_WRITER_STATE_H

#include "base/place.h"
#include "store/encode.h"
#include "store/queue.h"
#include "store/writer.h"

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
	struct mw_store_open open[MW_STORE_TYPE_COUNT];
	const struct mw_event_sink *inner; /* NULL: it has no sink */
	uint32_t stack_count;              /* lowest number not told */
	uint32_t *unused;                  /* numbers of stacks below that were left out by the inner sink */
	size_t unused_count, unused_capacity;
	uint64_t *names; /* hashes of the threads' names, by their number; 0: not told */
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

/* NULL where nothing is to be reported any more, or not of such a process. */
struct mw_store_stream *mw_store_stream_of(struct mw_store_writer *writer, uint32_t process);
void mw_store_stream_destroy(struct mw_store_stream *stream);
/* Put a record where its chunk begins to be. Of its list at most `items` items, fewer where it is too long. */
void mw_store_stream_emit(struct mw_store_stream *stream, enum mw_store_chunk_type type, mw_store_encoder encode,
			  const void *fact, size_t items);
void mw_store_stream_events(struct mw_store_stream *stream, const struct mw_event *events, size_t count);
/* Hand over the events, and before them what they may name. */
void mw_store_stream_close_events(struct mw_store_stream *stream);
void mw_store_stream_flush(struct mw_store_stream *stream);

static inline bool mw_store_failed(struct mw_store_writer *writer)
{
	return atomic_load_explicit(&writer->queue.failed, memory_order_relaxed);
}

#endif

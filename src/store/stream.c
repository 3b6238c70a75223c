// SPDX-License-Identifier: MIT
/* stream.c: what one process tells, until there is enough for a chunk (writer_state.h). */
#include "store/writer_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MIN    4096u
#define LENGTH_SIZE 3u /* bytes before a record: as many as a number below MW_STORE_CHUNK_MAX takes */

static struct mw_store_stream *add_stream(struct mw_store_writer *writer, uint32_t process)
{
	struct mw_store_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->writer = writer;
	stream->number = process;
	writer->streams[process] = stream;
	return stream;
}

struct mw_store_stream *mw_store_stream_of(struct mw_store_writer *writer, uint32_t process)
{
	struct mw_store_stream *stream = NULL;

	if (mw_store_failed(writer) || process >= MW_STORE_PROCESS_MAX)
		return NULL;
	if (process >= writer->stream_count) {
		size_t count = process < 8 ? 8 : 2 * (size_t)process;
		struct mw_store_stream **streams =
			reallocarray(writer->streams, count, sizeof(struct mw_store_stream *));

		if (streams) {
			memset(streams + writer->stream_count, 0, (count - writer->stream_count) * sizeof(*streams));
			writer->streams = streams;
			writer->stream_count = count;
		}
	}
	if (process < writer->stream_count)
		stream = writer->streams[process] ? writer->streams[process] : add_stream(writer, process);
	if (!stream)
		mw_store_queue_fail(&writer->queue, ENOMEM);
	return stream;
}

void mw_store_stream_destroy(struct mw_store_stream *stream)
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

static void close_records(struct mw_store_stream *stream, enum mw_store_chunk_type type)
{
	struct mw_store_open *open = &stream->open[type];

	if (open->count)
		mw_store_queue_put(&stream->writer->queue, (struct mw_store_job){.bytes = open->bytes,
										 .size = (uint32_t)open->size,
										 .count = open->count,
										 .process = stream->number,
										 .type = (uint16_t)type});
	else
		free(open->bytes);
	*open = (struct mw_store_open){0};
}

void mw_store_stream_close_events(struct mw_store_stream *stream)
{
	for (enum mw_store_chunk_type type = MW_STORE_TARGETS; type < MW_STORE_EVENTS; type++)
		close_records(stream, type);
	if (!stream->event_count)
		return;
	mw_store_queue_put(&stream->writer->queue, (struct mw_store_job){.bytes = stream->events,
									 .count = stream->event_count,
									 .process = stream->number,
									 .type = MW_STORE_EVENTS});
	stream->events = NULL;
	stream->event_count = 0;
}

void mw_store_stream_flush(struct mw_store_stream *stream)
{
	mw_store_stream_close_events(stream);
	for (enum mw_store_chunk_type type = MW_STORE_EVENTS + 1; type < MW_STORE_CLOSE; type++)
		close_records(stream, type);
}

static bool make_room(struct mw_store_open *open, size_t size)
{
	size_t capacity = open->capacity ? open->capacity : OPEN_MIN;
	uint8_t *bytes;

	while (capacity < open->size + size)
		capacity *= 2;
	if (capacity == open->capacity)
		return true;
	bytes = realloc(open->bytes, capacity);
	if (!bytes)
		return false;
	open->bytes = bytes;
	open->capacity = capacity;
	return true;
}

void mw_store_stream_emit(struct mw_store_stream *stream, enum mw_store_chunk_type type, mw_store_encoder encode,
			  const void *fact, size_t items)
{
	struct mw_store_writer *writer = stream->writer;
	struct mw_store_open *open = &stream->open[type];
	struct mw_store_put record, whole;
	size_t size;

	do {
		record = (struct mw_store_put){writer->scratch, writer->scratch + MW_STORE_CHUNK_MAX - LENGTH_SIZE,
					       false};
		encode(&record, fact, items);
		items /= 2;
	} while (record.full && items);
	if (record.full)
		return;
	size = (size_t)(record.at - writer->scratch);
	if (open->size + size + LENGTH_SIZE > MW_STORE_CHUNK_MAX)
		close_records(stream, type);
	if (!make_room(open, size + LENGTH_SIZE)) {
		mw_store_queue_fail(&writer->queue, ENOMEM);
		return;
	}
	whole = (struct mw_store_put){open->bytes + open->size, open->bytes + open->capacity, false};
	mw_store_put_blob(&whole, writer->scratch, size);
	open->size = (size_t)(whole.at - open->bytes);
	open->count++;
}

void mw_store_stream_events(struct mw_store_stream *stream, const struct mw_event *events, size_t count)
{
	while (count) {
		size_t room = MW_STORE_EVENTS_MAX - stream->event_count;
		size_t some = count < room ? count : room;

		if (!stream->events) {
			stream->events = mw_store_queue_buffer(&stream->writer->queue);
			if (!stream->events) {
				mw_store_queue_fail(&stream->writer->queue, ENOMEM);
				return;
			}
		}
		memcpy(stream->events + stream->event_count, events, some * sizeof(*events));
		stream->event_count += (uint32_t)some;
		events += some;
		count -= some;
		if (stream->event_count == MW_STORE_EVENTS_MAX)
			mw_store_stream_close_events(stream);
	}
}

// SPDX-License-Identifier: MIT
/* sink.c: tells the recording what an engine tells its sink (writer.h). */
#include "store/writer_state.h"

#include "base/vector.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

static void out_of_memory(struct mw_store_stream *stream)
{
	mw_store_queue_fail(&stream->writer->queue, ENOMEM);
}

static void emit_stack(struct mw_store_stream *stream, uint32_t number, const struct mw_raw_stack *stack)
{
	const struct mw_store_numbered numbered = {number, stack};

	mw_store_stream_emit(stream, MW_STORE_STACKS, mw_store_encode_stack, &numbered, SIZE_MAX);
}

/* The inner sink gave numbers to stacks of its own: say so, for readers know by its absence that a stack is missing. */
static void skip_stacks(struct mw_store_stream *stream, uint32_t until)
{
	for (; stream->stack_count < until; stream->stack_count++) {
		if (!MW_VECTOR_ROOM(stream->unused, stream->unused_count, stream->unused_capacity)) {
			out_of_memory(stream);
			return;
		}
		stream->unused[stream->unused_count++] = stream->stack_count;
		emit_stack(stream, stream->stack_count, NULL);
	}
}

/* Was the number of one that had been left out? Then it no longer is. */
static bool was_unused(struct mw_store_stream *stream, uint32_t number)
{
	for (size_t i = 0; i < stream->unused_count; i++) {
		if (stream->unused[i] == number) {
			stream->unused[i] = stream->unused[--stream->unused_count];
			return true;
		}
	}
	return false;
}

static struct mw_error *take_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	struct mw_store_stream *stream = context;
	uint32_t number;

	MW_TRY(stream->inner->stack(stream->inner->context, stack, &number));
	*id = number;
	if (mw_store_failed(stream->writer))
		return NULL;
	if (number >= stream->stack_count) {
		skip_stacks(stream, number);
		stream->stack_count = number + 1;
		emit_stack(stream, number, stack);
	} else if (stream->unused_count && was_unused(stream, number)) {
		emit_stack(stream, number, stack);
	}
	return NULL;
}

static void emit_thread(struct mw_store_stream *stream, const struct mw_stored_thread *thread)
{
	uint64_t name = thread->name ? XXH64(thread->name, strlen(thread->name), 0) | 1 : 1;

	while (stream->name_count <= thread->number) {
		const struct mw_store_numbered unused = {(uint32_t)stream->name_count, NULL};

		if (!MW_VECTOR_ROOM(stream->names, stream->name_count, stream->name_capacity)) {
			out_of_memory(stream);
			return;
		}
		stream->names[stream->name_count++] = 0;
		if (unused.number != thread->number)
			mw_store_stream_emit(stream, MW_STORE_THREADS, mw_store_encode_thread, &unused, SIZE_MAX);
	}
	/* No name is no news of one that is there. */
	if (stream->names[thread->number] != name && (thread->name || !stream->names[thread->number])) {
		const struct mw_store_numbered told = {thread->number, thread};

		stream->names[thread->number] = name;
		mw_store_stream_emit(stream, MW_STORE_THREADS, mw_store_encode_thread, &told, SIZE_MAX);
	}
}

static struct mw_error *take_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	struct mw_store_stream *stream = context;
	struct mw_stored_thread thread = {.tid = tid, .name = name};

	MW_TRY(stream->inner->thread(stream->inner->context, tid, name, fresh, &thread.number));
	*number = thread.number;
	if (!mw_store_failed(stream->writer))
		emit_thread(stream, &thread);
	return NULL;
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	struct mw_store_stream *stream = context;

	MW_TRY(stream->inner->event(stream->inner->context, event));
	if (!mw_store_failed(stream->writer))
		mw_store_stream_events(stream, event, 1);
	return NULL;
}

static struct mw_error *take_events(void *context, const struct mw_event *events, size_t count)
{
	struct mw_store_stream *stream = context;

	if (stream->inner->events) {
		MW_TRY(stream->inner->events(stream->inner->context, events, count));
	} else {
		for (size_t i = 0; i < count; i++)
			MW_TRY(stream->inner->event(stream->inner->context, &events[i]));
	}
	if (!mw_store_failed(stream->writer))
		mw_store_stream_events(stream, events, count);
	return NULL;
}

static bool knows(void *context, mw_addr addr)
{
	const struct mw_store_stream *stream = context;

	return stream->inner->knows(stream->inner->context, addr);
}

struct mw_error *mw_store_sink(struct mw_store_writer *writer, uint32_t process, const struct mw_event_sink *inner,
			       struct mw_event_sink *out)
{
	struct mw_store_stream *stream;

	if (process >= MW_STORE_PROCESS_MAX)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "a recording holds at most %u processes",
				       MW_STORE_PROCESS_MAX);
	stream = mw_store_stream_of(writer, process);
	if (!stream) {
		/* Nothing is recorded any more. */
		*out = *inner;
		return NULL;
	}
	stream->inner = inner;
	*out = (struct mw_event_sink){
		.context = stream,
		.stack = take_stack,
		.thread = take_thread,
		.event = take_event,
		.events = take_events,
		.knows = inner->knows ? knows : NULL,
	};
	return NULL;
}

// SPDX-License-Identifier: MIT
/* stream.c: what the writer receives of each process: facts, and by a sink events (writer.h). */
#include "store/writer_state.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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

/* NULL where nothing is to be reported any more, or not of such a process. */
static struct mw_store_stream *stream_of(struct mw_store_writer *writer, uint32_t process)
{
	struct mw_store_stream *stream = NULL;
	size_t had = writer->stream_count;

	if (mw_store_failed(writer) || process >= MW_STORE_PROCESS_MAX)
		return NULL;
	if (MW_VECTOR_ROOM(writer->streams, process, writer->stream_count)) {
		memset(writer->streams + had, 0, (writer->stream_count - had) * sizeof(*writer->streams));
		stream = writer->streams[process] ? writer->streams[process] : add_stream(writer, process);
	}
	if (!stream)
		mw_store_give_up(writer, ENOMEM);
	return stream;
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

/* Hand over the events, and before them what they may name. */
static void close_events(struct mw_store_stream *stream)
{
	for (enum mw_store_chunk_type type = MW_STORE_TARGETS; type < MW_STORE_EVENTS; type++)
		close_records(stream, type);
	close_records(stream, MW_STORE_INTERVALS);
	if (!stream->event_count)
		return;
	mw_store_queue_put(&stream->writer->queue,
			   (struct mw_store_job){.bytes = stream->events,
						 .count = stream->event_count,
						 .process = stream->number,
						 .type = stream->settling ? MW_STORE_SETTLED : MW_STORE_EVENTS});
	stream->events = NULL;
	stream->event_count = 0;
}

/* Put a record where its chunk begins to be. */
static void put_record(struct mw_store_stream *stream, enum mw_store_chunk_type type, const union mw_store_fact *fact)
{
	struct mw_store_writer *writer = stream->writer;
	struct mw_store_open *open = &stream->open[type];
	size_t size = mw_store_encode(type, fact, writer->scratch);

	if (!size)
		return;
	if (open->size + size > MW_STORE_CHUNK_MAX)
		close_records(stream, type);
	if (!MW_VECTOR_ROOM(open->bytes, open->size + size - 1, open->capacity)) {
		mw_store_give_up(writer, ENOMEM);
		return;
	}
	memcpy(open->bytes + open->size, writer->scratch, size);
	open->size += size;
	open->count++;
}

static void put_events(struct mw_store_stream *stream, const struct mw_event *events, size_t count)
{
	while (count) {
		size_t room = MW_STORE_EVENTS_MAX - stream->event_count;
		size_t some = count < room ? count : room;

		if (!stream->events) {
			stream->events = mw_store_queue_buffer(&stream->writer->queue);
			if (!stream->events) {
				mw_store_give_up(stream->writer, ENOMEM);
				return;
			}
		}
		memcpy(stream->events + stream->event_count, events, some * sizeof(*events));
		stream->event_count += (uint32_t)some;
		events += some;
		count -= some;
		if (stream->event_count == MW_STORE_EVENTS_MAX)
			close_events(stream);
	}
}

void mw_store_flush(struct mw_store_writer *writer)
{
	for (size_t i = 0; i < writer->stream_count; i++) {
		struct mw_store_stream *stream = writer->streams[i];

		if (!stream)
			continue;
		close_events(stream);
		for (enum mw_store_chunk_type type = MW_STORE_EVENTS + 1; type < MW_STORE_CLOSE; type++)
			close_records(stream, type);
		for (enum mw_store_chunk_type type = MW_STORE_LEAKS; type < MW_STORE_TYPE_COUNT; type++)
			close_records(stream, type);
	}
}

/* --- as a receiver of facts ------------------------------------------------------------------------------ */

static struct mw_error *put_fact(struct mw_store_writer *writer, uint32_t process, enum mw_store_chunk_type type,
				 const union mw_store_fact *fact)
{
	struct mw_store_stream *stream = stream_of(writer, process);

	if (stream)
		put_record(stream, type, fact);
	return NULL;
}

/* A receiver of facts that are put as they are. */
#define PUT_FACT(name, type)                                                                                           \
	static struct mw_error *on_##name(void *context, uint32_t process, const struct mw_stored_##name *name)        \
	{                                                                                                              \
		return put_fact(context, process, type, &(const union mw_store_fact){.name = *name});                  \
	}

PUT_FACT(target, MW_STORE_TARGETS)
PUT_FACT(hook, MW_STORE_HOOKS)
PUT_FACT(module, MW_STORE_MODULES)
PUT_FACT(sample, MW_STORE_SAMPLES)
PUT_FACT(mark, MW_STORE_MARKS)
PUT_FACT(symbol, MW_STORE_SYMBOLS)
PUT_FACT(end, MW_STORE_ENDS)
PUT_FACT(leaks, MW_STORE_LEAKS)
PUT_FACT(heap, MW_STORE_HEAP)
PUT_FACT(change, MW_STORE_CHANGE)
PUT_FACT(pool, MW_STORE_POOLS)

static struct mw_error *on_before(void *context, uint32_t process, mw_addr start, mw_addr end)
{
	struct mw_store_stream *stream = stream_of(context, process);

	if (!stream)
		return NULL;
	/* It was not there yet for the events received up to now. */
	if (stream->event_count)
		close_events(stream);
	put_record(stream, MW_STORE_BEFORE, &(const union mw_store_fact){.before = {start, end}});
	return NULL;
}

static struct mw_error *on_mapping(void *context, uint32_t process, enum mw_stored_moment moment,
				   const struct mw_stored_mapping *mapping)
{
	const union mw_store_fact fact = {.mapping = {moment, *mapping}};

	return put_fact(context, process, MW_STORE_MAPPINGS, &fact);
}

static struct mw_error *on_settle(void *context, uint32_t process)
{
	struct mw_store_stream *stream = stream_of(context, process);

	if (!stream || stream->settling)
		return NULL;
	close_events(stream);
	stream->settling = true;
	return NULL;
}

struct mw_store_visitor mw_store_receiver(struct mw_store_writer *writer)
{
	return MW_STORE_VISITOR(writer);
}

/* --- as a sink ------------------------------------------------------------------------------------------- */

static void emit_stack(struct mw_store_stream *stream, uint32_t number, const struct mw_raw_stack *stack)
{
	union mw_store_fact fact = {.stack = {.number = number, .used = stack}};

	if (stack)
		fact.stack.stack = *stack;
	put_record(stream, MW_STORE_STACKS, &fact);
}

/* The inner sink gave numbers to stacks of its own: say so, for readers know by its absence that a stack is missing. */
static void skip_stacks(struct mw_store_stream *stream, uint32_t until)
{
	for (; stream->stack_count < until; stream->stack_count++) {
		if (!MW_VECTOR_ROOM(stream->unused, stream->unused_count, stream->unused_capacity)) {
			mw_store_give_up(stream->writer, ENOMEM);
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
		const union mw_store_fact unused = {.thread.thread.number = (uint32_t)stream->name_count};

		if (!MW_VECTOR_ROOM(stream->names, stream->name_count, stream->name_capacity)) {
			mw_store_give_up(stream->writer, ENOMEM);
			return;
		}
		stream->names[stream->name_count++] = 0;
		if (unused.thread.thread.number != thread->number)
			put_record(stream, MW_STORE_THREADS, &unused);
	}
	/* No name is no news of one that is there. */
	if (stream->names[thread->number] != name && (thread->name || !stream->names[thread->number])) {
		const union mw_store_fact told = {.thread = {*thread, true}};

		stream->names[thread->number] = name;
		put_record(stream, MW_STORE_THREADS, &told);
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
		put_events(stream, event, 1);
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
		put_events(stream, events, count);
	return NULL;
}

static bool knows(void *context, mw_addr addr)
{
	const struct mw_store_stream *stream = context;

	return stream->inner->knows(stream->inner->context, addr);
}

static void each_block(void *context, void (*visit)(void *visitor, mw_addr addr), void *visitor)
{
	const struct mw_store_stream *stream = context;

	stream->inner->blocks(stream->inner->context, visit, visitor);
}

static struct mw_error *take_interval(void *context, uint64_t bytes, uint16_t *number)
{
	struct mw_store_stream *stream = context;

	MW_TRY(stream->inner->interval(stream->inner->context, bytes, number));
	if (*number > stream->interval_count && !mw_store_failed(stream->writer)) {
		const union mw_store_fact fact = {.interval = {*number, bytes}};

		stream->interval_count = *number;
		put_record(stream, MW_STORE_INTERVALS, &fact);
	}
	return NULL;
}

struct mw_error *mw_store_sink(struct mw_store_writer *writer, uint32_t process, const struct mw_event_sink *inner,
			       struct mw_event_sink *out)
{
	struct mw_store_stream *stream;

	if (process >= MW_STORE_PROCESS_MAX)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "a recording holds at most %u processes",
				       MW_STORE_PROCESS_MAX);
	stream = stream_of(writer, process);
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
		.blocks = inner->blocks ? each_block : NULL,
		.interval = inner->interval ? take_interval : NULL,
	};
	return NULL;
}

// SPDX-License-Identifier: MIT
/* reader.c: reads a recording, and tells what it holds (reader.h). */
#include "store/reader.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "base/thread.h"
#include "base/vector.h"
#include "store/format.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* --- the thread that reads chunks ahead of whoever tells them --------------------------------------------- */

#define AHEAD 4u /* chunks */

/* Bytes that are made anew where more are wanted. */
struct buffer {
	uint8_t *bytes;
	size_t size;
};

/* See that there are `wanted`, at least one; what was in them is lost. False without memory: then there are none. */
static bool make_room(struct buffer *buffer, size_t wanted)
{
	if (wanted < 1)
		wanted = 1;
	if (wanted <= buffer->size)
		return true;
	free(buffer->bytes);
	buffer->bytes = malloc(wanted);
	buffer->size = buffer->bytes ? wanted : 0;
	return buffer->bytes;
}

/* A step in reading: a chunk that is whole, or in the last one none. */
struct slot {
	bool last;       /* the file ends here, … */
	const char *why; /* … or there is damage, … */
	int errnum;      /* … or it can't be read */
	struct mw_store_chunk chunk;
	uint64_t end; /* of the chunk in the file */
	bool skipped; /* nobody wants its content */
	struct buffer content;
	struct buffer events; /* struct mw_event */
	struct mw_store_named named;
};

struct unpacker {
	int fd;
	uint64_t size;                    /* of the file */
	bool wanted[MW_STORE_TYPE_COUNT]; /* chunks whose content is unpacked */
	/* The thread's own. */
	uint64_t at, sequence;
	struct buffer stored;
	void *zstd;
	/* What follows: under the lock. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct slot slots[AHEAD];
	unsigned int first, count;
	bool stop;
};

static bool damage(struct slot *slot, const char *why)
{
	slot->why = why;
	return false;
}

/* Frame by frame, and nothing but zstd's frames of today: the library also reads those of its past. */
static bool decompress(ZSTD_DCtx *zstd, const uint8_t *in, size_t size, uint8_t *out, size_t wanted)
{
	size_t made = 0;

	while (size) {
		size_t frame = ZSTD_findFrameCompressedSize(in, size), done;

		if (size < 4 || mw_store_load32(in) != ZSTD_MAGICNUMBER || ZSTD_isError(frame))
			return false;
		done = ZSTD_decompressDCtx(zstd, out + made, wanted - made, in, frame);
		if (ZSTD_isError(done))
			return false;
		made += done;
		in += frame;
		size -= frame;
	}
	return made == wanted;
}

static bool trouble(struct slot *slot, int errnum)
{
	slot->errnum = errnum;
	return false;
}

static bool unpack_events(struct slot *slot)
{
	const struct mw_store_chunk *chunk = &slot->chunk;

	if (chunk->count > MW_STORE_EVENTS_MAX)
		return damage(slot, "a chunk of events has no sensible number of them");
	if (!make_room(&slot->events, chunk->count * sizeof(struct mw_event)))
		return trouble(slot, ENOMEM);
	slot->why = mw_store_columns_decode(slot->content.bytes, chunk->raw_size, chunk->count,
					    (struct mw_event *)(void *)slot->events.bytes, &slot->named);
	return !slot->why;
}

static bool unpack(struct unpacker *unpacker, struct slot *slot)
{
	const struct mw_store_chunk *chunk = &slot->chunk;

	if (chunk->coding == MW_STORE_ZSTD) {
		if (!make_room(&slot->content, chunk->raw_size))
			return trouble(slot, ENOMEM);
		if (!decompress(unpacker->zstd, unpacker->stored.bytes, chunk->stored_size, slot->content.bytes,
				chunk->raw_size))
			return damage(slot, "a chunk can't be decompressed");
	} else if (chunk->coding != MW_STORE_RAW || chunk->raw_size != chunk->stored_size) {
		return damage(slot, "a chunk is compressed in an unknown way");
	} else {
		/* Who tells it has it while the next one is read. */
		struct buffer other = slot->content;

		slot->content = unpacker->stored;
		unpacker->stored = other;
	}
	return !mw_store_is_events(chunk->type) || unpack_events(slot);
}

/* The next chunk; false: there is none. */
static bool take_next(struct unpacker *unpacker, struct slot *slot)
{
	uint8_t header[MW_STORE_CHUNK_HEADER];
	uint64_t rest = unpacker->size - unpacker->at;
	struct mw_store_chunk *chunk = &slot->chunk;
	ssize_t got;

	if (rest == 0)
		return false;
	got = mw_read_at(unpacker->fd, header, sizeof(header), unpacker->at);
	if (got < 0)
		return trouble(slot, errno);
	if (got < (ssize_t)sizeof(header))
		return damage(slot, "it ends inside a chunk");
	if (!mw_store_unpack_chunk(header, chunk))
		return damage(slot, "there are bytes that are no chunk");
	if (chunk->raw_size > MW_STORE_CHUNK_MAX || chunk->stored_size > chunk->raw_size)
		return damage(slot, "a chunk has an invalid size");
	if (chunk->sequence != unpacker->sequence)
		return damage(slot, "a chunk is missing");
	if (rest < sizeof(header) + chunk->stored_size)
		return damage(slot, "it ends inside a chunk");
	if (!make_room(&unpacker->stored, chunk->stored_size))
		return trouble(slot, ENOMEM);
	got = mw_read_at(unpacker->fd, unpacker->stored.bytes, chunk->stored_size, unpacker->at + sizeof(header));
	if (got < 0)
		return trouble(slot, errno);
	if ((uint64_t)got < chunk->stored_size)
		return damage(slot, "it ends inside a chunk");
	if (!mw_store_hash_fits(chunk, header, unpacker->stored.bytes))
		return damage(slot, "a chunk's checksum does not fit its bytes");
	unpacker->sequence++;
	unpacker->at += sizeof(header) + chunk->stored_size;
	slot->end = unpacker->at;
	slot->skipped = chunk->type >= MW_STORE_TYPE_COUNT || !unpacker->wanted[chunk->type];
	return slot->skipped || unpack(unpacker, slot);
}

static void *run(void *context)
{
	struct unpacker *unpacker = context;
	bool last;

	pthread_setname_np(pthread_self(), "memwatch-read");
	do {
		struct slot *slot = NULL;

		pthread_mutex_lock(&unpacker->lock);
		while (unpacker->count == AHEAD && !unpacker->stop)
			pthread_cond_wait(&unpacker->changed, &unpacker->lock);
		if (!unpacker->stop)
			slot = &unpacker->slots[(unpacker->first + unpacker->count) % AHEAD];
		pthread_mutex_unlock(&unpacker->lock);
		if (!slot)
			break;
		last = slot->last = !take_next(unpacker, slot);
		pthread_mutex_lock(&unpacker->lock);
		unpacker->count++;
		pthread_cond_signal(&unpacker->changed);
		pthread_mutex_unlock(&unpacker->lock);
	} while (!last);
	return NULL;
}

static void free_buffers(struct unpacker *unpacker)
{
	for (size_t i = 0; i < AHEAD; i++) {
		free(unpacker->slots[i].content.bytes);
		free(unpacker->slots[i].events.bytes);
	}
	free(unpacker->stored.bytes);
	ZSTD_freeDCtx(unpacker->zstd);
}

/* Begin to read at the first chunk; fd, size and wanted are set, all else 0. */
static struct mw_error *unpacker_start(struct unpacker *unpacker)
{
	int errnum;

	unpacker->at = MW_STORE_FILE_HEADER;
	unpacker->zstd = ZSTD_createDCtx();
	if (!unpacker->zstd)
		return mw_error_nomem();
	pthread_mutex_init(&unpacker->lock, NULL);
	pthread_cond_init(&unpacker->changed, NULL);
	errnum = mw_thread_create(&unpacker->thread, NULL, run, unpacker);
	if (!errnum)
		return NULL;
	free_buffers(unpacker);
	return mw_error_create(MW_ERROR_SYSTEM, errnum, "can't start the thread that reads the recording");
}

/* The next step, good until unpacker_drop(). */
static const struct slot *unpacker_next(struct unpacker *unpacker)
{
	const struct slot *slot;

	pthread_mutex_lock(&unpacker->lock);
	while (unpacker->count == 0)
		pthread_cond_wait(&unpacker->changed, &unpacker->lock);
	slot = &unpacker->slots[unpacker->first];
	pthread_mutex_unlock(&unpacker->lock);
	return slot;
}

static void unpacker_drop(struct unpacker *unpacker)
{
	pthread_mutex_lock(&unpacker->lock);
	unpacker->first = (unpacker->first + 1) % AHEAD;
	unpacker->count--;
	pthread_cond_signal(&unpacker->changed);
	pthread_mutex_unlock(&unpacker->lock);
}

static void unpacker_stop(struct unpacker *unpacker)
{
	pthread_mutex_lock(&unpacker->lock);
	unpacker->stop = true;
	pthread_cond_signal(&unpacker->changed);
	pthread_mutex_unlock(&unpacker->lock);
	pthread_join(unpacker->thread, NULL);
	pthread_cond_destroy(&unpacker->changed);
	pthread_mutex_destroy(&unpacker->lock);
	free_buffers(unpacker);
}

/* --- the reader ------------------------------------------------------------------------------------------ */

struct mw_store_reader {
	int fd;
	char *path;
};

/* Which numbers of stacks or threads were reported: dense, but for those that are not used. */
struct known {
	uint32_t next;    /* lowest number that nothing was said of */
	uint32_t missing; /* of those below, how many are not used */
	uint64_t *bits;   /* one a number: told */
	size_t words;     /* there is room for */
};

struct process {
	struct known stacks, threads;
	uint32_t intervals; /* the highest number */
};

/* One reading. */
struct reading {
	const struct mw_store_visitor *visitor;
	struct unpacker unpacker;
	struct process **processes; /* by number; NULL: not met */
	size_t process_room;
	uint64_t chunks; /* that were good */
	bool closed;     /* the end has been read */
	void *room;      /* for a record's lists */
	struct mw_store_state state;
};

#define MAGIC 8 /* bytes of the header that are the same in every version */

static struct mw_error *no_recording(const char *path, const char *why)
{
	return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0, "'%s' is not a recording: %s", path, why),
			     "Give a file that memwatch -o wrote");
}

bool mw_store_is_recording(const char *head, size_t size)
{
	uint8_t good[MW_STORE_FILE_HEADER];

	mw_store_pack_file(good);
	return size >= MAGIC && memcmp(head, good, MAGIC) == 0;
}

static struct mw_error *check_header(const char *path, const uint8_t *header, ssize_t size)
{
	uint8_t good[MW_STORE_FILE_HEADER];
	uint32_t version;

	mw_store_pack_file(good);
	if (size < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "can't read the recording '%s'", path);
	if (size == 0)
		return no_recording(path, "it is empty");
	if (memcmp(header, good, (size_t)(size < MAGIC ? size : MAGIC)) != 0)
		return no_recording(path, "it does not begin as one");
	if (size < (ssize_t)sizeof(good))
		return no_recording(path, "it was cut off before anything was written");
	version = mw_store_load32(header + 8);
	if (version != MW_STORE_VERSION)
		return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0,
						     "%s is a recording of version %u, and this memwatch reads version "
						     "%u",
						     path, version, MW_STORE_VERSION),
				     "Use the memwatch that wrote it, or a newer one");
	if (memcmp(header, good, sizeof(good)) != 0)
		return no_recording(path, "its first bytes are damaged");
	return NULL;
}

static struct mw_error *open_file(struct mw_store_reader *reader)
{
	uint8_t header[MW_STORE_FILE_HEADER];
	struct stat what;

	/* Not to wait for a pipe's writer. */
	reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (reader->fd < 0 || fstat(reader->fd, &what) != 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "can't open the recording '%s'", reader->path);
	if (!S_ISREG(what.st_mode))
		return no_recording(reader->path,
				    S_ISDIR(what.st_mode) ? "it is a directory" : "it is no regular file");
	return check_header(reader->path, header, mw_read_at(reader->fd, header, sizeof(header), 0));
}

void mw_store_close(struct mw_store_reader *reader)
{
	if (!reader)
		return;
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->path);
	free(reader);
}

static void drop_reader(struct mw_store_reader **reader)
{
	mw_store_close(*reader);
}

struct mw_error *mw_store_open(const char *path, struct mw_store_reader **out)
{
	MW_CLEANUP(drop_reader) struct mw_store_reader *reader = NULL;

	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return mw_error_nomem();
	reader->fd = -1;
	reader->path = strdup(path);
	MW_TRY(reader->path ? open_file(reader) : mw_error_nomem());
	*out = MW_TAKE(reader);
	return NULL;
}

/* The process a chunk is of; NULL without memory. */
static struct process *find_process(struct reading *reading, uint32_t number)
{
	size_t had = reading->process_room;

	if (!MW_VECTOR_ROOM(reading->processes, number, reading->process_room))
		return NULL;
	memset(reading->processes + had, 0, (reading->process_room - had) * sizeof(*reading->processes));
	if (!reading->processes[number]) {
		reading->processes[number] = calloc(1, sizeof(struct process));
		if (reading->processes[number])
			reading->state.processes++;
	}
	return reading->processes[number];
}

/* --- which numbers were given ---------------------------------------------------------------------------- */

#define WORD_BITS 64u

static bool has(const struct known *known, uint32_t number)
{
	return number < known->next && known->bits[number / WORD_BITS] >> number % WORD_BITS & 1;
}

/* A number was given, used or not. *good becomes false where it leaves others out, or takes back that one is used. */
static struct mw_error *take_known(struct known *known, uint32_t number, bool used, bool *good)
{
	*good = number <= known->next && (used || number == known->next);
	if (!*good)
		return NULL;
	if (number == known->next) {
		if (number % WORD_BITS == 0) {
			if (!MW_VECTOR_ROOM(known->bits, number / WORD_BITS, known->words))
				return mw_error_nomem();
			known->bits[number / WORD_BITS] = 0;
		}
		known->next++;
		known->missing++;
	}
	if (used && !has(known, number)) {
		known->bits[number / WORD_BITS] |= UINT64_C(1) << number % WORD_BITS;
		known->missing--;
	}
	return NULL;
}

/* Do the events name only what was given? */
static bool knows_all(const struct process *process, const struct mw_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!has(&process->threads, events[i].thread))
			return false;
		if (events[i].stack != MW_STACK_NONE && !has(&process->stacks, events[i].stack))
			return false;
	}
	return true;
}

static struct mw_error *emit_events(const struct reading *reading, const struct process *process,
				    const struct slot *slot, const char **why)
{
	const struct known *threads = &process->threads, *stacks = &process->stacks;
	const struct mw_event *events = (const struct mw_event *)(const void *)slot->events.bytes;
	bool good = slot->named.threads <= threads->next && slot->named.stacks <= stacks->next &&
		    slot->named.intervals <= process->intervals;

	/* One by one only where a number may be of none. */
	if (good && (threads->missing || stacks->missing))
		good = knows_all(process, events, slot->chunk.count);
	if (good && slot->chunk.type == MW_STORE_SETTLED)
		MW_TRY(reading->visitor->settle(reading->visitor->context, slot->chunk.process));
	if (good)
		return reading->visitor->events(reading->visitor->context, slot->chunk.process, events,
						slot->chunk.count);
	*why = "an event is of a stack, a thread or an interval that is not in it";
	return NULL;
}

/* Tell the visitor of a record; *good becomes false where it is invalid. */
static struct mw_error *emit_record(const struct reading *reading, struct process *process,
				    const struct mw_store_chunk *chunk, const union mw_store_fact *fact, bool *good)
{
	const struct mw_store_visitor *visitor = reading->visitor;
	void *context = visitor->context;
	uint32_t number = chunk->process;

	switch (chunk->type) {
	case MW_STORE_TARGETS:
		return visitor->target(context, number, &fact->target);
	case MW_STORE_HOOKS:
		return visitor->hook(context, number, &fact->hook);
	case MW_STORE_MODULES:
		return visitor->module(context, number, &fact->module);
	case MW_STORE_BEFORE:
		return visitor->before(context, number, fact->before.start, fact->before.end);
	case MW_STORE_THREADS:
		MW_TRY(take_known(&process->threads, fact->thread.thread.number, fact->thread.used, good));
		if (!*good || !fact->thread.used || !visitor->thread)
			return NULL;
		return visitor->thread(context, number, &fact->thread.thread);
	case MW_STORE_STACKS:
		MW_TRY(take_known(&process->stacks, fact->stack.number, fact->stack.used, good));
		if (!*good || !fact->stack.used || !visitor->stack)
			return NULL;
		return visitor->stack(context, number, fact->stack.number, &fact->stack.stack);
	case MW_STORE_INTERVALS:
		*good = fact->interval.number == process->intervals + 1;
		process->intervals += *good;
		return *good && visitor->interval
			       ? visitor->interval(context, number, (uint16_t)process->intervals, fact->interval.bytes)
			       : NULL;
	case MW_STORE_SAMPLES:
		return visitor->sample(context, number, &fact->sample);
	case MW_STORE_MARKS:
		return visitor->mark(context, number, &fact->mark);
	case MW_STORE_MAPPINGS:
		return visitor->mapping(context, number, fact->mapping.moment, &fact->mapping.mapping);
	case MW_STORE_SYMBOLS:
		return visitor->symbol(context, number, &fact->symbol);
	case MW_STORE_ENDS:
		return visitor->end(context, number, &fact->end);
	case MW_STORE_LEAKS:
		return visitor->leaks(context, number, &fact->leaks);
	case MW_STORE_HEAP:
		return visitor->heap(context, number, &fact->heap);
	case MW_STORE_CHANGE:
		return visitor->change(context, number, &fact->change);
	case MW_STORE_POOLS:
		return visitor->pool(context, number, &fact->pool);
	default:
		return NULL;
	}
}

static struct mw_error *emit_records(const struct reading *reading, struct process *process, const struct slot *slot,
				     const char **why)
{
	const struct mw_store_chunk *chunk = &slot->chunk;
	const uint8_t *at = slot->content.bytes, *end = at + chunk->raw_size;
	union mw_store_fact fact;
	bool good = true;

	for (uint32_t i = 0; i < chunk->count && !*why; i++) {
		*why = mw_store_decode(chunk->type, &at, end, reading->room, &fact);
		if (*why)
			return NULL;
		MW_TRY(emit_record(reading, process, chunk, &fact, &good));
		if (!good)
			*why = "a record is invalid";
	}
	if (!*why && at != end)
		*why = "a chunk has more records than it says";
	return NULL;
}

/* The end tells how many chunks there are before it: without one there is more that is missing. */
static void take_close(struct reading *reading, const struct slot *slot, const char **why)
{
	const uint8_t *at = slot->content.bytes;
	union mw_store_fact fact;

	if (slot->chunk.count != 1 ||
	    mw_store_decode(MW_STORE_CLOSE, &at, at + slot->chunk.raw_size, reading->room, &fact) ||
	    fact.chunks != reading->chunks)
		*why = "its end is invalid";
	reading->closed = !*why;
}

static struct mw_error *take_chunk(struct reading *reading, const struct slot *slot, const char **why)
{
	struct process *process;

	if (reading->closed) {
		*why = "there is more behind its end";
		return NULL;
	}
	if (slot->chunk.type >= MW_STORE_TYPE_COUNT)
		return NULL;
	if (slot->chunk.type == MW_STORE_CLOSE) {
		take_close(reading, slot, why);
		return NULL;
	}
	if (slot->chunk.process >= MW_STORE_PROCESS_MAX || slot->chunk.type == 0) {
		*why = "a chunk's header is invalid";
		return NULL;
	}
	process = find_process(reading, slot->chunk.process);
	if (!process)
		return mw_error_nomem();
	if (slot->skipped)
		return NULL;
	if (mw_store_is_events(slot->chunk.type))
		return emit_events(reading, process, slot, why);
	return emit_records(reading, process, slot, why);
}

/* Does its writer still have it? */
static bool is_locked(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) != 0)
		return errno == EWOULDBLOCK;
	(void)flock(fd, LOCK_UN);
	return false;
}

/* One step. *more: there may be another. */
static struct mw_error *take_step(struct reading *reading, const struct slot *slot, bool *more)
{
	struct mw_store_state *state = &reading->state;
	const char *why = NULL;

	*more = false;
	if (slot->errnum)
		return slot->errnum == ENOMEM
			       ? mw_error_nomem()
			       : mw_error_create(MW_ERROR_SYSTEM, slot->errnum, "can't read the recording");
	if (!slot->last) {
		MW_TRY(take_chunk(reading, slot, &why));
		*more = !why;
	} else if (reading->closed) {
		why = slot->why ? "there is more behind its end" : NULL;
	} else {
		why = is_locked(reading->unpacker.fd) ? "it is still being written"
		      : slot->why                     ? slot->why
						      : "its end is missing";
	}
	if (*more) {
		reading->chunks++;
		state->good = slot->end;
		if (reading->visitor->progress)
			reading->visitor->progress(reading->visitor->context, state->good, state->size);
	}
	state->cut = why;
	state->why = why;
	return NULL;
}

static void set_wanted(struct reading *reading)
{
	const struct mw_store_visitor *visitor = reading->visitor;
	bool *wanted = reading->unpacker.wanted;

	wanted[MW_STORE_TARGETS] = visitor->target;
	wanted[MW_STORE_HOOKS] = visitor->hook;
	wanted[MW_STORE_MODULES] = visitor->module;
	wanted[MW_STORE_BEFORE] = visitor->before;
	wanted[MW_STORE_EVENTS] = visitor->events;
	wanted[MW_STORE_SETTLED] = visitor->events && visitor->settle;
	/* Events are checked against them. */
	wanted[MW_STORE_THREADS] = visitor->thread || visitor->events;
	wanted[MW_STORE_STACKS] = visitor->stack || visitor->events;
	wanted[MW_STORE_INTERVALS] = visitor->interval || visitor->events;
	wanted[MW_STORE_SAMPLES] = visitor->sample;
	wanted[MW_STORE_MARKS] = visitor->mark;
	wanted[MW_STORE_MAPPINGS] = visitor->mapping;
	wanted[MW_STORE_SYMBOLS] = visitor->symbol;
	wanted[MW_STORE_ENDS] = visitor->end;
	wanted[MW_STORE_LEAKS] = visitor->leaks;
	wanted[MW_STORE_HEAP] = visitor->heap;
	wanted[MW_STORE_CHANGE] = visitor->change;
	wanted[MW_STORE_POOLS] = visitor->pool;
	wanted[MW_STORE_CLOSE] = true;
}

static struct mw_error *read_all(struct reading *reading)
{
	struct mw_error *err = NULL;
	bool more = true;

	MW_TRY(unpacker_start(&reading->unpacker));
	while (more && !err) {
		err = take_step(reading, unpacker_next(&reading->unpacker), &more);
		unpacker_drop(&reading->unpacker);
	}
	unpacker_stop(&reading->unpacker);
	return err;
}

struct mw_error *mw_store_read(struct mw_store_reader *reader, const struct mw_store_visitor *visitor,
			       struct mw_store_state *state)
{
	struct reading reading = {.visitor = visitor};
	struct mw_error *err;
	struct stat what;

	if (fstat(reader->fd, &what) != 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "can't read the recording '%s'", reader->path);
	reading.unpacker.fd = reader->fd;
	reading.unpacker.size = reading.state.size = (uint64_t)what.st_size;
	reading.state.good = MW_STORE_FILE_HEADER;
	set_wanted(&reading);
	reading.room = malloc(MW_STORE_CHUNK_MAX);
	err = reading.room ? read_all(&reading) : mw_error_nomem();
	if (!err && !reading.chunks)
		err = mw_error_hint(mw_error_create(MW_ERROR_DATA, 0, "the recording '%s' can't be read at all: %s",
						    reader->path, reading.state.why),
				    "It is damaged, or was cut off before anything was written");
	if (!err)
		*state = reading.state;
	for (size_t i = 0; i < reading.process_room; i++) {
		if (reading.processes[i]) {
			free(reading.processes[i]->stacks.bits);
			free(reading.processes[i]->threads.bits);
		}
		free(reading.processes[i]);
	}
	free(reading.processes);
	free(reading.room);
	return err;
}

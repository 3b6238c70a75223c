// SPDX-License-Identifier: MIT
/* reader.c: tells what a recording holds (reader.h). */
#include "store/reader.h"

#include "store/bytes.h"
#include "store/decode.h"
#include "store/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mw_store_reader {
	int fd;
	char *path;
};

/* One reading. */
struct reading {
	const struct mw_store_visitor *visitor;
	struct mw_store_emission emission;
	struct mw_store_unpacker unpacker;
	struct mw_store_process **processes; /* by number; NULL: not met */
	size_t process_room;
	uint64_t chunks; /* that were good */
	bool closed;     /* the end has been read */
	struct mw_store_state state;
};

static struct mw_error *no_recording(const char *path, const char *why)
{
	return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0, "%s is not a recording: %s", path, why),
			     "Give a file that memwatch -o wrote.");
}

static struct mw_error *check_header(const char *path, const uint8_t *header, int64_t size)
{
	uint8_t good[MW_STORE_FILE_HEADER];
	uint32_t version;

	mw_store_pack_file(good);
	if (size < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "can't read the recording %s", path);
	if (size == 0)
		return no_recording(path, "it is empty");
	if (memcmp(header, good, (size_t)(size < 8 ? size : 8)) != 0)
		return no_recording(path, "it does not begin as one");
	if (size < (int64_t)sizeof(good))
		return no_recording(path, "it was cut off before anything was written");
	version = mw_store_load32(header + 8);
	if (version != MW_STORE_VERSION)
		return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0,
						     "%s is a recording of version %u, and this memwatch reads version "
						     "%u",
						     path, version, MW_STORE_VERSION),
				     "Use the memwatch that wrote it, or a newer one.");
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
		return mw_error_create(MW_ERROR_SYSTEM, errno, "can't open the recording %s", reader->path);
	if (!S_ISREG(what.st_mode))
		return no_recording(reader->path,
				    S_ISDIR(what.st_mode) ? "it is a directory" : "it is no regular file");
	return check_header(reader->path, header, mw_store_read_at(reader->fd, header, sizeof(header), 0));
}

struct mw_error *mw_store_open(const char *path, struct mw_store_reader **out)
{
	struct mw_store_reader *reader = calloc(1, sizeof(*reader));
	struct mw_error *err;

	if (!reader)
		return mw_error_nomem();
	reader->fd = -1;
	reader->path = strdup(path);
	err = reader->path ? open_file(reader) : mw_error_nomem();
	if (err)
		mw_store_close(reader);
	else
		*out = reader;
	return err;
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

/* The process a chunk is of; NULL without memory. */
static struct mw_store_process *find_process(struct reading *reading, uint32_t number)
{
	if (number >= reading->process_room) {
		size_t room = number < 8 ? 8 : 2 * (size_t)number;
		struct mw_store_process **processes =
			reallocarray(reading->processes, room, sizeof(struct mw_store_process *));

		if (!processes)
			return NULL;
		memset(processes + reading->process_room, 0, (room - reading->process_room) * sizeof(*processes));
		reading->processes = processes;
		reading->process_room = room;
	}
	if (!reading->processes[number]) {
		reading->processes[number] = calloc(1, sizeof(struct mw_store_process));
		if (reading->processes[number])
			reading->state.processes++;
	}
	return reading->processes[number];
}

static struct mw_error *emit_events(const struct reading *reading, const struct mw_store_process *process,
				    const struct mw_store_slot *slot, const char **why)
{
	const struct mw_store_known *threads = &process->threads, *stacks = &process->stacks;
	const struct mw_event *events = (const struct mw_event *)(const void *)slot->events.bytes;
	bool good = slot->named.threads <= threads->next && slot->named.stacks <= stacks->next;

	/* One by one only where a number may be of none. */
	if (good && (threads->missing || stacks->missing))
		good = mw_store_knows_all(process, events, slot->chunk.count);
	if (good)
		return reading->visitor->events(reading->visitor->context, slot->chunk.process, events,
						slot->chunk.count);
	*why = "an event is of a stack or a thread that is not in it";
	return NULL;
}

/* The end tells how many chunks there are before it: without one there is more that is missing. */
static void take_close(struct reading *reading, const struct mw_store_slot *slot, const char **why)
{
	struct mw_store_get get = {slot->content.bytes, slot->content.bytes + slot->chunk.raw_size, false};
	struct mw_store_get record;
	size_t size;

	record.at = mw_store_get_blob(&get, &size);
	record.end = get.at;
	record.bad = get.bad;
	if (slot->chunk.count != 1 || mw_store_get_number(&record) != reading->chunks || record.bad)
		*why = "its end is invalid";
	reading->closed = !*why;
}

static struct mw_error *take_chunk(struct reading *reading, const struct mw_store_slot *slot, const char **why)
{
	struct mw_store_process *process;

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
	if (slot->chunk.type == MW_STORE_EVENTS)
		return emit_events(reading, process, slot, why);
	return mw_store_emit(&reading->emission, process, &slot->chunk, slot->content.bytes, why);
}

/* One step. *more: there may be another. */
static struct mw_error *take_step(struct reading *reading, const struct mw_store_slot *slot, bool *more)
{
	struct mw_store_state *state = &reading->state;
	const char *why = NULL;

	*more = false;
	switch (slot->step) {
	case MW_STORE_STEP_TROUBLE:
		if (slot->errnum == ENOMEM)
			return mw_error_nomem();
		return mw_error_create(MW_ERROR_SYSTEM, slot->errnum, "can't read the recording");
	case MW_STORE_STEP_DAMAGE:
		why = reading->closed ? "there is more behind its end" : slot->why;
		break;
	case MW_STORE_STEP_ALL:
		why = reading->closed ? NULL : "its end is missing";
		break;
	case MW_STORE_STEP_CHUNK:
		MW_TRY(take_chunk(reading, slot, &why));
		*more = !why;
		break;
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
	/* Events are checked against them. */
	wanted[MW_STORE_THREADS] = visitor->thread || visitor->events;
	wanted[MW_STORE_STACKS] = visitor->stack || visitor->events;
	wanted[MW_STORE_SAMPLES] = visitor->sample;
	wanted[MW_STORE_MARKS] = visitor->mark;
	wanted[MW_STORE_MAPPINGS] = visitor->mapping;
	wanted[MW_STORE_SYMBOLS] = visitor->symbol;
	wanted[MW_STORE_ENDS] = visitor->end;
	wanted[MW_STORE_CLOSE] = true;
}

static struct mw_error *read_all(struct reading *reading)
{
	struct mw_error *err = NULL;
	bool more = true;

	MW_TRY(mw_store_unpacker_start(&reading->unpacker));
	while (more && !err) {
		err = take_step(reading, mw_store_unpacker_next(&reading->unpacker), &more);
		mw_store_unpacker_drop(&reading->unpacker);
	}
	mw_store_unpacker_stop(&reading->unpacker);
	return err;
}

struct mw_error *mw_store_read(struct mw_store_reader *reader, const struct mw_store_visitor *visitor,
			       struct mw_store_state *state)
{
	struct reading reading = {.visitor = visitor, .emission = {.visitor = visitor}};
	struct mw_error *err;
	struct stat what;

	if (fstat(reader->fd, &what) != 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "can't read the recording %s", reader->path);
	reading.unpacker.fd = reader->fd;
	reading.unpacker.size = reading.state.size = (uint64_t)what.st_size;
	reading.state.good = MW_STORE_FILE_HEADER;
	set_wanted(&reading);
	err = read_all(&reading);
	if (!err && !reading.chunks)
		err = mw_error_hint(mw_error_create(MW_ERROR_DATA, 0, "the recording %s can't be read at all: %s",
						    reader->path, reading.state.why),
				    "It is damaged, or was cut off before anything was written.");
	if (!err)
		*state = reading.state;
	for (size_t i = 0; i < reading.process_room; i++) {
		if (reading.processes[i])
			mw_store_process_deinit(reading.processes[i]);
		free(reading.processes[i]);
	}
	free(reading.processes);
	free(reading.emission.list.bytes);
	return err;
}

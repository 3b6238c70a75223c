// SPDX-License-Identifier: MIT
/* replay.c: a recording read, and what its stacks held at moments of it (replay.h). */
#include "view/replay.h"

#include "base/vector.h"
#include "symbol/elf_image.h"
#include "track/track.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- when most bytes of heap and vm together were outstanding ------------------------------------------- */

/* The most so far, and the first moment of it: the time of the event that made it. Zero-initialise. */
struct mw_peak {
	uint64_t bytes, at_ns;
};

#define FEW 32 /* events that are fed at once where none of them can be the peak */

static uint64_t outstanding(const struct mw_track *track)
{
	struct mw_track_totals heap, vm;

	mw_track_totals(track, MW_KIND_HEAP, &heap);
	mw_track_totals(track, MW_KIND_VM, &vm);
	return heap.impacting.bytes + vm.impacting.bytes;
}

/* So many bytes more at most will be outstanding after any of the events. */
static uint64_t growth_of(const struct mw_event *events, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		switch (events[i].type) {
		case MW_EVENT_ALLOC:
		case MW_EVENT_REALLOC_END:
		case MW_EVENT_MAP:
		case MW_EVENT_REMAP_END:
			/* One that is sampled stands for any number of bytes. */
			if (events[i].interval || __builtin_add_overflow(sum, events[i].size, &sum))
				return UINT64_MAX;
			break;
		case MW_EVENT_REALLOC_FAIL:
		case MW_EVENT_UNMAP_FAIL:
		case MW_EVENT_REMAP_FAIL:
			return UINT64_MAX; /* what is back then was counted as gone */
		default:
			break;
		}
	}
	return sum;
}

/* Feed a few events; look after each only where one of them may be the peak. */
static struct mw_error *feed_few(struct mw_peak *peak, const struct mw_track *track, const struct mw_event_sink *sink,
				 const struct mw_event *events, size_t count)
{
	uint64_t growth = growth_of(events, count), now = outstanding(track);

	if (now <= peak->bytes && growth <= peak->bytes - now)
		return sink->events(sink->context, events, count);
	for (size_t i = 0; i < count; i++) {
		MW_TRY(sink->event(sink->context, &events[i]));
		now = outstanding(track);
		if (now > peak->bytes) {
			peak->bytes = now;
			peak->at_ns = events[i].time_ns;
		}
	}
	return NULL;
}

/* Feed events to the tracker by its sink, and look for the peak. Errors: the sink's. */
static struct mw_error *peak_feed(struct mw_peak *peak, const struct mw_track *track, const struct mw_event_sink *sink,
				  const struct mw_event *events, size_t count)
{
	for (size_t i = 0; i < count; i += FEW)
		MW_TRY(feed_few(peak, track, sink, events + i, count - i < FEW ? count - i : FEW));
	return NULL;
}

/* -------------------------------------------------------------------------------------------------------- */

#define MOST_PROCESSES 4096u
#define MOST_STACKS    (1u << 28)

/* A tracker's numbers of stacks, by those of the recording: it makes some of its own in between. */
struct numbers {
	uint32_t *stacks;
	size_t count, capacity;
	bool renumbered;         /* they are not the same */
	struct mw_event *events; /* with the tracker's numbers */
	size_t event_capacity;
};

/* What reading its events takes. */
struct process {
	const struct mw_replay *replay;
	struct mw_watched *watched;
	struct mw_modules *modules; /* their files, numbered as the recording's; NULL: none was needed yet */
	struct mw_symbolizer *symbolizer;
	bool begun, over;              /* the interval */
	bool settling;                 /* what comes is later than the window */
	struct numbers numbers, whole; /* of the tracker, and of the one of the whole window */
	struct mw_peak peak;
};

struct mw_replay {
	struct mw_store_reader *reader;
	struct mw_store_state state;
	uint64_t reached; /* how far into the file the last reading has told */
	struct mw_watched_set set;
	struct process *processes; /* one each */
	const struct mw_replay_interval *interval;
	bool seek_peak;
	const char *const *directories; /* for symbols */
	size_t directory_count;
	mw_replay_progress *progress;
	void *progress_context;
	const char *phase;
};

/* From files of this machine, or in the directories, that have the build-ids of the recording's modules. */
static struct mw_error *open_files(struct process *process)
{
	const struct mw_metadata *metadata = &process->watched->metadata;
	const struct mw_replay *replay = process->replay;

	MW_TRY(mw_modules_create(&process->modules));
	for (size_t i = 0; i < metadata->module_count; i++) {
		const struct mw_view_module *module = &metadata->modules[i];
		struct mw_elf *elf = NULL;

		MW_TRY(mw_find_file(module->path, module->build_id, module->build_id_size, replay->directories,
				    replay->directory_count, &elf));
		MW_TRY(mw_modules_add(process->modules, module->path, module->base, elf));
	}
	return mw_symbolizer_create(process->modules, &process->symbolizer);
}

/* What was stored for that address, or, where that has no name (the recording was made without, or cut off before them),
 * what can be found; `*count` is 0 for nothing at all. */
static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct process *process = context;
	const struct mw_symbol_frame *stored = NULL;
	size_t stored_count = 0;

	if (!mw_metadata_resolve(&process->watched->metadata, module, addr, &stored, &stored_count))
		stored_count = 0;
	/* Code in no file has the names that were read with it, or none. */
	if (module != MW_MODULE_NONE && (!stored_count || !stored[0].function)) {
		if (!process->symbolizer)
			MW_TRY(open_files(process));
		MW_TRY(mw_symbolizer_resolve(process->symbolizer, module, addr, true, frames, count));
		/* What was said when it was recorded is as good as nothing. */
		if (!stored_count || (*count && (*frames)[0].function))
			return NULL;
	}
	*frames = stored;
	*count = stored_count;
	return NULL;
}

static void on_progress(void *context, uint64_t done, uint64_t total)
{
	struct mw_replay *replay = context;

	replay->reached = done;
	if (replay->progress)
		replay->progress(replay->progress_context, replay->phase, done, total);
}

/* Metadata is added to the set. */
static void on_metadata_progress(void *context, uint64_t done, uint64_t total)
{
	on_progress((char *)context - offsetof(struct mw_replay, set), done, total);
}

static struct mw_error *read_metadata(struct mw_replay *replay)
{
	struct mw_store_visitor visitor = mw_watched_set_visitor(&replay->set);

	visitor.progress = on_metadata_progress;
	replay->phase = "looking through the recording";
	MW_TRY(mw_store_read(replay->reader, &visitor, &replay->state));
	replay->processes = calloc(replay->set.count + 1, sizeof(*replay->processes));
	if (!replay->processes)
		return mw_error_nomem();
	for (size_t i = 0; i < replay->set.count; i++) {
		struct process *process = &replay->processes[i];

		*process = (struct process){.replay = replay, .watched = replay->set.items[i]};
		process->watched->symbols = (struct mw_view_symbols){.context = process, .resolve = resolve};
		MW_TRY(mw_watched_settle(process->watched));
	}
	return NULL;
}

const struct mw_heap_report *mw_replay_heap(const struct mw_replay *replay)
{
	const struct mw_metadata *metadata = replay->set.count ? &replay->set.items[0]->metadata : NULL;

	return metadata && !metadata->has_target ? metadata->heap.report : NULL;
}

/* Half of a look would be sums that do not add up. */
static struct mw_error *check_heap(const struct mw_replay *replay, const char *path)
{
	if (!mw_replay_heap(replay) ||
	    (!replay->state.cut && mw_kept_heap_is_whole(&replay->set.items[0]->metadata.heap)))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0, "the look at a heap in '%.200s' is not complete: %s",
					     path, replay->state.why ? replay->state.why : "parts of it are missing"),
			     "It is damaged, or was cut off: look again, by memwatch heap -p PID -o FILE");
}

struct mw_error *mw_replay_open(const char *path, mw_replay_progress *progress, void *context, struct mw_replay **out)
{
	struct mw_replay *replay = calloc(1, sizeof(*replay));
	struct mw_error *err;

	if (!replay)
		return mw_error_nomem();
	replay->progress = progress;
	replay->progress_context = context;
	err = mw_store_open(path, &replay->reader);
	if (!err)
		err = read_metadata(replay);
	if (!err && !replay->set.count) {
		err = mw_error_create(MW_ERROR_DATA, 0, "'%.200s' contains no process", path);
		err = mw_error_hint(
			err, "The recording ends before its window began: record it again, or wait where it is still "
			     "being written");
	}
	if (!err)
		err = check_heap(replay, path);
	if (err) {
		mw_replay_close(replay);
		return err;
	}
	*out = replay;
	return NULL;
}

static void numbers_deinit(struct numbers *numbers)
{
	free(numbers->stacks);
	free(numbers->events);
}

void mw_replay_close(struct mw_replay *replay)
{
	if (!replay)
		return;
	for (size_t i = 0; replay->processes && i < replay->set.count; i++) {
		mw_symbolizer_destroy(replay->processes[i].symbolizer);
		mw_modules_destroy(replay->processes[i].modules);
		numbers_deinit(&replay->processes[i].numbers);
		numbers_deinit(&replay->processes[i].whole);
	}
	free(replay->processes);
	mw_watched_set_deinit(&replay->set);
	mw_store_close(replay->reader);
	free(replay);
}

void mw_replay_symbols(struct mw_replay *replay, const char *const *directories, size_t count)
{
	replay->directories = directories;
	replay->directory_count = count;
}

size_t mw_replay_count(const struct mw_replay *replay)
{
	return replay->set.count;
}

struct mw_watched *mw_replay_watched(const struct mw_replay *replay, size_t process)
{
	return replay->set.items[process];
}

uint64_t mw_replay_length(const struct mw_replay *replay)
{
	uint64_t length = 0;

	for (size_t i = 0; i < replay->set.count; i++) {
		uint64_t own = mw_metadata_length(&replay->set.items[i]->metadata);

		length = own > length ? own : length;
	}
	return length;
}

const struct mw_store_state *mw_replay_state(const struct mw_replay *replay)
{
	return &replay->state;
}

/* --- events -------------------------------------------------------------------------------------------- */

/*
 * What is reported now was not there, or behind damage, when the metadata were read: they would not fit to it. Whoever
 * reads only events does not see that a fact is damaged, and a recording may grow while it is read.
 */
static bool is_beyond(const struct mw_replay *replay)
{
	return replay->reached >= replay->state.good;
}

/* A process of the metadata. */
static struct mw_error *known_process(const struct mw_replay *replay, uint32_t number, const char *what,
				      struct process **out)
{
	if (number >= replay->set.count)
		return mw_error_create(MW_ERROR_DATA, 0, "%s of process number %u, which is not known", what, number);
	*out = &replay->processes[number];
	return NULL;
}

static struct mw_error *begin(struct mw_replay *replay, uint32_t number)
{
	struct process *process = &replay->processes[number];
	const struct mw_replay_interval *interval = replay->interval;

	process->begun = true;
	if (interval->from_ns)
		MW_TRY(mw_track_interval(process->watched->track, interval->from_ns));
	if (interval->begin)
		interval->begin(interval->context, number, process->watched->track);
	return NULL;
}

/* How many of the events come before that time. */
static size_t before(const struct mw_event *events, size_t count, uint64_t time_ns)
{
	uint64_t latest = 0;
	size_t i = 0;

	/* A time may be before the last. Where all come before, as is mostly so, none need be left early. */
	for (size_t j = 0; j < count; j++)
		latest = events[j].time_ns > latest ? events[j].time_ns : latest;
	if (!count || latest < time_ns)
		return count;
	while (i < count && events[i].time_ns < time_ns)
		i++;
	return i;
}

static struct mw_error *feed(const struct mw_replay *replay, struct process *process, const struct mw_event *events,
			     size_t count)
{
	if (replay->seek_peak)
		return peak_feed(&process->peak, process->watched->track, &process->watched->sink, events, count);
	return process->watched->sink.events(process->watched->sink.context, events, count);
}

/* The events with the tracker's numbers of stacks. */
static struct mw_error *renumber(struct numbers *numbers, const struct mw_event **events, size_t count)
{
	if (!numbers->renumbered)
		return NULL;
	if (!MW_VECTOR_ROOM(numbers->events, count, numbers->event_capacity))
		return mw_error_nomem();
	memcpy(numbers->events, *events, count * sizeof(**events));
	for (size_t i = 0; i < count; i++)
		if (numbers->events[i].stack < numbers->count)
			numbers->events[i].stack = numbers->stacks[numbers->events[i].stack];
	*events = numbers->events;
	return NULL;
}

/* The tracker of the whole window gets all of them. */
static struct mw_error *feed_whole(struct process *process, const struct mw_event *events, size_t count)
{
	struct mw_event_sink sink;

	if (!process->watched->whole)
		return NULL;
	sink = mw_track_sink(process->watched->whole);
	MW_TRY(renumber(&process->whole, &events, count));
	return sink.events(sink.context, events, count);
}

static struct mw_error *on_events(void *context, uint32_t number, const struct mw_event *events, size_t count)
{
	struct mw_replay *replay = context;
	struct process *process = NULL;
	size_t part;

	if (is_beyond(replay))
		return NULL;
	MW_TRY(known_process(replay, number, "events", &process));
	MW_TRY(feed_whole(process, events, count));
	MW_TRY(renumber(&process->numbers, &events, count));
	if (process->settling)
		return process->over ? NULL
				     : process->watched->sink.events(process->watched->sink.context, events, count);
	if (count && events[count - 1].time_ns > process->watched->metadata.last_ns)
		process->watched->metadata.last_ns = events[count - 1].time_ns;
	if (!process->begun) {
		part = before(events, count, replay->interval->from_ns);
		MW_TRY(process->watched->sink.events(process->watched->sink.context, events, part));
		if (part == count)
			return NULL;
		MW_TRY(begin(replay, number));
		events += part;
		count -= part;
	}
	if (process->over)
		return NULL;
	part = before(events, count, replay->interval->to_ns);
	process->over = part < count;
	return feed(replay, process, events, part);
}

/* In an interval that ends before the window what was freed later does not count. */
static bool ends_earlier(const struct process *process)
{
	return process->over || process->replay->interval->to_ns < mw_metadata_length(&process->watched->metadata);
}

static struct mw_error *on_settle(void *context, uint32_t number)
{
	struct mw_replay *replay = context;
	struct process *process = NULL;

	if (is_beyond(replay))
		return NULL;
	MW_TRY(known_process(replay, number, "events", &process));
	if (!process->begun)
		MW_TRY(begin(replay, number));
	process->settling = true;
	process->over |= ends_earlier(process);
	if (process->watched->whole)
		MW_TRY(mw_track_settle(process->watched->whole));
	return process->over ? NULL : mw_track_settle(process->watched->track);
}

static struct mw_error *number_stack(const struct mw_event_sink *sink, struct numbers *numbers, uint32_t id,
				     const struct mw_raw_stack *stack)
{
	uint32_t given;

	MW_TRY(sink->stack(sink->context, stack, &given));
	while (numbers->count <= id) {
		if (!MW_VECTOR_ROOM(numbers->stacks, numbers->count, numbers->capacity))
			return mw_error_nomem();
		numbers->stacks[numbers->count++] = MW_STACK_NONE;
	}
	numbers->stacks[id] = given;
	numbers->renumbered |= given != id;
	return NULL;
}

/* A stack has that number in the tracker, and that one in the tracker of the whole window. */
static struct mw_error *tie(struct mw_watched *watched, uint32_t number, uint32_t whole)
{
	while (watched->whole_count <= number) {
		if (!MW_VECTOR_ROOM(watched->whole_of, watched->whole_count, watched->whole_capacity))
			return mw_error_nomem();
		watched->whole_of[watched->whole_count++] = UINT32_MAX;
	}
	watched->whole_of[number] = whole;
	return NULL;
}

static struct mw_error *on_stack(void *context, uint32_t number, uint32_t id, const struct mw_raw_stack *stack)
{
	struct process *process = NULL;
	struct mw_event_sink sink;

	if (is_beyond(context))
		return NULL;
	MW_TRY(known_process(context, number, "a stack", &process));
	if (id >= MOST_STACKS)
		return mw_error_create(MW_ERROR_DATA, 0, "stack number %u", id);
	MW_TRY(number_stack(&process->watched->sink, &process->numbers, id, stack));
	if (!process->watched->whole)
		return NULL;
	sink = mw_track_sink(process->watched->whole);
	MW_TRY(number_stack(&sink, &process->whole, id, stack));
	return tie(process->watched, process->numbers.stacks[id], process->whole.stacks[id]);
}

static struct mw_error *on_thread(void *context, uint32_t number, const struct mw_stored_thread *thread)
{
	struct process *process = NULL;
	uint32_t given;
	bool fresh;

	if (is_beyond(context))
		return NULL;
	MW_TRY(known_process(context, number, "a thread", &process));
	fresh = thread->number == mw_track_thread_count(process->watched->track);
	if (process->watched->whole) {
		struct mw_event_sink sink = mw_track_sink(process->watched->whole);

		MW_TRY(sink.thread(sink.context, thread->tid, thread->name ? thread->name : "", fresh, &given));
	}
	MW_TRY(process->watched->sink.thread(process->watched->sink.context, thread->tid,
					     thread->name ? thread->name : "", fresh, &given));
	return given == thread->number ? NULL
				       : mw_error_create(MW_ERROR_DATA, 0, "thread number %u has the number %u here",
							 given, thread->number);
}

static struct mw_error *take_interval(const struct mw_event_sink *sink, uint16_t number, uint64_t bytes)
{
	uint16_t given;

	MW_TRY(sink->interval(sink->context, bytes, &given));
	return given == number ? NULL
			       : mw_error_create(MW_ERROR_DATA, 0, "sampling interval number %u has the number %u here",
						 number, given);
}

static struct mw_error *on_interval(void *context, uint32_t process_number, uint16_t number, uint64_t bytes)
{
	struct process *process = NULL;

	if (is_beyond(context))
		return NULL;
	MW_TRY(known_process(context, process_number, "a sampling interval", &process));
	if (process->watched->whole) {
		struct mw_event_sink sink = mw_track_sink(process->watched->whole);

		MW_TRY(take_interval(&sink, number, bytes));
	}
	/* Nothing of it is in an interval of the window that has ended. */
	return process->over ? NULL : take_interval(&process->watched->sink, number, bytes);
}

static struct mw_error *on_before(void *context, uint32_t number, mw_addr start, mw_addr end)
{
	struct process *process = NULL;

	if (is_beyond(context))
		return NULL;
	MW_TRY(known_process(context, number, "mappings", &process));
	if (process->watched->whole)
		MW_TRY(mw_track_before(process->watched->whole, start, end));
	return mw_track_before(process->watched->track, start, end);
}

static struct mw_error *renew(struct process *process, bool judged)
{
	MW_TRY(mw_watched_renew(process->watched));
	process->begun = process->over = process->settling = false;
	process->peak = (struct mw_peak){0};
	process->numbers.count = process->whole.count = 0;
	process->numbers.renumbered = process->whole.renumbered = false;
	return judged ? mw_track_create(&process->watched->whole) : NULL;
}

/* What the end would have told is not known. */
static void cut_off(struct mw_metadata *metadata)
{
	metadata->window.ended = MW_END_LOST;
	memset(&metadata->stats, 0xff, sizeof(metadata->stats)); /* MW_SIZE_UNKNOWN */
	metadata->stats.left_behind = NULL;
	/* Of these there are none but those that the cut is. */
	metadata->stats.lost_events = metadata->stats.lost_stacks = 0;
}

struct mw_error *mw_replay_run(struct mw_replay *replay, const struct mw_replay_interval *interval)
{
	struct mw_store_state state;
	const struct mw_store_visitor visitor = {
		.context = replay,
		.before = on_before,
		.thread = on_thread,
		.stack = on_stack,
		.interval = on_interval,
		.events = on_events,
		.settle = on_settle,
		.progress = on_progress,
	};

	for (size_t i = 0; i < replay->set.count; i++)
		MW_TRY(renew(&replay->processes[i],
			     interval->judged && (interval->from_ns || interval->to_ns != MW_REPLAY_END)));
	replay->interval = interval;
	replay->phase = "reading events";
	for (size_t i = 0; i < replay->set.count && !interval->from_ns; i++)
		MW_TRY(begin(replay, (uint32_t)i));
	replay->reached = 0;
	/* To its end, also where the interval is over long before: threads' names may come as late, how far a recording
	 * without its end goes is its last event's time, and damage that lies behind is to be reported. */
	MW_TRY(mw_store_read(replay->reader, &visitor, &state));
	/* The reading that came less far has the last word on how it ends. */
	if (state.good < replay->state.good)
		replay->state = state;
	for (size_t i = 0; i < replay->set.count; i++) {
		struct process *process = &replay->processes[i];
		struct mw_metadata *metadata;

		if (!process->begun)
			MW_TRY(begin(replay, (uint32_t)i));
		metadata = &process->watched->metadata;
		metadata->window.length_ns = mw_metadata_length(metadata);
		if (!metadata->has_end)
			cut_off(metadata);
		if (replay->state.cut)
			process->watched->cut = replay->state.why ? replay->state.why : "its end is missing";
	}
	return NULL;
}

struct mw_error *mw_replay_peak(struct mw_replay *replay, const struct mw_replay_interval *interval, size_t process,
				uint64_t *at_ns)
{
	struct mw_error *err;

	replay->seek_peak = true;
	err = mw_replay_run(replay, interval);
	replay->seek_peak = false;
	if (!err)
		*at_ns = replay->processes[process].peak.at_ns;
	return err;
}

/* --- moments ------------------------------------------------------------------------------------------------ */

/* What goes on while the replay runs. */
struct reading {
	struct mw_moments *moments;
	bool no_memory;
};

/* All that the tracker knows to be outstanding now, whenever it came. */
static bool keep_held(const struct mw_track *track, struct mw_moments_held *out)
{
	size_t count = mw_track_stack_count(track);

	out->amounts = calloc(count + 1, sizeof(*out->amounts));
	out->spreads = calloc(count + 1, sizeof(*out->spreads));
	out->stays = calloc(count + 1, sizeof(*out->stays));
	if (!out->amounts || !out->spreads || !out->stays)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct mw_track_stack stack;

		mw_track_stack(track, (uint32_t)i, &stack);
		out->amounts[i] = stack.totals.impacting;
		mw_amount_add(&out->amounts[i], stack.totals.aofo);
		out->stays[i] = out->spreads[i] = stack.totals.spreads.aofo;
		mw_spread_add(&out->spreads[i], stack.totals.spreads.impacting);
	}
	out->count = count;
	return true;
}

static void begin_reading(void *context, size_t process, struct mw_track *track)
{
	struct reading *reading = context;

	/* A process that was first heard of in this reading is none of those that were counted. */
	if (process < reading->moments->count && !keep_held(track, &reading->moments->then[process]))
		reading->no_memory = true;
}

struct mw_error *mw_moments_read(struct mw_replay *replay, uint64_t then_ns, uint64_t now_ns, struct mw_moments *out)
{
	struct reading reading = {.moments = out};
	const struct mw_replay_interval interval = {
		.from_ns = then_ns, .to_ns = now_ns, .begin = begin_reading, .context = &reading};
	size_t count = mw_replay_count(replay);

	out->then = calloc(count, sizeof(*out->then));
	out->now = calloc(count, sizeof(*out->now));
	if (!out->then || !out->now)
		return mw_error_nomem();
	out->count = count;
	MW_TRY(mw_replay_run(replay, &interval));
	for (size_t i = 0; i < count; i++)
		if (!keep_held(mw_replay_watched(replay, i)->track, &out->now[i]))
			return mw_error_nomem();
	return reading.no_memory ? mw_error_nomem() : NULL;
}

static void held_deinit(struct mw_moments_held *held)
{
	free(held->amounts);
	free(held->spreads);
	free(held->stays);
}

void mw_moments_deinit(struct mw_moments *moments)
{
	for (size_t i = 0; i < moments->count; i++) {
		held_deinit(&moments->then[i]);
		held_deinit(&moments->now[i]);
	}
	free(moments->then);
	free(moments->now);
	*moments = (struct mw_moments){.count = 0};
}

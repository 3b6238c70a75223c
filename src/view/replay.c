// SPDX-License-Identifier: MIT
/* replay.c: see replay.h. */
#include "view/replay.h"

#include "base/vector.h"
#include "view/late_symbols.h"
#include "view/peak.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PROCESSES 4096u
#define MOST_STACKS    (1u << 28)

struct process {
	const struct mw_replay *replay;
	struct mw_facts facts;
	struct mw_track *track;
	struct mw_event_sink sink;
	struct mw_late_symbols *late;
	struct mw_view_symbols symbols;
	struct mw_code_regions regions;
	bool begun, over; /* the interval */
	/* The tracker's numbers of stacks, by those of the recording: it makes some of its own in between. */
	uint32_t *stacks;
	size_t stack_count, stack_capacity;
	bool renumbered;         /* they are not the same */
	struct mw_event *events; /* with the tracker's numbers */
	size_t event_capacity;
	struct mw_peak peak;
};

struct mw_replay {
	struct mw_store_reader *reader;
	struct mw_store_state state;
	uint64_t reached;           /* how far into the file the last reading has told */
	struct process **processes; /* they don't move */
	size_t count;
	const struct mw_replay_interval *interval;
	bool seek_peak;
	const char *const *directories; /* for symbols */
	size_t directory_count;
	mw_replay_progress *progress;
	void *progress_context;
	const char *phase;
};

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct process *process = context;

	if (!process->late)
		MW_TRY(mw_late_symbols_create(&process->facts, process->replay->directories,
					      process->replay->directory_count, &process->late));
	return mw_late_symbols_resolve(process->late, module, addr, frames, count);
}

static void destroy_process(struct process *process)
{
	if (!process)
		return;
	mw_late_symbols_destroy(process->late);
	mw_track_destroy(process->track);
	free(process->stacks);
	free(process->events);
	mw_code_regions_deinit(&process->regions);
	mw_facts_deinit(&process->facts);
	free(process);
}

static struct mw_error *add_process(struct mw_replay *replay)
{
	struct process **processes = reallocarray(replay->processes, replay->count + 1, sizeof(struct process *));
	struct process *process = calloc(1, sizeof(*process));

	if (processes)
		replay->processes = processes;
	if (!processes || !process) {
		free(process);
		return mw_error_nomem();
	}
	replay->processes[replay->count++] = process;
	MW_TRY(mw_facts_init(&process->facts));
	process->replay = replay;
	process->symbols = (struct mw_view_symbols){.context = process, .resolve = resolve};
	return NULL;
}

static struct mw_error *process_of(struct mw_replay *replay, uint32_t number, struct process **out)
{
	if (number >= MOST_PROCESSES)
		return mw_error_create(MW_ERROR_DATA, 0, "process number %u", number);
	while (replay->count <= number)
		MW_TRY(add_process(replay));
	*out = replay->processes[number];
	return NULL;
}

/* --- facts --------------------------------------------------------------------------------------------- */

#define FACT(what, type)                                                                                               \
	static struct mw_error *on_##what(void *context, uint32_t number, const type *told)                            \
	{                                                                                                              \
		struct process *process;                                                                               \
                                                                                                                       \
		MW_TRY(process_of(context, number, &process));                                                         \
		return mw_facts_##what(&process->facts, told);                                                         \
	}

FACT(target, struct mw_stored_target)
FACT(hook, struct mw_stored_hook)
FACT(module, struct mw_stored_module)
FACT(sample, struct mw_stored_sample)
FACT(mark, struct mw_stored_mark)
FACT(symbol, struct mw_stored_symbol)
FACT(end, struct mw_stored_end)

static struct mw_error *on_mapping(void *context, uint32_t number, enum mw_stored_moment moment,
				   const struct mw_stored_mapping *mapping)
{
	struct process *process;

	MW_TRY(process_of(context, number, &process));
	return mw_facts_mapping(&process->facts, moment, mapping);
}

static struct mw_error *on_before_fact(void *context, uint32_t number, mw_addr start, mw_addr end)
{
	struct process *process;

	MW_TRY(process_of(context, number, &process));
	return mw_facts_before(&process->facts, start, end);
}

static void on_progress(void *context, uint64_t done, uint64_t total)
{
	struct mw_replay *replay = context;

	replay->reached = done;
	if (replay->progress)
		replay->progress(replay->progress_context, replay->phase, done, total);
}

static struct mw_error *find_regions(struct process *process)
{
	struct mw_space_moment moments[2];
	struct mw_space_input space;

	(void)mw_facts_space(&process->facts, moments, &space);
	return mw_code_regions_make(space.start, space.end, &process->regions);
}

static struct mw_error *read_facts(struct mw_replay *replay)
{
	const struct mw_store_visitor visitor = {
		.context = replay,
		.target = on_target,
		.hook = on_hook,
		.module = on_module,
		.sample = on_sample,
		.mark = on_mark,
		.mapping = on_mapping,
		.before = on_before_fact,
		.symbol = on_symbol,
		.end = on_end,
		.progress = on_progress,
	};

	replay->phase = "looking through the recording";
	MW_TRY(mw_store_read(replay->reader, &visitor, &replay->state));
	for (size_t i = 0; i < replay->count; i++)
		MW_TRY(find_regions(replay->processes[i]));
	return NULL;
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
		err = read_facts(replay);
	if (!err && !replay->count) {
		err = mw_error_create(MW_ERROR_DATA, 0, "'%.200s' tells of no process", path);
		err = mw_error_hint(err, "The recording was cut off before its window began: record it again");
	}
	if (err) {
		mw_replay_close(replay);
		return err;
	}
	*out = replay;
	return NULL;
}

void mw_replay_close(struct mw_replay *replay)
{
	if (!replay)
		return;
	for (size_t i = 0; i < replay->count; i++)
		destroy_process(replay->processes[i]);
	free(replay->processes);
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
	return replay->count;
}

const struct mw_facts *mw_replay_facts(const struct mw_replay *replay, size_t process)
{
	return &replay->processes[process]->facts;
}

const struct mw_store_state *mw_replay_state(const struct mw_replay *replay)
{
	return &replay->state;
}

const struct mw_track *mw_replay_track(const struct mw_replay *replay, size_t process)
{
	return replay->processes[process]->track;
}

/* --- events -------------------------------------------------------------------------------------------- */

/*
 * What is told now was not there, or behind damage, when the facts were read: they would not fit to it. Whoever reads
 * only events does not see that a fact is damaged, and a recording may grow while it is read.
 */
static bool is_beyond(const struct mw_replay *replay)
{
	return replay->reached >= replay->state.good;
}

/* A process that the facts told of. */
static struct mw_error *known_process(const struct mw_replay *replay, uint32_t number, const char *what,
				      struct process **out)
{
	if (number >= replay->count || !replay->processes[number]->track)
		return mw_error_create(MW_ERROR_DATA, 0, "%s of process number %u, which was not told of", what,
				       number);
	*out = replay->processes[number];
	return NULL;
}

static struct mw_error *begin(struct mw_replay *replay, uint32_t number)
{
	struct process *process = replay->processes[number];
	const struct mw_replay_interval *interval = replay->interval;

	process->begun = true;
	if (interval->from_ns)
		MW_TRY(mw_track_interval(process->track, interval->from_ns));
	if (interval->begin)
		interval->begin(interval->context, number, process->track);
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
		return mw_peak_feed(&process->peak, process->track, &process->sink, events, count);
	return process->sink.events(process->sink.context, events, count);
}

/* The events with the tracker's numbers of stacks. */
static struct mw_error *renumber(struct process *process, const struct mw_event **events, size_t count)
{
	if (!process->renumbered)
		return NULL;
	if (process->event_capacity < count) {
		struct mw_event *room = reallocarray(process->events, count, sizeof(*room));

		if (!room)
			return mw_error_nomem();
		process->events = room;
		process->event_capacity = count;
	}
	memcpy(process->events, *events, count * sizeof(**events));
	for (size_t i = 0; i < count; i++)
		if (process->events[i].stack < process->stack_count)
			process->events[i].stack = process->stacks[process->events[i].stack];
	*events = process->events;
	return NULL;
}

static struct mw_error *on_events(void *context, uint32_t number, const struct mw_event *events, size_t count)
{
	struct mw_replay *replay = context;
	struct process *process = NULL;
	size_t part;

	if (is_beyond(replay))
		return NULL;
	MW_TRY(known_process(replay, number, "events", &process));
	MW_TRY(renumber(process, &events, count));
	if (count && events[count - 1].time_ns > process->facts.last_ns)
		process->facts.last_ns = events[count - 1].time_ns;
	if (!process->begun) {
		part = before(events, count, replay->interval->from_ns);
		MW_TRY(process->sink.events(process->sink.context, events, part));
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

static struct mw_error *on_stack(void *context, uint32_t number, uint32_t id, const struct mw_raw_stack *stack)
{
	struct process *process = NULL;
	uint32_t given;

	if (is_beyond(context))
		return NULL;
	MW_TRY(known_process(context, number, "a stack", &process));
	MW_TRY(process->sink.stack(process->sink.context, stack, &given));
	if (id >= MOST_STACKS)
		return mw_error_create(MW_ERROR_DATA, 0, "stack number %u", id);
	while (process->stack_count <= id) {
		uint32_t *stacks = mw_vector_room(process->stacks, process->stack_count, &process->stack_capacity,
						  sizeof(*stacks));

		if (!stacks)
			return mw_error_nomem();
		process->stacks = stacks;
		stacks[process->stack_count++] = MW_STACK_NONE;
	}
	process->stacks[id] = given;
	process->renumbered |= given != id;
	return NULL;
}

static struct mw_error *on_thread(void *context, uint32_t number, const struct mw_stored_thread *thread)
{
	struct process *process = NULL;
	uint32_t given;
	bool fresh;

	if (is_beyond(context))
		return NULL;
	MW_TRY(known_process(context, number, "a thread", &process));
	fresh = thread->number == mw_track_thread_count(process->track);
	MW_TRY(process->sink.thread(process->sink.context, thread->tid, thread->name ? thread->name : "", fresh,
				    &given));
	return given == thread->number
		       ? NULL
		       : mw_error_create(MW_ERROR_DATA, 0, "thread number %u is told of as %u", given, thread->number);
}

static struct mw_error *on_before(void *context, uint32_t number, mw_addr start, mw_addr end)
{
	struct process *process = NULL;

	if (is_beyond(context))
		return NULL;
	MW_TRY(known_process(context, number, "mappings", &process));
	return mw_track_before(process->track, start, end);
}

static struct mw_error *renew(struct process *process)
{
	mw_track_destroy(process->track);
	process->track = NULL;
	MW_TRY(mw_track_create(&process->track));
	process->sink = mw_track_sink(process->track);
	process->begun = process->over = false;
	process->peak = (struct mw_peak){0};
	process->stack_count = 0;
	process->renumbered = false;
	return NULL;
}

/* What the end would have told is not known. */
static void cut_off(struct mw_facts *facts)
{
	facts->window.ended = MW_END_LOST;
	memset(&facts->stats, 0xff, sizeof(facts->stats)); /* MW_SIZE_UNKNOWN */
	facts->stats.left_behind = NULL;
	/* Of these there are none but those that the cut is. */
	facts->stats.lost_events = facts->stats.lost_stacks = 0;
}

struct mw_error *mw_replay_run(struct mw_replay *replay, const struct mw_replay_interval *interval)
{
	struct mw_store_state state;
	const struct mw_store_visitor visitor = {
		.context = replay,
		.before = on_before,
		.thread = on_thread,
		.stack = on_stack,
		.events = on_events,
		.progress = on_progress,
	};

	for (size_t i = 0; i < replay->count; i++)
		MW_TRY(renew(replay->processes[i]));
	replay->interval = interval;
	replay->phase = "reading events";
	for (size_t i = 0; i < replay->count && !interval->from_ns; i++)
		MW_TRY(begin(replay, (uint32_t)i));
	replay->reached = 0;
	/* To its end, also where the interval is over long before: threads' names may come as late, how far a recording
	 * without its end goes is its last event's time, and damage that lies behind is to be told. */
	MW_TRY(mw_store_read(replay->reader, &visitor, &state));
	/* The reading that came less far has the last word on how it ends. */
	if (state.good < replay->state.good)
		replay->state = state;
	for (size_t i = 0; i < replay->count; i++) {
		struct process *process = replay->processes[i];

		if (!process->begun)
			MW_TRY(begin(replay, (uint32_t)i));
		process->facts.window.length_ns = mw_facts_length(&process->facts);
		if (!process->facts.has_end)
			cut_off(&process->facts);
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
		*at_ns = replay->processes[process]->peak.at_ns;
	return err;
}

void mw_replay_input(const struct mw_replay *replay, size_t number, struct mw_summary_input *out)
{
	const struct process *process = replay->processes[number];
	const struct mw_facts *facts = &process->facts;

	*out = (struct mw_summary_input){
		.track = process->track,
		.modules = facts->modules,
		.module_count = facts->module_count,
		.symbols = &process->symbols,
		.regions = &process->regions,
		.pid = facts->target.pid,
		.comm = facts->target.comm,
		.exe = facts->target.exe,
		.command = (char *const *)facts->target.command,
		.command_count = facts->target.command_count,
		.window = &facts->window,
		.stats = &facts->stats,
		.cut = replay->state.cut ? (replay->state.why ? replay->state.why : "its end is missing") : NULL,
		.engine = facts->target.engine,
		.engine_reason = facts->target.engine_reason,
		.hooks = facts->hooks,
		.hook_count = facts->hook_count,
		.samples = facts->samples,
		.sample_count = facts->sample_count,
		.marks = facts->marks,
		.mark_count = facts->mark_count,
		.track_heap = facts->target.track_heap,
		.track_vm = facts->target.track_vm,
	};
}

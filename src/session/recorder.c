// SPDX-License-Identifier: MIT
/* recorder.c: what is kept of one process while it is watched (recorder.h). */
#include "session/recorder.h"

#include "alloc/families.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "proc/file.h"
#include "proc/maps.h"
#include "proc/program.h"
#include "proc/root.h"
#include "proc/status.h"
#include "session/crash.h"
#include "session/emitter.h"
#include "session/outputs.h"
#include "session/terminal.h"
#include "symbol/distribution.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Each window is as long as was asked for. The process is looked at after that, while its hooks still stand, and what
 * is mapped meanwhile is noted: it is not of the window, though the look may have seen it.
 */
#define WALK_NS  UINT64_C(300000000) /* for glibc's arenas, at the window's start and end … */
#define HASTE_NS UINT64_C(100000000) /* … and of a process that waits for it */

/* Without memory for it a mapping may be reported as unattributed. */
static void note(struct mw_recorder *recorder, const struct mw_event *event)
{
	bool maps = event->type == MW_EVENT_MAP || event->type == MW_EVENT_REMAP_END;

	if (maps && (recorder->noting || event->time_ns > recorder->end_ns) && event->addr + event->size > event->addr)
		mw_error_destroy(mw_space_ranges_add(&recorder->late, event->addr, event->addr + event->size));
}

/* Not every free of a block that came to be after the window: there may be millions. */
static bool is_of_window(const struct mw_recorder *recorder, const struct mw_event *event)
{
	if (event->type == MW_EVENT_FREE)
		return event->addr && recorder->sink.knows(recorder->sink.context, event->addr);
	return event->type != MW_EVENT_ALLOC;
}

/* One that is later than the window. */
static struct mw_error *settle(struct mw_recorder *recorder, const struct mw_event *event)
{
	if (!recorder->settles)
		return NULL;
	if (!recorder->settling)
		MW_TRY(mw_emitter_settle(recorder->emitter));
	recorder->settling = true;
	return is_of_window(recorder, event) ? recorder->sink.event(recorder->sink.context, event) : NULL;
}

static struct mw_error *on_event(void *context, const struct mw_event *event)
{
	struct mw_recorder *recorder = context;

	note(recorder, event);
	return event->time_ns > recorder->end_ns ? settle(recorder, event)
						 : recorder->sink.event(recorder->sink.context, event);
}

/* They come in order of time. */
static struct mw_error *on_events(void *context, const struct mw_event *events, size_t count)
{
	struct mw_recorder *recorder = context;
	size_t within = count;

	while (within > 0 && events[within - 1].time_ns > recorder->end_ns)
		within--;
	for (size_t i = recorder->noting ? 0 : within; i < count; i++)
		note(recorder, &events[i]);
	if (within && recorder->sink.events)
		MW_TRY(recorder->sink.events(recorder->sink.context, events, within));
	for (size_t i = 0; i < within && !recorder->sink.events; i++)
		MW_TRY(recorder->sink.event(recorder->sink.context, &events[i]));
	for (size_t i = within; i < count; i++)
		MW_TRY(settle(recorder, &events[i]));
	return NULL;
}

static struct mw_error *on_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.stack(recorder->sink.context, stack, id);
}

static struct mw_error *on_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.thread(recorder->sink.context, tid, name, fresh, number);
}

static bool on_knows(void *context, mw_addr addr)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.knows(recorder->sink.context, addr);
}

struct mw_event_sink mw_recorder_sink(struct mw_recorder *recorder)
{
	return (struct mw_event_sink){
		.context = recorder,
		.stack = on_stack,
		.thread = on_thread,
		.event = on_event,
		.events = on_events,
		.knows = on_knows,
	};
}

/* From here on what is mapped is noted. What was mapped until now may go, and its address be given out again. */
static void begin(struct mw_recorder *recorder, struct mw_space_ranges *blocks)
{
	mw_error_destroy(mw_space_ranges_add_blocks(blocks, recorder->watched->track));
	mw_space_ranges_join(blocks);
	for (size_t i = 0; i < blocks->count; i++)
		mw_error_destroy(mw_space_ranges_add(&recorder->late, blocks->items[i].start, blocks->items[i].end));
	recorder->noting = true;
}

void mw_recorder_look_begin(struct mw_recorder *recorder, struct mw_recorder_look *look)
{
	*look = (struct mw_recorder_look){.recorder = recorder};
	begin(recorder, &look->blocks);
}

void mw_recorder_look_take(struct mw_recorder_look *look)
{
	const struct mw_space_known known = {
		.blocks = &look->blocks,
		.earlier = &look->recorder->start,
		.walk_ns = WALK_NS,
	};

	/* It matters to the report, not to the watching. */
	look->taken = mw_error_none(mw_space_take(mw_live_thread(look->recorder->pid), &known, &look->seen));
}

void mw_recorder_look_end(struct mw_recorder_look *look)
{
	struct mw_recorder *recorder = look->recorder;

	/* One that has ended meanwhile was looked at when it did. */
	if (look->taken && !recorder->ended) {
		mw_space_deinit(&recorder->end);
		recorder->end = look->seen;
		recorder->looked = true;
	} else {
		mw_space_deinit(&look->seen);
	}
	mw_space_ranges_deinit(&look->blocks);
}

/* The process ends, or seems to, and waits for this. */
static void look_last(struct mw_recorder *recorder, pid_t tid, const struct mw_recorder_own *own)
{
	struct mw_space_ranges blocks = {0};
	const struct mw_space_known known = {
		.blocks = &blocks,
		.earlier = &recorder->start,
		.own = own ? own->ranges : NULL,
		.own_count = own ? own->range_count : 0,
		.walk_ns = HASTE_NS,
	};

	begin(recorder, &blocks);
	mw_error_destroy(mw_space_take(tid, &known, &recorder->end));
	mw_space_ranges_deinit(&blocks);
}

static struct mw_error *add_gone(void *context, mw_addr start, mw_addr end)
{
	return mw_space_ranges_add(context, start, end);
}

/* What was mapped after the window's end, or since the look began, and is neither of the window's start nor of its end.
 */
static struct mw_error *find_gone(struct mw_recorder *recorder, struct mw_space_ranges *gone)
{
	const struct mw_space_input input = {
		.start = recorder->start.taken ? &recorder->start.moment : NULL,
		.before = recorder->watched->metadata.before.items,
		.before_count = recorder->watched->metadata.before.count,
	};
	MW_CLEANUP(mw_space_ranges_deinit) struct mw_space_ranges known = {0};

	MW_TRY(mw_space_accounted(&input, recorder->watched->track, &known));
	mw_space_ranges_join(&recorder->late);
	for (size_t i = 0; i < recorder->late.count; i++)
		MW_TRY(mw_space_ranges_without(&known, recorder->late.items[i].start, recorder->late.items[i].end,
					       add_gone, gone));
	return NULL;
}

/* The hooks have been lifted, all events are emitted: what was seen before and is not of the window is forgotten. */
static void confirm(struct mw_recorder *recorder)
{
	MW_CLEANUP(mw_space_ranges_deinit) struct mw_space_ranges gone = {0};

	if (mw_error_none(find_gone(recorder, &gone)))
		mw_error_destroy(mw_space_confirm(&recorder->end, mw_live_thread(recorder->pid), &gone));
}

void mw_recorder_close(struct mw_recorder *recorder)
{
	if (recorder->end.taken)
		confirm(recorder);
	recorder->closed = true;
}

/* --- what is around it ---------------------------------------------------------------------------------------------- */

static void look_at_children(struct mw_recorder *recorder)
{
	MW_FREE pid_t *pids = NULL;
	struct mw_recorder_child *children;
	size_t count = 0;

	if (!mw_error_none(mw_children_alive(recorder->pid, &pids, &count)))
		return;
	children = calloc(count + 1, sizeof(*children));
	if (!children)
		return;
	for (size_t i = 0; i < count; i++) {
		children[i].pid = pids[i];
		mw_comm_read(pids[i], pids[i], children[i].comm);
	}
	free(recorder->children);
	recorder->children = children;
	recorder->child_count = count;
	recorder->knows_children = true;
}

/* What the report says is missing in it, and what memory there is. It matters to the report, not to the watching. */
static void look_around(struct mw_recorder *recorder, pid_t tid)
{
	MW_CLOSE int root = mw_root_directory(tid);
	MW_FREE char *environment = NULL;
	char name[MW_DISTRIBUTION_NAME_MAX];
	struct stat ours, theirs;
	size_t size = 0;

	mw_memory_limit_read(recorder->pid, &recorder->limit);
	look_at_children(recorder);
	if (mw_error_none(mw_proc_file_read(&environment, &size, "/proc/%d/environ", (int)tid)))
		recorder->visible = mw_runtimes_visible(environment, size);
	if (root < 0)
		return;
	recorder->distribution = mw_distribution_find(root, name)->id;
	recorder->own_root = fstat(root, &theirs) == 0 && stat("/", &ours) == 0 &&
			     (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino);
}

/* --- who it is -------------------------------------------------------------------------------------------------- */

static void free_command(char **command, size_t count)
{
	for (size_t i = 0; command && i < count; i++)
		free(command[i]);
	free(command);
}

static void replace(char **text, char *by)
{
	if (!by)
		return;
	free(*text);
	*text = by;
}

/*
 * Who the process is by its own account. What can't be read (exe of another user's) stays as it was:
 * it matters to the report, not to the watching.
 */
static void identify(struct mw_recorder *recorder)
{
	char name[17];
	char **command = NULL;
	char *exe = NULL;
	size_t count = 0;
	/* A first thread that has ended knows neither. */
	pid_t live = mw_live_thread(recorder->pid);

	mw_error_destroy(mw_exe_read(live, &exe));
	mw_error_destroy(mw_command_read(live, &command, &count));
	mw_comm_read(recorder->pid, recorder->pid, name);
	replace(&recorder->comm, strdup(name));
	if (exe) {
		free(recorder->executed);
		recorder->executed = mw_exe_executed(live, exe);
	}
	replace(&recorder->exe, exe);
	if (command) {
		free_command(recorder->command, recorder->command_count);
		recorder->command = command;
		recorder->command_count = count;
	}
	recorder->identified = exe != NULL;
}

static void init(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched, struct mw_emitter *emitter)
{
	*recorder = (struct mw_recorder){
		.pid = pid, .watched = watched, .emitter = emitter, .sink = watched->sink, .end_ns = UINT64_MAX};
	mw_perf_place_init(&recorder->jit, pid);
}

void mw_recorder_init(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched, struct mw_emitter *emitter)
{
	init(recorder, pid, watched, emitter);
	mw_program_read(pid, &recorder->program);
	identify(recorder);
	recorder->identified = true;
}

/* What a command will be called, until it can be asked. */
static bool expect(struct mw_recorder *recorder, const char *path, char *const *command, size_t count)
{
	const char *slash = strrchr(path, '/');

	recorder->comm = strndup(slash ? slash + 1 : path, 15);
	recorder->exe = realpath(path, NULL);
	recorder->command = calloc(count, sizeof(*recorder->command));
	if (!recorder->comm || !recorder->command)
		return false;
	for (; recorder->command_count < count; recorder->command_count++) {
		recorder->command[recorder->command_count] = strdup(command[recorder->command_count]);
		if (!recorder->command[recorder->command_count])
			return false;
	}
	return true;
}

struct mw_error *mw_recorder_init_launched(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched,
					   struct mw_emitter *emitter, const char *path, char *const *command,
					   size_t count)
{
	init(recorder, pid, watched, emitter);
	recorder->launched = true;
	if (!expect(recorder, path, command, count)) {
		mw_recorder_deinit(recorder);
		return mw_error_nomem();
	}
	return NULL;
}

void mw_recorder_deinit(struct mw_recorder *recorder)
{
	mw_space_deinit(&recorder->start);
	mw_space_deinit(&recorder->end);
	mw_space_ranges_deinit(&recorder->late);
	mw_perf_place_deinit(&recorder->jit);
	free(recorder->comm);
	free(recorder->exe);
	free(recorder->executed);
	free(recorder->children);
	free_command(recorder->command, recorder->command_count);
	memset(recorder, 0, sizeof(*recorder));
}

/* The one before it is good now, but where this one is of the same moment. */
static struct mw_error *take_sample(struct mw_recorder *recorder, const struct mw_stored_sample *sample)
{
	if (recorder->sample_count && recorder->newest.time_ns < sample->time_ns)
		MW_TRY(mw_emitter_sample(recorder->emitter, &recorder->newest));
	recorder->sample_count += !recorder->sample_count || recorder->newest.time_ns < sample->time_ns;
	recorder->newest = *sample;
	return NULL;
}

static void sample_totals(const struct mw_recorder *recorder, struct mw_stored_sample *sample)
{
	struct mw_track_totals totals;

	/* Where the tracker has begun anew since, what is older is of the window all the same. */
	mw_track_totals(recorder->watched->track, MW_KIND_HEAP, &totals);
	sample->heap_impacting = totals.impacting.bytes + totals.aofo.bytes;
	mw_track_totals(recorder->watched->track, MW_KIND_VM, &totals);
	sample->vm_impacting = totals.impacting.bytes + totals.aofo.bytes;
}

/* What is memwatch's own is not the process's. */
static uint64_t without(uint64_t bytes, uint64_t own)
{
	return bytes > own ? bytes - own : 0;
}

/* Those of the window's start and end are had by looks of their own. */
static void sample_arenas(struct mw_recorder *recorder, pid_t tid, uint64_t time_ns, bool last,
			  struct mw_stored_sample *sample)
{
	sample->arena_used = sample->arena_free = sample->arena_size = MW_SIZE_UNKNOWN;
	if (time_ns && !last)
		mw_space_sample(&recorder->dear_arenas, tid, sample);
}

void mw_recorder_sample(struct mw_recorder *recorder, pid_t tid, uint64_t time_ns, bool last,
			const struct mw_recorder_own *own)
{
	uint64_t at_ns = time_ns < recorder->end_ns ? time_ns : recorder->end_ns;
	struct mw_stored_sample sample = {.time_ns = at_ns};
	/* smaps_rollup walks all page tables: too dear for once a second. */
	bool with_pss = last || recorder->sample_count == 0;

	/* The window is over, and others' go on. */
	if (recorder->closed || (time_ns > recorder->end_ns && !last))
		return;
	if (!mw_error_none(mw_memory_read(tid, with_pss, &sample.rss, &sample.pss, &sample.vsize)))
		return;
	/* Its memory has gone since it was looked at for the last time. */
	if (recorder->ended && sample.vsize == 0)
		return;
	if (own) {
		sample.rss = without(sample.rss, own->resident);
		sample.vsize = without(sample.vsize, own->mapped);
		/* The process has half of each page that it shares with memwatch. */
		if (sample.pss != MW_SIZE_UNKNOWN)
			sample.pss = without(sample.pss, own->resident / 2);
	}
	if (!recorder->identified)
		identify(recorder);
	sample_totals(recorder, &sample);
	sample_arenas(recorder, tid, time_ns, last, &sample);
	/* After one that seemed the last, the process lived on; or several threads end it, and it is gone before it can
	 * be looked at once more: then what was seen first is good. */
	if (recorder->ended && !last && !recorder->looked)
		mw_space_deinit(&recorder->end);
	if (last && !recorder->looked)
		look_last(recorder, tid, own);
	if (last)
		look_around(recorder, tid);
	/* It matters to the report, not to the watching. */
	mw_error_destroy(take_sample(recorder, &sample));
	recorder->ended = last;
}

/* glibc's arenas as they were at that look. */
static void set_arenas(struct mw_stored_sample *sample, const struct mw_space_snapshot *snapshot)
{
	sample->arena_used = snapshot->taken ? snapshot->moment.arena_used : MW_SIZE_UNKNOWN;
	sample->arena_free = snapshot->taken ? snapshot->moment.arena_free : MW_SIZE_UNKNOWN;
	sample->arena_size = snapshot->taken ? snapshot->moment.arena_size : MW_SIZE_UNKNOWN;
}

void mw_recorder_look_first(struct mw_recorder *recorder)
{
	const struct mw_space_known known = {.walk_ns = WALK_NS};

	mw_recorder_sample(recorder, mw_live_thread(recorder->pid), 0, false, NULL);
	mw_space_deinit(&recorder->start);
	/* It matters to the report, not to the watching. */
	if (mw_error_none(mw_space_take(mw_live_thread(recorder->pid), &known, &recorder->start)) &&
	    recorder->sample_count)
		set_arenas(&recorder->newest, &recorder->start);
}

struct mw_error *mw_recorder_before(struct mw_recorder *recorder)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	/* Before its exec, a command's mappings are a copy of memwatch's own. */
	if (recorder->launched)
		return NULL;
	/* The engine has seen to it that it is the one that is there now that will be watched. */
	if (!mw_error_none(mw_program_check(recorder->pid, &recorder->program))) {
		mw_program_read(recorder->pid, &recorder->program);
		mw_perf_place_init(&recorder->jit, recorder->pid);
		identify(recorder);
		mw_recorder_look_first(recorder);
	}
	MW_TRY(mw_maps_read(mw_live_thread(recorder->pid), &maps));
	for (size_t i = 0; i < maps.count; i++) {
		MW_TRY(mw_track_before(recorder->watched->track, maps.items[i].start, maps.items[i].end));
		MW_TRY(mw_emitter_before(recorder->emitter, maps.items[i].start, maps.items[i].end));
	}
	return NULL;
}

/* One that seemed the process's last, before, is none of the window's end. */
static bool has_sample_at(const struct mw_recorder *recorder, uint64_t time_ns)
{
	return recorder->ended && recorder->sample_count && recorder->newest.time_ns >= time_ns;
}

struct mw_error *mw_recorder_finish(struct mw_recorder *recorder, const struct mw_window_info *window)
{
	/* A process that was killed has had no last moment to be read in, and has no memory now. One
	 * that still runs is read now: a little late, as the hooks have been lifted meanwhile. */
	if (!window->gone && !has_sample_at(recorder, window->length_ns))
		mw_recorder_sample(recorder, mw_live_thread(recorder->pid), window->length_ns, true, NULL);
	if (!recorder->ended) {
		struct mw_stored_sample gone = {
			.arena_used = MW_SIZE_UNKNOWN, .arena_free = MW_SIZE_UNKNOWN, .arena_size = MW_SIZE_UNKNOWN};

		/* Of memory that an exec has replaced, what was read last is all there is. */
		if (window->ended == MW_END_EXEC && recorder->sample_count)
			gone = recorder->newest;
		gone.time_ns = window->length_ns;
		MW_TRY(take_sample(recorder, &gone));
		recorder->ended = true;
	}
	recorder->newest.time_ns = window->length_ns;
	sample_totals(recorder, &recorder->newest);
	if (recorder->end.taken && !window->gone && !recorder->closed)
		confirm(recorder);
	set_arenas(&recorder->newest, &recorder->end);
	return mw_emitter_sample(recorder->emitter, &recorder->newest);
}

uint64_t mw_recorder_events(const struct mw_recorder *recorder)
{
	uint64_t events = 0;

	for (enum mw_kind kind = MW_KIND_HEAP; kind <= MW_KIND_VM; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(recorder->watched->track, kind, &totals);
		events += totals.size.count + totals.transient.count + totals.aofi.count;
	}
	return events;
}

bool mw_recorder_stats(const struct mw_recorder *recorder, struct mw_engine_stats *out)
{
	const struct mw_recorder_view *view = recorder->view;
	const struct mw_engine_ops *ops = view->engine->ops;
	const struct mw_engine_stats *stats = ops->stats(view->engine, recorder->pid);
	const struct mw_window_info *window = ops->window(view->engine, recorder->pid);

	if (!stats)
		return false;
	*out = *stats;
	out->settle_ns = recorder->settle_ns;
	if (window && window->ended == MW_END_LIMIT && !stats->limit_stopped)
		out->limit_memory = view->options->max_memory;
	return true;
}

static bool has_nameless_code(const struct mw_report *report)
{
	for (size_t i = 0; i < report->stack_count; i++)
		for (size_t j = 0; j < report->stacks[i].frame_count; j++)
			if (report->stacks[i].frames[j].generated)
				return true;
	return false;
}

/* Where code in no file has no name, and something was amiss with the list of them. Takes `err`. */
static void emit_names(struct mw_error *err, const struct mw_perf_map *names, const struct mw_report *report)
{
	if ((err || names->cut) && has_nameless_code(report)) {
		fputs("memwatch: names of code in no file: ", stderr);
		mw_message_put(stderr, err ? mw_error_text(err) : "the list is too long, the older ones are missing");
		fputc('\n', stderr);
	}
	mw_error_destroy(err);
}

struct mw_error *mw_recorder_report(struct mw_recorder *recorder, struct mw_reports *reports, size_t process)
{
	const struct mw_recorder_view *view = recorder->view;
	struct mw_watched *watched = recorder->watched;
	struct mw_guarded_symbols guarded;
	struct mw_view_symbols symbols;
	struct mw_perf_map names = {.count = 0};
	struct mw_error *err, *unnamed;

	MW_TRY(mw_watched_settle(watched));
	MW_TRY(mw_guarded_symbols_init(&guarded, view->engine->ops->modules(view->engine, recorder->pid)));
	unnamed = mw_perf_map_read(&recorder->jit, &names);
	mw_symbolizer_set_names(guarded.symbolizer, &names);
	symbols = mw_guarded_symbols_of(&guarded);
	watched->symbols = mw_emitter_symbols(recorder->emitter, &symbols);
	err = mw_reports_make(reports, process, watched);
	watched->symbols = (struct mw_view_symbols){.resolve = NULL};
	mw_progress_clear(view->progress); /* a message may come */
	if (!err)
		emit_names(unnamed, &names, reports->items[process]);
	else
		mw_error_destroy(unnamed);
	*view->unnamed |= guarded.crashed;
	mw_guarded_symbols_deinit(&guarded);
	mw_perf_map_deinit(&names);
	return err;
}

/* --- looks at the windows' ends, while the engine serves the processes -------------------------------------------- */

#define TURN_NS UINT64_C(2000000) /* that the engine runs for, until it is asked whether all is looked at */

struct looks {
	struct mw_recorder_look *items;
	size_t count;
	atomic_bool done;
};

/* The engine's thread may have gone to the idle class, and to a CPU where others run. */
static void leave_idle(void)
{
	const struct sched_param none = {.sched_priority = 0};
	cpu_set_t all;

	CPU_ZERO(&all);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	(void)sched_setaffinity(0, sizeof(all), &all);
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
}

static void *take_all(void *context)
{
	struct looks *looks = context;

	for (size_t i = 0; i < looks->count; i++)
		mw_recorder_look_take(&looks->items[i]);
	atomic_store(&looks->done, true);
	return NULL;
}

static void *take_beside(void *context)
{
	leave_idle();
	return take_all(context);
}

struct mw_error *mw_looks_take(struct mw_recorder *recorders, size_t count, struct mw_engine *engine)
{
	struct looks looks = {.items = calloc(count + 1, sizeof(*looks.items))};
	struct mw_error *err = NULL;
	pthread_t thread;
	bool beside;

	if (!looks.items)
		return NULL; /* it matters to the report, not to the watching */
	for (size_t i = 0; i < count; i++) {
		const struct mw_window_info *window = engine->ops->window(engine, recorders[i].pid);

		if (window && !window->over)
			mw_recorder_look_begin(&recorders[i], &looks.items[looks.count++]);
	}
	beside = mw_thread_create(&thread, NULL, take_beside, &looks) == 0;
	if (!beside)
		(void)take_all(&looks);
	while (!err && !atomic_load(&looks.done))
		err = engine->ops->run(engine, mw_clock_ns() + TURN_NS, NULL);
	if (beside)
		pthread_join(thread, NULL);
	for (size_t i = 0; i < looks.count; i++)
		mw_recorder_look_end(&looks.items[i]);
	free(looks.items);
	return err;
}

// SPDX-License-Identifier: MIT
/* recorder.c: what is kept of one process while it is watched (src/session/recorder.h). */
#include "session/recorder.h"

#include "proc/maps.h"
#include "proc/status.h"
#include "session/emitter.h"
#include "session/guarded_symbols.h"
#include "session/message.h"
#include "session/reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void free_command(char **command, size_t count)
{
	for (size_t i = 0; command && i < count; i++)
		free(command[i]);
	free(command);
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
	char *comm;
	size_t count = 0;
	/* A first thread that has ended knows neither. */
	pid_t live = mw_live_thread(recorder->pid);

	mw_error_destroy(mw_exe_read(live, &exe));
	mw_error_destroy(mw_command_read(live, &command, &count));
	mw_comm_read(recorder->pid, recorder->pid, name);
	comm = strdup(name);
	if (exe) {
		free(recorder->exe);
		recorder->exe = exe;
	}
	if (comm) {
		free(recorder->comm);
		recorder->comm = comm;
	}
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

struct mw_error *mw_recorder_init(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched,
				  struct mw_emitter *emitter)
{
	init(recorder, pid, watched, emitter);
	mw_program_read(pid, &recorder->program);
	identify(recorder);
	recorder->identified = true;
	return NULL;
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
	free_command(recorder->command, recorder->command_count);
	memset(recorder, 0, sizeof(*recorder));
}

/* The one before it is good now, but where this one is of the same moment. */
static struct mw_error *take_sample(struct mw_recorder *recorder, const struct mw_stored_sample *sample)
{
	if (recorder->sample_count && recorder->newest.time_ns < sample->time_ns && recorder->emitter)
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
		mw_space_sample(&recorder->sampler, tid, sample);
}

static void forget_end(struct mw_recorder *recorder)
{
	recorder->ended = false;
	if (!recorder->looked)
		mw_space_deinit(&recorder->end);
}

void mw_recorder_sample(struct mw_recorder *recorder, pid_t tid, uint64_t time_ns, bool last,
			const struct mw_recorder_own *own)
{
	uint64_t at_ns = time_ns < recorder->end_ns ? time_ns : recorder->end_ns;
	struct mw_stored_sample sample = {.time_ns = at_ns};
	/* smaps_rollup walks all page tables: too dear for once a second. */
	bool with_pss = last || recorder->sample_count == 0;
	struct mw_error *err;

	/* The window is over, and others' go on. */
	if (time_ns > recorder->end_ns && !last)
		return;
	err = mw_memory_read(tid, with_pss, &sample.rss, &sample.pss, &sample.vsize);
	if (err) {
		mw_error_destroy(err);
		return;
	}
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
	if (recorder->ended && !last)
		forget_end(recorder);
	if (last && !recorder->looked)
		mw_recorder_look_last(recorder, tid, own);
	/* It matters to the report, not to the watching. */
	mw_error_destroy(take_sample(recorder, &sample));
	recorder->ended = last;
}

/* The engine has seen to it that it is the one that is there now that will be watched. */
static bool became_another(const struct mw_recorder *recorder)
{
	struct mw_error *err = mw_program_check(recorder->pid, &recorder->program);
	bool another = err != NULL;

	mw_error_destroy(err);
	return another;
}

/* glibc's arenas as they were at that look. */
static void set_arenas(struct mw_stored_sample *sample, const struct mw_space_snapshot *snapshot)
{
	sample->arena_used = snapshot->taken ? snapshot->arena_used : MW_SIZE_UNKNOWN;
	sample->arena_free = snapshot->taken ? snapshot->arena_free : MW_SIZE_UNKNOWN;
	sample->arena_size = snapshot->taken ? snapshot->arena_size : MW_SIZE_UNKNOWN;
}

void mw_recorder_look_first(struct mw_recorder *recorder)
{
	const struct mw_space_known known = {.walk_ns = MW_RECORDER_WALK_NS};
	struct mw_error *err;

	mw_space_deinit(&recorder->start);
	err = mw_space_take(mw_live_thread(recorder->pid), &known, &recorder->start);
	if (!err && recorder->sample_count)
		set_arenas(&recorder->newest, &recorder->start);
	/* It matters to the report, not to the watching. */
	mw_error_destroy(err);
}

struct mw_error *mw_recorder_before(struct mw_recorder *recorder)
{
	struct mw_maps maps = {0};
	struct mw_error *err = NULL;

	/* Before its exec, a command's mappings are a copy of memwatch's own. */
	if (recorder->launched)
		return NULL;
	if (became_another(recorder)) {
		mw_program_read(recorder->pid, &recorder->program);
		mw_perf_place_init(&recorder->jit, recorder->pid);
		identify(recorder);
		mw_recorder_sample(recorder, mw_live_thread(recorder->pid), 0, false, NULL);
		mw_recorder_look_first(recorder);
	}
	MW_TRY(mw_maps_read(mw_live_thread(recorder->pid), &maps));
	for (size_t i = 0; i < maps.count && !err; i++) {
		err = mw_track_before(recorder->watched->track, maps.items[i].start, maps.items[i].end);
		if (!err && recorder->emitter)
			err = mw_emitter_before(recorder->emitter, maps.items[i].start, maps.items[i].end);
	}
	mw_maps_deinit(&maps);
	return err;
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
	if (recorder->end.taken && !window->gone)
		mw_recorder_confirm(recorder);
	set_arenas(&recorder->newest, &recorder->end);
	return recorder->emitter ? mw_emitter_sample(recorder->emitter, &recorder->newest) : NULL;
}

struct mw_amount mw_recorder_impacting(const struct mw_recorder *recorder)
{
	struct mw_track_totals heap;
	struct mw_track_totals vm;

	mw_track_totals(recorder->watched->track, MW_KIND_HEAP, &heap);
	mw_track_totals(recorder->watched->track, MW_KIND_VM, &vm);
	return (struct mw_amount){heap.impacting.count + vm.impacting.count, heap.impacting.bytes + vm.impacting.bytes};
}

uint64_t mw_recorder_events(const struct mw_recorder *recorder)
{
	static const enum mw_kind kinds[] = {MW_KIND_HEAP, MW_KIND_VM};
	uint64_t events = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct mw_track_totals totals;

		mw_track_totals(recorder->watched->track, kinds[i], &totals);
		events += totals.size.count + totals.transient.count + totals.aofi.count;
	}
	return events;
}

bool mw_recorder_stats(const struct mw_recorder *recorder, const struct mw_recorder_view *view,
		       struct mw_engine_stats *out)
{
	const struct mw_engine_ops *ops = view->engine->ops;
	const struct mw_engine_stats *stats = ops->stats(view->engine, recorder->pid);
	const struct mw_window_info *window = ops->window(view->engine, recorder->pid);

	if (!stats)
		return false;
	*out = *stats;
	if (window && window->ended == MW_END_LIMIT && !stats->limit_stopped)
		out->limit_memory = view->max_memory;
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

struct mw_error *mw_recorder_report(struct mw_recorder *recorder, const struct mw_recorder_view *view,
				    struct mw_reports *reports, size_t process)
{
	struct mw_watched *watched = recorder->watched;
	struct mw_guarded_symbols guarded = {.crashed = false};
	struct mw_view_symbols symbols;
	struct mw_symbolizer *symbolizer = NULL;
	struct mw_perf_map names = {.count = 0};
	struct mw_error *err, *unnamed;

	MW_TRY(mw_watched_settle(watched));
	MW_TRY(mw_symbolizer_create(view->engine->ops->modules(view->engine, recorder->pid), &symbolizer));
	unnamed = mw_perf_map_read(&recorder->jit, &names);
	mw_symbolizer_set_names(symbolizer, &names);
	symbols = mw_view_symbols_of(symbolizer);
	symbols = mw_guarded_symbols_of(&guarded, &symbols);
	watched->symbols = mw_emitter_symbols(recorder->emitter, &symbols);
	err = mw_reports_make(reports, process, watched);
	watched->symbols = (struct mw_view_symbols){.resolve = NULL};
	mw_progress_clear(view->progress); /* a message may come */
	if (!err)
		emit_names(unnamed, &names, reports->items[process]);
	else
		mw_error_destroy(unnamed);
	*view->unnamed |= guarded.crashed;
	if (!guarded.crashed)
		mw_symbolizer_destroy(symbolizer);
	mw_perf_map_deinit(&names);
	return err;
}

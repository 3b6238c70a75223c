// SPDX-License-Identifier: MIT
/* record.c: a whole recording (src/cli/record.h). */
#include "cli/record.h"

#include "base/clock.h"
#include "base/reserve.h"
#include "cli/keeper.h"
#include "cli/launch.h"
#include "cli/outputs.h"
#include "cli/picture.h"
#include "cli/recorder.h"
#include "cli/self.h"
#include "cli/standby.h"
#include "proc/status.h"
#include "target/preflight.h"

#include <stdio.h>
#include <stdlib.h>

#define RESERVE       (8 << 20) /* bytes, for the detach */
#define MOST_ATTEMPTS 3         /* to attach */

struct run {
	const struct mw_cli_options *options;
	struct mw_engine *engine;
	struct mw_recorder *recorders; /* in the order of the command line */
	size_t count;
	struct mw_store_writer *writer; /* NULL: no recording is kept */
	struct mw_keeper *keepers;      /* one a recorder, where there is a writer or an HTML report is made */
	uint64_t marks[MW_SELF_MARKS];  /* that were asked for, CLOCK_MONOTONIC; further ones are not taken */
	size_t mark_count;
	struct mw_launch launch;
	struct mw_outputs outputs;
	struct mw_progress progress;
	bool unnamed;              /* names are missing in the report */
	struct mw_error *detached; /* what went wrong when letting go, to be told when the report is written */
};

static struct mw_recorder_view view_of(struct run *run)
{
	return (struct mw_recorder_view){
		.engine = run->engine,
		.reason = run->options->engine_reason,
		.track_heap = run->options->track_heap,
		.track_vm = run->options->track_vm,
		.depth = run->options->depth,
		.max_memory = run->options->max_memory,
		.progress = &run->progress,
		.unnamed = &run->unnamed,
	};
}

static void show_progress(struct run *run, uint64_t time_ns)
{
	struct mw_progress_window window = {.time_ns = time_ns, .duration_ns = run->options->duration_ns};
	const struct mw_recorder_view view = view_of(run);
	struct mw_engine_stats stats;

	for (size_t i = 0; i < run->count; i++) {
		const struct mw_recorder *recorder = &run->recorders[i];
		struct mw_amount impacting = mw_recorder_impacting(recorder);

		window.impacting.count += impacting.count;
		window.impacting.bytes += impacting.bytes;
		window.events += mw_recorder_events(recorder);
		if (mw_recorder_stats(recorder, &view, &stats))
			window.stood_ns += stats.stood_ns;
		window.processes++;
		if (recorder->sample_count && !recorder->ended)
			window.rss += recorder->samples[recorder->sample_count - 1].rss;
	}
	mw_progress_window(&run->progress, &window);
}

/* What has come since is put into the recording. Where there is no memory for it now it will be later. */
static void keep_news(struct run *run, size_t i)
{
	const struct mw_recorder_view view = view_of(run);

	if (run->keepers)
		mw_error_destroy(mw_keeper_news(&run->keepers[i], &run->recorders[i], &view));
}

/* Marks that were asked for until now, and those that are due, in order of time; `time_ns` is now. */
static void keep_marks(struct run *run, size_t i, uint64_t time_ns)
{
	struct mw_keeper *keeper = &run->keepers[i];
	uint64_t start_ns = mw_clock_ns() - time_ns;

	/* It is some time since `time_ns` was now: the earliest start that was seen is nearest. */
	if (!keeper->start_ns || start_ns < keeper->start_ns)
		keeper->start_ns = start_ns;
	start_ns = keeper->start_ns;
	while (run->mark_count < MW_SELF_MARKS && mw_self_take_mark(&run->marks[run->mark_count]))
		run->mark_count++;
	for (;;) {
		uint64_t asked = UINT64_MAX, due = keeper->every_ns ? keeper->next_ns : UINT64_MAX;

		if (keeper->asked < run->mark_count)
			asked = run->marks[keeper->asked] > start_ns ? run->marks[keeper->asked] - start_ns : 0;
		if (asked > time_ns && due > time_ns)
			return;
		mw_keeper_mark(keeper, &run->recorders[i], asked < due ? asked : due);
		if (asked < due)
			keeper->asked++;
		else
			keeper->next_ns += keeper->every_ns;
	}
}

static void on_sample(void *context, pid_t pid, pid_t tid, uint64_t time_ns, bool last)
{
	struct run *run = context;
	struct mw_engine_range places[MW_RECORDER_RANGES];
	struct mw_space_range ranges[MW_RECORDER_RANGES];
	struct mw_recorder_own own = {.ranges = ranges};

	if (run->engine->ops->own_memory)
		run->engine->ops->own_memory(run->engine, pid, &own.resident, &own.mapped);
	if (run->engine->ops->own_ranges && last)
		own.range_count = run->engine->ops->own_ranges(run->engine, pid, places, MW_RECORDER_RANGES);
	for (size_t i = 0; i < own.range_count; i++)
		ranges[i] = (struct mw_space_range){places[i].start, places[i].end};
	for (size_t i = 0; i < run->count; i++) {
		if (run->recorders[i].pid != pid)
			continue;
		mw_recorder_sample(&run->recorders[i], tid, time_ns, last, &own);
		if (run->keepers)
			keep_marks(run, i, time_ns);
		keep_news(run, i);
	}
	if (run->progress.shown && !last)
		show_progress(run, time_ns);
}

/* One breakpoint can't report to two: processes that share their memory are one to memwatch. */
static struct mw_error *check_shared(const struct mw_cli_pids *pids)
{
	for (size_t i = 0; i < pids->count; i++)
		for (size_t j = i + 1; j < pids->count; j++) {
			struct mw_error *err;

			if (mw_shares_memory(pids->items[i], pids->items[j]) != 1)
				continue;
			err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "processes %d and %d share their memory",
					      (int)pids->items[i], (int)pids->items[j]);
			return mw_error_hint(err, "Name one of the two");
		}
	return NULL;
}

static struct mw_error *prepare_attached(struct run *run)
{
	const struct mw_cli_pids *pids = &run->options->pids;

	for (size_t i = 0; i < pids->count; i++)
		MW_TRY(mw_preflight(pids->items[i]));
	MW_TRY(check_shared(pids));
	run->recorders = calloc(pids->count + 1, sizeof(*run->recorders));
	if (!run->recorders)
		return mw_error_nomem();
	for (; run->count < pids->count; run->count++)
		MW_TRY(mw_recorder_init(&run->recorders[run->count], pids->items[run->count]));
	return NULL;
}

static struct mw_error *prepare_launched(struct run *run)
{
	const struct mw_cli_options *options = run->options;

	run->recorders = calloc(1, sizeof(*run->recorders));
	if (!run->recorders)
		return mw_error_nomem();
	MW_TRY(mw_launch_start(options->command, &run->launch));
	MW_TRY(mw_recorder_init_launched(&run->recorders[0], run->launch.pid, run->launch.path, options->command,
					 options->command_count));
	run->count = 1;
	return NULL;
}

static struct mw_error *create_engine(struct run *run)
{
	const struct mw_cli_options *options = run->options;
	const struct mw_engine_ops *ops = mw_engine_find(options->engine);
	const struct mw_engine_options engine_options = {
		.track_heap = options->track_heap,
		.track_vm = options->track_vm,
		.depth = options->depth,
		.max_stopped = options->max_stopped,
		.unsafe = options->unsafe,
		.sample = on_sample,
		.sample_context = run,
		.program = run->launch.pid ? run->launch.path : NULL,
	};

	if (!ops)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "this memwatch was built without engine '%s'",
				       options->engine);
	return ops->create(&engine_options, &run->engine);
}

/* What is told of each process goes into the recording as well, and into its picture. */
static struct mw_error *prepare_recording(struct run *run)
{
	if (!run->writer && !run->options->html)
		return NULL;
	run->keepers = calloc(run->count, sizeof(*run->keepers));
	if (!run->keepers)
		return mw_error_nomem();
	for (size_t i = 0; i < run->count; i++) {
		struct mw_recorder *recorder = &run->recorders[i];

		run->keepers[i] = (struct mw_keeper){.writer = run->writer,
						     .process = (uint32_t)i,
						     .symbols = !run->options->no_symbols,
						     .every_ns = run->options->mark_every_ns,
						     .next_ns = run->options->mark_every_ns};
		recorder->keeper = &run->keepers[i];
		if (run->options->html)
			MW_TRY(mw_recorder_draw(recorder));
		if (run->writer)
			MW_TRY(mw_store_sink(run->writer, (uint32_t)i, &recorder->inner, &recorder->sink));
	}
	return NULL;
}

/* The windows have begun: from now on there is a recording, whatever becomes of us. */
static struct mw_error *begin_recording(struct run *run)
{
	const struct mw_recorder_view view = view_of(run);

	if (!run->writer)
		return NULL;
	for (size_t i = 0; i < run->count; i++)
		MW_TRY(mw_keeper_target(&run->keepers[i], &run->recorders[i], &view));
	return mw_store_publish(run->writer);
}

static struct mw_error *end_recording(struct run *run)
{
	const struct mw_recorder_view view = view_of(run);

	for (size_t i = 0; run->keepers && i < run->count; i++) {
		const struct mw_window_info *window = run->engine->ops->window(run->engine, run->recorders[i].pid);

		if (window)
			keep_marks(run, i, window->length_ns);
		MW_TRY(mw_keeper_end(&run->keepers[i], &run->recorders[i], &view));
	}
	return NULL;
}

/* A guard that cleans up after a memwatch that was killed may trace any thread: it is waited for. */
static struct mw_error *attach(struct run *run, struct mw_recorder *recorder)
{
	struct mw_error *err;

	for (unsigned i = 1;; i++) {
		err = run->engine->ops->attach(run->engine, recorder->pid, recorder->launched, &recorder->sink);
		if (!err || mw_error_kind(err) != MW_ERROR_DENIED || i >= MOST_ATTEMPTS || *mw_self_interrupted())
			return err;
		/* It may have let go since it was in the way. */
		if (!mw_preflight_await_guard(recorder->pid) && i > 1)
			return err;
		mw_error_destroy(err);
	}
}

static struct mw_error *attach_all(struct run *run)
{
	const struct mw_engine_ops *ops = run->engine->ops;

	for (size_t i = 0; i < run->count; i++) {
		struct mw_recorder *recorder = &run->recorders[i];

		/* Before anything stands still for it. */
		if (!recorder->launched)
			mw_recorder_sample(recorder, mw_live_thread(recorder->pid), 0, false, NULL);
		if (!recorder->launched)
			mw_recorder_look(recorder, false);
		MW_TRY(attach(run, recorder));
	}
	for (size_t i = 0; i < run->count; i++)
		MW_TRY(mw_recorder_before(&run->recorders[i]));
	if (run->launch.pid)
		MW_TRY(mw_launch_go(&run->launch));
	MW_TRY(ops->start(run->engine));
	return begin_recording(run);
}

/* From the first attach to the end of the window. */
static struct mw_error *watch(struct run *run)
{
	struct mw_error *err = attach_all(run);
	uint64_t deadline = 0;

	/* Whatever failed, that one of them ended or became another meanwhile is the reason. */
	for (size_t i = 0; i < run->count && err; i++)
		err = mw_program_explain(run->recorders[i].pid, &run->recorders[i].program, err);
	if (err)
		return err;
	if (run->options->duration_ns)
		deadline = mw_clock_ns() + run->options->duration_ns;
	return run->engine->ops->run(run->engine, deadline, mw_self_interrupted());
}

/* The first of two errors; the other is dropped. */
static struct mw_error *first_of(struct mw_error *first, struct mw_error *second)
{
	if (!first)
		return second;
	mw_error_destroy(second);
	return first;
}

/* What could not be taken out at once may be now. Without it there is no error; else nothing is to come before that
 * it is taken out. */
static struct mw_error *let_go(struct run *run)
{
	struct mw_error *err = run->engine->ops->detach(run->engine);
	bool clean = false, denied = false;

	if (err)
		err = mw_standby_look(err, &clean, &denied);
	if (!clean || denied)
		return err;
	mw_error_destroy(err);
	return NULL;
}

/* Stand by before anything is attached, and whatever the end, see that nothing stays behind. */
static struct mw_error *stand_by(struct run *run)
{
	pid_t *pids = calloc(run->count + 1, sizeof(*pids));
	const struct mw_standby_plan plan = {
		.pids = pids,
		.count = run->count,
		.partials = mw_outputs_partials(&run->outputs),
		.output = run->options->output,
		.max_memory = run->options->max_memory,
		.reached = mw_self_limit_reached,
	};
	struct mw_error *err;

	if (!pids)
		return mw_error_nomem();
	for (size_t i = 0; i < run->count; i++)
		pids[i] = run->recorders[i].pid;
	mw_reserve_keep(RESERVE);
	err = mw_standby_begin(&plan);
	free(pids);
	return err;
}

/* A command that runs another under valgrind is seen up to there, and nothing of what was asked for. */
static struct mw_error *check_became(const struct run *run)
{
	const struct mw_window_info *window = run->engine->ops->window(run->engine, run->launch.pid);

	return window && window->ended == MW_END_EXEC ? mw_preflight_became(run->launch.pid, "the command") : NULL;
}

/* Whatever went wrong, the processes are let go; a command that could not be run is the better reason. */
static struct mw_error *record_window(struct run *run)
{
	struct mw_error *err = watch(run);

	/* While what is mapped is still seen: nothing of it comes unseen. */
	for (size_t i = 0; i < run->count && !err; i++) {
		const struct mw_window_info *window = run->engine->ops->window(run->engine, run->recorders[i].pid);

		if (window && !window->over)
			mw_recorder_look(&run->recorders[i], true);
	}
	run->detached = let_go(run);
	mw_progress_clear(&run->progress);
	if (run->launch.pid) {
		struct mw_error *not_run = mw_launch_check(&run->launch, run->options->command);

		err = first_of(not_run, err);
		if (!err)
			err = check_became(run);
	}
	if (err || run->detached)
		return err;
	mw_standby_end();
	mw_progress_phase(&run->progress, "putting the events in order");
	for (size_t i = 0; i < run->count; i++)
		mw_recorder_finish(&run->recorders[i], run->engine->ops->window(run->engine, run->recorders[i].pid));
	return end_recording(run);
}

static struct mw_error *make_reports(struct run *run, struct mw_report **reports)
{
	const struct mw_recorder_view view = view_of(run);

	for (size_t i = 0; i < run->count; i++)
		MW_TRY(mw_recorder_report(&run->recorders[i], &view, &reports[i]));
	return NULL;
}

static struct mw_error *report(struct run *run)
{
	const struct mw_partials partials = mw_outputs_partials(&run->outputs);
	struct mw_report **reports = calloc(run->count, sizeof(struct mw_report *));
	const struct mw_timeline **timelines = calloc(run->count + 1, sizeof(*timelines));
	struct mw_error *err;

	if (!reports || !timelines) {
		free(reports);
		free(timelines);
		return mw_error_nomem();
	}
	mw_self_reporting(&partials);
	mw_progress_phase(&run->progress, "making the report");
	err = make_reports(run, reports);
	mw_progress_clear(&run->progress);
	for (size_t i = 0; i < run->count && run->options->html && !err; i++)
		timelines[i] = mw_picture_timeline(run->recorders[i].picture);
	run->outputs.timelines = timelines;
	run->outputs.progress = &run->progress;
	if (!err)
		err = mw_outputs_write(&run->outputs, (const struct mw_report *const *)reports, run->count);
	if (!err) {
		mw_self_reported();
		if (run->unnamed)
			fputs("memwatch: reading symbols has failed: names are missing in the report\n", stderr);
	}
	for (size_t i = 0; i < run->count; i++)
		mw_report_destroy(reports[i]);
	run->outputs.timelines = NULL;
	free(reports);
	free(timelines);
	return err;
}

static struct mw_error *interrupted(void)
{
	return mw_error_create(MW_ERROR_SYSTEM, 0, "interrupted before the report was written");
}

/* What is still to be written of it. */
static struct mw_error *finish_recording(struct run *run)
{
	if (!run->writer)
		return NULL;
	mw_progress_phase(&run->progress, "writing the recording");
	return mw_store_finish(run->writer);
}

static struct mw_error *record(struct run *run)
{
	struct mw_error *err;

	MW_TRY(mw_outputs_check(run->options));
	/* What can go wrong without a process is tried before one is touched. */
	MW_TRY(mw_self_check_files());
	MW_TRY(mw_outputs_open(&run->outputs, run->options));
	if (run->options->output)
		MW_TRY(mw_store_create(run->options->output, &run->writer));
	MW_TRY(run->options->command ? prepare_launched(run) : prepare_attached(run));
	MW_TRY(prepare_recording(run));
	MW_TRY(create_engine(run));
	MW_TRY(stand_by(run));
	MW_TRY(record_window(run));
	if (run->detached)
		return NULL; /* first of all that has to be mended */
	if (mw_self_hurried())
		return first_of(finish_recording(run), interrupted());
	err = report(run);
	/* Symbols have been found for the report. */
	return first_of(err, finish_recording(run));
}

/* Where memwatch has failed, or could not let go, nothing of it is attached any more, but something may be left. */
static struct mw_error *see_to_the_end(struct mw_error *err)
{
	bool clean = true, denied;

	if (err)
		err = mw_standby_look(err, &clean, &denied);
	if (!clean)
		mw_standby_exec(err);
	mw_standby_end();
	return err;
}

struct mw_error *mw_cli_record(const struct mw_cli_options *options)
{
	struct run run = {.options = options, .launch = {.go_fd = -1, .error_fd = -1}};
	struct mw_error *err;

	mw_progress_init(&run.progress, !options->quiet);
	err = record(&run);
	/* That a process could not be let go is worse than whatever came before. */
	err = first_of(run.detached, err);
	mw_progress_deinit(&run.progress);
	if (run.engine)
		run.engine->ops->destroy(run.engine);
	mw_launch_deinit(&run.launch);
	mw_store_destroy(run.writer);
	for (size_t i = 0; i < run.count; i++) {
		if (run.keepers)
			mw_keeper_deinit(&run.keepers[i]);
		mw_recorder_deinit(&run.recorders[i]);
	}
	free(run.keepers);
	free(run.recorders);
	mw_outputs_close(&run.outputs);
	mw_self_reporting(NULL);
	return see_to_the_end(err);
}

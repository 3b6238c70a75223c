// SPDX-License-Identifier: MIT
/* main.c: memwatch's commands. */
#include "base/cleanup.h"
#include "cli/diff.h"
#include "cli/heap.h"
#include "cli/options.h"
#include "doctor/doctor.h"
#include "serve/serve.h"
#include "session/exports.h"
#include "session/judge.h"
#include "session/outputs.h"
#include "session/process_setup.h"
#include "session/select.h"
#include "session/session.h"
#include "session/terminal.h"
#include "session/watchdog.h"
#include "top/top.h"
#include "view/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef MEMWATCH_STATIC
#include <bzlib.h>
#include <gnu/libc-version.h>
#endif

#ifndef MEMWATCH_NETWORK_LIBRARIES
#define MEMWATCH_NETWORK_LIBRARIES ""
#endif

/* --- a recording ----------------------------------------------------------------------------------------------------- */

struct recording {
	const struct mw_session_options *options;
	const struct mw_view_question *question; /* NULL: none */
	struct mw_session session;
	struct mw_outputs outputs;
	struct mw_serve *serve;     /* NULL: nobody else gets anything of it */
	struct mw_error *judgement; /* of --fail-on: the error where there is no other */
};

static struct mw_error *report_windows(struct recording *recording)
{
	const struct mw_partials partials = mw_outputs_partials(&recording->outputs);
	struct mw_session *session = &recording->session;
	struct mw_error *err;

	mw_process_setup_reporting(&partials);
	for (size_t i = 0; i < session->count; i++)
		MW_TRY(mw_recorder_report(&session->recorders[i], &session->reports, i));
	err = mw_reports_write(&session->reports, &recording->outputs);
	if (recording->serve)
		err = mw_error_first(err, mw_serve_finish(recording->serve));
	recording->judgement =
		mw_judge_reports(recording->options, (const struct mw_report *const *)session->reports.items,
				 session->reports.count, session->follow.left_out);
	MW_TRY(err);
	mw_process_setup_reported();
	if (session->unnamed)
		fputs("memwatch: reading symbols has failed: names are missing in the report\n", stderr);
	return NULL;
}

/* Exports for which events must be read again are made of the recording, which may have no name. */
static struct mw_error *export_again(struct recording *recording, int fd)
{
	const struct mw_reports_wish wish = {
		.exports = &recording->options->exports,
		.progress = &recording->session.progress,
	};
	const struct mw_partials partials = mw_outputs_partials(&recording->outputs);
	struct mw_error *err;

	mw_process_setup_reporting(&partials);
	err = mw_reports_write_kept(fd, &wish, &recording->outputs);
	mw_process_setup_reported();
	return err;
}

/* What is still to be written of it. */
static struct mw_error *finish_recording(struct recording *recording)
{
	struct mw_session *session = &recording->session;

	if (!session->writer)
		return NULL;
	mw_progress_phase(&session->progress, "writing the recording");
	return mw_store_finish(session->writer);
}

static struct mw_error *record_all(struct recording *recording)
{
	struct mw_session *session = &recording->session;
	const struct mw_reports_wish wish = {
		.question = recording->question,
		.timelines = mw_outputs_want_timelines(recording->options) || recording->options->listen,
		.exports = &recording->options->exports,
		.samples = mw_serve_is_wanted(recording->options),
		.progress = &session->progress,
	};
	bool again = mw_exports_read_again(&recording->options->exports);
	struct mw_partials partials;
	MW_CLOSE int fd = -1;
	const char *directory;
	struct mw_error *err;

	/* What can go wrong without a process is tried before one is touched. */
	MW_TRY(mw_process_setup_check_files());
	MW_TRY(mw_outputs_check(recording->options));
	MW_TRY(mw_outputs_open(&recording->outputs, recording->options));
	if (recording->options->output)
		MW_TRY(mw_store_create(recording->options->output, &session->writer));
	else if (again)
		MW_TRY(mw_session_keep_unnamed(session, &directory));
	if (mw_serve_is_wanted(recording->options))
		MW_TRY(mw_serve_create(session, &recording->serve));
	session->wish = &wish;
	MW_TRY(mw_session_prepare(session));
	session->wish = NULL;
	partials = mw_outputs_partials(&recording->outputs);
	MW_TRY(mw_session_stand_by(session, &partials));
	MW_TRY(mw_session_watch(session));
	if (session->detached)
		return NULL; /* first of all that has to be mended */
	if (mw_process_setup_hurried()) {
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "interrupted before the report was written");
		return mw_error_first(finish_recording(recording), err);
	}
	if (again)
		fd = mw_store_reopen(session->writer);
	if (again && fd < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot read for the export what was recorded");
	err = report_windows(recording);
	/* Symbols have been found for the report. */
	err = mw_error_first(err, finish_recording(recording));
	return again && !err ? export_again(recording, fd) : err;
}

/* Attach or launch, record the window, detach, report. NULL only if the window was recorded and every output written. On
 * failure every process runs on as before, and no output is there. */
static struct mw_error *record(const struct mw_cli_options *options)
{
	struct recording recording = {
		.options = &options->session,
		.question = mw_cli_view_options_any(&options->view) ? &options->view.question : NULL,
	};
	struct mw_error *err;

	mw_session_init(&recording.session, recording.options, !recording.options->quiet);
	err = record_all(&recording);
	mw_outputs_close(&recording.outputs);
	mw_process_setup_reporting(NULL);
	err = mw_error_first(err, mw_serve_destroy(recording.serve));
	err = mw_session_end(&recording.session, err);
	return mw_error_first(err, recording.judgement);
}

/* --- report ---------------------------------------------------------------------------------------------------------- */

struct replay {
	const struct mw_cli_options *options;
	struct mw_replay *replay;
	struct mw_replay_interval interval;
	struct mw_outputs outputs;
	struct mw_progress progress;
	struct mw_reports reports;
};

static struct mw_error *check_interval(const struct replay *replay)
{
	const struct mw_cli_report_options *options = &replay->options->report;
	uint64_t length = mw_replay_length(replay->replay);

	/* How long a recording is that was cut off is not known before its events are read. */
	if (mw_replay_state(replay->replay)->cut)
		return NULL;
	if (options->at_moment && options->to_ns > length)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "--at %.3f s is after the end of the window, at %.3f s",
						     (double)options->to_ns / 1e9, (double)length / 1e9),
				     "Times are seconds since the window's start: take an earlier moment");
	if (options->from_ns <= length)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
					     "the interval starts at %.3f s, and the window ends at %.3f s",
					     (double)options->from_ns / 1e9, (double)length / 1e9),
			     "Times are seconds since the window's start: take an earlier --from");
}

/* Is there a look at the heap, and is it of what is reported? */
static struct mw_error *check_leaks(const struct replay *replay)
{
	bool any = false;

	for (size_t i = 0; i < mw_replay_count(replay->replay); i++)
		any |= mw_replay_watched(replay->replay, i)->metadata.leaks_count != 0;
	if (!any)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "the recording has no look at the heap"),
				     "Record with --leaks, or look at a process that runs: memwatch heap -p PID");
	if (replay->options->report.from_ns || replay->options->report.has_to || replay->options->report.at_peak)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "--leaks can't be used with a part of the window: the heap was "
						     "looked at when it ended"),
				     "Leave out --from, --to and --at");
	return NULL;
}

static struct mw_error *find_peak(struct replay *replay)
{
	uint64_t at_ns = 0;

	if (!replay->options->report.at_peak)
		return NULL;
	if (mw_replay_count(replay->replay) > 1)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "the processes reach their peaks at different times"),
			"Give the moment by --at TIME");
	MW_TRY(mw_replay_peak(replay->replay, &replay->interval, 0, &at_ns));
	/* The event that made the peak lies inside. */
	replay->interval.to_ns = at_ns + 1;
	return NULL;
}

/* A recording that goes no further than to its middle is reported, but not in silence. */
static void report_cut(const struct mw_store_state *state)
{
	if (state->cut)
		fprintf(stderr,
			"memwatch: the recording is not complete: %s; %" PRIu64 " of %" PRIu64
			" bytes are good, and reported\n",
			state->why ? state->why : "its end is missing", state->good, state->size);
}

/* Of a look at a heap, which has no window. */
static struct mw_error *report_heap(struct replay *replay, const struct mw_heap_report *heap)
{
	const struct mw_cli_report_options *options = &replay->options->report;

	if (replay->options->session.exports.count)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "'%.200s' is a look at a heap, which has no allocations to export",
						     options->recording),
				     "Export the recording of a window: memwatch -p PID -o FILE writes one");
	if (options->from_ns || options->has_to || options->at_peak || options->at_moment ||
	    mw_cli_view_options_any(&replay->options->view))
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "'%.200s' is a look at a heap, not a window",
					options->recording),
			"Leave out --from, --to, --at and what views are made by: it is one moment, and its "
			"blocks are grouped as they were by memwatch heap --by");
	mw_progress_clear(&replay->progress);
	replay->outputs.progress = &replay->progress;
	MW_TRY(mw_outputs_write_heap(&replay->outputs, heap));
	return mw_judge_heap(&replay->options->session.fail_on, heap);
}

static struct mw_error *report_all(struct replay *replay)
{
	const struct mw_cli_report_options *options = &replay->options->report;
	const struct mw_session_options *outputs = &replay->options->session;
	const struct mw_cli_view_options *view = &replay->options->view;
	const struct mw_reports_wish wish = {
		.question = mw_cli_view_options_any(view) && !outputs->exports.alone ? &view->question : NULL,
		.timelines = mw_outputs_want_timelines(outputs),
		.exports = &outputs->exports,
		.pids = &options->pids,
		.progress = &replay->progress,
	};
	struct mw_error *err;

	MW_TRY(mw_outputs_check_recording(outputs, options->recording, "the recording itself"));
	MW_TRY(mw_outputs_check(outputs));
	MW_TRY(mw_outputs_open(&replay->outputs, outputs));
	MW_TRY(mw_replay_open(options->recording, mw_progress_share, &replay->progress, &replay->replay));
	if (mw_replay_heap(replay->replay))
		return report_heap(replay, mw_replay_heap(replay->replay));
	mw_replay_symbols(replay->replay, options->symbols, options->symbols_count);
	MW_TRY(check_interval(replay));
	if (outputs->leaks)
		MW_TRY(check_leaks(replay));
	replay->interval =
		(struct mw_replay_interval){.from_ns = options->from_ns, .to_ns = options->to_ns, .judged = true};
	MW_TRY(find_peak(replay));
	MW_TRY(mw_reports_replay(&replay->reports, &wish, replay->replay, &replay->interval));
	mw_progress_clear(&replay->progress);
	MW_TRY(mw_reports_keep(&replay->reports, &options->pids));
	report_cut(mw_replay_state(replay->replay));
	err = mw_reports_write(&replay->reports, &replay->outputs);
	return mw_error_first(err, mw_judge_reports(outputs, (const struct mw_report *const *)replay->reports.items,
						    replay->reports.count, 0));
}

static struct mw_error *report(const struct mw_cli_options *options)
{
	struct replay replay = {.options = options};
	struct mw_error *err;

	mw_progress_init(&replay.progress, !options->session.quiet);
	err = report_all(&replay);
	mw_progress_deinit(&replay.progress);
	mw_outputs_close(&replay.outputs);
	mw_reports_deinit(&replay.reports);
	mw_replay_close(replay.replay);
	return err;
}

/* --- commands -------------------------------------------------------------------------------------------------------- */

/* By the same door as reports: a full disk is no success. */
static struct mw_error *print_version(void)
{
	struct mw_outfile *file = NULL;

	MW_TRY(mw_outfile_open("-", &file));
	fputs("memwatch " MEMWATCH_VERSION "\n", mw_outfile_stream(file));
#ifdef MEMWATCH_STATIC
	fprintf(mw_outfile_stream(file), "portable; linked in are %s, libbz2 %.*s, glibc %s\n", MEMWATCH_LIBRARIES,
		(int)strcspn(BZ2_bzlibVersion(), ","), BZ2_bzlibVersion(), gnu_get_libc_version());
#else
	fputs("dynamic; it needs the system's libraries, and was built with " MEMWATCH_NETWORK_LIBRARIES
		      MEMWATCH_LIBRARIES "\n",
	      mw_outfile_stream(file));
#endif
	return mw_outfile_commit(file);
}

static struct mw_error *give_help(const struct mw_cli_command *command)
{
	struct mw_outfile *file = NULL;

	MW_TRY(mw_outfile_open("-", &file));
	mw_cli_print_help(command, mw_outfile_stream(file));
	return mw_outfile_commit(file);
}

static struct mw_error *help(const struct mw_cli_options *options)
{
	return give_help(options->help_of);
}

static struct mw_error *doctor(const struct mw_cli_options *options)
{
	return mw_doctor_run(&options->session, options->clean);
}

static struct mw_error *top(const struct mw_cli_options *options)
{
	return mw_top_run(&options->session);
}

/* Without the name of one behind it, the command line is that of a recording. */
static const struct verb {
	const struct mw_cli_command *command;
	void (*prepare)(void); /* before all else: a Ctrl-C that comes at once ends the window as any does */
	struct mw_error *(*run)(const struct mw_cli_options *options);
} verbs[] = {
	{&mw_cli_command_record, mw_process_setup_prepare, record},
	{&mw_cli_command_diff, mw_process_setup_ignore_write_signals, mw_cli_diff},
	{&mw_cli_command_heap, mw_process_setup_prepare, mw_cli_heap},
	{&mw_cli_command_doctor, mw_process_setup_ignore_write_signals, doctor},
	{&mw_cli_command_report, mw_process_setup_ignore_write_signals, report},
	{&mw_cli_command_export, mw_process_setup_ignore_write_signals, report},
	{&mw_cli_command_top, mw_process_setup_prepare, top},
	{&mw_cli_command_help, mw_process_setup_ignore_write_signals, help},
};

static struct mw_error *run_verb(const struct verb *verb, int argc, char **argv)
{
	struct mw_cli_options options;
	struct mw_error *err;

	verb->prepare();
	MW_TRY(mw_cli_options_parse(verb->command, argc, argv, &options));
	if (options.action == MW_CLI_HELP)
		err = give_help(verb->command);
	else if (options.action == MW_CLI_VERSION)
		err = print_version();
	else if (!(err = mw_select(&options.session, verb->command->takes_one ? verb->command->name : NULL)))
		err = verb->run(&options);
	mw_cli_options_deinit(&options);
	return err;
}

static struct mw_error *run_line(int argc, char **argv)
{
	const struct mw_cli_command *command;
	size_t i = 0;

	if (argv[1][0] == '-')
		return run_verb(&verbs[0], argc, argv);
	MW_TRY(mw_cli_command_find(argv[1], &command));
	while (verbs[i].command != command)
		i++;
	return run_verb(&verbs[i], argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	mw_process_setup_guard_descriptors();
	if (argc < 2) {
		mw_cli_print_usage(stderr);
		return MW_STATUS_USAGE;
	}
	if (strcmp(argv[1], MW_WATCHDOG_VERB) == 0)
		return mw_watchdog_main(argc, argv);
	return (int)mw_message_error(run_line(argc, argv));
}

// SPDX-License-Identifier: MIT
/* report.c: memwatch report (src/cli/run.h). */
#include "cli/run.h"

#include "session/outputs.h"
#include "session/terminal.h"
#include "view/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
	const struct mw_cli_options *options;
	struct mw_replay *replay;
	struct mw_replay_interval interval;
	struct mw_outputs outputs;
	struct mw_progress progress;
	struct mw_reports reports;
};

static void on_read(void *context, const char *phase, uint64_t done, uint64_t total)
{
	mw_progress_share(context, phase, done, total);
}

/* The longest window of all processes: they are all read over one interval. */
static uint64_t length_of(const struct mw_replay *replay)
{
	uint64_t length = 0;

	for (size_t i = 0; i < mw_replay_count(replay); i++) {
		uint64_t own = mw_metadata_length(&mw_replay_watched(replay, i)->metadata);

		length = own > length ? own : length;
	}
	return length;
}

/* Where the interval will end, 0: not known. */
static uint64_t end_of(const struct session *session)
{
	uint64_t length = length_of(session->replay);

	if (mw_replay_state(session->replay)->cut)
		return 0;
	return session->interval.to_ns < length ? session->interval.to_ns : length;
}

static struct mw_error *check_interval(const struct session *session)
{
	const struct mw_cli_report_options *options = &session->options->report;
	uint64_t length = length_of(session->replay);

	/* How long a recording is that was cut off is not known before its events are read. */
	if (mw_replay_state(session->replay)->cut)
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

static struct mw_error *find_peak(struct session *session)
{
	uint64_t at_ns = 0;

	if (!session->options->report.at_peak)
		return NULL;
	if (mw_replay_count(session->replay) > 1)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "the processes reach their peaks at different times"),
			"Give the moment by --at SECONDS");
	MW_TRY(mw_replay_peak(session->replay, &session->interval, 0, &at_ns));
	/* The event that made the peak lies inside. */
	session->interval.to_ns = at_ns + 1;
	return NULL;
}

static void on_begin(void *context, size_t process, struct mw_track *track)
{
	const struct session *session = context;

	mw_collector_watch(&mw_replay_watched(session->replay, process)->collector, track);
}

static struct mw_error *prepare_reports(struct session *session)
{
	const struct mw_cli_options *options = session->options;
	const struct mw_reports_wish wish = {
		.question = mw_cli_view_options_any(&options->view) ? &options->view.question : NULL,
		.timelines = mw_outputs_want_timelines(&options->session),
		.progress = &session->progress,
	};
	size_t count = mw_replay_count(session->replay);

	MW_TRY(mw_reports_init(&session->reports, &wish, count));
	session->reports.interval.from_ns = session->interval.from_ns;
	session->reports.interval.to_ns = session->interval.to_ns;
	session->interval.begin = on_begin;
	session->interval.context = session;
	for (size_t i = 0; i < count; i++)
		MW_TRY(mw_reports_collect(&session->reports, mw_replay_watched(session->replay, i), true,
					  session->interval.from_ns, end_of(session)));
	return NULL;
}

/* A recording that goes no further than to its middle is reported, but not in silence. */
static void report_cut(const struct mw_store_state *state)
{
	if (state->cut)
		fprintf(stderr,
			"memwatch: the recording was cut off: %s; %" PRIu64 " of %" PRIu64
			" bytes are good, and reported\n",
			state->why ? state->why : "its end is missing", state->good, state->size);
}

static struct mw_error *run(struct session *session)
{
	const struct mw_cli_report_options *options = &session->options->report;
	const struct mw_session_options *outputs = &session->options->session;
	size_t count;

	MW_TRY(mw_outputs_check_recording(outputs, options->recording, "the recording itself"));
	MW_TRY(mw_outputs_check(outputs));
	MW_TRY(mw_outputs_open(&session->outputs, outputs));
	MW_TRY(mw_replay_open(options->recording, on_read, &session->progress, &session->replay));
	mw_replay_symbols(session->replay, options->symbols, options->symbols_count);
	MW_TRY(check_interval(session));
	session->interval = (struct mw_replay_interval){.from_ns = options->from_ns, .to_ns = options->to_ns};
	MW_TRY(find_peak(session));
	MW_TRY(prepare_reports(session));
	MW_TRY(mw_replay_run(session->replay, &session->interval));
	count = mw_replay_count(session->replay);
	for (size_t i = 0; i < count; i++)
		MW_TRY(mw_reports_make(&session->reports, i, mw_replay_watched(session->replay, i)));
	mw_progress_clear(&session->progress);
	report_cut(mw_replay_state(session->replay));
	return mw_reports_write(&session->reports, &session->outputs);
}

struct mw_error *mw_cli_report(const struct mw_cli_options *options)
{
	struct session session = {.options = options};
	struct mw_error *err;

	mw_progress_init(&session.progress, !options->session.quiet);
	err = run(&session);
	mw_progress_deinit(&session.progress);
	mw_outputs_close(&session.outputs);
	mw_reports_deinit(&session.reports);
	mw_replay_close(session.replay);
	return err;
}

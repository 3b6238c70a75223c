// SPDX-License-Identifier: MIT
/* report.c: memwatch report (src/cli/report.h). */
#include "cli/report.h"

#include "cli/looker.h"
#include "cli/outfile.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/report_options.h"
#include "cli/usage.h"
#include "view/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
	const struct mw_cli_report_options *options;
	struct mw_replay *replay;
	struct mw_replay_interval interval;
	struct mw_outputs outputs;
	struct mw_progress progress;
	struct mw_report **reports;
	struct mw_looker *lookers; /* one a process, where more is asked for than the report */
	struct mw_views **views;   /* … and its answer: the first has them all */
	struct mw_timeline **timelines;
};

static void on_read(void *context, const char *phase, uint64_t done, uint64_t total)
{
	mw_progress_share(context, phase, done, total);
}

static void on_stacks(void *context, size_t done, size_t total)
{
	mw_progress_share(context, "making the report", done, total);
}

/* The longest window of all processes: they are all read over one interval. */
static uint64_t length_of(const struct mw_replay *replay)
{
	uint64_t length = 0;

	for (size_t i = 0; i < mw_replay_count(replay); i++) {
		uint64_t own = mw_facts_length(mw_replay_facts(replay, i));

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
	const struct mw_cli_report_options *options = session->options;
	uint64_t length = length_of(session->replay);
	struct mw_error *err;

	/* How long a recording is that was cut off is not known before its events are read. */
	if (mw_replay_state(session->replay)->cut)
		return NULL;
	if (options->at_moment && options->to_ns > length) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "--at names the moment %.3f s, and the window ends at %.3f s",
				      (double)options->to_ns / 1e9, (double)length / 1e9);
		return mw_error_hint(err, "Times are seconds since the window's start: take an earlier moment");
	}
	if (options->from_ns <= length)
		return NULL;
	err = mw_error_create(MW_ERROR_USAGE, 0, "the interval begins at %.3f s, and the window ends at %.3f s",
			      (double)options->from_ns / 1e9, (double)length / 1e9);
	return mw_error_hint(err, "Times are seconds since the window's start: take an earlier --from");
}

static struct mw_error *find_peak(struct session *session)
{
	uint64_t at_ns = 0;

	if (!session->options->at_peak)
		return NULL;
	if (mw_replay_count(session->replay) > 1)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "processes have their peaks at different times"),
			"Name the moment by --at SECONDS");
	MW_TRY(mw_replay_peak(session->replay, &session->interval, 0, &at_ns));
	/* The event that made the peak lies inside. */
	session->interval.to_ns = at_ns + 1;
	return NULL;
}

static struct mw_error *make_report(struct session *session, size_t process)
{
	struct mw_summary_input input;
	struct mw_space_moment moments[2];
	struct mw_space_input space;

	mw_progress_phase(&session->progress, "making the report");
	mw_replay_input(session->replay, process, &input);
	if (mw_facts_space(mw_replay_facts(session->replay, process), moments, &space))
		input.space = &space;
	input.from_ns = session->interval.from_ns;
	input.to_ns = session->interval.to_ns == MW_REPLAY_END ? 0 : session->interval.to_ns;
	if (input.to_ns > input.window->length_ns)
		input.to_ns = 0;
	space.at_end = input.to_ns == 0;
	if (session->lookers) {
		MW_TRY(mw_looker_finish(&session->lookers[process], input.track));
		input.stack_of = &session->lookers[process].stack_of;
		input.thread_of = &session->lookers[process].thread_of;
	}
	input.progress = on_stacks;
	input.progress_context = &session->progress;
	MW_TRY(mw_summary_create(&input, &session->reports[process]));
	if (!session->timelines)
		return NULL;
	return mw_looker_timeline(&session->lookers[process], input.to_ns ? input.to_ns : input.window->length_ns,
				  mw_track_stack_count(input.track), &session->timelines[process]);
}

static void on_begin(void *context, size_t process, struct mw_track *track)
{
	struct session *session = context;

	mw_looker_watch(&session->lookers[process], track);
}

static struct mw_error *prepare_views(struct session *session)
{
	size_t count = mw_replay_count(session->replay);

	bool any = mw_cli_view_options_any(&session->options->view);

	if (!any && !session->options->html)
		return NULL;
	session->lookers = calloc(count, sizeof(*session->lookers));
	if (any)
		session->views = calloc(count, sizeof(struct mw_views *));
	if (session->options->html)
		session->timelines = calloc(count, sizeof(struct mw_timeline *));
	if (!session->lookers || (any && !session->views) || (session->options->html && !session->timelines))
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++) {
		MW_TRY(mw_looker_init(&session->lookers[i], &session->options->view.question,
				      mw_replay_facts(session->replay, i), session->interval.to_ns));
		if (session->timelines)
			MW_TRY(mw_looker_draw(&session->lookers[i], session->interval.from_ns, end_of(session)));
	}
	session->interval.begin = on_begin;
	session->interval.context = session;
	return NULL;
}

static struct mw_error *make_views(struct session *session)
{
	size_t count = mw_replay_count(session->replay);
	struct mw_view_process *processes;
	struct mw_error *err;

	if (!session->views)
		return NULL;
	processes = calloc(count, sizeof(*processes));
	if (!processes)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++) {
		mw_looker_process(&session->lookers[i], session->reports[i],
				  mw_track_stack_count(mw_replay_track(session->replay, i)), &processes[i]);
		processes[i].end = mw_looker_end(&session->lookers[i], mw_replay_facts(session->replay, i),
						 session->interval.to_ns);
	}
	err = mw_views_create(&session->options->view.question, processes, count, &session->views[0]);
	free(processes);
	session->outputs.views = (const struct mw_views *const *)session->views;
	return err;
}

/* A recording that goes no further than to its middle is reported, but not in silence. */
static void tell_cut(const struct mw_store_state *state)
{
	if (state->cut)
		fprintf(stderr,
			"memwatch: the recording was cut off: %s; %" PRIu64 " of %" PRIu64
			" bytes are good, and reported\n",
			state->why ? state->why : "its end is missing", state->good, state->size);
}

static struct mw_error *check_name(const char *option, const char *name, const char *recording)
{
	if (!name || !mw_outfile_same(name, recording))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%s' is the recording itself", option, name),
			     "Give another name: the recording would be lost");
}

static struct mw_error *run(struct session *session)
{
	const struct mw_cli_report_options *options = session->options;
	const struct mw_cli_options outputs = {
		.json = options->json, .html = options->html, .top = options->top, .quiet = options->quiet};
	size_t count;

	MW_TRY(check_name("--json", options->json, options->recording));
	MW_TRY(check_name("--html", options->html, options->recording));
	MW_TRY(mw_outputs_check(&outputs));
	MW_TRY(mw_outputs_open(&session->outputs, &outputs));
	MW_TRY(mw_replay_open(options->recording, on_read, &session->progress, &session->replay));
	mw_replay_symbols(session->replay, options->symbols, options->symbols_count);
	MW_TRY(check_interval(session));
	session->interval = (struct mw_replay_interval){.from_ns = options->from_ns, .to_ns = options->to_ns};
	MW_TRY(find_peak(session));
	MW_TRY(prepare_views(session));
	MW_TRY(mw_replay_run(session->replay, &session->interval));
	count = mw_replay_count(session->replay);
	session->reports = calloc(count, sizeof(struct mw_report *));
	if (!session->reports)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		MW_TRY(make_report(session, i));
	mw_progress_phase(&session->progress, "making the report");
	MW_TRY(make_views(session));
	mw_progress_clear(&session->progress);
	tell_cut(mw_replay_state(session->replay));
	session->outputs.timelines = (const struct mw_timeline *const *)session->timelines;
	session->outputs.progress = &session->progress;
	return mw_outputs_write(&session->outputs, (const struct mw_report *const *)session->reports, count);
}

static struct mw_error *report(const struct mw_cli_report_options *options)
{
	struct session session = {.options = options};
	struct mw_error *err;

	mw_progress_init(&session.progress, !options->quiet);
	err = run(&session);
	mw_progress_deinit(&session.progress);
	mw_outputs_close(&session.outputs);
	for (size_t i = 0; session.replay && i < mw_replay_count(session.replay); i++) {
		if (session.views)
			mw_views_destroy(session.views[i]);
		if (session.timelines)
			mw_timeline_destroy(session.timelines[i]);
		if (session.lookers)
			mw_looker_deinit(&session.lookers[i]);
		if (session.reports)
			mw_report_destroy(session.reports[i]);
	}
	free(session.views);
	free(session.timelines);
	free(session.lookers);
	free(session.reports);
	mw_replay_close(session.replay);
	return err;
}

struct mw_error *mw_cli_report(int argc, char **argv)
{
	struct mw_cli_report_options options;
	struct mw_error *err;

	MW_TRY(mw_cli_report_options_parse(argc, argv, &options));
	err = options.action == MW_CLI_HELP ? mw_cli_give_help(&mw_cli_command_report) : report(&options);
	mw_cli_report_options_deinit(&options);
	return err;
}

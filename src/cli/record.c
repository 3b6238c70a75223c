// SPDX-License-Identifier: MIT
/* record.c: a whole recording (src/cli/record.h). */
#include "cli/record.h"

#include "cli/outputs.h"
#include "cli/picture.h"
#include "cli/self.h"
#include "cli/session.h"

#include <stdio.h>
#include <stdlib.h>

struct run {
	const struct mw_cli_options *options;
	struct mw_session session;
	struct mw_outputs outputs;
};

static struct mw_error *make_reports(struct run *run, struct mw_report **reports)
{
	const struct mw_recorder_view view = mw_session_view(&run->session);

	for (size_t i = 0; i < run->session.count; i++)
		MW_TRY(mw_recorder_report(&run->session.recorders[i], &view, &reports[i]));
	return NULL;
}

static struct mw_error *report(struct run *run)
{
	const struct mw_partials partials = mw_outputs_partials(&run->outputs);
	struct mw_report **reports = calloc(run->session.count, sizeof(struct mw_report *));
	const struct mw_timeline **timelines = calloc(run->session.count + 1, sizeof(*timelines));
	struct mw_error *err;

	if (!reports || !timelines) {
		free(reports);
		free(timelines);
		return mw_error_nomem();
	}
	mw_self_reporting(&partials);
	mw_progress_phase(&run->session.progress, "making the report");
	err = make_reports(run, reports);
	mw_progress_clear(&run->session.progress);
	for (size_t i = 0; i < run->session.count && run->options->html && !err; i++)
		timelines[i] = mw_picture_timeline(run->session.recorders[i].picture);
	run->outputs.timelines = timelines;
	run->outputs.progress = &run->session.progress;
	if (!err)
		err = mw_outputs_write(&run->outputs, (const struct mw_report *const *)reports, run->session.count);
	if (!err) {
		mw_self_reported();
		if (run->session.unnamed)
			fputs("memwatch: reading symbols has failed: names are missing in the report\n", stderr);
	}
	for (size_t i = 0; i < run->session.count; i++)
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
	struct mw_session *session = &run->session;

	if (!session->writer)
		return NULL;
	mw_progress_phase(&session->progress, "writing the recording");
	return mw_store_finish(session->writer);
}

static struct mw_error *record(struct run *run)
{
	struct mw_session *session = &run->session;
	struct mw_partials partials;
	struct mw_error *err;

	MW_TRY(mw_outputs_check(run->options));
	/* What can go wrong without a process is tried before one is touched. */
	MW_TRY(mw_self_check_files());
	MW_TRY(mw_outputs_open(&run->outputs, run->options));
	if (run->options->output)
		MW_TRY(mw_store_create(run->options->output, &session->writer));
	MW_TRY(mw_session_prepare(session));
	partials = mw_outputs_partials(&run->outputs);
	MW_TRY(mw_session_stand_by(session, &partials));
	MW_TRY(mw_session_watch(session));
	if (session->detached)
		return NULL; /* first of all that has to be mended */
	if (mw_self_hurried())
		return mw_error_first(finish_recording(run), interrupted());
	err = report(run);
	/* Symbols have been found for the report. */
	return mw_error_first(err, finish_recording(run));
}

struct mw_error *mw_cli_record(const struct mw_cli_options *options)
{
	struct run run = {.options = options};
	struct mw_error *err;

	mw_session_init(&run.session, options, !options->quiet);
	err = record(&run);
	mw_outputs_close(&run.outputs);
	mw_self_reporting(NULL);
	return mw_session_end(&run.session, err);
}

// SPDX-License-Identifier: MIT
/* record.c: a whole recording (src/cli/run.h). */
#include "cli/run.h"

#include "session/outputs.h"
#include "session/process_setup.h"
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>

struct run {
	const struct mw_session_options *options;
	const struct mw_view_question *question; /* NULL: none */
	struct mw_session session;
	struct mw_outputs outputs;
};

static struct mw_error *make_reports(struct run *run)
{
	struct mw_session *session = &run->session;

	for (size_t i = 0; i < session->count; i++)
		MW_TRY(mw_recorder_report(&session->recorders[i], &session->reports, i));
	return NULL;
}

static struct mw_error *report(struct run *run)
{
	const struct mw_partials partials = mw_outputs_partials(&run->outputs);

	mw_process_setup_reporting(&partials);
	MW_TRY(make_reports(run));
	MW_TRY(mw_reports_write(&run->session.reports, &run->outputs));
	mw_process_setup_reported();
	if (run->session.unnamed)
		fputs("memwatch: reading symbols has failed: names are missing in the report\n", stderr);
	return NULL;
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
	const struct mw_reports_wish wish = {
		.question = run->question,
		.timelines = mw_outputs_want_timelines(run->options),
		.progress = &session->progress,
	};
	struct mw_partials partials;
	struct mw_error *err;

	MW_TRY(mw_outputs_check(run->options));
	/* What can go wrong without a process is tried before one is touched. */
	MW_TRY(mw_process_setup_check_files());
	MW_TRY(mw_outputs_open(&run->outputs, run->options));
	if (run->options->output)
		MW_TRY(mw_store_create(run->options->output, &session->writer));
	session->wish = &wish;
	MW_TRY(mw_session_prepare(session));
	session->wish = NULL;
	partials = mw_outputs_partials(&run->outputs);
	MW_TRY(mw_session_stand_by(session, &partials));
	MW_TRY(mw_session_watch(session));
	if (session->detached)
		return NULL; /* first of all that has to be mended */
	if (mw_process_setup_hurried())
		return mw_error_first(finish_recording(run), interrupted());
	err = report(run);
	/* Symbols have been found for the report. */
	return mw_error_first(err, finish_recording(run));
}

struct mw_error *mw_cli_record(const struct mw_cli_options *options)
{
	struct run run = {
		.options = &options->session,
		.question = mw_cli_view_options_any(&options->view) ? &options->view.question : NULL,
	};
	struct mw_error *err;

	mw_session_init(&run.session, run.options, !run.options->quiet);
	err = record(&run);
	mw_outputs_close(&run.outputs);
	mw_process_setup_reporting(NULL);
	return mw_session_end(&run.session, err);
}

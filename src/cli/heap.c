// SPDX-License-Identifier: MIT
/* heap.c: memwatch heap (heap.h). */
#include "cli/heap.h"

#include "base/cleanup.h"
#include "heap/look.h"
#include "session/judge.h"
#include "session/outputs.h"
#include "session/process_setup.h"
#include "session/session.h"
#include "session/terminal.h"
#include "view/kept_heap.h"

#define LEAST_NAMED 50u /* groups whose holders are looked for */

static void show(void *context, const char *phase, double share)
{
	if (share < 0)
		mw_progress_phase(context, phase);
	else
		mw_progress_share(context, phase, (uint64_t)(share * 1000), 1000);
}

static struct mw_error *keep(const struct mw_heap_report *report, struct mw_store_writer *writer)
{
	const struct mw_store_visitor receiver = mw_store_receiver(writer);

	MW_TRY(mw_kept_heap_emit(report, 0, &receiver));
	MW_TRY(mw_store_publish(writer));
	return mw_store_finish(writer);
}

static struct mw_error *examine_and_write(const struct mw_cli_options *options, struct mw_look *look,
					  struct mw_outputs *outputs, struct mw_store_writer *writer)
{
	size_t named = options->session.top > LEAST_NAMED ? options->session.top : LEAST_NAMED;
	struct mw_heap_report *report = NULL;
	struct mw_error *err, *judgement;

	MW_TRY(mw_look_examine(look));
	MW_TRY(mw_look_report(look, options->heap.by, named, &report));
	err = mw_outputs_write_heap(outputs, report);
	if (writer)
		err = mw_error_first(err, keep(report, writer));
	judgement = mw_judge_heap(&options->session.fail_on, report);
	err = mw_error_first(err, judgement);
	mw_heap_report_destroy(report);
	return err;
}

static void drop_writer(struct mw_store_writer **writer)
{
	mw_store_destroy(*writer);
}

static struct mw_error *look_and_write(const struct mw_cli_options *options, struct mw_outputs *outputs,
				       struct mw_progress *progress)
{
	const struct mw_session_options *session = &options->session;
	const struct mw_look_options how = {
		.tag_bits = options->heap.tag_bits,
		.no_fork = options->heap.no_fork,
		.holders = options->heap.holders,
		.show = options->heap.show,
		.progress = show,
		.context = progress,
		.interrupted = mw_process_setup_interrupted(),
	};
	MW_CLEANUP(drop_writer) struct mw_store_writer *writer = NULL;
	struct mw_look *look = NULL;
	struct mw_error *err;

	outputs->progress = progress;
	MW_TRY(mw_outputs_open(outputs, session));
	if (session->output)
		MW_TRY(mw_store_create(session->output, &writer));
	MW_TRY(mw_look_take(session->pids.items[0], &how, &look));
	err = examine_and_write(options, look, outputs, writer);
	return mw_error_first(err, mw_look_release(look));
}

struct mw_error *mw_cli_heap(const struct mw_cli_options *options)
{
	struct mw_outputs outputs = {.options = {.top = options->session.top, .all = options->session.all}};
	struct mw_progress progress;
	struct mw_error *err;

	mw_progress_init(&progress, !options->session.quiet);
	err = look_and_write(options, &outputs, &progress);
	mw_progress_deinit(&progress);
	mw_outputs_close(&outputs);
	return err;
}

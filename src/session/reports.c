// SPDX-License-Identifier: MIT
/* reports.c: see reports.h. */
#include "session/reports.h"

#include <stdlib.h>

struct mw_error *mw_reports_init(struct mw_reports *reports, const struct mw_reports_wish *wish, size_t count)
{
	*reports = (struct mw_reports){
		.wish = *wish,
		.count = count,
		.interval = {.to_ns = UINT64_MAX},
		.watched = calloc(count + 1, sizeof(struct mw_watched *)),
		.items = calloc(count + 1, sizeof(struct mw_report *)),
		.timelines = calloc(count + 1, sizeof(struct mw_timeline *)),
	};
	return reports->watched && reports->items && reports->timelines ? NULL : mw_error_nomem();
}

void mw_reports_deinit(struct mw_reports *reports)
{
	mw_views_destroy(reports->views);
	for (size_t i = 0; reports->timelines && i < reports->count; i++)
		mw_timeline_destroy(reports->timelines[i]);
	for (size_t i = 0; reports->items && i < reports->count; i++)
		mw_report_destroy(reports->items[i]);
	free(reports->watched);
	free(reports->items);
	free(reports->timelines);
	*reports = (struct mw_reports){.count = 0};
}

struct mw_error *mw_reports_collect(const struct mw_reports *reports, struct mw_watched *watched, bool known,
				    uint64_t from_ns, uint64_t to_ns)
{
	const struct mw_collector_options options = {
		.question = reports->wish.question,
		.timeline = reports->wish.timelines,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.metadata = known ? &watched->metadata : NULL,
	};

	return options.question || options.timeline ? mw_watched_collect(watched, &options) : NULL;
}

static void on_stacks(void *context, size_t done, size_t total)
{
	const struct mw_reports *reports = context;

	mw_progress_symbols(reports->wish.progress, done, total);
}

struct mw_error *mw_reports_make(struct mw_reports *reports, size_t process, struct mw_watched *watched)
{
	mw_progress_phase(reports->wish.progress, "making the report");
	reports->watched[process] = watched;
	reports->interval.progress = on_stacks;
	reports->interval.context = reports;
	MW_TRY(mw_watched_report(watched, &reports->interval, &reports->items[process]));
	if (!watched->timeline)
		return NULL;
	mw_progress_phase(reports->wish.progress, "making the report's timeline");
	/* Where there is no memory for that there is a report all the same, and no timeline. */
	mw_error_destroy(mw_watched_timeline(watched, &reports->interval, &reports->timelines[process]));
	return NULL;
}

static struct mw_error *make_views(struct mw_reports *reports)
{
	struct mw_view_process *processes;
	struct mw_error *err;

	if (!reports->wish.question)
		return NULL;
	processes = calloc(reports->count + 1, sizeof(*processes));
	if (!processes)
		return mw_error_nomem();
	for (size_t i = 0; i < reports->count; i++)
		mw_watched_view(reports->watched[i], &reports->interval, reports->items[i], &processes[i]);
	err = mw_views_create(reports->wish.question, processes, reports->count, &reports->views);
	free(processes);
	return err;
}

struct mw_error *mw_reports_write(struct mw_reports *reports, struct mw_outputs *outputs)
{
	const struct mw_views **views = calloc(reports->count + 1, sizeof(struct mw_views *));
	struct mw_error *err = views ? make_views(reports) : mw_error_nomem();

	if (!err) {
		views[0] = reports->views;
		outputs->options.views = reports->views ? (const struct mw_views *const *)views : NULL;
		outputs->options.timelines = (const struct mw_timeline *const *)reports->timelines;
		outputs->progress = reports->wish.progress;
		mw_progress_clear(reports->wish.progress);
		err = mw_outputs_write(outputs, (const struct mw_report *const *)reports->items, reports->count);
	}
	outputs->options.views = NULL;
	outputs->options.timelines = NULL;
	free(views);
	return err;
}

// SPDX-License-Identifier: MIT
/* exports.c: see exports.h. */
#include "session/exports.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "session/terminal.h"
#include "view/samples.h"

#include <stdlib.h>
#include <string.h>

/* --- what was outstanding at the peak ------------------------------------------------------------------------- */

struct mw_exports_peak {
	size_t process; /* its number in the recording */
	uint64_t at_ns;
	struct mw_map by_key; /* of (stack, thread, kind) to amounts, malloc'ed */
};

/* The first for which events are read again, or NULL. */
static const struct mw_export_format *format_again(const struct mw_export_wishes *wishes)
{
	for (size_t i = 0; wishes && i < wishes->count; i++)
		if (wishes->items[i].format->peak || wishes->items[i].format->events)
			return wishes->items[i].format;
	return NULL;
}

bool mw_exports_read_again(const struct mw_export_wishes *wishes)
{
	return format_again(wishes) != NULL;
}

/* What it does with one process. */
static const char *use_of(const struct mw_export_format *format)
{
	return format->peak ? "shows the peak" : "has the events";
}

static struct mw_error *check_suffix(const struct mw_export_format *format, const char *file)
{
	size_t length = strlen(file), wanted = format->suffix ? strlen(format->suffix) : 0;

	if (!format->suffix || strcmp(file, "-") == 0 || strncmp(file, "/dev/", 5) == 0 ||
	    (length > wanted && strcmp(file + length - wanted, format->suffix) == 0))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
					     "'%.200s' does not end in %s, and programs open %s only if its name does",
					     file, format->suffix, format->what),
			     "Name it %.200s%s", file, format->suffix);
}

struct mw_error *mw_exports_check(const struct mw_export_wishes *wishes)
{
	const struct mw_export_format *format = format_again(wishes);

	for (size_t i = 0; i < wishes->count; i++)
		MW_TRY(check_suffix(wishes->items[i].format, wishes->items[i].file));
	if (!format || !wishes->filter || !(mw_filter_columns(wishes->filter) & 1u << MW_COLUMN_TYPE))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
					     "%s %s, where it is not known yet what becomes of a block", format->what,
					     use_of(format)),
			     "Leave type: out of the filter, or take another format than %s", format->name);
}

void mw_exports_peak_destroy(struct mw_exports_peak *peak)
{
	void *amount;

	if (!peak)
		return;
	for (size_t i = 0; mw_map_next(&peak->by_key, &i, &amount);)
		free(amount);
	mw_map_deinit(&peak->by_key);
	free(peak);
}

/* The same in every reading of a recording. */
static uint64_t key_of(const struct mw_export_sample *sample)
{
	uint64_t stack = sample->stack ? strtoull(sample->stack->id, NULL, 16) : 0;

	return mw_hash_add(mw_hash_mix(stack), (uint64_t)sample->kind << 32 | (uint32_t)sample->tid);
}

static struct mw_error *keep_peak(struct mw_exports_peak *peak, const struct mw_reports *reports)
{
	struct mw_view_process process;
	MW_FREE struct mw_export_sample *samples = NULL;
	size_t count;

	mw_watched_view(reports->watched[peak->process], &reports->interval, reports->items[peak->process], &process);
	MW_TRY(mw_samples_make(&process, reports->wish.exports->filter, &samples, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_amount *amount = mw_map_get(&peak->by_key, key_of(&samples[i]));
		struct mw_error *err;

		if (!amount) {
			amount = calloc(1, sizeof(*amount));
			err = amount ? mw_map_set(&peak->by_key, key_of(&samples[i]), amount) : mw_error_nomem();
			if (err) {
				free(amount);
				return err;
			}
		}
		mw_amount_add(amount, samples[i].sums.fates[MW_FATE_IMPACTING]);
	}
	return NULL;
}

/* Read it twice: to find the peak, and up to there. */
static struct mw_error *read_peak(struct mw_exports_peak *peak, const struct mw_reports_wish *wish,
				  struct mw_replay *replay, const struct mw_replay_interval *interval)
{
	const struct mw_export_wishes alone = {
		.items = {wish->exports->items[0]}, .count = 1, .filter = wish->exports->filter, .alone = true};
	const struct mw_reports_wish cells = {.exports = &alone, .progress = wish->progress};
	struct mw_replay_interval until = {.from_ns = interval->from_ns, .to_ns = interval->to_ns};
	struct mw_reports reports = {.count = 0};
	struct mw_error *err;

	MW_TRY(mw_replay_peak(replay, &until, peak->process, &peak->at_ns));
	/* The event that made the peak lies inside. */
	until.to_ns = peak->at_ns + 1;
	err = mw_reports_read(&reports, &cells, replay, &until);
	if (!err)
		err = keep_peak(peak, &reports);
	mw_reports_deinit(&reports);
	return err;
}

/* The one that is kept. */
static struct mw_error *choose_process(const struct mw_reports_wish *wish, const struct mw_replay *replay, size_t *out)
{
	size_t count = 0;

	*out = 0;
	for (size_t i = 0; i < mw_replay_count(replay); i++) {
		const struct mw_stored_target *target = &mw_replay_watched(replay, i)->metadata.target;

		if (wish->pids && !mw_pids_have(wish->pids, target->pid, target->comm))
			continue;
		*out = i;
		count++;
	}
	/* That there is none is said when they are chosen. */
	if (count <= 1)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0, "there are %zu processes, and %s %s of one", count,
					     format_again(wish->exports)->what, use_of(format_again(wish->exports))),
			     "Choose one of a recording's by --pid, watch one alone (--no-children), or take another "
			     "format");
}

struct mw_error *mw_exports_peak_find(const struct mw_reports_wish *wish, struct mw_replay *replay,
				      const struct mw_replay_interval *interval, struct mw_exports_peak **out)
{
	struct mw_exports_peak *peak;
	struct mw_error *err;
	bool shown = false;
	size_t process;

	if (!mw_exports_read_again(wish->exports))
		return NULL;
	MW_TRY(choose_process(wish, replay, &process));
	for (size_t i = 0; i < wish->exports->count; i++)
		shown |= wish->exports->items[i].format->peak;
	if (!shown)
		return NULL;
	peak = calloc(1, sizeof(*peak));
	if (!peak)
		return mw_error_nomem();
	peak->process = process;
	err = read_peak(peak, wish, replay, interval);
	if (err) {
		mw_exports_peak_destroy(peak);
		return err;
	}
	*out = peak;
	return NULL;
}

/* Taken out, so that nothing counts twice. */
static void set_peak(const struct mw_exports_peak *peak, struct mw_export_sample *sample)
{
	struct mw_amount *amount = mw_map_get(&peak->by_key, key_of(sample));

	if (!amount)
		return;
	sample->at_peak = *amount;
	*amount = (struct mw_amount){0, 0};
}

/* --- events --------------------------------------------------------------------------------------------------- */

/* What a reading of the events of one process takes. */
struct reading {
	const struct mw_reports *reports;
	const struct mw_watched *watched;
	struct mw_samples_events events;
};

static void on_begin(void *context, size_t process, struct mw_track *track)
{
	struct reading *reading = context;

	if (mw_replay_watched(reading->reports->replay, process) == reading->watched)
		mw_samples_events_watch(&reading->events, track);
}

/* The tracker that the report was made of is no more then. */
static struct mw_error *read_events(void *context, mw_export_take *take, void *taker)
{
	struct reading *reading = context;
	const struct mw_watched_interval *interval = &reading->reports->interval;
	const struct mw_replay_interval again = {
		.from_ns = interval->from_ns, .to_ns = interval->to_ns, .begin = on_begin, .context = reading};

	reading->events.take = take;
	reading->events.context = taker;
	return mw_replay_run(reading->reports->replay, &again);
}

/* --- processes ------------------------------------------------------------------------------------------------ */

/* What is made of a process for its export; deinit frees. */
struct process {
	struct mw_export_module *modules;
	struct mw_export_sample *samples;
	struct reading reading;
};

static struct mw_error *make_process(const struct mw_reports *reports, size_t number, struct process *process,
				     struct mw_export_process *out)
{
	struct mw_watched *watched = reports->watched[number];
	const struct mw_metadata *metadata = &watched->metadata;
	struct mw_view_process view;

	process->modules = calloc(metadata->module_count + 1, sizeof(*process->modules));
	if (!process->modules)
		return mw_error_nomem();
	for (size_t i = 0; i < metadata->module_count; i++) {
		const struct mw_view_module *module = &metadata->modules[i];

		process->modules[i] = (struct mw_export_module){.path = module->path,
								.build_id = module->build_id,
								.build_id_size = module->build_id_size,
								.start = module->start,
								.end = module->end};
	}
	*out = (struct mw_export_process){.report = reports->items[number],
					  .modules = process->modules,
					  .module_count = metadata->module_count,
					  .peak_at = reports->peak ? (double)reports->peak->at_ns / 1e9 : -1};
	mw_watched_view(watched, &reports->interval, reports->items[number], &view);
	MW_TRY(mw_samples_make(&view, reports->wish.exports->filter, &process->samples, &out->sample_count));
	for (size_t i = 0; reports->peak && i < out->sample_count; i++)
		set_peak(reports->peak, &process->samples[i]);
	out->samples = process->samples;
	if (!reports->replay)
		return NULL;
	process->reading.reports = reports;
	process->reading.watched = watched;
	out->read_events = read_events;
	out->events = &process->reading;
	return mw_samples_events_init(&process->reading.events, watched, &view, reports->wish.exports->filter);
}

/* The first `count` processes from `first` on, and what has them written. */
struct writing {
	size_t first, count;
	struct mw_error *(*write)(void *context, const struct mw_reports *reports, const struct mw_export *export);
	void *context;
};

static struct mw_error *make_all(struct mw_reports *reports, const struct writing *writing, struct process *processes,
				 struct mw_export_process *made)
{
	const struct mw_export export = {.processes = made, .count = writing->count};

	for (size_t i = 0; i < writing->count; i++)
		MW_TRY(make_process(reports, writing->first + i, &processes[i], &made[i]));
	return writing->write(writing->context, reports, &export);
}

static struct mw_error *write_processes(struct mw_reports *reports, const struct writing *writing)
{
	MW_FREE struct process *processes = calloc(writing->count + 1, sizeof(*processes));
	MW_FREE struct mw_export_process *made = calloc(writing->count + 1, sizeof(*made));
	struct mw_error *err = processes && made ? make_all(reports, writing, processes, made) : mw_error_nomem();

	for (size_t i = 0; processes && i < writing->count; i++) {
		free(processes[i].modules);
		free(processes[i].samples);
		mw_samples_events_deinit(&processes[i].reading.events);
	}
	return err;
}

static struct mw_error *write_wishes(void *context, const struct mw_reports *reports, const struct mw_export *all)
{
	struct mw_outputs *outputs = context;
	struct mw_export export = *all;
	struct mw_error *err = NULL;

	export.measure = outputs->wishes->measure;
	export.frames = outputs->options.frames;
	for (size_t i = 0; i < outputs->wishes->count; i++)
		if (!outputs->wishes->items[i].format->events &&
		    (!outputs->wishes->items[i].format->peak || reports->peak))
			err = mw_error_first(err, mw_outputs_write_export(outputs, i, &export));
	/* Threads of samples have no names after that. */
	for (size_t i = 0; i < outputs->wishes->count && reports->replay; i++)
		if (outputs->wishes->items[i].format->events)
			err = mw_error_first(err, mw_outputs_write_export(outputs, i, &export));
	return err;
}

struct mw_error *mw_exports_write(struct mw_reports *reports, struct mw_outputs *outputs)
{
	const struct writing writing = {.count = reports->count, .write = write_wishes, .context = outputs};
	struct mw_error *err = write_processes(reports, &writing);

	mw_progress_clear(reports->wish.progress);
	return err;
}

struct rendering {
	const struct mw_export_format *format;
	enum mw_export_measure measure;
	FILE *stream;
};

static struct mw_error *render(void *context, const struct mw_reports *reports, const struct mw_export *all)
{
	const struct rendering *rendering = context;
	struct mw_export export = *all;

	(void)reports;
	export.measure = rendering->measure;
	return rendering->format->write(&export, rendering->stream);
}

struct mw_error *mw_exports_render(struct mw_reports *reports, const struct mw_export_format *format,
				   enum mw_export_measure measure, size_t process, FILE *stream)
{
	struct rendering rendering = {format, measure, stream};
	bool all = process == SIZE_MAX;
	const struct writing writing = {
		.first = all ? 0 : process, .count = all ? reports->count : 1, .write = render, .context = &rendering};

	return write_processes(reports, &writing);
}

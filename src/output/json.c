// SPDX-License-Identifier: MIT
/*
 * json.c: the report as JSON, schema "memwatch.report/1".
 *
 * A report may hold a hundred thousand stacks. Each item of the long arrays is built, written and
 * dropped alone, a line for each, so memory stays flat and the text can be read with line tools.
 */
#include "output/json.h"

#include "output/json_frames.h"
#include "output/json_views.h"

#include <inttypes.h>
#include <time.h>

#define SCHEMA "memwatch.report/1"

struct writer {
	FILE *stream;
	bool failed; /* out of memory; the stream keeps its own errors */
	bool comma;  /* before the next member or item */
	bool shared; /* frames stand once in each report */
};

/* Write a value and drop it. */
static void put_value(struct writer *writer, json_t *value)
{
	/* 15 digits give back every sum and time that went in, without the tail of 0.10000000000000001. */
	size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);

	if (!value || (json_dumpf(value, writer->stream, flags) != 0 && !ferror(writer->stream)))
		writer->failed = true;
	json_decref(value);
}

static void put_separator(struct writer *writer)
{
	fputs(writer->comma ? ",\n" : "\n", writer->stream);
	writer->comma = true;
}

static void put_key(struct writer *writer, const char *key)
{
	put_separator(writer);
	fprintf(writer->stream, "\"%s\":", key);
}

static void put_member(struct writer *writer, const char *key, json_t *value)
{
	put_key(writer, key);
	put_value(writer, value);
}

static void open_array(struct writer *writer, const char *key)
{
	put_key(writer, key);
	fputc('[', writer->stream);
	writer->comma = false;
}

static void put_item(struct writer *writer, json_t *value)
{
	put_separator(writer);
	put_value(writer, value);
}

static void close_array(struct writer *writer)
{
	fputc(']', writer->stream);
	writer->comma = true;
}

static json_t *command_value(const struct mw_report *report)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < report->target.command_count; i++) {
		if (json_array_append_new(array, mw_json_text(report->target.command[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *target_value(const struct mw_report *report)
{
	bool exited = report->target.has_exit_status;

	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "pid", report->target.pid, "comm",
			 mw_json_text(report->target.comm), "exe", mw_json_text(report->target.exe), "command",
			 command_value(report), "exit_status",
			 exited ? json_integer(report->target.exit_status) : json_null(), "exit_signal",
			 exited && report->target.exit_signal ? json_integer(report->target.exit_signal) : json_null());
}

json_t *mw_json_date(int64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	long micros = (long)(realtime_ns % 1000000000 / 1000);
	char date[64];
	struct tm tm;

	if (realtime_ns <= 0 || !gmtime_r(&seconds, &tm) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		return json_null();
	return json_sprintf("%s.%06ldZ", date, micros);
}

/* Which limit it was that ended the window, or null. */
static json_t *limit_value(const struct mw_report *report)
{
	const struct mw_engine_stats *stats = &report->engine.stats;

	if (report->window.ended != MW_END_LIMIT)
		return json_null();
	return stats->limit_stopped
		       ? json_pack("{s:s, s:f}", "of", "stopped", "share", (double)stats->limit_stopped / 1e6)
		       : json_pack("{s:s, s:o}", "of", "memory", "bytes", mw_json_number(stats->limit_memory));
}

static json_t *window_value(const struct mw_report *report)
{
	return json_pack("{s:o, s:f, s:f, s:f, s:s, s:o}", "started", mw_json_date(report->window.started_realtime_ns),
			 "seconds", report->window.seconds, "from", report->window.from, "to", report->window.to,
			 "ended", mw_window_end_name(report->window.ended), "limit", limit_value(report));
}

static json_t *hook_value(const struct mw_report_hook *hook)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "function", mw_json_text(hook->function), "module",
			 mw_json_text(hook->module), "address", mw_json_number(hook->address), "role",
			 mw_json_text(hook->role), "refused", mw_json_text(hook->refused));
}

static json_t *engine_value(const struct mw_report *report)
{
	const struct mw_engine_stats *stats = &report->engine.stats;
	json_t *hooks = json_array();

	for (size_t i = 0; hooks && i < report->engine.hook_count; i++) {
		if (json_array_append_new(hooks, hook_value(&report->engine.hooks[i])) != 0) {
			json_decref(hooks);
			hooks = NULL;
		}
	}
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"name", mw_json_text(report->engine.name), "reason", mw_json_text(report->engine.reason), "stops",
		mw_json_number(stats->stops), "longest_stop_ns", mw_json_number(stats->longest_stop_ns), "stopped_ns",
		mw_json_number(stats->stopped_ns), "stood_ns", mw_json_number(stats->stood_ns), "stopped_share",
		json_real(mw_report_stopped_share(report)), "attach_ns", mw_json_number(stats->attach_ns), "detach_ns",
		mw_json_number(stats->detach_ns), "broken_stacks", mw_json_number(stats->broken_stacks), "returns_site",
		mw_json_number(stats->returns_site), "returns_exchanged", mw_json_number(stats->returns_exchanged),
		"walks", mw_json_number(stats->walks), "slow_walks", mw_json_number(stats->slow_walks), "waited_ns",
		mw_json_number(stats->waited_ns), "own_memory", mw_json_number(stats->own_resident), "children_cleaned",
		mw_json_number(stats->children_cleaned), "left_behind", mw_json_text(stats->left_behind), "hooks",
		hooks);
}

static json_t *totals_value(const struct mw_report_totals *totals)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "size", mw_json_amount(&totals->size), "impacting",
			 mw_json_amount(&totals->impacting), "transient", mw_json_amount(&totals->transient), "aofi",
			 mw_json_amount(&totals->aofi), "aofi_unknown", mw_json_number(totals->aofi_unknown), "aofo",
			 mw_json_amount(&totals->aofo), "peak", mw_json_peak(&totals->peak));
}

/* A kind that was not recorded is null: zeros would claim that nothing was allocated. */
static json_t *all_totals_value(const struct mw_report *report)
{
	json_t *object = json_object();

	for (unsigned i = 0; object && i < MW_KIND_COUNT; i++) {
		json_t *value = report->tracked[i] ? totals_value(&report->totals[i]) : json_null();

		if (json_object_set_new(object, mw_json_kind((enum mw_kind)i), value) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *sample_value(const struct mw_report *report, const struct mw_report_sample *sample)
{
	bool heap = report->tracked[MW_KIND_HEAP], vm = report->tracked[MW_KIND_VM];

	return json_pack("{s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "at", sample->at, "rss",
			 mw_json_number(sample->rss), "pss", mw_json_number(sample->pss), "vsize",
			 mw_json_number(sample->vsize), "heap_impacting",
			 heap ? mw_json_number(sample->heap_impacting) : json_null(), "vm_impacting",
			 vm ? mw_json_number(sample->vm_impacting) : json_null(), "arena_used",
			 mw_json_number(sample->arena_used), "arena_free", mw_json_number(sample->arena_free),
			 "arena_size", mw_json_number(sample->arena_size));
}

static json_t *module_value(const struct mw_report_module *module)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "module", mw_json_text(module->module), "size",
			 mw_json_amount(&module->size), "impacting", mw_json_amount(&module->impacting), "transient",
			 mw_json_amount(&module->transient));
}

static json_t *thread_value(const struct mw_report_thread *thread)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o}", "tid", thread->tid, "name", mw_json_text(thread->name), "size",
			 mw_json_amount(&thread->size), "impacting", mw_json_amount(&thread->impacting), "transient",
			 mw_json_amount(&thread->transient));
}

static json_t *mark_value(const struct mw_report_mark *mark)
{
	return json_pack("{s:o, s:f, s:o}", "number", mw_json_number(mark->number), "at", (double)mark->time_ns / 1e9,
			 "name", mw_json_text(mark->name));
}

static void put_stacks(struct writer *writer, const struct mw_report *report, const struct mw_json_frames *shared)
{
	open_array(writer, "stacks");
	for (size_t i = 0; i < report->stack_count && !writer->failed; i++)
		put_item(writer, mw_json_stack(&report->stacks[i], shared));
	close_array(writer);
}

static void put_shared_stacks(struct writer *writer, const struct mw_report *report)
{
	struct mw_json_frames frames;
	struct mw_error *err = mw_json_frames_init(&frames, report);

	if (err) {
		mw_error_destroy(err);
		writer->failed = true;
		return;
	}
	open_array(writer, "frames");
	for (size_t i = 0; i < frames.index.count && !writer->failed; i++)
		put_item(writer, mw_json_frame(frames.frames[i]));
	close_array(writer);
	put_stacks(writer, report, &frames);
	mw_json_frames_deinit(&frames);
}

static void put_arrays(struct writer *writer, const struct mw_report *report)
{
	open_array(writer, "marks");
	for (size_t i = 0; i < report->mark_count; i++)
		put_item(writer, mark_value(&report->marks[i]));
	close_array(writer);
	open_array(writer, "memory");
	for (size_t i = 0; i < report->memory_count; i++)
		put_item(writer, sample_value(report, &report->memory[i]));
	close_array(writer);
	open_array(writer, "modules");
	for (size_t i = 0; i < report->module_count; i++)
		put_item(writer, module_value(&report->modules[i]));
	close_array(writer);
	open_array(writer, "threads");
	for (size_t i = 0; i < report->thread_count; i++)
		put_item(writer, thread_value(&report->threads[i]));
	close_array(writer);
	if (writer->shared)
		put_shared_stacks(writer, report);
	else
		put_stacks(writer, report, NULL);
}

static json_t *not_hooked_value(const struct mw_report *report)
{
	json_t *hooks = json_array();

	for (size_t i = 0; hooks && i < report->engine.hook_count; i++) {
		const struct mw_report_hook *hook = &report->engine.hooks[i];

		if (hook->missed &&
		    json_array_append_new(hooks, json_pack("{s:o, s:o, s:o}", "function", mw_json_text(hook->function),
							   "module", mw_json_text(hook->module), "why",
							   mw_json_text(hook->refused))) != 0) {
			json_decref(hooks);
			hooks = NULL;
		}
	}
	return hooks;
}

/* `views` is what else was asked, or NULL. */
static void put_report(struct writer *writer, const struct mw_report *report, const struct mw_views *views)
{
	fputc('{', writer->stream);
	writer->comma = false;
	put_member(writer, "schema", json_string(SCHEMA));
	put_member(writer, "target", target_value(report));
	put_member(writer, "window", window_value(report));
	put_member(writer, "engine", engine_value(report));
	put_member(writer, "complete", json_boolean(mw_report_is_complete(report)));
	put_member(writer, "lost",
		   json_pack("{s:o, s:o, s:o}", "events", mw_json_number(report->lost.events), "stacks",
			     mw_json_number(report->lost.stacks), "not_hooked", not_hooked_value(report)));
	if (report->lost.cut)
		put_member(writer, "cut", mw_json_text(report->lost.cut));
	put_member(writer, "totals", all_totals_value(report));
	put_member(writer, "address_space", mw_json_space(report->space));
	put_arrays(writer, report);
	if (views && !mw_json_views(writer->stream, views))
		writer->failed = true;
	fputs("\n}", writer->stream);
	writer->comma = true;
}

static struct mw_error *write_all(const struct mw_report *const *reports, size_t count,
				  const struct mw_output_options *options, FILE *stream, bool shared)
{
	struct writer writer = {.stream = stream, .shared = shared};

	if (count == 1) {
		put_report(&writer, reports[0], options->views ? options->views[0] : NULL);
	} else {
		fputc('{', stream);
		put_member(&writer, "schema", json_string(SCHEMA));
		open_array(&writer, "processes");
		for (size_t i = 0; i < count; i++) {
			put_separator(&writer);
			put_report(&writer, reports[i], options->views ? options->views[i] : NULL);
		}
		close_array(&writer);
		fputs("\n}", stream);
	}
	fputc('\n', stream);
	return writer.failed ? mw_error_nomem() : NULL;
}

struct mw_error *mw_json_write(const struct mw_report *const *reports, size_t count,
			       const struct mw_output_options *options, FILE *stream)
{
	return write_all(reports, count, options, stream, false);
}

struct mw_error *mw_json_write_shared(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream)
{
	return write_all(reports, count, options, stream, true);
}

// SPDX-License-Identifier: MIT
/*
 * heaptrack.c: what heaptrack_interpret writes, version 2, in gzip, as heaptrack_print and heaptrack_gui read it: each block
 * when it comes and when it goes. Numbers are hexadecimal; those of strings, places and traces are from 1, 0 is none.
 *
 *     v HEAPTRACK FORMAT                     the first line; X COMMAND, I PAGE-SIZE PAGES, A (it ran already) follow
 *     s TEXT                                 a string
 *     i ADDRESS MODULE FUNCTION FILE LINE    a place, and for each call that was inlined there, innermost first, the last three
 *     t PLACE TRACE                          a trace: the innermost place, and the trace of what called that
 *     a SIZE TRACE                           a kind of block, from 0; + KIND: one came, - KIND: one went
 *     c MILLISECONDS                         time goes on; R PAGES: the RSS then
 *
 * heaptrack_gui takes it for granted that kinds come for the first time in their order: those of which only parts went are the
 * last. So what there is of mappings is read before it is written.
 */
#include "export/frames.h"
#include "export/gzip.h"

#include "base/hash.h"
#include "base/vector.h"
#include "output/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define HEAD      "v 10200 2\n" /* of heaptrack 1.2, the first that reads it */
#define COMMENT   "memwatch heaptrack"
#define LEVEL     1 /* four times as quick as 6, for a file a sixth larger */
#define PAGE_SIZE 4096u
#define LINE_SIZE 128u /* more than a line of numbers takes */

/* Lines are what one block takes. Of sampled ones, which stand for any number, there may be more than anybody could read. */
#define MOST_SAMPLED UINT64_C(1000000000)

struct part {
	uint64_t size;
	uint32_t trace;
};

struct file {
	const struct mw_export_process *process;
	struct mw_export_frames frames;
	struct mw_export_gzip gzip;
	char buffer[1 << 15];
	size_t used;
	struct mw_map strings, places, traces, kinds; /* numbers of those that are written */
	struct mw_map parts_numbering;
	struct part *parts; /* what went of blocks that came with more */
	size_t part_capacity;
	uint32_t *trace_of; /* the traces of the report's stacks; one more for none */
	struct mw_line text;
	uint64_t from_ns, stamp; /* milliseconds */
	size_t sample;           /* of the report's, the next to be written */
	struct mw_error *err;
};

/* --- lines ---------------------------------------------------------------------------------------------------- */

static void flush(struct file *file)
{
	if (file->used)
		mw_export_gzip_put(&file->gzip, file->buffer, file->used);
	file->used = 0;
}

static void put_type(struct file *file, char type)
{
	if (sizeof(file->buffer) - file->used < LINE_SIZE)
		flush(file);
	file->buffer[file->used++] = type;
}

static void put_number(struct file *file, uint64_t number)
{
	unsigned digits = 1;

	while (digits < 16 && number >> 4 * digits)
		digits++;
	if (sizeof(file->buffer) - file->used < LINE_SIZE)
		flush(file);
	file->buffer[file->used++] = ' ';
	while (digits--)
		file->buffer[file->used++] = "0123456789abcdef"[number >> 4 * digits & 15];
}

static void put_end(struct file *file)
{
	file->buffer[file->used++] = '\n';
}

static void put_line(struct file *file, char type, uint64_t number)
{
	put_type(file, type);
	put_number(file, number);
	put_end(file);
}

static void put_text(struct file *file, const char *type, const char *text)
{
	flush(file);
	mw_export_gzip_put(&file->gzip, type, strlen(type));
	mw_export_gzip_put(&file->gzip, text, strlen(text));
	mw_export_gzip_put(&file->gzip, "\n", 1);
}

/* The number of a key, from 0; `fresh`: nothing has it yet. */
static uint32_t number_of(struct file *file, struct mw_map *map, uint64_t key, bool *fresh)
{
	size_t before = map->count;
	uint32_t number = 0;

	if (!mw_map_number(map, key, &number) && !file->err)
		file->err = mw_error_nomem();
	*fresh = map->count > before;
	return number;
}

/* --- what events name ----------------------------------------------------------------------------------------- */

static uint32_t string_of(struct file *file, const char *text)
{
	uint32_t number;
	bool fresh;

	if (!text || !*text)
		return 0;
	number = number_of(file, &file->strings, XXH64(text, strlen(text), 0), &fresh) + 1;
	if (fresh)
		put_text(file, "s ", text);
	return number;
}

/* … of text that may be any bytes. */
static uint32_t name_of(struct file *file, const char *text)
{
	mw_line_cut(&file->text, 0);
	if (text)
		mw_line_name(&file->text, text);
	if (file->text.failed && !file->err)
		file->err = mw_error_nomem();
	return string_of(file, file->text.length ? file->text.data : NULL);
}

static const struct mw_export_frame *frame_of(const struct file *file, size_t number)
{
	return &file->frames.items[file->frames.numbers[number]];
}

/* Of frames [first, last] of the sample, all but the last of them inlined. */
static uint32_t place_of(struct file *file, size_t first, size_t last)
{
	const struct mw_export_frame *outer = frame_of(file, last);
	const uint32_t *numbers = &file->frames.numbers[first];
	uint32_t number, module;
	bool fresh;

	number = number_of(file, &file->places, XXH64(numbers, (last - first + 1) * sizeof(*numbers), 0), &fresh) + 1;
	if (!fresh)
		return number;
	/* What it names is written before it. */
	module = name_of(file, outer->module);
	for (size_t i = first; i <= last; i++) {
		(void)string_of(file, frame_of(file, i)->name);
		(void)name_of(file, frame_of(file, i)->file);
	}
	put_type(file, 'i');
	put_number(file, outer->address);
	put_number(file, module);
	for (size_t i = first; i <= last; i++) {
		const struct mw_export_frame *frame = frame_of(file, i);

		put_number(file, string_of(file, frame->name));
		put_number(file, name_of(file, frame->file));
		put_number(file, frame->line);
	}
	put_end(file);
	return number;
}

/* Of all frames of the sample, from the outermost on. */
static uint32_t make_trace(struct file *file)
{
	uint32_t trace = 0;

	for (size_t first, end = file->frames.count; end > 0; end = first) {
		uint32_t outwards = trace, place;
		bool fresh;

		for (first = end - 1; first > 0 && frame_of(file, first - 1)->inlined;)
			first--;
		place = place_of(file, first, end - 1);
		trace = number_of(file, &file->traces, (uint64_t)place << 32 | outwards, &fresh) + 1;
		if (!fresh)
			continue;
		put_type(file, 't');
		put_number(file, place);
		put_number(file, outwards);
		put_end(file);
	}
	return trace;
}

static uint32_t trace_of(struct file *file, const struct mw_report_stack *stack)
{
	const struct mw_report *report = file->process->report;
	const struct mw_export_sample sample = {.stack = stack};
	uint32_t *trace = &file->trace_of[stack ? (size_t)(stack - report->stacks) : report->stack_count];

	if (*trace || file->err)
		return *trace;
	file->err = mw_export_frames_of(&file->frames, file->process, &sample);
	if (!file->err)
		*trace = make_trace(file);
	return *trace;
}

static uint64_t key_of(uint64_t size, uint32_t trace)
{
	return mw_hash_add(mw_hash_mix(size), trace);
}

static uint32_t kind_of(struct file *file, uint64_t size, uint32_t trace)
{
	bool fresh;
	uint32_t number = number_of(file, &file->kinds, key_of(size, trace), &fresh);

	if (!fresh)
		return number;
	put_type(file, 'a');
	put_number(file, size);
	put_number(file, trace);
	put_end(file);
	return number;
}

/* --- events --------------------------------------------------------------------------------------------------- */

static void put_stamp(struct file *file, uint64_t milliseconds)
{
	if (milliseconds <= file->stamp)
		return;
	file->stamp = milliseconds;
	put_line(file, 'c', milliseconds);
}

/* Since the interval's start. */
static uint64_t milliseconds_of(const struct file *file, uint64_t time_ns)
{
	return time_ns > file->from_ns ? (time_ns - file->from_ns) / 1000000 : 0;
}

/* Time has come to that: samples of the RSS are written that were taken until then. */
static void put_time(struct file *file, uint64_t milliseconds)
{
	const struct mw_report *report = file->process->report;

	for (; file->sample < report->memory_count; file->sample++) {
		const struct mw_report_sample *sample = &report->memory[file->sample];
		uint64_t at = milliseconds_of(file, (uint64_t)(sample->at * 1e9));

		if (at > milliseconds)
			break;
		put_stamp(file, at);
		if (sample->rss != MW_SIZE_UNKNOWN)
			put_line(file, 'R', sample->rss / PAGE_SIZE);
	}
	put_stamp(file, milliseconds);
}

static void take_kind(void *context, const struct mw_export_event *event)
{
	struct file *file = context;
	uint32_t trace, number;
	bool fresh;

	if (file->err || (event->gone && !event->part))
		return;
	trace = trace_of(file, event->stack);
	if (!event->gone) {
		(void)kind_of(file, event->bytes, trace);
		return;
	}
	number = number_of(file, &file->parts_numbering, key_of(event->bytes, trace), &fresh);
	if (fresh && !MW_VECTOR_ROOM(file->parts, number, file->part_capacity))
		file->err = mw_error_first(file->err, mw_error_nomem());
	else if (fresh)
		file->parts[number] = (struct part){event->bytes, trace};
}

static struct mw_error *read_kinds(struct file *file)
{
	struct mw_error *err = file->process->read_events(file->process->events, take_kind, file);

	for (size_t i = 0; !err && !file->err && i < file->parts_numbering.count; i++)
		(void)kind_of(file, file->parts[i].size, file->parts[i].trace);
	return err;
}

static void take(void *context, const struct mw_export_event *event)
{
	struct file *file = context;
	uint32_t kind;

	if (file->err)
		return;
	kind = kind_of(file, event->bytes, trace_of(file, event->stack));
	put_time(file, milliseconds_of(file, event->time_ns));
	for (uint64_t i = 0; i < event->blocks; i++)
		put_line(file, event->gone ? '-' : '+', kind);
}

/* --- the file ------------------------------------------------------------------------------------------------- */

static bool has_mappings(const struct mw_export_process *process)
{
	for (size_t i = 0; i < process->sample_count; i++)
		if (process->samples[i].kind != MW_KIND_HEAP && mw_sums_size(&process->samples[i].sums).count)
			return true;
	return false;
}

static struct mw_error *check_size(const struct mw_export_process *process)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < process->sample_count; i++)
		blocks += mw_sums_size(&process->samples[i].sums).count;
	if (!process->report->sampling.interval || blocks <= MOST_SAMPLED)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0,
					     "the sampled blocks stand for %" PRIu64
					     " ones, and a heaptrack file has a "
					     "line for each: at most %" PRIu64 " are written",
					     blocks, MOST_SAMPLED),
			     "Choose fewer by --from and --to or --filter, or take another format, as pprof");
}

static struct mw_error *put_head(struct file *file)
{
	const struct mw_report *report = file->process->report;
	const struct mw_memory_limit *limit = &report->target.limit;

	mw_export_gzip_put(&file->gzip, HEAD, sizeof(HEAD) - 1);
	MW_TRY(mw_export_command(report, &file->text));
	put_text(file, "X ", file->text.data);
	put_type(file, 'I');
	put_number(file, PAGE_SIZE);
	put_number(file, limit->of == MW_LIMIT_MACHINE ? limit->bytes / PAGE_SIZE : 0);
	put_end(file);
	if (!report->target.launched || file->from_ns)
		put_text(file, "A", "");
	return NULL;
}

static struct mw_error *put_all(struct file *file)
{
	const struct mw_report *report = file->process->report;
	struct mw_error *err;

	MW_TRY(check_size(file->process));
	file->trace_of = calloc(report->stack_count + 1, sizeof(*file->trace_of));
	if (!file->trace_of)
		return mw_error_nomem();
	file->from_ns = (uint64_t)(report->window.from * 1e9 + 0.5);
	MW_TRY(put_head(file));
	if (has_mappings(file->process))
		MW_TRY(read_kinds(file));
	err = file->process->read_events(file->process->events, take, file);
	MW_TRY(mw_error_first(err, file->err));
	put_time(file, milliseconds_of(file, (uint64_t)(report->window.to * 1e9 + 0.5)));
	flush(file);
	return mw_export_gzip_finish(&file->gzip);
}

static struct mw_error *write_heaptrack(const struct mw_export *export, FILE *stream)
{
	struct file file = {.process = export->processes, .frames = {.export = export, .by_address = true}};
	struct mw_error *err = mw_export_gzip_init(&file.gzip, stream, COMMENT, LEVEL);

	if (!err)
		err = put_all(&file);
	mw_export_gzip_deinit(&file.gzip);
	mw_export_frames_deinit(&file.frames);
	mw_map_deinit(&file.strings);
	mw_map_deinit(&file.places);
	mw_map_deinit(&file.traces);
	mw_map_deinit(&file.kinds);
	mw_map_deinit(&file.parts_numbering);
	free(file.parts);
	mw_line_deinit(&file.text);
	free(file.trace_of);
	return err;
}

static bool is_own(const char *head, size_t size)
{
	return mw_export_gzip_is_own(head, size, COMMENT);
}

const struct mw_export_format mw_export_heaptrack = {
	.name = "heaptrack",
	.what = "a heaptrack file",
	.about = "heaptrack_gui, heaptrack_print (FILE.gz)",
	.suffix = ".gz",
	.binary = true,
	.events = true,
	.is_own = is_own,
	.write = write_heaptrack,
};

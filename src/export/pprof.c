// SPDX-License-Identifier: MIT
/*
 * pprof.c: profile.proto in gzip, as `go tool pprof` and the servers of profiles read it.
 *
 * Fields of a message may come in any order, so each sample is written when it is made, after what it is the first to
 * use: strings, functions, mappings, locations. Only these are kept, by number.
 *
 * A location is a place in a module: where calls were inlined there, with the frames of all of them. Each has a mapping,
 * also that of a script or of code in no file: readers drop the names of one that has none.
 */
#include "export/frames.h"
#include "export/gzip.h"

#include "base/vector.h"
#include "output/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Fields of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_SAMPLE_TYPE,
};
enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINED,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILE = 4 };

#define COMMENT "memwatch pprof"
#define LEVEL   6

/* --- messages ------------------------------------------------------------------------------------------------- */

/* Zero-initialise. Without memory `failed` is set. */
struct message {
	uint8_t *bytes;
	size_t length, capacity;
	bool failed;
};

static void put_byte(struct message *message, uint8_t byte)
{
	if (!MW_VECTOR_ROOM(message->bytes, message->length, message->capacity))
		message->failed = true;
	else
		message->bytes[message->length++] = byte;
}

static void put_varint(struct message *message, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_byte(message, (uint8_t)(value | 0x80));
	put_byte(message, (uint8_t)value);
}

/* 0 is what a field is that is not there. */
static void put_number(struct message *message, unsigned field, uint64_t value)
{
	if (!value)
		return;
	put_varint(message, field << 3);
	put_varint(message, value);
}

static void put_bytes(struct message *message, unsigned field, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	put_varint(message, field << 3 | 2);
	put_varint(message, size);
	for (size_t i = 0; i < size; i++)
		put_byte(message, at[i]);
}

static void put_message(struct message *message, unsigned field, struct message *part)
{
	message->failed |= part->failed;
	put_bytes(message, field, part->bytes, part->length);
	part->length = 0;
}

/* --- the profile ---------------------------------------------------------------------------------------------- */

struct profile {
	const struct mw_export *export;
	struct mw_export_frames frames;
	struct mw_export_gzip gzip;
	struct mw_map strings, functions, mappings, locations; /* numbers of those that are written, from 0 */
	struct message top, sample, part, inner;               /* in the making */
	struct mw_line text;
	bool failed;
};

/* What is in the message in the making goes out. */
static void flush(struct profile *profile)
{
	profile->failed |= profile->top.failed;
	if (profile->top.length)
		mw_export_gzip_put(&profile->gzip, profile->top.bytes, profile->top.length);
	profile->top.length = 0;
}

/* The number of a key; `fresh`: nothing has it yet. */
static uint64_t number_of(struct profile *profile, struct mw_map *map, uint64_t key, bool *fresh)
{
	size_t before = map->count;
	uint32_t number = 0;

	if (!mw_map_number(map, key, &number))
		profile->failed = true;
	*fresh = map->count > before;
	return number;
}

/* Its number in the table, from 0, which is "". */
static uint64_t string_of(struct profile *profile, const char *text)
{
	size_t size = strlen(text);
	bool fresh;
	uint64_t number = number_of(profile, &profile->strings, XXH64(text, size, 0), &fresh);

	if (fresh) {
		put_bytes(&profile->top, PROFILE_STRING, text, size);
		flush(profile);
	}
	return number;
}

/* … of text that may be any bytes. */
static uint64_t name_of(struct profile *profile, const char *text)
{
	mw_line_cut(&profile->text, 0);
	mw_line_name(&profile->text, text);
	profile->failed |= profile->text.failed;
	return string_of(profile, profile->text.length ? profile->text.data : "");
}

static uint64_t function_of(struct profile *profile, const struct mw_export_frame *frame)
{
	uint64_t key[2], number;
	bool fresh;

	key[0] = string_of(profile, frame->name);
	key[1] = frame->file ? name_of(profile, frame->file) : string_of(profile, "");
	number = number_of(profile, &profile->functions, XXH64(key, sizeof(key), 0), &fresh) + 1;
	if (!fresh)
		return number;
	put_number(&profile->part, FUNCTION_ID, number);
	put_number(&profile->part, FUNCTION_NAME, key[0]);
	/* Without a system name: where it is the same, pprof takes away what stands in < >. */
	put_number(&profile->part, FUNCTION_FILE, key[1]);
	put_message(&profile->top, PROFILE_FUNCTION, &profile->part);
	flush(profile);
	return number;
}

/* The module of a frame: the one of that name that the address lies in, or any of that name; NULL: it has no file. */
static const struct mw_export_module *find_module(const struct mw_export_process *process,
						  const struct mw_export_frame *frame)
{
	const struct mw_export_module *found = NULL;

	for (size_t i = 0; frame->module && i < process->module_count; i++) {
		const struct mw_export_module *module = &process->modules[i];

		if (!module->path || strcmp(module->path, frame->module) != 0)
			continue;
		found = module;
		if (frame->address >= module->start && frame->address < module->end)
			break;
	}
	return found;
}

static uint64_t put_mapping(struct profile *profile, const char *name, const struct mw_export_module *module)
{
	uint64_t key[2] = {name_of(profile, name), module ? module->start : 0};
	uint64_t id = 0, number;
	bool fresh;

	if (module && module->build_id_size) {
		mw_line_cut(&profile->text, 0);
		for (size_t i = 0; i < module->build_id_size; i++)
			mw_line_printf(&profile->text, "%02x", module->build_id[i]);
		id = string_of(profile, profile->text.data ? profile->text.data : "");
	}
	number = number_of(profile, &profile->mappings, XXH64(key, sizeof(key), 0), &fresh) + 1;
	if (!fresh)
		return number;
	put_number(&profile->part, MAPPING_ID, number);
	put_number(&profile->part, MAPPING_START, module ? module->start : 0);
	put_number(&profile->part, MAPPING_LIMIT, module ? module->end : 0);
	put_number(&profile->part, MAPPING_FILE, key[0]);
	put_number(&profile->part, MAPPING_BUILD_ID, id);
	for (unsigned field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINED; field++)
		put_number(&profile->part, field, 1);
	put_message(&profile->top, PROFILE_MAPPING, &profile->part);
	flush(profile);
	return number;
}

static uint64_t mapping_of(struct profile *profile, const struct mw_export_process *process,
			   const struct mw_export_frame *frame)
{
	const struct mw_export_module *module = find_module(process, frame);

	return put_mapping(profile, frame->module ? frame->module : "[no file]", module);
}

/* Of frames [first, last] of the sample, all but the last of them inlined. */
static uint64_t location_of(struct profile *profile, const struct mw_export_process *process, size_t first, size_t last)
{
	const struct mw_export_frames *frames = &profile->frames;
	const struct mw_export_frame *outer = &frames->items[frames->numbers[last]];
	uint64_t mapping = mapping_of(profile, process, outer), number;
	const uint64_t seed = mapping;
	bool fresh;

	number =
		number_of(profile, &profile->locations,
			  XXH64(&frames->numbers[first], (last - first + 1) * sizeof(*frames->numbers), seed), &fresh) +
		1;
	if (!fresh)
		return number;
	/* What it uses is written before it: functions first. */
	for (size_t i = first; i <= last; i++)
		(void)function_of(profile, &frames->items[frames->numbers[i]]);
	put_number(&profile->part, LOCATION_ID, number);
	put_number(&profile->part, LOCATION_MAPPING, mapping);
	put_number(&profile->part, LOCATION_ADDRESS, outer->address);
	for (size_t i = first; i <= last; i++) {
		const struct mw_export_frame *frame = &frames->items[frames->numbers[i]];

		put_number(&profile->inner, LINE_FUNCTION, function_of(profile, frame));
		put_number(&profile->inner, LINE_NUMBER, frame->line);
		put_message(&profile->part, LOCATION_LINE, &profile->inner);
	}
	put_message(&profile->top, PROFILE_LOCATION, &profile->part);
	flush(profile);
	return number;
}

static void put_label(struct profile *profile, const char *key, const char *text, uint64_t number)
{
	put_number(&profile->part, LABEL_KEY, string_of(profile, key));
	if (text)
		put_number(&profile->part, LABEL_TEXT, name_of(profile, text));
	else
		put_number(&profile->part, LABEL_NUMBER, number);
	put_message(&profile->sample, SAMPLE_LABEL, &profile->part);
}

static void put_labels(struct profile *profile, const struct mw_report *report, const struct mw_export_sample *sample)
{
	const struct mw_report_growth *growth = sample->stack ? &sample->stack->growth : NULL;

	put_label(profile, "kind", mw_kind_name(sample->kind), 0);
	if (sample->thread && *sample->thread)
		put_label(profile, "thread", sample->thread, 0);
	if (sample->tid)
		put_label(profile, "tid", NULL, (uint64_t)sample->tid);
	if (growth && growth->known)
		put_label(profile, "verdict", mw_growth_name(growth->verdict), 0);
	put_label(profile, "process", report->target.comm ? report->target.comm : "?", 0);
	put_label(profile, "pid", NULL, (uint64_t)report->target.pid);
}

static struct mw_error *put_sample(struct profile *profile, const struct mw_export_process *process,
				   const struct mw_export_sample *sample)
{
	static const enum mw_export_measure values[] = {MW_EXPORT_ALLOC_OBJECTS, MW_EXPORT_ALLOC_SPACE,
							MW_EXPORT_INUSE_OBJECTS, MW_EXPORT_INUSE_SPACE};
	struct message ids = {.bytes = NULL};

	if (!mw_sums_size(&sample->sums).count && !mw_sums_size(&sample->sums).bytes)
		return NULL;
	MW_TRY(mw_export_frames_of(&profile->frames, process, sample));
	for (size_t first = 0, last; first < profile->frames.count; first = last + 1) {
		const struct mw_export_frames *frames = &profile->frames;

		for (last = first; last + 1 < frames->count && frames->items[frames->numbers[last]].inlined;)
			last++;
		put_varint(&ids, location_of(profile, process, first, last));
	}
	put_message(&profile->sample, SAMPLE_LOCATION, &ids);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		put_varint(&ids, mw_export_measure_of(values[i], sample));
	put_message(&profile->sample, SAMPLE_VALUE, &ids);
	free(ids.bytes);
	put_labels(profile, process->report, sample);
	put_message(&profile->top, PROFILE_SAMPLE, &profile->sample);
	flush(profile);
	return profile->failed ? mw_error_nomem() : NULL;
}

static void put_type(struct profile *profile, unsigned field, const char *name, const char *unit)
{
	put_number(&profile->part, TYPE_NAME, string_of(profile, name));
	put_number(&profile->part, TYPE_UNIT, string_of(profile, unit));
	put_message(&profile->top, field, &profile->part);
}

/* Of several processes: from the first that began to the last that ended. */
static void put_times(struct profile *profile)
{
	int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;

	for (size_t i = 0; i < profile->export->count; i++) {
		const struct mw_report *report = profile->export->processes[i].report;
		int64_t begin_ns = report->window.started_realtime_ns + (int64_t)(report->window.from * 1e9);
		int64_t end_ns = report->window.started_realtime_ns + (int64_t)(report->window.to * 1e9);

		from_ns = begin_ns < from_ns ? begin_ns : from_ns;
		to_ns = end_ns > to_ns ? end_ns : to_ns;
	}
	if (from_ns >= to_ns)
		return;
	put_number(&profile->top, PROFILE_TIME, (uint64_t)from_ns);
	put_number(&profile->top, PROFILE_DURATION, (uint64_t)(to_ns - from_ns));
}

static void put_head(struct profile *profile)
{
	uint64_t interval = 0;

	(void)string_of(profile, "");
	put_type(profile, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
	put_type(profile, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
	put_type(profile, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
	put_type(profile, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
	put_type(profile, PROFILE_PERIOD_TYPE, "space", "bytes");
	for (size_t i = 0; i < profile->export->count; i++)
		if (profile->export->processes[i].report->sampling.interval > interval)
			interval = profile->export->processes[i].report->sampling.interval;
	put_number(&profile->top, PROFILE_PERIOD, interval ? interval : 1);
	put_number(&profile->top, PROFILE_DEFAULT_SAMPLE_TYPE,
		   string_of(profile, mw_export_measure_name(profile->export->measure)));
	if (interval)
		put_number(&profile->top, PROFILE_COMMENT,
			   string_of(profile, "memwatch: blocks were sampled, and amounts are estimates"));
	put_times(profile);
	flush(profile);
}

/* The first mapping is taken for the program. */
static void put_program(struct profile *profile, const struct mw_export_process *process)
{
	const char *exe = process->report->target.exe;

	for (size_t i = 0; exe && i < process->module_count; i++)
		if (process->modules[i].path && strcmp(process->modules[i].path, exe) == 0) {
			(void)put_mapping(profile, exe, &process->modules[i]);
			return;
		}
}

static struct mw_error *put_profile(struct profile *profile)
{
	put_head(profile);
	for (size_t i = 0; i < profile->export->count; i++) {
		const struct mw_export_process *process = &profile->export->processes[i];

		put_program(profile, process);
		for (size_t j = 0; j < process->sample_count; j++)
			MW_TRY(put_sample(profile, process, &process->samples[j]));
	}
	return profile->failed ? mw_error_nomem() : mw_export_gzip_finish(&profile->gzip);
}

static struct mw_error *write_pprof(const struct mw_export *export, FILE *stream)
{
	struct profile profile = {.export = export, .frames = {.export = export, .by_address = true}};
	struct mw_error *err = mw_export_gzip_init(&profile.gzip, stream, COMMENT, LEVEL);

	if (!err)
		err = put_profile(&profile);
	mw_export_gzip_deinit(&profile.gzip);
	mw_export_frames_deinit(&profile.frames);
	mw_map_deinit(&profile.strings);
	mw_map_deinit(&profile.functions);
	mw_map_deinit(&profile.mappings);
	mw_map_deinit(&profile.locations);
	mw_line_deinit(&profile.text);
	free(profile.top.bytes);
	free(profile.sample.bytes);
	free(profile.part.bytes);
	free(profile.inner.bytes);
	return err;
}

static bool is_own(const char *head, size_t size)
{
	return mw_export_gzip_is_own(head, size, COMMENT);
}

const struct mw_export_format mw_export_pprof = {
	.name = "pprof",
	.what = "a pprof profile",
	.about = "go tool pprof, Pyroscope, Parca",
	.binary = true,
	.is_own = is_own,
	.write = write_pprof,
};

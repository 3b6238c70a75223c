// SPDX-License-Identifier: MIT
/*
 * json.c: the report as JSON, schema "memwatch.report/1".
 *
 * A report may hold a hundred thousand stacks. Each item of the long arrays is built, written and
 * dropped alone, a line for each, so memory stays flat and the text can be read with line tools.
 */
#include "output/json.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/vector.h"
#include "output/line.h"
#include "output/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- each frame of a report once, by number: the same texts have the same address there --------------------- */

/* Numbers from 0, in the order of the stacks. */
struct frames {
	const struct mw_report_frame **frames; /* by number; borrowed */
	size_t capacity;
	struct mw_index index;
};

static uint32_t hash_of(const struct mw_report_frame *frame)
{
	uint64_t hash = mw_hash_add(frame->address, (uint64_t)frame->line << 1 | frame->inlined);

	hash = mw_hash_add(hash, frame->offset);
	return (uint32_t)mw_hash_mix(mw_hash_add(hash, (uint64_t)(uintptr_t)frame->function));
}

static uint32_t hash_of_number(const void *frames, uint32_t number)
{
	return hash_of(((const struct mw_report_frame *const *)frames)[number]);
}

static bool same_frame(const struct mw_report_frame *a, const struct mw_report_frame *b)
{
	return a->function == b->function && a->module == b->module && a->offset == b->offset &&
	       a->address == b->address && a->file == b->file && a->line == b->line && a->inlined == b->inlined;
}

static bool find_frame(const struct frames *frames, const struct mw_report_frame *frame, uint32_t *number)
{
	uint32_t hash = hash_of(frame);

	MW_INDEX_EACH(&frames->index, hash, *number)
		if (same_frame(frames->frames[*number], frame))
			return true;
	return false;
}

static bool add_frame(struct frames *frames, const struct mw_report_frame *frame)
{
	uint32_t number;

	if (find_frame(frames, frame, &number))
		return true;
	if (!mw_index_reserve(&frames->index, hash_of_number, frames->frames) ||
	    !MW_VECTOR_ROOM(frames->frames, frames->index.count, frames->capacity))
		return false;
	frames->frames[mw_index_put(&frames->index, hash_of(frame))] = frame;
	return true;
}

static void frames_deinit(struct frames *frames)
{
	free(frames->frames);
	mw_index_deinit(&frames->index);
}

/* Number all frames of a report, which must outlive this. Errors: MEMORY, then there is nothing to deinit. */
static struct mw_error *frames_init(struct frames *frames, const struct mw_report *report)
{
	*frames = (struct frames){.frames = NULL};
	for (size_t i = 0; i < report->stack_count; i++)
		for (size_t j = 0; j < report->stacks[i].frame_count; j++)
			if (!add_frame(frames, &report->stacks[i].frames[j])) {
				frames_deinit(frames);
				return mw_error_nomem();
			}
	return NULL;
}

/* Of a frame of that report. */
static uint32_t number_of_frame(const struct frames *frames, const struct mw_report_frame *frame)
{
	uint32_t number = 0;

	(void)find_frame(frames, frame, &number);
	return number;
}

/* --- values, up to a whole stack ---------------------------------------------------------------------------- */

/* A copy in which all that is no UTF-8 is replaced, to be freed; NULL without memory. */
static char *repair(const char *text)
{
	/* A bad byte becomes three. */
	char *copy = malloc(strlen(text) * 3 + 1);
	size_t length = 0, taken;
	uint32_t character;

	if (!copy)
		return NULL;
	for (; (taken = mw_utf8_decode(text, &character)) != 0; text += taken) {
		char encoded[4];
		size_t size = mw_utf8_encode(character, encoded);

		memcpy(copy + length, encoded, size);
		length += size;
	}
	copy[length] = '\0';
	return copy;
}

bool mw_json_put(FILE *stream, json_t *value)
{
	/* 15 digits give back every sum and time that went in, without the tail of 0.10000000000000001. */
	size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);
	bool good = value && (json_dumpf(value, stream, flags) == 0 || ferror(stream));

	json_decref(value);
	return good;
}

void mw_json_append(json_t **array, json_t *value)
{
	if (json_array_append_new(*array, value) == 0)
		return;
	json_decref(*array);
	*array = NULL;
}

void mw_json_set(json_t **object, const char *key, json_t *value)
{
	if (json_object_set_new(*object, key, value) == 0)
		return;
	json_decref(*object);
	*object = NULL;
}

json_t *mw_json_join(json_t *first, json_t *second)
{
	if (!first || !second || json_object_update(first, second) != 0) {
		json_decref(first);
		first = NULL;
	}
	json_decref(second);
	return first;
}

json_t *mw_json_text(const char *text)
{
	json_t *value;
	char *repaired;

	if (!text)
		return json_null();
	/* jansson checks: it refuses what needs repair, which is rare. */
	value = json_string(text);
	if (value)
		return value;
	repaired = repair(text);
	if (!repaired)
		return NULL;
	value = json_string(repaired);
	free(repaired);
	return value;
}

json_t *mw_json_number(uint64_t number)
{
	return number > INT64_MAX ? json_null() : json_integer((json_int_t)number);
}

json_t *mw_json_amount(const struct mw_amount *amount)
{
	return json_pack("{s:o, s:o}", "count", mw_json_number(amount->count), "bytes", mw_json_number(amount->bytes));
}

static json_t *peak_value(const struct mw_report_peak *peak)
{
	return json_pack("{s:o, s:o, s:f}", "bytes", mw_json_number(peak->bytes), "count", mw_json_number(peak->count),
			 "at", peak->at);
}

static json_t *frame_value(const struct mw_report_frame *frame)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "function", mw_json_text(frame->function), "module",
			 mw_json_text(frame->module), "offset", mw_json_number(frame->offset), "address",
			 mw_json_number(frame->address), "file", mw_json_text(frame->file), "line",
			 frame->line ? mw_json_number(frame->line) : json_null(), "inlined", frame->inlined);
}

json_t *mw_json_frames(const struct mw_report_frame *frames, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < count; i++) {
		mw_json_append(&array, frame_value(&frames[i]));
	}
	return array;
}

static json_t *threads_value(const struct mw_report_stack *stack)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < stack->thread_count; i++) {
		const struct mw_report_thread *thread = &stack->threads[i];
		json_t *value = json_pack("{s:i, s:o, s:o}", "tid", thread->tid, "name", mw_json_text(thread->name),
					  "impacting", mw_json_amount(&thread->impacting));

		mw_json_append(&array, value);
	}
	return array;
}

static json_t *lifetime_value(const struct mw_report_stack *stack)
{
	if (!stack->has_lifetime)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "min", mw_json_number(stack->lifetime_min_ns), "median",
			 mw_json_number(stack->lifetime_median_ns), "p99", mw_json_number(stack->lifetime_p99_ns),
			 "max", mw_json_number(stack->lifetime_max_ns));
}

static json_t *cut_value(enum mw_stack_cut cut)
{
	switch (cut) {
	case MW_STACK_TRUNCATED:
		return json_string("depth");
	case MW_STACK_BROKEN:
		return json_string("no unwind information");
	case MW_STACK_COMPLETE:
		break;
	}
	return json_null();
}

static json_t *age_value(const struct mw_report_stack *stack, double at)
{
	return stack->has_ages ? json_real(at) : json_null();
}

static json_t *growth_value(const struct mw_report_growth *growth)
{
	if (!growth->known)
		return json_null();
	return json_pack("{s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "verdict",
			 mw_growth_name(growth->verdict), "certain", growth->certain, "bytes_per_second",
			 growth->bytes_per_second, "steadiness", growth->steadiness, "floor_start", growth->floor_start,
			 "floor_end", growth->floor_end, "growing_until", growth->growing_until, "freed_share",
			 growth->freed_share, "oldest_age", growth->oldest_age, "newest_age", growth->newest_age,
			 "settle_age", growth->settle_age, "settled", mw_json_amount(&growth->settled));
}

/* Whether a block of the heap is resident is the allocator's affair. */
static json_t *resident_value(const struct mw_report_stack *stack)
{
	return stack->kind == MW_KIND_HEAP ? json_null() : mw_json_number(stack->resident);
}

static json_t *numbers_value(const struct mw_report_stack *stack, const struct frames *shared)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < stack->frame_count; i++) {
		uint32_t number = number_of_frame(shared, &stack->frames[i]);

		mw_json_append(&array, json_integer(number));
	}
	return array;
}

static json_t *stack_value(const struct mw_report_stack *stack, const struct frames *shared)
{
	json_t *head = json_pack(
		"{s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "id", stack->id, "kind", mw_kind_name(stack->kind), "api",
		mw_json_text(stack->api), "truncated", stack->cut == MW_STACK_TRUNCATED, "cut", cut_value(stack->cut),
		"end", mw_json_text(mw_stack_end_name(stack->end)), "suspect", mw_json_text(stack->suspect), "frames",
		shared ? numbers_value(stack, shared) : mw_json_frames(stack->frames, stack->frame_count));
	json_t *sums = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "size", mw_json_amount(&stack->size),
		"impacting", mw_json_amount(&stack->impacting), "transient", mw_json_amount(&stack->transient), "aofi",
		mw_json_amount(&stack->aofi), "aofi_unknown", mw_json_number(stack->aofi_unknown), "aofo",
		mw_json_amount(&stack->aofo), "peak", peak_value(&stack->peak), "lifetime_ns", lifetime_value(stack),
		"oldest", age_value(stack, stack->oldest), "newest", age_value(stack, stack->newest), "threads",
		threads_value(stack), "growth", growth_value(&stack->growth));

	mw_json_set(&sums, "resident", resident_value(stack));
	mw_json_set(&sums, "settled_later", mw_json_amount(&stack->settled_later));
	return mw_json_join(head, sums);
}

/* --- the address space -------------------------------------------------------------------------------------- */

static const char *const kind_names[MW_REGION_KIND_COUNT] = {
	[MW_REGION_HEAP] = "heap",           [MW_REGION_ARENA] = "arena",         [MW_REGION_STACK] = "stack",
	[MW_REGION_ANONYMOUS] = "anonymous", [MW_REGION_FILE_TEXT] = "file_text", [MW_REGION_FILE_DATA] = "file_data",
	[MW_REGION_SHARED] = "shared",       [MW_REGION_OWN] = "memwatch",        [MW_REGION_SPECIAL] = "special",
};

static json_t *moment_value(const struct mw_report_moment *moment)
{
	json_t *object;

	if (!moment->known)
		return json_null();
	object = json_object();
	for (unsigned kind = 0; object && kind < MW_REGION_KIND_COUNT; kind++) {
		const struct mw_report_region *region = &moment->kinds[kind];
		json_t *value = json_pack("{s:o, s:o, s:o}", "reserved", mw_json_number(region->reserved), "resident",
					  mw_json_number(region->resident), "count", mw_json_number(region->count));

		mw_json_set(&object, kind_names[kind], value);
	}
	return object;
}

static json_t *arenas_value(const struct mw_report_moment *moment)
{
	if (!moment->known || moment->arena_size == MW_SIZE_UNKNOWN)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "used", mw_json_number(moment->arena_used), "free",
			 mw_json_number(moment->arena_free), "size", mw_json_number(moment->arena_size));
}

static json_t *unattributed_value(const struct mw_report_space *space)
{
	json_t *array = space->has_unattributed ? json_array() : json_null();

	for (size_t i = 0; json_is_array(array) && i < space->unattributed_count; i++) {
		const struct mw_report_unattributed *item = &space->unattributed[i];
		json_t *value = json_pack("{s:o, s:o, s:o, s:s, s:o}", "address", mw_json_number(item->address),
					  "bytes", mw_json_number(item->bytes), "resident",
					  mw_json_number(item->resident), "kind", kind_names[item->kind], "path",
					  item->path && *item->path ? mw_json_text(item->path) : json_null());

		mw_json_append(&array, value);
	}
	return array;
}

json_t *mw_json_space(const struct mw_report_space *space)
{
	if (!space)
		return json_null();
	return json_pack("{s:o, s:o, s:{s:o, s:o}, s:o}", "start", moment_value(&space->start), "end",
			 moment_value(&space->end), "arenas", "start", arenas_value(&space->start), "end",
			 arenas_value(&space->end), "unattributed", unattributed_value(space));
}

/* --- the report --------------------------------------------------------------------------------------------- */

#define SCHEMA "memwatch.report/1"

struct writer {
	FILE *stream;
	bool failed; /* out of memory; the stream keeps its own errors */
	bool comma;  /* before the next member or item */
	bool shared; /* frames stand once in each report */
};

static void put_value(struct writer *writer, json_t *value)
{
	writer->failed = !mw_json_put(writer->stream, value) || writer->failed;
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
		mw_json_append(&array, mw_json_text(report->target.command[i]));
	}
	return array;
}

static json_t *limit_of_memory_value(const struct mw_memory_limit *limit)
{
	if (limit->of == MW_LIMIT_NONE)
		return json_null();
	return json_pack("{s:o, s:o, s:s}", "bytes", mw_json_number(limit->bytes), "used", mw_json_number(limit->used),
			 "of", limit->of == MW_LIMIT_CGROUP ? "cgroup" : "machine");
}

static json_t *children_value(const struct mw_report *report)
{
	json_t *array = report->target.children ? json_array() : json_null();

	for (size_t i = 0; array && i < report->target.child_count; i++) {
		const struct mw_report_child *child = &report->target.children[i];

		mw_json_append(&array, json_pack("{s:i, s:o, s:b}", "pid", child->pid, "comm",
						 mw_json_text(child->comm), "watched", child->watched));
	}
	return array;
}

static json_t *runtimes_value(const struct mw_report *report)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < report->runtime_count; i++)
		mw_json_append(&array, json_pack("{s:s, s:s}", "name", report->runtimes[i].name, "text",
						 report->runtimes[i].text));
	return array;
}

static json_t *nameless_value(const struct mw_report *report)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < report->nameless.module_count; i++)
		mw_json_append(&array, mw_json_text(report->nameless.modules[i]));
	return array;
}

/* For a shell, as the text report has it in lines. */
static json_t *nameless_command_value(const struct mw_report_nameless *nameless)
{
	struct mw_line line = {0};
	json_t *value = NULL;

	if (!nameless->begin)
		return json_null();
	mw_line_printf(&line, "%s%s", nameless->sudo, nameless->begin);
	for (size_t i = 0; i < nameless->argument_count; i++) {
		char *word = mw_shell_word(nameless->arguments[i]);

		line.failed |= !word;
		mw_line_printf(&line, " %s", word ? word : "");
		free(word);
	}
	mw_line_printf(&line, "%s", nameless->end);
	if (!line.failed)
		value = mw_json_text(line.data);
	mw_line_deinit(&line);
	return value;
}

static json_t *rss_value(const struct mw_report_rss *rss)
{
	json_t *kinds;

	if (!rss->known)
		return json_null();
	kinds = rss->has_kinds ? json_object() : json_null();
	for (unsigned kind = 0; rss->has_kinds && kinds && kind < MW_REGION_KIND_COUNT; kind++)
		mw_json_set(&kinds, kind_names[kind], mw_json_number(rss->kinds[kind]));
	return json_pack("{s:o, s:o, s:b, s:o}", "bytes", mw_json_number(rss->growth), "blocks",
			 mw_json_number(rss->blocks), "unexplained", rss->unexplained, "other", kinds);
}

static json_t *target_value(const struct mw_report *report)
{
	bool exited = report->target.has_exit_status, known = report->target.launched || report->target.attached;

	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pid", report->target.pid, "comm",
			 mw_json_text(report->target.comm), "exe", mw_json_text(report->target.exe), "command",
			 command_value(report), "launched", known ? json_boolean(report->target.launched) : json_null(),
			 "exit_status", exited ? json_integer(report->target.exit_status) : json_null(), "exit_signal",
			 exited && report->target.exit_signal ? json_integer(report->target.exit_signal) : json_null(),
			 "memory_limit", limit_of_memory_value(&report->target.limit));
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

/* null where the recording does not tell it. */
static json_t *settle_value(const struct mw_report *report)
{
	uint64_t settle_ns = report->engine.stats.settle_ns;

	return settle_ns == MW_SIZE_UNKNOWN ? json_null() : json_real((double)settle_ns / 1e9);
}

static json_t *window_value(const struct mw_report *report)
{
	return json_pack(
		"{s:o, s:f, s:f, s:f, s:s, s:o, s:o}", "started", mw_json_date(report->window.started_realtime_ns),
		"seconds", report->window.seconds, "from", report->window.from, "to", report->window.to, "ended",
		mw_window_end_name(report->window.ended), "limit", limit_value(report), "settle", settle_value(report));
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
		mw_json_append(&hooks, hook_value(&report->engine.hooks[i]));
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
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "size", mw_json_amount(&totals->size), "impacting",
			 mw_json_amount(&totals->impacting), "transient", mw_json_amount(&totals->transient), "aofi",
			 mw_json_amount(&totals->aofi), "aofi_unknown", mw_json_number(totals->aofi_unknown), "aofo",
			 mw_json_amount(&totals->aofo), "peak", peak_value(&totals->peak), "settled_later",
			 mw_json_amount(&totals->settled_later));
}

/* A kind that was not recorded is null: zeros would claim that nothing was allocated. */
static json_t *all_totals_value(const struct mw_report *report)
{
	json_t *object = json_object();

	for (unsigned i = 0; object && i < MW_KIND_COUNT; i++) {
		json_t *value = report->tracked[i] ? totals_value(&report->totals[i]) : json_null();

		mw_json_set(&object, mw_kind_name((enum mw_kind)i), value);
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

static json_t *suspect_value(const struct mw_report *report, const struct mw_report_suspect *suspect)
{
	static const struct mw_report_frame none;
	const struct mw_report_frame *frame = suspect->frame ? suspect->frame : &none;
	json_t *stacks = json_array();

	for (size_t i = 0; i < suspect->stack_count; i++)
		if (json_array_append_new(stacks, json_string(report->stacks[suspect->stacks[i]].id)) != 0) {
			json_decref(stacks);
			return NULL;
		}
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:f, s:o, s:o, s:o}", "line",
			 frame->line ? mw_json_number(frame->line) : json_null(), "function",
			 mw_json_text(frame->function), "file", mw_json_text(frame->file), "module",
			 mw_json_text(frame->module), "verdict", mw_growth_name(suspect->verdict), "certain",
			 suspect->certain, "bytes", mw_json_number(suspect->bytes), "blocks",
			 mw_json_number(suspect->blocks), "freed", mw_json_number(suspect->freed), "bytes_per_hour",
			 suspect->bytes_per_hour, "seconds_to_limit",
			 suspect->seconds_to_limit < 0 ? json_null() : json_real(suspect->seconds_to_limit), "stacks",
			 stacks, "sentence", mw_json_text(suspect->sentence));
}

static json_t *mark_value(const struct mw_report_mark *mark)
{
	return json_pack("{s:o, s:f, s:o}", "number", mw_json_number(mark->number), "at", (double)mark->time_ns / 1e9,
			 "name", mw_json_text(mark->name));
}

static void put_stacks(struct writer *writer, const struct mw_report *report, const struct frames *shared)
{
	open_array(writer, "stacks");
	for (size_t i = 0; i < report->stack_count && !writer->failed; i++)
		put_item(writer, stack_value(&report->stacks[i], shared));
	close_array(writer);
}

static void put_shared_stacks(struct writer *writer, const struct mw_report *report)
{
	struct frames frames;
	struct mw_error *err = frames_init(&frames, report);

	if (err) {
		mw_error_destroy(err);
		writer->failed = true;
		return;
	}
	open_array(writer, "frames");
	for (size_t i = 0; i < frames.index.count && !writer->failed; i++)
		put_item(writer, frame_value(frames.frames[i]));
	close_array(writer);
	put_stacks(writer, report, &frames);
	frames_deinit(&frames);
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
	open_array(writer, "suspects");
	for (size_t i = 0; i < report->suspect_count; i++)
		put_item(writer, suspect_value(report, &report->suspects[i]));
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

		if (hook->missed)
			mw_json_append(&hooks,
				       json_pack("{s:o, s:o, s:o}", "function", mw_json_text(hook->function), "module",
						 mw_json_text(hook->module), "why", mw_json_text(hook->refused)));
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
	put_member(writer, "children", children_value(report));
	put_member(writer, "nameless", nameless_value(report));
	put_member(writer, "nameless_hint", mw_json_text(mw_text_nameless_hint(&report->nameless)));
	put_member(writer, "nameless_command", nameless_command_value(&report->nameless));
	put_member(writer, "runtimes", runtimes_value(report));
	put_member(writer, "rss_growth", rss_value(&report->rss));
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

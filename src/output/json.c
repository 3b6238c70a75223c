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
#include <math.h>
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
	       a->address == b->address && a->file == b->file && a->line == b->line && a->inlined == b->inlined &&
	       a->interprets == b->interprets;
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

	if (!mw_index_reserve(&frames->index, hash_of_number, frames->frames) ||
	    !MW_VECTOR_ROOM(frames->frames, frames->index.count, frames->capacity))
		return false;
	if (find_frame(frames, frame, &number))
		return true;
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

json_t *mw_json_object(const struct mw_json_member *members)
{
	json_t *object = json_object();

	for (; members->key; members++)
		mw_json_set(&object, members->key, members->value);
	return object;
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

json_t *mw_json_amount(struct mw_amount amount)
{
	return MW_OBJECT(MW_OF(&amount, count), MW_OF(&amount, bytes));
}

json_t *mw_json_error(struct mw_spread spread)
{
	return MW_OBJECT(MW_KEY("count", sqrt(spread.count)), MW_KEY("bytes", sqrt(spread.bytes)));
}

json_t *mw_json_estimate(bool sampled, struct mw_amount amount, struct mw_spread spread)
{
	json_t *value = mw_json_amount(amount);

	if (sampled)
		mw_json_set(&value, "error", mw_json_error(spread));
	return value;
}

static json_t *peak_value(bool sampled, const struct mw_report_peak *peak, const struct mw_spreads *spreads)
{
	json_t *value = MW_OBJECT(MW_OF(peak, bytes), MW_OF(peak, count), MW_OF(peak, at));

	if (sampled)
		mw_json_set(&value, "error", mw_json_error(spreads->peak));
	return value;
}

/* An amount of something that has spreads. */
#define ESTIMATE(sampled, of, name) MW_KEY(#name, mw_json_estimate(sampled, (of)->name, (of)->spreads.name))
#define ESTIMATED_SIZE(sampled, of)                                                                                    \
	MW_KEY("size", mw_json_estimate(sampled, (of)->size, mw_spreads_size(&(of)->spreads)))
#define ESTIMATED_SETTLED(sampled, of)                                                                                 \
	MW_KEY("settled_later", mw_json_estimate(sampled, (of)->settled_later, (of)->spreads.settled))

static json_t *frame_value(const struct mw_report_frame *frame)
{
	return MW_OBJECT(MW_OF(frame, function), MW_OF(frame, module), MW_OF(frame, offset), MW_OF(frame, address),
			 MW_OF(frame, file), MW_KEY("line", frame->line ? MW_VALUE(frame->line) : json_null()),
			 MW_OF(frame, inlined), MW_KEY("language", mw_json_text(mw_language_name(frame->language))),
			 MW_OF(frame, interprets));
}

json_t *mw_json_frames(const struct mw_report_frame *frames, size_t count)
{
	return MW_ARRAY(i, count, frame_value(&frames[i]));
}

json_t *mw_json_texts(const char *const *texts, size_t count)
{
	return MW_ARRAY(i, count, mw_json_text(texts[i]));
}

static json_t *threads_value(bool sampled, const struct mw_report_stack *stack)
{
	const struct mw_report_thread *threads = stack->threads;

	return MW_ARRAY(i, stack->thread_count,
			MW_OBJECT(MW_OF(&threads[i], tid), MW_OF(&threads[i], name),
				  ESTIMATE(sampled, &threads[i], impacting)));
}

static json_t *lifetime_value(const struct mw_report_stack *stack)
{
	if (!stack->has_lifetime)
		return json_null();
	return MW_OBJECT(MW_KEY("min", stack->lifetime_min_ns), MW_KEY("median", stack->lifetime_median_ns),
			 MW_KEY("p99", stack->lifetime_p99_ns), MW_KEY("max", stack->lifetime_max_ns));
}

static json_t *growth_value(const struct mw_report_growth *growth)
{
	if (!growth->known)
		return json_null();
	return MW_OBJECT(MW_KEY("verdict", mw_growth_name(growth->verdict)), MW_OF(growth, certain),
			 MW_OF(growth, bytes_per_second), MW_OF(growth, steadiness), MW_OF(growth, floor_start),
			 MW_OF(growth, floor_end), MW_OF(growth, growing_until), MW_OF(growth, freed_share),
			 MW_OF(growth, oldest_age), MW_OF(growth, newest_age), MW_OF(growth, settle_age),
			 MW_OF(growth, settled));
}

json_t *mw_json_change(uint64_t from, uint64_t to)
{
	uint64_t by = to < from ? from - to : to - from;

	if (by > INT64_MAX)
		return json_null();
	return json_integer(to < from ? -(json_int_t)by : (json_int_t)by);
}

json_t *mw_json_leaks(const struct mw_amount amounts[MW_REACH_COUNT])
{
	return MW_OBJECT(MW_KEY("definite", amounts[MW_REACH_DEFINITE]), MW_KEY("indirect", amounts[MW_REACH_INDIRECT]),
			 MW_KEY("possible", amounts[MW_REACH_POSSIBLE]),
			 MW_KEY("reachable", amounts[MW_REACH_REACHABLE]));
}

static json_t *leaks_value(const struct mw_report_leaks *leaks)
{
	return leaks ? mw_json_leaks(leaks->amounts) : json_null();
}

static json_t *holder_value(const struct mw_report_leaks *leaks)
{
	return leaks && leaks->holder_count ? mw_json_texts(leaks->holder, leaks->holder_count) : json_null();
}

/* Few stacks have one, and the others do not say so. */
static void set_pool(json_t **value, const struct mw_report_pool *pool)
{
	if (!pool)
		return;
	mw_json_set(
		value, "pool",
		MW_OBJECT(MW_OF(pool, name), MW_OF(pool, hint),
			  MW_KEY("users",
				 MW_ARRAY(i, pool->user_count,
					  MW_OBJECT(MW_OF(&pool->users[i], name), MW_OF(&pool->users[i], path),
						    MW_OF(&pool->users[i], example), MW_OF(&pool->users[i], blocks)))),
			  MW_OF(pool, looked), MW_OF(pool, others)));
}

/* `shared`: where its frames have numbers, or NULL. */
static json_t *stack_value(const struct mw_report *report, const struct mw_report_stack *stack,
			   const struct frames *shared)
{
	bool sampled = mw_report_is_sampled(report, stack->kind), older = mw_report_knows_older(report, stack->kind);
	static const char *const cuts[] = {[MW_STACK_TRUNCATED] = "depth", [MW_STACK_BROKEN] = "no unwind information"};
	json_t *frames =
		shared ? MW_ARRAY(i, stack->frame_count, json_integer(number_of_frame(shared, &stack->frames[i])))
		       : mw_json_frames(stack->frames, stack->frame_count);
	json_t *value;

	value = MW_OBJECT(
		MW_OF(stack, id), MW_KEY("kind", mw_kind_name(stack->kind)), MW_OF(stack, api),
		MW_KEY("truncated", (bool)(stack->cut == MW_STACK_TRUNCATED)), MW_KEY("cut", cuts[stack->cut]),
		MW_KEY("end", mw_stack_end_name(stack->end)), MW_OF(stack, suspect), MW_KEY("frames", frames),
		MW_KEY("charged", stack->frame_count ? MW_VALUE(stack->charged) : json_null()),
		ESTIMATED_SIZE(sampled, stack), ESTIMATE(sampled, stack, impacting),
		ESTIMATE(sampled, stack, transient),
		MW_KEY("aofi", older ? mw_json_estimate(sampled, stack->aofi, stack->spreads.aofi) : json_null()),
		MW_KEY("aofi_unknown", older ? MW_VALUE(stack->aofi_unknown) : json_null()),
		ESTIMATE(sampled, stack, aofo), MW_KEY("peak", peak_value(sampled, &stack->peak, &stack->spreads)),
		MW_KEY("lifetime_ns", lifetime_value(stack)),
		MW_KEY("oldest", stack->has_ages ? json_real(stack->oldest) : json_null()),
		MW_KEY("newest", stack->has_ages ? json_real(stack->newest) : json_null()),
		MW_KEY("threads", threads_value(sampled, stack)), MW_KEY("growth", growth_value(&stack->growth)),
		/* Whether a block of the heap is resident is the allocator's affair. */
		MW_KEY("resident", stack->kind == MW_KIND_HEAP ? json_null() : MW_VALUE(stack->resident)),
		ESTIMATED_SETTLED(sampled, stack), MW_KEY("leaks", leaks_value(stack->leaks)),
		MW_KEY("holder", holder_value(stack->leaks)));
	set_pool(&value, stack->pool);
	return value;
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

static json_t *limit_of_memory_value(const struct mw_memory_limit *limit)
{
	if (limit->of == MW_LIMIT_NONE)
		return json_null();
	return MW_OBJECT(MW_OF(limit, bytes), MW_OF(limit, used),
			 MW_KEY("of", limit->of == MW_LIMIT_CGROUP ? "cgroup" : "machine"));
}

static json_t *children_value(const struct mw_report *report)
{
	const struct mw_report_child *children = report->target.children;

	if (!children)
		return json_null();
	return MW_ARRAY(i, report->target.child_count,
			MW_OBJECT(MW_OF(&children[i], pid), MW_OF(&children[i], comm), MW_OF(&children[i], watched)));
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

static json_t *runtime_value(const struct mw_report_runtime *runtime)
{
	json_t *value = MW_OBJECT(MW_OF(runtime, name), MW_OF(runtime, text), MW_OF(runtime, heap));

	if (runtime->has_growth) {
		mw_json_set(&value, "growth", MW_VALUE(runtime->growth));
		mw_json_set(&value, "blocks", MW_VALUE(runtime->blocks));
	}
	return value;
}

static json_t *target_value(const struct mw_report *report)
{
	bool exited = report->target.has_exit_status, known = report->target.launched || report->target.attached;

	return MW_OBJECT(MW_OF(&report->target, pid), MW_OF(&report->target, comm), MW_OF(&report->target, exe),
			 MW_KEY("command", mw_json_texts(report->target.command, report->target.command_count)),
			 MW_KEY("launched", known ? MW_VALUE(report->target.launched) : json_null()),
			 MW_KEY("exit_status", exited ? json_integer(report->target.exit_status) : json_null()),
			 MW_KEY("exit_signal", exited && report->target.exit_signal
						       ? json_integer(report->target.exit_signal)
						       : json_null()),
			 MW_KEY("memory_limit", limit_of_memory_value(&report->target.limit)));
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
	if (stats->limit_stopped)
		return MW_OBJECT(MW_KEY("of", "stopped"), MW_KEY("share", (double)stats->limit_stopped / 1e6));
	return MW_OBJECT(MW_KEY("of", "memory"), MW_KEY("bytes", stats->limit_memory));
}

static json_t *window_value(const struct mw_report *report)
{
	uint64_t settle_ns = report->engine.stats.settle_ns;

	return MW_OBJECT(
		MW_KEY("started", mw_json_date(report->window.started_realtime_ns)), MW_OF(&report->window, seconds),
		MW_OF(&report->window, from), MW_OF(&report->window, to),
		MW_KEY("ended", mw_window_end_name(report->window.ended)), MW_KEY("limit", limit_value(report)),
		/* null where the recording does not tell it. */
		MW_KEY("settle", settle_ns == MW_SIZE_UNKNOWN ? json_null() : json_real((double)settle_ns / 1e9)));
}

static json_t *hook_value(const struct mw_report_hook *hook)
{
	return MW_OBJECT(MW_OF(hook, function), MW_OF(hook, module), MW_OF(hook, address), MW_OF(hook, role),
			 MW_OF(hook, refused));
}

static json_t *engine_value(const struct mw_report *report)
{
	const struct mw_engine_stats *stats = &report->engine.stats;

	return MW_OBJECT(MW_OF(&report->engine, name), MW_OF(&report->engine, reason), MW_OF(stats, stops),
			 MW_OF(stats, longest_stop_ns), MW_OF(stats, stopped_ns), MW_OF(stats, stood_ns),
			 MW_KEY("stopped_share", mw_report_stopped_share(report)), MW_OF(stats, attach_ns),
			 MW_OF(stats, detach_ns), MW_OF(stats, broken_stacks), MW_OF(stats, returns_site),
			 MW_OF(stats, returns_exchanged), MW_OF(stats, walks), MW_OF(stats, slow_walks),
			 MW_OF(stats, waited_ns), MW_KEY("own_memory", stats->own_resident),
			 MW_KEY("own_cpu_ns", stats->own_cpu_ns ? MW_VALUE(stats->own_cpu_ns) : json_null()),
			 MW_OF(stats, children_cleaned), MW_OF(stats, left_behind),
			 MW_KEY("hooks", MW_ARRAY(i, report->engine.hook_count, hook_value(&report->engine.hooks[i]))));
}

static json_t *totals_value(const struct mw_report *report, enum mw_kind kind)
{
	bool sampled = mw_report_is_sampled(report, kind), older = mw_report_knows_older(report, kind);
	const struct mw_report_totals *totals = &report->totals[kind];

	return MW_OBJECT(
		ESTIMATED_SIZE(sampled, totals), ESTIMATE(sampled, totals, impacting),
		ESTIMATE(sampled, totals, transient),
		MW_KEY("aofi", older ? mw_json_estimate(sampled, totals->aofi, totals->spreads.aofi) : json_null()),
		MW_KEY("aofi_unknown", older ? MW_VALUE(totals->aofi_unknown) : json_null()),
		ESTIMATE(sampled, totals, aofo), MW_KEY("peak", peak_value(sampled, &totals->peak, &totals->spreads)),
		ESTIMATED_SETTLED(sampled, totals));
}

/* A kind that was not recorded is null: zeros would claim that nothing was allocated. */
static json_t *all_totals_value(const struct mw_report *report)
{
	json_t *object = json_object();

	for (unsigned i = 0; object && i < MW_KIND_COUNT; i++) {
		mw_json_set(&object, mw_kind_name((enum mw_kind)i),
			    report->tracked[i] ? totals_value(report, (enum mw_kind)i) : json_null());
	}
	return object;
}

static json_t *sample_value(const struct mw_report *report, const struct mw_report_sample *sample)
{
	bool heap = report->tracked[MW_KIND_HEAP], vm = report->tracked[MW_KIND_VM];

	return MW_OBJECT(MW_OF(sample, at), MW_OF(sample, rss), MW_OF(sample, pss), MW_OF(sample, vsize),
			 MW_KEY("heap_impacting", heap ? MW_VALUE(sample->heap_impacting) : json_null()),
			 MW_KEY("vm_impacting", vm ? MW_VALUE(sample->vm_impacting) : json_null()),
			 MW_OF(sample, arena_used), MW_OF(sample, arena_free), MW_OF(sample, arena_size));
}

static json_t *module_value(const struct mw_report *report, const struct mw_report_module *module)
{
	bool sampled = mw_report_is_sampled(report, MW_KIND_HEAP);

	return MW_OBJECT(MW_OF(module, module), ESTIMATED_SIZE(sampled, module), ESTIMATE(sampled, module, impacting),
			 ESTIMATE(sampled, module, transient));
}

static json_t *thread_value(const struct mw_report *report, const struct mw_report_thread *thread)
{
	bool sampled = mw_report_is_sampled(report, MW_KIND_HEAP);

	return MW_OBJECT(MW_OF(thread, tid), MW_OF(thread, name), ESTIMATED_SIZE(sampled, thread),
			 ESTIMATE(sampled, thread, impacting), ESTIMATE(sampled, thread, transient));
}

static json_t *sampled_value(const struct mw_report_sampled *interval)
{
	return MW_OBJECT(MW_OF(interval, bytes),
			 MW_KEY("from", interval->from < 0 ? json_null() : json_real(interval->from)),
			 MW_OF(interval, blocks));
}

static json_t *sampling_value(const struct mw_report *report)
{
	const struct mw_report_sampling *sampling = &report->sampling;

	if (!sampling->interval)
		return json_null();
	return MW_OBJECT(MW_OF(sampling, interval), MW_OF(sampling, from), MW_OF(sampling, why),
			 MW_KEY("intervals", MW_ARRAY(i, sampling->count, sampled_value(&sampling->intervals[i]))),
			 MW_OF(sampling, exact), MW_OF(sampling, unseen));
}

static json_t *suspect_value(const struct mw_report *report, const struct mw_report_suspect *suspect)
{
	static const struct mw_report_frame none;
	const struct mw_report_frame *frame = suspect->frame ? suspect->frame : &none;
	const struct mw_spreads *spreads = &suspect->spreads;
	json_t *value;

	value = MW_OBJECT(
		MW_KEY("line", frame->line ? MW_VALUE(frame->line) : json_null()), MW_OF(frame, function),
		MW_OF(frame, file), MW_OF(frame, module), MW_KEY("verdict", mw_growth_name(suspect->verdict)),
		MW_OF(suspect, certain), MW_OF(suspect, bytes), MW_OF(suspect, blocks), MW_OF(suspect, freed),
		MW_OF(suspect, bytes_per_hour),
		MW_KEY("seconds_to_limit",
		       suspect->seconds_to_limit < 0 ? json_null() : json_real(suspect->seconds_to_limit)),
		MW_KEY("stacks", MW_ARRAY(i, suspect->stack_count, MW_VALUE(report->stacks[suspect->stacks[i]].id))),
		MW_OF(suspect, sentence));
	if (spreads->impacting.blocks)
		mw_json_set(&value, "error",
			    MW_OBJECT(MW_KEY("bytes", sqrt(spreads->impacting.bytes)),
				      MW_KEY("blocks", sqrt(spreads->impacting.count)),
				      MW_KEY("freed", sqrt(spreads->transient.count)), MW_OF(suspect, low),
				      MW_OF(suspect, high), MW_KEY("sampled", spreads->impacting.blocks)));
	set_pool(&value, suspect->pool);
	return value;
}

static json_t *mark_value(const struct mw_report_mark *mark)
{
	return MW_OBJECT(MW_OF(mark, number), MW_KEY("at", (double)mark->time_ns / 1e9), MW_OF(mark, name));
}

/* A member that is an array, each item on a line of its own. */
#define PUT_ARRAY(writer, key, i, count, value)                                                                        \
	do {                                                                                                           \
		open_array(writer, key);                                                                               \
		for (size_t i = 0; i < (count) && !(writer)->failed; i++)                                              \
			put_item(writer, value);                                                                       \
		close_array(writer);                                                                                   \
	} while (0)

static void put_shared_stacks(struct writer *writer, const struct mw_report *report)
{
	struct frames frames;
	struct mw_error *err = frames_init(&frames, report);

	if (err) {
		mw_error_destroy(err);
		writer->failed = true;
		return;
	}
	PUT_ARRAY(writer, "frames", i, frames.index.count, frame_value(frames.frames[i]));
	PUT_ARRAY(writer, "stacks", i, report->stack_count, stack_value(report, &report->stacks[i], &frames));
	frames_deinit(&frames);
}

static void put_arrays(struct writer *writer, const struct mw_report *report)
{
	PUT_ARRAY(writer, "marks", i, report->mark_count, mark_value(&report->marks[i]));
	PUT_ARRAY(writer, "memory", i, report->memory_count, sample_value(report, &report->memory[i]));
	PUT_ARRAY(writer, "modules", i, report->module_count, module_value(report, &report->modules[i]));
	PUT_ARRAY(writer, "suspects", i, report->suspect_count, suspect_value(report, &report->suspects[i]));
	PUT_ARRAY(writer, "threads", i, report->thread_count, thread_value(report, &report->threads[i]));
	if (writer->shared)
		put_shared_stacks(writer, report);
	else
		PUT_ARRAY(writer, "stacks", i, report->stack_count, stack_value(report, &report->stacks[i], NULL));
}

static json_t *lost_value(const struct mw_report *report)
{
	json_t *missed = json_array();

	for (size_t i = 0; missed && i < report->engine.hook_count; i++) {
		const struct mw_report_hook *hook = &report->engine.hooks[i];

		if (hook->missed)
			mw_json_append(&missed, MW_OBJECT(MW_OF(hook, function), MW_OF(hook, module),
							  MW_KEY("why", hook->refused)));
	}
	return MW_OBJECT(MW_OF(&report->lost, events), MW_OF(&report->lost, stacks), MW_KEY("not_hooked", missed));
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
	put_member(writer, "complete", json_boolean(mw_report_is_complete(report) && !report->sampling.interval));
	put_member(writer, "lost", lost_value(report));
	if (report->lost.cut)
		put_member(writer, "cut", mw_json_text(report->lost.cut));
	put_member(writer, "sampling", sampling_value(report));
	put_member(writer, "totals", all_totals_value(report));
	put_member(writer, "leaks", leaks_value(report->leaks));
	put_member(writer, "children", children_value(report));
	put_member(writer, "nameless", mw_json_texts(report->nameless.modules, report->nameless.module_count));
	put_member(writer, "nameless_hint", mw_json_text(mw_text_nameless_hint(&report->nameless)));
	put_member(writer, "nameless_command", nameless_command_value(&report->nameless));
	put_member(writer, "runtimes", MW_ARRAY(i, report->runtime_count, runtime_value(&report->runtimes[i])));
	put_member(writer, "frames_missing", mw_json_text(report->frames_missing));
	put_member(writer, "rss_growth", mw_json_rss(&report->rss));
	if (report->change)
		put_member(writer, "heap_change", mw_json_heap_change(report->change));
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

struct mw_error *mw_json_write_shared(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream)
{
	return write_all(reports, count, options, stream, true);
}

static struct mw_error *write_report(const struct mw_report *const *reports, size_t count,
				     const struct mw_output_options *options, FILE *stream)
{
	return write_all(reports, count, options, stream, false);
}

/* Blanks between its words don't matter. */
static bool is_own(const char *head, size_t size)
{
	static const char first[] = "{\"schema\":\"memwatch.";
	size_t found = 0;

	for (size_t i = 0; i < size && first[found]; i++)
		if (!strchr(" \t\r\n", head[i]) && head[i] != first[found++])
			return false;
	return !first[found];
}

const struct mw_output mw_output_json = {
	.name = "json",
	.what = "a JSON report",
	.media = "application/json",
	.is_own = is_own,
	.of_reports = {NULL, "Write the whole report as JSON; '-' is standard output."},
	.of_diffs = {"all stacks as JSON; '-' is standard output\n",
		     "Write all stacks as JSON; '-' is standard output."},
	.write = write_report,
	.of_heaps = {"the whole look as JSON; '-' is standard output\n",
		     "Write the whole look as JSON; '-' is standard output."},
	.write_diffs = mw_json_diff_write,
	.write_heap = mw_json_heap_write,
	.write_heap_diff = mw_json_heap_diff_write,
};

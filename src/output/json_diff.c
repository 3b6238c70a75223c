// SPDX-License-Identifier: MIT
/*
 * json_diff.c: a comparison as JSON, schema "memwatch.diff/1".
 *
 *   schema     "memwatch.diff/1"
 *   basis      "outstanding": both sides stand on one base; "rates": they are two windows, and what is compared is how
 *              fast each left blocks unfreed, old.at and new.at being the seconds that each had for it
 *   executables "same", "moved" (one build at different paths), "rebuilt", "other" (different paths, builds not known)
 *   old, new   {file, pid, comm, exe, build_id|null, started, at, launched, moment|null, complete, cut,
 *              lost: {events, stacks, not_hooked}}
 *   change     "more", "less", "same": of all; rates are "same" where they are about the same (within a quarter, or by chance)
 *   totals     {heap: D|null, vm: D|null, "vm-internal": D|null}   D = {old, new, delta}: {count, bytes} each;
 *              null: not compared
 *              where blocks are sampled, old, new and delta are estimates with an "error" (standard error: {count, bytes})
 *   rebuilt    [path]: modules whose builds differ, so that stacks through them don't match
 *   stacks     [{id, kind, api, truncated, frames[], old, new, delta, change, rates, growth}]: all, so that their sums
 *              equal the totals. Where blocks are sampled also "noise": the change is no more than two standard errors
 *   rates      of basis "rates", else null: {old, new, delta} of
 *              {count_per_second, bytes_per_second, count_per_hour, bytes_per_hour}; also in each of the totals
 *   growth     of basis "outstanding" at two moments of one window, else null: the same four, of the delta in between
 *
 * Each stack is built, written and dropped alone, on a line of its own. Of several processes:
 * {schema, processes: [as above]}.
 */
#include "output/json.h"

#include <memwatch/diff.h>

#include <string.h>

#define SCHEMA "memwatch.diff/1"

struct writer {
	FILE *stream;
	bool failed; /* out of memory; the stream keeps its own errors */
};

static void put_value(struct writer *writer, json_t *value)
{
	writer->failed = !mw_json_put(writer->stream, value) || writer->failed;
}

static void put_member(struct writer *writer, const char *key, json_t *value)
{
	fprintf(writer->stream, ",\n\"%s\":", key);
	put_value(writer, value);
}

static json_t *snapshot_value(const struct mw_diff_snapshot *snapshot)
{
	bool complete = !snapshot->sampled && !snapshot->cut && !snapshot->lost_events && !snapshot->lost_stacks &&
			!snapshot->not_hooked;

	return MW_OBJECT(
		MW_OF(snapshot, file), MW_OF(snapshot, pid), MW_OF(snapshot, comm), MW_OF(snapshot, exe),
		MW_OF(snapshot, build_id), MW_OF(snapshot, launched),
		MW_KEY("started", mw_json_date(snapshot->started_realtime_ns)), MW_OF(snapshot, at),
		MW_OF(snapshot, moment), MW_KEY("complete", complete), MW_OF(snapshot, cut),
		MW_KEY("lost", MW_OBJECT(MW_KEY("events", snapshot->lost_events),
					 MW_KEY("stacks", snapshot->lost_stacks), MW_OF(snapshot, not_hooked))),
		MW_KEY("sampling", snapshot->sampled ? MW_OBJECT(MW_KEY("interval", snapshot->sampled)) : json_null()));
}

static json_t *delta_value(const struct mw_amount held[MW_DIFF_SIDES], const struct mw_diff_spread *spread)
{
	json_t *value = MW_OBJECT(MW_KEY("count", mw_json_change(held[MW_DIFF_OLD].count, held[MW_DIFF_NEW].count)),
				  MW_KEY("bytes", mw_json_change(held[MW_DIFF_OLD].bytes, held[MW_DIFF_NEW].bytes)));

	if (spread)
		mw_json_set(&value, "error", mw_json_error(spread->change));
	return value;
}

static json_t *side_value(const struct mw_amount held[MW_DIFF_SIDES], const struct mw_diff_spread *spread,
			  enum mw_diff_side side)
{
	return mw_json_estimate(spread != NULL, held[side], spread ? spread->held[side] : (struct mw_spread){0});
}

static json_t *rate_value(double count, double bytes)
{
	return MW_OBJECT(MW_KEY("count_per_second", count), MW_KEY("bytes_per_second", bytes),
			 MW_KEY("count_per_hour", count * 3600), MW_KEY("bytes_per_hour", bytes * 3600));
}

static json_t *rates_value(const struct mw_diff *diff, const struct mw_amount held[MW_DIFF_SIDES])
{
	double count[MW_DIFF_SIDES], bytes[MW_DIFF_SIDES];

	if (diff->basis != MW_DIFF_RATES)
		return json_null();
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
		count[side] = (double)held[side].count / diff->snapshots[side].at;
		bytes[side] = (double)held[side].bytes / diff->snapshots[side].at;
	}
	return MW_OBJECT(MW_KEY("old", rate_value(count[MW_DIFF_OLD], bytes[MW_DIFF_OLD])),
			 MW_KEY("new", rate_value(count[MW_DIFF_NEW], bytes[MW_DIFF_NEW])),
			 MW_KEY("delta", rate_value(count[MW_DIFF_NEW] - count[MW_DIFF_OLD],
						    bytes[MW_DIFF_NEW] - bytes[MW_DIFF_OLD])));
}

/* Between two moments of one window. */
static json_t *growth_value(const struct mw_diff *diff, const struct mw_amount held[MW_DIFF_SIDES])
{
	const struct mw_diff_snapshot *old = &diff->snapshots[MW_DIFF_OLD], *new = &diff->snapshots[MW_DIFF_NEW];
	double seconds = new->at - old->at;

	if (diff->basis != MW_DIFF_OUTSTANDING || seconds <= 0 || old->pid != new->pid ||
	    old->started_realtime_ns != new->started_realtime_ns)
		return json_null();
	return rate_value(((double)held[MW_DIFF_NEW].count - (double)held[MW_DIFF_OLD].count) / seconds,
			  ((double)held[MW_DIFF_NEW].bytes - (double)held[MW_DIFF_OLD].bytes) / seconds);
}

/* Members of an amount that is compared; `spread` is NULL where it is exact. */
#define HELD(diff, held, spread)                                                                                       \
	MW_KEY("old", side_value(held, spread, MW_DIFF_OLD)), MW_KEY("new", side_value(held, spread, MW_DIFF_NEW)),    \
		MW_KEY("delta", delta_value(held, spread)), MW_KEY("rates", rates_value(diff, held)),                  \
		MW_KEY("growth", growth_value(diff, held))

/* A kind that was not compared is null: zeros would claim that nothing was outstanding. */
static json_t *totals_value(const struct mw_diff *diff)
{
	json_t *object = json_object();

	for (unsigned i = 0; object && i < MW_KIND_COUNT; i++) {
		const struct mw_diff_spread *spread =
			mw_diff_is_sampled(diff, (enum mw_kind)i) ? &diff->spreads[i] : NULL;
		json_t *value = diff->compared[i] ? MW_OBJECT(HELD(diff, diff->totals[i], spread)) : json_null();

		mw_json_set(&object, mw_kind_name((enum mw_kind)i), value);
	}
	return object;
}

static const char *const changes[] = {[MW_DIFF_SAME] = "same", [MW_DIFF_MORE] = "more", [MW_DIFF_LESS] = "less"};

json_t *mw_json_programs(enum mw_diff_program program)
{
	static const char *const programs[] = {
		[MW_DIFF_PROGRAM_ONE] = "same",
		[MW_DIFF_PROGRAM_MOVED] = "moved",
		[MW_DIFF_PROGRAM_REBUILT] = "rebuilt",
		[MW_DIFF_PROGRAM_OTHER] = "other",
	};

	return json_string(programs[program]);
}

static json_t *stack_value(const struct mw_diff *diff, const struct mw_diff_stack *stack)
{
	const struct mw_diff_spread *spread = mw_diff_is_sampled(diff, stack->kind) ? &stack->spread : NULL;
	json_t *value;

	value = MW_OBJECT(MW_OF(stack, id), MW_KEY("kind", mw_kind_name(stack->kind)), MW_OF(stack, api),
			  MW_KEY("truncated", (bool)(stack->cut == MW_STACK_TRUNCATED)),
			  MW_KEY("end", mw_stack_end_name(stack->end)),
			  MW_KEY("frames", mw_json_frames(stack->frames, stack->frame_count)),
			  MW_KEY("change", changes[stack->change]), HELD(diff, stack->held, spread));
	if (spread)
		mw_json_set(&value, "noise", MW_VALUE(stack->noise));
	return value;
}

static void put_diff(struct writer *writer, const struct mw_diff *diff)
{
	fprintf(writer->stream, "{\n\"schema\":\"%s\"", SCHEMA);
	put_member(writer, "basis", json_string(diff->basis == MW_DIFF_RATES ? "rates" : "outstanding"));
	put_member(writer, "executables", mw_json_programs(diff->program));
	put_member(writer, "change", json_string(changes[diff->change]));
	put_member(writer, "old", snapshot_value(&diff->snapshots[MW_DIFF_OLD]));
	put_member(writer, "new", snapshot_value(&diff->snapshots[MW_DIFF_NEW]));
	put_member(writer, "totals", totals_value(diff));
	put_member(writer, "rebuilt", mw_json_texts(diff->rebuilt, diff->rebuilt_count));
	fputs(",\n\"stacks\":[", writer->stream);
	for (size_t i = 0; i < diff->stack_count && !writer->failed; i++) {
		fputs(i ? ",\n" : "\n", writer->stream);
		put_value(writer, stack_value(diff, &diff->stacks[i]));
	}
	fputs("]\n}", writer->stream);
}

struct mw_error *mw_json_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_output_options *options, FILE *stream)
{
	struct writer writer = {.stream = stream};

	(void)options; /* all of it, always */
	if (count == 1) {
		put_diff(&writer, diffs[0]);
	} else {
		fprintf(stream, "{\n\"schema\":\"%s\",\n\"processes\":[", SCHEMA);
		for (size_t i = 0; i < count; i++) {
			fputs(i ? ",\n" : "\n", stream);
			put_diff(&writer, diffs[i]);
		}
		fputs("]\n}", stream);
	}
	fputc('\n', stream);
	return writer.failed ? mw_error_nomem() : NULL;
}

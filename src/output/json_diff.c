// SPDX-License-Identifier: MIT
/*
 * json_diff.c: a comparison as JSON, schema "memwatch.diff/1".
 *
 *   schema     "memwatch.diff/1"
 *   old, new   {file, pid, comm, exe, started, at, moment|null, complete, cut, lost: {events, stacks, not_hooked}}
 *   totals     {heap: D|null, vm: D|null, "vm-internal": D|null}   D = {old, new, delta}: {count, bytes} each;
 *              null: not compared
 *   rebuilt    [path]: modules whose builds differ, so that stacks through them don't match
 *   stacks     [{id, kind, api, truncated, frames[], old, new, delta}]: all, so that their sums equal the totals
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
	bool complete = !snapshot->cut && !snapshot->lost_events && !snapshot->lost_stacks && !snapshot->not_hooked;

	return json_pack("{s:o, s:i, s:o, s:o, s:o, s:f, s:o, s:b, s:b, s:{s:o, s:o, s:o}}", "file",
			 mw_json_text(snapshot->file), "pid", snapshot->pid, "comm", mw_json_text(snapshot->comm),
			 "exe", mw_json_text(snapshot->exe), "started", mw_json_date(snapshot->started_realtime_ns),
			 "at", snapshot->at, "moment", mw_json_text(snapshot->moment), "complete", complete, "cut",
			 snapshot->cut, "lost", "events", mw_json_number(snapshot->lost_events), "stacks",
			 mw_json_number(snapshot->lost_stacks), "not_hooked", mw_json_number(snapshot->not_hooked));
}

/* null where the difference is no number of 64 bits with a sign. */
static json_t *change_value(uint64_t from, uint64_t to)
{
	uint64_t by = to < from ? from - to : to - from;

	if (by > INT64_MAX)
		return json_null();
	return json_integer(to < from ? -(json_int_t)by : (json_int_t)by);
}

static json_t *delta_value(const struct mw_amount held[MW_DIFF_SIDES])
{
	return json_pack("{s:o, s:o}", "count", change_value(held[MW_DIFF_OLD].count, held[MW_DIFF_NEW].count), "bytes",
			 change_value(held[MW_DIFF_OLD].bytes, held[MW_DIFF_NEW].bytes));
}

static json_t *held_value(const struct mw_amount held[MW_DIFF_SIDES])
{
	return json_pack("{s:o, s:o, s:o}", "old", mw_json_amount(&held[MW_DIFF_OLD]), "new",
			 mw_json_amount(&held[MW_DIFF_NEW]), "delta", delta_value(held));
}

/* A kind that was not compared is null: zeros would claim that nothing was outstanding. */
static json_t *totals_value(const struct mw_diff *diff)
{
	json_t *object = json_object();

	for (unsigned i = 0; object && i < MW_KIND_COUNT; i++) {
		json_t *value = diff->compared[i] ? held_value(diff->totals[i]) : json_null();

		mw_json_set(&object, mw_kind_name((enum mw_kind)i), value);
	}
	return object;
}

static json_t *rebuilt_value(const struct mw_diff *diff)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < diff->rebuilt_count; i++) {
		mw_json_append(&array, mw_json_text(diff->rebuilt[i]));
	}
	return array;
}

static json_t *stack_value(const struct mw_diff_stack *stack)
{
	json_t *head = json_pack("{s:s, s:s, s:o, s:b, s:o, s:o}", "id", stack->id, "kind", mw_kind_name(stack->kind),
				 "api", mw_json_text(stack->api), "truncated", stack->cut == MW_STACK_TRUNCATED, "end",
				 mw_json_text(mw_stack_end_name(stack->end)), "frames",
				 mw_json_frames(stack->frames, stack->frame_count));

	return mw_json_join(head, held_value(stack->held));
}

bool mw_json_is_own(const char *head, size_t size)
{
	static const char first[] = "{\"schema\":\"memwatch.";
	size_t found = 0;

	for (size_t i = 0; i < size && first[found]; i++)
		if (!strchr(" \t\r\n", head[i]) && head[i] != first[found++])
			return false;
	return !first[found];
}

static void put_diff(struct writer *writer, const struct mw_diff *diff)
{
	fprintf(writer->stream, "{\n\"schema\":\"%s\"", SCHEMA);
	put_member(writer, "old", snapshot_value(&diff->snapshots[MW_DIFF_OLD]));
	put_member(writer, "new", snapshot_value(&diff->snapshots[MW_DIFF_NEW]));
	put_member(writer, "totals", totals_value(diff));
	put_member(writer, "rebuilt", rebuilt_value(diff));
	fputs(",\n\"stacks\":[", writer->stream);
	for (size_t i = 0; i < diff->stack_count && !writer->failed; i++) {
		fputs(i ? ",\n" : "\n", writer->stream);
		put_value(writer, stack_value(&diff->stacks[i]));
	}
	fputs("]\n}", writer->stream);
}

struct mw_error *mw_json_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_diff_output_options *options, FILE *stream)
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

// SPDX-License-Identifier: MIT
/*
 * json_heap_diff.c: two looks at heaps compared, as JSON, schema "memwatch.heap-diff/1".
 *
 *   schema     "memwatch.heap-diff/1"
 *   process    "same"; "other": of another pid, or of one that another process has been given; "other boot"; null: of one
 *              pid, and there is no telling
 *   executables "same", "moved" (one build at different paths), "rebuilt", "other" (different paths, builds not known)
 *   old, new   {file, target, started, method, rss, swapped}, as in schema memwatch.heap/1
 *   seconds    from one look to the other
 *   by         [texts]: what blocks are grouped by in both looks; groups have no more
 *   rss, swapped  N   N = {old, new, change, per_day}: bytes; per_day is null where the process is not the same
 *   leaks      {definite: B, indirect: B, possible: B, reachable: B}
 *              B = {old: A, new: A, change: A, per_day: A|null}   A = {count, bytes}
 *   account    [{name, detail, old, new, change, per_day, swapped: {old, new}}]: changes sum to rss.change
 *   groups     [{class, size, allocator, arena, old, new, change, per_day: as in B, lost: {old: A, new: A, change: A},
 *              holder: [texts, root first]|null}]: lost are definitely and indirectly lost ones
 *   holders    [{path: [texts, root first], old, new, change, per_day: as in B}]|null: what changed of what they retain;
 *              null where a look has none
 *
 * Each list begins with the largest growth of bytes, and ends with the largest decrease.
 */
#include "output/json.h"

#include <math.h>

static json_t *daily_value(const struct mw_heap_diff *diff, uint64_t from, uint64_t to)
{
	bool known;
	double daily = mw_heap_diff_daily(diff, from, to, &known);

	return known && fabs(daily) < 9e18 ? json_integer((json_int_t)llround(daily)) : json_null();
}

/* Members of a number of bytes. */
#define NUMBERS(diff, held)                                                                                            \
	MW_KEY("old", (held)[MW_DIFF_OLD]), MW_KEY("new", (held)[MW_DIFF_NEW]),                                        \
		MW_KEY("change", mw_json_change((held)[MW_DIFF_OLD], (held)[MW_DIFF_NEW])),                            \
		MW_KEY("per_day", daily_value(diff, (held)[MW_DIFF_OLD], (held)[MW_DIFF_NEW]))

static json_t *change_value(const struct mw_amount held[MW_DIFF_SIDES])
{
	return MW_OBJECT(MW_KEY("count", mw_json_change(held[MW_DIFF_OLD].count, held[MW_DIFF_NEW].count)),
			 MW_KEY("bytes", mw_json_change(held[MW_DIFF_OLD].bytes, held[MW_DIFF_NEW].bytes)));
}

static json_t *rate_value(const struct mw_heap_diff *diff, const struct mw_amount held[MW_DIFF_SIDES])
{
	if (diff->process != MW_HEAP_DIFF_ONE)
		return json_null();
	return MW_OBJECT(MW_KEY("count", daily_value(diff, held[MW_DIFF_OLD].count, held[MW_DIFF_NEW].count)),
			 MW_KEY("bytes", daily_value(diff, held[MW_DIFF_OLD].bytes, held[MW_DIFF_NEW].bytes)));
}

/* Members of an amount. */
#define AMOUNTS(diff, held)                                                                                            \
	MW_KEY("old", (held)[MW_DIFF_OLD]), MW_KEY("new", (held)[MW_DIFF_NEW]), MW_KEY("change", change_value(held)),  \
		MW_KEY("per_day", rate_value(diff, held))

static json_t *look_value(const struct mw_heap_diff *diff, enum mw_diff_side side)
{
	const struct mw_heap_report *look = diff->looks[side];

	return MW_OBJECT(MW_KEY("file", diff->files[side]), MW_KEY("target", mw_json_heap_target(look)),
			 MW_KEY("started", mw_json_date(look->started_realtime_ns)),
			 MW_KEY("method", look->forked ? "fork" : "live"), MW_OF(look, rss), MW_OF(look, swapped));
}

static json_t *leaks_value(const struct mw_heap_diff *diff)
{
	static const char *const names[MW_REACH_COUNT] = {"definite", "indirect", "possible", "reachable"};
	json_t *object = json_object();

	for (unsigned i = 0; object && i < MW_REACH_COUNT; i++) {
		const struct mw_amount held[MW_DIFF_SIDES] = {diff->looks[MW_DIFF_OLD]->leaks[i],
							      diff->looks[MW_DIFF_NEW]->leaks[i]};

		mw_json_set(&object, names[i], MW_OBJECT(AMOUNTS(diff, held)));
	}
	return object;
}

static json_t *line_value(const struct mw_heap_diff *diff, const struct mw_heap_diff_line *line)
{
	return MW_OBJECT(MW_OF(line, name), MW_OF(line, detail), NUMBERS(diff, line->held),
			 MW_KEY("swapped", MW_OBJECT(MW_KEY("old", line->swapped[MW_DIFF_OLD]),
						     MW_KEY("new", line->swapped[MW_DIFF_NEW]))));
}

static json_t *group_value(const struct mw_heap_diff *diff, const struct mw_heap_diff_group *group)
{
	return MW_OBJECT(MW_KEY("class", group->class_name), MW_OF(group, size), MW_OF(group, allocator),
			 MW_OF(group, arena), AMOUNTS(diff, group->held),
			 MW_KEY("lost", MW_OBJECT(MW_KEY("old", group->lost[MW_DIFF_OLD]),
						  MW_KEY("new", group->lost[MW_DIFF_NEW]),
						  MW_KEY("change", change_value(group->lost)))),
			 MW_KEY("holder",
				group->holder_count ? mw_json_texts(group->holder, group->holder_count) : json_null()));
}

static json_t *holder_value(const struct mw_heap_diff *diff, const struct mw_heap_diff_holder *holder)
{
	return MW_OBJECT(MW_KEY("path", mw_json_texts(holder->path, holder->depth)), AMOUNTS(diff, holder->retained));
}

struct mw_error *mw_json_heap_diff_write(const struct mw_heap_diff *diff, const struct mw_output_options *options,
					 FILE *stream)
{
	static const char *const processes[] = {
		[MW_HEAP_DIFF_ONE] = "same",
		[MW_HEAP_DIFF_OTHER] = "other",
		[MW_HEAP_DIFF_BOOT] = "other boot",
		[MW_HEAP_DIFF_UNKNOWN] = NULL,
	};
	const struct mw_heap_report *old = diff->looks[MW_DIFF_OLD], *new = diff->looks[MW_DIFF_NEW];
	const uint64_t rss[] = {old->rss, new->rss}, swapped[] = {old->swapped, new->swapped};
	bool held = old->holder_count && new->holder_count;

	(void)options; /* all of it, always */
	if (!mw_json_put(
		    stream,
		    MW_OBJECT(MW_KEY("schema", "memwatch.heap-diff/1"), MW_KEY("process", processes[diff->process]),
			      MW_KEY("executables", mw_json_programs(diff->program)),
			      MW_KEY("old", look_value(diff, MW_DIFF_OLD)),
			      MW_KEY("new", look_value(diff, MW_DIFF_NEW)), MW_OF(diff, seconds),
			      MW_KEY("by", mw_json_heap_by(diff->by)), MW_KEY("rss", MW_OBJECT(NUMBERS(diff, rss))),
			      MW_KEY("swapped", MW_OBJECT(NUMBERS(diff, swapped))), MW_KEY("leaks", leaks_value(diff)),
			      MW_KEY("account", MW_ARRAY(i, diff->line_count, line_value(diff, &diff->lines[i]))),
			      MW_KEY("groups", MW_ARRAY(i, diff->group_count, group_value(diff, &diff->groups[i]))),
			      MW_KEY("holders",
				     held ? MW_ARRAY(i, diff->holder_count, holder_value(diff, &diff->holders[i]))
					  : json_null()))))
		return mw_error_nomem();
	fputc('\n', stream);
	return NULL;
}

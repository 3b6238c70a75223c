/* SPDX-License-Identifier: MIT */
/* json.h: values of the JSON report, each a new jansson reference or NULL without memory. */
#ifndef MW_OUTPUT_JSON_H
#define MW_OUTPUT_JSON_H

#include <memwatch/output.h>

#include <jansson.h>

/* Target's text: what is no UTF-8 in it becomes U+FFFD; NULL becomes null. */
json_t *mw_json_text(const char *text);
/* A number, null for MW_SIZE_UNKNOWN and for what JSON readers with signed numbers can't hold. */
json_t *mw_json_number(uint64_t number);
json_t *mw_json_amount(struct mw_amount amount);
/* An amount that is estimated where `sampled` is true, with its standard error; else as above. */
json_t *mw_json_estimate(bool sampled, struct mw_amount amount, struct mw_spread spread);
json_t *mw_json_error(struct mw_spread spread);
/* RFC 3339 in UTC with microseconds; null for 0 and less. */
json_t *mw_json_date(int64_t realtime_ns);
json_t *mw_json_frames(const struct mw_report_frame *frames, size_t count);
json_t *mw_json_texts(const char *const *texts, size_t count);
/* What became of a number, with its sign; null where that is no number of 64 bits. */
json_t *mw_json_change(uint64_t from, uint64_t to);
/* {definite, indirect, possible, reachable} */
json_t *mw_json_leaks(const struct mw_amount amounts[MW_REACH_COUNT]);
/* Of looks at both ends of a window. */
json_t *mw_json_heap_change(const struct mw_report_change *change);
json_t *mw_json_space(const struct mw_report_space *space);
json_t *mw_json_rss(const struct mw_report_rss *rss);

/* Add a value, which is given away, to an array or object; that is dropped and becomes NULL without memory. */
void mw_json_append(json_t **array, json_t *value);
void mw_json_set(json_t **object, const char *key, json_t *value);

/* --- whole objects and arrays: MW_OBJECT(MW_OF(hook, module), MW_KEY("why", hook->refused)) ------- */

struct mw_json_member {
	const char *key;
	json_t *value;
};

json_t *mw_json_object(const struct mw_json_member *members);
static inline json_t *mw_json_flag(bool flag)
{
	return json_boolean(flag);
}
static inline json_t *mw_json_given(json_t *value)
{
	return value;
}

/* A value of its type. */
#ifdef __cppcheck__ /* which understands neither _Generic nor members in braces */
#define MW_VALUE(value) mw_json_given(value)
#define MW_OBJECT(...)  json_object()
#else
#define MW_OBJECT(...) mw_json_object((const struct mw_json_member[]){__VA_ARGS__, {NULL, NULL}})
#define MW_VALUE(value)                                                                                                \
	_Generic((value),                                                                                              \
		json_t *: mw_json_given,                                                                               \
		bool: mw_json_flag,                                                                                    \
		int: json_integer,                                                                                     \
		uint32_t: mw_json_number,                                                                              \
		uint64_t: mw_json_number,                                                                              \
		double: json_real,                                                                                     \
		char *: mw_json_text,                                                                                  \
		const char *: mw_json_text,                                                                            \
		struct mw_amount: mw_json_amount)(value)
#endif

/* Members: one that is called as in its struct; any. */
#define MW_OF(from, name)                                                                                              \
	{                                                                                                              \
#name, MW_VALUE((from)->name)                                                                          \
	}
#define MW_KEY(key, value)                                                                                             \
	{                                                                                                              \
		key, MW_VALUE(value)                                                                                   \
	}

/* Of `count` values, each as `value` makes it of its number `i`. */
#define MW_ARRAY(i, count, value)                                                                                      \
	({                                                                                                             \
		json_t *array_ = json_array();                                                                         \
                                                                                                                       \
		for (size_t i = 0; array_ && i < (count); i++)                                                         \
			mw_json_append(&array_, value);                                                                \
		array_;                                                                                                \
	})

/* Write a value and drop it. False without memory, also where it is NULL; write errors stay in the stream. */
bool mw_json_put(FILE *stream, json_t *value);

/* The report, but that each has its frames once, as `frames`, and those of its stacks are indexes into that. */
struct mw_error *mw_json_write_shared(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;

/* Schema "memwatch.diff/1": one object, or "processes". */
struct mw_error *mw_json_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;

/* What a look at a heap is of, and by what (enum mw_heap_by) its blocks are grouped. */
json_t *mw_json_heap_target(const struct mw_heap_report *heap);
json_t *mw_json_heap_by(unsigned by);
/* "same", "moved", "rebuilt" or "other": of two sides' executables. */
json_t *mw_json_programs(enum mw_diff_program program);
/* Schema "memwatch.heap/1". */
struct mw_error *mw_json_heap_write(const struct mw_heap_report *heap, const struct mw_output_options *options,
				    FILE *stream) MW_MUST_CHECK;

/* Schema "memwatch.heap-diff/1". */
struct mw_error *mw_json_heap_diff_write(const struct mw_heap_diff *diff, const struct mw_output_options *options,
					 FILE *stream) MW_MUST_CHECK;

/* Write what there is of the views, each as ,\n"KEY":VALUE. False without memory; write errors stay in the stream. */
bool mw_json_views(FILE *stream, const struct mw_views *views);

#endif

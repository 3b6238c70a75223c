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
json_t *mw_json_amount(const struct mw_amount *amount);
/* RFC 3339 in UTC with microseconds; null for 0 and less. */
json_t *mw_json_date(int64_t realtime_ns);
json_t *mw_json_frames(const struct mw_report_frame *frames, size_t count);
json_t *mw_json_space(const struct mw_report_space *space);

/* Add a value, which is given away, to an array or object; that is dropped and becomes NULL without memory. */
void mw_json_append(json_t **array, json_t *value);
void mw_json_set(json_t **object, const char *key, json_t *value);
/* The first object with the second one's members; both are given away. */
json_t *mw_json_join(json_t *first, json_t *second);
/* Write a value and drop it. False without memory, also where it is NULL; write errors stay in the stream. */
bool mw_json_put(FILE *stream, json_t *value);

struct mw_error *mw_json_write(const struct mw_report *const *reports, size_t count,
			       const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;
/* The same, but that each report has its frames once, as `frames`, and those of its stacks are indexes into that. */
struct mw_error *mw_json_write_shared(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;
/* Does a file that begins so hold a report or a comparison? Blanks between its words don't matter. */
bool mw_json_is_own(const char *head, size_t size);

/* Write what there is of the views, each as ,\n"KEY":VALUE. False without memory; write errors stay in the stream. */
bool mw_json_views(FILE *stream, const struct mw_views *views);

#endif

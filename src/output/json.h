/* SPDX-License-Identifier: MIT */
/* json.h: values of the JSON report, each a new jansson reference or NULL without memory. */
#ifndef MW_OUTPUT_JSON_H
#define MW_OUTPUT_JSON_H

#include <memwatch/output.h>

#include <jansson.h>

struct mw_json_frames;

/* Target's text: what is no UTF-8 in it becomes U+FFFD; NULL becomes null. */
json_t *mw_json_text(const char *text);
/* A number, null for MW_SIZE_UNKNOWN and for what JSON readers with signed numbers can't hold. */
json_t *mw_json_number(uint64_t number);
json_t *mw_json_amount(const struct mw_amount *amount);
json_t *mw_json_peak(const struct mw_report_peak *peak);
const char *mw_json_kind(enum mw_kind kind);
/* RFC 3339 in UTC with microseconds; null for 0 and less. */
json_t *mw_json_date(int64_t realtime_ns);
json_t *mw_json_frame(const struct mw_report_frame *frame);
json_t *mw_json_frames(const struct mw_report_frame *frames, size_t count);
/* `shared` NULL, or what numbers stand in place of frames. */
json_t *mw_json_stack(const struct mw_report_stack *stack, const struct mw_json_frames *shared);
json_t *mw_json_space(const struct mw_report_space *space);

struct mw_error *mw_json_write(const struct mw_report *const *reports, size_t count,
			       const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;
/* The same, but that each report has its frames once, as `frames`, and those of its stacks are indexes into that. */
struct mw_error *mw_json_write_shared(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream) MW_MUST_CHECK;

#endif

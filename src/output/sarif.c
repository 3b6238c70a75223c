// SPDX-License-Identifier: MIT
/*
 * sarif.c: suspects that leak or grow as SARIF 2.1.0, for code scanning and editors.
 *
 * All processes are one run, as readers take one of each tool. Each result is built, written and dropped alone.
 */
#include "output/findings.h"
#include "output/json.h"

#include "base/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                                           \
	"{\"$schema\":\"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"                           \
	"sarif-schema-2.1.0.json\",\n\"version\":\"2.1.0\",\n\"runs\":[{\n\"tool\":{\"driver\":{\"name\":"             \
	"\"memwatch\","

#define ROOT        "%SRCROOT%" /* what readers take for the top of the sources */
#define STACKS_MOST 10          /* of a result */

struct writer {
	FILE *stream;
	const struct mw_output_options *options;
	bool failed; /* without memory */
	bool comma;
};

/* --- texts ----------------------------------------------------------------------------------------------------------- */

/*
 * {"text": …} of what is in a line, which is emptied. A brace is a placeholder's unless it is doubled, and "](" a link's
 * unless escaped; names of C++ have both.
 */
static json_t *message_of(struct mw_line *line)
{
	struct mw_line text = {0};
	json_t *value = NULL;

	for (const char *at = line->data ? line->data : ""; *at; at++)
		mw_line_printf(&text, "%s%c",
			       *at == '{'                   ? "{"
			       : *at == '}'                 ? "}"
			       : *at == ']' && at[1] == '(' ? "\\"
							    : "",
			       *at);
	if (!text.failed && !line->failed)
		value = MW_OBJECT(MW_KEY("text", text.data ? mw_json_text(text.data) : json_string("")));
	mw_line_deinit(&text);
	mw_line_cut(line, 0);
	return value;
}

static json_t *message(const char *text)
{
	return MW_OBJECT(MW_KEY("text", mw_json_text(text)));
}

/* A path as part of a URI. Bytes that are no ASCII are of a path, too. */
static void add_escaped(struct mw_line *line, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";

	for (; *path; path++)
		mw_line_printf(line, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
}

/* --- places ---------------------------------------------------------------------------------------------------------- */

/* What of a path lies below the root; NULL: it does not. */
static const char *below(const char *root, const char *path)
{
	size_t length = root ? strlen(root) : 0;

	while (length && root[length - 1] == '/')
		length--;
	if (!root || strncmp(path, root, length) != 0 || path[length] != '/' || !path[length + 1])
		return NULL;
	return path + length + 1;
}

/* Of a source file. A relative name is one that the compiler was given, mostly in a directory below the root: it is taken as one
 * from there, but where it is not the program's (`foreign`). */
static json_t *artifact(const struct mw_output_options *options, const char *path, bool foreign)
{
	const char *relative = path[0] != '/' ? path : below(options->root, path);
	struct mw_line uri = {0};
	json_t *value = NULL;

	while (relative && (strncmp(relative, "./", 2) == 0 || strncmp(relative, "../", 3) == 0))
		relative = strchr(relative, '/') + 1;
	mw_line_printf(&uri, "%s", relative ? "" : "file://");
	add_escaped(&uri, relative ? relative : path);
	if (!uri.failed)
		value = MW_OBJECT(MW_KEY("uri", mw_json_text(uri.data)));
	if (relative && !foreign)
		mw_json_set(&value, "uriBaseId", json_string(ROOT));
	mw_line_deinit(&uri);
	return value;
}

static bool has_source(const struct mw_report_frame *frame)
{
	return frame && frame->file && frame->file[0] && frame->line;
}

static bool is_foreign(const struct mw_report_frame *frame)
{
	return !frame->module || strncmp(frame->module, "/usr/lib", 8) == 0 || strncmp(frame->module, "/lib", 4) == 0;
}

/* Set where it is in the sources; else the module's file; else nothing. */
static void set_physical(json_t **location, const struct mw_output_options *options,
			 const struct mw_report_frame *frame)
{
	const char *file = has_source(frame) ? frame->file : frame->module;
	json_t *value;

	if (!file || (file == frame->module && file[0] != '/'))
		return;
	value = MW_OBJECT(MW_KEY("artifactLocation", artifact(options, file, is_foreign(frame))));
	if (file == frame->file)
		mw_json_set(&value, "region", MW_OBJECT(MW_KEY("startLine", frame->line)));
	mw_json_set(location, "physicalLocation", value);
}

/* A frame, or where a result is: `text` NULL: what the frame is called. */
static json_t *location(const struct mw_output_options *options, const struct mw_report_frame *frame, const char *text)
{
	struct mw_line line = {0};
	json_t *value = json_object();

	set_physical(&value, options, frame);
	if (frame->function)
		mw_json_set(&value, "logicalLocations",
			    MW_ARRAY(i, 1,
				     MW_OBJECT(MW_KEY("fullyQualifiedName", frame->function),
					       MW_KEY("kind", json_string("function")))));
	if (text) {
		mw_json_set(&value, "message", message(text));
		return value;
	}
	mw_text_module(&line, frame);
	if (frame->function)
		mw_text_function(&line, frame->function);
	if (mw_text_has_offset(frame))
		mw_line_printf(&line, "+0x%" PRIx64, frame->offset);
	mw_json_set(&value, "message", message_of(&line));
	mw_line_deinit(&line);
	return value;
}

/* The line that the suspect is charged to, or the first one further out that has a line; else the frame itself. */
static const struct mw_report_frame *place_of(const struct mw_report *report, const struct mw_report_suspect *suspect)
{
	const struct mw_report_stack *stack = suspect->stack_count ? &report->stacks[suspect->stacks[0]] : NULL;

	if (has_source(suspect->frame) || !stack)
		return suspect->frame;
	for (size_t i = stack->charged; i < stack->frame_count; i++)
		if (has_source(&stack->frames[i]) && !stack->frames[i].interprets)
			return &stack->frames[i];
	return suspect->frame;
}

/* --- stacks ---------------------------------------------------------------------------------------------------------- */

static json_t *frame_value(const struct mw_output_options *options, const struct mw_report_frame *frame)
{
	json_t *value = MW_OBJECT(MW_KEY("location", location(options, frame, NULL)));

	if (frame->module)
		mw_json_set(&value, "module", mw_json_text(frame->module));
	return value;
}

static json_t *stack_value(const struct mw_output_options *options, const struct mw_report_stack *stack)
{
	struct mw_line line = {0};
	json_t *value;

	mw_line_printf(&line, "by ");
	mw_line_name(&line, stack->api);
	mw_line_printf(&line, ", stack %s: %s in %s block%s not freed", stack->id,
		       mw_show_size(stack->impacting.bytes).text, mw_show_count(stack->impacting.count).text,
		       stack->impacting.count == 1 ? "" : "s");
	value = MW_OBJECT(MW_KEY("message", message_of(&line)),
			  MW_KEY("frames", MW_ARRAY(i, stack->frame_count, frame_value(options, &stack->frames[i]))));
	mw_line_deinit(&line);
	return value;
}

/* From the thread's start to the allocation, by the lines that are known; NULL: fewer than two are. */
static json_t *flow_value(const struct mw_output_options *options, const struct mw_report_stack *stack, bool *any)
{
	json_t *locations = json_array();
	size_t count = 0;

	for (size_t i = stack->frame_count; i-- > 0;) {
		if (!has_source(&stack->frames[i]))
			continue;
		mw_json_append(&locations, MW_OBJECT(MW_KEY("location", location(options, &stack->frames[i], NULL)),
						     MW_KEY("nestingLevel",
							    json_integer((json_int_t)(stack->frame_count - 1 - i)))));
		count++;
	}
	*any = count > 1;
	return MW_OBJECT(MW_KEY("threadFlows", MW_ARRAY(i, 1, MW_OBJECT(MW_KEY("locations", locations)))));
}

static void set_stacks(json_t **result, const struct mw_output_options *options, const struct mw_report *report,
		       const struct mw_report_suspect *suspect)
{
	size_t count = suspect->stack_count < STACKS_MOST ? suspect->stack_count : STACKS_MOST;
	json_t *stacks = json_array(), *flows = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct mw_report_stack *stack = &report->stacks[suspect->stacks[i]];
		json_t *flow;
		bool any;

		mw_json_append(&stacks, stack_value(options, stack));
		flow = flow_value(options, stack, &any);
		if (any)
			mw_json_append(&flows, flow);
		else
			json_decref(flow);
	}
	mw_json_set(result, "stacks", stacks);
	if (json_array_size(flows))
		mw_json_set(result, "codeFlows", flows);
	else
		json_decref(flows);
}

/* --- results --------------------------------------------------------------------------------------------------------- */

static uint64_t add_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = mw_hash_add(hash, (unsigned char)*text);
	return mw_hash_add(hash, 0);
}

/* The same for all builds in which the same functions call each other, wherever these lie. */
static json_t *functions_value(const struct mw_report_stack *stack)
{
	char digits[17];
	uint64_t hash = add_text(1, stack->api);

	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		hash = add_text(hash, frame->module ? mw_text_base_name(frame->module) : NULL);
		hash = add_text(hash, frame->function);
	}
	(void)snprintf(digits, sizeof(digits), "%016" PRIx64, mw_hash_mix(hash));
	return json_string(digits);
}

static json_t *properties(const struct mw_report *report, const struct mw_report_suspect *suspect)
{
	json_t *value = MW_OBJECT(
		MW_KEY("verdict", mw_growth_name(suspect->verdict)), MW_OF(suspect, certain), MW_OF(suspect, bytes),
		MW_OF(suspect, blocks), MW_OF(suspect, freed), MW_KEY("bytesPerHour", suspect->bytes_per_hour),
		MW_KEY("lost", suspect->lost), MW_KEY("pid", report->target.pid),
		MW_KEY("process", report->target.comm),
		MW_KEY("stackIds", MW_ARRAY(i, suspect->stack_count, MW_VALUE(report->stacks[suspect->stacks[i]].id))));

	if (suspect->spreads.impacting.blocks)
		mw_json_set(&value, "error",
			    MW_OBJECT(MW_KEY("bytes", sqrt(suspect->spreads.impacting.bytes)),
				      MW_KEY("blocks", sqrt(suspect->spreads.impacting.count))));
	return value;
}

static json_t *result_message(const struct mw_report *report, const struct mw_report_suspect *suspect)
{
	struct mw_text text = {.report = report};
	json_t *value;

	mw_line_name(&text.line, report->target.comm);
	mw_line_printf(&text.line, ": ");
	mw_text_place(&text, suspect);
	mw_line_printf(&text.line, ": %s, ", mw_growth_name(suspect->verdict));
	mw_finding_amounts(&text, suspect);
	mw_line_printf(&text.line, ". ");
	mw_line_name(&text.line, suspect->sentence);
	value = message_of(&text.line);
	mw_line_deinit(&text.line);
	return value;
}

static json_t *result_value(const struct mw_output_options *options, const struct mw_report *report,
			    const struct mw_report_suspect *suspect)
{
	const struct mw_report_frame *frame = place_of(report, suspect);
	bool leaks = mw_finding_leaks(suspect);
	json_t *value =
		MW_OBJECT(MW_KEY("ruleId", leaks ? "leak" : "growth"), MW_KEY("ruleIndex", json_integer(!leaks)),
			  MW_KEY("level", mw_finding_fails(&options->fail_on, suspect) ? "error" : "warning"),
			  MW_KEY("message", result_message(report, suspect)));

	if (frame)
		mw_json_set(&value, "locations", MW_ARRAY(i, 1, location(options, frame, "where it is allocated")));
	if (suspect->stack_count) {
		const struct mw_report_stack *first = &report->stacks[suspect->stacks[0]];

		mw_json_set(&value, "fingerprints", MW_OBJECT(MW_KEY("memwatchStack/v1", MW_VALUE(first->id))));
		mw_json_set(&value, "partialFingerprints",
			    MW_OBJECT(MW_KEY("memwatchFunctions/v1", functions_value(first))));
		set_stacks(&value, options, report, suspect);
	}
	mw_json_set(&value, "properties", properties(report, suspect));
	return value;
}

/* That the process grows, as --fail-on has it, is no line's. */
static json_t *process_value(const struct mw_output_options *options, const struct mw_report *report)
{
	const struct mw_report_frame program = {.module = report->target.exe};
	struct mw_line line = {0};
	json_t *value = NULL;

	mw_line_name(&line, report->target.comm);
	mw_line_printf(&line, ": ");
	if (mw_finding_process(&options->fail_on, report, &line))
		value = MW_OBJECT(MW_KEY("ruleId", json_string("growth")), MW_KEY("ruleIndex", json_integer(1)),
				  MW_KEY("level", json_string("error")), MW_KEY("message", message_of(&line)),
				  MW_KEY("locations", MW_ARRAY(i, 1, location(options, &program, "the program"))),
				  MW_KEY("properties", MW_OBJECT(MW_KEY("pid", report->target.pid),
								 MW_KEY("process", report->target.comm))));
	else
		value = json_null();
	mw_line_deinit(&line);
	return value;
}

/* --- the run --------------------------------------------------------------------------------------------------------- */

static void put_value(struct writer *writer, json_t *value)
{
	writer->failed |= !mw_json_put(writer->stream, value);
}

static json_t *rule(const char *id, const char *name, const char *brief, const char *full)
{
	return MW_OBJECT(MW_KEY("id", id), MW_KEY("name", name), MW_KEY("shortDescription", message(brief)),
			 MW_KEY("fullDescription", message(full)),
			 MW_KEY("defaultConfiguration", MW_OBJECT(MW_KEY("level", json_string("error")))));
}

static json_t *rules(void)
{
	json_t *value = json_array();

	mw_json_append(
		&value,
		rule("leak", "MemoryLeak", "Memory is allocated over and over and not freed",
		     "What this line allocates is not freed and grows for as long as the process was watched, or "
		     "no pointer to it is left."));
	mw_json_append(&value, rule("growth", "MemoryGrowth", "A container or a runtime's heap grows",
				    "The storage of a container, or the heap of a runtime, that this line allocates "
				    "grows for as long as the process was watched."));
	return value;
}

static json_t *notifications(const struct mw_report *const *reports, size_t count, bool *complete)
{
	json_t *value = json_array();

	*complete = true;
	for (size_t i = 0; i < count; i++) {
		struct mw_line line = {0};

		mw_line_name(&line, reports[i]->target.comm);
		mw_line_printf(&line, " (pid %d): ", reports[i]->target.pid);
		if (mw_finding_gaps(reports[i], &line)) {
			*complete = false;
			mw_json_append(&value, MW_OBJECT(MW_KEY("level", json_string("error")),
							 MW_KEY("message", message_of(&line))));
		}
		mw_line_deinit(&line);
	}
	return value;
}

static void put_head(struct writer *writer, const struct mw_report *const *reports, size_t count)
{
	json_t *invocation, *notices;
	bool complete;

	fprintf(writer->stream, HEAD "\"version\":\"" MEMWATCH_VERSION "\",\n\"rules\":");
	put_value(writer, rules());
	fputs("}},\n\"columnKind\":\"utf16CodeUnits\",\n", writer->stream);
	if (writer->options->root) {
		struct mw_line uri = {0};

		mw_line_printf(&uri, "file://");
		add_escaped(&uri, writer->options->root);
		mw_line_printf(&uri, "%s", uri.data && uri.data[uri.length - 1] == '/' ? "" : "/");
		fputs("\"originalUriBaseIds\":", writer->stream);
		put_value(writer, uri.failed ? NULL : MW_OBJECT(MW_KEY(ROOT, MW_OBJECT(MW_KEY("uri", uri.data)))));
		fputs(",\n", writer->stream);
		mw_line_deinit(&uri);
	}
	notices = notifications(reports, count, &complete);
	invocation = MW_OBJECT(MW_KEY("executionSuccessful", complete), MW_KEY("toolExecutionNotifications", notices));
	if (count && reports[0]->window.started_realtime_ns > 0)
		mw_json_set(&invocation, "startTimeUtc", mw_json_date(reports[0]->window.started_realtime_ns));
	fputs("\"invocations\":[", writer->stream);
	put_value(writer, invocation);
	fputs("],\n\"results\":[", writer->stream);
}

/* JSON's null: none. */
static void put_result(struct writer *writer, json_t *result)
{
	if (!json_is_null(result)) {
		fputs(writer->comma ? ",\n" : "\n", writer->stream);
		writer->comma = true;
		put_value(writer, result);
	}
}

static struct mw_error *write_reports(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream)
{
	struct writer writer = {.stream = stream, .options = options};

	put_head(&writer, reports, count);
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < reports[i]->suspect_count; j++) {
			const struct mw_report_suspect *suspect = &reports[i]->suspects[j];

			if (suspect->lost.count || suspect->verdict >= MW_GROWTH_STEADY)
				put_result(&writer, result_value(options, reports[i], suspect));
		}
		put_result(&writer, process_value(options, reports[i]));
	}
	fputs("]}]}\n", stream);
	return writer.failed ? mw_error_nomem() : NULL;
}

static bool is_own(const char *head, size_t size)
{
	return size >= sizeof(HEAD) - 1 && memcmp(head, HEAD, sizeof(HEAD) - 1) == 0;
}

const struct mw_output mw_output_sarif = {
	.name = "sarif",
	.what = "a SARIF report",
	.is_own = is_own,
	.of_reports =
		{"suspects for CI, as tests and as SARIF\n",
		 "Write the suspects that leak or grow as SARIF 2.1.0, for code scanning and editors: the line, the "
		 "stacks, and fingerprints by which they are known in the next run. Files below the current "
		 "directory are named relative to it. '-' is standard output."},
	.write = write_reports,
};

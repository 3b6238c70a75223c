// SPDX-License-Identifier: MIT
/*
 * junit.c: suspects as the results of tests, in the XML that JUnit's runners write: a suite a process, a case a suspect.
 *
 * What is written is what junit-10.xsd of Jenkins' xUnit plugin takes, which other readers take as well. Names of cases have no
 * amounts in them, nor ids of processes: readers know a case by its name from one run to the next.
 */
#include "output/findings.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memwatch\""

struct writer {
	FILE *stream;
	const struct mw_output_options *options;
	const struct mw_report *report;
	struct mw_text text;  /* its line is scratch */
	struct mw_line suite; /* the process */
	bool failed;          /* without memory */
};

struct counts {
	size_t tests, failures, errors, skipped;
};

/* May it stand in a document of XML 1.0? */
static bool is_character(uint32_t character)
{
	return character == '\t' || character == '\n' || (character >= 0x20 && character < 0xd800) ||
	       (character >= 0xe000 && character < 0xfffe) || character >= 0x10000;
}

/* Text, between tags or quotes. A line break in quotes would be read as a blank. */
static void put_text(FILE *stream, const char *text)
{
	uint32_t character;

	for (size_t taken; (taken = mw_utf8_decode(text, &character)) != 0; text += taken) {
		char encoded[4];
		size_t size = mw_utf8_encode(is_character(character) ? character : MW_UTF8_REPLACEMENT, encoded);

		switch (character) {
		case '<':
			fputs("&lt;", stream);
			break;
		case '>': /* ]]> too */
			fputs("&gt;", stream);
			break;
		case '&':
			fputs("&amp;", stream);
			break;
		case '"':
			fputs("&quot;", stream);
			break;
		default:
			fwrite(encoded, 1, size, stream);
		}
	}
}

static void put_attribute(FILE *stream, const char *name, const char *value)
{
	fprintf(stream, " %s=\"", name);
	put_text(stream, value ? value : "");
	fputc('"', stream);
}

/* What is in the scratch line, which is emptied. */
static void put_line(struct writer *writer, const char *name)
{
	put_attribute(writer->stream, name, writer->text.line.data);
	mw_line_cut(&writer->text.line, 0);
}

/* --- cases ----------------------------------------------------------------------------------------------------------- */

/* Its name is in the scratch line. */
static void begin_case(struct writer *writer)
{
	fputs("<testcase classname=\"memwatch.", writer->stream);
	put_text(writer->stream, writer->suite.data);
	fputc('"', writer->stream);
	put_line(writer, "name");
	fputs(" time=\"0\">", writer->stream);
}

static void end_case(struct writer *writer)
{
	fputs("</testcase>\n", writer->stream);
}

/* As the text report has it, with its stack. */
static void put_suspect(struct writer *writer, size_t number)
{
	MW_FREE char *body = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&body, &size);

	if (!stream) {
		writer->failed = true;
		return;
	}
	writer->text.stream = stream;
	mw_text_suspect(&writer->text, number + 1, &writer->report->suspects[number]);
	if (fclose(stream) == 0)
		put_text(writer->stream, body);
	else
		writer->failed = true;
}

/* Is there one before it of the same line, of which the verdict is another? */
static bool is_repeated(const struct mw_report *report, size_t number)
{
	const struct mw_report_frame *frame = report->suspects[number].frame;

	for (size_t i = 0; i < number; i++) {
		const struct mw_report_frame *other = report->suspects[i].frame;

		if (frame == other ||
		    (frame && other && frame->function == other->function && frame->file == other->file &&
		     frame->line == other->line && frame->module == other->module))
			return true;
	}
	return false;
}

static void put_suspect_case(struct writer *writer, size_t number, struct counts *counts)
{
	const struct mw_report_suspect *suspect = &writer->report->suspects[number];
	const char *outcome = NULL;

	mw_text_place(&writer->text, suspect);
	if (is_repeated(writer->report, number))
		mw_line_printf(&writer->text.line, ", stack %s", writer->report->stacks[suspect->stacks[0]].id);
	begin_case(writer);
	counts->tests++;
	if (mw_finding_fails(&writer->options->fail_on, suspect)) {
		outcome = "failure";
		counts->failures++;
	} else if (suspect->verdict == MW_GROWTH_TOO_SHORT) {
		outcome = "skipped";
		counts->skipped++;
	}
	if (outcome) {
		fprintf(writer->stream, "<%s", outcome);
		if (strcmp(outcome, "failure") == 0)
			put_attribute(writer->stream, "type", mw_finding_leaks(suspect) ? "leak" : "growth");
		mw_line_printf(&writer->text.line, "%s: ", mw_growth_name(suspect->verdict));
		mw_finding_amounts(&writer->text, suspect);
		put_line(writer, "message");
		fputc('>', writer->stream);
	} else {
		fputs("<system-out>", writer->stream);
	}
	put_suspect(writer, number);
	fprintf(writer->stream, "</%s>", outcome ? outcome : "system-out");
	end_case(writer);
}

/* A case of something but a suspect. `reason` is in the scratch line where there is one. */
static void put_check(struct writer *writer, const char *name, const char *outcome, struct mw_line *reason)
{
	mw_line_printf(&writer->text.line, "%s", name);
	begin_case(writer);
	if (outcome) {
		fprintf(writer->stream, "<%s", outcome);
		put_attribute(writer->stream, "message", reason->data);
		fputs("/>", writer->stream);
	}
	end_case(writer);
}

static void put_checks(struct writer *writer, struct counts *counts)
{
	const struct mw_fail_on *fail_on = &writer->options->fail_on;
	struct mw_line reason = {0};

	counts->tests++;
	if (mw_finding_gaps(writer->report, &reason)) {
		counts->errors++;
		put_check(writer, "the window is complete", "error", &reason);
	} else {
		put_check(writer, "the window is complete", NULL, NULL);
	}
	mw_line_cut(&reason, 0);
	if (fail_on->growth && fail_on->bytes_per_hour) {
		bool fails = mw_finding_process(fail_on, writer->report, &reason);

		counts->tests++;
		counts->failures += fails;
		put_check(writer, "the process as a whole", fails ? "failure" : NULL, &reason);
	}
	writer->failed |= reason.failed;
	mw_line_deinit(&reason);
}

/* --- suites ---------------------------------------------------------------------------------------------------------- */

static void put_counts(FILE *stream, const struct counts *counts, bool skipped)
{
	fprintf(stream, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"", counts->tests, counts->failures,
		counts->errors);
	if (skipped)
		fprintf(stream, " skipped=\"%zu\"", counts->skipped);
}

static void put_property(struct writer *writer, const char *name)
{
	fprintf(writer->stream, "<property name=\"%s\"", name);
	put_line(writer, "value");
	fputs("/>\n", writer->stream);
}

static void put_properties(struct writer *writer)
{
	const struct mw_report *report = writer->report;
	struct mw_line *line = &writer->text.line;

	fputs("<properties>\n", writer->stream);
	mw_line_printf(line, "%d", report->target.pid);
	put_property(writer, "pid");
	mw_line_name(line, report->target.exe);
	put_property(writer, "exe");
	mw_line_name(line, report->engine.name);
	put_property(writer, "engine");
	mw_line_printf(line, "%s", mw_window_end_name(report->window.ended));
	put_property(writer, "ended");
	mw_line_printf(line, "%" PRIu64, writer->text.impacting.bytes);
	put_property(writer, "not_freed_bytes");
	mw_line_printf(line, "%" PRIu64, writer->text.impacting.count);
	put_property(writer, "not_freed_blocks");
	fputs("</properties>\n", writer->stream);
}

static void put_timestamp(struct writer *writer)
{
	time_t seconds = (time_t)(writer->report->window.started_realtime_ns / 1000000000);
	char date[64];
	struct tm tm;

	if (seconds > 0 && gmtime_r(&seconds, &tm) && strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		fprintf(writer->stream, " timestamp=\"%s\"", date);
}

/* Cases are written first, into memory: what there is of them stands before them. */
static void put_suite(struct writer *writer, struct counts *total)
{
	FILE *out = writer->stream;
	MW_FREE char *cases = NULL;
	struct counts counts = {0};
	size_t size = 0;

	writer->stream = open_memstream(&cases, &size);
	if (writer->stream) {
		put_checks(writer, &counts);
		for (size_t i = 0; i < writer->report->suspect_count; i++)
			put_suspect_case(writer, i, &counts);
		writer->failed |= fclose(writer->stream) != 0;
	}
	writer->failed |= !writer->stream;
	writer->stream = out;
	if (writer->failed)
		return;
	fputs("<testsuite", out);
	put_attribute(out, "name", writer->suite.data);
	put_counts(out, &counts, true);
	fprintf(out, " time=\"%.3f\"", writer->report->window.seconds);
	put_timestamp(writer);
	fputs(">\n", out);
	put_properties(writer);
	fwrite(cases, 1, size, out);
	fputs("</testsuite>\n", out);
	total->tests += counts.tests;
	total->failures += counts.failures;
	total->errors += counts.errors;
}

/* The process's name; of several that have it, with a number. */
static void name_suite(struct mw_line *line, const struct mw_report *const *reports, size_t number)
{
	const char *name = reports[number]->target.comm;
	size_t same = 1;

	for (size_t i = 0; name && i < number; i++)
		same += reports[i]->target.comm && strcmp(reports[i]->target.comm, name) == 0;
	mw_line_name(line, name);
	if (same > 1)
		mw_line_printf(line, " %zu", same);
}

static struct mw_error *write_reports(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream)
{
	struct mw_output_options plain = *options;
	MW_FREE char *suites = NULL;
	struct counts total = {0};
	bool failed = false;
	size_t size = 0;
	FILE *body = open_memstream(&suites, &size);

	plain.width = 0;
	plain.color = false;
	for (size_t i = 0; body && i < count && !failed; i++) {
		struct writer writer = {.stream = body, .options = options, .report = reports[i]};

		writer.text = (struct mw_text){
			.report = reports[i], .options = &plain, .impacting = mw_text_impacting(reports[i])};
		name_suite(&writer.suite, reports, i);
		put_suite(&writer, &total);
		failed = writer.failed || writer.suite.failed || writer.text.line.failed;
		mw_line_deinit(&writer.suite);
		mw_line_deinit(&writer.text.line);
	}
	if (!body || fclose(body) != 0 || failed)
		return mw_error_nomem();
	fputs(HEAD, stream);
	put_counts(stream, &total, false);
	fputs(">\n", stream);
	fwrite(suites, 1, size, stream);
	fputs("</testsuites>\n", stream);
	return NULL;
}

static bool is_own(const char *head, size_t size)
{
	return size >= sizeof(HEAD) - 1 && memcmp(head, HEAD, sizeof(HEAD) - 1) == 0;
}

const struct mw_output mw_output_junit = {
	.name = "junit",
	.what = "a JUnit report",
	.is_own = is_own,
	.of_reports =
		{NULL,
		 "Write the suspects as results of tests, in JUnit's XML, for GitLab, Jenkins and others: a suite a "
		 "process, a case a suspect, a failure what leaks or grows, or what --fail-on names. '-' is standard "
		 "output."},
	.write = write_reports,
};

// SPDX-License-Identifier: MIT
/*
 * collapsed.c: a line a stack, as flamegraph.pl and its relatives read them: frames from the thread's start on with ';'
 * between, a blank, and one figure.
 */
#include "export/frames.h"

#include "base/path.h"
#include "output/line.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* Its readers split at ';', and take a number at the end of a line, and one before that, for figures: there must be no blank
 * before digits. */
static void put_name(FILE *stream, const char *name)
{
	for (const char *at = name; *at; at++) {
		bool figure = *at == ' ' && isdigit((unsigned char)at[1]);

		putc(*at == ';' ? ':' : figure ? '_' : *at, stream);
	}
}

/* A script's frames have their lines, which its functions' names alone would not tell apart. */
static struct mw_error *put_frame(FILE *stream, const struct mw_export_frame *frame)
{
	struct mw_line place = {0};
	bool failed;

	put_name(stream, frame->name);
	if (!mw_language_is_script(frame->language) || !frame->file)
		return NULL;
	mw_line_put(&place, " (", mw_path_name(frame->file));
	if (frame->line)
		mw_line_printf(&place, ":%" PRIu32, frame->line);
	mw_line_printf(&place, ")");
	failed = place.failed;
	if (!failed)
		put_name(stream, place.data);
	mw_line_deinit(&place);
	return failed ? mw_error_nomem() : NULL;
}

static struct mw_error *put_sample(struct mw_export_frames *frames, const struct mw_export_process *process,
				   const struct mw_export_sample *sample, FILE *stream)
{
	uint64_t figure = mw_export_measure_of(frames->export->measure, sample);

	if (!figure)
		return NULL;
	MW_TRY(mw_export_frames_of(frames, process, sample));
	for (size_t i = frames->count; i-- > 0;) {
		MW_TRY(put_frame(stream, &frames->items[frames->numbers[i]]));
		if (i)
			putc(';', stream);
	}
	fprintf(stream, " %" PRIu64 "\n", figure);
	return NULL;
}

static struct mw_error *write_collapsed(const struct mw_export *export, FILE *stream)
{
	struct mw_export_frames frames = {.export = export, .root = MW_EXPORT_ROOT_OF_SEVERAL};
	struct mw_error *err = NULL;

	for (size_t i = 0; i < export->count && !err; i++)
		for (size_t j = 0; j < export->processes[i].sample_count && !err; j++)
			err = put_sample(&frames, &export->processes[i], &export->processes[i].samples[j], stream);
	mw_export_frames_deinit(&frames);
	return err;
}

/* Frames, a blank and digits. */
static bool is_line(const char *line, size_t size)
{
	size_t digits = 0;

	while (digits < size && isdigit((unsigned char)line[size - 1 - digits]))
		digits++;
	return digits && size > digits + 1 && line[size - 1 - digits] == ' ' && !memchr(line, '\0', size);
}

/* There is no place for a mark in it: all whole lines look like it. */
static bool is_own(const char *head, size_t size)
{
	const char *line = head, *end;

	while ((end = memchr(line, '\n', size - (size_t)(line - head))) != NULL) {
		if (!is_line(line, (size_t)(end - line)))
			return false;
		line = end + 1;
	}
	return line > head;
}

const struct mw_export_format mw_export_collapsed = {
	.name = "collapsed",
	.what = "a file of collapsed stacks",
	.about = "flamegraph.pl, inferno, speedscope",
	.is_own = is_own,
	.write = write_collapsed,
};

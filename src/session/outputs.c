// SPDX-License-Identifier: MIT
/* outputs.c: where reports go (src/session/outputs.h). */
#include "session/outputs.h"

#include "session/terminal.h"

#include <string.h>
#include <unistd.h>

/* What is to be written: either of them. */
struct content {
	const struct mw_report *const *reports;
	const struct mw_diff *const *diffs;
	size_t count;
	const struct mw_diff_output_options *of_diffs;
};

bool mw_outputs_want_timelines(const struct mw_session_options *options)
{
	for (size_t i = 0; mw_output_get(i); i++)
		if (options->files[i] && mw_output_get(i)->timelines)
			return true;
	return false;
}

static bool is_stdout(const char *name)
{
	return strcmp(name, "-") == 0;
}

static struct mw_error *check_pair(const char *option, const char *name, const char *other_option, const char *other)
{
	struct mw_error *err = NULL;

	if (!name || !other)
		return NULL;
	if (is_stdout(name) && is_stdout(other))
		err = mw_error_create(MW_ERROR_USAGE, 0, "--%s and --%s are both standard output", option,
				      other_option);
	else if (mw_outfile_same(name, other))
		err = mw_error_create(MW_ERROR_USAGE, 0, "--%s and --%s are one file, '%s'", option, other_option,
				      name);
	return err ? mw_error_hint(err, "Give them different names") : NULL;
}

struct mw_error *mw_outputs_check(const struct mw_session_options *options)
{
	for (size_t i = 0; mw_output_get(i); i++)
		MW_TRY(check_pair("output", options->output, mw_output_get(i)->name, options->files[i]));
	for (size_t i = 0; mw_output_get(i); i++)
		for (size_t j = i + 1; mw_output_get(j); j++)
			MW_TRY(check_pair(mw_output_get(i)->name, options->files[i], mw_output_get(j)->name,
					  options->files[j]));
	return NULL;
}

struct mw_error *mw_outputs_check_recording(const struct mw_session_options *options, const char *recording,
					    const char *what)
{
	for (size_t i = 0; mw_output_get(i); i++)
		if (options->files[i] && mw_outfile_same(options->files[i], recording))
			return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--%s '%s' is %s",
							     mw_output_get(i)->name, options->files[i], what),
					     "Give another name: the recording would be lost");
	return NULL;
}

struct mw_error *mw_outputs_open(struct mw_outputs *outputs, const struct mw_session_options *options)
{
	bool stdout_taken = options->quiet;

	outputs->options.top = options->top;
	for (size_t i = 0; mw_output_get(i); i++)
		stdout_taken |= options->files[i] && is_stdout(options->files[i]);
	for (size_t i = 0; mw_output_get(i); i++) {
		const char *name = mw_output_get(i)->reading && !stdout_taken ? "-" : options->files[i];

		if (name)
			MW_TRY(mw_outfile_open(name, &outputs->files[i]));
	}
	return NULL;
}

/* Where it is the terminal itself, nothing else is to stand there. */
static void show_writing(const struct mw_outputs *outputs, const struct mw_outfile *file, const struct content *content)
{
	if (!outputs->progress)
		return;
	if (mw_outfile_is_terminal(file))
		mw_progress_clear(outputs->progress);
	else
		mw_progress_phase(outputs->progress, content->diffs ? "writing the comparison" : "writing the report");
}

static struct mw_error *render(const struct mw_outputs *outputs, const struct mw_output *output, FILE *stream,
			       const struct content *content)
{
	struct mw_output_options options = outputs->options;

	if (content->diffs)
		return output->write_diffs(content->diffs, content->count, content->of_diffs, stream);
	if (output->reading) {
		options.width = mw_terminal_width(STDOUT_FILENO);
		options.color = mw_terminal_color(STDOUT_FILENO);
	}
	/* Without its timelines it would be a page with nothing in it. */
	for (size_t i = 0; output->timelines && i < content->count; i++)
		if (!options.timelines || !options.timelines[i])
			return mw_error_nomem();
	return output->write(content->reports, content->count, &options, stream);
}

/* Render into one of the files and close it. */
static struct mw_error *write_file(struct mw_outputs *outputs, size_t number, const struct content *content)
{
	struct mw_outfile *taken = outputs->files[number];
	struct mw_error *err;

	if (!taken)
		return NULL;
	outputs->files[number] = NULL;
	show_writing(outputs, taken, content);
	err = render(outputs, mw_output_get(number), mw_outfile_stream(taken), content);
	if (err) {
		mw_outfile_abort(taken);
		return err;
	}
	return mw_outfile_commit(taken);
}

struct mw_error *mw_outputs_write(struct mw_outputs *outputs, const struct mw_report *const *reports, size_t count)
{
	const struct content content = {.reports = reports, .count = count};
	struct mw_error *err = NULL;

	for (size_t i = 0; mw_output_get(i); i++)
		err = mw_error_first(err, write_file(outputs, i, &content));
	if (outputs->progress)
		mw_progress_clear(outputs->progress);
	return err;
}

struct mw_error *mw_outputs_write_diffs(struct mw_outputs *outputs, const struct mw_diff *const *diffs, size_t count,
					const struct mw_diff_output_options *options)
{
	const struct content content = {.diffs = diffs, .count = count, .of_diffs = options};
	struct mw_error *err = NULL;

	for (size_t i = 0; mw_output_get(i) && !err; i++)
		err = write_file(outputs, i, &content);
	if (outputs->progress)
		mw_progress_clear(outputs->progress);
	return err;
}

struct mw_partials mw_outputs_partials(const struct mw_outputs *outputs)
{
	struct mw_partials partials = {{NULL}};

	for (size_t i = 0; mw_output_get(i); i++)
		partials.paths[i] = mw_outfile_partial(outputs->files[i]);
	return partials;
}

void mw_outputs_close(struct mw_outputs *outputs)
{
	for (size_t i = 0; mw_output_get(i); i++) {
		mw_outfile_abort(outputs->files[i]);
		outputs->files[i] = NULL;
	}
}

// SPDX-License-Identifier: MIT
/* outputs.c: where reports go (src/session/outputs.h). */
#include "session/outputs.h"

#include "session/terminal.h"

#include <memwatch/output.h>

#include <string.h>
#include <unistd.h>

struct mw_error *mw_outputs_check(const struct mw_session_options *options)
{
	const struct {
		const char *option, *name;
	} all[] = {{"--output", options->output}, {"--json", options->json}, {"--html", options->html}};
	const size_t count = sizeof(all) / sizeof(all[0]);

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++) {
			const char *one = all[i].name, *other = all[j].name;
			struct mw_error *err = NULL;

			if (one && other && strcmp(one, "-") == 0 && strcmp(other, "-") == 0)
				err = mw_error_create(MW_ERROR_USAGE, 0, "%s and %s are both standard output",
						      all[i].option, all[j].option);
			else if (one && other && mw_outfile_same(one, other))
				err = mw_error_create(MW_ERROR_USAGE, 0, "%s and %s are one file, '%s'", all[i].option,
						      all[j].option, one);
			if (err)
				return mw_error_hint(err, "Give them different names");
		}
	return NULL;
}

static bool is_stdout(const char *name)
{
	return name && strcmp(name, "-") == 0;
}

struct mw_error *mw_outputs_open(struct mw_outputs *outputs, const struct mw_session_options *options)
{
	bool stdout_taken = is_stdout(options->json) || is_stdout(options->html);

	outputs->top = options->top;
	if (options->json)
		MW_TRY(mw_outfile_open(options->json, &outputs->json));
	if (options->html)
		MW_TRY(mw_outfile_open(options->html, &outputs->html));
	if (!options->quiet && !stdout_taken)
		MW_TRY(mw_outfile_open("-", &outputs->text));
	return NULL;
}

/* Where it is the terminal itself, nothing else is to stand there. */
static void show_writing(const struct mw_outputs *outputs, const struct mw_outfile *file)
{
	if (!outputs->progress)
		return;
	if (mw_outfile_is_terminal(file))
		mw_progress_clear(outputs->progress);
	else
		mw_progress_phase(outputs->progress, "writing the report");
}

/* Render into one of the outputs and close it. */
static struct mw_error *write_form(struct mw_outputs *outputs, struct mw_outfile **file, const char *form,
				   const struct mw_report *const *reports, size_t count,
				   const struct mw_output_options *options)
{
	const struct mw_output *output = mw_output_find(form);
	struct mw_outfile *taken = *file;
	struct mw_error *err;

	if (!taken)
		return NULL;
	*file = NULL;
	show_writing(outputs, taken);
	err = output ? output->write(reports, count, options, mw_outfile_stream(taken))
		     : mw_error_create(MW_ERROR_UNSUPPORTED, 0, "this memwatch was built without %s reports", form);
	if (err) {
		mw_outfile_abort(taken);
		return err;
	}
	return mw_outfile_commit(taken);
}

/* Without its timelines it would be a page with nothing in it. */
static struct mw_error *write_page(struct mw_outputs *outputs, const struct mw_report *const *reports, size_t count,
				   const struct mw_output_options *options)
{
	for (size_t i = 0; outputs->html && i < count; i++)
		if (!outputs->timelines || !outputs->timelines[i])
			return mw_error_nomem();
	return write_form(outputs, &outputs->html, "html", reports, count, options);
}

struct mw_error *mw_outputs_write(struct mw_outputs *outputs, const struct mw_report *const *reports, size_t count)
{
	const struct mw_output_options plain = {
		.top = outputs->top, .views = outputs->views, .timelines = outputs->timelines};
	const struct mw_output_options shown = {
		.top = outputs->top,
		.width = mw_terminal_width(STDOUT_FILENO),
		.color = mw_terminal_color(STDOUT_FILENO),
		.views = outputs->views,
	};
	struct mw_error *json = write_form(outputs, &outputs->json, "json", reports, count, &plain);
	struct mw_error *html = write_page(outputs, reports, count, &plain);
	struct mw_error *text = write_form(outputs, &outputs->text, "text", reports, count, &shown);

	if (outputs->progress)
		mw_progress_clear(outputs->progress);
	return mw_error_first(json, mw_error_first(html, text));
}

struct mw_partials mw_outputs_partials(const struct mw_outputs *outputs)
{
	return (struct mw_partials){{mw_outfile_partial(outputs->json), mw_outfile_partial(outputs->html)}};
}

void mw_outputs_close(struct mw_outputs *outputs)
{
	mw_outfile_abort(outputs->text);
	mw_outfile_abort(outputs->json);
	mw_outfile_abort(outputs->html);
	outputs->text = NULL;
	outputs->json = NULL;
	outputs->html = NULL;
}

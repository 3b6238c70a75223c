// SPDX-License-Identifier: MIT
/* outputs.c: where reports go (src/cli/outputs.h). */
#include "cli/outputs.h"

#include "cli/terminal.h"

#include <memwatch/output.h>

#include <string.h>
#include <unistd.h>

struct mw_error *mw_outputs_open(struct mw_outputs *outputs, const struct mw_cli_options *options)
{
	bool stdout_taken = options->json && strcmp(options->json, "-") == 0;

	outputs->top = options->top;
	if (options->json)
		MW_TRY(mw_outfile_open(options->json, &outputs->json));
	if (!options->quiet && !stdout_taken)
		MW_TRY(mw_outfile_open("-", &outputs->text));
	return NULL;
}

/* Render into one of the outputs and close it. */
static struct mw_error *write_form(struct mw_outfile **file, const char *form, const struct mw_report *const *reports,
				   size_t count, const struct mw_output_options *options)
{
	const struct mw_output *output = mw_output_find(form);
	struct mw_outfile *taken = *file;
	struct mw_error *err;

	if (!taken)
		return NULL;
	*file = NULL;
	err = output ? output->write(reports, count, options, mw_outfile_stream(taken))
		     : mw_error_create(MW_ERROR_UNSUPPORTED, 0, "this memwatch was built without %s reports", form);
	if (err) {
		mw_outfile_abort(taken);
		return err;
	}
	return mw_outfile_commit(taken);
}

struct mw_error *mw_outputs_write(struct mw_outputs *outputs, const struct mw_report *const *reports, size_t count)
{
	const struct mw_output_options plain = {.top = outputs->top, .views = outputs->views};
	const struct mw_output_options shown = {
		.top = outputs->top,
		.width = mw_terminal_width(STDOUT_FILENO),
		.color = mw_terminal_color(STDOUT_FILENO),
		.views = outputs->views,
	};
	struct mw_error *json = write_form(&outputs->json, "json", reports, count, &plain);
	struct mw_error *text = write_form(&outputs->text, "text", reports, count, &shown);

	if (!json)
		return text;
	mw_error_destroy(text);
	return json;
}

const char *mw_outputs_partial(const struct mw_outputs *outputs)
{
	return mw_outfile_partial(outputs->json);
}

void mw_outputs_close(struct mw_outputs *outputs)
{
	mw_outfile_abort(outputs->text);
	mw_outfile_abort(outputs->json);
	outputs->text = NULL;
	outputs->json = NULL;
}

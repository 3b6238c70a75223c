// SPDX-License-Identifier: MIT
/* report_options.c: see report_options.h. */
#include "cli/report_options.h"

#include "cli/command.h"
#include "cli/usage.h"

#include <argp.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define TOP_DEFAULT 10
#define TOP_MAX     1000000

struct parse {
	struct mw_cli_report_options *options;
	struct mw_error *err;
	bool to;
};

static struct mw_error *take_argument(struct parse *parse, const char *word)
{
	struct mw_error *err;

	if (!parse->options->recording && *word) {
		parse->options->recording = word;
		return NULL;
	}
	err = mw_error_create(MW_ERROR_USAGE, 0, "'%.64s' is not expected here", word);
	return mw_error_hint(err, "One recording is named, as in: memwatch report leak.mw");
}

static struct mw_error *parse_at(struct parse *parse, const char *text)
{
	if (strcmp(text, "peak") == 0) {
		parse->options->at_peak = true;
		return NULL;
	}
	parse->options->at_moment = true;
	return mw_cli_parse_moment("--at", text, &parse->options->to_ns);
}

static struct mw_error *parse_symbols(struct mw_cli_report_options *options, const char *directory)
{
	struct stat st;

	if (options->symbols_count == MW_CLI_SYMBOLS_MAX)
		return mw_error_create(MW_ERROR_USAGE, 0, "--symbols is given more than %d times", MW_CLI_SYMBOLS_MAX);
	if (stat(directory, &st) < 0 || !S_ISDIR(st.st_mode))
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "--symbols '%.200s': not a directory", directory),
			"It takes a directory with the modules' files, or with their .build-id/xx/yyyy.debug");
	options->symbols[options->symbols_count++] = directory;
	return NULL;
}

static struct mw_error *parse_option(int key, char *arg, struct parse *parse)
{
	struct mw_cli_report_options *options = parse->options;
	struct mw_error *err = NULL;
	uint64_t value = 0;

	if (mw_cli_view_option(key, arg, &options->view, &err))
		return err;
	switch (key) {
	case MW_KEY_FROM:
		return mw_cli_parse_moment("--from", arg, &options->from_ns);
	case MW_KEY_TO:
		parse->to = true;
		return mw_cli_parse_moment("--to", arg, &options->to_ns);
	case MW_KEY_AT:
		return parse_at(parse, arg);
	case MW_KEY_TOP:
		MW_TRY(mw_cli_parse_count("--top", arg, 0, TOP_MAX, &value));
		options->top = value;
		return NULL;
	case MW_KEY_JSON:
		return mw_cli_parse_file("--json", arg, &options->json);
	case MW_KEY_HTML:
		return mw_cli_parse_file("--html", arg, &options->html);
	case MW_KEY_SYMBOLS:
		return parse_symbols(options, arg);
	case MW_KEY_QUIET:
		options->quiet = true;
		return NULL;
	default:
		return NULL;
	}
}

static error_t on_key(int key, char *arg, struct argp_state *state)
{
	struct parse *parse = state->input;

	switch (key) {
	case 'h':
		parse->options->action = MW_CLI_HELP;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_ARG:
		parse->err = take_argument(parse, arg);
		break;
	case ARGP_KEY_ERROR:
		if (!parse->err)
			parse->err =
				mw_cli_explain_option(&mw_cli_command_report, state->argc, state->argv, state->next);
		return 0;
	default:
		if (key == ARGP_KEY_INIT || key == ARGP_KEY_ARGS || key == ARGP_KEY_NO_ARGS || key == ARGP_KEY_END ||
		    key == ARGP_KEY_SUCCESS || key == ARGP_KEY_FINI)
			return ARGP_ERR_UNKNOWN;
		parse->err = parse_option(key, arg, parse);
	}
	return parse->err ? EINVAL : 0;
}

static struct mw_error *check(const struct parse *parse)
{
	struct mw_cli_report_options *options = parse->options;
	struct mw_error *err;

	if (!options->recording) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "no recording is named");
		return mw_error_hint(err, "Name the file that -o made, as in: memwatch report leak.mw");
	}
	if (options->at_moment && (parse->to || options->at_peak)) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "--at SECONDS ends the interval, and so does %s",
				      parse->to ? "--to" : "--at peak");
		return mw_error_hint(err, "Give one of them");
	}
	if (options->to_ns <= options->from_ns) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "the interval ends at %.3f s, which is not after its begin",
				      (double)options->to_ns / 1e9);
		return mw_error_hint(err, "--to must be later than --from; both are seconds since the window's start");
	}
	return mw_cli_view_options_finish(&options->view, options->top);
}

struct mw_error *mw_cli_report_options_parse(int argc, char **argv, struct mw_cli_report_options *out)
{
	struct argp_option table[MW_CLI_OPTIONS_MAX + 1];
	const struct argp argp = {.options = table, .parser = on_key};
	struct mw_cli_report_options options = {.top = TOP_DEFAULT, .to_ns = UINT64_MAX};
	struct parse parse = {.options = &options};
	error_t failed;

	mw_cli_argp_options(&mw_cli_command_report, table);
	failed =
		argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT | ARGP_IN_ORDER, NULL, &parse);
	if (failed && !parse.err)
		parse.err = failed == ENOMEM ? mw_error_nomem()
					     : mw_error_create(MW_ERROR_USAGE, 0, "invalid command line");
	if (!parse.err && options.action != MW_CLI_HELP)
		parse.err = check(&parse);
	if (parse.err) {
		mw_cli_report_options_deinit(&options);
		return parse.err;
	}
	*out = options;
	return NULL;
}

void mw_cli_report_options_deinit(struct mw_cli_report_options *options)
{
	mw_cli_view_options_deinit(&options->view);
}

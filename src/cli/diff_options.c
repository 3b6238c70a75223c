// SPDX-License-Identifier: MIT
/* diff_options.c: see diff_options.h. */
#include "cli/diff_options.h"

#include "cli/command.h"
#include "cli/usage.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#define TOP_MAX     1000000
#define PROCESS_MAX 4096

struct parse {
	struct mw_cli_diff_options *options;
	struct mw_error *err;
};

static struct mw_error *take_argument(struct parse *parse, const char *word)
{
	struct mw_error *err;

	for (unsigned i = 0; i < MW_DIFF_SIDES && *word; i++) {
		if (parse->options->files[i])
			continue;
		parse->options->files[i] = word;
		return NULL;
	}
	err = mw_error_create(MW_ERROR_USAGE, 0, "'%.64s' is not expected here", word);
	return mw_error_hint(err, "Two recordings are named, or one with --from and --to");
}

static struct mw_error *parse_kinds(const char *text, bool kinds[MW_KIND_COUNT])
{
	static const char *const names[MW_KIND_COUNT] = {"heap", "vm", "vm-internal"};
	bool wanted[MW_KIND_COUNT] = {false};
	const char *rest = text;

	for (;;) {
		size_t length = strcspn(rest, ",");
		unsigned kind = 0;

		while (kind < MW_KIND_COUNT &&
		       (strlen(names[kind]) != length || strncmp(names[kind], rest, length) != 0))
			kind++;
		if (kind == MW_KIND_COUNT)
			return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
							     "--kind '%.64s': not a list of kinds of memory", text),
					     "Kinds are heap, vm and vm-internal, as in --kind heap,vm");
		wanted[kind] = true;
		rest += length;
		if (!*rest)
			break;
		rest++;
	}
	memcpy(kinds, wanted, sizeof(wanted));
	return NULL;
}

static struct mw_error *set_text(const char *option, const char *arg, const char **out)
{
	if (!*arg)
		return mw_error_create(MW_ERROR_USAGE, 0, "%s '': nothing is named", option);
	*out = arg;
	return NULL;
}

static struct mw_error *parse_option(int key, char *arg, struct mw_cli_diff_options *options)
{
	uint64_t value = 0;

	switch (key) {
	case MW_KEY_FROM:
		return set_text("--from", arg, &options->moments[MW_DIFF_OLD]);
	case MW_KEY_TO:
		return set_text("--to", arg, &options->moments[MW_DIFF_NEW]);
	case MW_KEY_KIND:
		return parse_kinds(arg, options->kinds);
	case MW_KEY_PROCESS:
		return mw_cli_parse_count("--process", arg, 1, PROCESS_MAX, &options->process);
	case MW_KEY_TOP:
		MW_TRY(mw_cli_parse_count("--top", arg, 0, TOP_MAX, &value));
		options->top = value;
		return NULL;
	case MW_KEY_ALL:
		options->all = true;
		return NULL;
	case MW_KEY_JSON:
		return set_text("--json", arg, &options->json);
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
		state->next = state->argc; /* whatever else is said */
		return 0;
	case ARGP_KEY_ARG:
		parse->err = take_argument(parse, arg);
		break;
	case ARGP_KEY_ERROR:
		if (!parse->err)
			parse->err = mw_cli_explain_option(&mw_cli_command_diff, state->argc, state->argv, state->next);
		return 0;
	default:
		if (key == ARGP_KEY_INIT || key == ARGP_KEY_ARGS || key == ARGP_KEY_NO_ARGS || key == ARGP_KEY_END ||
		    key == ARGP_KEY_SUCCESS || key == ARGP_KEY_FINI)
			return ARGP_ERR_UNKNOWN;
		parse->err = parse_option(key, arg, parse->options);
	}
	return parse->err ? EINVAL : 0;
}

static struct mw_error *check(struct mw_cli_diff_options *options)
{
	struct mw_error *err;

	if (!options->files[MW_DIFF_OLD]) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "no recording is named");
		return mw_error_hint(err, "Name two, as in: memwatch diff old.mw new.mw");
	}
	if (options->files[MW_DIFF_NEW])
		return NULL;
	if (!options->moments[MW_DIFF_OLD] && !options->moments[MW_DIFF_NEW]) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "only one recording is named, and no moments of it");
		return mw_error_hint(err,
				     "Name a second one, or two moments of this: memwatch diff %.64s --from 1 "
				     "--to 2",
				     options->files[MW_DIFF_OLD]);
	}
	options->single = true;
	options->files[MW_DIFF_NEW] = options->files[MW_DIFF_OLD];
	return NULL;
}

struct mw_error *mw_cli_diff_options_parse(int argc, char **argv, struct mw_cli_diff_options *out)
{
	struct argp_option table[MW_CLI_OPTIONS_MAX + 1];
	const struct argp argp = {.options = table, .parser = on_key};
	struct mw_cli_diff_options options = {.kinds = {[MW_KIND_HEAP] = true, [MW_KIND_VM] = true}, .top = SIZE_MAX};
	struct parse parse = {.options = &options};
	error_t failed;

	mw_cli_argp_options(&mw_cli_command_diff, table);
	failed = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &parse);
	if (parse.err)
		return parse.err;
	if (failed)
		return failed == ENOMEM ? mw_error_nomem() : mw_error_create(MW_ERROR_USAGE, 0, "invalid command line");
	if (options.action == MW_CLI_RUN)
		MW_TRY(check(&options));
	*out = options;
	return NULL;
}

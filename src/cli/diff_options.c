// SPDX-License-Identifier: MIT
/* diff_options.c: see diff_options.h. */
#include "cli/diff_options.h"

#include "cli/usage.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#define TOP_MAX     1000000
#define PROCESS_MAX 4096

const char mw_cli_help_diff[] = "Usage: memwatch diff OLD NEW [OPTION...]           two recordings\n"
				"       memwatch diff FILE --from MARK --to MARK    two moments of one\n"
				"\n"
				"Tell by stacks how much more memory is outstanding in the second snapshot than\n"
				"in the first: the largest growth first, in the form that UMDH has.\n"
				"\n"
				"      --from MOMENT        the moment of OLD  (default: its end; of FILE: its start)\n"
				"      --to MOMENT          the moment of NEW  (default: its end)\n"
				"                           a mark's number or name, 12.5s, start, end\n"
				"      --kind LIST          heap, vm, vm-internal (default: heap,vm)\n"
				"      --process N          only the Nth process of each (default: all, in order)\n"
				"      --top N              stacks in the text (default: all)\n"
				"      --all                those as well that did not change\n"
				"      --json FILE          all stacks as JSON; '-' is standard output\n"
				"      --quiet              no progress, no text\n"
				"  -h, --help               this text\n"
				"\n"
				"Exit status: 0 compared, 1 not (the message says why), 2 bad usage\n";

enum option_key {
	KEY_FROM = 256,
	KEY_TO,
	KEY_KIND,
	KEY_PROCESS,
	KEY_TOP,
	KEY_ALL,
	KEY_JSON,
	KEY_QUIET,
};

static const struct argp_option table[] = {
	{"from", KEY_FROM, "MOMENT", 0, NULL, 0}, {"to", KEY_TO, "MOMENT", 0, NULL, 0},
	{"kind", KEY_KIND, "LIST", 0, NULL, 0},   {"process", KEY_PROCESS, "N", 0, NULL, 0},
	{"top", KEY_TOP, "N", 0, NULL, 0},        {"all", KEY_ALL, NULL, 0, NULL, 0},
	{"json", KEY_JSON, "FILE", 0, NULL, 0},   {"quiet", KEY_QUIET, NULL, 0, NULL, 0},
	{"help", 'h', NULL, 0, NULL, 0},          {NULL, 0, NULL, 0, NULL, 0},
};

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
	case KEY_FROM:
		return set_text("--from", arg, &options->moments[MW_DIFF_OLD]);
	case KEY_TO:
		return set_text("--to", arg, &options->moments[MW_DIFF_NEW]);
	case KEY_KIND:
		return parse_kinds(arg, options->kinds);
	case KEY_PROCESS:
		return mw_cli_parse_count("--process", arg, 1, PROCESS_MAX, &options->process);
	case KEY_TOP:
		MW_TRY(mw_cli_parse_count("--top", arg, 0, TOP_MAX, &value));
		options->top = value;
		return NULL;
	case KEY_ALL:
		options->all = true;
		return NULL;
	case KEY_JSON:
		return set_text("--json", arg, &options->json);
	case KEY_QUIET:
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
			parse->err = mw_cli_explain_option(table, state->argc, state->argv, state->next);
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
	const struct argp argp = {.options = table, .parser = on_key};
	struct mw_cli_diff_options options = {.kinds = {[MW_KIND_HEAP] = true, [MW_KIND_VM] = true}, .top = SIZE_MAX};
	struct parse parse = {.options = &options};
	error_t failed = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &parse);

	if (parse.err)
		return parse.err;
	if (failed)
		return failed == ENOMEM ? mw_error_nomem()
					: mw_error_create(MW_ERROR_USAGE, 0, "the command line makes no sense");
	if (options.action == MW_CLI_RUN)
		MW_TRY(check(&options));
	*out = options;
	return NULL;
}

// SPDX-License-Identifier: MIT
/* options.c: the command lines of memwatch, by argp (src/cli/options.h). */
#include "cli/options.h"

#include "cli/command.h"
#include "cli/usage.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#define DEPTH_DEFAULT 128
#define DEPTH_MAX     1024
#define TOP_DEFAULT   10
#define TOP_MAX       1000000

struct parse {
	struct mw_cli_options *options;
	struct mw_error *err;
	const struct mw_cli_command *command;
	bool takes_command;
	bool dashes; /* "--" was there */
};

static struct mw_error *parse_engine(const char *name, struct mw_session_options *options)
{
	static const struct {
		const char *name, *reason;
	} engines[] = {
		{"auto", NULL}, /* it says itself what it took, and why */
		{"jump", "asked for by --engine jump"},
		{"trap", "asked for by --engine trap"},
	};

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(name, engines[i].name) == 0) {
			options->engine = engines[i].name;
			options->engine_reason = engines[i].reason;
			return NULL;
		}
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--engine '%.64s': no such engine", name),
			     "There are 'jump', 'trap', and 'auto', which takes jump wherever it is safe");
}

static struct mw_error *parse_output(const char *name, struct mw_session_options *options)
{
	struct mw_error *err;

	if (!*name || strcmp(name, "-") == 0) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "--output '%s': not the name of a file", name);
		return mw_error_hint(err, "A recording is written to a file as the window goes, as in -o leak.mw");
	}
	options->output = name;
	return NULL;
}

/* As in 10 or 10s. */
static struct mw_error *parse_mark_every(const char *text, struct mw_session_options *options)
{
	char number[64];
	size_t length = strlen(text);

	if (length > 1 && length < sizeof(number) && text[length - 1] == 's') {
		memcpy(number, text, length - 1);
		number[length - 1] = '\0';
		return mw_cli_parse_seconds("--mark-every", number, &options->mark_every_ns);
	}
	return mw_cli_parse_seconds("--mark-every", text, &options->mark_every_ns);
}

static struct mw_error *parse_depth(const char *text, struct mw_session_options *options)
{
	uint64_t value = 0;

	MW_TRY(mw_cli_parse_count("--depth", text, 1, DEPTH_MAX, &value));
	options->depth = (uint32_t)value;
	return NULL;
}

static struct mw_error *parse_top(const char *text, struct mw_session_options *options)
{
	uint64_t value = 0;

	MW_TRY(mw_cli_parse_count("--top", text, 0, TOP_MAX, &value));
	options->top = value;
	return NULL;
}

/* Everything from here on is the command to launch, if it stands behind "--". */
static struct mw_error *take_argument(struct parse *parse, struct argp_state *state)
{
	const char *word = state->argv[state->next - 1];
	struct mw_error *err;

	if (parse->dashes && parse->takes_command) {
		parse->options->session.command = state->argv + state->next - 1;
		parse->options->session.command_count = (size_t)(state->argc - state->next + 1);
		state->next = state->argc;
		return NULL;
	}
	err = mw_error_create(MW_ERROR_USAGE, 0, "'%.64s' is not expected here", word);
	if (parse->takes_command)
		return mw_error_hint(err, "A command to launch stands behind '--', as in: memwatch -- %.64s", word);
	return mw_error_hint(err, "A process is named by -p, as in: memwatch %s -p 1234", parse->command->name);
}

static struct mw_error *parse_option(int key, char *arg, struct parse *parse)
{
	struct mw_session_options *options = &parse->options->session;
	struct mw_error *err = NULL;

	if (mw_cli_view_option(key, arg, &parse->options->view, &err))
		return err;
	switch (key) {
	case 'p':
		return mw_cli_parse_pids(arg, &options->pids);
	case 'd':
		return mw_cli_parse_seconds("--duration", arg, &options->duration_ns);
	case MW_KEY_ENGINE:
		return parse_engine(arg, options);
	case MW_KEY_TRACK:
		return mw_cli_parse_track(arg, &options->track_heap, &options->track_vm);
	case MW_KEY_JSON:
		return mw_cli_parse_file("--json", arg, &options->json);
	case MW_KEY_HTML:
		return mw_cli_parse_file("--html", arg, &options->html);
	case 'o':
		return parse_output(arg, options);
	case MW_KEY_MARK_EVERY:
		return parse_mark_every(arg, options);
	case MW_KEY_MAX_MEMORY:
		return mw_cli_parse_size("--max-memory", arg, &options->max_memory);
	case MW_KEY_MAX_STOPPED:
		return mw_cli_parse_percent("--max-stopped", arg, &options->max_stopped);
	case MW_KEY_UNSAFE:
		options->unsafe = true;
		return NULL;
	case MW_KEY_CLEAN:
		parse->options->clean = true;
		return NULL;
	case MW_KEY_NO_SYMBOLS:
		options->no_symbols = true;
		return NULL;
	case MW_KEY_DEPTH:
		return parse_depth(arg, options);
	case MW_KEY_TOP:
		return parse_top(arg, options);
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
	case 'V':
		parse->options->action = key == 'h' ? MW_CLI_HELP : MW_CLI_VERSION;
		state->next = state->argc; /* whatever else is said */
		return 0;
	case ARGP_KEY_ARG:
		parse->dashes = state->quoted != 0;
		parse->err = take_argument(parse, state);
		break;
	case ARGP_KEY_END:
		parse->dashes = state->quoted != 0;
		return 0;
	case ARGP_KEY_ERROR:
		if (!parse->err)
			parse->err = mw_cli_explain_option(parse->command, state->argc, state->argv, state->next);
		return 0;
	default:
		if (key == ARGP_KEY_INIT || key == ARGP_KEY_ARGS || key == ARGP_KEY_NO_ARGS ||
		    key == ARGP_KEY_SUCCESS || key == ARGP_KEY_FINI)
			return ARGP_ERR_UNKNOWN;
		parse->err = parse_option(key, arg, parse);
	}
	return parse->err ? EINVAL : 0;
}

static struct mw_error *parse_line(int argc, char **argv, struct parse *parse)
{
	struct argp_option table[MW_CLI_OPTIONS_MAX + 1];
	const struct argp argp = {.options = table, .parser = on_key};
	struct mw_session_options *options = &parse->options->session;
	error_t failed;

	mw_cli_argp_options(parse->command, table);
	memset(parse->options, 0, sizeof(*parse->options));
	options->track_heap = true;
	options->track_vm = true;
	options->depth = DEPTH_DEFAULT;
	options->top = TOP_DEFAULT;
	MW_TRY(parse_engine("auto", options));
	failed = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT | ARGP_IN_ORDER, NULL, parse);
	if (!failed || parse->err)
		return parse->err;
	return failed == ENOMEM ? mw_error_nomem() : mw_error_create(MW_ERROR_USAGE, 0, "invalid command line");
}

static struct mw_error *check_record(const struct parse *parse)
{
	const struct mw_session_options *options = &parse->options->session;
	struct mw_error *err;

	if (parse->dashes && (!options->command || !options->command[0][0])) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "the command behind '--' is empty");
		return mw_error_hint(err, "Name a program and its arguments, as in: memwatch -- ls -l");
	}
	if (!options->output && ((options->mark_every_ns && !options->html) || options->no_symbols)) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "--%s is about a recording, and none is kept",
				      options->no_symbols ? "no-symbols" : "mark-every");
		return mw_error_hint(err, "Name its file by -o, as in -o leak.mw");
	}
	if (options->command && options->pids.count) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "both -p and a command to launch ('%.64s') are given",
				      options->command[0]);
		return mw_error_hint(err, "memwatch watches one or the other: leave one out");
	}
	if (!options->command && !options->pids.count) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "nothing to watch");
		return mw_error_hint(err, "Name a process by -p PID, or a command to launch behind '--'");
	}
	return mw_cli_view_options_finish(&parse->options->view, options->top);
}

/* Of commands that look at one process. */
static struct mw_error *check_one(const struct parse *parse)
{
	const char *name = parse->command->name;
	struct mw_error *err;

	if (parse->options->session.pids.count == 1)
		return NULL;
	err = mw_error_create(MW_ERROR_USAGE, 0, "%s looks at one process, and %s named", name,
			      parse->options->session.pids.count ? "several are" : "none is");
	return mw_error_hint(err, "Name it by -p, as in: memwatch %s -p 1234", name);
}

struct mw_error *mw_cli_options_parse(int argc, char **argv, struct mw_cli_options *out)
{
	struct mw_cli_options options;
	struct parse parse = {.options = &options, .command = &mw_cli_command_record, .takes_command = true};
	struct mw_error *err = parse_line(argc, argv, &parse);

	if (!err && options.action == MW_CLI_RUN)
		err = check_record(&parse);
	if (err) {
		mw_cli_options_deinit(&options);
		return err;
	}
	*out = options;
	return NULL;
}

static struct mw_error *parse_one(const struct mw_cli_command *command, int argc, char **argv,
				  struct mw_cli_options *out)
{
	struct mw_cli_options options;
	struct parse parse = {.options = &options, .command = command};
	struct mw_error *err = parse_line(argc, argv, &parse);

	if (!err && options.action == MW_CLI_RUN)
		err = check_one(&parse);
	if (err) {
		mw_cli_options_deinit(&options);
		return err;
	}
	*out = options;
	return NULL;
}

struct mw_error *mw_cli_options_parse_doctor(int argc, char **argv, struct mw_cli_options *out)
{
	return parse_one(&mw_cli_command_doctor, argc, argv, out);
}

struct mw_error *mw_cli_options_parse_top(int argc, char **argv, struct mw_cli_options *out)
{
	return parse_one(&mw_cli_command_top, argc, argv, out);
}

void mw_cli_options_deinit(struct mw_cli_options *options)
{
	mw_cli_pids_deinit(&options->session.pids);
	mw_cli_view_options_deinit(&options->view);
}

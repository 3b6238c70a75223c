// SPDX-License-Identifier: MIT
/* main.c: memwatch's commands. */
#include "cli/run.h"
#include "doctor/doctor.h"
#include "session/outputs.h"
#include "session/process_setup.h"
#include "session/terminal.h"
#include "session/watchdog.h"
#include "top/top.h"

#include <stdio.h>
#include <string.h>

/* By the same door as reports: a full disk is no success. */
static struct mw_error *print_version(void)
{
	struct mw_outfile *file = NULL;

	MW_TRY(mw_outfile_open("-", &file));
	fputs("memwatch " MEMWATCH_VERSION "\n", mw_outfile_stream(file));
	return mw_outfile_commit(file);
}

static struct mw_error *doctor(const struct mw_cli_options *options)
{
	return mw_doctor_run(&options->session, options->clean);
}

static struct mw_error *top(const struct mw_cli_options *options)
{
	return mw_top_run(&options->session);
}

/* Without the name of one behind it, the command line is that of a recording. */
static const struct verb {
	const struct mw_cli_command *command;
	void (*prepare)(void); /* before all else: a Ctrl-C that comes at once ends the window as any does */
	struct mw_error *(*run)(const struct mw_cli_options *options);
} verbs[] = {
	{&mw_cli_command_record, mw_process_setup_prepare, mw_cli_record},
	{&mw_cli_command_diff, mw_process_setup_ignore_write_signals, mw_cli_diff},
	{&mw_cli_command_doctor, mw_process_setup_ignore_write_signals, doctor},
	{&mw_cli_command_report, mw_process_setup_ignore_write_signals, mw_cli_report},
	{&mw_cli_command_top, mw_process_setup_prepare, top},
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static struct mw_error *unknown_verb(const char *word)
{
	const char *names[VERBS] = {NULL}; /* all but the first, and NULL */
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "no such command: '%.64s'", word);
	const char *nearest;

	for (size_t i = 1; i < VERBS; i++)
		names[i - 1] = verbs[i].command->name;
	nearest = mw_cli_nearest(word, names);
	if (nearest)
		return mw_error_hint(err, "The nearest is '%s': see 'memwatch %s --help'", nearest, nearest);
	return mw_error_hint(err,
			     "To launch a program, put '--' before it: memwatch -- %.64s; 'memwatch --help' "
			     "tells the rest",
			     word);
}

static struct mw_error *run_verb(const struct verb *verb, int argc, char **argv)
{
	struct mw_cli_options options;
	struct mw_error *err;

	verb->prepare();
	MW_TRY(mw_cli_options_parse(verb->command, argc, argv, &options));
	if (options.action == MW_CLI_HELP)
		err = mw_cli_give_help(verb->command);
	else if (options.action == MW_CLI_VERSION)
		err = print_version();
	else
		err = verb->run(&options);
	mw_cli_options_deinit(&options);
	return err;
}

static struct mw_error *run(int argc, char **argv)
{
	if (argv[1][0] == '-')
		return run_verb(&verbs[0], argc, argv);
	for (size_t i = 1; i < VERBS; i++)
		if (strcmp(argv[1], verbs[i].command->name) == 0)
			return run_verb(&verbs[i], argc - 1, argv + 1);
	mw_process_setup_ignore_write_signals();
	return unknown_verb(argv[1]);
}

int main(int argc, char **argv)
{
	mw_process_setup_guard_descriptors();
	if (argc < 2) {
		mw_cli_print_usage(stderr);
		return MW_STATUS_USAGE;
	}
	if (strcmp(argv[1], MW_WATCHDOG_VERB) == 0)
		return mw_watchdog_main(argc, argv);
	return (int)mw_message_error(run(argc, argv));
}

// SPDX-License-Identifier: MIT
/* main.c: memwatch's commands. */
#include "cli/diff.h"
#include "cli/options.h"
#include "cli/record.h"
#include "cli/report.h"
#include "cli/usage.h"
#include "doctor/doctor.h"
#include "session/message.h"
#include "session/outfile.h"
#include "session/self.h"
#include "session/standby.h"
#include "top/top.h"

#include <stdio.h>
#include <string.h>

/* Without one of these, the command line is that of a recording. */
static const char *const verbs[] = {"diff", "doctor", "report", "top", NULL};

static struct mw_error *unknown_verb(const char *word)
{
	const char *nearest = mw_cli_nearest(word, verbs);
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "there is no command '%.64s'", word);

	if (nearest)
		return mw_error_hint(err, "The nearest is '%s': see 'memwatch %s --help'", nearest, nearest);
	return mw_error_hint(err,
			     "To launch a program, put '--' before it: memwatch -- %.64s; 'memwatch --help' "
			     "tells the rest",
			     word);
}

/* By the same door as reports: a full disk is no success. */
static struct mw_error *print_version(void)
{
	struct mw_outfile *file = NULL;

	MW_TRY(mw_outfile_open("-", &file));
	fputs("memwatch " MEMWATCH_VERSION "\n", mw_outfile_stream(file));
	return mw_outfile_commit(file);
}

static struct mw_error *run_doctor(int argc, char **argv)
{
	struct mw_cli_options options;
	struct mw_error *err;

	MW_TRY(mw_cli_options_parse_doctor(argc, argv, &options));
	if (options.action == MW_CLI_HELP)
		err = mw_cli_give_help(&mw_cli_command_doctor);
	else if (options.action == MW_CLI_VERSION)
		err = print_version();
	else
		err = mw_doctor_run(&options.session, options.clean);
	mw_cli_options_deinit(&options);
	return err;
}

static struct mw_error *run_record(int argc, char **argv)
{
	struct mw_cli_options options;
	struct mw_error *err;

	/* Before all else: a Ctrl-C that comes at once ends the window as any does. */
	mw_self_prepare();
	MW_TRY(mw_cli_options_parse(argc, argv, &options));
	if (options.action == MW_CLI_HELP)
		err = mw_cli_give_help(&mw_cli_command_record);
	else if (options.action == MW_CLI_VERSION)
		err = print_version();
	else
		err = mw_cli_record(&options);
	mw_cli_options_deinit(&options);
	return err;
}

static struct mw_error *run_top(int argc, char **argv)
{
	struct mw_cli_options options;
	struct mw_error *err;

	mw_self_prepare();
	MW_TRY(mw_cli_options_parse_top(argc, argv, &options));
	if (options.action == MW_CLI_HELP)
		err = mw_cli_give_help(&mw_cli_command_top);
	else if (options.action == MW_CLI_VERSION)
		err = print_version();
	else
		err = mw_top_run(&options.session);
	mw_cli_options_deinit(&options);
	return err;
}

static struct mw_error *run(int argc, char **argv)
{
	if (argv[1][0] == '-')
		return run_record(argc, argv);
	if (strcmp(argv[1], "top") == 0)
		return run_top(argc - 1, argv + 1);
	mw_self_ignore_write_signals();
	if (strcmp(argv[1], "doctor") == 0)
		return run_doctor(argc - 1, argv + 1);
	if (strcmp(argv[1], "diff") == 0)
		return mw_cli_diff(argc - 1, argv + 1);
	if (strcmp(argv[1], "report") == 0)
		return mw_cli_report(argc - 1, argv + 1);
	return unknown_verb(argv[1]);
}

int main(int argc, char **argv)
{
	mw_self_guard_descriptors();
	if (argc < 2) {
		mw_cli_print_usage(stderr);
		return MW_STATUS_USAGE;
	}
	if (strcmp(argv[1], MW_STANDBY_VERB) == 0)
		return mw_standby_main(argc, argv);
	return (int)mw_message_error(run(argc, argv));
}

/* SPDX-License-Identifier: MIT */
/* options.h: the command line of a recording, of top and of doctor, as values. */
#ifndef MW_CLI_OPTIONS_H
#define MW_CLI_OPTIONS_H

#include "cli/parse.h"
#include "cli/view_options.h"
#include "session/options.h"

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mw_cli_action {
	MW_CLI_RUN,
	MW_CLI_HELP,
	MW_CLI_VERSION,
};

/* Strings and the command point into argv. */
struct mw_cli_options {
	enum mw_cli_action action;
	struct mw_session_options session;
	bool clean;                      /* doctor: take out what a killed memwatch has left */
	struct mw_cli_view_options view; /* what is asked for beside the report */
};

/* memwatch [options] -- COMMAND, memwatch -p PID: argv[0] is skipped. Errors: USAGE, MEMORY. */
struct mw_error *mw_cli_options_parse(int argc, char **argv, struct mw_cli_options *out) MW_MUST_CHECK;
/* memwatch doctor -p PID: argv[0] ("doctor") is skipped. */
struct mw_error *mw_cli_options_parse_doctor(int argc, char **argv, struct mw_cli_options *out) MW_MUST_CHECK;
/* memwatch top -p PID: argv[0] ("top") is skipped. */
struct mw_error *mw_cli_options_parse_top(int argc, char **argv, struct mw_cli_options *out) MW_MUST_CHECK;
void mw_cli_options_deinit(struct mw_cli_options *options);

#endif

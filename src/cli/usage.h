/* SPDX-License-Identifier: MIT */
/* usage.h: help that was asked for, and what is wrong with an option that argp does not take, in one message. */
#ifndef MW_STATUS_USAGE_H
#define MW_STATUS_USAGE_H

#include "cli/command.h"

#include <memwatch/error.h>

/*
 * argp was told not to print and says only how far it got: `next` is the argument after the bad one,
 * or the bad one itself where it is a cluster of short options. Never NULL; kind USAGE.
 */
struct mw_error *mw_cli_explain_option(const struct mw_cli_command *command, int argc, char *const *argv,
				       int next) MW_MUST_CHECK;

/* What --help prints, to standard output. Errors: SYSTEM; a full disk is no success. */
struct mw_error *mw_cli_give_help(const struct mw_cli_command *command) MW_MUST_CHECK;

#endif

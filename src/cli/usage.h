/* SPDX-License-Identifier: MIT */
/* usage.h: what is wrong with an option that argp does not take, in one message. */
#ifndef MW_CLI_USAGE_H
#define MW_CLI_USAGE_H

#include <memwatch/error.h>

#include <argp.h>

/*
 * argp was told not to print and says only how far it got: `next` is the argument after the bad one,
 * or the bad one itself where it is a cluster of short options. argv[0] is the command whose --help is pointed to, as
 * in "report", or memwatch. Never NULL; kind USAGE.
 */
struct mw_error *mw_cli_explain_option(const struct argp_option *options, int argc, char *const *argv,
				       int next) MW_MUST_CHECK;

#endif

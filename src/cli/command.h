/* SPDX-License-Identifier: MIT */
/*
 * command.h: memwatch's commands and their options, as tables.
 *
 * An option is one row: what argp takes, how its value is parsed and where that goes, what --help prints, the manual
 * page and the shells' completions.
 */
#ifndef MW_CLI_COMMAND_H
#define MW_CLI_COMMAND_H

#include "cli/parse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define MW_CLI_OPTIONS_MAX 32 /* more than any command has */

/* What a shell offers for a value or an operand. */
enum mw_cli_completion {
	MW_COMPLETE_NOTHING,
	MW_COMPLETE_PROCESS, /* ids of processes, with commas between */
	MW_COMPLETE_FILE,
	MW_COMPLETE_DIRECTORY,
	MW_COMPLETE_WORD,  /* one of its words */
	MW_COMPLETE_WORDS, /* some of them, with commas between */
	MW_COMPLETE_COMMAND,
};

struct mw_cli_options;

struct mw_cli_option {
	const char *name; /* mw_cli_formats_…: it stands for a row a format */
	char letter;      /* its short form; 0: it has none */
	enum mw_cli_completion completion;
	const char *value; /* what stands for its value; NULL: it takes none */
	const char *help;  /* lines for --help; NULL: it stands on the next one's line */
	const char *about; /* sentences for the manual */
	const char *words; /* those to complete with, blanks between */
	enum mw_cli_type type;
	size_t member; /* where its value goes, in struct mw_cli_options */
};

/* In the place of a name: the options by which formats of reports are asked for, or those of comparisons. */
extern const char mw_cli_formats_of_reports[], mw_cli_formats_of_diffs[];

struct mw_cli_command {
	const char *name;     /* "": the recording itself */
	const char *summary;  /* a line for a list of commands */
	const char *synopsis; /* lines, each from "memwatch" on */
	const char *help;     /* lines of --help before the options, "" or with an empty line at the end */
	const char *about;    /* paragraphs of the manual, a line each */
	const struct mw_cli_option *options; /* the last one's name is NULL; mw_cli_command_options() */
	const char *notes;                   /* lines of --help and the manual behind the options; NULL: none */
	const char *status;                  /* what its exit status says */
	enum mw_cli_completion operands;
	bool launches; /* what stands behind "--" is a command */
	bool permutes; /* options behind operands are taken before them */
	/* Take an operand. Errors: USAGE. */
	struct mw_error *(*operand)(const struct mw_cli_command *command, struct mw_cli_options *options,
				    const char *word);
	/* All is parsed: what does not go together? Errors: USAGE. */
	struct mw_error *(*check)(const struct mw_cli_command *command, struct mw_cli_options *options);
};

/* Ends with NULL; the first is the one without a name. */
extern const struct mw_cli_command *const mw_cli_commands[];

extern const struct mw_cli_command mw_cli_command_record, mw_cli_command_doctor, mw_cli_command_top,
	mw_cli_command_report, mw_cli_command_diff;

/* A command's options, one a row; the last one's name is NULL. */
const struct mw_cli_option *mw_cli_command_options(const struct mw_cli_command *command);

/* What --help prints; within 80 columns. */
void mw_cli_print_help(const struct mw_cli_command *command, FILE *out);
/* What a command line without anything gets. */
void mw_cli_print_usage(FILE *out);

#endif

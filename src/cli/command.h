/* SPDX-License-Identifier: MIT */
/*
 * command.h: memwatch's commands and their options, as tables.
 *
 * All that is said of an option comes from its one entry: what argp takes, what --help prints, the manual page and the
 * shells' completions.
 */
#ifndef MW_CLI_COMMAND_H
#define MW_CLI_COMMAND_H

#include <argp.h>
#include <stdio.h>

#define MW_CLI_OPTIONS_MAX 32 /* more than any command has */

/* Keys of options that have no short form. */
enum mw_cli_key {
	MW_KEY_ENGINE = 256,
	MW_KEY_TRACK,
	MW_KEY_JSON,
	MW_KEY_HTML,
	MW_KEY_DEPTH,
	MW_KEY_TOP,
	MW_KEY_QUIET,
	MW_KEY_NO_SYMBOLS,
	MW_KEY_MARK_EVERY,
	MW_KEY_MAX_MEMORY,
	MW_KEY_MAX_STOPPED,
	MW_KEY_UNSAFE,
	MW_KEY_CLEAN,
	MW_KEY_FROM,
	MW_KEY_TO,
	MW_KEY_AT,
	MW_KEY_SYMBOLS,
	MW_KEY_KIND,
	MW_KEY_PROCESS,
	MW_KEY_ALL,
	MW_KEY_TYPE,
	MW_KEY_BY,
	MW_KEY_SORT,
	MW_KEY_TREE,
	MW_KEY_FILTER,
	MW_KEY_BLOCKS,
};

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

struct mw_cli_option {
	const char *name;
	int key; /* a character: its short form; from 256 on it has none */
	enum mw_cli_completion completion;
	const char *value; /* what stands for its value; NULL: it takes none */
	const char *help;  /* lines for --help; NULL: it stands on the next one's line */
	const char *about; /* sentences for the manual */
	const char *words; /* those to complete with, blanks between */
};

struct mw_cli_command {
	const char *name;     /* "": the recording itself */
	const char *summary;  /* a line for a list of commands */
	const char *synopsis; /* lines, each from "memwatch" on */
	const char *help;     /* lines of --help before the options, "" or with an empty line at the end */
	const char *about;    /* paragraphs of the manual, a line each */
	const struct mw_cli_option *options; /* the last one's name is NULL */
	const char *notes;                   /* lines of --help and the manual behind the options; NULL: none */
	const char *status;                  /* what its exit status says */
	enum mw_cli_completion operands;
};

/* Ends with NULL; the first is the one without a name. */
extern const struct mw_cli_command *const mw_cli_commands[];

extern const struct mw_cli_command mw_cli_command_record, mw_cli_command_doctor, mw_cli_command_top,
	mw_cli_command_report, mw_cli_command_diff;

/* The table for argp. */
void mw_cli_argp_options(const struct mw_cli_command *command, struct argp_option out[MW_CLI_OPTIONS_MAX + 1]);

/* What --help prints; within 80 columns. */
void mw_cli_print_help(const struct mw_cli_command *command, FILE *out);
/* What a command line without anything gets. */
void mw_cli_print_usage(FILE *out);

#endif

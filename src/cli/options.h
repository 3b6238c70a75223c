/* SPDX-License-Identifier: MIT */
/* options.h: a command line as values: memwatch's commands and their options, as tables, and what they are parsed to. */
#ifndef MW_CLI_OPTIONS_H
#define MW_CLI_OPTIONS_H

#include "session/options.h"
#include "view/views.h"

#include <memwatch/diff.h>

#include <stdbool.h>
#include <stdio.h>

/* --- words to values (parse.c) --------------------------------------------------------------------------------------- */

/* Pure: looks at nothing but its arguments. Every error is of kind USAGE and names the word, what is wrong with it and what
 * would be right. */

/* Longest window: ten years. Shortest: a millisecond. */
#define MW_CLI_NS_MAX   UINT64_C(315360000000000000)
#define MW_CLI_NS_MIN   UINT64_C(1000000)
#define MW_CLI_SIZE_MAX 9e18

/* What an option's value is, and where it goes. */
enum mw_cli_type {
	MW_CLI_TYPE_FLAG,     /* bool: no text */
	MW_CLI_TYPE_SECONDS,  /* uint64_t, ns: seconds, or 500ms, 1m, 1h30m. Exact to the ns, as are moments */
	MW_CLI_TYPE_MOMENT,   /* uint64_t, ns since the window's start: likewise, and 0 is one too */
	MW_CLI_TYPE_SIZE,     /* uint64_t: bytes, or K, M, G or T of them, as in 1.5G */
	MW_CLI_TYPE_PERCENT,  /* uint32_t, millionths: above 0 and below 100 % */
	MW_CLI_TYPE_SHARE,    /* uint32_t, millionths: above 0, 100 % at most */
	MW_CLI_TYPE_OVERLOAD, /* enum mw_overload */
	MW_CLI_TYPE_DEPTH,    /* uint32_t: frames */
	MW_CLI_TYPE_TOP,      /* size_t: stacks */
	MW_CLI_TYPE_PROCESS,  /* uint64_t: a process's place in a recording, from 1 */
	MW_CLI_TYPE_PIDS,     /* struct mw_pids: ids and names of processes, with commas between; appended */
	MW_CLI_TYPE_TRACK,    /* struct mw_session_options: "heap", "vm", "heap,vm" */
	MW_CLI_TYPE_ENGINE,   /* struct mw_session_options: which, and why that one */
	MW_CLI_TYPE_KINDS,    /* bool[MW_KIND_COUNT] */
	MW_CLI_TYPE_FILE,     /* const char *: the name of a file to write to; "-" is one */
	MW_CLI_TYPE_OUTPUT,   /* const char *: likewise, that of a recording; "-" is none */
	MW_CLI_TYPE_TEXT,     /* const char *: anything but nothing */
	MW_CLI_TYPE_FAIL_ON,  /* struct mw_fail_on: one of them is added */
	/* Into an enum mw_cli_action: whatever else stands on the line is not looked at. */
	MW_CLI_TYPE_HELP,
	MW_CLI_TYPE_VERSION,
	/* struct mw_cli_report_options */
	MW_CLI_TYPE_TO,
	MW_CLI_TYPE_AT,
	MW_CLI_TYPE_SYMBOLS,
	/* struct mw_cli_view_options. Errors of a filter: MEMORY, too */
	MW_CLI_TYPE_TYPE,
	MW_CLI_TYPE_BY,
	MW_CLI_TYPE_SORT,
	MW_CLI_TYPE_TREE,
	MW_CLI_TYPE_FILTER,
	MW_CLI_TYPE_BLOCKS,
	MW_CLI_TYPE_FRAMES, /* enum mw_frames */
	/* Of a look at a heap. */
	MW_CLI_TYPE_HEAP_BY, /* unsigned: enum mw_heap_by */
	MW_CLI_TYPE_BITS,    /* uint64_t: hexadecimal */
	MW_CLI_TYPE_LABEL,   /* struct mw_session_options: one more, NAME=VALUE */
	/* Of exports. */
	MW_CLI_TYPE_EXPORT,    /* struct mw_export_wishes: FORMAT:FILE; appended */
	MW_CLI_TYPE_EXPORT_TO, /* struct mw_cli_report_options: a format, or the interval's end */
	MW_CLI_TYPE_MEASURE,   /* enum mw_export_measure */
};

/* `option` is what messages call it, as in "--top"; `member` is where the value goes, untouched on failure. */
struct mw_error *mw_cli_parse(enum mw_cli_type type, const char *option, const char *text, void *member) MW_MUST_CHECK;

/* Is it ids of processes, as -p takes them? */
bool mw_cli_is_pids(const char *word);

/* The one of `words` (ends with NULL) with the fewest edits to `word`, or NULL where none is near. */
const char *mw_cli_nearest(const char *word, const char *const *words);

/* --- what of a recording is shown, and in what order ----------------------------------------------------------------- */

/* Zero-initialise; deinit frees. */
struct mw_cli_view_options {
	struct mw_view_question question; /* complete once finish() has been called */
	struct mw_filter *filter;
	bool has_type, has_sort;
};

/*
 * When all options are in: defaults, and what does not go together. Where something is to be shown but nothing says
 * how, it is stacks. Errors: USAGE.
 */
struct mw_error *mw_cli_view_options_finish(struct mw_cli_view_options *options,
					    const struct mw_session_options *session) MW_MUST_CHECK;
/* Is anything asked for beyond the report? */
bool mw_cli_view_options_any(const struct mw_cli_view_options *options);
void mw_cli_view_options_deinit(struct mw_cli_view_options *options);

/* --- tables ---------------------------------------------------------------------------------------------------------- */

/* An option is one row: its names, how its value is parsed and where that goes, what --help prints, the manual page
 * and the shells' completions. */

#define MW_CLI_OPTIONS_MAX 64 /* more than any command has */

/* What a shell offers for a value or an operand. */
enum mw_cli_completion {
	MW_COMPLETE_NOTHING,
	MW_COMPLETE_PROCESS, /* ids of processes, with commas between */
	MW_COMPLETE_FILE,
	MW_COMPLETE_DIRECTORY,
	MW_COMPLETE_WORD,    /* one of its words */
	MW_COMPLETE_WORDS,   /* some of them, with commas between */
	MW_COMPLETE_COMMAND, /* a program to launch */
	MW_COMPLETE_OWN,     /* one of memwatch's commands */
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

/* In the place of a name: the options by which formats of reports are asked for, or those of comparisons, or of looks at
 * heaps. */
extern const char mw_cli_formats_of_reports[], mw_cli_formats_of_diffs[], mw_cli_formats_of_heaps[];
/* In the place of words and help: those of the formats of exports. */
extern const char mw_cli_formats_of_exports[];

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
	bool takes_one; /* process: not several */
	bool launches;  /* what stands behind "--" is a command */
	bool permutes;  /* options behind operands are taken before them */
	/* Take an operand. Errors: USAGE. */
	struct mw_error *(*operand)(const struct mw_cli_command *command, struct mw_cli_options *options,
				    const char *word);
	/* All is parsed: what does not go together? Errors: USAGE. */
	struct mw_error *(*check)(const struct mw_cli_command *command, struct mw_cli_options *options);
};

/* Ends with NULL; the first is the one without a name. */
extern const struct mw_cli_command *const mw_cli_commands[];

extern const struct mw_cli_command mw_cli_command_record, mw_cli_command_doctor, mw_cli_command_top,
	mw_cli_command_report, mw_cli_command_export, mw_cli_command_diff, mw_cli_command_heap, mw_cli_command_help;

/* A command's options, one a row; the last one's name is NULL. */
const struct mw_cli_option *mw_cli_command_options(const struct mw_cli_command *command);

/* The command of that name, but the one without. Errors: USAGE: there is none. */
struct mw_error *mw_cli_command_find(const char *name, const struct mw_cli_command **out) MW_MUST_CHECK;

/* What --help prints; within 80 columns. */
void mw_cli_print_help(const struct mw_cli_command *command, FILE *out);
/* What a command line without anything gets. */
void mw_cli_print_usage(FILE *out);

/* --- a line ---------------------------------------------------------------------------------------------------------- */

enum mw_cli_action {
	MW_CLI_RUN,
	MW_CLI_HELP,
	MW_CLI_VERSION,
};

#define MW_CLI_SYMBOLS_MAX 16

struct mw_cli_report_options {
	const char *recording;
	struct mw_pids pids;                     /* the processes that are reported; none: all */
	uint64_t from_ns, to_ns;                 /* to_ns UINT64_MAX: the window's end */
	bool has_to;                             /* --to was given */
	bool at_peak;                            /* what was outstanding when most was */
	bool at_moment;                          /* to_ns is a moment that must lie in the window */
	const char *symbols[MW_CLI_SYMBOLS_MAX]; /* directories */
	size_t symbols_count;
	const struct mw_export_format *format; /* of memwatch export … */
	const char *export;                    /* … and its file; NULL: standard output */
};

struct mw_cli_diff_options {
	const char *files[MW_DIFF_SIDES];
	bool single;                        /* one recording at two moments: both names are it */
	const char *moments[MW_DIFF_SIDES]; /* as mw_cli_moment_find() has them; NULL: none was named */
	bool kinds[MW_KIND_COUNT];
	uint64_t process; /* from 1; 0: all */
	size_t top;       /* SIZE_MAX: all */
	bool all;
};

struct mw_cli_heap_options {
	unsigned by; /* enum mw_heap_by; 0: not given */
	uint64_t tag_bits;
	bool no_fork, holders;
	size_t show; /* samples of a group */
};

/* Of all commands; a command sets what it has options for. Strings and the command to launch point into argv. */
struct mw_cli_options {
	enum mw_cli_action action;
	bool dashes;                       /* "--" was there */
	struct mw_session_options session; /* of report and diff as well: what is written, and where to */
	bool clean;                        /* doctor: take out what a killed memwatch has left */
	struct mw_cli_view_options view;   /* what is asked for beside the report */
	struct mw_cli_report_options report;
	struct mw_cli_diff_options diff;
	struct mw_cli_heap_options heap;
	const struct mw_cli_command *help_of; /* the command that help is asked of; NULL: none is named */
};

/* argv[0] is skipped. Errors: USAGE, MEMORY; `out` is untouched then. */
struct mw_error *mw_cli_options_parse(const struct mw_cli_command *command, int argc, char **argv,
				      struct mw_cli_options *out) MW_MUST_CHECK;
void mw_cli_options_deinit(struct mw_cli_options *options);

#endif

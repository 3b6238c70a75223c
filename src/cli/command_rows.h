/* SPDX-License-Identifier: MIT */
/* command_rows.h: options that several commands take, each a row of a table (command.h). */
#ifndef MW_CLI_COMMAND_ROWS_H
#define MW_CLI_COMMAND_ROWS_H

#include "cli/command.h"
#include "cli/options.h"

#include <stddef.h>

/* Where a value goes. */
#define MW_CLI_AT(member) offsetof(struct mw_cli_options, member)

/* Of commands that look at one process, and take no operands (struct mw_cli_command). */
struct mw_error *mw_cli_check_one(const struct mw_cli_command *command, struct mw_cli_options *options) MW_MUST_CHECK;
struct mw_error *mw_cli_refuse_operand(const struct mw_cli_command *command, struct mw_cli_options *options,
				       const char *word) MW_MUST_CHECK;

#define MW_CLI_ENGINES "auto jump trap"
#define MW_CLI_KINDS   "heap vm"
#define MW_CLI_COLUMNS "process kind heap type thread module function stack size api"

#define MW_CLI_TRACK(help, about)                                                                                      \
	{                                                                                                              \
		"track", 0, MW_COMPLETE_WORDS, "heap,vm", help, about, MW_CLI_KINDS, mw_cli_parse_track,               \
			MW_CLI_AT(session)                                                                             \
	}

/* `does`: "record" or "watch". */
#define MW_CLI_TRACK_TO(does)                                                                                          \
	MW_CLI_TRACK("kinds of memory: malloc and new, mmap and brk\n",                                                \
		     "The kinds of memory to " does                                                                    \
		     ": heap is malloc's family and C++'s operators, vm is mmap, munmap, "                             \
		     "mremap, brk and sbrk where the allocator itself does not call them. Both are the default.")

#define MW_CLI_ENGINE(help, about)                                                                                     \
	{                                                                                                              \
		"engine", 0, MW_COMPLETE_WORD, "auto|jump|trap", help, about, MW_CLI_ENGINES, mw_cli_parse_engine,     \
			MW_CLI_AT(session)                                                                             \
	}

#define MW_CLI_UNSAFE                                                                                                  \
	{                                                                                                              \
		"unsafe", 0, MW_COMPLETE_NOTHING, NULL, "attach even if SIGKILL of memwatch may end it\n",             \
			"Attach even where the process might end if memwatch is killed (SIGKILL): where the handler "  \
			"that keeps it alive can't be installed in it.",                                               \
			NULL, mw_cli_parse_flag, MW_CLI_AT(session.unsafe)                                             \
	}

#define MW_CLI_MAX_STOPPED(about)                                                                                      \
	{                                                                                                              \
		"max-stopped", 0, MW_COMPLETE_NOTHING, "PCT", "detach if paused longer than PCT (engine trap)\n",      \
			about, NULL, mw_cli_parse_percent, MW_CLI_AT(session.max_stopped)                              \
	}

/* `help` is NULL where the next option's line tells of it. */
#define MW_CLI_DEPTH(help)                                                                                             \
	{                                                                                                              \
		"depth", 0, MW_COMPLETE_NOTHING, "N", help,                                                            \
			"The most frames that are recorded of a stack; 128 by default. A deeper stack is marked as "   \
			"truncated.",                                                                                  \
			NULL, mw_cli_parse_depth, MW_CLI_AT(session.depth)                                             \
	}

#define MW_CLI_TOP(help)                                                                                               \
	{                                                                                                              \
		"top", 0, MW_COMPLETE_NOTHING, "N", help, "How many stacks the text report shows; 10 by default.",     \
			NULL, mw_cli_parse_top, MW_CLI_AT(session.top)                                                 \
	}

/* A row for each format of reports. */
#define MW_CLI_REPORTS                                                                                                 \
	{                                                                                                              \
		mw_cli_formats_of_reports, 0, MW_COMPLETE_FILE, "FILE", NULL, NULL, NULL, mw_cli_parse_file,           \
			MW_CLI_AT(session.files)                                                                       \
	}

#define MW_CLI_QUIET                                                                                                   \
	{                                                                                                              \
		"quiet", 0, MW_COMPLETE_NOTHING, NULL, "no progress, no text report\n",                                \
			"No progress, no text report.", NULL, mw_cli_parse_flag, MW_CLI_AT(session.quiet)              \
	}

#define MW_CLI_HELP(help)                                                                                              \
	{                                                                                                              \
		"help", 'h', MW_COMPLETE_NOTHING, NULL, help, "A summary of the options.", NULL, mw_cli_parse_help,    \
			MW_CLI_AT(action)                                                                              \
	}

#define MW_CLI_VERSION                                                                                                 \
	{                                                                                                              \
		"version", 'V', MW_COMPLETE_NOTHING, NULL, "", "memwatch's version.", NULL, mw_cli_parse_version,      \
			MW_CLI_AT(action)                                                                              \
	}

#define MW_CLI_END                                                                                                     \
	{                                                                                                              \
		NULL, 0, MW_COMPLETE_NOTHING, NULL, NULL, NULL, NULL, NULL, 0                                          \
	}

#endif

/* SPDX-License-Identifier: MIT */
/* command_rows.h: options that several commands take, each a row of a table (command.h). */
#ifndef MW_CLI_COMMAND_ROWS_H
#define MW_CLI_COMMAND_ROWS_H

#include "cli/command.h"

#include <stddef.h>

#define MW_CLI_ENGINES "auto jump trap"
#define MW_CLI_KINDS   "heap vm"
#define MW_CLI_COLUMNS "process kind heap type thread module function stack size api"

#define MW_CLI_TRACK(help, about)                                                                                      \
	{                                                                                                              \
		"track", MW_KEY_TRACK, MW_COMPLETE_WORDS, "heap,vm", help, about, MW_CLI_KINDS                         \
	}

/* `does`: "record" or "watch". */
#define MW_CLI_TRACK_TO(does)                                                                                          \
	MW_CLI_TRACK("kinds of memory: malloc and new, mmap and brk\n",                                                \
		     "The kinds of memory to " does                                                                    \
		     ": heap is malloc's family and C++'s operators, vm is mmap, munmap, "                             \
		     "mremap, brk and sbrk where the allocator itself does not call them. Both are the default.")

#define MW_CLI_ENGINE(help, about)                                                                                     \
	{                                                                                                              \
		"engine", MW_KEY_ENGINE, MW_COMPLETE_WORD, "auto|jump|trap", help, about, MW_CLI_ENGINES               \
	}

#define MW_CLI_UNSAFE                                                                                                  \
	{                                                                                                              \
		"unsafe", MW_KEY_UNSAFE, MW_COMPLETE_NOTHING, NULL,                                                    \
			"even where it may not outlive a killed memwatch\n",                                           \
			"Watch also where the process might not outlive memwatch's being killed (SIGKILL): where the " \
			"handler that keeps it alive can't be put into it.",                                           \
			NULL                                                                                           \
	}

#define MW_CLI_MAX_STOPPED(about)                                                                                      \
	{                                                                                                              \
		"max-stopped", MW_KEY_MAX_STOPPED, MW_COMPLETE_NOTHING, "PCT",                                         \
			"detach from what is paused for longer (engine trap)\n", about, NULL                           \
	}

/* `help` is NULL where the next option's line tells of it. */
#define MW_CLI_DEPTH(help)                                                                                             \
	{                                                                                                              \
		"depth", MW_KEY_DEPTH, MW_COMPLETE_NOTHING, "N", help,                                                 \
			"The deepest stack that is kept, in frames; 128 by default. A stack that was cut is marked "   \
			"as truncated.",                                                                               \
			NULL                                                                                           \
	}

#define MW_CLI_TOP(help)                                                                                               \
	{                                                                                                              \
		"top", MW_KEY_TOP, MW_COMPLETE_NOTHING, "N", help,                                                     \
			"How many stacks the text report shows; 10 by default.", NULL                                  \
	}

#define MW_CLI_JSON                                                                                                    \
	{                                                                                                              \
		"json", MW_KEY_JSON, MW_COMPLETE_FILE, "FILE", "the whole report as JSON; '-' is standard output\n",   \
			"Write the whole report as JSON; '-' is standard output.", NULL                                \
	}

#define MW_CLI_HTML                                                                                                    \
	{                                                                                                              \
		"html", MW_KEY_HTML, MW_COMPLETE_FILE, "FILE", "a page to look at in a browser; '-' as above\n",       \
			"Write a page that shows the report in any browser, and needs nothing else: timeline, flame "  \
			"graph, tables, suspects, and any interval of them. '-' is standard output.",                  \
			NULL                                                                                           \
	}

#define MW_CLI_QUIET                                                                                                   \
	{                                                                                                              \
		"quiet", MW_KEY_QUIET, MW_COMPLETE_NOTHING, NULL, "no progress, no text report\n",                     \
			"No progress, no text report.", NULL                                                           \
	}

#define MW_CLI_HELP(help)                                                                                              \
	{                                                                                                              \
		"help", 'h', MW_COMPLETE_NOTHING, NULL, help, "A summary of the options.", NULL                        \
	}

#define MW_CLI_VERSION                                                                                                 \
	{                                                                                                              \
		"version", 'V', MW_COMPLETE_NOTHING, NULL, "", "memwatch's version.", NULL                             \
	}

#define MW_CLI_END                                                                                                     \
	{                                                                                                              \
		NULL, 0, MW_COMPLETE_NOTHING, NULL, NULL, NULL, NULL                                                   \
	}

#endif

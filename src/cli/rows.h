/* SPDX-License-Identifier: MIT */
/* rows.h: rows that several of the tables of options have (options.h). */
#ifndef MW_CLI_ROWS_H
#define MW_CLI_ROWS_H

#include "cli/options.h"

#include <stddef.h>

/* A row: name, letter, what completes its value, the value, help, about, words, its type, and where it goes. */
#define MW_CLI_OPTION(name, letter, complete, value, help, about, words, type, member)                                 \
	{                                                                                                              \
		name, letter, MW_COMPLETE_##complete, value, help, about, words, MW_CLI_TYPE_##type,                   \
			offsetof(struct mw_cli_options, member)                                                        \
	}

#define MW_CLI_COLUMNS "process kind heap type thread module function line language stack size api"

#define MW_CLI_TOP(help)                                                                                               \
	MW_CLI_OPTION("top", 0, NOTHING, "N", help, "How many stacks the text report shows; 10 by default.", NULL,     \
		      TOP, session.top)

#define MW_CLI_ALL(help)                                                                                               \
	MW_CLI_OPTION("all", 0, NOTHING, NULL, help,                                                                   \
		      "Everything in the text report: also memory and address space, modules, every stack that is "    \
		      "not freed and those that are, and frames of C++'s standard library.",                           \
		      NULL, FLAG, session.all)

#define MW_CLI_FRAMES(help)                                                                                            \
	MW_CLI_OPTION("frames", 0, WORD, "all|own|script", help,                                                       \
		      "Which frames of a stack are shown, in the text, trees and pages: all; own, where those of an "  \
		      "interpreter itself are one line; or script, those of scripts alone (of a stack that has none, " \
		      "as own). own by default; all with --all, and in diff.",                                         \
		      "all own script", FRAMES, session.frames)

/* A row for each format of reports. */
#define MW_CLI_REPORTS MW_CLI_OPTION(mw_cli_formats_of_reports, 0, FILE, "FILE", NULL, NULL, NULL, FILE, session.files)

/* Its help stands on the line of the option behind it. */
#define MW_CLI_FORCE(help)                                                                                             \
	MW_CLI_OPTION(                                                                                                 \
		"force", 0, NOTHING, NULL, help,                                                                       \
		"Replace files that are there already, whatever they hold. Without it memwatch replaces a file only "  \
		"with what it holds already: a recording with a recording, a report with one in the same form.",       \
		NULL, FLAG, session.force)

/* Exports beside a report. */
#define MW_CLI_EXPORT(help)                                                                                            \
	MW_CLI_OPTION("export", 0, NOTHING, "FORMAT:FILE", help,                                                       \
		      "Write an export for another program as well, as memwatch export does; '-' is standard output. " \
		      "May be given several times.",                                                                   \
		      NULL, EXPORT, session.exports)

#define MW_CLI_MEASURES "inuse_space inuse_objects alloc_space alloc_objects"

#define MW_CLI_MEASURE(help)                                                                                           \
	MW_CLI_OPTION("measure", 0, WORD, "MEASURE", help,                                                             \
		      "What an export shows that has room for one figure (collapsed): inuse_space, the bytes that "    \
		      "were not freed, which is the default; inuse_objects, their blocks; alloc_space and "            \
		      "alloc_objects, all that was allocated.",                                                        \
		      MW_CLI_MEASURES, MEASURE, session.exports.measure)

#define MW_CLI_QUIET(help)                                                                                             \
	MW_CLI_OPTION("quiet", 0, NOTHING, NULL, help, "No progress, no text report.", NULL, FLAG, session.quiet)

#define MW_CLI_HELP(help)                                                                                              \
	MW_CLI_OPTION("help", 'h', NOTHING, NULL, help, "A summary of the options.", NULL, HELP, action)

#define MW_CLI_VERSION                                                                                                 \
	MW_CLI_OPTION("version", 'V', NOTHING, NULL, "", "memwatch's version, and what is linked in.", NULL, VERSION,  \
		      action)

#define MW_CLI_FAIL_ON(help)                                                                                           \
	MW_CLI_OPTION(                                                                                                 \
		"fail-on", 0, WORD, "leak|growth[:RATE]", help,                                                        \
		"End with status 3, and a line that says why, where this holds. leak: a line leaks, or blocks "        \
		"of it are lost (LEAK and LOST in the text report). growth: a line leaks or is a container or "        \
		"runtime's heap that grows (GROWS, too); with a rate, where it is faster than so many bytes an "       \
		"hour: K, M, G and T are units. With a rate it also holds where all lines that grow are faster "       \
		"together, or the process's RSS rises by more in each quarter of the window. Both may be given. "      \
		"See EXIT STATUS for windows of which not all is known.",                                              \
		"leak growth", FAIL_ON, session.fail_on)

#endif

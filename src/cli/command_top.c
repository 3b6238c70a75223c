// SPDX-License-Identifier: MIT
/* command_top.c: the options of top (command.h). */
#include "cli/command.h"

#include <stddef.h>

static const struct mw_cli_option top_options[] = {
	{"pid", 'p', MW_COMPLETE_PROCESS, "PID", "the process\n", "The process to watch, all its threads.", NULL},
	{"duration", 'd', MW_COMPLETE_NOTHING, "SECONDS", "let go of it after so long; else when quit\n",
	 "Let go of the process after so many seconds, fractions allowed; the last table stays until it is quit. "
	 "Without it the window ends when top is quit, or with the process.",
	 NULL},
	{"track", MW_KEY_TRACK, MW_COMPLETE_WORDS, "heap,vm", "kinds of memory: malloc and new, mmap and brk\n",
	 "The kinds of memory to watch: heap is malloc's family and C++'s operators, vm is mmap, munmap, mremap, brk "
	 "and sbrk where the allocator itself does not call them. Both are the default.",
	 "heap vm"},
	{"engine", MW_KEY_ENGINE, MW_COMPLETE_WORD, "auto|jump|trap", "how calls are caught (default: auto)\n",
	 "How calls are caught, as for a recording; auto by default.", "auto jump trap"},
	{"unsafe", MW_KEY_UNSAFE, MW_COMPLETE_NOTHING, NULL, "even where it may not outlive a killed memwatch\n",
	 "Watch also where the process might not outlive memwatch's being killed (SIGKILL).", NULL},
	{"output", 'o', MW_COMPLETE_FILE, "FILE", "keep a recording of all of it\n",
	 "Keep a recording from the begin to the end. Without it the key w writes one of what was seen until then.",
	 NULL},
	{"max-memory", MW_KEY_MAX_MEMORY, MW_COMPLETE_NOTHING, "SIZE",
	 "let go when memwatch has so much (as in 500M)\n",
	 "Let go of the process when memwatch itself has so many bytes, or K, M, G or T of them.", NULL},
	{"max-stopped", MW_KEY_MAX_STOPPED, MW_COMPLETE_NOTHING, "PCT",
	 "let go of what stands still longer (engine trap)\n",
	 "With engine trap, let go of the process when it has stood still for more than this share of five seconds.",
	 NULL},
	{"depth", MW_KEY_DEPTH, MW_COMPLETE_NOTHING, "N", "frames kept of a stack (default: 128)\n",
	 "The deepest stack that is kept, in frames; 128 by default. A stack that was cut is marked as truncated.",
	 NULL},
	{"help", 'h', MW_COMPLETE_NOTHING, NULL, NULL, "A summary of the options.", NULL},
	{"version", 'V', MW_COMPLETE_NOTHING, NULL, "", "memwatch's version.", NULL},
	{NULL, 0, MW_COMPLETE_NOTHING, NULL, NULL, NULL, NULL},
};

const struct mw_cli_command mw_cli_command_top = {
	.name = "top",
	.summary = "a live table of what is not freed",
	.synopsis = "memwatch top -p PID [OPTION...]\n",
	.help = "Watch a process, and show each second what it has allocated since the attach and\n"
		"not freed, and how fast that grows: by stack, module or thread. Key h tells of\n"
		"the keys, q lets go of the process and quits.\n"
		"\n",
	.about =
		"Watches a process, and shows each second what it has allocated since the attach and not freed, and "
		"how fast that grows: by stack, module or thread, sorted as you like, a stack with its frames where it "
		"is opened. Growth and rates are those of the last ten seconds.\n"
		"Key h tells of the keys. z sets a new zero point: what is shown then was allocated after it. p pauses "
		"the display, not the recording. w writes a recording of all that was seen until then, for report and "
		"diff. q, Ctrl-C, SIGTERM and SIGHUP let go of the process and end top.\n"
		"What was seen is kept in a file without a name in TMPDIR, or /var/tmp, of at most 8 GiB and a quarter "
		"of what is free there, and is gone when top ends; with -o it is kept in that file.",
	.options = top_options,
	.notes = NULL,
	.status = "0 watched, 1 not (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_NOTHING,
};

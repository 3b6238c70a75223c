// SPDX-License-Identifier: MIT
/* command_top.c: the options of top (command.h). */
#include "cli/command_rows.h"

static const struct mw_cli_option top_options[] = {
	{"pid", 'p', MW_COMPLETE_PROCESS, "PID", "the process\n", "The process to watch, all its threads.", NULL,
	 mw_cli_parse_pids, MW_CLI_AT(session.pids)},
	{"duration", 'd', MW_COMPLETE_NOTHING, "SECONDS", "detach after this long (default: when you quit)\n",
	 "Detach from the process after this many seconds, fractions allowed; the last table stays until you quit. "
	 "Without it the window ends when you quit, or when the process ends.",
	 NULL, mw_cli_parse_seconds, MW_CLI_AT(session.duration_ns)},
	MW_CLI_TRACK_TO("watch"),
	MW_CLI_ENGINE("how to hook the allocator (default: auto)\n",
		      "How the allocator is hooked, as for a recording; auto by default."),
	MW_CLI_UNSAFE,
	{"output", 'o', MW_COMPLETE_FILE, "FILE", "write a recording of the whole session\n",
	 "Write a recording of the whole session. Without it the key w writes one of what was seen so far.", NULL,
	 mw_cli_parse_output, MW_CLI_AT(session.output)},
	{"max-memory", 0, MW_COMPLETE_NOTHING, "SIZE", "detach when memwatch uses more (500M)\n",
	 "Detach from the process when memwatch itself uses more than this many bytes; K, M, G and T are units.", NULL,
	 mw_cli_parse_size, MW_CLI_AT(session.max_memory)},
	MW_CLI_MAX_STOPPED("With engine trap, detach from the process when it has been paused for more than this "
			   "share of five seconds."),
	MW_CLI_DEPTH("frames per stack (default: 128)\n"),
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_top = {
	.name = "top",
	.summary = "a live table of what is not freed",
	.synopsis = "memwatch top -p PID [OPTION...]\n",
	.help = "Watch a process, and show each second what it has allocated since the attach and\n"
		"not freed, and how fast that grows: by stack, module or thread. Key h shows the\n"
		"keys, q detaches from the process and quits.\n\n",
	.about = "Watches a process, and shows each second what it has allocated since the attach and not freed, and "
		 "how fast that grows: by stack, module or thread, sorted as you like, a stack with its frames where "
		 "it is opened. Growth and rates are those of the last ten seconds.\n"
		 "Key h shows the keys. z sets a new zero point: what is shown then was allocated after it. p "
		 "pauses the display, not the recording. w writes a recording of all that was seen until then, for "
		 "report and diff. q, Ctrl-C, SIGTERM and SIGHUP detach from the process and end top.\n"
		 "What was seen is kept in a file without a name in TMPDIR, or /var/tmp, of at most 8 GiB and a "
		 "quarter of what is free there, and is gone when top ends; with -o it is kept in that file.",
	.options = top_options,
	.notes = NULL,
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_NOTHING,
	.operand = mw_cli_refuse_operand,
	.check = mw_cli_check_one,
};

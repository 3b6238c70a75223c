// SPDX-License-Identifier: MIT
/* command_record.c: the options of a recording and of doctor (command.h). */
#include "cli/command_rows.h"

static const struct mw_cli_option record_options[] = {
	{"pid", 'p', MW_COMPLETE_PROCESS, "PID[,PID...]", "watch these processes, all their threads\n",
	 "Attach to these processes, several with commas between, and watch all their threads. What a process forks "
	 "is not watched.",
	 NULL},
	{"duration", 'd', MW_COMPLETE_NOTHING, "SECONDS", "how long; else until Ctrl-C, or the process's end\n",
	 "The length of the window; fractions are allowed. Without it the window ends with Ctrl-C, SIGTERM, or the "
	 "end of the process.",
	 NULL},
	MW_CLI_TRACK_TO("record"),
	MW_CLI_ENGINE("calls are caught by code in the process, or by\n"
		      "breakpoints; auto takes jump wherever it is safe\n",
		      "How calls are caught. jump leads them to a recorder inside the process, and is some hundred "
		      "times quicker; trap plants breakpoints and stops the process at each. auto takes jump wherever "
		      "it is safe, and says why where it is not."),
	MW_CLI_UNSAFE,
	{"output", 'o', MW_COMPLETE_FILE, "FILE", "keep a recording\n",
	 "Keep a recording of the window, for report and diff. By convention its name ends in .mw. It is written as "
	 "the window goes, and good up to where it was cut off by whatever happens.",
	 NULL},
	{"no-symbols", MW_KEY_NO_SYMBOLS, MW_COMPLETE_NOTHING, NULL, "... without names\n",
	 "Leave the names of functions, files and lines out of the recording; report --symbols finds them by build-id.",
	 NULL},
	{"mark-every", MW_KEY_MARK_EVERY, MW_COMPLETE_NOTHING, "SECONDS",
	 "... with marks to compare; SIGUSR1 makes one too\n",
	 "Put a mark into the recording every so often, for diff to compare. SIGUSR1 sent to memwatch makes one at "
	 "any time.",
	 NULL},
	{"max-memory", MW_KEY_MAX_MEMORY, MW_COMPLETE_NOTHING, "SIZE",
	 "end the window when memwatch uses so much (500M)\n",
	 "End the window and report what there is when memwatch itself uses so many bytes, or K, M, G or T of them.",
	 NULL},
	MW_CLI_MAX_STOPPED("With engine trap, end the window when the process has been paused for more than this "
			   "share of five seconds."),
	MW_CLI_DEPTH(NULL),
	MW_CLI_TOP("frames kept of a stack (128), stacks in the text (10)\n"),
	MW_CLI_JSON,
	MW_CLI_HTML,
	MW_CLI_QUIET,
#define HELP(own, brief) brief
#include "cli/view_rows.inc"
#undef HELP
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_record = {
	.name = "",
	.summary = "find what a running process allocates and does not free",
	.synopsis = "memwatch -p PID[,PID...] [-d SECONDS] [OPTION...]   watch what runs\n"
		    "memwatch [OPTION...] -- COMMAND [ARG...]            launch and watch\n",
	.help = "",
	.about = "memwatch attaches to a running process, records what it allocates and frees for a while, detaches "
		 "without a trace, and reports what was allocated meanwhile and never freed: by which stack, thread "
		 "and module. The process needs no preparation and no restart, and runs on whatever happens to "
		 "memwatch.\n"
		 "A block that was allocated inside the window and not freed by its end is called impacting; one that "
		 "was freed, transient.",
	.options = record_options,
	.notes = NULL,
	.status = "0 recorded and written, 1 not (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_COMMAND,
};

static const struct mw_cli_option doctor_options[] = {
	{"pid", 'p', MW_COMPLETE_PROCESS, "PID", "the process\n", "The process to look at.", NULL},
	MW_CLI_TRACK("kinds of memory to look for (default: both)\n",
		     "The kinds of memory to look for; both by default."),
	MW_CLI_ENGINE("how calls would be caught (default: auto)\n", "How calls would be caught; auto by default."),
	{"clean", MW_KEY_CLEAN, MW_COMPLETE_NOTHING, NULL,
	 "only take out what a memwatch that was killed has\n"
	 "left in it\n",
	 "Only take out of the process what a memwatch that was killed has left in it.", NULL},
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_doctor = {
	.name = "doctor",
	.summary = "can a process be watched, and how?",
	.synopsis = "memwatch doctor -p PID [--track heap,vm] [--clean]\n",
	.help = "Look at a process without touching it, and tell whether and how memwatch can\n"
		"watch it: what may stand in the way, what memwatch may do here, the allocator\n"
		"functions that would be hooked, those that would not and why, and of which\n"
		"modules debug information is missing, with the commands that install it.\n"
		"\n",
	.about = "Looks at a process without touching it, and tells whether and how memwatch can watch it: what may "
		 "stand in the way, what memwatch may do here, the allocator functions that would be hooked, those "
		 "that would not and why, and of which modules debug information is missing, with the commands that "
		 "install it.",
	.options = doctor_options,
	.notes = NULL,
	.status = "0 it can be watched, 1 it can't (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_NOTHING,
};

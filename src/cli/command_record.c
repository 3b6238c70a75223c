// SPDX-License-Identifier: MIT
/* command_record.c: the options of a recording and of doctor (command.h). */
#include "cli/command_rows.h"
#include "session/outputs.h"

static struct mw_error *check_record(const struct mw_cli_command *command, struct mw_cli_options *all)
{
	const struct mw_session_options *options = &all->session;
	struct mw_error *err;

	(void)command;
	if (all->dashes && (!options->command || !options->command[0][0])) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "the command after '--' is empty");
		return mw_error_hint(err, "Name a program and its arguments, as in: memwatch -- ls -l");
	}
	if (!options->output &&
	    ((options->mark_every_ns && !mw_outputs_want_timelines(options)) || options->no_symbols)) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "--%s needs a recording, and none is written",
				      options->no_symbols ? "no-symbols" : "mark-every");
		return mw_error_hint(err, "Name its file by -o, as in -o leak.mw");
	}
	if (options->command && options->pids.count) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "both -p and a command to launch ('%.64s') are given",
				      options->command[0]);
		return mw_error_hint(err, "memwatch watches one or the other: leave one out");
	}
	if (!options->command && !options->pids.count) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "nothing to watch");
		return mw_error_hint(err, "Give a process by -p PID, or a command to launch after '--'");
	}
	return mw_cli_view_options_finish(&all->view, options->top);
}

static const struct mw_cli_option record_options[] = {
	{"pid", 'p', MW_COMPLETE_PROCESS, "PID[,PID...]", "attach to these processes, with all their threads\n",
	 "Attach to these processes, separated by commas, and watch all their threads. What a process forks "
	 "is not watched.",
	 NULL, mw_cli_parse_pids, MW_CLI_AT(session.pids)},
	{"duration", 'd', MW_COMPLETE_NOTHING, "SECONDS", "length of the window (until Ctrl-C, or the exit)\n",
	 "The length of the window; fractions are allowed. Without it the window ends with Ctrl-C, SIGTERM, or the "
	 "end of the process.",
	 NULL, mw_cli_parse_seconds, MW_CLI_AT(session.duration_ns)},
	MW_CLI_TRACK_TO("record"),
	MW_CLI_ENGINE("hook by jumps to a recorder in the process, or by\n"
		      "breakpoints; auto takes jump wherever it is safe\n",
		      "How the allocator is hooked. jump redirects its functions to a recorder inside the process, and "
		      "is some hundred times faster; trap plants breakpoints and stops the process at each. auto takes "
		      "jump wherever "
		      "it is safe, and says why where it is not."),
	MW_CLI_UNSAFE,
	{"output", 'o', MW_COMPLETE_FILE, "FILE", "write a recording\n",
	 "Write a recording of the window, for report and diff. By convention its name ends in .mw. It is written "
	 "during the window, and can be read up to where it was cut off, whatever happens.",
	 NULL, mw_cli_parse_output, MW_CLI_AT(session.output)},
	{"no-symbols", 0, MW_COMPLETE_NOTHING, NULL, "... without symbol names\n",
	 "Leave the names of functions, files and lines out of the recording; report --symbols finds them by build-id.",
	 NULL, mw_cli_parse_flag, MW_CLI_AT(session.no_symbols)},
	{"mark-every", 0, MW_COMPLETE_NOTHING, "SECONDS", "... with periodic marks for diff (SIGUSR1: one now)\n",
	 "Add a mark to the recording at this interval, for diff to compare. SIGUSR1 sent to memwatch adds one at any "
	 "time.",
	 NULL, mw_cli_parse_mark_every, MW_CLI_AT(session.mark_every_ns)},
	{"max-memory", 0, MW_COMPLETE_NOTHING, "SIZE", "end the window when memwatch uses more (500M)\n",
	 "End the window and report what there is when memwatch itself uses more than this many bytes; K, M, G and T "
	 "are units.",
	 NULL, mw_cli_parse_size, MW_CLI_AT(session.max_memory)},
	MW_CLI_MAX_STOPPED("With engine trap, end the window when the process was paused for more than this share of "
			   "the last five seconds."),
	MW_CLI_DEPTH(NULL),
	MW_CLI_TOP("frames per stack (128), stacks in the text (10)\n"),
	MW_CLI_REPORTS,
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
	.synopsis = "memwatch -p PID[,PID...] [-d SECONDS] [OPTION...]   watch a process\n"
		    "memwatch [OPTION...] -- COMMAND [ARG...]            launch and watch\n",
	.help = "",
	.about = "memwatch attaches to a running process, records what it allocates and frees for a while, detaches "
		 "without a trace, and reports what was allocated in that time and never freed: by which stack, thread "
		 "and module. The process needs no preparation and no restart, and keeps running whatever happens to "
		 "memwatch.\n"
		 "A block that was allocated inside the window and not freed by its end is called impacting; one that "
		 "was freed, transient.",
	.options = record_options,
	.notes = NULL,
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_COMMAND,
	.launches = true,
	.operand = mw_cli_refuse_operand,
	.check = check_record,
};

struct mw_error *mw_cli_check_one(const struct mw_cli_command *command, struct mw_cli_options *options)
{
	size_t count = options->session.pids.count;
	struct mw_error *err;

	if (count == 1)
		return NULL;
	err = mw_error_create(MW_ERROR_USAGE, 0, "%s takes one process, and %s given", command->name,
			      count ? "several are" : "none is");
	return mw_error_hint(err, "Name it by -p, as in: memwatch %s -p 1234", command->name);
}

struct mw_error *mw_cli_refuse_operand(const struct mw_cli_command *command, struct mw_cli_options *options,
				       const char *word)
{
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "unexpected argument '%.64s'", word);

	(void)options;
	if (command->launches)
		return mw_error_hint(err, "Put '--' before a command to launch, as in: memwatch -- %.64s", word);
	return mw_error_hint(err, "Give the process by -p, as in: memwatch %s -p 1234", command->name);
}

static const struct mw_cli_option doctor_options[] = {
	{"pid", 'p', MW_COMPLETE_PROCESS, "PID", "the process\n", "The process to look at.", NULL, mw_cli_parse_pids,
	 MW_CLI_AT(session.pids)},
	MW_CLI_TRACK("kinds of memory to look for (default: both)\n",
		     "The kinds of memory to look for; both by default."),
	MW_CLI_ENGINE("how to hook the allocator (default: auto)\n",
		      "How the allocator would be hooked; auto by default."),
	{"clean", 0, MW_COMPLETE_NOTHING, NULL, "only remove what a killed memwatch left in it\n",
	 "Only remove from the process what a killed memwatch left in it.", NULL, mw_cli_parse_flag, MW_CLI_AT(clean)},
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_doctor = {
	.name = "doctor",
	.summary = "check how a process can be watched",
	.synopsis = "memwatch doctor -p PID [--track heap,vm] [--clean]\n",
	.help = "Inspect a process without touching it, and report whether and how memwatch can\n"
		"watch it: what could prevent it, what memwatch is permitted to do, the allocator\n"
		"functions that would be hooked, those that would not and why, and the modules\n"
		"without debug information, with the commands that install it.\n\n",
	.about =
		"Inspects a process without touching it, and reports whether and how memwatch can watch it: what could "
		"prevent it, what memwatch is permitted to do, the allocator functions that would be hooked, those "
		"that would not and why, and the modules without debug information, with the commands that install it.",
	.options = doctor_options,
	.notes = NULL,
	.status = "0 it can be watched, 1 it can't (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_NOTHING,
	.operand = mw_cli_refuse_operand,
	.check = mw_cli_check_one,
};

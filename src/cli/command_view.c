// SPDX-License-Identifier: MIT
/* command_view.c: the options of report and diff (command.h). */
#include "cli/command_rows.h"

static const struct mw_cli_option report_options[] = {
	{"from", MW_KEY_FROM, MW_COMPLETE_NOTHING, "SECONDS", "the interval's begin, since the window's (default: 0)\n",
	 "Where the interval begins that is looked at, in seconds since the window's start; 0 by default.", NULL},
	{"to", MW_KEY_TO, MW_COMPLETE_NOTHING, "SECONDS", "and its end   (default: the window's)\n",
	 "Where it ends; by default with the window.", NULL},
	{"at", MW_KEY_AT, MW_COMPLETE_WORD, "SECONDS|peak", "what was not freed then, or when most was not\n",
	 "What was allocated since the interval's begin and not freed at that moment, or when most was not.", "peak"},
	{"symbols", MW_KEY_SYMBOLS, MW_COMPLETE_DIRECTORY, "DIR",
	 "where else symbols lie, found by build-id;\n"
	 "may be given several times\n",
	 "A directory with the modules' files, or with their .build-id/xx/yyyy.debug: names are looked for there "
	 "first. May be given several times.",
	 NULL},
	MW_CLI_TOP("stacks in the text report (default: 10)\n"),
	MW_CLI_JSON,
	MW_CLI_HTML,
	MW_CLI_QUIET,
#define HELP(own, brief) own
#include "cli/view_rows.inc"
#undef HELP
	MW_CLI_HELP("this text\n"),
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_report = {
	.name = "report",
	.summary = "look at a recording again",
	.synopsis = "memwatch report RECORDING [OPTION...]\n",
	.help = "Look at a recording again, over the whole of its window or any part of it.\n"
		"\n",
	.about = "Looks at a recording again, over the whole of its window or any part of it. What is impacting and "
		 "what is transient is found anew for the interval, exactly.",
	.options = report_options,
	.notes = "EXPR is terms with and, or, not, ( ); terms side by side are joined by and:\n"
		 "  parse                    a function's or module's name contains this\n"
		 "  function:parse           ... of any frame of the stack; module: too\n"
		 "  function:~'^shop::(Order|Basket)'   ~ takes a regular expression (extended)\n"
		 "  thread:worker, thread:4711          part of its name, or its id; process: too\n"
		 "  api:calloc, heap:main    part of the entry point's or heap's name\n"
		 "  size:4096, size:1K-64K, size:>=1M   bytes of one block\n"
		 "                           (of a mapping that goes in pieces, of each)\n"
		 "  kind:heap                heap, vm, or vm-internal, left out unless named\n"
		 "  type:transient           impacting, transient, aofi or aofo\n"
		 "  stack:00c0ff             the first digits of a stack id\n"
		 "What has blanks or parentheses stands in quotes: function:\"operator new\".\n"
		 "Examples: --filter 'function:parse and not thread:main'\n"
		 "          --filter 'size:>=64K (api:mmap or api:mremap)'\n",
	.status = "0 reported, 1 not (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_FILE,
};

static const struct mw_cli_option diff_options[] = {
	{"from", MW_KEY_FROM, MW_COMPLETE_WORD, "MOMENT", "the moment of OLD (default: its end; of FILE: start)\n",
	 "The moment of OLD, by default its end; of a single file, by default its start. A moment is a mark's number "
	 "or name, seconds as in 12.5s, start or end.",
	 "start end"},
	{"to", MW_KEY_TO, MW_COMPLETE_WORD, "MOMENT",
	 "the moment of NEW  (default: its end)\n"
	 "a mark's number or name, 12.5s, start, end\n",
	 "The moment of NEW, by default its end.", "start end"},
	{"kind", MW_KEY_KIND, MW_COMPLETE_WORDS, "LIST", "heap, vm, vm-internal (default: heap,vm)\n",
	 "The kinds of memory that are compared: heap, vm, vm-internal, with commas between; heap,vm by default.",
	 "heap vm vm-internal"},
	{"process", MW_KEY_PROCESS, MW_COMPLETE_NOTHING, "N", "only the Nth process of each (default: all, in order)\n",
	 "Only the Nth process of each recording; by default all, in their order.", NULL},
	{"top", MW_KEY_TOP, MW_COMPLETE_NOTHING, "N", "stacks in the text (default: all)\n",
	 "How many stacks the text shows; all by default.", NULL},
	{"all", MW_KEY_ALL, MW_COMPLETE_NOTHING, NULL, "those as well that did not change\n",
	 "Show the stacks as well that did not change.", NULL},
	{"json", MW_KEY_JSON, MW_COMPLETE_FILE, "FILE", "all stacks as JSON; '-' is standard output\n",
	 "Write all stacks as JSON; '-' is standard output.", NULL},
	{"quiet", MW_KEY_QUIET, MW_COMPLETE_NOTHING, NULL, "no progress, no text\n", "No progress, no text.", NULL},
	MW_CLI_HELP("this text\n"),
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_diff = {
	.name = "diff",
	.summary = "what has grown",
	.synopsis = "memwatch diff OLD NEW [OPTION...]           two recordings\n"
		    "memwatch diff FILE --from MARK --to MARK    two moments of one\n",
	.help = "Tell by stacks how much more memory is outstanding in the second snapshot than\n"
		"in the first: the largest growth first, in the form that UMDH has.\n"
		"\n",
	.about = "Tells by stacks how much more memory is outstanding in the second snapshot than in the first, the "
		 "largest growth first. Stacks are matched by their ids, which are the same for the same stack in "
		 "every run and process.",
	.options = diff_options,
	.notes = NULL,
	.status = "0 compared, 1 not (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_FILE,
};

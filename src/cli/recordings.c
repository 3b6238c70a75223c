// SPDX-License-Identifier: MIT
/* recordings.c: the commands that read recordings, and their options, each a row of a table (options.h). */
#include "cli/rows.h"

#include <stddef.h>

/* --- report ---------------------------------------------------------------------------------------------------------- */

static struct mw_error *take_recording(const struct mw_cli_command *command, struct mw_cli_options *options,
				       const char *word)
{
	if (!options->report.recording && *word) {
		options->report.recording = word;
		return NULL;
	}
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "unexpected argument '%.64s'", word),
			     "%s takes one recording, as in: memwatch %s leak.mw", command->name, command->name);
}

static struct mw_error *check_report(const struct mw_cli_command *command, struct mw_cli_options *all)
{
	const struct mw_cli_report_options *options = &all->report;

	if (!options->recording)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "no recording is given"),
				     "Give the file that memwatch -o wrote, as in: memwatch %s leak.mw", command->name);
	if (options->at_moment && (options->has_to || options->at_peak))
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--at TIME and %s both end the interval",
						     options->has_to ? "--to" : "--at peak"),
				     "Give one of them");
	if (options->to_ns <= options->from_ns)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "the interval ends at %.3f s, which is not after its start",
						     (double)options->to_ns / 1e9),
				     "--to must be later than --from; both are times since the window's start");
	all->session.exports.filter = all->view.filter;
	return mw_cli_view_options_finish(&all->view, &all->session);
}

/* Of what is read: processes, the interval, names. */
#define MW_CLI_PIDS_OF_RECORDING                                                                                       \
	MW_CLI_OPTION("pid", 'p', NOTHING, "PID|NAME,...", "only these of the recording's processes\n",                \
		      "Only these of the recording's processes, by their ids or names.", NULL, PIDS, report.pids)

#define MW_CLI_FROM                                                                                                    \
	MW_CLI_OPTION(                                                                                                 \
		"from", 0, NOTHING, "TIME", "start of the interval, as 30, 10s, 1m30s (default: 0)\n",                 \
		"The start of the interval, since the window's start, as in 30, 2.5, 10s or 1m30s; 0 by default.",     \
		NULL, MOMENT, report.from_ns)

#define MW_CLI_AT                                                                                                      \
	MW_CLI_OPTION("at", 0, WORD, "TIME|peak", "what was not freed at that moment, or at the peak\n",               \
		      "What was allocated since the start of the interval and not freed at that moment, or at the "    \
		      "moment when most was outstanding.",                                                             \
		      "peak", AT, report)

#define MW_CLI_SYMBOLS                                                                                                 \
	MW_CLI_OPTION("symbols", 0, DIRECTORY, "DIR",                                                                  \
		      "look for symbols there too, by build-id;\n"                                                     \
		      "may be given several times\n",                                                                  \
		      "A directory with the modules' files, or with their .build-id/xx/yyyy.debug: names are looked "  \
		      "for there first. May be given several times.",                                                  \
		      NULL, SYMBOLS, report)

static const struct mw_cli_option report_options[] = {
	MW_CLI_PIDS_OF_RECORDING,
	MW_CLI_FROM,
	MW_CLI_OPTION("to", 0, NOTHING, "TIME", "end of the interval (default: the window's end)\n",
		      "The end of the interval; by default the window's end.", NULL, TO, report),
	MW_CLI_AT,
	MW_CLI_OPTION(
		"leaks", 0, NOTHING, NULL, "fail where there was no look at the heap\n",
		"What was recorded with --leaks is shown in any case; with this option a recording that has no look "
		"at the heap is an error.",
		NULL, FLAG, session.leaks),
	MW_CLI_SYMBOLS,
	MW_CLI_TOP("stacks in the text report (default: 10)\n"),
	MW_CLI_ALL("all sections of the text report\n"),
	MW_CLI_REPORTS,
	MW_CLI_FAIL_ON("status 3 if so\n"),
	MW_CLI_EXPORT(NULL),
	MW_CLI_MEASURE("as memwatch export does\n"),
	MW_CLI_FORCE(NULL),
	MW_CLI_QUIET("replace any file; no progress, no text report\n"),
#define HELP(own, brief) own
#include "cli/view_rows.inc"
#undef HELP
	MW_CLI_HELP("this help\n"),
	{.name = NULL},
};

#define FILTERS                                                                                                        \
	"EXPR is terms with and, or, not, ( ); adjacent terms are joined by and:\n"                                    \
	"  parse                    the function or module name contains this\n"                                       \
	"  function:parse           ... of any frame of the stack; also module:\n"                                     \
	"  function:~'^shop::(Order|Basket)'   ~ takes a regular expression (extended)\n"                              \
	"  thread:worker, thread:4711          part of its name, or its id; also process:\n"                           \
	"  api:calloc, heap:main    part of the entry point's or heap's name\n"                                        \
	"  size:4096, size:1K-64K, size:>=1M   bytes of one block\n"                                                   \
	"                           (of each part of a mapping unmapped in parts)\n"                                   \
	"  kind:heap                heap, vm, or vm-internal, left out unless named\n"                                 \
	"  type:freed               not-freed, freed, older (and freed) or older-kept\n"                               \
	"  line:app.py:41, language:python     of the line that a stack is charged to\n"                               \
	"  stack:00c0ff             the first digits of a stack id\n"                                                  \
	"Quote names with blanks or parentheses: function:\"operator new\".\n"                                         \
	"Examples: --filter 'function:parse and not thread:main'\n"                                                    \
	"          --filter 'size:>=64K (api:mmap or api:mremap)'\n"

const struct mw_cli_command mw_cli_command_report = {
	.name = "report",
	.summary = "report from a recording",
	.synopsis = "memwatch report RECORDING [OPTION...]\n",
	.help = "Report from a recording, for the whole window or any part of it.\n\n",
	.about = "Reports from a recording, for the whole window or any part of it. What is freed and what is not "
		 "is computed for that interval, exactly.",
	.options = report_options,
	.notes = FILTERS,
	.status = "0 success, 1 failure (see the message), 2 bad usage, 3 --fail-on",
	.operands = MW_COMPLETE_FILE,
	.operand = take_recording,
	.check = check_report,
};

/* --- export ---------------------------------------------------------------------------------------------------------- */

static struct mw_error *check_export(const struct mw_cli_command *command, struct mw_cli_options *all)
{
	struct mw_export_wishes *exports = &all->session.exports;

	MW_TRY(check_report(command, all));
	if (!all->report.format)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "no format is given"),
				     "Give it by --to, as in: memwatch export leak.mw --to collapsed; 'memwatch export "
				     "--help' lists them");
	exports->items[0].format = all->report.format;
	exports->items[0].file = all->report.export ? all->report.export : "-";
	exports->count = 1;
	exports->alone = true;
	return NULL;
}

static const struct mw_cli_option export_options[] = {
	MW_CLI_OPTION("to", 0, WORD, "FORMAT", "or a time: the end of the interval\n",
		      "A time in its place, as in 30, 10s or 1m30s, is the end of the interval, as for "
		      "report; both may be given.",
		      mw_cli_formats_of_exports, EXPORT_TO, report),
	MW_CLI_OPTION("output", 'o', FILE, "FILE", "the file (default: standard output)\n",
		      "The file that is written; by default, and with '-', standard output.", NULL, FILE,
		      report.export),
	MW_CLI_MEASURE("which figure, where there is room for one:\n"
		       "inuse_space (bytes not freed, the default),\n"
		       "inuse_objects, alloc_space, alloc_objects\n"),
	MW_CLI_PIDS_OF_RECORDING,
	MW_CLI_FROM,
	MW_CLI_AT,
	MW_CLI_OPTION("filter", 0, NOTHING, "EXPR", "only blocks that match EXPR\n",
		      "Only blocks that match EXPR; see FILTERS.", NULL, FILTER, view),
	MW_CLI_FRAMES("own: an interpreter's frames are one;\n"
		      "script: those of scripts alone; all (default)\n"),
	MW_CLI_SYMBOLS,
	MW_CLI_FORCE("replace any file\n"),
	MW_CLI_OPTION("quiet", 0, NOTHING, NULL, "no progress\n", "No progress.", NULL, FLAG, session.quiet),
	MW_CLI_HELP("this help\n"),
	{.name = NULL},
};

const struct mw_cli_command mw_cli_command_export = {
	.name = "export",
	.summary = "a recording for other programs",
	.synopsis = "memwatch export RECORDING --to FORMAT [-o FILE] [OPTION...]\n",
	.help = "Write a recording in a form that other programs read, for the whole window or\n"
		"any part of it. The totals are those of report.\n\n",
	.about = "Writes a recording in a form that other programs read, for the whole window or any part of it. Its "
		 "sums are those of report for the same interval. Which programs open which format, and what of a "
		 "recording has a place in it, is in docs/EXPORTS.md.",
	.options = export_options,
	.notes = FILTERS,
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_FILE,
	.operand = take_recording,
	.check = check_export,
};

/* --- diff ------------------------------------------------------------------------------------------------------------ */

static struct mw_error *take_side(const struct mw_cli_command *command, struct mw_cli_options *options,
				  const char *word)
{
	(void)command;
	for (unsigned i = 0; i < MW_DIFF_SIDES && *word; i++) {
		if (options->diff.files[i])
			continue;
		options->diff.files[i] = word;
		return NULL;
	}
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "unexpected argument '%.64s'", word),
			     "diff takes two recordings, or one with --from and --to");
}

static struct mw_error *check_diff(const struct mw_cli_command *command, struct mw_cli_options *all)
{
	struct mw_cli_diff_options *options = &all->diff;

	(void)command;
	if (!options->files[MW_DIFF_OLD])
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "no recording is given"),
				     "Name two, as in: memwatch diff old.mw new.mw");
	if (options->files[MW_DIFF_NEW])
		return NULL;
	if (!options->moments[MW_DIFF_OLD] && !options->moments[MW_DIFF_NEW])
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "only one recording is given, without --from and --to"),
			"Name a second one, or two moments of this: memwatch diff %.64s --from 1 --to 2",
			options->files[MW_DIFF_OLD]);
	options->single = true;
	options->files[MW_DIFF_NEW] = options->files[MW_DIFF_OLD];
	return NULL;
}

static const struct mw_cli_option diff_options[] = {
	MW_CLI_OPTION("from", 0, WORD, "MOMENT", "the moment of OLD (default: its end; of FILE: start)\n",
		      "The moment of OLD, by default its end; of a single file, by default its start. A moment is a "
		      "mark's number or name, a time as in 12.5s or 1m30s, start or end.",
		      "start end", TEXT, diff.moments[MW_DIFF_OLD]),
	MW_CLI_OPTION("to", 0, WORD, "MOMENT",
		      "the moment of NEW  (default: its end)\n"
		      "a mark's number or name, 12.5s, start, end\n",
		      "The moment of NEW, by default its end.", "start end", TEXT, diff.moments[MW_DIFF_NEW]),
	MW_CLI_OPTION("kind", 0, WORDS, "LIST", "heap, vm, vm-internal (default: heap,vm)\n",
		      "The kinds of memory that are compared: heap, vm, vm-internal, separated by commas; heap,vm by "
		      "default.",
		      "heap vm vm-internal", KINDS, diff.kinds),
	MW_CLI_OPTION("process", 0, NOTHING, "N", "only the Nth process of each (default: all, in order)\n",
		      "Only the Nth process of each recording; by default all, in their order.", NULL, PROCESS,
		      diff.process),
	MW_CLI_OPTION("top", 0, NOTHING, "N", "stacks in the text (default: all)\n",
		      "How many stacks the text shows; all by default.", NULL, TOP, diff.top),
	MW_CLI_OPTION("all", 0, NOTHING, NULL, "include stacks that did not change\n",
		      "Include stacks that did not change.", NULL, FLAG, diff.all),
	MW_CLI_FRAMES("own, script: without an interpreter's frames\n"),
	MW_CLI_OPTION(mw_cli_formats_of_diffs, 0, FILE, "FILE", NULL, NULL, NULL, TEXT, session.files),
	MW_CLI_FORCE(NULL),
	MW_CLI_OPTION("quiet", 0, NOTHING, NULL, "replace any file; no progress, no text\n", "No progress, no text.",
		      NULL, FLAG, session.quiet),
	MW_CLI_HELP("this help\n"),
	{.name = NULL},
};

const struct mw_cli_command mw_cli_command_diff = {
	.name = "diff",
	.summary = "what has grown, or leaks faster",
	.synopsis = "memwatch diff OLD NEW [OPTION...]           two recordings\n"
		    "memwatch diff FILE --from MARK --to MARK    two moments of one\n",
	.help = "Show by stack how much more memory is outstanding at the second moment of a\n"
		"recording than at the first, the largest growth first, in the format of UMDH.\n"
		"Of two recordings: how much more each leaves unfreed in an hour. Of two looks at\n"
		"a heap (heap -o): what has grown, and how much that is a day.\n\n",
	.about = "Shows by stack how much more memory is outstanding at the second moment of a recording than at the "
		 "first, the largest growth first. Two recordings know nothing of each other's blocks: of these it "
		 "shows how much more the second leaves unfreed in an hour; = instead of + or - stands for about the "
		 "same rate, within a quarter or by chance. Of two commands that memwatch has launched it is the "
		 "amounts that are compared.\n"
		 "Of two looks at heaps (memwatch heap -o) it shows which groups of blocks have grown, by class and "
		 "size, "
		 "what lines of the account have grown, and how much that is a day where both are of one process.\n"
		 "Stacks are matched by their ids, which are the same for the same stack in every run and process of "
		 "one build; where the executables differ, a warning says so.",
	.options = diff_options,
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_FILE,
	.permutes = true,
	.operand = take_side,
	.check = check_diff,
};

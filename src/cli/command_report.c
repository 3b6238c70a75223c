// SPDX-License-Identifier: MIT
/* command_report.c: the options of report (command.h). */
#include "cli/command_rows.h"

#include <string.h>
#include <sys/stat.h>

static struct mw_error *take_operand(const struct mw_cli_command *command, struct mw_cli_options *options,
				     const char *word)
{
	struct mw_error *err;

	(void)command;
	if (!options->report.recording && *word) {
		options->report.recording = word;
		return NULL;
	}
	err = mw_error_create(MW_ERROR_USAGE, 0, "unexpected argument '%.64s'", word);
	return mw_error_hint(err, "report takes one recording, as in: memwatch report leak.mw");
}

static struct mw_error *parse_to(const char *option, const char *text, void *member)
{
	struct mw_cli_report_options *options = member;

	options->has_to = true;
	return mw_cli_parse_moment(option, text, &options->to_ns);
}

static struct mw_error *parse_at(const char *option, const char *text, void *member)
{
	struct mw_cli_report_options *options = member;

	if (strcmp(text, "peak") == 0) {
		options->at_peak = true;
		return NULL;
	}
	options->at_moment = true;
	return mw_cli_parse_moment(option, text, &options->to_ns);
}

static struct mw_error *parse_symbols(const char *option, const char *directory, void *member)
{
	struct mw_cli_report_options *options = member;
	struct stat st;

	if (options->symbols_count == MW_CLI_SYMBOLS_MAX)
		return mw_error_create(MW_ERROR_USAGE, 0, "%s may be given at most %d times", option,
				       MW_CLI_SYMBOLS_MAX);
	if (stat(directory, &st) < 0 || !S_ISDIR(st.st_mode))
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "%s '%.200s': not a directory", option, directory),
			"Give a directory with the modules' files, or with their .build-id/xx/yyyy.debug");
	options->symbols[options->symbols_count++] = directory;
	return NULL;
}

static struct mw_error *check(const struct mw_cli_command *command, struct mw_cli_options *all)
{
	const struct mw_cli_report_options *options = &all->report;
	struct mw_error *err;

	(void)command;
	if (!options->recording) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "no recording is given");
		return mw_error_hint(err, "Give the file that -o wrote, as in: memwatch report leak.mw");
	}
	if (options->at_moment && (options->has_to || options->at_peak)) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "--at SECONDS and %s both end the interval",
				      options->has_to ? "--to" : "--at peak");
		return mw_error_hint(err, "Give one of them");
	}
	if (options->to_ns <= options->from_ns) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "the interval ends at %.3f s, which is not after its start",
				      (double)options->to_ns / 1e9);
		return mw_error_hint(err, "--to must be later than --from; both are seconds since the window's start");
	}
	return mw_cli_view_options_finish(&all->view, all->session.top);
}

static const struct mw_cli_option report_options[] = {
	{"from", 0, MW_COMPLETE_NOTHING, "SECONDS", "start of the interval, in the window (default: 0)\n",
	 "The start of the interval, in seconds since the window's start; 0 by default.", NULL, mw_cli_parse_moment,
	 MW_CLI_AT(report.from_ns)},
	{"to", 0, MW_COMPLETE_NOTHING, "SECONDS", "end of the interval (default: the window's end)\n",
	 "The end of the interval; by default the window's end.", NULL, parse_to, MW_CLI_AT(report)},
	{"at", 0, MW_COMPLETE_WORD, "SECONDS|peak", "what was not freed at that moment, or at the peak\n",
	 "What was allocated since the start of the interval and not freed at that moment, or at the moment when most "
	 "was outstanding.",
	 "peak", parse_at, MW_CLI_AT(report)},
	{"symbols", 0, MW_COMPLETE_DIRECTORY, "DIR",
	 "look for symbols there too, by build-id;\n"
	 "may be given several times\n",
	 "A directory with the modules' files, or with their .build-id/xx/yyyy.debug: names are looked for there "
	 "first. May be given several times.",
	 NULL, parse_symbols, MW_CLI_AT(report)},
	MW_CLI_TOP("stacks in the text report (default: 10)\n"),
	MW_CLI_REPORTS,
	MW_CLI_QUIET,
#define HELP(own, brief) own
#include "cli/view_rows.inc"
#undef HELP
	MW_CLI_HELP("this help\n"),
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_report = {
	.name = "report",
	.summary = "report from a recording",
	.synopsis = "memwatch report RECORDING [OPTION...]\n",
	.help = "Report from a recording, for the whole window or any part of it.\n\n",
	.about = "Reports from a recording, for the whole window or any part of it. What is impacting and what is "
		 "transient is computed for that interval, exactly.",
	.options = report_options,
	.notes = "EXPR is terms with and, or, not, ( ); adjacent terms are joined by and:\n"
		 "  parse                    the function or module name contains this\n"
		 "  function:parse           ... of any frame of the stack; also module:\n"
		 "  function:~'^shop::(Order|Basket)'   ~ takes a regular expression (extended)\n"
		 "  thread:worker, thread:4711          part of its name, or its id; also process:\n"
		 "  api:calloc, heap:main    part of the entry point's or heap's name\n"
		 "  size:4096, size:1K-64K, size:>=1M   bytes of one block\n"
		 "                           (of each part of a mapping unmapped in parts)\n"
		 "  kind:heap                heap, vm, or vm-internal, left out unless named\n"
		 "  type:transient           impacting, transient, aofi or aofo\n"
		 "  stack:00c0ff             the first digits of a stack id\n"
		 "Quote names with blanks or parentheses: function:\"operator new\".\n"
		 "Examples: --filter 'function:parse and not thread:main'\n"
		 "          --filter 'size:>=64K (api:mmap or api:mremap)'\n",
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_FILE,
	.operand = take_operand,
	.check = check,
};

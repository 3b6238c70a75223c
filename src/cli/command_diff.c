// SPDX-License-Identifier: MIT
/* command_diff.c: the options of diff (command.h). */
#include "cli/command_rows.h"

#include <string.h>

#define PROCESS_MAX 4096

static struct mw_error *take_operand(const struct mw_cli_command *command, struct mw_cli_options *options,
				     const char *word)
{
	struct mw_error *err;

	(void)command;
	for (unsigned i = 0; i < MW_DIFF_SIDES && *word; i++) {
		if (options->diff.files[i])
			continue;
		options->diff.files[i] = word;
		return NULL;
	}
	err = mw_error_create(MW_ERROR_USAGE, 0, "unexpected argument '%.64s'", word);
	return mw_error_hint(err, "diff takes two recordings, or one with --from and --to");
}

static struct mw_error *parse_kinds(const char *option, const char *text, void *member)
{
	static const char *const names[MW_KIND_COUNT] = {"heap", "vm", "vm-internal"};
	bool wanted[MW_KIND_COUNT] = {false};
	const char *rest = text;

	for (;;) {
		size_t length = strcspn(rest, ",");
		unsigned kind = 0;

		while (kind < MW_KIND_COUNT &&
		       (strlen(names[kind]) != length || strncmp(names[kind], rest, length) != 0))
			kind++;
		if (kind == MW_KIND_COUNT)
			return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
							     "%s '%.64s': not a list of kinds of memory", option, text),
					     "Kinds are heap, vm and vm-internal, as in --kind heap,vm");
		wanted[kind] = true;
		rest += length;
		if (!*rest)
			break;
		rest++;
	}
	memcpy(member, wanted, sizeof(wanted));
	return NULL;
}

static struct mw_error *parse_text(const char *option, const char *text, void *member)
{
	if (!*text)
		return mw_error_create(MW_ERROR_USAGE, 0, "%s '': the value is empty", option);
	*(const char **)member = text;
	return NULL;
}

static struct mw_error *parse_process(const char *option, const char *text, void *member)
{
	return mw_cli_parse_count(option, text, 1, PROCESS_MAX, member);
}

static struct mw_error *check(const struct mw_cli_command *command, struct mw_cli_options *all)
{
	struct mw_cli_diff_options *options = &all->diff;
	struct mw_error *err;

	(void)command;
	if (!options->files[MW_DIFF_OLD]) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "no recording is given");
		return mw_error_hint(err, "Name two, as in: memwatch diff old.mw new.mw");
	}
	if (options->files[MW_DIFF_NEW])
		return NULL;
	if (!options->moments[MW_DIFF_OLD] && !options->moments[MW_DIFF_NEW]) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "only one recording is given, without --from and --to");
		return mw_error_hint(err,
				     "Name a second one, or two moments of this: memwatch diff %.64s --from 1 "
				     "--to 2",
				     options->files[MW_DIFF_OLD]);
	}
	options->single = true;
	options->files[MW_DIFF_NEW] = options->files[MW_DIFF_OLD];
	return NULL;
}

static const struct mw_cli_option diff_options[] = {
	{"from", 0, MW_COMPLETE_WORD, "MOMENT", "the moment of OLD (default: its end; of FILE: start)\n",
	 "The moment of OLD, by default its end; of a single file, by default its start. A moment is a mark's number "
	 "or name, seconds as in 12.5s, start or end.",
	 "start end", parse_text, MW_CLI_AT(diff.moments[MW_DIFF_OLD])},
	{"to", 0, MW_COMPLETE_WORD, "MOMENT",
	 "the moment of NEW  (default: its end)\n"
	 "a mark's number or name, 12.5s, start, end\n",
	 "The moment of NEW, by default its end.", "start end", parse_text, MW_CLI_AT(diff.moments[MW_DIFF_NEW])},
	{"kind", 0, MW_COMPLETE_WORDS, "LIST", "heap, vm, vm-internal (default: heap,vm)\n",
	 "The kinds of memory that are compared: heap, vm, vm-internal, separated by commas; heap,vm by default.",
	 "heap vm vm-internal", parse_kinds, MW_CLI_AT(diff.kinds)},
	{"process", 0, MW_COMPLETE_NOTHING, "N", "only the Nth process of each (default: all, in order)\n",
	 "Only the Nth process of each recording; by default all, in their order.", NULL, parse_process,
	 MW_CLI_AT(diff.process)},
	{"top", 0, MW_COMPLETE_NOTHING, "N", "stacks in the text (default: all)\n",
	 "How many stacks the text shows; all by default.", NULL, mw_cli_parse_top, MW_CLI_AT(diff.top)},
	{"all", 0, MW_COMPLETE_NOTHING, NULL, "include stacks that did not change\n",
	 "Include stacks that did not change.", NULL, mw_cli_parse_flag, MW_CLI_AT(diff.all)},
	{mw_cli_formats_of_diffs, 0, MW_COMPLETE_FILE, "FILE", NULL, NULL, NULL, parse_text, MW_CLI_AT(session.files)},
	{"quiet", 0, MW_COMPLETE_NOTHING, NULL, "no progress, no text\n", "No progress, no text.", NULL,
	 mw_cli_parse_flag, MW_CLI_AT(session.quiet)},
	MW_CLI_HELP("this help\n"),
	MW_CLI_END,
};

const struct mw_cli_command mw_cli_command_diff = {
	.name = "diff",
	.summary = "compare two snapshots",
	.synopsis = "memwatch diff OLD NEW [OPTION...]           two recordings\n"
		    "memwatch diff FILE --from MARK --to MARK    two moments of one\n",
	.help = "Show by stack how much more memory is outstanding in the second snapshot than\n"
		"in the first: the largest growth first, in the format of UMDH.\n\n",
	.about = "Shows by stack how much more memory is outstanding in the second snapshot than in the first, the "
		 "largest growth first. Stacks are matched by their ids, which are the same for the same stack in "
		 "every run and process.",
	.options = diff_options,
	.notes = NULL,
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_FILE,
	.permutes = true,
	.operand = take_operand,
	.check = check,
};

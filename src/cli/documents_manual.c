// SPDX-License-Identifier: MIT
/* documents_manual.c: the manual page (documents.h), in the macros of man(7). */
#include "cli/command.h"
#include "cli/documents.h"

#include <stdbool.h>
#include <string.h>

/* Text as it is: nothing in it is a request, or a hyphen that is not the one of the keyboard. */
static void put(FILE *out, const char *text, size_t length)
{
	bool begins = true;

	for (size_t i = 0; i < length; i++) {
		if (begins && (text[i] == '.' || text[i] == '\''))
			fputs("\\&", out);
		if (text[i] == '\\')
			fputs("\\e", out);
		else if (text[i] == '-')
			fputs("\\-", out);
		else if (text[i] == '\'')
			fputs("\\(aq", out);
		else if (text[i] == '~')
			fputs("\\(ti", out);
		else if (text[i] == '^')
			fputs("\\(ha", out);
		else
			fputc(text[i], out);
		begins = text[i] == '\n';
	}
}

static void put_all(FILE *out, const char *text)
{
	put(out, text, strlen(text));
}

/* A paragraph a line. */
static void put_paragraphs(FILE *out, const char *text)
{
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		fputs(".PP\n", out);
		put(out, line, length);
		fputc('\n', out);
		line += length + (line[length] == '\n');
	}
}

/* As it stands, line by line. */
static void put_lines(FILE *out, const char *text)
{
	fputs(".PP\n.EX\n", out);
	put_all(out, text);
	fputs(".EE\n", out);
}

static void put_option(FILE *out, const struct mw_cli_option *option)
{
	fputs(".TP\n", out);
	if (option->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
	fputs("\\fB\\-\\-", out);
	put_all(out, option->name);
	fputs("\\fR", out);
	if (option->value) {
		fputs(" \\fI", out);
		put_all(out, option->value);
		fputs("\\fR", out);
	}
	fputc('\n', out);
	put_all(out, option->about);
	fputc('\n', out);
}

static void put_options(FILE *out, const struct mw_cli_command *command)
{
	for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name; option++)
		put_option(out, option);
}

static void put_synopses(FILE *out)
{
	fputs(".SH SYNOPSIS\n.nf\n", out);
	for (size_t i = 0; mw_cli_commands[i]; i++)
		for (const char *line = mw_cli_commands[i]->synopsis; *line;) {
			size_t length = strcspn(line, "\n"), text = length;
			const char *remark = strstr(line, "  ");

			/* What is said of it behind it is for --help. */
			if (remark && (size_t)(remark - line) < length)
				text = (size_t)(remark - line);
			put(out, line, text);
			fputc('\n', out);
			line += length + (line[length] == '\n');
		}
	fputs(".fi\n", out);
}

static void put_command(FILE *out, const struct mw_cli_command *command)
{
	fprintf(out, ".SS memwatch %s: %s\n", command->name, command->summary);
	put_paragraphs(out, command->about);
	put_options(out, command);
}

static void put_tail(FILE *out)
{
	fputs(".SH FILTERS\n.PP\nWhat report \\-\\-filter takes.\n", out);
	put_lines(out, mw_cli_command_report.notes);
	fputs(".SH EXIT STATUS\n.TP\n.B 0\nThe window was recorded, and all that was asked for was written.\n"
	      ".TP\n.B 1\nIt was not; a message says what failed, on what, why, and what can be done. No partial "
	      "output file is left behind, except a recording, which can be read up to where it ends.\n"
	      ".TP\n.B 2\nThe command line is wrong; nothing was done.\n"
	      ".PP\nA command that memwatch has launched has its own status in the report.\n"
	      ".SH ENVIRONMENT\n.TP\n.B COLUMNS\nThe width of the terminal, instead of the real one.\n"
	      ".TP\n.B NO_COLOR\nIf set and not empty, nothing is coloured.\n"
	      ".TP\n.B DEBUGINFOD_URLS\nServers to ask for debug information, if libdebuginfod is installed.\n"
	      ".SH SIGNALS\n.TP\n.B SIGINT, SIGTERM, SIGHUP\nThe window ends, memwatch detaches and reports.\n"
	      ".TP\n.B SIGUSR1\nPuts a mark into the recording.\n"
	      ".SH EXAMPLES\n.PP\nWatch a process for a minute:\n",
	      out);
	put_lines(out, "memwatch -p 1234 -d 60\n");
	fputs(".PP\nWrite a recording, and show ten seconds of it by module and function:\n", out);
	put_lines(out, "memwatch -p 1234 -d 60 -o leak.mw\n"
		       "memwatch report leak.mw --from 20 --to 30 --by module,function\n");
	fputs(".PP\nCompare two marks:\n", out);
	put_lines(out, "memwatch -p 1234 -d 60 -o leak.mw --mark-every 10\nmemwatch diff leak.mw --from 1 --to 5\n");
	fputs(".SH SEE ALSO\n.BR ptrace (2),\n.BR gdb (1),\n.BR valgrind (1)\n", out);
}

void mw_documents_manual(FILE *out, const char *version)
{
	const struct mw_cli_command *record = mw_cli_commands[0];

	fprintf(out, ".TH MEMWATCH 1 \"\" \"memwatch %s\" \"User Commands\"\n", version);
	fprintf(out, ".SH NAME\nmemwatch \\- %s\n", record->summary);
	put_synopses(out);
	fputs(".SH DESCRIPTION\n", out);
	put_paragraphs(out, record->about);
	fputs(".SH OPTIONS\n", out);
	put_options(out, record);
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 1; mw_cli_commands[i]; i++)
		put_command(out, mw_cli_commands[i]);
	put_tail(out);
}

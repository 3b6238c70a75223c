// SPDX-License-Identifier: MIT
/* command.c: see command.h. */
#include "cli/command.h"

#include <memwatch/output.h>

#include <string.h>

#define HELP_COLUMN 27 /* where texts begin */
#define HELP_WIDTH  80

const struct mw_cli_command *const mw_cli_commands[] = {
	&mw_cli_command_record, &mw_cli_command_top,  &mw_cli_command_doctor,
	&mw_cli_command_report, &mw_cli_command_diff, NULL,
};

/* The row of that format, if there is such an option; `member` is the first format's. */
static size_t add_format(const struct mw_cli_option *row, size_t number, struct mw_cli_option *out)
{
	const struct mw_output *output = mw_output_get(number);
	const struct mw_output_option *option =
		row->name == mw_cli_formats_of_diffs ? &output->of_diffs : &output->of_reports;

	if (!option->help)
		return 0;
	*out = *row;
	out->name = output->name;
	out->help = option->help;
	out->about = option->about;
	out->member += number * sizeof(const char *);
	return 1;
}

static void make_rows(const struct mw_cli_command *command, struct mw_cli_option out[MW_CLI_OPTIONS_MAX + 1])
{
	size_t count = 0;

	for (const struct mw_cli_option *row = command->options; row->name && count < MW_CLI_OPTIONS_MAX; row++) {
		if (row->name != mw_cli_formats_of_reports && row->name != mw_cli_formats_of_diffs)
			out[count++] = *row;
		else
			for (size_t i = 0; mw_output_get(i) && count < MW_CLI_OPTIONS_MAX; i++)
				count += add_format(row, i, &out[count]);
	}
	out[count] = (struct mw_cli_option){.name = NULL};
}

const struct mw_cli_option *mw_cli_command_options(const struct mw_cli_command *command)
{
	static struct mw_cli_option rows[sizeof(mw_cli_commands) / sizeof(mw_cli_commands[0])][MW_CLI_OPTIONS_MAX + 1];
	size_t number = 0;

	while (mw_cli_commands[number] != command)
		number++;
	if (!rows[number][0].name)
		make_rows(command, rows[number]);
	return rows[number];
}

/* "  -p, --pid PID", or " , --top N" behind another. */
static size_t put_names(FILE *out, const struct mw_cli_option *option, bool follows)
{
	int length = 0;

	if (follows)
		length += fprintf(out, option->letter ? "; -%c, " : ", ", option->letter);
	else if (option->letter)
		length += fprintf(out, "  -%c, ", option->letter);
	else
		length += fprintf(out, "      ");
	length += fprintf(out, "--%s", option->name);
	if (option->value)
		length += fprintf(out, " %s", option->value);
	return (size_t)length;
}

static void put_text(FILE *out, const char *text, size_t column)
{
	const char *line = text;

	/* Names that are a little too long have their text behind them, where it fits. */
	if (*text && column + 3 + strcspn(text, "\n") <= HELP_WIDTH && column >= HELP_COLUMN)
		column += (size_t)fprintf(out, "   ");
	else if (*text && column >= HELP_COLUMN)
		column = fprintf(out, "\n") > 0 ? 0 : column;
	for (; *line; column = 0) {
		size_t length = strcspn(line, "\n");

		fprintf(out, "%*s%.*s\n", column < HELP_COLUMN ? (int)(HELP_COLUMN - column) : 0, "", (int)length,
			line);
		line += length + (line[length] == '\n');
	}
	if (!*text)
		fputc('\n', out);
}

/* "Usage: " before the first line, as many blanks before the others. */
static void put_synopsis(FILE *out, const char *synopsis)
{
	const char *before = "Usage:";

	for (const char *line = synopsis; *line; before = "      ") {
		size_t length = strcspn(line, "\n");

		fprintf(out, "%s %.*s\n", before, (int)length, line);
		line += length + (line[length] == '\n');
	}
}

void mw_cli_print_help(const struct mw_cli_command *command, FILE *out)
{
	size_t column = 0;

	put_synopsis(out, command->synopsis);
	if (!*command->name)
		for (size_t i = 1; mw_cli_commands[i]; i++)
			fprintf(out, "       memwatch %-6s ...   %s (%s --help)\n", mw_cli_commands[i]->name,
				mw_cli_commands[i]->summary, mw_cli_commands[i]->name);
	fprintf(out, "\n%s", command->help);
	for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name; option++) {
		column += put_names(out, option, column > 0);
		if (!option->help)
			continue;
		put_text(out, option->help, column);
		column = 0;
	}
	if (command->notes)
		fprintf(out, "\n%s", command->notes);
	fprintf(out, "\nExit status: %s\n", command->status);
}

void mw_cli_print_usage(FILE *out)
{
	put_synopsis(out, mw_cli_command_record.synopsis);
	fputs("       memwatch COMMAND ...\n'memwatch --help' tells more.\n", out);
}

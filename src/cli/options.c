// SPDX-License-Identifier: MIT
/* options.c: see options.h. */
#include "cli/options.h"

#include "session/select.h"

#include "session/outputs.h"

#include <memwatch/export.h>
#include <memwatch/output.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tables, and their help (options.h) ------------------------------------------------------------------------------ */

#define HELP_COLUMN 27 /* where texts begin */
#define HELP_WIDTH  80

const struct mw_cli_command *const mw_cli_commands[] = {
	&mw_cli_command_record, &mw_cli_command_top,    &mw_cli_command_doctor,
	&mw_cli_command_report, &mw_cli_command_export, &mw_cli_command_diff,
	&mw_cli_command_heap,   &mw_cli_command_help,   NULL,
};

struct mw_error *mw_cli_command_find(const char *name, const struct mw_cli_command **out)
{
	const char *names[sizeof(mw_cli_commands) / sizeof(mw_cli_commands[0])] = {NULL};
	const char *nearest;
	struct mw_error *err;

	for (size_t i = 1; mw_cli_commands[i]; i++) {
		names[i - 1] = mw_cli_commands[i]->name;
		if (strcmp(name, mw_cli_commands[i]->name) != 0)
			continue;
		*out = mw_cli_commands[i];
		return NULL;
	}
	err = mw_error_create(MW_ERROR_USAGE, 0, "no such command: '%.64s'", name);
	if (mw_cli_is_pids(name))
		return mw_error_hint(err, "To watch a process, put -p before its id: memwatch -p %.64s", name);
	nearest = mw_cli_nearest(name, names);
	if (nearest)
		return mw_error_hint(err, "The nearest is '%s': see 'memwatch help %s'", nearest, nearest);
	return mw_error_hint(err,
			     "To launch a program, put '--' before it: memwatch -- %.64s; 'memwatch help' lists the "
			     "commands and options",
			     name);
}

/* The row of that format, if there is such an option; `member` is the first format's. */
static size_t add_format(const struct mw_cli_option *row, size_t number, struct mw_cli_option *out)
{
	const struct mw_output *output = mw_output_get(number);
	const struct mw_output_option *option = row->name == mw_cli_formats_of_diffs   ? &output->of_diffs
						: row->name == mw_cli_formats_of_heaps ? &output->of_heaps
										       : &output->of_reports;

	if (!option->about)
		return 0;
	*out = *row;
	out->name = output->name;
	out->help = option->help;
	out->about = option->about;
	out->member += number * sizeof(const char *);
	return 1;
}

/* The formats of exports: their names, with blanks between; a line each for --help, and a sentence for the manual, before what
 * the row has of its own. */
static void name_exports(struct mw_cli_option *row)
{
	static char words[256], help[2048], about[2048];
	size_t named = 0, helped = 0, used = 0;

	for (size_t i = 0; mw_export_get(i); i++) {
		const struct mw_export_format *format = mw_export_get(i);

		named += (size_t)snprintf(words + named, sizeof(words) - named, "%s%s", i ? " " : "", format->name);
		helped += (size_t)snprintf(help + helped, sizeof(help) - helped, "%-10s %s\n", format->name,
					   format->about);
		used += (size_t)snprintf(about + used, sizeof(about) - used, "%s%s (%s)",
					 i ? ", " : "The format: ", format->name, format->about);
	}
	(void)snprintf(help + helped, sizeof(help) - helped, "%s", row->help);
	(void)snprintf(about + used, sizeof(about) - used, ". %s", row->about);
	row->words = words;
	row->help = help;
	row->about = about;
}

static void make_rows(const struct mw_cli_command *command, struct mw_cli_option out[MW_CLI_OPTIONS_MAX + 1])
{
	size_t count = 0;

	for (const struct mw_cli_option *row = command->options; row->name && count < MW_CLI_OPTIONS_MAX; row++) {
		if (row->name != mw_cli_formats_of_reports && row->name != mw_cli_formats_of_diffs &&
		    row->name != mw_cli_formats_of_heaps) {
			out[count++] = *row;
			if (row->words == mw_cli_formats_of_exports)
				name_exports(&out[count - 1]);
		} else
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
			fprintf(out, "       memwatch %-6s ...   %s\n", mw_cli_commands[i]->name,
				mw_cli_commands[i]->summary);
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
	fputs("       memwatch COMMAND ...\n'memwatch help' lists the options.\n", out);
}

/* --- the line --------------------------------------------------------------------------------------------------- */

#define NAME_SIZE 32 /* "--" and the longest name */

struct parse {
	const struct mw_cli_command *command;
	const struct mw_cli_option *table;
	struct mw_cli_options options;
	char **argv;
	int argc, next; /* which word comes next */
};

static struct mw_error *with_help(const struct mw_cli_command *command, struct mw_error *err)
{
	return mw_error_hint(err, "'memwatch%s%s --help' lists the options", *command->name ? " " : "", command->name);
}

static struct mw_error *unknown_long(const struct parse *parse, const char *name, size_t length)
{
	const char *names[MW_CLI_OPTIONS_MAX + 1] = {NULL};
	const char *nearest;
	char word[64] = "";
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "no such option: --%.*s", (int)length, name);

	for (size_t i = 0; parse->table[i].name; i++)
		names[i] = parse->table[i].name;
	if (length < sizeof(word))
		memcpy(word, name, length);
	nearest = *word ? mw_cli_nearest(word, names) : NULL;
	if (nearest)
		return mw_error_hint(err, "The nearest is --%s; 'memwatch%s%s --help' lists all", nearest,
				     *parse->command->name ? " " : "", parse->command->name);
	return with_help(parse->command, err);
}

/* The one of that name, or the only one whose name begins so; on failure *out is NULL. */
static struct mw_error *find_long(const struct parse *parse, const char *name, size_t length,
				  const struct mw_cli_option **out)
{
	const struct mw_cli_option *match = NULL;

	*out = NULL;
	for (const struct mw_cli_option *option = parse->table; option->name; option++) {
		if (strncmp(option->name, name, length) != 0)
			continue;
		if (match && strlen(match->name) != length && strlen(option->name) != length)
			return with_help(parse->command,
					 mw_error_create(MW_ERROR_USAGE, 0, "option --%.*s is ambiguous: --%s or --%s",
							 (int)length, name, match->name, option->name));
		if (!match || strlen(option->name) == length)
			match = option;
	}
	*out = match;
	return match ? NULL : unknown_long(parse, name, length);
}

/* `text` NULL: its value, where it takes one, is the next word. */
static struct mw_error *take_option(struct parse *parse, const struct mw_cli_option *option, const char *text)
{
	enum mw_cli_action before = parse->options.action;
	struct mw_error *err;
	char name[NAME_SIZE];

	if (option->value && !text && parse->next == parse->argc)
		return with_help(parse->command, mw_error_create(MW_ERROR_USAGE, 0, "option --%s needs a value (%s)",
								 option->name, option->value));
	if (option->value && !text)
		text = parse->argv[parse->next++];
	(void)snprintf(name, sizeof(name), "--%s", option->name);
	err = mw_cli_parse(option->type, name, text, (char *)&parse->options + option->member);
	/* Help was asked for: whatever else is said. */
	if (parse->options.action != before)
		parse->next = parse->argc;
	return err;
}

static struct mw_error *take_long(struct parse *parse, const char *word)
{
	const struct mw_cli_option *option;
	size_t length = strcspn(word, "=");
	struct mw_error *err = find_long(parse, word, length, &option);

	if (!option)
		return err;
	if (word[length] && !option->value)
		return with_help(parse->command,
				 mw_error_create(MW_ERROR_USAGE, 0, "option --%s takes no value", option->name));
	return take_option(parse, option, word[length] ? word + length + 1 : NULL);
}

/* Several may stand in one word, the last of them with its value. */
static struct mw_error *take_short(struct parse *parse, const char *cluster)
{
	for (; *cluster; cluster++) {
		const struct mw_cli_option *option = parse->table;

		while (option->name && option->letter != *cluster)
			option++;
		if (!option->name)
			return with_help(parse->command,
					 mw_error_create(MW_ERROR_USAGE, 0, "no such option: -%c",
							 isprint((unsigned char)*cluster) ? *cluster : '?'));
		if (option->value)
			return take_option(parse, option, cluster[1] ? cluster + 1 : NULL);
		MW_TRY(take_option(parse, option, NULL));
	}
	return NULL;
}

/* Everything from here on is the command to launch, if it stands behind "--". */
static struct mw_error *take_operand(struct parse *parse, char *word)
{
	struct mw_session_options *session = &parse->options.session;

	if (!parse->options.dashes || !parse->command->launches)
		return parse->command->operand(parse->command, &parse->options, word);
	session->command = parse->argv + parse->next - 1;
	session->command_count = (size_t)(parse->argc - parse->next + 1);
	parse->next = parse->argc;
	return NULL;
}

static struct mw_error *parse_line(struct parse *parse)
{
	struct mw_error *err = NULL, *later = NULL;

	while (!err && parse->next < parse->argc) {
		char *word = parse->argv[parse->next++];

		if (parse->options.dashes || word[0] != '-' || !word[1]) {
			err = take_operand(parse, word);
			/* What is wrong with options is said first. */
			if (parse->command->permutes) {
				later = mw_error_first(later, err);
				err = NULL;
			}
		} else if (word[1] != '-') {
			err = take_short(parse, word + 1);
		} else if (word[2]) {
			err = take_long(parse, word + 2);
		} else {
			parse->options.dashes = true;
		}
	}
	return mw_error_first(err, later);
}

struct mw_error *mw_cli_options_parse(const struct mw_cli_command *command, int argc, char **argv,
				      struct mw_cli_options *out)
{
	struct parse parse = {
		.command = command,
		.table = mw_cli_command_options(command),
		.argv = argv,
		.argc = argc,
		.next = 1,
		.options = {.session = {.track_heap = true,
					.track_vm = true,
					.engine = "auto",
					.depth = 128,
					.top = 10,
					.settle_ns = UINT64_MAX,
					.overload = MW_OVERLOAD_COUNT},
			    .report = {.to_ns = UINT64_MAX},
			    .diff = {.kinds = {[MW_KIND_HEAP] = true, [MW_KIND_VM] = true}, .top = SIZE_MAX}},
	};
	struct mw_error *err = parse_line(&parse);

	if (!err && parse.options.action == MW_CLI_RUN)
		err = command->check(command, &parse.options);
	if (err) {
		mw_cli_options_deinit(&parse.options);
		return err;
	}
	*out = parse.options;
	return NULL;
}

void mw_cli_options_deinit(struct mw_cli_options *options)
{
	mw_pids_deinit(&options->session.pids);
	mw_pids_deinit(&options->report.pids);
	mw_cli_view_options_deinit(&options->view);
}

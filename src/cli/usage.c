// SPDX-License-Identifier: MIT
/* usage.c: what is wrong with an option (src/cli/usage.h). */
#include "cli/usage.h"

#include "cli/parse.h"
#include "session/outfile.h"

#include <ctype.h>
#include <string.h>

static struct mw_error *with_help(const struct mw_cli_command *command, struct mw_error *err)
{
	return mw_error_hint(err, "'memwatch%s%s --help' lists the options", *command->name ? " " : "", command->name);
}

static struct mw_error *needs_value(const struct mw_cli_command *command, const struct mw_cli_option *option)
{
	return with_help(command, mw_error_create(MW_ERROR_USAGE, 0, "option --%s needs a value (%s)", option->name,
						  option->value));
}

static struct mw_error *unknown_long(const struct mw_cli_command *command, const char *name, size_t length)
{
	const struct mw_cli_option *options = mw_cli_command_options(command);
	const char *names[MW_CLI_OPTIONS_MAX + 1] = {NULL};
	const char *nearest;
	char word[64] = "";
	size_t count = 0;
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "no such option: --%.*s", (int)length, name);

	for (; options->name && count < MW_CLI_OPTIONS_MAX; options++)
		names[count++] = options->name;
	if (length < sizeof(word))
		memcpy(word, name, length);
	nearest = *word ? mw_cli_nearest(word, names) : NULL;
	if (nearest)
		return mw_error_hint(err, "The nearest is --%s; 'memwatch%s%s --help' lists all", nearest,
				     *command->name ? " " : "", command->name);
	return with_help(command, err);
}

/* NULL where nothing is wrong with the word. `last`: nothing follows that could be its value. */
static struct mw_error *explain_long(const struct mw_cli_command *command, const char *name, bool last)
{
	const struct mw_cli_option *match = NULL;
	size_t length = strcspn(name, "=");
	bool has_value = name[length] == '=';

	for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name; option++) {
		if (strncmp(option->name, name, length) != 0)
			continue;
		if (match && strlen(match->name) != length && strlen(option->name) != length)
			return with_help(command,
					 mw_error_create(MW_ERROR_USAGE, 0, "option --%.*s is ambiguous: --%s or --%s",
							 (int)length, name, match->name, option->name));
		if (!match || strlen(option->name) == length)
			match = option;
	}
	if (!match)
		return unknown_long(command, name, length);
	if (has_value && !match->value)
		return with_help(command,
				 mw_error_create(MW_ERROR_USAGE, 0, "option --%s takes no value", match->name));
	if (!has_value && match->value && last)
		return needs_value(command, match);
	return NULL;
}

static const struct mw_cli_option *find_short(const struct mw_cli_option *options, char key)
{
	for (; options->name; options++)
		if (options->letter == key)
			return options;
	return NULL;
}

static struct mw_error *explain_short(const struct mw_cli_command *command, const char *cluster, bool last)
{
	for (; *cluster; cluster++) {
		const struct mw_cli_option *option = find_short(mw_cli_command_options(command), *cluster);

		if (!option)
			return with_help(command, mw_error_create(MW_ERROR_USAGE, 0, "no such option: -%c",
								  isprint((unsigned char)*cluster) ? *cluster : '?'));
		if (option->value)
			return cluster[1] || !last ? NULL : needs_value(command, option);
	}
	return NULL;
}

static struct mw_error *explain_word(const struct mw_cli_command *command, const char *word, bool last)
{
	if (strncmp(word, "--", 2) == 0)
		return explain_long(command, word + 2, last);
	if (word[0] == '-' && word[1])
		return explain_short(command, word + 1, last);
	return NULL;
}

struct mw_error *mw_cli_explain_option(const struct mw_cli_command *command, int argc, char *const *argv, int next)
{
	struct mw_error *err = NULL;

	for (int i = next > 1 ? next - 1 : 1; !err && i <= next && i < argc; i++)
		err = explain_word(command, argv[i], i + 1 >= argc);
	return err ? err : with_help(command, mw_error_create(MW_ERROR_USAGE, 0, "invalid command line"));
}

struct mw_error *mw_cli_give_help(const struct mw_cli_command *command)
{
	struct mw_outfile *file = NULL;

	MW_TRY(mw_outfile_open("-", &file));
	mw_cli_print_help(command, mw_outfile_stream(file));
	return mw_outfile_commit(file);
}

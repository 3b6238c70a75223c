// SPDX-License-Identifier: MIT
/* usage.c: what is wrong with an option (src/cli/usage.h). */
#include "cli/usage.h"

#include "cli/parse.h"

#include <ctype.h>
#include <string.h>

#define OPTIONS_MAX 32 /* more than any of our tables has */

/* The options of a command, and by what --help they are listed. */
struct table {
	const struct argp_option *options;
	const char *command, *blank; /* empty: of memwatch itself */
};

static struct table table_of(const struct argp_option *options, const char *command)
{
	static const char *const commands[] = {"doctor", "report", "diff"};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (command && strcmp(command, commands[i]) == 0)
			return (struct table){options, commands[i], " "};
	return (struct table){options, "", ""};
}

static struct mw_error *with_help(const struct table *table, struct mw_error *err)
{
	return mw_error_hint(err, "'memwatch%s%s --help' lists the options", table->blank, table->command);
}

static struct mw_error *needs_value(const struct table *table, const struct argp_option *option)
{
	return with_help(
		table, mw_error_create(MW_ERROR_USAGE, 0, "option --%s needs a value (%s)", option->name, option->arg));
}

static struct mw_error *unknown_long(const struct table *table, const char *name, size_t length)
{
	const struct argp_option *options = table->options;
	const char *names[OPTIONS_MAX + 1] = {NULL};
	const char *nearest;
	char word[64] = "";
	size_t count = 0;
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "there is no option --%.*s", (int)length, name);

	for (; options->name && count < OPTIONS_MAX; options++)
		names[count++] = options->name;
	if (length < sizeof(word))
		memcpy(word, name, length);
	nearest = *word ? mw_cli_nearest(word, names) : NULL;
	if (nearest)
		return mw_error_hint(err, "The nearest is --%s; 'memwatch%s%s --help' lists all", nearest, table->blank,
				     table->command);
	return with_help(table, err);
}

/* NULL where nothing is wrong with the word. `last`: nothing follows that could be its value. */
static struct mw_error *explain_long(const struct table *table, const char *name, bool last)
{
	const struct argp_option *match = NULL;
	size_t length = strcspn(name, "=");
	bool has_value = name[length] == '=';

	for (const struct argp_option *option = table->options; option->name; option++) {
		if (strncmp(option->name, name, length) != 0)
			continue;
		if (match && strlen(match->name) != length && strlen(option->name) != length)
			return with_help(table, mw_error_create(MW_ERROR_USAGE, 0, "option --%.*s may be --%s or --%s",
								(int)length, name, match->name, option->name));
		if (!match || strlen(option->name) == length)
			match = option;
	}
	if (!match)
		return unknown_long(table, name, length);
	if (has_value && !match->arg)
		return with_help(table, mw_error_create(MW_ERROR_USAGE, 0, "option --%s takes no value", match->name));
	if (!has_value && match->arg && last)
		return needs_value(table, match);
	return NULL;
}

static const struct argp_option *find_short(const struct argp_option *options, char key)
{
	for (; options->name; options++)
		if (options->key == key)
			return options;
	return NULL;
}

static struct mw_error *explain_short(const struct table *table, const char *cluster, bool last)
{
	for (; *cluster; cluster++) {
		const struct argp_option *option = find_short(table->options, *cluster);

		if (!option)
			return with_help(table, mw_error_create(MW_ERROR_USAGE, 0, "there is no option -%c",
								isprint((unsigned char)*cluster) ? *cluster : '?'));
		if (option->arg)
			return cluster[1] || !last ? NULL : needs_value(table, option);
	}
	return NULL;
}

static struct mw_error *explain_word(const struct table *table, const char *word, bool last)
{
	if (strncmp(word, "--", 2) == 0)
		return explain_long(table, word + 2, last);
	if (word[0] == '-' && word[1])
		return explain_short(table, word + 1, last);
	return NULL;
}

struct mw_error *mw_cli_explain_option(const struct argp_option *options, int argc, char *const *argv, int next)
{
	const struct table table = table_of(options, argv[0]);
	struct mw_error *err = NULL;

	for (int i = next > 1 ? next - 1 : 1; !err && i <= next && i < argc; i++)
		err = explain_word(&table, argv[i], i + 1 >= argc);
	return err ? err : with_help(&table, mw_error_create(MW_ERROR_USAGE, 0, "the command line makes no sense"));
}

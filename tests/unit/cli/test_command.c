// SPDX-License-Identifier: MIT
/* The tables of options, and what is made from them: --help, the manual, the completions. */
#include "cli/documents.h"
#include "cli/options.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static char text[1 << 17];

static FILE *begin(void)
{
	FILE *out;

	memset(text, 0, sizeof(text));
	out = fmemopen(text, sizeof(text) - 1, "w");
	assert_non_null(out);
	return out;
}

static void end(FILE *out)
{
	assert_int_equal(fflush(out), 0);
	assert_true(strlen(text) < sizeof(text) - 2);
	assert_int_equal(fclose(out), 0);
}

/* Is it there, and no part of a longer name? */
static bool mentions(const char *name)
{
	size_t length = strlen(name);

	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
		if (!strchr("abcdefghijklmnopqrstuvwxyz-", at[length]) && strncmp(at + length, "\\-", 2) != 0)
			return true;
	return false;
}

static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; mw_cli_commands[i]; i++) {
		const struct mw_cli_command *command = mw_cli_commands[i];
		size_t count = 0;

		for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name;
		     option++, count++) {
			bool chooses =
				option->completion == MW_COMPLETE_WORD || option->completion == MW_COMPLETE_WORDS;

			assert_true(strlen(option->about) > 10 && option->about[strlen(option->about) - 1] == '.');
			assert_true(chooses == (option->words != NULL));
			assert_true(option->value || option->completion == MW_COMPLETE_NOTHING);
			for (const struct mw_cli_option *other = mw_cli_command_options(command); other != option;
			     other++)
				assert_true((!option->letter || other->letter != option->letter) &&
					    strcmp(other->name, option->name) != 0);
		}
		assert_true(count > 0 &&
			    count < MW_CLI_OPTIONS_MAX); /* as many as there is room for may be all that were left */
	}
}

/* Within 80 columns, and each option once at the head of a line or behind another. */
static void test_help(void **state)
{
	(void)state;
	for (size_t i = 0; mw_cli_commands[i]; i++) {
		FILE *out = begin();

		mw_cli_print_help(mw_cli_commands[i], out);
		end(out);
		for (const char *at = text; *at; at = strchr(at, '\n') + 1)
			assert_true(strcspn(at, "\n") <= 80);
		for (const struct mw_cli_option *option = mw_cli_command_options(mw_cli_commands[i]); option->name;
		     option++) {
			char name[80];

			snprintf(name, sizeof(name), "--%s%s%s", option->name, option->value ? " " : "",
				 option->value ? option->value : "");
			assert_true(mentions(name));
		}
	}
}

static void test_documents(void **state)
{
	static const struct {
		const char *name, *before, *hyphen;
	} kinds[] = {
		{"man", "\\-\\-", "\\-"},
		{"bash", "--", "-"},
		{"zsh", "--", "-"},
		{"fish", "-l ", "-"},
	};

	(void)state;
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		FILE *out = begin();

		assert_true(mw_documents_write(kinds[kind].name, out, "1.2.3"));
		end(out);
		for (size_t i = 0; mw_cli_commands[i]; i++)
			for (const struct mw_cli_option *option = mw_cli_command_options(mw_cli_commands[i]);
			     option->name; option++) {
				char name[80];
				size_t length = (size_t)snprintf(name, sizeof(name), "%s", kinds[kind].before);

				for (const char *at = option->name; *at; at++)
					length += (size_t)snprintf(
						name + length, sizeof(name) - length, "%s%c",
						*at == '-' && kinds[kind].hyphen[0] == '\\' ? "\\" : "", *at);
				if (!mentions(name))
					fail_msg("%s is not in document %zu", name, kind);
			}
	}
}

UNIT_GROUP(command)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

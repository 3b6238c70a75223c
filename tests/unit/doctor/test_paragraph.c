// SPDX-License-Identifier: MIT
/* test_paragraph.c: words of a shell come back as they were; lines are no longer than they should be. */
#include "doctor/look.h"
#include "output/line.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void test_words(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{"/usr/bin/a-b_c+d.so.1", "/usr/bin/a-b_c+d.so.1"},
		{"", "''"},
		{"/a b", "'/a b'"},
		{"/it's", "'/it'\\''s'"},
		{"/$(reboot)`x`\"\\", "'/$(reboot)`x`\"\\'"},
		{"/ünï", "'/ünï'"},
		{"~", "'~'"},
		{"/a\nb'1", "$'/a\\012b\\'1'"},
		{"/\033[2J\\", "$'/\\033[2J\\\\'"},
		{"/\xff", "$'/\\377'"},
		/* Right to left: it would not look like what it is. */
		{"/\xe2\x80\xae"
		 "1",
		 "$'/\\342\\200\\2561'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *word = mw_shell_word(cases[i].text);

		assert_string_equal(word, cases[i].word);
		free(word);
	}
}

/* What bash makes of it is what it was. */
static void test_by_a_shell(void **state)
{
	char text[300], read[300] = "";

	(void)state;
	for (unsigned i = 0; i < 255; i++)
		text[i] = (char)(i + 1);
	text[255] = '\0';
	for (unsigned round = 0; round < 2; round++) {
		/* The second one is printable. */
		const char *from = round ? "it's `$HOME` \"!\" \\ * ? [a] {b,c} #d; & | < > ~ ü" : text;
		char *word = mw_shell_word(from), *command;
		FILE *shell;

		assert_true(asprintf(&command, "printf %%s %s", word) > 0);
		assert_int_equal(setenv("MW_COMMAND", command, 1), 0);
		shell = popen("exec bash -c \"$MW_COMMAND\"", "r");
		assert_non_null(shell);
		read[fread(read, 1, sizeof(read) - 1, shell)] = '\0';
		assert_int_equal(pclose(shell), 0);
		assert_string_equal(read, from);
		free(word);
		free(command);
	}
}

static void test_lines(void **state)
{
	struct mw_paragraph paragraph;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	mw_paragraph_begin(&paragraph, out, 20, 0, 2);
	mw_paragraph_text(&paragraph, "one two three four  five");
	mw_paragraph_word(&paragraph, "of several words, and longer than a line");
	mw_paragraph_printf(&paragraph, "%d %s", 6, "\033[1m");
	mw_paragraph_end(&paragraph);
	fclose(out);
	assert_string_equal(text, "one two three four\n  five\n  of several words, and longer than a line\n"
				  "  6 \\x1b[1m\n");
	free(text);
}

UNIT_GROUP(paragraph)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_by_a_shell),
					   cmocka_unit_test(test_lines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

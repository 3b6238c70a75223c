// SPDX-License-Identifier: MIT
/* test_filter.c: what expressions mean, and what is said of those that mean nothing. */
#include "shop.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool takes(const struct mw_filter *filter, const struct shop *shop, const struct mw_cell *block)
{
	struct mw_selection selection;
	bool taken;

	assert_null(mw_selection_init(&selection, &shop->process, filter, true));
	taken = mw_selection_takes(&selection, block);
	mw_selection_deinit(&selection);
	return taken;
}

/* Is a block of 4096 bytes of that stack, by the worker, in arena 1, transient, meant? */
static bool means(const struct mw_filter *filter, const struct shop *shop, unsigned stack)
{
	const struct mw_cell block = {.bytes = 4096,
				      .stack = stack,
				      .thread = WORKER,
				      .heap = SHOP_HEAPS - 1,
				      .kind = (uint8_t)shop->stacks[stack].kind,
				      .fate = MW_FATE_TRANSIENT};

	return takes(filter, shop, &block);
}

/* Which of the four stacks: 'o'rder, 'p'ut, 'r'eserve, 'i'nternal. */
static const struct {
	const char *text, *meant;
} expressions[] = {
	{"cache", "pr"}, /* a word is of function or module */
	{"shop", "opr"},
	{"function:shop::serve", "o"},
	{"shop::serve", "o"},
	{"function:shop", "o"},
	{"module:libcache", "pr"},
	{"module:libc.", "opri"},
	{"module:/usr/lib/libc.so.6", "opri"},
	{"function:~^cache_", "pr"},
	{"function:~'^(main|sys)'", "opri"},
	{"function:\"~Order\"", ""},
	{"~^arena", "r"},
	{"'Basket::add(shop::Order const&)'", "o"},
	{"line:cache_put", "p"}, /* not one that called it */
	{"line:arena_reserve", "r"},
	{"line:~'put$'", "p"},
	{"language:native", "opri"},
	{"language:python", ""},
	{"api:malloc", "p"},
	{"api:\"operator new\"", "o"},
	{"api:~^m", "pri"},
	{"thread:worker", "opri"},
	{"thread:4243", "opri"},
	{"thread:424", ""},
	{"thread:\"worker 1\"", "opri"},
	{"thread:main", ""},
	{"heap:arena", "opri"},
	{"heap:main", ""},
	{"process:shopd process:4242", "opri"},
	{"process:4243", ""},
	{"size:4096", "opri"},
	{"size:4K", "opri"},
	{"size:4KiB", "opri"},
	{"size:=4k", "opri"},
	{"size:1K-64K", "opri"},
	{"size:4096-4096", "opri"},
	{"size:0-4095", ""},
	{"size:>=4096", "opri"},
	{"size:>4096", ""},
	{"size:<=4096", "opri"},
	{"size:<4096", ""},
	{"size:<4097B", "opri"},
	{"size:>1G", ""},
	{"kind:heap", "op"},
	{"kind:vm", "r"},
	{"kind:vm-internal", "i"},
	{"type:transient", "opri"},
	{"type:impacting", ""},
	{"type:freed", "opri"},
	{"type:not-freed", ""},
	{"stack:00c0", "o"},
	{"stack:FEDC", "r"},
	{"stack:c0ffee", ""},
	{"not cache", "oi"},
	{"not not cache", "pr"},
	{"cache kind:vm", "r"},
	{"cache and kind:vm", "r"},
	{"cache AND kind:vm", "r"},
	{"shop::serve or kind:vm", "or"},
	{"kind:vm or cache kind:heap", "pr"}, /* and binds closer */
	{"cache kind:heap or kind:vm", "pr"},
	{"(kind:vm or cache) kind:heap", "p"},
	{"kind:heap (kind:vm or cache)", "p"},
	{"not kind:vm cache", "p"}, /* not binds closest */
	{"not (kind:vm or cache)", "oi"},
	{"not(kind:vm)and(cache)", "p"},
	{"  cache\t", "pr"},
	{"((cache))", "pr"},
	{"\"and\" or 'not'", ""},
	{"function:and", ""},
};

static void test_meaning(void **state)
{
	static const char letters[] = "opri";
	struct shop shop;

	(void)state;
	shop_init(&shop);
	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		struct mw_filter *filter = NULL;
		struct mw_error *err = mw_filter_parse(expressions[i].text, &filter);
		char meant[5] = "";

		if (err)
			fail_msg("%s: %s", expressions[i].text, mw_error_text(err));
		assert_string_equal(mw_filter_text(filter), expressions[i].text);
		for (unsigned stack = 0; stack < 4; stack++)
			if (means(filter, &shop, stack))
				meant[strlen(meant)] = letters[stack];
		if (strcmp(meant, expressions[i].meant) != 0)
			fail_msg("%s: means '%s', not '%s'", expressions[i].text, meant, expressions[i].meant);
		mw_filter_destroy(filter);
	}
}

static const struct {
	const char *text, *says, *hint;
} mistakes[] = {
	{"", "at character 1 ", "function:parse"},
	{"   ", "at character 4 ", "function:parse"},
	{"cache and", "at character 10 ", "function:parse"},
	{"and cache", "at character 1 (^ in '^and cache'): a term is missing", "between terms"},
	{"cache or or x", "at character 10 ", "between terms"},
	{"not", "at character 4 ", ""},
	{"(cache", "at character 7 ", "quotes"},
	{"cache)", "at character 6 ", "quotes"},
	{"()", "at character 2 ", ""},
	{"cache sise:4K", "at character 7 (^ in 'cache ^sise:4K'): no such field", "size"},
	{"size:", "not a size", "size:4096"},
	{"size:big", "not a size", "size:4096"},
	{"size:-1", "not a size", ""},
	{"size:4K-1K", "not a size", ""},
	{"size:4Q", "not a size", ""},
	{"size:<0", "not a size", ""},
	{"size:99999999999999999999", "not a size", ""},
	{"size:18446744073709551615", "not a size", ""},
	{"size:99999999999999T", "not a size", ""},
	{"kind:pile", "no such kind", "vm-internal"},
	{"type:leak", "no such type", "freed"},
	{"language:latin", "no such language", "python"},
	{"stack:xyz", "stack id", "hexadecimal"},
	{"stack:00112233445566778", "stack id", "hexadecimal"},
	{"stack:", "stack id", "hexadecimal"},
	{"function:", "a value is missing", "function:parse"},
	{"\"\"", "a value is missing", ""},
	{"'open", "at character 1 (^ in '^'open'): a quote is not closed", "pairs"},
	{"function:~", "is empty", "POSIX"},
	{"function:~'a('", "not a valid regular expression", "POSIX"},
	{"function:~'(x)\\1'", "refers back", ""},
	{"function:~'((a{200}){200}){200}'", "repeats too much", ""},
	{"function:~'a{1,99999}'", "repeats too much", ""},
	{"\xc3\xa4\xc3\xb6 kind:x", "at character 4 ", "vm-internal"},
};

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct mw_filter *filter = NULL;
		struct mw_error *err = mw_filter_parse(mistakes[i].text, &filter);

		if (!err)
			fail_msg("%s: taken", mistakes[i].text);
		assert_null(filter);
		assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
		if (!strstr(mw_error_text(err), mistakes[i].says))
			fail_msg("%s: %s", mistakes[i].text, mw_error_text(err));
		if (!strstr(mw_error_hint_text(err), mistakes[i].hint))
			fail_msg("%s: %s", mistakes[i].text, mw_error_hint_text(err));
		mw_error_destroy(err);
	}
}

/* `count` times `text`, and `end`; to be freed. */
static char *repeat(const char *text, size_t count, const char *end)
{
	char *all = calloc(1, strlen(text) * count + strlen(end) + 1);

	assert_non_null(all);
	for (size_t i = 0; i < count; i++)
		memcpy(all + i * strlen(text), text, strlen(text));
	strcat(all, end);
	return all;
}

static void assert_refused(char *text)
{
	struct mw_filter *filter = NULL;
	struct mw_error *err = mw_filter_parse(text, &filter);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	mw_error_destroy(err);
	free(text);
}

static void test_bounds(void **state)
{
	struct mw_filter *filter;
	char *text = repeat("a ", MW_FILTER_TERMS, "");
	struct shop shop;

	(void)state;
	shop_init(&shop);
	assert_null(mw_filter_parse(text, &filter));
	assert_true(means(filter, &shop, ORDER));
	mw_filter_destroy(filter);
	free(text);
	text = repeat("a ", MW_FILTER_TERMS - 1, "nowhere");
	assert_null(mw_filter_parse(text, &filter));
	assert_false(means(filter, &shop, ORDER));
	mw_filter_destroy(filter);
	free(text);
	assert_refused(repeat("a ", MW_FILTER_TERMS + 1, ""));
	assert_refused(repeat("(", 1000, "a"));
	assert_refused(repeat("not ", 1000, "a"));
	assert_refused(repeat("a", 100000, ""));
	text = repeat("(", 200, "a");
	assert_refused(text);
	/* Words as long as can be. */
	text = repeat("x", MW_FILTER_LENGTH, "");
	assert_null(mw_filter_parse(text, &filter));
	mw_filter_destroy(filter);
	free(text);
}

/* Anything: no crash. */
static void test_noise(void **state)
{
	static const char *const pieces[] = {"(",      ")",    " ",     "not", "and", "or", "\"",    "'",
					     ":",      "~",    "size:", "4K",  "-",   "a",  "kind:", "heap",
					     "stack:", "\xff", "<",     "[",   "{9",  "}",  "\\",    "*"};
	uint64_t seed = 7;
	unsigned taken = 0;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	for (unsigned round = 0; round < 20000; round++) {
		struct mw_filter *filter = NULL;
		struct mw_error *err;
		char text[128] = "";

		for (uint64_t i = shop_random(&seed, 12); i > 0; i--)
			strcat(text, pieces[shop_random(&seed, sizeof(pieces) / sizeof(pieces[0]))]);
		err = mw_filter_parse(text, &filter);
		if (!err) {
			(void)means(filter, &shop, (unsigned)shop_random(&seed, 4));
			taken++;
		}
		mw_error_destroy(err);
		mw_filter_destroy(filter);
	}
	assert_true(taken > 500);
}

static void test_columns(void **state)
{
	struct mw_filter *filter;

	(void)state;
	assert_null(mw_filter_parse("size:4 or thread:x", &filter));
	assert_int_equal(mw_filter_columns(filter), 1 << MW_COLUMN_SIZE | 1 << MW_COLUMN_THREAD);
	mw_filter_destroy(filter);
	assert_null(mw_filter_parse("kind:vm not kind:heap x", &filter));
	assert_false(mw_filter_names_internal(filter));
	mw_filter_destroy(filter);
	assert_null(mw_filter_parse("x or not kind:vm-internal", &filter));
	assert_true(mw_filter_names_internal(filter));
	mw_filter_destroy(filter);
	assert_null(mw_filter_parse("x", &filter));
	assert_int_equal(mw_filter_columns(filter), 1 << MW_COLUMN_FUNCTION | 1 << MW_COLUMN_MODULE);
	mw_filter_destroy(filter);
	mw_filter_destroy(NULL);
}

/* Of a line of a script, its place. */
static void test_line(void **state)
{
	static struct mw_report_frame frames[] = {
		{.function = "list_append", .module = APP},
		{.function = "handle",
		 .module = "[python]",
		 .file = "/srv/app.py",
		 .line = 41,
		 .language = MW_LANGUAGE_PYTHON},
	};
	static const struct {
		const char *text;
		bool meant;
	} terms[] = {{"line:app.py", true},      {"line:app.py:41", true},    {"line:handle", true},
		     {"line:app.py:42", false},  {"line:list_append", false}, {"language:python", true},
		     {"language:native", false}, {"line:~':4[12]$'", true}};
	struct shop shop;

	(void)state;
	shop_init(&shop);
	shop.stacks[ORDER].frames = frames;
	shop.stacks[ORDER].frame_count = 2;
	shop.stacks[ORDER].charged = 1;
	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
		struct mw_filter *filter;

		assert_null(mw_filter_parse(terms[i].text, &filter));
		if (means(filter, &shop, ORDER) != terms[i].meant)
			fail_msg("%s", terms[i].text);
		mw_filter_destroy(filter);
	}
}

/* What is not known is no match, even of what matches anything. */
static void test_unknown(void **state)
{
	static const char *const texts[] = {"size:>=0", "function:~.", "thread:~.", "heap:~.", "process:~."};
	const struct mw_cell block = {.bytes = MW_SIZE_UNKNOWN,
				      .stack = NOWHERE,
				      .thread = STRANGER,
				      .kind = MW_KIND_HEAP,
				      .fate = MW_FATE_AOFI};
	struct shop shop;

	(void)state;
	shop_init(&shop);
	shop.report.target.comm = NULL;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct mw_filter *filter;

		assert_null(mw_filter_parse(texts[i], &filter));
		assert_false(takes(filter, &shop, &block));
		mw_filter_destroy(filter);
	}
}

UNIT_GROUP(filter)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meaning), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_noise),   cmocka_unit_test(test_columns),  cmocka_unit_test(test_line),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

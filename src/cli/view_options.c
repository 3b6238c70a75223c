// SPDX-License-Identifier: MIT
/* view_options.c: see view_options.h. */
#include "cli/view_options.h"

#include "cli/command.h"
#include "cli/parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX  24 /* longer than any word that is known */
#define NS_DIGITS 9

static struct mw_error *usage(const char *option, const char *text, const char *why, const char *hint)
{
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': %s", option, text, why), "%s", hint);
}

static struct mw_error *parse_type(const char *text, struct mw_cli_view_options *options)
{
	static const enum mw_fate types[] = {MW_FATE_IMPACTING, MW_FATE_TRANSIENT, MW_FATE_AOFI, MW_FATE_ALL};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(text, mw_fate_name(types[i])) != 0)
			continue;
		options->question.type = types[i];
		options->has_type = true;
		return NULL;
	}
	return usage("--type", text, "there is no such type", "Types are impacting, transient, aofi and all");
}

static struct mw_error *parse_sort(const char *text, struct mw_cli_view_options *options)
{
	for (unsigned i = 0; i < MW_SORT_NUMBER; i++) {
		if (strcmp(text, mw_sort_name((enum mw_sort)i)) != 0)
			continue;
		options->question.sort = (enum mw_sort)i;
		options->has_sort = true;
		return NULL;
	}
	return usage("--sort", text, "there is no such figure",
		     "It takes impacting, size, count, transient, aofi, peak or lifetime");
}

static struct mw_error *add_column(const char *text, const char *word, struct mw_view_question *question)
{
	static const char hint[] = "It takes process, kind, heap, type, thread, module, function, stack, size and api, "
				   "with commas between, as in --by module,thread";
	enum mw_column column = 0;

	while (column < MW_COLUMN_COUNT && strcmp(word, mw_column_name(column)) != 0)
		column++;
	if (column == MW_COLUMN_COUNT)
		return usage("--by", *word ? word : text, *word ? "there is no such column" : "a column is missing",
			     hint);
	for (size_t i = 0; i < question->by_count; i++)
		if (question->by[i] == column)
			return usage("--by", text, "a column is named twice", hint);
	question->by[question->by_count++] = column;
	return NULL;
}

static struct mw_error *parse_by(const char *text, struct mw_view_question *question)
{
	const char *rest = text;

	question->by_count = 0;
	for (;;) {
		size_t length = strcspn(rest, ",");
		char word[WORD_MAX] = "?";

		if (length < sizeof(word)) {
			memcpy(word, rest, length);
			word[length] = '\0';
		}
		MW_TRY(add_column(text, word, question));
		if (!rest[length])
			return NULL;
		rest += length + 1;
	}
}

static struct mw_error *parse_tree(const char *text, struct mw_view_question *question)
{
	if (strcmp(text, "down") == 0)
		question->tree = MW_TREE_DOWN;
	else if (strcmp(text, "up") == 0)
		question->tree = MW_TREE_UP;
	else
		return usage("--tree", text, "there is no such tree",
			     "It takes 'down' (from the threads' starts) or 'up' (from the allocators)");
	return NULL;
}

static struct mw_error *parse_filter(const char *text, struct mw_cli_view_options *options)
{
	struct mw_filter *filter;

	MW_TRY(mw_filter_parse(text, &filter));
	mw_filter_destroy(options->filter);
	options->filter = filter;
	options->question.filter = filter;
	return NULL;
}

static struct mw_error *parse_blocks(const char *text, struct mw_view_question *question)
{
	uint64_t value = 0;

	MW_TRY(mw_cli_parse_count("--blocks", text, 1, MW_BLOCKLIST_MAX, &value));
	question->blocks = value;
	return NULL;
}

bool mw_cli_view_option(int key, const char *arg, struct mw_cli_view_options *options, struct mw_error **err)
{
	switch (key) {
	case MW_KEY_TYPE:
		*err = parse_type(arg, options);
		return true;
	case MW_KEY_BY:
		*err = parse_by(arg, &options->question);
		return true;
	case MW_KEY_SORT:
		*err = parse_sort(arg, options);
		return true;
	case MW_KEY_TREE:
		*err = parse_tree(arg, &options->question);
		return true;
	case MW_KEY_FILTER:
		*err = parse_filter(arg, options);
		return true;
	case MW_KEY_BLOCKS:
		*err = parse_blocks(arg, &options->question);
		return true;
	default:
		return false;
	}
}

bool mw_cli_view_options_any(const struct mw_cli_view_options *options)
{
	const struct mw_view_question *question = &options->question;

	return question->by_count || question->tree != MW_TREE_NONE || question->blocks || options->has_type ||
	       options->has_sort || question->filter;
}

static enum mw_sort default_sort(enum mw_fate type)
{
	switch (type) {
	case MW_FATE_TRANSIENT:
		return MW_SORT_TRANSIENT;
	case MW_FATE_AOFI:
		return MW_SORT_AOFI;
	case MW_FATE_ALL:
		return MW_SORT_SIZE;
	case MW_FATE_IMPACTING:
	case MW_FATE_AOFO:
		break;
	}
	return MW_SORT_IMPACTING;
}

struct mw_error *mw_cli_view_options_finish(struct mw_cli_view_options *options, size_t top)
{
	struct mw_view_question *question = &options->question;
	struct mw_error *err;

	if (question->tree != MW_TREE_NONE && options->has_sort && question->sort == MW_SORT_LIFETIME) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "a call tree can't be sorted by lifetime");
		return mw_error_hint(err, "Stacks can, as in --by stack --sort lifetime");
	}
	if (mw_cli_view_options_any(options) && !question->by_count && question->tree == MW_TREE_NONE &&
	    !question->blocks)
		question->by[question->by_count++] = MW_COLUMN_STACK;
	for (size_t i = 0; i < question->by_count && !options->has_type; i++)
		if (question->by[i] == MW_COLUMN_TYPE)
			question->type = MW_FATE_ALL;
	if (!options->has_sort)
		question->sort = default_sort(question->type);
	question->top = top;
	return NULL;
}

void mw_cli_view_options_deinit(struct mw_cli_view_options *options)
{
	mw_filter_destroy(options->filter);
	*options = (struct mw_cli_view_options){0};
}

struct mw_error *mw_cli_parse_moment(const char *option, const char *text, uint64_t *ns)
{
	static const char hint[] = "It takes seconds since the window's start, as in 30 or 2.5";
	const char *at = text;
	uint64_t value = 0;
	bool digits = false;

	for (; isdigit((unsigned char)*at); at++, digits = true) {
		value = value * 10 + (uint64_t)(*at - '0');
		if ((double)value > MW_CLI_SECONDS_MAX)
			return usage(option, text, "too late", hint);
	}
	if (*at == '.')
		at++;
	for (unsigned i = 0; i < NS_DIGITS; i++) {
		value *= 10;
		if (!isdigit((unsigned char)*at))
			continue;
		value += (uint64_t)(*at++ - '0');
		digits = true;
	}
	/* Finer than a nanosecond: it makes no difference. */
	at += strspn(at, "0123456789");
	if (*at || !digits)
		return usage(option, text, "not a moment", hint);
	*ns = value;
	return NULL;
}

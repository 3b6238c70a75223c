// SPDX-License-Identifier: MIT
/* view_options.c: see view_options.h. */
#include "cli/view_options.h"

#include "cli/parse.h"

#include <stdlib.h>
#include <string.h>

#define WORD_MAX 24 /* longer than any word that is known */

static struct mw_error *usage(const char *option, const char *text, const char *why, const char *hint)
{
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': %s", option, text, why), "%s", hint);
}

struct mw_error *mw_cli_parse_type(const char *option, const char *text, void *member)
{
	struct mw_cli_view_options *options = member;
	static const enum mw_fate types[] = {MW_FATE_IMPACTING, MW_FATE_TRANSIENT, MW_FATE_AOFI, MW_FATE_ALL};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(text, mw_fate_name(types[i])) != 0)
			continue;
		options->question.type = types[i];
		options->has_type = true;
		return NULL;
	}
	return usage(option, text, "no such type", "Types are impacting, transient, aofi and all");
}

struct mw_error *mw_cli_parse_sort(const char *option, const char *text, void *member)
{
	struct mw_cli_view_options *options = member;
	for (unsigned i = 0; i < MW_SORT_NUMBER; i++) {
		if (strcmp(text, mw_sort_name((enum mw_sort)i)) != 0)
			continue;
		options->question.sort = (enum mw_sort)i;
		options->has_sort = true;
		return NULL;
	}
	return usage(option, text, "no such figure",
		     "It takes impacting, size, count, transient, aofi, peak or lifetime");
}

static struct mw_error *add_column(const char *option, const char *text, const char *word,
				   struct mw_view_question *question)
{
	static const char hint[] = "It takes process, kind, heap, type, thread, module, function, stack, size and api, "
				   "with commas between, as in --by module,thread";
	enum mw_column column = 0;

	while (column < MW_COLUMN_COUNT && strcmp(word, mw_column_name(column)) != 0)
		column++;
	if (column == MW_COLUMN_COUNT)
		return usage(option, *word ? word : text, *word ? "no such column" : "a column is missing", hint);
	for (size_t i = 0; i < question->by_count; i++)
		if (question->by[i] == column)
			return usage(option, text, "a column is given twice", hint);
	question->by[question->by_count++] = column;
	return NULL;
}

struct mw_error *mw_cli_parse_by(const char *option, const char *text, void *member)
{
	struct mw_view_question *question = &((struct mw_cli_view_options *)member)->question;
	const char *rest = text;

	question->by_count = 0;
	for (;;) {
		size_t length = strcspn(rest, ",");
		char word[WORD_MAX] = "?";

		if (length < sizeof(word)) {
			memcpy(word, rest, length);
			word[length] = '\0';
		}
		MW_TRY(add_column(option, text, word, question));
		if (!rest[length])
			return NULL;
		rest += length + 1;
	}
}

struct mw_error *mw_cli_parse_tree(const char *option, const char *text, void *member)
{
	struct mw_view_question *question = &((struct mw_cli_view_options *)member)->question;
	if (strcmp(text, "down") == 0)
		question->tree = MW_TREE_DOWN;
	else if (strcmp(text, "up") == 0)
		question->tree = MW_TREE_UP;
	else
		return usage(option, text, "there is no such tree",
			     "It takes 'down' (from the threads' starts) or 'up' (from the allocators)");
	return NULL;
}

struct mw_error *mw_cli_parse_filter(const char *option, const char *text, void *member)
{
	struct mw_cli_view_options *options = member;
	struct mw_filter *filter;

	(void)option; /* an error says so itself */
	MW_TRY(mw_filter_parse(text, &filter));
	mw_filter_destroy(options->filter);
	options->filter = filter;
	options->question.filter = filter;
	return NULL;
}

struct mw_error *mw_cli_parse_blocks(const char *option, const char *text, void *member)
{
	struct mw_view_question *question = &((struct mw_cli_view_options *)member)->question;
	uint64_t value = 0;

	MW_TRY(mw_cli_parse_count(option, text, 1, MW_BLOCKLIST_MAX, &value));
	question->blocks = value;
	return NULL;
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

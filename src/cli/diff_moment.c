// SPDX-License-Identifier: MIT
/* diff_moment.c: see diff_moment.h. */
#include "cli/diff_moment.h"

#include "cli/parse.h"
#include "view/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LISTED_MARKS 8
#define DIGITS       "0123456789"

/* Does the name say no more than the number? */
static bool is_numbered(const struct mw_stored_mark *mark)
{
	char plain[32];

	snprintf(plain, sizeof(plain), "mark %" PRIu32, mark->number);
	return !mark->name || !*mark->name || strcmp(mark->name, plain) == 0;
}

/* "1 at 10.000 s, 2 (deployed) at 20.000 s, …" */
static void list_marks(const struct mw_metadata *metadata, char *out, size_t size)
{
	size_t length = 0;

	out[0] = '\0';
	for (size_t i = 0; i < metadata->mark_count && length < size; i++) {
		const struct mw_stored_mark *mark = &metadata->marks[i];
		bool named = !is_numbered(mark);

		if (i == LISTED_MARKS) {
			snprintf(out + length, size - length, " and %zu more", metadata->mark_count - i);
			return;
		}
		length += (size_t)snprintf(out + length, size - length, "%s%" PRIu32 "%s%.32s%s at %.3f s",
					   i ? ", " : "", mark->number, named ? " (" : "", named ? mark->name : "",
					   named ? ")" : "", (double)mark->time_ns / 1e9);
	}
}

static struct mw_error *no_such_mark(const char *option, const char *word, const struct mw_metadata *metadata)
{
	char list[1024];
	struct mw_error *err;

	if (!metadata->mark_count) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': the recording has no marks", option, word);
		return mw_error_hint(err, "Marks are made while recording: by --mark-every, or by SIGUSR1 to memwatch. "
					  "Moments are also 'start', 'end' and times as in 12.5s");
	}
	list_marks(metadata, list, sizeof(list));
	err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': no such mark", option, word);
	return mw_error_hint(err, "Marks are %s; moments are also 'start', 'end' and times as in 12.5s", list);
}

static void take_mark(const struct mw_stored_mark *mark, const struct mw_metadata *metadata, bool cut,
		      struct mw_cli_moment *out)
{
	/* What is of the window's last nanosecond is inside of it. */
	out->time_ns = !cut && mark->time_ns >= mw_metadata_length(metadata) ? MW_REPLAY_END : mark->time_ns;
	if (is_numbered(mark))
		snprintf(out->text, sizeof(out->text), "mark %" PRIu32, mark->number);
	else
		snprintf(out->text, sizeof(out->text), "mark %" PRIu32 " (%.64s)", mark->number, mark->name);
}

static const struct mw_stored_mark *by_number(const char *word, const struct mw_metadata *metadata)
{
	char number[16];

	for (size_t i = 0; i < metadata->mark_count; i++) {
		snprintf(number, sizeof(number), "%" PRIu32, metadata->marks[i].number);
		if (strcmp(number, word) == 0)
			return &metadata->marks[i];
	}
	return NULL;
}

static const struct mw_stored_mark *by_name(const char *word, const struct mw_metadata *metadata, size_t *count)
{
	const struct mw_stored_mark *found = NULL;

	*count = 0;
	for (size_t i = 0; i < metadata->mark_count; i++) {
		if (!metadata->marks[i].name || strcmp(metadata->marks[i].name, word) != 0)
			continue;
		found = found ? found : &metadata->marks[i];
		++*count;
	}
	return found;
}

/* 12.5s, and 12.5, which can be no mark's number. */
static bool is_time(const char *word)
{
	size_t length = strspn(word, DIGITS ".");

	return length && (word[length] == 's' ? !word[length + 1] : !word[length] && memchr(word, '.', length));
}

static struct mw_error *take_time(const char *option, const char *word, const struct mw_metadata *metadata, bool cut,
				  struct mw_cli_moment *out)
{
	uint64_t length = mw_metadata_length(metadata), time_ns = 0;
	char seconds[64] = "";
	struct mw_error *err;

	snprintf(seconds, sizeof(seconds), "%.*s", (int)strspn(word, DIGITS "."), word);
	/* 0 is a moment too. */
	if (strspn(seconds, "0.") != strlen(seconds) || !strchr(seconds, '0'))
		MW_TRY(mw_cli_parse_seconds(option, seconds, &time_ns));
	if (!cut && time_ns > length) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': the window ends at %.3f s", option, word,
				      (double)length / 1e9);
		return mw_error_hint(err, "Times are seconds since the window's start: take an earlier one, or 'end'");
	}
	out->time_ns = !cut && time_ns == length ? MW_REPLAY_END : time_ns;
	out->text[0] = '\0';
	return NULL;
}

struct mw_error *mw_cli_moment_find(const char *option, const char *word, const struct mw_metadata *metadata, bool cut,
				    struct mw_cli_moment *out)
{
	const struct mw_stored_mark *mark;
	size_t named = 0;
	struct mw_error *err;

	if (strcmp(word, "start") == 0) {
		*out = (struct mw_cli_moment){.time_ns = 0, .text = "start"};
		return NULL;
	}
	if (strcmp(word, "end") == 0) {
		*out = (struct mw_cli_moment){.time_ns = MW_REPLAY_END, .text = "end"};
		return NULL;
	}
	mark = by_number(word, metadata);
	if (!mark)
		mark = by_name(word, metadata, &named);
	if (named > 1) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': %zu marks have this name", option, word, named);
		return mw_error_hint(err, "Name one by its number, which is %" PRIu32 " for the first of them",
				     mark->number);
	}
	if (!mark && is_time(word))
		return take_time(option, word, metadata, cut, out);
	if (!mark)
		return no_such_mark(option, word, metadata);
	take_mark(mark, metadata, cut, out);
	return NULL;
}

// SPDX-License-Identifier: MIT
/* parse.c: the words of a command line to values (src/cli/parse.h). */
#include "cli/parse.h"

#include "cli/command.h"
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PID_MAX   4194304 /* the kernel's own limit: PID_MAX_LIMIT */
#define TRACKS    "kinds are 'heap' and 'vm', as in --track heap,vm"
#define WORD_MAX  64 /* longer words are near to nothing */
#define NS_PER_S  1e9
#define NS_DIGITS 9
#define DEPTH_MAX 1024
#define TOP_MAX   1000000

const char mw_cli_formats_of_reports[] = "reports", mw_cli_formats_of_diffs[] = "diffs";

static struct mw_error *usage(const char *option, const char *text, const char *why, const char *hint)
{
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': %s", option, text, why);

	return mw_error_hint(err, "%s", hint);
}

/* Is the text digits, at most one point among them, and at least one digit? */
static bool is_decimal(const char *text, bool fraction)
{
	size_t digits = 0;

	for (; *text; text++) {
		if (isdigit((unsigned char)*text))
			digits++;
		else if (fraction && *text == '.')
			fraction = false;
		else
			return false;
	}
	return digits > 0;
}

struct mw_error *mw_cli_parse_seconds(const char *option, const char *text, void *member)
{
	static const char hint[] = "It takes seconds between 0.001 and 315360000 (ten years), as in 30 or 2.5";
	double value;

	/* strtod alone would take nan, inf, hexadecimal and leading blanks. */
	if (!is_decimal(text, true))
		return usage(option, text, "not a number of seconds", hint);
	value = strtod(text, NULL);
	if (value < MW_CLI_SECONDS_MIN)
		return usage(option, text, "too short", hint);
	if (value > MW_CLI_SECONDS_MAX)
		return usage(option, text, "too long", hint);
	*(uint64_t *)member = (uint64_t)(value * NS_PER_S);
	return NULL;
}

struct mw_error *mw_cli_parse_count(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long value;
	struct mw_error *err;

	errno = 0;
	value = is_decimal(text, false) ? strtoull(text, NULL, 10) : 0;
	if (is_decimal(text, false) && !errno && value >= min && value <= max) {
		*out = value;
		return NULL;
	}
	err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': %s", option, text,
			      is_decimal(text, false) ? "out of range" : "not a whole number");
	return mw_error_hint(err, "It takes a number from %llu to %llu", (unsigned long long)min,
			     (unsigned long long)max);
}

struct mw_error *mw_cli_parse_size(const char *option, const char *text, void *member)
{
	static const char hint[] =
		"It takes bytes, or K, M, G or T of them (1024 each to the next), as in 512M or 1.5G";
	static const char units[] = "KMGT";
	size_t length = strlen(text);
	char number[WORD_MAX];
	const char *unit = NULL;
	double value;

	if (length && length < sizeof(number))
		unit = strchr(units, toupper((unsigned char)text[length - 1]));
	if (length >= sizeof(number))
		return usage(option, text, "not a size", hint);
	memcpy(number, text, length + 1);
	if (unit)
		number[length - 1] = '\0';
	/* Parts of a byte make no sense. */
	if (!is_decimal(number, unit != NULL))
		return usage(option, text, "not a size", hint);
	value = strtod(number, NULL);
	for (const char *at = units; unit && at <= unit; at++)
		value *= 1024;
	if (value < 1)
		return usage(option, text, "too small", hint);
	if (value > MW_CLI_SIZE_MAX)
		return usage(option, text, "too large", hint);
	*(uint64_t *)member = (uint64_t)value;
	return NULL;
}

struct mw_error *mw_cli_parse_percent(const char *option, const char *text, void *member)
{
	static const char hint[] = "It takes a percentage above 0 and below 100, as in 20 or 2.5";
	char number[WORD_MAX];
	size_t length = strlen(text);
	double value;

	if (length >= sizeof(number))
		return usage(option, text, "not a percentage", hint);
	memcpy(number, text, length + 1);
	if (length > 1 && number[length - 1] == '%')
		number[length - 1] = '\0';
	if (!is_decimal(number, true))
		return usage(option, text, "not a percentage", hint);
	value = strtod(number, NULL) * 10000;
	if (value < 1 || value >= 1000000)
		return usage(option, text, "out of range", hint);
	*(uint32_t *)member = (uint32_t)value;
	return NULL;
}

struct mw_error *mw_cli_parse_moment(const char *option, const char *text, void *member)
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
	*(uint64_t *)member = value;
	return NULL;
}

/* The next of a comma-separated list in a buffer of its own; false where it is too long for any known word. */
static bool next_word(const char **text, char word[WORD_MAX])
{
	size_t length = strcspn(*text, ",");
	bool fits = length < WORD_MAX;

	if (fits) {
		memcpy(word, *text, length);
		word[length] = '\0';
	}
	*text += length;
	return fits;
}

static struct mw_error *append_pid(struct mw_pids *pids, pid_t pid)
{
	pid_t *items;

	for (size_t i = 0; i < pids->count; i++)
		if (pids->items[i] == pid)
			return NULL;
	items = realloc(pids->items, (pids->count + 1) * sizeof(*items));
	if (!items)
		return mw_error_nomem();
	items[pids->count] = pid;
	pids->items = items;
	pids->count++;
	return NULL;
}

struct mw_error *mw_cli_parse_pids(const char *option, const char *text, void *member)
{
	static const char hint[] = "It takes process ids with commas between, as in -p 1234 or -p 1234,1235";
	const char *rest = text;
	char word[WORD_MAX];

	for (;;) {
		uint64_t value = 0;

		if (*rest == ',' || !*rest)
			return usage(option, text, "a process id is missing", hint);
		if (!next_word(&rest, word) || !is_decimal(word, false))
			return usage(option, text, "not a process id", hint);
		errno = 0;
		value = strtoull(word, NULL, 10);
		if (errno || value == 0 || value > PID_MAX)
			return usage(option, word, "no process can have this id",
				     "Process ids go from 1 to 4194304; 'ps -e' lists those that run");
		MW_TRY(append_pid(member, (pid_t)value));
		if (!*rest)
			return NULL;
		rest++;
	}
}

void mw_cli_pids_deinit(struct mw_pids *pids)
{
	free(pids->items);
	pids->items = NULL;
	pids->count = 0;
}

struct mw_error *mw_cli_parse_track(const char *option, const char *text, void *member)
{
	struct mw_session_options *options = member;
	const char *rest = text;
	char word[WORD_MAX];
	bool wants_heap = false;
	bool wants_vm = false;

	for (;;) {
		bool fits = next_word(&rest, word);

		if (fits && strcmp(word, "heap") == 0)
			wants_heap = true;
		else if (fits && strcmp(word, "vm") == 0)
			wants_vm = true;
		else
			return usage(option, text, "not a list of kinds of memory", TRACKS);
		if (!*rest)
			break;
		rest++;
	}
	options->track_heap = wants_heap;
	options->track_vm = wants_vm;
	return NULL;
}

struct mw_error *mw_cli_parse_engine(const char *option, const char *name, void *member)
{
	struct mw_session_options *options = member;
	static const struct {
		const char *name, *reason;
	} engines[] = {
		{"auto", NULL}, /* it says itself what it took, and why */
		{"jump", "asked for by --engine jump"},
		{"trap", "asked for by --engine trap"},
	};

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(name, engines[i].name) == 0) {
			options->engine = engines[i].name;
			options->engine_reason = engines[i].reason;
			return NULL;
		}
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': no such engine", option, name),
			     "Engines are 'jump', 'trap', and 'auto', which takes jump wherever it is safe");
}

struct mw_error *mw_cli_parse_output(const char *option, const char *name, void *member)
{
	struct mw_error *err;

	if (!*name || strcmp(name, "-") == 0) {
		err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%s': not the name of a file", option, name);
		return mw_error_hint(err, "A recording is written to a file during the window, as in -o leak.mw");
	}
	*(const char **)member = name;
	return NULL;
}

struct mw_error *mw_cli_parse_mark_every(const char *option, const char *text, void *member)
{
	char number[64];
	size_t length = strlen(text);

	if (length > 1 && length < sizeof(number) && text[length - 1] == 's') {
		memcpy(number, text, length - 1);
		number[length - 1] = '\0';
		return mw_cli_parse_seconds(option, number, member);
	}
	return mw_cli_parse_seconds(option, text, member);
}

struct mw_error *mw_cli_parse_depth(const char *option, const char *text, void *member)
{
	uint64_t value = 0;

	MW_TRY(mw_cli_parse_count(option, text, 1, DEPTH_MAX, &value));
	*(uint32_t *)member = (uint32_t)value;
	return NULL;
}

struct mw_error *mw_cli_parse_top(const char *option, const char *text, void *member)
{
	uint64_t value = 0;

	MW_TRY(mw_cli_parse_count(option, text, 0, TOP_MAX, &value));
	*(size_t *)member = value;
	return NULL;
}

struct mw_error *mw_cli_parse_flag(const char *option, const char *text, void *member)
{
	(void)option;
	(void)text;
	*(bool *)member = true;
	return NULL;
}

/* Edits (insert, delete, replace) that make one word the other; both shorter than WORD_MAX. */
static size_t distance(const char *a, const char *b)
{
	size_t row[WORD_MAX];
	size_t width = strlen(b);

	for (size_t j = 0; j <= width; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
			size_t least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			diagonal = row[j];
			row[j] = replaced < least ? replaced : least;
		}
	}
	return row[width];
}

struct mw_error *mw_cli_parse_file(const char *option, const char *name, void *member)
{
	if (!*name)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '': the file's name is empty", option),
				     "It takes the name of a file, or '-' for standard output");
	*(const char **)member = name;
	return NULL;
}

const char *mw_cli_nearest(const char *word, const char *const *words)
{
	size_t best = 0;
	const char *nearest = NULL;

	if (strlen(word) >= WORD_MAX)
		return NULL;
	for (; *words; words++) {
		/* A word that was cut short is nearer than its missing letters say. */
		bool prefix = *word && strncmp(word, *words, strlen(word)) == 0;
		size_t edits = prefix ? 1 : distance(word, *words);

		if (!nearest || edits < best) {
			best = edits;
			nearest = *words;
		}
	}
	/* More than half of the word changed is another word. */
	return nearest && best * 2 <= strlen(nearest) ? nearest : NULL;
}

struct mw_error *mw_cli_parse_help(const char *option, const char *text, void *member)
{
	(void)option;
	(void)text;
	*(enum mw_cli_action *)member = MW_CLI_HELP;
	return NULL;
}

struct mw_error *mw_cli_parse_version(const char *option, const char *text, void *member)
{
	(void)option;
	(void)text;
	*(enum mw_cli_action *)member = MW_CLI_VERSION;
	return NULL;
}

// SPDX-License-Identifier: MIT
/* parse.c: the words of a command line to values (options.h). */
#include "cli/options.h"

#include "session/select.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PID_MAX     4194304 /* the kernel's own limit: PID_MAX_LIMIT */
#define WORD_MAX    64      /* longer words are near to nothing */
#define DEPTH_MAX   1024
#define TOP_MAX     1000000
#define COLUMN_MAX  24 /* longer than any column's name */
#define PROCESS_MAX 4096
#define NS_PER_S    UINT64_C(1000000000)

const char mw_cli_formats_of_reports[] = "reports", mw_cli_formats_of_diffs[] = "diffs",
	   mw_cli_formats_of_heaps[] = "heaps", mw_cli_formats_of_exports[] = "exports";

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

/* A number with its unit, as the 1.5h of "1.5h30m": its ns, cut off below, and where the text goes on. False: there is none.
 * Too many ns are MW_CLI_NS_MAX + 1 of them. */
static bool next_span(const char **text, const char *unit, uint64_t unit_ns, uint64_t *out)
{
	const char *at = *text;
	uint64_t whole = 0, part = 0, digit_ns = unit_ns;
	size_t digits = 0;

	for (; isdigit((unsigned char)*at); at++, digits++)
		whole = whole > MW_CLI_NS_MAX ? whole : whole * 10 + (uint64_t)(*at - '0');
	if (*at == '.')
		for (at++; isdigit((unsigned char)*at); at++, digits++) {
			digit_ns /= 10;
			part += digit_ns * (uint64_t)(*at - '0');
		}
	if (!digits || strncmp(at, unit, strlen(unit)) != 0 || isalpha((unsigned char)at[strlen(unit)]))
		return false;
	*out = whole > MW_CLI_NS_MAX / unit_ns ? MW_CLI_NS_MAX + 1 : whole * unit_ns + part;
	*text = at + strlen(unit);
	return true;
}

/* A time in ns, to the ns: plain seconds, or numbers with units, the larger ones first. False: it is none. More than
 * MW_CLI_NS_MAX may be any more. */
static bool parse_time(const char *text, uint64_t *out)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"d", 86400 * NS_PER_S}, {"h", 3600 * NS_PER_S}, {"m", 60 * NS_PER_S},
		     {"s", NS_PER_S},         {"ms", 1000000},        {"us", 1000}};
	uint64_t sum = 0, span;

	if (is_decimal(text, true))
		return next_span(&text, "", NS_PER_S, out);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && *text; i++)
		if (next_span(&text, units[i].name, units[i].ns, &span))
			sum += span;
	*out = sum;
	return !*text;
}

static struct mw_error *parse_seconds(const char *option, const char *text, void *member)
{
	static const char hint[] = "It takes a time from 1ms to ten years: seconds, as in 30 or 2.5, or with units, as "
				   "in 500ms, 10s, 1m or 1h30m";
	uint64_t ns;

	if (!*text || !parse_time(text, &ns))
		return usage(option, text, "not a time", hint);
	if (ns < MW_CLI_NS_MIN)
		return usage(option, text, "too short", hint);
	if (ns > MW_CLI_NS_MAX)
		return usage(option, text, "too long", hint);
	*(uint64_t *)member = ns;
	return NULL;
}

static struct mw_error *parse_count(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long value;

	errno = 0;
	value = is_decimal(text, false) ? strtoull(text, NULL, 10) : 0;
	if (is_decimal(text, false) && !errno && value >= min && value <= max) {
		*out = value;
		return NULL;
	}
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': %s", option, text,
					     is_decimal(text, false) ? "out of range" : "not a whole number"),
			     "It takes a number from %llu to %llu", (unsigned long long)min, (unsigned long long)max);
}

static struct mw_error *parse_size(const char *option, const char *text, void *member)
{
	static const char hint[] =
		"It takes bytes, or K, M, G or T of them (1024 each to the next), as in 512M, 1.5G or 64KiB";
	static const char units[] = "KMGT";
	size_t length = strlen(text);
	char number[WORD_MAX];
	const char *unit = NULL;
	double value;

	if (length > 3 && strcmp(text + length - 2, "iB") == 0 && isalpha((unsigned char)text[length - 3]))
		length -= 2;
	if (length && length < sizeof(number))
		unit = strchr(units, toupper((unsigned char)text[length - 1]));
	if (length >= sizeof(number))
		return usage(option, text, "not a size", hint);
	memcpy(number, text, length);
	number[length - (unit != NULL)] = '\0';
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

static struct mw_error *parse_fail_on(const char *option, const char *text, void *member)
{
	static const char rate[] = "growth:";
	struct mw_fail_on *fail_on = member;

	if (strcmp(text, "leak") == 0) {
		fail_on->leak = true;
		return NULL;
	}
	if (strncmp(text, rate, sizeof(rate) - 1) == 0)
		MW_TRY(parse_size(option, text + sizeof(rate) - 1, &fail_on->bytes_per_hour));
	else if (strcmp(text, "growth") != 0)
		return usage(option, text, "neither leak nor growth",
			     "It takes leak, growth, or growth:BYTES in an hour, as in growth:10M");
	else
		fail_on->bytes_per_hour = 0;
	fail_on->growth = true;
	return NULL;
}

static struct mw_error *parse_share(const char *option, const char *text, const char *hint, double most,
				    uint32_t *member)
{
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
	if (value < 1 || value > most)
		return usage(option, text, "out of range", hint);
	*member = (uint32_t)value;
	return NULL;
}

static struct mw_error *parse_percent(const char *option, const char *text, void *member)
{
	return parse_share(option, text, "It takes a percentage above 0 and below 100, as in 20 or 2.5", 999999,
			   member);
}

static struct mw_error *parse_overload(const char *option, const char *text, void *member)
{
	for (enum mw_overload overload = 0; overload < MW_OVERLOAD_COUNT; overload++) {
		if (strcmp(text, mw_overload_name(overload)) != 0)
			continue;
		*(enum mw_overload *)member = overload;
		return NULL;
	}
	return usage(option, text, "no such behaviour",
		     "It takes 'wait' (threads wait, up to --max-wait), 'sample' or 'drop'");
}

static struct mw_error *parse_moment(const char *option, const char *text, void *member)
{
	static const char hint[] =
		"It takes a time from 0 on: seconds, as in 30 or 2.5, or with units, as in 500ms, 10s or 1m30s";
	uint64_t ns;

	if (!*text || !parse_time(text, &ns))
		return usage(option, text, "not a time", hint);
	if (ns > MW_CLI_NS_MAX)
		return usage(option, text, "too long", hint);
	*(uint64_t *)member = ns;
	return NULL;
}

static struct mw_error *add_name(struct mw_pids *pids, const char *text, size_t length)
{
	char **names = realloc(pids->names, (pids->name_count + 1) * sizeof(*names));

	if (!names)
		return mw_error_nomem();
	pids->names = names;
	names[pids->name_count] = strndup(text, length);
	return names[pids->name_count++] ? NULL : mw_error_nomem();
}

static struct mw_error *parse_pids(const char *option, const char *text, void *member)
{
	static const char hint[] = "It takes process ids and names with commas between, as in -p 1234,1235 or -p nginx";

	for (const char *rest = text;; rest++) {
		const size_t length = strcspn(rest, ",");
		char word[WORD_MAX] = "";
		uint64_t value;

		if (!length)
			return usage(option, text, "a process is missing", hint);
		snprintf(word, sizeof(word), "%.*s", (int)(length < WORD_MAX ? length : WORD_MAX - 1), rest);
		if (!is_decimal(word, false)) {
			MW_TRY(add_name(member, rest, length));
		} else {
			errno = 0;
			value = strtoull(word, NULL, 10);
			if (errno || value == 0 || value > PID_MAX)
				return usage(option, word, "no process can have this id",
					     "Process ids go from 1 to 4194304; 'ps -e' lists those that run");
			MW_TRY(mw_pids_add(member, (pid_t)value));
		}
		rest += length;
		if (!*rest)
			return NULL;
	}
}

bool mw_cli_is_pids(const char *word)
{
	struct mw_pids pids = {.items = NULL};
	bool is = mw_error_none(parse_pids("", word, &pids)) && !pids.name_count;

	mw_pids_deinit(&pids);
	return is;
}

/* Some of `count` names, with commas between: a bit each. */
static struct mw_error *parse_names(const char *option, const char *text, const char *const *names, unsigned count,
				    const char *why, const char *hint, unsigned *out)
{
	unsigned wanted = 0;

	for (const char *rest = text;; rest++) {
		size_t length = strcspn(rest, ",");
		unsigned number = 0;

		while (number < count && (strlen(names[number]) != length || strncmp(names[number], rest, length) != 0))
			number++;
		if (number == count)
			return usage(option, text, why, hint);
		wanted |= 1u << number;
		rest += length;
		if (!*rest)
			break;
	}
	*out = wanted;
	return NULL;
}

/* Some of the first `count` kinds of memory. */
static struct mw_error *parse_kinds(const char *option, const char *text, const char *hint, unsigned count,
				    bool out[MW_KIND_COUNT])
{
	static const char *const names[MW_KIND_COUNT] = {"heap", "vm", "vm-internal"};
	unsigned wanted = 0;

	MW_TRY(parse_names(option, text, names, count, "not a list of kinds of memory", hint, &wanted));
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		out[kind] = wanted >> kind & 1;
	return NULL;
}

static struct mw_error *parse_heap_by(const char *option, const char *text, void *member)
{
	static const char *const names[] = {"class", "size", "arena"}; /* as enum mw_heap_by has their bits */

	return parse_names(option, text, names, 3, "not a list of what blocks are grouped by",
			   "It takes class, size and arena, as in --by class,arena", member);
}

static struct mw_error *parse_bits(const char *option, const char *text, void *member)
{
	char *end;
	uint64_t bits = strtoull(text, &end, 16);

	if (*end || end == text || !isxdigit((unsigned char)text[0]) || strlen(text) > 18)
		return usage(option, text, "not a mask of bits", "It takes hexadecimal digits, as in ff00000000000000");
	*(uint64_t *)member = bits;
	return NULL;
}

static struct mw_error *parse_track(const char *option, const char *text, void *member)
{
	struct mw_session_options *options = member;
	bool wanted[MW_KIND_COUNT] = {false};

	MW_TRY(parse_kinds(option, text, "kinds are 'heap' and 'vm', as in --track heap,vm", 2, wanted));
	options->track_heap = wanted[MW_KIND_HEAP];
	options->track_vm = wanted[MW_KIND_VM];
	return NULL;
}

static struct mw_error *parse_engine(const char *option, const char *name, void *member)
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

static struct mw_error *parse_output(const char *option, const char *name, void *member)
{
	if (!*name || strcmp(name, "-") == 0)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "%s '%s': not the name of a file", option, name),
			"A recording is written to a file during the window, as in -o leak.mw");
	*(const char **)member = name;
	return NULL;
}

static struct mw_error *parse_file(const char *option, const char *name, void *member)
{
	if (!*name)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '': the file's name is empty", option),
				     "It takes the name of a file, or '-' for standard output");
	*(const char **)member = name;
	return NULL;
}

/* --- of reports and comparisons -------------------------------------------------------------------------------------- */

static struct mw_error *parse_to(const char *option, const char *text, void *member)
{
	struct mw_cli_report_options *options = member;

	options->has_to = true;
	return parse_moment(option, text, &options->to_ns);
}

static struct mw_error *parse_at(const char *option, const char *text, void *member)
{
	struct mw_cli_report_options *options = member;

	if (strcmp(text, "peak") == 0) {
		options->at_peak = true;
		return NULL;
	}
	options->at_moment = true;
	return parse_moment(option, text, &options->to_ns);
}

static struct mw_error *parse_symbols(const char *option, const char *directory, void *member)
{
	struct mw_cli_report_options *options = member;
	struct stat st;

	if (options->symbols_count == MW_CLI_SYMBOLS_MAX)
		return mw_error_create(MW_ERROR_USAGE, 0, "%s may be given at most %d times", option,
				       MW_CLI_SYMBOLS_MAX);
	if (stat(directory, &st) < 0 || !S_ISDIR(st.st_mode))
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "%s '%.200s': not a directory", option, directory),
			"Give a directory with the modules' files, or with their .build-id/xx/yyyy.debug");
	options->symbols[options->symbols_count++] = directory;
	return NULL;
}

static struct mw_error *parse_text(const char *option, const char *text, void *member)
{
	if (!*text)
		return mw_error_create(MW_ERROR_USAGE, 0, "%s '': the value is empty", option);
	*(const char **)member = text;
	return NULL;
}

/* --- of exports ------------------------------------------------------------------------------------------------------- */

/* The format of which `text` holds the name, of that length; NULL: it is none's. */
static const struct mw_export_format *find_format(const char *text, size_t length)
{
	for (size_t i = 0; mw_export_get(i); i++) {
		const struct mw_export_format *format = mw_export_get(i);

		if (strlen(format->name) == length && strncmp(format->name, text, length) == 0)
			return format;
	}
	return NULL;
}

static struct mw_error *no_such_format(const char *option, const char *text)
{
	char names[256] = "";
	size_t length = 0;

	for (size_t i = 0; mw_export_get(i) && length < sizeof(names); i++)
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "",
					   mw_export_get(i)->name);
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': no such format", option, text),
			     "Formats are %s", names);
}

static struct mw_error *parse_export(const char *option, const char *text, void *member)
{
	struct mw_export_wishes *exports = member;
	size_t length = strcspn(text, ":");
	const struct mw_export_format *format = find_format(text, length);

	if (!format)
		return no_such_format(option, text);
	if (!text[length] || !text[length + 1])
		return usage(option, text, "the file is missing",
			     "It takes a format and a file, as in collapsed:leak.txt; '-' is standard output");
	if (exports->count == MW_EXPORTS_MAX)
		return mw_error_create(MW_ERROR_USAGE, 0, "%s may be given at most %d times", option, MW_EXPORTS_MAX);
	exports->items[exports->count].format = format;
	exports->items[exports->count++].file = text + length + 1;
	return NULL;
}

/* No format begins with a digit, as times do. */
static struct mw_error *parse_export_to(const char *option, const char *text, void *member)
{
	struct mw_cli_report_options *options = member;
	const struct mw_export_format *format = find_format(text, strlen(text));

	if (!format && (isdigit((unsigned char)*text) || *text == '.'))
		return parse_to(option, text, member);
	if (!format)
		return no_such_format(option, text);
	if (options->format)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s %s and %s %s are both given", option,
						     options->format->name, option, format->name),
				     "memwatch export writes one file; report --export FORMAT:FILE writes several");
	options->format = format;
	return NULL;
}

static struct mw_error *parse_measure(const char *option, const char *text, void *member)
{
	for (unsigned i = 0; i < MW_EXPORT_MEASURES; i++) {
		if (strcmp(text, mw_export_measure_name((enum mw_export_measure)i)) != 0)
			continue;
		*(enum mw_export_measure *)member = (enum mw_export_measure)i;
		return NULL;
	}
	return usage(option, text, "no such measure",
		     "It takes inuse_space, inuse_objects, alloc_space or alloc_objects");
}

static struct mw_error *parse_label(const char *option, const char *text, void *member)
{
	struct mw_session_options *options = member;
	size_t length = strcspn(text, "=");

	if (!length || !text[length] || isdigit((unsigned char)*text) ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != length)
		return usage(option, text, "not a label",
			     "It takes a name of letters, digits and _, and a value, as in env=production");
	if (options->label_count == MW_LABELS_MAX)
		return mw_error_create(MW_ERROR_USAGE, 0, "%s may be given at most %d times", option, MW_LABELS_MAX);
	options->labels[options->label_count++] = text;
	return NULL;
}

/* --- what is shown --------------------------------------------------------------------------------------------------- */

static struct mw_error *parse_type(const char *option, const char *text, void *member)
{
	struct mw_cli_view_options *options = member;
	static const enum mw_fate types[] = {MW_FATE_IMPACTING, MW_FATE_TRANSIENT, MW_FATE_AOFI, MW_FATE_ALL};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(mw_plain_type(text), mw_fate_name(types[i])) != 0)
			continue;
		options->question.type = types[i];
		options->has_type = true;
		return NULL;
	}
	return usage(option, text, "no such type", "Types are not-freed, freed, older and all");
}

static struct mw_error *parse_sort(const char *option, const char *text, void *member)
{
	struct mw_cli_view_options *options = member;
	for (unsigned i = 0; i < MW_SORT_NUMBER; i++) {
		if (strcmp(mw_plain_type(text), mw_sort_name((enum mw_sort)i)) != 0)
			continue;
		options->question.sort = (enum mw_sort)i;
		options->has_sort = true;
		return NULL;
	}
	return usage(option, text, "no such figure", "It takes not-freed, size, count, freed, older, peak or lifetime");
}

static struct mw_error *add_column(const char *option, const char *text, const char *word,
				   struct mw_view_question *question)
{
	static const char hint[] = "It takes process, kind, heap, type, thread, module, function, line, language, "
				   "stack, size and api, with commas between, as in --by module,thread";
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

static struct mw_error *parse_by(const char *option, const char *text, void *member)
{
	struct mw_view_question *question = &((struct mw_cli_view_options *)member)->question;
	const char *rest = text;

	question->by_count = 0;
	for (;;) {
		size_t length = strcspn(rest, ",");
		char word[COLUMN_MAX] = "?";

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

static struct mw_error *parse_tree(const char *option, const char *text, void *member)
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

static struct mw_error *parse_frames(const char *option, const char *text, void *member)
{
	for (enum mw_frames frames = MW_FRAMES_ALL; frames <= MW_FRAMES_SCRIPT; frames++) {
		if (strcmp(text, mw_frames_name(frames)) != 0)
			continue;
		*(enum mw_frames *)member = frames;
		return NULL;
	}
	return usage(option, text, "there are no such frames",
		     "It takes 'all', 'own' (an interpreter's own are folded) or 'script' (those of scripts alone)");
}

static struct mw_error *parse_filter(const char *option, const char *text, void *member)
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

struct mw_error *mw_cli_view_options_finish(struct mw_cli_view_options *options,
					    const struct mw_session_options *session)
{
	struct mw_view_question *question = &options->question;

	if (question->tree != MW_TREE_NONE && options->has_sort && question->sort == MW_SORT_LIFETIME)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "a call tree can't be sorted by lifetime"),
				     "Stacks can, as in --by stack --sort lifetime");
	if (mw_cli_view_options_any(options) && !question->by_count && question->tree == MW_TREE_NONE &&
	    !question->blocks)
		question->by[question->by_count++] = MW_COLUMN_STACK;
	for (size_t i = 0; i < question->by_count && !options->has_type; i++)
		if (question->by[i] == MW_COLUMN_TYPE)
			question->type = MW_FATE_ALL;
	if (!options->has_sort)
		question->sort = default_sort(question->type);
	question->top = session->top;
	question->frames = session->frames;
	return NULL;
}

void mw_cli_view_options_deinit(struct mw_cli_view_options *options)
{
	mw_filter_destroy(options->filter);
	*options = (struct mw_cli_view_options){0};
}

/* --- by type --------------------------------------------------------------------------------------------------------- */

struct mw_error *mw_cli_parse(enum mw_cli_type type, const char *option, const char *text, void *member)
{
	static struct mw_error *(*const parsers[])(const char *option, const char *text, void *member) = {
		[MW_CLI_TYPE_SECONDS] = parse_seconds,
		[MW_CLI_TYPE_MOMENT] = parse_moment,
		[MW_CLI_TYPE_SIZE] = parse_size,
		[MW_CLI_TYPE_PERCENT] = parse_percent,
		[MW_CLI_TYPE_OVERLOAD] = parse_overload,
		[MW_CLI_TYPE_PIDS] = parse_pids,
		[MW_CLI_TYPE_TRACK] = parse_track,
		[MW_CLI_TYPE_ENGINE] = parse_engine,
		[MW_CLI_TYPE_FILE] = parse_file,
		[MW_CLI_TYPE_OUTPUT] = parse_output,
		[MW_CLI_TYPE_TO] = parse_to,
		[MW_CLI_TYPE_AT] = parse_at,
		[MW_CLI_TYPE_SYMBOLS] = parse_symbols,
		[MW_CLI_TYPE_TEXT] = parse_text,
		[MW_CLI_TYPE_FAIL_ON] = parse_fail_on,
		[MW_CLI_TYPE_TYPE] = parse_type,
		[MW_CLI_TYPE_BY] = parse_by,
		[MW_CLI_TYPE_SORT] = parse_sort,
		[MW_CLI_TYPE_TREE] = parse_tree,
		[MW_CLI_TYPE_FRAMES] = parse_frames,
		[MW_CLI_TYPE_FILTER] = parse_filter,
		[MW_CLI_TYPE_HEAP_BY] = parse_heap_by,
		[MW_CLI_TYPE_BITS] = parse_bits,
		[MW_CLI_TYPE_EXPORT] = parse_export,
		[MW_CLI_TYPE_EXPORT_TO] = parse_export_to,
		[MW_CLI_TYPE_MEASURE] = parse_measure,
		[MW_CLI_TYPE_LABEL] = parse_label,
	};
	static const char kinds[] = "Kinds are heap, vm and vm-internal, as in --kind heap,vm";
	uint64_t count = 0;

	switch (type) {
	case MW_CLI_TYPE_FLAG:
		*(bool *)member = true;
		return NULL;
	case MW_CLI_TYPE_HELP:
	case MW_CLI_TYPE_VERSION:
		*(enum mw_cli_action *)member = type == MW_CLI_TYPE_HELP ? MW_CLI_HELP : MW_CLI_VERSION;
		return NULL;
	case MW_CLI_TYPE_DEPTH:
		MW_TRY(parse_count(option, text, 1, DEPTH_MAX, &count));
		*(uint32_t *)member = (uint32_t)count;
		return NULL;
	case MW_CLI_TYPE_TOP:
		MW_TRY(parse_count(option, text, 0, TOP_MAX, &count));
		*(size_t *)member = count;
		return NULL;
	case MW_CLI_TYPE_SHARE:
		return parse_share(option, text, "It takes a percentage above 0, and 100 at most, as in 5 or 2.5",
				   1000000, member);
	case MW_CLI_TYPE_PROCESS:
		return parse_count(option, text, 1, PROCESS_MAX, member);
	case MW_CLI_TYPE_BLOCKS:
		MW_TRY(parse_count(option, text, 1, MW_BLOCKLIST_MAX, &count));
		((struct mw_cli_view_options *)member)->question.blocks = count;
		return NULL;
	case MW_CLI_TYPE_KINDS:
		return parse_kinds(option, text, kinds, MW_KIND_COUNT, member);
	default:
		return parsers[type](option, text, member);
	}
}

/* --- nearest --------------------------------------------------------------------------------------------------------- */

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

// SPDX-License-Identifier: MIT
/*
 * filter.c: from an expression to its terms and their order of evaluation (reverse Polish), and what they say of things.
 */
#include "view/filter.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- what stands behind the colon of a term ----------------------------------------------------------------- */

#define REPEATS_MAX 1000 /* product of a regular expression's repeat counts: glibc unrolls them */
#define FIELDS                                                                                                         \
	"Fields are function, module, line, language, api, thread, heap, process, size, kind, type and stack, as in "  \
	"size:4096"
#define SIZES "A size is as in size:4096, size:1K-64K, size:>=1M or size:<100"

/* MW_COLUMN_COUNT: a bare word. */
struct term {
	enum mw_column field;
	char *text; /* the value; NULL where it is a regular expression, or a number */
	regex_t regex;
	bool is_regex;
	uint64_t low, high; /* size: both included; kind, type, language: low; thread, process: low where is_number */
	bool is_number;
};

static bool find_field(const char *name, enum mw_column *out)
{
	for (unsigned i = 0; i < MW_COLUMN_COUNT; i++)
		if (strcmp(mw_column_name((enum mw_column)i), name) == 0) {
			*out = (enum mw_column)i;
			return true;
		}
	return false;
}

/* Digits with K, M, G, T (KB, KiB too) behind them; *text moves on. */
static bool take_bytes(const char **text, uint64_t *out)
{
	static const char units[] = "KMGT";
	char *end;
	const char *unit;
	unsigned long long value;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno)
		return false;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		unsigned shift = 10 * ((unsigned)(unit - units) + 1);

		if (value > UINT64_MAX >> shift)
			return false;
		value <<= shift;
		end++;
		end += *end == 'i';
	}
	end += *end == 'B';
	*text = end;
	*out = value;
	return value != MW_SIZE_UNKNOWN;
}

static bool parse_size(struct term *term, const char *text)
{
	char sign = *text == '<' || *text == '>' || *text == '=' ? *text : '\0';
	bool equal = sign == '=' || (sign && text[1] == '=');
	uint64_t bytes = 0;

	text += sign ? 1 : 0;
	text += sign && sign != '=' && equal ? 1 : 0;
	if (!take_bytes(&text, &bytes))
		return false;
	term->low = sign == '<' ? 0 : bytes + (sign == '>' && !equal);
	term->high = sign == '>' ? MW_SIZE_UNKNOWN - 1 : bytes;
	if (sign == '<' && !equal) {
		if (!bytes)
			return false;
		term->high--;
	}
	if (!sign && *text == '-') {
		text++;
		if (!take_bytes(&text, &term->high) || term->high < term->low)
			return false;
	}
	return !*text;
}

/* Are the repeat counts such that they can't fill the memory? `{2,100}` within `{100}` is 10,000 copies. */
static bool is_modest(const char *pattern)
{
	uint64_t product = 1;

	for (; *pattern; pattern++) {
		uint64_t most = 1;

		if (*pattern == '\\' && isdigit((unsigned char)pattern[1]))
			return false; /* back references may take for ever */
		if (*pattern == '\\' && pattern[1]) {
			pattern++;
			continue;
		}
		if (*pattern != '{')
			continue;
		while (pattern[1] == ',' || isdigit((unsigned char)pattern[1])) {
			unsigned long long count = strtoull(pattern + 1, NULL, 10);

			most = count > most ? count : most;
			pattern += pattern[1] == ',' ? 1 : strspn(pattern + 1, "0123456789");
		}
		if (most > REPEATS_MAX || (product *= most) > REPEATS_MAX)
			return false;
	}
	return true;
}

static bool parse_regex(struct term *term, const char *pattern, const char **what, const char **hint)
{
	*hint = "~ is followed by a POSIX extended regular expression, as in function:~^std::; in quotes it is taken "
		"literally";
	if (!*pattern || !is_modest(pattern)) {
		*what = *pattern ? "the regular expression repeats too much, or refers back"
				 : "the regular expression is empty";
		return false;
	}
	if (regcomp(&term->regex, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
		*what = "not a valid regular expression";
		return false;
	}
	term->is_regex = true;
	return true;
}

static bool parse_kind(struct term *term, const char *value)
{
	for (term->low = 0; term->low < MW_KIND_COUNT; term->low++)
		if (strcmp(mw_kind_name((enum mw_kind)term->low), value) == 0)
			return true;
	return false;
}

static bool parse_type(struct term *term, const char *value)
{
	for (term->low = 0; term->low < MW_FATE_COUNT; term->low++)
		if (strcmp(mw_fate_name((enum mw_fate)term->low), mw_plain_type(value)) == 0)
			return true;
	return false;
}

static bool parse_language(struct term *term, const char *value)
{
	for (term->low = 0; term->low < MW_LANGUAGE_COUNT; term->low++)
		if (strcmp(mw_language_name((enum mw_language)term->low), value) == 0)
			return true;
	return false;
}

static bool keep_text(struct term *term, const char *value, const char **what)
{
	term->text = strdup(value);
	if (!term->text)
		*what = NULL;
	return term->text;
}

static bool parse_stack(struct term *term, const char *value, const char **what)
{
	size_t length = strlen(value);

	if (!length || length > 16 || strspn(value, "0123456789abcdefABCDEF") != length)
		return false;
	if (!keep_text(term, value, what))
		return false;
	for (char *c = term->text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return true;
}

static bool parse_name(struct term *term, const char *value, bool quoted, const char **what, const char **hint)
{
	bool numbers = term->field == MW_COLUMN_THREAD || term->field == MW_COLUMN_PROCESS;

	if (!*value) {
		*what = "a value is missing";
		*hint = "It is as in function:parse, or thread:\"my worker\"";
		return false;
	}
	if (!quoted && *value == '~')
		return parse_regex(term, value + 1, what, hint);
	if (numbers && strspn(value, "0123456789") == strlen(value) && strlen(value) < 10) {
		term->low = strtoull(value, NULL, 10);
		term->is_number = true;
	}
	return keep_text(term, value, what);
}

/*
 * `field` is NULL for a bare word; `quoted`: the value stood in quotes and is no regular expression. On failure it is
 * false, *what is the reason (NULL: no memory) and *hint what would be right; both static.
 */
static bool term_init(struct term *term, const char *field, const char *value, bool quoted, const char **what,
		      const char **hint)
{
	*term = (struct term){.field = MW_COLUMN_COUNT};
	if (field && !find_field(field, &term->field)) {
		*what = "no such field";
		*hint = FIELDS "; quote a name with a colon in it";
		return false;
	}
	*what = "this is not a size";
	*hint = SIZES;
	if (term->field == MW_COLUMN_SIZE)
		return parse_size(term, value);
	*what = "no such kind";
	*hint = "Kinds are heap, vm and vm-internal, as in kind:heap";
	if (term->field == MW_COLUMN_KIND)
		return parse_kind(term, value);
	*what = "no such type";
	*hint = "Types are not-freed, freed, older (and freed) and older-kept, as in type:freed";
	if (term->field == MW_COLUMN_TYPE)
		return parse_type(term, value);
	*what = "no such language";
	*hint = "Languages are native, python, java, javascript and go, as in language:python";
	if (term->field == MW_COLUMN_LANGUAGE)
		return parse_language(term, value);
	*what = "this is not the beginning of a stack id";
	*hint = "Stack ids are 16 hexadecimal digits, the first of which are enough, as in stack:00c0ff";
	if (term->field == MW_COLUMN_STACK)
		return parse_stack(term, value, what);
	return parse_name(term, value, quoted, what, hint);
}

static void term_deinit(struct term *term)
{
	if (term->is_regex)
		regfree(&term->regex);
	free(term->text);
	*term = (struct term){0};
}

static bool is_named(const struct term *term, const char *name)
{
	if (!name)
		return false;
	if (term->is_regex)
		return regexec(&term->regex, name, 0, NULL, 0) == 0;
	return term->text && strstr(name, term->text);
}

/* --- expressions -------------------------------------------------------------------------------------------- */

#define STEPS_MAX 256u /* terms and operators; so deep the stacks may get */
#define EXCERPT   24   /* of what stands before and behind the place of an error */
#define OP_OPEN   0xfcu
#define OP_OR     0xfdu
#define OP_AND    0xfeu
#define OP_NOT    0xffu

_Static_assert(MW_FILTER_TERMS <= 64 && MW_FILTER_TERMS < OP_OPEN, "a bit each, and steps are bytes");

struct mw_filter {
	char *text;
	struct term terms[MW_FILTER_TERMS];
	uint32_t term_count;
	uint8_t steps[STEPS_MAX]; /* numbers of terms, or OP_… */
	uint32_t step_count;
};

struct parse {
	struct mw_filter *filter;
	const char *at;
	const char *place;          /* where the last token began */
	uint8_t waiting[STEPS_MAX]; /* operators */
	uint32_t waiting_count;
	bool wants_term; /* a term, not or a parenthesis has to come */
	struct mw_error *err;
};

/* Columns as people count them, from 1. */
static unsigned column_of(const char *text, const char *place)
{
	unsigned column = 1;

	for (; text < place; text++)
		column += ((unsigned char)*text & 0xc0) != 0x80;
	return column;
}

static bool fail(struct parse *parse, const char *what, const char *hint)
{
	const char *text = parse->filter->text, *place = parse->place;
	const char *from = place - text > EXCERPT ? place - EXCERPT : text;

	parse->err = mw_error_create(MW_ERROR_USAGE, 0, "--filter, at character %u (^ in '%.*s^%.*s'): %s",
				     column_of(text, place), (int)(place - from), from, EXCERPT, place, what);
	parse->err = mw_error_hint(parse->err, "%s", hint);
	return false;
}

static bool add_step(struct parse *parse, uint8_t step)
{
	struct mw_filter *filter = parse->filter;

	if (filter->step_count == STEPS_MAX)
		return fail(parse, "this is too long",
			    "At most 64 terms are allowed; use a regular expression for more");
	filter->steps[filter->step_count++] = step;
	return true;
}

/* Operators that bind at least as close as `op` come before it. */
static bool settle(struct parse *parse, uint8_t op)
{
	while (parse->waiting_count && parse->waiting[parse->waiting_count - 1] >= op) {
		if (!add_step(parse, parse->waiting[--parse->waiting_count]))
			return false;
	}
	return true;
}

static bool push(struct parse *parse, uint8_t op)
{
	if (parse->waiting_count == STEPS_MAX)
		return fail(parse, "this is nested too deeply", "At most 256 operators and parentheses may be open");
	parse->waiting[parse->waiting_count++] = op;
	return true;
}

/* Side by side is `and`. */
static bool begin_operand(struct parse *parse)
{
	if (parse->wants_term)
		return true;
	parse->wants_term = true;
	return settle(parse, OP_AND) && push(parse, OP_AND);
}

static bool take_binary(struct parse *parse, uint8_t op)
{
	if (parse->wants_term)
		return fail(parse, "a term is missing before this", "'and' and 'or' go between terms, as in a or b");
	parse->wants_term = true;
	return settle(parse, op) && push(parse, op);
}

static bool take_close(struct parse *parse)
{
	if (parse->wants_term)
		return fail(parse, "a term is missing before this",
			    "Parentheses hold terms; as a name they need quotes");
	if (!settle(parse, OP_OPEN + 1))
		return false;
	if (!parse->waiting_count)
		return fail(parse, "no parenthesis is open here", "As a part of a name it needs quotes: \"f(int)\"");
	parse->waiting_count--; /* the open one */
	parse->at++;
	return true;
}

/* A word: up to a blank or parenthesis, but for what stands in quotes, which themselves are left out. */
struct word {
	char text[MW_FILTER_LENGTH + 1];
	size_t colon; /* where the value begins behind a colon outside quotes; 0: a bare word */
	bool quoted;  /* the value begins with a quote */
	bool plain;   /* nothing of it stood in quotes */
};

static bool take_word(struct parse *parse, struct word *word)
{
	size_t length = 0;
	char quote = '\0';

	*word = (struct word){.plain = true};
	for (; *parse->at && (quote || !strchr(" \t\n()", *parse->at)); parse->at++) {
		char c = *parse->at;

		if (quote ? c == quote : c == '"' || c == '\'') {
			word->quoted = word->quoted || (!quote && length == word->colon);
			word->plain = false;
			quote = quote ? '\0' : c;
			continue;
		}
		word->text[length++] = c;
		/* The first one: C++ names have more. Before a second one it is part of such a name. */
		if (!quote && c == ':' && word->plain && !word->colon) {
			if (parse->at[1] == ':')
				word->plain = false;
			else
				word->colon = length;
		}
	}
	word->text[length] = '\0';
	return quote ? fail(parse, "a quote is not closed", "Quotes come in pairs: \"a name\" or 'a name'") : true;
}

static bool add_term(struct parse *parse, struct word *word)
{
	struct mw_filter *filter = parse->filter;
	const char *what = "", *hint = "", *field = NULL;

	if (filter->term_count == MW_FILTER_TERMS)
		return fail(parse, "there are too many terms",
			    "At most 64 are allowed; use a regular expression for more");
	if (word->colon) {
		word->text[word->colon - 1] = '\0';
		field = word->text;
	}
	if (!term_init(&filter->terms[filter->term_count], field, word->text + word->colon, word->quoted, &what,
		       &hint)) {
		if (what)
			return fail(parse, what, hint);
		parse->err = mw_error_nomem();
		return false;
	}
	parse->wants_term = false;
	return add_step(parse, (uint8_t)filter->term_count++);
}

static bool take_operand(struct parse *parse, struct word *word)
{
	if (!take_word(parse, word))
		return false;
	if (word->plain && !word->colon && strcasecmp(word->text, "and") == 0)
		return take_binary(parse, OP_AND);
	if (word->plain && !word->colon && strcasecmp(word->text, "or") == 0)
		return take_binary(parse, OP_OR);
	if (!begin_operand(parse))
		return false;
	if (word->plain && !word->colon && strcasecmp(word->text, "not") == 0)
		return push(parse, OP_NOT);
	return add_term(parse, word);
}

static bool take_token(struct parse *parse, struct word *word)
{
	parse->place = parse->at;
	switch (*parse->at) {
	case '(':
		parse->at++;
		return begin_operand(parse) && push(parse, OP_OPEN);
	case ')':
		return take_close(parse);
	default:
		return take_operand(parse, word);
	}
}

static bool parse_all(struct parse *parse, struct word *word)
{
	while (parse->at += strspn(parse->at, " \t\n"), *parse->at)
		if (!take_token(parse, word))
			return false;
	parse->place = parse->at;
	if (parse->wants_term)
		return fail(parse, "a term is missing", "It is as in --filter 'function:parse and size:>=4K'");
	if (!settle(parse, OP_OPEN + 1))
		return false;
	if (parse->waiting_count)
		return fail(parse, "a parenthesis is not closed", "As a part of a name it needs quotes: \"f(int)\"");
	return true;
}

struct mw_error *mw_filter_parse(const char *text, struct mw_filter **out)
{
	struct mw_filter *filter;
	struct parse parse = {.wants_term = true};
	struct word *word;

	if (strlen(text) > MW_FILTER_LENGTH)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--filter: the expression is too long"),
				     "It takes at most %u bytes", MW_FILTER_LENGTH);
	filter = calloc(1, sizeof(*filter));
	word = malloc(sizeof(*word));
	if (filter)
		filter->text = strdup(text);
	if (!filter || !word || !filter->text) {
		free(word);
		mw_filter_destroy(filter);
		return mw_error_nomem();
	}
	parse.filter = filter;
	parse.at = filter->text;
	if (parse_all(&parse, word))
		*out = filter;
	else
		mw_filter_destroy(filter);
	free(word);
	return parse.err;
}

void mw_filter_destroy(struct mw_filter *filter)
{
	if (!filter)
		return;
	for (uint32_t i = 0; i < filter->term_count; i++)
		term_deinit(&filter->terms[i]);
	free(filter->text);
	free(filter);
}

const char *mw_filter_text(const struct mw_filter *filter)
{
	return filter->text;
}

uint32_t mw_filter_columns(const struct mw_filter *filter)
{
	uint32_t columns = 0;

	for (uint32_t i = 0; i < filter->term_count; i++) {
		enum mw_column field = filter->terms[i].field;

		columns |= field < MW_COLUMN_COUNT ? 1u << field : 1u << MW_COLUMN_FUNCTION | 1u << MW_COLUMN_MODULE;
	}
	return columns;
}

bool mw_filter_names_internal(const struct mw_filter *filter)
{
	for (uint32_t i = 0; i < filter->term_count; i++)
		if (filter->terms[i].field == MW_COLUMN_KIND && filter->terms[i].low == MW_KIND_VM_INTERNAL)
			return true;
	return false;
}

/* By its function, or by its place in a file. */
static bool is_of_line(const struct term *term, const struct mw_report_frame *frame)
{
	char place[PATH_MAX + sizeof(":4294967295")] = "";

	if (term->field == MW_COLUMN_LANGUAGE)
		return frame->language == term->low;
	if (frame->file)
		(void)snprintf(place, sizeof(place), frame->line ? "%.*s:%" PRIu32 : "%.*s", PATH_MAX, frame->file,
			       frame->line);
	return is_named(term, frame->function) || (*place && is_named(term, place));
}

static bool is_of_stack(const struct term *term, const struct mw_report_stack *stack)
{
	if (term->field == MW_COLUMN_STACK)
		return strncmp(stack->id, term->text, strlen(term->text)) == 0;
	if (term->field == MW_COLUMN_API)
		return is_named(term, stack->api);
	if (term->field == MW_COLUMN_LINE || term->field == MW_COLUMN_LANGUAGE)
		return mw_report_line(stack) && is_of_line(term, mw_report_line(stack));
	if (term->field != MW_COLUMN_FUNCTION && term->field != MW_COLUMN_MODULE && term->field != MW_COLUMN_COUNT)
		return false;
	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		if (term->field != MW_COLUMN_MODULE && is_named(term, frame->function))
			return true;
		if (term->field != MW_COLUMN_FUNCTION && is_named(term, frame->module))
			return true;
	}
	return false;
}

uint64_t mw_filter_stack(const struct mw_filter *filter, const struct mw_report_stack *stack)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < filter->term_count; i++)
		bits |= (uint64_t)is_of_stack(&filter->terms[i], stack) << i;
	return bits;
}

uint64_t mw_filter_name(const struct mw_filter *filter, enum mw_column field, uint64_t number, const char *name)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < filter->term_count; i++) {
		const struct term *term = &filter->terms[i];

		if (term->field == field && ((term->is_number && term->low == number) || is_named(term, name)))
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

uint64_t mw_filter_block(const struct mw_filter *filter, enum mw_kind kind, enum mw_fate fate, uint64_t bytes)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < filter->term_count; i++) {
		const struct term *term = &filter->terms[i];
		bool is = false;

		if (term->field == MW_COLUMN_SIZE)
			is = bytes >= term->low && bytes <= term->high;
		else if (term->field == MW_COLUMN_KIND)
			is = term->low == (uint64_t)kind;
		else if (term->field == MW_COLUMN_TYPE)
			is = term->low == (uint64_t)fate;
		bits |= (uint64_t)is << i;
	}
	return bits;
}

bool mw_filter_is_true(const struct mw_filter *filter, uint64_t terms)
{
	bool stack[MW_FILTER_TERMS + 1] = {false}; /* [0] is below all, so that invalid steps do no harm */
	uint32_t depth = 0;

	for (uint32_t i = 0; i < filter->step_count; i++) {
		uint8_t step = filter->steps[i];

		if (step == OP_NOT) {
			stack[depth] = !stack[depth];
		} else if (step == OP_AND || step == OP_OR) {
			bool right = stack[depth];

			depth -= depth > 0;
			stack[depth] = step == OP_AND ? stack[depth] && right : stack[depth] || right;
		} else if (depth < MW_FILTER_TERMS) {
			stack[++depth] = terms >> step & 1;
		}
	}
	return stack[depth];
}

/* --- a filter asked once of each stack, thread and heap, not of each block ---------------------------------- */

struct mw_error *mw_selection_init(struct mw_selection *selection, const struct mw_view_process *process,
				   const struct mw_filter *filter, bool internal)
{
	const struct mw_report *report = process->report;

	*selection = (struct mw_selection){.process = process, .filter = filter, .internal = internal};
	if (!filter)
		return NULL;
	selection->internal = internal || mw_filter_names_internal(filter);
	selection->stacks = calloc(report->stack_count + 1, sizeof(*selection->stacks));
	selection->threads = calloc(process->thread_count + 1, sizeof(*selection->threads));
	selection->heaps = calloc(process->heap_count + 1, sizeof(*selection->heaps));
	if (!selection->stacks || !selection->threads || !selection->heaps) {
		mw_selection_deinit(selection);
		return mw_error_nomem();
	}
	selection->name = mw_filter_name(filter, MW_COLUMN_PROCESS, (uint64_t)report->target.pid, report->target.comm);
	for (size_t i = 0; i < report->stack_count; i++)
		selection->stacks[i] = mw_filter_stack(filter, &report->stacks[i]);
	for (size_t i = 0; i < process->thread_count; i++)
		selection->threads[i] = mw_filter_name(filter, MW_COLUMN_THREAD, (uint64_t)process->threads[i].tid,
						       process->threads[i].name);
	for (size_t i = 1; i < process->heap_count; i++)
		selection->heaps[i] = mw_filter_name(filter, MW_COLUMN_HEAP, 0, process->heaps[i]);
	return NULL;
}

void mw_selection_deinit(struct mw_selection *selection)
{
	free(selection->stacks);
	free(selection->threads);
	free(selection->heaps);
	*selection = (struct mw_selection){0};
}

bool mw_selection_takes(const struct mw_selection *selection, const struct mw_cell *cell)
{
	const struct mw_view_process *process = selection->process;
	uint64_t bits = selection->name;

	if (cell->kind == MW_KIND_VM_INTERNAL && !selection->internal)
		return false;
	if (!selection->filter)
		return true;
	bits |= selection->stacks[mw_process_stack_index(process, cell->stack)];
	bits |= selection->threads[cell->thread < process->thread_count ? cell->thread : process->thread_count];
	bits |= selection->heaps[cell->heap < process->heap_count ? cell->heap : process->heap_count];
	bits |= mw_filter_block(selection->filter, (enum mw_kind)cell->kind, (enum mw_fate)cell->fate, cell->bytes);
	return mw_filter_is_true(selection->filter, bits);
}

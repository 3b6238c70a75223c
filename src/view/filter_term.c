// SPDX-License-Identifier: MIT
/* filter_term.c: what stands behind the colon of a term. */
#include "view/filter_term.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS_MAX 1000 /* product of a regular expression's repeat counts: glibc unrolls them */
#define FIELDS      "Fields are function, module, api, thread, heap, process, size, kind, type and stack, as in size:4096"
#define SIZES       "A size is as in size:4096, size:1K-64K, size:>=1M or size:<100"

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

static bool parse_size(struct mw_filter_term *term, const char *text)
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

static bool parse_regex(struct mw_filter_term *term, const char *pattern, const char **what, const char **hint)
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

static bool parse_kind(struct mw_filter_term *term, const char *value)
{
	for (term->low = 0; term->low < MW_KIND_COUNT; term->low++)
		if (strcmp(mw_kind_name((enum mw_kind)term->low), value) == 0)
			return true;
	return false;
}

static bool parse_type(struct mw_filter_term *term, const char *value)
{
	for (term->low = 0; term->low < MW_FATE_COUNT; term->low++)
		if (strcmp(mw_fate_name((enum mw_fate)term->low), value) == 0)
			return true;
	return false;
}

static bool keep_text(struct mw_filter_term *term, const char *value, const char **what)
{
	term->text = strdup(value);
	if (!term->text)
		*what = NULL;
	return term->text;
}

static bool parse_stack(struct mw_filter_term *term, const char *value, const char **what)
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

static bool parse_name(struct mw_filter_term *term, const char *value, bool quoted, const char **what,
		       const char **hint)
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

bool mw_filter_term_init(struct mw_filter_term *term, const char *field, const char *value, bool quoted,
			 const char **what, const char **hint)
{
	*term = (struct mw_filter_term){.field = MW_COLUMN_COUNT};
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
	*hint = "Types are impacting, transient, aofi and aofo, as in type:transient";
	if (term->field == MW_COLUMN_TYPE)
		return parse_type(term, value);
	*what = "this is not the beginning of a stack id";
	*hint = "Stack ids are 16 hexadecimal digits, the first of which are enough, as in stack:00c0ff";
	if (term->field == MW_COLUMN_STACK)
		return parse_stack(term, value, what);
	return parse_name(term, value, quoted, what, hint);
}

void mw_filter_term_deinit(struct mw_filter_term *term)
{
	if (term->is_regex)
		regfree(&term->regex);
	free(term->text);
	*term = (struct mw_filter_term){0};
}

bool mw_filter_term_name(const struct mw_filter_term *term, const char *name)
{
	if (!name)
		return false;
	if (term->is_regex)
		return regexec(&term->regex, name, 0, NULL, 0) == 0;
	return term->text && strstr(name, term->text);
}

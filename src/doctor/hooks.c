// SPDX-License-Identifier: MIT
/* hooks.c: see hooks.h. */
#include "doctor/hooks.h"

#include "doctor/paragraph.h"
#include "output/line.h"
#include "session/message.h"

#include <inttypes.h>
#include <string.h>

#define INDENT 4u
#define NAMED  4   /* of those that would not be hooked, in the answer */
#define CELL   25u /* columns of an entry: its address and most names */

/* One of two lists: those that are hooked, and those that are not. */
struct table {
	FILE *out;
	const struct mw_doctor *doctor;
	bool refused;
};

/* Heap functions are looked at in any case, to know what they call. */
static bool asked_for(const struct mw_doctor *doctor, const struct mw_hook_info *hook)
{
	return hook->kind == MW_KIND_HEAP ? doctor->options->track_heap : doctor->options->track_vm;
}

/* What is to be said of one beside the engine: why it is not hooked, or why not by a jump; NULL: nothing. */
static const char *reason_of(const struct mw_doctor *doctor, size_t number)
{
	const struct mw_hook_info *hook = &doctor->hooks.items[number].info;

	if (hook->refused)
		return hook->refused;
	return number < doctor->jump.count ? doctor->jump.refused[number] : NULL;
}

static bool belongs(const struct table *table, size_t number)
{
	const struct mw_hook_info *hook = &table->doctor->hooks.items[number].info;

	return asked_for(table->doctor, hook) && !hook->refused == !table->refused;
}

static bool same_text(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

/* In the same paragraph: of one module, and of the same reason. */
static bool same_group(const struct table *table, size_t one, size_t other)
{
	return belongs(table, other) &&
	       table->doctor->hooks.items[one].module == table->doctor->hooks.items[other].module &&
	       same_text(reason_of(table->doctor, one), reason_of(table->doctor, other));
}

static void print_title(const struct table *table, size_t first, size_t count, uint64_t bias)
{
	const char *engine = mw_doctor_engine(table->doctor), *why = reason_of(table->doctor, first);
	struct mw_paragraph title;

	fputs("  ", table->out);
	mw_paragraph_begin(&title, table->out, table->doctor->width, 2, INDENT);
	mw_paragraph_word(&title, table->doctor->hooks.items[first].info.module);
	if (bias)
		mw_paragraph_printf(&title, "at %" PRIx64 ": %zu", (uint64_t)bias, count);
	else
		mw_paragraph_printf(&title, ": %zu", count);
	if (table->refused)
		mw_paragraph_printf(&title, "not, as %s", why);
	else if (why)
		mw_paragraph_printf(&title, "by a breakpoint only, as %s", why);
	else
		mw_paragraph_text(&title, strcmp(engine, "jump") == 0 ? "by a jump" : "by a breakpoint");
	mw_paragraph_end(&title);
}

/* In a row of entries. */
struct cursor {
	unsigned at, next; /* where it is, and where the next entry begins */
};

/* Its offset in the module, and its name. A name that is longer takes the room of two or three. */
static void print_entry(const struct table *table, const struct mw_hook_info *hook, uint64_t bias,
			struct cursor *cursor)
{
	struct mw_line line = {0};
	unsigned columns;

	mw_line_printf(&line, "%8" PRIx64 " ", hook->address - bias);
	mw_line_name(&line, hook->function);
	columns = (unsigned)mw_line_columns(&line, 0);
	if (cursor->next && INDENT - 2 + cursor->next + columns > table->doctor->width) {
		fputc('\n', table->out);
		*cursor = (struct cursor){0};
	}
	fprintf(table->out, "%*s%s", (int)(cursor->next ? cursor->next - cursor->at : INDENT - 2), "",
		line.data ? line.data : "");
	cursor->at = cursor->next + columns;
	cursor->next += (columns / CELL + 1) * CELL;
	mw_line_deinit(&line);
}

static void print_group(const struct table *table, size_t first)
{
	const struct mw_hooks *hooks = &table->doctor->hooks;
	const struct mw_module *module = mw_modules_get(table->doctor->modules, hooks->items[first].module);
	size_t count = 0;
	struct cursor cursor = {0};

	for (size_t i = first; i < hooks->count; i++)
		count += same_group(table, first, i);
	print_title(table, first, count, module->bias);
	for (size_t i = first; i < hooks->count; i++)
		if (same_group(table, first, i))
			print_entry(table, &hooks->items[i].info, module->bias, &cursor);
	if (cursor.next)
		fputc('\n', table->out);
}

static size_t count_table(const struct table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->doctor->hooks.count; i++)
		count += belongs(table, i);
	return count;
}

static void print_table(const struct table *table)
{
	for (size_t i = 0; i < table->doctor->hooks.count; i++) {
		bool first = belongs(table, i);

		for (size_t j = 0; j < i && first; j++)
			first = !same_group(table, i, j);
		if (first)
			print_group(table, i);
	}
}

size_t mw_doctor_count_hooks(const struct mw_doctor *doctor)
{
	const struct table hooked = {.doctor = doctor};

	return count_table(&hooked);
}

void mw_doctor_print_missed(FILE *out, const struct mw_doctor *doctor)
{
	const struct table table = {.out = out, .doctor = doctor, .refused = true};
	size_t count = count_table(&table), named = 0;

	if (!count)
		return;
	fprintf(out, "Its report would be incomplete: no call would be seen of");
	for (size_t i = 0; i < doctor->hooks.count && named < NAMED; i++) {
		if (!belongs(&table, i))
			continue;
		fprintf(out, named++ ? ", " : " ");
		mw_message_put(out, doctor->hooks.items[i].info.function);
	}
	if (count > named)
		fprintf(out, " and %zu more", count - named);
	fprintf(out, " (at the end: why).\n");
}

void mw_doctor_print_hooks(FILE *out, const struct mw_doctor *doctor)
{
	struct table table = {.out = out, .doctor = doctor};
	size_t count = count_table(&table);

	fprintf(out, "\nWould be hooked: %zu function%s%s\n", count, count == 1 ? "" : "s",
		count ? ", here by their offsets in the file" : "");
	print_table(&table);
	table.refused = true;
	count = count_table(&table);
	if (count)
		fprintf(out, "\nWould not be hooked: %zu\n", count);
	print_table(&table);
}

// SPDX-License-Identifier: MIT
/* text_tables.c: totals, memory before and after, the usual suspects. */
#include "output/text.h"

#include <string.h>

#define BAR_COLUMNS    10
#define LABEL_COLUMNS  12
#define MEMORY_COLUMNS 18
#define BAR_WIDTH      80 /* a bar is only drawn where lines are so wide */

static const char *const kind_names[MW_KIND_COUNT] = {"heap", "vm", "vm-internal"};

struct row {
	const char *label;
	/* One cell. */
	struct mw_shown (*show)(const struct mw_report_totals *totals);
};

static struct mw_shown show_amount(const struct mw_amount *amount)
{
	struct mw_shown shown = {0};

	snprintf(shown.text, sizeof(shown.text), "%.16s in %.28s", mw_show_size(amount->bytes).text,
		 mw_show_count(amount->count).text);
	return shown;
}

static struct mw_shown show_size(const struct mw_report_totals *totals)
{
	return show_amount(&totals->size);
}

static struct mw_shown show_impacting(const struct mw_report_totals *totals)
{
	return show_amount(&totals->impacting);
}

static struct mw_shown show_transient(const struct mw_report_totals *totals)
{
	return show_amount(&totals->transient);
}

static struct mw_shown show_aofi(const struct mw_report_totals *totals)
{
	return show_amount(&totals->aofi);
}

static struct mw_shown show_aofo(const struct mw_report_totals *totals)
{
	return show_amount(&totals->aofo);
}

static struct mw_shown show_peak(const struct mw_report_totals *totals)
{
	struct mw_shown shown = {0};

	if (!totals->peak.count)
		strcpy(shown.text, "-");
	else
		snprintf(shown.text, sizeof(shown.text), "%.16s at %.28s", mw_show_size(totals->peak.bytes).text,
			 mw_show_seconds(totals->peak.at).text);
	return shown;
}

static const struct row rows[] = {
	{"allocated", show_size},
	{"  impacting", show_impacting},
	{"  transient", show_transient},
	{"older, freed", show_aofi},
	{"peak", show_peak},
	{"older, live", show_aofo},
};

/* The last is about intervals that do not begin with the window. */
static size_t row_count(const struct mw_report *report)
{
	return sizeof(rows) / sizeof(rows[0]) - (report->window.from > 0 ? 0 : 1);
}

static size_t kind_columns(const struct mw_report *report, unsigned kind)
{
	size_t widest = strlen(kind_names[kind]);

	for (size_t i = 0; i < row_count(report); i++) {
		struct mw_shown cell = rows[i].show(&report->totals[kind]);
		size_t columns = strlen(cell.text);

		if (columns > widest)
			widest = columns;
	}
	return widest;
}

static void put_cell(struct mw_line *line, size_t columns, const char *cell)
{
	/* µ is two bytes and one column. */
	size_t extra = strstr(cell, "µ") ? 1 : 0;

	mw_line_printf(line, "  %*s", (int)(columns + extra), cell);
}

static void put_kinds(struct mw_text *text, unsigned first, unsigned last)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "  %-*s", LABEL_COLUMNS, "");
	for (unsigned kind = first; kind <= last; kind++)
		if (report->tracked[kind])
			put_cell(line, kind_columns(report, kind), kind_names[kind]);
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < row_count(report); i++) {
		mw_line_printf(line, "  %-*s", LABEL_COLUMNS, rows[i].label);
		for (unsigned kind = first; kind <= last; kind++)
			if (report->tracked[kind])
				put_cell(line, kind_columns(report, kind), rows[i].show(&report->totals[kind]).text);
		mw_text_line(text, MW_STYLE_PLAIN);
	}
}

static void put_totals(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t columns = 2 + LABEL_COLUMNS;

	mw_text_heading(text, "Totals, in bytes and blocks");
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		columns += report->tracked[kind] ? 2 + kind_columns(report, kind) : 0;
	if (!text->options->width || columns <= text->options->width) {
		put_kinds(text, 0, MW_KIND_COUNT - 1);
	} else {
		for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
			if (report->tracked[kind])
				put_kinds(text, kind, kind);
	}
	mw_line_printf(&text->line, "  (impacting: not freed by the end; transient: freed; older: from before the %s",
		       mw_text_span(text));
	if (report->tracked[MW_KIND_VM_INTERNAL])
		mw_line_printf(&text->line, "; vm-internal: mapped by allocators, to hold heap blocks");
	mw_line_printf(&text->line, ")");
	mw_text_paragraph(text, 3);
}

static void put_memory_row(struct mw_text *text, const char *label, uint64_t from, uint64_t to)
{
	if (from == MW_SIZE_UNKNOWN || to == MW_SIZE_UNKNOWN)
		return;
	mw_line_printf(&text->line, "  %-*s  %10s  %10s  %11s", MEMORY_COLUMNS, label, mw_show_size(from).text,
		       mw_show_size(to).text, mw_show_change(from, to).text);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_memory(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	const struct mw_report_sample *first, *last;

	if (!report->memory_count)
		return;
	first = &report->memory[0];
	last = &report->memory[report->memory_count - 1];
	mw_text_heading(text, "Memory of the process");
	mw_line_printf(&text->line, "  %-*s  %10s  %10s  %11s", MEMORY_COLUMNS, "", "first", "last", "change");
	mw_text_line(text, MW_STYLE_PLAIN);
	put_memory_row(text, "resident (RSS)", first->rss, last->rss);
	put_memory_row(text, "proportional (PSS)", first->pss, last->pss);
	put_memory_row(text, "virtual", first->vsize, last->vsize);
}

static void add_bar(struct mw_line *line, double share)
{
	int bar = share < 1 ? (int)(share * BAR_COLUMNS + 0.5) : BAR_COLUMNS;

	mw_line_printf(line, "  %.*s%*s", bar, "##########", BAR_COLUMNS - bar, "");
}

static void put_module(struct mw_text *text, const struct mw_report_module *module, bool leads)
{
	double part = (double)module->impacting.bytes, whole = (double)text->impacting.bytes;
	unsigned width = text->options->width;
	struct mw_line *line = &text->line;
	size_t name, columns;

	mw_line_printf(line, "  %10s  %12s  %7s", mw_show_size(module->impacting.bytes).text,
		       mw_show_count(module->impacting.count).text, mw_show_percent(part, whole).text);
	if (!width || width >= BAR_WIDTH)
		add_bar(line, whole > 0 ? part / whole : 0);
	mw_line_printf(line, "  ");
	name = line->length;
	columns = mw_line_columns(line, 0);
	if (module->module)
		mw_line_name(line, module->module);
	else
		mw_line_printf(line, "(runtime only)");
	if (width)
		mw_line_elide(line, name, width > columns ? width - columns : 1);
	mw_text_line(text, leads ? MW_STYLE_ALARM : MW_STYLE_PLAIN);
}

static void put_suspects(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_amount rest = {0};
	size_t shown = 0, left = 0;

	if (!text->impacting.count)
		return;
	mw_text_heading(text, "Usual suspects: impacting memory by module");
	mw_line_printf(&text->line, "  (charged to the innermost module that is neither allocator nor C/C++ runtime)");
	mw_text_paragraph(text, 3);
	for (size_t i = 0; i < report->module_count; i++) {
		const struct mw_report_module *module = &report->modules[i];

		if (!module->impacting.count)
			continue;
		if (shown < text->options->top) {
			put_module(text, module, shown == 0);
			shown++;
			continue;
		}
		left++;
		rest.count += module->impacting.count;
		rest.bytes += module->impacting.bytes;
	}
	if (!left)
		return;
	mw_line_printf(&text->line, "  … and %s more module%s: %s in %s blocks", mw_show_count(left).text,
		       left == 1 ? "" : "s", mw_show_size(rest.bytes).text, mw_show_count(rest.count).text);
	mw_text_paragraph(text, 4);
}

void mw_text_tables(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	bool any = false;

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		any = any || report->totals[kind].size.count || report->totals[kind].aofi.count;
	if (any) {
		put_totals(text);
	} else {
		mw_line_printf(&text->line, "\nNothing was allocated in the %s, and nothing freed.",
			       mw_text_span(text));
		mw_text_line(text, MW_STYLE_PLAIN);
	}
	put_memory(text);
	mw_text_space(text);
	put_suspects(text);
}

// SPDX-License-Identifier: MIT
/* text_figures.c: the columns of tables and trees: as many as there is room for, the most telling first. */
#include "output/text_views.h"

#include <inttypes.h>
#include <string.h>

#define LABEL_LEAST 30 /* columns that are left for what a row is about */
#define GAP         2

struct mw_figure {
	const char *heading; /* NULL: the type's name */
	int width;
	struct mw_shown (*show)(const struct mw_figures *figures, const struct mw_sums *sums,
				const struct mw_sums *self);
	/* NULL: always. */
	bool (*tells)(const struct mw_views *views, const struct mw_sums *total, bool tree);
};

static struct mw_shown show_main(const struct mw_figures *figures, const struct mw_sums *sums,
				 const struct mw_sums *self)
{
	(void)self;
	return mw_show_size(mw_sums_of(sums, figures->views->type).bytes);
}

static struct mw_shown show_self(const struct mw_figures *figures, const struct mw_sums *sums,
				 const struct mw_sums *self)
{
	(void)sums;
	return self ? mw_show_size(mw_sums_of(self, figures->views->type).bytes) : (struct mw_shown){""};
}

static struct mw_shown show_share(const struct mw_figures *figures, const struct mw_sums *sums,
				  const struct mw_sums *self)
{
	enum mw_fate type = figures->views->type;

	(void)self;
	return mw_show_percent((double)mw_sums_of(sums, type).bytes, (double)mw_sums_of(figures->total, type).bytes);
}

static struct mw_shown show_count(const struct mw_figures *figures, const struct mw_sums *sums,
				  const struct mw_sums *self)
{
	(void)self;
	return mw_show_count(mw_sums_of(sums, figures->views->type).count);
}

static struct mw_shown show_impacting(const struct mw_figures *figures, const struct mw_sums *sums,
				      const struct mw_sums *self)
{
	(void)figures;
	(void)self;
	return mw_show_size(sums->fates[MW_FATE_IMPACTING].bytes);
}

static struct mw_shown show_size(const struct mw_figures *figures, const struct mw_sums *sums,
				 const struct mw_sums *self)
{
	(void)figures;
	(void)self;
	return mw_show_size(mw_sums_size(sums).bytes);
}

static struct mw_shown show_transient(const struct mw_figures *figures, const struct mw_sums *sums,
				      const struct mw_sums *self)
{
	(void)figures;
	(void)self;
	return mw_show_size(sums->fates[MW_FATE_TRANSIENT].bytes);
}

static struct mw_shown show_aofi(const struct mw_figures *figures, const struct mw_sums *sums,
				 const struct mw_sums *self)
{
	(void)figures;
	(void)self;
	return mw_show_size(sums->fates[MW_FATE_AOFI].bytes);
}

static struct mw_shown show_aofo(const struct mw_figures *figures, const struct mw_sums *sums,
				 const struct mw_sums *self)
{
	(void)figures;
	(void)self;
	return mw_show_size(sums->fates[MW_FATE_AOFO].bytes);
}

static struct mw_shown show_lifetime(const struct mw_figures *figures, const struct mw_sums *sums,
				     const struct mw_sums *self)
{
	(void)figures;
	(void)self;
	return sums->has_lifetime ? mw_show_seconds((double)sums->lifetime_median_ns / 1e9) : (struct mw_shown){"-"};
}

static struct mw_shown show_peak(const struct mw_figures *figures, const struct mw_sums *sums,
				 const struct mw_sums *self)
{
	struct mw_shown shown = {0};

	(void)figures;
	(void)self;
	snprintf(shown.text, sizeof(shown.text), "%s%.30s",
		 sums->peak_exact ? "" : "<=", mw_show_size(sums->peak_bytes).text);
	return shown;
}

static bool in_trees(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	(void)views;
	(void)total;
	return tree;
}

static bool sorted_by_peak(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	(void)total;
	(void)tree;
	return views->sort == MW_SORT_PEAK;
}

static bool sorted_by_lifetime(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	return views->sort == MW_SORT_LIFETIME && total->has_lifetime && !tree;
}

static bool has_lifetimes(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	return views->sort != MW_SORT_LIFETIME && total->has_lifetime && !tree;
}

static bool not_main_impacting(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	(void)total;
	(void)tree;
	return views->type != MW_FATE_IMPACTING;
}

static bool not_main_size(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	(void)total;
	(void)tree;
	return views->type != MW_FATE_ALL;
}

static bool not_main_transient(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	(void)total;
	(void)tree;
	return views->type != MW_FATE_TRANSIENT;
}

static bool has_aofi(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	(void)tree;
	return views->type != MW_FATE_AOFI && total->fates[MW_FATE_AOFI].count;
}

static bool has_aofo(const struct mw_views *views, const struct mw_sums *total, bool tree)
{
	(void)tree;
	return views->type == MW_FATE_ALL && total->fates[MW_FATE_AOFO].count;
}

/* In the order in which they are given up last. */
static const struct mw_figure all_figures[] = {
	{NULL, 10, show_main, NULL},
	{"share", 7, show_share, NULL},
	{"peak", 12, show_peak, sorted_by_peak},
	{"lived", 8, show_lifetime, sorted_by_lifetime},
	{"here", 10, show_self, in_trees},
	{"blocks", 11, show_count, NULL},
	{"impacting", 10, show_impacting, not_main_impacting},
	{"allocated", 10, show_size, not_main_size},
	{"transient", 10, show_transient, not_main_transient},
	{"older freed", 11, show_aofi, has_aofi},
	{"older kept", 10, show_aofo, has_aofo},
	{"lived", 8, show_lifetime, has_lifetimes},
};

void mw_figures_choose(struct mw_figures *figures, const struct mw_views *views, const struct mw_sums *total, bool tree,
		       unsigned width)
{
	size_t taken = LABEL_LEAST;

	*figures = (struct mw_figures){.views = views, .total = total};
	for (size_t i = 0; i < sizeof(all_figures) / sizeof(all_figures[0]); i++) {
		const struct mw_figure *figure = &all_figures[i];

		if (figure->tells && !figure->tells(views, total, tree))
			continue;
		taken += (size_t)figure->width + GAP;
		if ((width && taken > width) || figures->count == MW_FIGURES_MAX_COLUMNS)
			return;
		figures->columns[figures->count++] = figure;
	}
}

static const char *type_heading(enum mw_fate type)
{
	switch (type) {
	case MW_FATE_ALL:
		return "allocated";
	case MW_FATE_AOFI:
		return "freed";
	case MW_FATE_AOFO:
		return "kept";
	case MW_FATE_IMPACTING:
	case MW_FATE_TRANSIENT:
		break;
	}
	return mw_fate_name(type);
}

void mw_figures_head(const struct mw_figures *figures, struct mw_line *line)
{
	for (size_t i = 0; i < figures->count; i++) {
		const char *heading = figures->columns[i]->heading;

		mw_line_printf(line, "%*s", figures->columns[i]->width + GAP,
			       heading ? heading : type_heading(figures->views->type));
	}
}

void mw_figures_row(const struct mw_figures *figures, struct mw_line *line, const struct mw_sums *sums,
		    const struct mw_sums *self)
{
	for (size_t i = 0; i < figures->count; i++) {
		struct mw_shown shown = figures->columns[i]->show(figures, sums, self);
		/* µ is two bytes and one column. */
		int extra = strstr(shown.text, "µ") ? 1 : 0;

		mw_line_printf(line, "%*s", figures->columns[i]->width + GAP + extra, shown.text);
	}
}

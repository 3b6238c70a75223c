// SPDX-License-Identifier: MIT
/* timeline.c: what the numbers of a timeline stand for (cube.h). */
#include "view/cube.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

static int compare_rows(const void *left, const void *right)
{
	const struct mw_timeline_row *a = left, *b = right;

	for (size_t i = 0; i < 3; i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	if (a->born != b->born)
		return a->born < b->born ? -1 : 1;
	return (a->died > b->died) - (a->died < b->died);
}

/* In order; those that have become one are added up. */
static void sort_rows(struct mw_timeline_table *table)
{
	struct mw_timeline_row *rows = table->rows;
	size_t kept = 0;

	if (!table->count)
		return;
	qsort(rows, table->count, sizeof(*rows), compare_rows);
	for (size_t i = 1; i < table->count; i++) {
		if (compare_rows(&rows[kept], &rows[i]) != 0) {
			rows[++kept] = rows[i];
			continue;
		}
		rows[kept].count += rows[i].count;
		rows[kept].bytes += rows[i].bytes;
		rows[kept].unknown += rows[i].unknown;
		rows[kept].lived_ns += rows[i].lived_ns;
	}
	table->count = kept + 1;
}

/* What the rows' numbers stand for. The tracker's stacks that nothing is counted under have no rows. */
static void translate(const struct mw_cube_names *names, struct mw_timeline_table *cells)
{
	size_t kept = 0;

	for (size_t i = 0; i < cells->count; i++) {
		struct mw_timeline_row row = cells->rows[i];

		row.key[0] = row.key[0] < names->stack_count ? names->stack_of[row.key[0]] : UINT32_MAX;
		if (row.key[0] == UINT32_MAX)
			continue;
		if (names->heap_of)
			row.key[2] = row.key[2] < names->heap_of_count ? names->heap_of[row.key[2]] : 0;
		if (row.key[2] >= names->heap_count || !names->heaps[row.key[2]])
			row.key[2] = 0;
		cells->rows[kept++] = row;
	}
	cells->count = kept;
}

/* Number the heaps that there are rows of. */
static struct mw_error *name_heaps(const struct mw_cube_names *names, struct mw_timeline *timeline)
{
	struct mw_timeline_table *cells = timeline->coarse ? &timeline->owners : &timeline->cells;
	MW_FREE uint32_t *number = calloc(names->heap_count + 1, sizeof(*number));

	timeline->heaps = calloc(names->heap_count + 1, sizeof(*timeline->heaps));
	if (!number || !timeline->heaps)
		return mw_error_nomem();
	for (size_t i = 0; i < cells->count; i++)
		number[cells->rows[i].key[2]] = 1;
	for (size_t i = 1; i < names->heap_count; i++) {
		if (!number[i])
			continue;
		timeline->heaps[timeline->heap_count] = strdup(names->heaps[i]);
		if (!timeline->heaps[timeline->heap_count])
			return mw_error_nomem();
		number[i] = (uint32_t)++timeline->heap_count;
	}
	number[0] = 0;
	for (size_t i = 0; i < cells->count; i++)
		cells->rows[i].key[2] = number[cells->rows[i].key[2]];
	return NULL;
}

static struct mw_error *take_threads(const struct mw_cube_names *names, struct mw_timeline *timeline)
{
	timeline->threads = calloc(names->thread_count + 1, sizeof(*timeline->threads));
	if (!timeline->threads)
		return mw_error_nomem();
	if (timeline->coarse && !timeline->owners.bins) {
		timeline->threads[0] = MW_TIMELINE_UNKNOWN;
		timeline->thread_count = 1;
		return NULL;
	}
	if (names->thread_count)
		memcpy(timeline->threads, names->thread_of, names->thread_count * sizeof(*timeline->threads));
	timeline->thread_count = names->thread_count;
	return NULL;
}

struct mw_error *mw_timeline_name(struct mw_timeline *timeline, const struct mw_cube_names *names)
{
	translate(names, &timeline->cells);
	translate(names, &timeline->owners);
	MW_TRY(name_heaps(names, timeline));
	MW_TRY(take_threads(names, timeline));
	sort_rows(&timeline->cells);
	sort_rows(&timeline->owners);
	sort_rows(&timeline->lifetimes);
	return NULL;
}

void mw_timeline_destroy(struct mw_timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < timeline->heap_count; i++)
		free(timeline->heaps[i]);
	free(timeline->heaps);
	free(timeline->threads);
	free(timeline->cells.rows);
	free(timeline->owners.rows);
	free(timeline->lifetimes.rows);
	free(timeline);
}

// SPDX-License-Identifier: MIT
/* regions.c: mappings become regions of a kind (regions.h). */
#include "proc/regions.h"

#include "base/vector.h"
#include "proc/maps.h"

#include <stdlib.h>
#include <string.h>

#define OWN_NAME "/memfd:memwatch"

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What the kernel puts in brackets. */
static enum mw_region_kind kind_of_name(const struct mw_mapping *mapping)
{
	const char *name = mapping->path;

	if (strcmp(name, "[heap]") == 0)
		return MW_REGION_HEAP;
	if (begins(name, "[stack"))
		return MW_REGION_STACK;
	if (begins(name, "[anon_shmem:"))
		return MW_REGION_SHARED;
	/* Named by prctl(PR_SET_VMA). */
	if (begins(name, "[anon:"))
		return mapping->shared ? MW_REGION_SHARED : MW_REGION_ANONYMOUS;
	return MW_REGION_SPECIAL;
}

enum mw_region_kind mw_region_kind_of(const struct mw_mapping *mapping)
{
	if (strcmp(mapping->path, OWN_NAME) == 0)
		return MW_REGION_OWN;
	if (!mapping->inode && mapping->path[0] == '[')
		return kind_of_name(mapping);
	if (mapping->shared)
		return MW_REGION_SHARED;
	if (!mapping->inode && !mapping->path[0])
		return MW_REGION_ANONYMOUS;
	return mapping->exec ? MW_REGION_FILE_TEXT : MW_REGION_FILE_DATA;
}

struct mw_error *mw_regions_of(struct mw_maps *maps, struct mw_regions *out)
{
	struct mw_region *items = calloc(maps->count ? maps->count : 1, sizeof(*items));

	if (!items)
		return mw_error_nomem();
	for (size_t i = 0; i < maps->count; i++) {
		struct mw_mapping *mapping = &maps->items[i];

		items[i] = (struct mw_region){
			.start = mapping->start,
			.end = mapping->end,
			.kind = mw_region_kind_of(mapping),
			.read = mapping->read,
			.write = mapping->write,
			.exec = mapping->exec,
			.resident = MW_SIZE_UNKNOWN,
			.path = mapping->path,
		};
		mapping->path = NULL;
	}
	out->items = items;
	out->count = maps->count;
	return NULL;
}

struct mw_error *mw_regions_read(pid_t tid, struct mw_regions *out)
{
	struct mw_maps maps = {0};
	struct mw_error *err;

	MW_TRY(mw_maps_read(tid, &maps));
	err = mw_regions_of(&maps, out);
	mw_maps_deinit(&maps);
	if (!err)
		mw_regions_find_stacks(out, tid);
	return err;
}

void mw_regions_deinit(struct mw_regions *regions)
{
	if (!regions)
		return;
	for (size_t i = 0; i < regions->count; i++)
		free(regions->items[i].path);
	free(regions->items);
	*regions = (struct mw_regions){0};
}

/* Regions in the making. */
struct builder {
	struct mw_regions regions;
	size_t capacity;
};

/* Add [start, end) of a region, as a mark has it (NULL: none). */
static struct mw_error *add_piece(struct builder *builder, const struct mw_region *whole, mw_addr start, mw_addr end,
				  const struct mw_region_mark *mark)
{
	struct mw_regions *regions = &builder->regions;
	struct mw_region piece = *whole;
	bool applies = mark && mark->kind != MW_REGION_KIND_COUNT &&
		       (whole->kind == MW_REGION_ANONYMOUS || mark->kind == MW_REGION_OWN);

	if (start >= end)
		return NULL;
	if (!MW_VECTOR_ROOM(regions->items, regions->count, builder->capacity))
		return mw_error_nomem();
	piece.start = start;
	piece.end = end;
	piece.resident = MW_SIZE_UNKNOWN;
	if (applies)
		piece.kind = mark->kind;
	piece.path = strdup(applies && mark->path ? mark->path : whole->path);
	if (!piece.path)
		return mw_error_nomem();
	regions->items[regions->count++] = piece;
	return NULL;
}

/* Split one region at the marks from *next on; *next is the first that may reach beyond the region. */
static struct mw_error *split(struct builder *builder, const struct mw_region *whole,
			      const struct mw_region_mark *marks, size_t count, size_t *next)
{
	mw_addr at = whole->start;
	size_t i = *next;

	while (i < count && marks[i].end <= at)
		i++;
	*next = i;
	for (; i < count && marks[i].start < whole->end; i++) {
		mw_addr start = marks[i].start > at ? marks[i].start : at;
		mw_addr end = marks[i].end < whole->end ? marks[i].end : whole->end;

		if (start >= end)
			continue;
		MW_TRY(add_piece(builder, whole, at, start, NULL));
		MW_TRY(add_piece(builder, whole, start, end, &marks[i]));
		at = end;
	}
	return add_piece(builder, whole, at, whole->end, NULL);
}

static int compare_marks(const void *left, const void *right)
{
	const struct mw_region_mark *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

/* Marks in order must not overlap: split() looks at each but once a region. */
static size_t tidy_marks(struct mw_region_mark *marks, size_t count)
{
	size_t kept = 0;
	mw_addr at = 0;

	if (count)
		qsort(marks, count, sizeof(*marks), compare_marks);
	for (size_t i = 0; i < count; i++) {
		struct mw_region_mark mark = marks[i];

		if (mark.start < at)
			mark.start = at;
		if (mark.start >= mark.end)
			continue;
		at = mark.end;
		marks[kept++] = mark;
	}
	return kept;
}

struct mw_error *mw_regions_mark(struct mw_regions *regions, struct mw_region_mark *marks, size_t count)
{
	struct builder builder = {0};
	size_t next = 0;

	count = tidy_marks(marks, count);
	for (size_t i = 0; i < regions->count; i++) {
		struct mw_error *err = split(&builder, &regions->items[i], marks, count, &next);

		if (err) {
			mw_regions_deinit(&builder.regions);
			return err;
		}
	}
	mw_regions_deinit(regions);
	*regions = builder.regions;
	return NULL;
}

// SPDX-License-Identifier: MIT
/* code_regions.c: see code_regions.h. */
#include "view/code_regions.h"

#include "base/vector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DATA (UINT64_C(1) << 20) /* bytes of data between two pieces of code of one region, at most */

struct list {
	struct mw_code_region *items;
	size_t count, capacity;
};

static struct mw_error *add(struct list *list, const struct mw_code_region *region)
{
	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return mw_error_nomem();
	list->items[list->count++] = *region;
	return NULL;
}

static struct mw_error *add_moment(struct list *list, const struct mw_space_moment *moment)
{
	struct mw_code_region region = {0}; /* empty: none is begun */
	mw_addr end = 0;                    /* of the anonymous mappings that touch each other */
	uint64_t data = 0;                  /* since the region's last code */
	struct mw_error *err = NULL;

	for (size_t i = 0; moment && i < moment->count && !err; i++) {
		const struct mw_stored_mapping *mapping = &moment->mappings[i];
		bool anonymous = mapping->kind == MW_REGION_ANONYMOUS;

		if (region.end && (!anonymous || mapping->start != end || data > DATA)) {
			err = add(list, &region);
			region.end = 0;
		}
		end = mapping->end;
		if (!anonymous)
			continue;
		if (!mapping->exec) {
			data += mapping->accessible ? mapping->end - mapping->start : 0;
			continue;
		}
		if (!region.end)
			region.start = mapping->start;
		region.end = mapping->end;
		data = 0;
	}
	if (!err && region.end)
		err = add(list, &region);
	return err;
}

static int compare(const void *left, const void *right)
{
	const struct mw_code_region *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

/* Regions grow: those of two moments that overlap are one. */
static void join(struct list *list)
{
	size_t kept = 0;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare);
	for (size_t i = 0; i < list->count; i++) {
		struct mw_code_region *last = kept ? &list->items[kept - 1] : NULL;

		if (last && list->items[i].start < last->end)
			last->end = list->items[i].end > last->end ? list->items[i].end : last->end;
		else
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
}

struct mw_error *mw_code_regions_make(const struct mw_space_moment *start, const struct mw_space_moment *end,
				      struct mw_code_regions *out)
{
	struct list list = {0};
	struct mw_error *err = add_moment(&list, start);

	if (!err)
		err = add_moment(&list, end);
	if (err) {
		free(list.items);
		return err;
	}
	join(&list);
	*out = (struct mw_code_regions){list.items, list.count};
	return NULL;
}

void mw_code_regions_deinit(struct mw_code_regions *regions)
{
	free(regions->items);
	*regions = (struct mw_code_regions){0};
}

const struct mw_code_region *mw_code_regions_find(const struct mw_code_regions *regions, mw_addr addr)
{
	size_t low = 0, high = regions ? regions->count : 0;

	addr &= ~MW_FRAME_NEAR;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct mw_code_region *region = &regions->items[middle];

		if (addr - 1 < region->start)
			high = middle;
		else if (addr - 1 >= region->end)
			low = middle + 1;
		else
			return region;
	}
	return NULL;
}

struct mw_error *mw_view_code_name(const struct mw_view_code *code, const struct mw_raw_frame *frame, const char **name)
{
	const struct mw_symbol_frame *frames = NULL;
	size_t count = 0;

	*name = NULL;
	if (!code->symbols || frame->addr & MW_FRAME_NEAR)
		return NULL;
	MW_TRY(code->symbols->resolve(code->symbols->context, frame->module, frame->addr, &frames, &count));
	if (count)
		*name = frames[0].function;
	return NULL;
}

void mw_code_region_describe(const struct mw_code_region *region, char text[MW_CODE_REGION_TEXT])
{
	static const char *const units[] = {"KiB", "MiB", "GiB"};
	double size = (double)(region->end - region->start) / 1024;
	size_t unit = 0;

	/* 1023.95 would be shown as 1024.0. */
	for (; size >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		size /= 1024;
	(void)snprintf(text, MW_CODE_REGION_TEXT, "(generated code at 0x%" PRIx64 ", %.*f %s)", region->start,
		       unit ? 1 : 0, size, units[unit]);
}

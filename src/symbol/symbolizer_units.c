// SPDX-License-Identifier: MIT
/* symbolizer_units.c: an index of all units' code. */
#include "symbol/symbolizer_units.h"

#include "base/vector.h"

#include <dwarf.h>
#include <stdlib.h>

static bool add_unit(struct mw_units *units, const Dwarf_Die *lines, const Dwarf_Die *scopes)
{
	struct mw_unit *items = mw_vector_room(units->units, units->unit_count, &units->unit_capacity, sizeof(*items));

	if (!items)
		return false;
	units->units = items;
	units->units[units->unit_count++] = (struct mw_unit){*lines, *scopes};
	return true;
}

static bool add_range(struct mw_units *units, Dwarf_Addr start, Dwarf_Addr end)
{
	struct mw_unit_range *items =
		mw_vector_room(units->ranges, units->range_count, &units->range_capacity, sizeof(*items));

	if (!items)
		return false;
	units->ranges = items;
	units->ranges[units->range_count++] = (struct mw_unit_range){start, end, units->unit_count - 1};
	return true;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct mw_unit_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static bool add_ranges_of(struct mw_units *units, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		/* What the linker has thrown away is left at address 0, or near it. */
		if (start && start < end && !add_range(units, start, end))
			return false;
	return true;
}

bool mw_units_init(struct mw_units *units, Dwarf *dwarf)
{
	Dwarf_Die die, split;
	Dwarf_CU *unit = NULL;
	uint8_t type;

	while (dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, &split) == 0) {
		bool is_split = type == DW_UT_skeleton && split.cu;

		if (type == DW_UT_type)
			continue;
		if (!add_unit(units, &die, is_split ? &split : &die) || !add_ranges_of(units, &die)) {
			mw_units_deinit(units);
			return false;
		}
	}
	if (units->range_count)
		qsort(units->ranges, units->range_count, sizeof(*units->ranges), compare_ranges);
	return true;
}

void mw_units_deinit(struct mw_units *units)
{
	free(units->units);
	free(units->ranges);
	*units = (struct mw_units){0};
}

struct mw_unit *mw_units_find(const struct mw_units *units, Dwarf_Addr address)
{
	size_t low = 0, high = units->range_count;

	while (low < high) { /* the first range that begins behind the address */
		size_t middle = low + (high - low) / 2;

		if (units->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= units->ranges[low - 1].end)
		return NULL;
	return &units->units[units->ranges[low - 1].unit];
}

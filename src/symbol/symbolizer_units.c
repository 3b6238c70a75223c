// SPDX-License-Identifier: MIT
/* symbolizer_units.c: an index of all units' code. */
#include "symbol/symbolizer_units.h"

#include "base/vector.h"

#include <dwarf.h>
#include <stdlib.h>

static bool add_unit(struct mw_units *units, const Dwarf_Die *lines, const Dwarf_Die *scopes)
{
	if (!MW_VECTOR_ROOM(units->units, units->unit_count, units->unit_capacity))
		return false;
	units->units[units->unit_count++] = (struct mw_unit){.lines = *lines, .scopes = *scopes};
	return true;
}

static bool add_ranges_of(struct mw_units *units, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		/* What the linker has thrown away is left at address 0, or near it. */
		if (start && start < end && !mw_ranges_add(&units->ranges, start, end, units->unit_count - 1))
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
	mw_ranges_sort(&units->ranges);
	return true;
}

void mw_units_deinit(struct mw_units *units)
{
	for (size_t i = 0; i < units->unit_count; i++) {
		mw_ranges_deinit(&units->units[i].functions);
		mw_ranges_deinit(&units->units[i].spaces);
	}
	free(units->units);
	mw_ranges_deinit(&units->ranges);
	*units = (struct mw_units){0};
}

struct mw_unit *mw_units_find(const struct mw_units *units, Dwarf_Addr address)
{
	const struct mw_range *range = mw_ranges_find(&units->ranges, address);

	return range ? &units->units[range->value] : NULL;
}

struct mw_unit *mw_units_of(const struct mw_units *units, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	size_t low = 0, high = units->unit_count;

	while (low < high) { /* the first unit behind it: they are in the order of the file */
		size_t middle = low + (high - low) / 2;

		if (dwarf_dieoffset(&units->units[middle].lines) <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low && units->units[low - 1].scopes.cu == die->cu ? &units->units[low - 1] : NULL;
}

// SPDX-License-Identifier: MIT
/* symbolizer_functions.c: see symbolizer_functions.h. */
#include "symbol/symbolizer_functions.h"

#include "base/vector.h"

#include <dwarf.h>
#include <stdlib.h>

/* --- ranges --------------------------------------------------------------------------------------------- */

/* False without memory. */
static bool ranges_add(struct mw_ranges *ranges, uint64_t start, uint64_t end, uint64_t value)
{
	if (!MW_VECTOR_ROOM(ranges->items, ranges->count, ranges->capacity))
		return false;
	ranges->items[ranges->count++] = (struct mw_range){.start = start, .end = end, .value = value};
	return true;
}

/* So that of those that hold an address the wanted one comes last. */
static int compare(const void *a, const void *b)
{
	const struct mw_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->value < y->value) - (x->value > y->value);
}

static void ranges_sort(struct mw_ranges *ranges)
{
	uint64_t reach = 0;

	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare);
	for (size_t i = 0; i < ranges->count; i++) {
		reach = ranges->items[i].end > reach ? ranges->items[i].end : reach;
		ranges->items[i].reach = reach;
	}
}

static void ranges_deinit(struct mw_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct mw_ranges){0};
}

/* Of the ranges that hold `address` the one that begins last, of those the shortest, of those the one of the smallest
 * value; NULL where there is none. */
static const struct mw_range *ranges_find(const struct mw_ranges *ranges, uint64_t address)
{
	size_t before = mw_vector_up_to(ranges->items, ranges->count, sizeof(*ranges->items),
					offsetof(struct mw_range, start), address);

	for (size_t i = before; i > 0 && ranges->items[i - 1].reach > address; i--)
		if (ranges->items[i - 1].end > address)
			return &ranges->items[i - 1];
	return NULL;
}

/* --- the units of a file -------------------------------------------------------------------------------- */

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
		if (start && start < end && !ranges_add(&units->ranges, start, end, units->unit_count - 1))
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
	ranges_sort(&units->ranges);
	return true;
}

void mw_units_deinit(struct mw_units *units)
{
	for (size_t i = 0; i < units->unit_count; i++) {
		ranges_deinit(&units->units[i].functions);
		ranges_deinit(&units->units[i].spaces);
	}
	free(units->units);
	ranges_deinit(&units->ranges);
	*units = (struct mw_units){0};
}

struct mw_unit *mw_units_find(const struct mw_units *units, Dwarf_Addr address)
{
	const struct mw_range *range = ranges_find(&units->ranges, address);

	return range ? &units->units[range->value] : NULL;
}

/* The unit that `die` is a part of, or NULL. */
static struct mw_unit *units_of(const struct mw_units *units, Dwarf_Die *die)
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

#define DEPTH_MAX 256 /* of DIEs in each other; what lies deeper is left out */

/* --- the index of a unit -------------------------------------------------------------------------------- */

/* The way from a unit's DIE down to the one that is looked at. */
struct walk {
	struct mw_unit *unit;
	Dwarf_Die path[DEPTH_MAX];
	uint64_t space[DEPTH_MAX]; /* around each: as the values of mw_unit.spaces */
	size_t depth;
	Dwarf_Off last; /* offset of the DIE that was last looked at */
};

static bool is_space(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

/* Can there be a function or a class in it? Local classes, nested functions and closures are in functions. */
static bool is_of_interest(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type: /* Rust's */
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_inlined_subroutine:
		return true;
	default:
		return is_space(die);
	}
}

static bool add_function(struct mw_ranges *functions, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		/* Address 0 stands for what the linker has left out. */
		if (start && start < end && !ranges_add(functions, start, end, dwarf_dieoffset(die)))
			return false;
	return true;
}

static bool look_at(struct walk *walk)
{
	Dwarf_Die *die = &walk->path[walk->depth];

	walk->last = dwarf_dieoffset(die);
	if (dwarf_tag(die) == DW_TAG_subprogram)
		return add_function(&walk->unit->functions, die);
	return !is_space(die) || ranges_add(&walk->unit->spaces, walk->last, walk->last + 1, walk->space[walk->depth]);
}

static bool go_down(struct walk *walk)
{
	Dwarf_Die *die = &walk->path[walk->depth];

	if (walk->depth + 1 == DEPTH_MAX || !is_of_interest(die) || dwarf_child(die, die + 1) != 0)
		return false;
	walk->space[walk->depth + 1] = is_space(die) ? walk->unit->spaces.count : walk->space[walk->depth];
	walk->depth++;
	return true;
}

static void go_up(struct walk *walk)
{
	struct mw_ranges *spaces = &walk->unit->spaces;

	walk->depth--;
	if (is_space(&walk->path[walk->depth]))
		spaces->items[walk->space[walk->depth + 1] - 1].end = walk->last + 1;
}

/* To the next DIE that is not inside the present one; false at the end of the unit. */
static bool go_on(struct walk *walk)
{
	while (dwarf_siblingof(&walk->path[walk->depth], &walk->path[walk->depth]) != 0) {
		if (!walk->depth)
			return false;
		go_up(walk);
	}
	return true;
}

static bool index_unit(struct mw_unit *unit)
{
	struct walk walk = {.unit = unit};
	bool more = dwarf_child(&unit->scopes, &walk.path[0]) == 0;

	while (more) {
		if (!look_at(&walk)) {
			ranges_deinit(&unit->functions);
			ranges_deinit(&unit->spaces);
			return false;
		}
		more = go_down(&walk) || go_on(&walk);
	}
	ranges_sort(&unit->functions);
	ranges_sort(&unit->spaces); /* they are in order, so that their places remain */
	unit->is_indexed = true;
	return true;
}

/* --- what is inlined at an address ---------------------------------------------------------------------- */

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* Can code at the address belong to it, or to what is in it? A block without code of its own may hold others. */
static bool may_be_there(Dwarf_Die *die, Dwarf_Addr address)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_inlined_subroutine:
		return dwarf_haspc(die, address) == 1;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return dwarf_haspc(die, address) == 1 || !has_code(die);
	default:
		return false;
	}
}

/* The last of `path` is inlined there, and so are those before it of the same tag. */
static void take_inlined(struct mw_scopes *scopes, Dwarf_Die *path, size_t depth)
{
	scopes->inlined_count = 0;
	for (size_t i = 0; i <= depth && scopes->inlined_count < MW_INLINED_MAX; i++)
		if (dwarf_tag(&path[i]) == DW_TAG_inlined_subroutine)
			scopes->inlined[scopes->inlined_count++] = path[i];
}

/* Blocks beside each other may overlap where the optimiser has mixed their code: the last one counts, as it does for
 * other readers of DWARF. */
static void find_inlined(struct mw_scopes *scopes, Dwarf_Addr address)
{
	Dwarf_Die path[DEPTH_MAX];
	size_t depth = 0;
	bool more = dwarf_child(&scopes->function, &path[0]) == 0;

	scopes->inlined_count = 0;
	while (more) {
		bool there = may_be_there(&path[depth], address);

		if (there && dwarf_tag(&path[depth]) == DW_TAG_inlined_subroutine)
			take_inlined(scopes, path, depth);
		if (there && depth + 1 < DEPTH_MAX && dwarf_child(&path[depth], &path[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (!(more = dwarf_siblingof(&path[depth], &path[depth]) == 0) && depth > 0)
			depth--;
	}
}

bool mw_functions_find(struct mw_unit *unit, Dwarf_Addr address, struct mw_scopes *scopes, bool *found)
{
	const struct mw_range *range;

	*found = false;
	if (!unit->is_indexed && !index_unit(unit))
		return false;
	range = ranges_find(&unit->functions, address);
	if (!range || !dwarf_offdie(dwarf_cu_getdwarf(unit->scopes.cu), range->value, &scopes->function))
		return true;
	find_inlined(scopes, address);
	*found = true;
	return true;
}

/* By libdw, which walks all of the unit's DIEs. */
static void ask_for_spaces(Dwarf_Die *die, Dwarf_Die *spaces, size_t *count)
{
	Dwarf_Die *scopes = NULL;
	int scope_count = dwarf_getscopes_die(die, &scopes);

	for (int i = 1; i < scope_count && *count < MW_SPACES_MAX; i++)
		if (is_space(&scopes[i]))
			spaces[(*count)++] = scopes[i];
	free(scopes);
}

bool mw_functions_spaces(const struct mw_units *units, Dwarf_Die *die, Dwarf_Die *spaces, size_t *count)
{
	struct mw_unit *unit = units_of(units, die);
	const struct mw_range *range;

	*count = 0;
	if (!unit) { /* a type unit */
		ask_for_spaces(die, spaces, count);
		return true;
	}
	if (!unit->is_indexed && !index_unit(unit))
		return false;
	range = ranges_find(&unit->spaces, dwarf_dieoffset(die));
	while (range && *count < MW_SPACES_MAX &&
	       dwarf_offdie(dwarf_cu_getdwarf(die->cu), range->start, &spaces[*count])) {
		++*count;
		range = range->value ? &unit->spaces.items[range->value - 1] : NULL;
	}
	return true;
}

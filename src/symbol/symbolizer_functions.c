// SPDX-License-Identifier: MIT
/* symbolizer_functions.c: see symbolizer_functions.h. */
#include "symbol/symbolizer_functions.h"

#include <dwarf.h>
#include <stdlib.h>

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
		if (start && start < end && !mw_ranges_add(functions, start, end, dwarf_dieoffset(die)))
			return false;
	return true;
}

static bool look_at(struct walk *walk)
{
	Dwarf_Die *die = &walk->path[walk->depth];

	walk->last = dwarf_dieoffset(die);
	if (dwarf_tag(die) == DW_TAG_subprogram)
		return add_function(&walk->unit->functions, die);
	return !is_space(die) ||
	       mw_ranges_add(&walk->unit->spaces, walk->last, walk->last + 1, walk->space[walk->depth]);
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
			mw_ranges_deinit(&unit->functions);
			mw_ranges_deinit(&unit->spaces);
			return false;
		}
		more = go_down(&walk) || go_on(&walk);
	}
	mw_ranges_sort(&unit->functions);
	mw_ranges_sort(&unit->spaces); /* they are in order, so that their places remain */
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
	range = mw_ranges_find(&unit->functions, address);
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
	struct mw_unit *unit = mw_units_of(units, die);
	const struct mw_range *range;

	*count = 0;
	if (!unit) { /* a type unit */
		ask_for_spaces(die, spaces, count);
		return true;
	}
	if (!unit->is_indexed && !index_unit(unit))
		return false;
	range = mw_ranges_find(&unit->spaces, dwarf_dieoffset(die));
	while (range && *count < MW_SPACES_MAX &&
	       dwarf_offdie(dwarf_cu_getdwarf(die->cu), range->start, &spaces[*count])) {
		++*count;
		range = range->value ? &unit->spaces.items[range->value - 1] : NULL;
	}
	return true;
}

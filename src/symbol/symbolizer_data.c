// SPDX-License-Identifier: MIT
#include "symbol/symbolizer_data.h"

#include "base/vector.h"

#include <dwarf.h>
#include <stdlib.h>

#define DEPTH_MAX 32u

/* Variables in blocks of a function are static ones of it. */
static bool may_hold_variables(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

static bool address_of(Dwarf_Die *die, Dwarf_Addr *address)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;

	if (!dwarf_attr(die, DW_AT_location, &attribute) || dwarf_getlocation(&attribute, &operations, &count) != 0 ||
	    count != 1 || operations[0].atom != DW_OP_addr)
		return false;
	*address = operations[0].number;
	return true;
}

static bool look_at(struct mw_declarations *declarations, Dwarf_Die *die)
{
	struct mw_declaration found;
	int line;

	if (dwarf_tag(die) != DW_TAG_variable || !address_of(die, &found.address) || dwarf_decl_line(die, &line) != 0 ||
	    line <= 0)
		return true;
	found.file = dwarf_decl_file(die);
	found.line = (uint32_t)line;
	if (!found.file)
		return true;
	if (!MW_VECTOR_ROOM(declarations->items, declarations->count, declarations->capacity))
		return false;
	declarations->items[declarations->count++] = found;
	return true;
}

static bool look_through(struct mw_declarations *declarations, Dwarf_Die *unit)
{
	Dwarf_Die path[DEPTH_MAX];
	size_t depth = 0;

	if (dwarf_child(unit, &path[0]) != 0)
		return true;
	for (;;) {
		Dwarf_Die *die = &path[depth];

		if (!look_at(declarations, die))
			return false;
		if (depth + 1 < DEPTH_MAX && may_hold_variables(die) && dwarf_child(die, die + 1) == 0) {
			depth++;
			continue;
		}
		while (dwarf_siblingof(&path[depth], &path[depth]) != 0)
			if (depth-- == 0)
				return true;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct mw_declaration *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

bool mw_declarations_init(struct mw_declarations *declarations, const struct mw_units *units)
{
	for (size_t i = 0; i < units->unit_count; i++) {
		Dwarf_Die unit = units->units[i].scopes;

		if (!look_through(declarations, &unit)) {
			mw_declarations_deinit(declarations);
			return false;
		}
	}
	if (declarations->count)
		qsort(declarations->items, declarations->count, sizeof(*declarations->items), by_address);
	return true;
}

void mw_declarations_deinit(struct mw_declarations *declarations)
{
	free(declarations->items);
	*declarations = (struct mw_declarations){0};
}

const struct mw_declaration *mw_declarations_find(const struct mw_declarations *declarations, Dwarf_Addr address)
{
	size_t count = mw_vector_up_to(declarations->items, declarations->count, sizeof(*declarations->items),
				       offsetof(struct mw_declaration, address), address);

	return count && declarations->items[count - 1].address == address ? &declarations->items[count - 1] : NULL;
}

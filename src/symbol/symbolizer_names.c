// SPDX-License-Identifier: MIT
/* symbolizer_names.c: linkage names where there are, else names put together from the scopes around. */
#include "symbol/symbolizer_names.h"

#include "symbol/demangle.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often a DIE may refer to another for what it doesn't say itself. */
#define REFERENCE_LIMIT 8

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));

	return name ? name : dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
}

/* Is `symbol` a clone of `name` (foo.cold, foo.constprop.0)? DWARF doesn't tell clones from what they were made of. */
static bool is_clone(const char *symbol, const char *name)
{
	size_t length = strlen(name);

	return symbol && strncmp(symbol, name, length) == 0 && symbol[length] == '.';
}

static bool is_mangled(const char *symbol)
{
	return symbol[0] == '_' && symbol[1] && strchr("ZRD", symbol[1]);
}

/* Does the mangled `symbol` speak of `name`? (Identical functions may share one address and have another's symbol.) */
static bool is_mangled_form(const char *symbol, const char *name)
{
	return symbol && is_mangled(symbol) && strstr(symbol + 2, name);
}

/* The declaration that stands in the function's own scope: follows abstract origins and specifications. */
static Dwarf_Die declaration_of(Dwarf_Die *die)
{
	const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Die at = *die;

	for (size_t i = 0; i < REFERENCE_LIMIT; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Die next;

		if (!dwarf_formref_die(dwarf_attr(&at, links[0], &attribute), &next) &&
		    !dwarf_formref_die(dwarf_attr(&at, links[1], &attribute), &next))
			break;
		at = next;
	}
	return at;
}

/* The name of a namespace or class around a function; NULL for what is no part of its name. */
static const char *scope_name(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return dwarf_diename(die) ? dwarf_diename(die) : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_module:
		return dwarf_diename(die);
	default:
		return NULL;
	}
}

/* `name` with the scopes of the DIE before it. Malloc'ed; NULL without memory. */
static char *qualified(Dwarf_Die *die, const char *name)
{
	Dwarf_Die declaration = declaration_of(die), *scopes = NULL;
	int count = dwarf_getscopes_die(&declaration, &scopes);
	char *text = strdup(name);

	for (int i = 1; text && i < count; i++) {
		const char *outer = scope_name(&scopes[i]);
		char *longer;

		if (!outer)
			continue;
		if (asprintf(&longer, "%s::%s", outer, text) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	free(scopes);
	return text;
}

bool mw_dwarf_name(Dwarf_Die *die, const char *symbol, char **name)
{
	const char *linkage = linkage_name(die), *plain = dwarf_diename(die);

	/* A C function that was given another name for the assembler (glibc's __GI___qsort_r) goes by its own. */
	if (linkage && plain && !is_mangled(linkage) && !is_clone(symbol, linkage))
		linkage = NULL;
	if (linkage) {
		*name = mw_demangle(is_clone(symbol, linkage) ? symbol : linkage);
	} else if (plain && !is_clone(symbol, plain) && !is_mangled_form(symbol, plain)) {
		*name = qualified(die, plain);
	} else if (symbol) {
		*name = mw_demangle(symbol);
	} else {
		*name = NULL;
		return true;
	}
	return *name;
}

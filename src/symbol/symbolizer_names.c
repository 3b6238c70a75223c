// SPDX-License-Identifier: MIT
/* symbolizer_names.c: linkage names where there are, else names put together from the scopes around. */
#include "symbol/symbolizer_names.h"

#include "symbol/demangle.h"
#include "symbol/symbolizer_functions.h"

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

/* Is `shown`, a demangled symbol, a form of `name`? (Identical functions may share one address and have another's
 * symbol.) Of a template's name its arguments may be written in another way. */
static bool is_form(const char *shown, const char *name)
{
	bool is_operator = strncmp(name, "operator", strlen("operator")) == 0;
	size_t length = is_operator ? strlen(name) : strcspn(name, "<");

	return length && memmem(shown, strlen(shown), name, length);
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

/* The name of a namespace or class; NULL where it is no part of a function's name. */
static const char *scope_name(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return name || dwarf_tag(die) != DW_TAG_namespace ? name : "(anonymous namespace)";
}

/* `name` with the scopes of the DIE before it. Malloc'ed; NULL without memory. */
static char *qualified(const struct mw_units *units, Dwarf_Die *die, const char *name)
{
	Dwarf_Die declaration = declaration_of(die), spaces[MW_SPACES_MAX];
	size_t count;
	char *text;

	if (!mw_functions_spaces(units, &declaration, spaces, &count))
		return NULL;
	text = strdup(name);
	for (size_t i = 0; text && i < count; i++) {
		const char *outer = scope_name(&spaces[i]);
		char *longer;

		if (!outer)
			continue;
		if (asprintf(&longer, "%s::%s", outer, text) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	return text;
}

/* The name of what has no linkage name. As mw_dwarf_name. */
static bool name_without_linkage(const struct mw_units *units, Dwarf_Die *die, const char *plain, const char *symbol,
				 char **name)
{
	char *shown = symbol ? mw_demangle(symbol) : NULL;

	if (symbol && !shown)
		return false;
	if (!plain || is_clone(symbol, plain) || (symbol && is_mangled(symbol) && is_form(shown, plain))) {
		*name = shown;
		return true;
	}
	free(shown);
	*name = qualified(units, die, plain);
	return *name;
}

bool mw_dwarf_name(const struct mw_units *units, Dwarf_Die *die, const char *symbol, char **name)
{
	const char *linkage = linkage_name(die), *plain = dwarf_diename(die);

	/* A C function that was given another name for the assembler (glibc's __GI___qsort_r) goes by its own. */
	if (linkage && plain && !is_mangled(linkage) && !is_clone(symbol, linkage))
		linkage = NULL;
	if (!linkage)
		return name_without_linkage(units, die, plain, symbol, name);
	*name = mw_demangle(is_clone(symbol, linkage) ? symbol : linkage);
	return *name;
}

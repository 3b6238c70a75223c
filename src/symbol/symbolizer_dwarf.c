// SPDX-License-Identifier: MIT
/*
 * symbolizer_dwarf.c: from an address to its function, its line and through the inlined calls around it.
 *
 * A DW_TAG_inlined_subroutine says whose body stands there and, by call_file and call_line, from where it was called:
 * its own line is that of the address or of the next one inside it.
 *
 * libdw's dwarf_getscopes does not look into DIEs without code of their own, such as namespaces, where clang and rustc
 * put the functions themselves. It and dwarf_getscopes_die walk the unit's DIEs each time; here they are walked once.
 */
#include "symbol/symbolizer_dwarf.h"

#include "base/vector.h"
#include "symbol/demangle.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINED_MAX     128 /* calls inlined into each other; those deeper in are left out */
#define SPACES_MAX      64  /* namespaces and classes in each other */
#define DEPTH_MAX       256 /* of DIEs in each other; what lies deeper is left out */
#define REFERENCE_LIMIT 8   /* how often a DIE may refer to another for what it doesn't say itself */

struct scopes {
	Dwarf_Die function;
	Dwarf_Die inlined[INLINED_MAX]; /* outermost first */
	size_t inlined_count;
};

/* --- the units of a file -------------------------------------------------------------------------------- */

static bool add_unit(struct mw_units *units, const Dwarf_Die *lines, const Dwarf_Die *scopes)
{
	if (!MW_VECTOR_ROOM(units->units, units->unit_count, units->unit_capacity))
		return false;
	units->units[units->unit_count++] = (struct mw_unit){.lines = *lines, .scopes = *scopes};
	return true;
}

/* The code of a DIE. */
static bool add_code(struct mw_ranges *ranges, Dwarf_Die *die, uint64_t value)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		/* What the linker has thrown away is left at address 0, or near it. */
		if (start && start < end && !mw_ranges_add(ranges, start, end, value))
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
		if (!add_unit(units, &die, is_split ? &split : &die) ||
		    !add_code(&units->ranges, &die, units->unit_count - 1)) {
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

/* The unit at `address`, or NULL. */
static struct mw_unit *find_unit(const struct mw_units *units, Dwarf_Addr address)
{
	const struct mw_range *range = mw_ranges_find(&units->ranges, address);

	return range ? &units->units[range->value] : NULL;
}

/* The unit that `die` is a part of, or NULL. */
static struct mw_unit *unit_of(const struct mw_units *units, Dwarf_Die *die)
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

static bool look_at(struct walk *walk)
{
	Dwarf_Die *die = &walk->path[walk->depth];

	walk->last = dwarf_dieoffset(die);
	if (dwarf_tag(die) == DW_TAG_subprogram)
		return add_code(&walk->unit->functions, die, walk->last);
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
static void take_inlined(struct scopes *scopes, Dwarf_Die *path, size_t depth)
{
	scopes->inlined_count = 0;
	for (size_t i = 0; i <= depth && scopes->inlined_count < INLINED_MAX; i++)
		if (dwarf_tag(&path[i]) == DW_TAG_inlined_subroutine)
			scopes->inlined[scopes->inlined_count++] = path[i];
}

/* Blocks beside each other may overlap where the optimiser has mixed their code: the last one counts, as it does for
 * other readers of DWARF. */
static void find_inlined(struct scopes *scopes, Dwarf_Addr address)
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

/* `*found` is false where the unit has no function at `address`. False without memory. */
static bool find_function(struct mw_unit *unit, Dwarf_Addr address, struct scopes *scopes, bool *found)
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

	for (int i = 1; i < scope_count && *count < SPACES_MAX; i++)
		if (is_space(&scopes[i]))
			spaces[(*count)++] = scopes[i];
	free(scopes);
}

/* The namespaces and classes around `die`, innermost first, at most SPACES_MAX. False without memory. */
static bool spaces_around(const struct mw_units *units, Dwarf_Die *die, Dwarf_Die *spaces, size_t *count)
{
	struct mw_unit *unit = unit_of(units, die);
	const struct mw_range *range;

	*count = 0;
	if (!unit) { /* a type unit */
		ask_for_spaces(die, spaces, count);
		return true;
	}
	if (!unit->is_indexed && !index_unit(unit))
		return false;
	range = mw_ranges_find(&unit->spaces, dwarf_dieoffset(die));
	while (range && *count < SPACES_MAX &&
	       dwarf_offdie(dwarf_cu_getdwarf(die->cu), range->start, &spaces[*count])) {
		++*count;
		range = range->value ? &unit->spaces.items[range->value - 1] : NULL;
	}
	return true;
}

/* --- linkage names where there are, else names put together from the scopes around ------------------------- */

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
	Dwarf_Die declaration = declaration_of(die), spaces[SPACES_MAX];
	size_t count;
	char *text;

	if (!spaces_around(units, &declaration, spaces, &count))
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

/* The name of what has no linkage name. As name_of. */
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

/*
 * The demangled name of a subprogram or inlined subroutine of one of `units`. `symbol` is the ELF symbol at its code,
 * NULL for inlined ones: it tells clones (foo.cold) and parameters where DWARF doesn't. `*name` is malloc'ed, NULL
 * where there is none. False without memory.
 */
static bool name_of(const struct mw_units *units, Dwarf_Die *die, const char *symbol, char **name)
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

/* --- frames ---------------------------------------------------------------------------------------------- */

bool mw_frame_list_add(struct mw_frame_list *list, char *function, const char *file, uint32_t line, uint64_t offset,
		       bool inlined)
{
	char *copy = file ? strdup(file) : NULL;

	if ((file && !copy) || !MW_VECTOR_ROOM(list->items, list->count, list->capacity)) {
		free(copy);
		free(function);
		return false;
	}
	list->items[list->count++] = (struct mw_symbol_frame){function, copy, line, offset, inlined};
	return true;
}

/* Where the frame that is reported next stands. */
struct place {
	const char *file;
	uint32_t line;
};

static struct place place_of_address(const struct mw_dwarf_query *query)
{
	Dwarf_Line *line = dwarf_getsrc_die(&query->unit->lines, query->address);
	struct place place = {0};
	int number = 0;

	if (!line)
		return place;
	place.file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		place.line = (uint32_t)number;
	return place;
}

static Dwarf_Word constant(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
		return 0;
	return value;
}

static struct place place_of_call(const struct mw_dwarf_query *query, Dwarf_Die *inlined)
{
	Dwarf_Word file = constant(inlined, DW_AT_call_file), line = constant(inlined, DW_AT_call_line);
	struct place place = {0};
	Dwarf_Files *files;
	size_t count;

	if (dwarf_getsrcfiles(&query->unit->scopes, &files, &count) == 0 && file < count)
		place.file = dwarf_filesrc(files, file, NULL, NULL);
	if (line <= UINT32_MAX)
		place.line = (uint32_t)line;
	return place;
}

static uint64_t offset_of(const struct mw_dwarf_query *query, Dwarf_Die *function)
{
	Dwarf_Addr start;

	if (query->has_offset)
		return query->offset;
	if (dwarf_entrypc(function, &start) == 0 && start <= query->address)
		return query->address - start + query->past;
	return query->address + query->past;
}

/* The function and all that is inlined in it there, innermost first. */
static bool add_scopes(const struct mw_dwarf_query *query, struct scopes *scopes, struct mw_frame_list *list)
{
	struct place place = place_of_address(query);
	uint64_t offset = offset_of(query, &scopes->function);
	char *name;

	for (size_t i = scopes->inlined_count; i-- > 0;) {
		if (!name_of(query->units, &scopes->inlined[i], NULL, &name) ||
		    !mw_frame_list_add(list, name, place.file, place.line, offset, true))
			return false;
		place = place_of_call(query, &scopes->inlined[i]);
	}
	return name_of(query->units, &scopes->function, query->symbol, &name) &&
	       mw_frame_list_add(list, name, place.file, place.line, offset, false);
}

/* Code without a function around it, as assemblers describe theirs: the line and the symbol. */
static bool add_line(const struct mw_dwarf_query *query, struct mw_frame_list *list, bool *found)
{
	struct place place = place_of_address(query);
	char *name = NULL;

	*found = false;
	if (!place.file)
		return true;
	if (query->symbol) {
		name = mw_demangle(query->symbol);
		if (!name)
			return false;
	}
	*found = true;
	return mw_frame_list_add(list, name, place.file, place.line,
				 query->has_offset ? query->offset : query->address + query->past, false);
}

bool mw_dwarf_frames(struct mw_dwarf_query *query, struct mw_frame_list *list, bool *found)
{
	struct scopes scopes;

	*found = false;
	query->unit = find_unit(query->units, query->address);
	if (!query->unit)
		return true;
	if (!find_function(query->unit, query->address, &scopes, found))
		return false;
	return *found ? add_scopes(query, &scopes, list) : add_line(query, list, found);
}

// SPDX-License-Identifier: MIT
/*
 * symbolizer_dwarf.c: from an address to its line and through the inlined calls around it.
 *
 * A DW_TAG_inlined_subroutine says whose body stands there and, by call_file and call_line, from where it was called:
 * its own line is that of the address or of the next one inside it.
 */
#include "symbol/symbolizer_dwarf.h"

#include "symbol/demangle.h"
#include "symbol/symbolizer_functions.h"
#include "symbol/symbolizer_names.h"

#include <dwarf.h>
#include <stdlib.h>

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
static bool add_scopes(const struct mw_dwarf_query *query, struct mw_scopes *scopes, struct mw_frame_list *list)
{
	struct place place = place_of_address(query);
	uint64_t offset = offset_of(query, &scopes->function);
	char *name;

	for (size_t i = scopes->inlined_count; i-- > 0;) {
		if (!mw_dwarf_name(query->units, &scopes->inlined[i], NULL, &name) ||
		    !mw_frame_list_add(list, name, place.file, place.line, offset, true))
			return false;
		place = place_of_call(query, &scopes->inlined[i]);
	}
	return mw_dwarf_name(query->units, &scopes->function, query->symbol, &name) &&
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

bool mw_dwarf_frames(const struct mw_dwarf_query *query, struct mw_frame_list *list, bool *found)
{
	struct mw_scopes scopes;

	if (!mw_functions_find(query->unit, query->address, &scopes, found))
		return false;
	return *found ? add_scopes(query, &scopes, list) : add_line(query, list, found);
}

// SPDX-License-Identifier: MIT
/* symbolizer_go.c: see symbolizer_go.h. */
#include "symbol/symbolizer_go.h"

#include "symbol/gopclntab.h"

#include <string.h>

bool mw_go_symbol_frames(struct mw_elf *elf, uint64_t code, uint64_t vaddr, struct mw_frame_list *list, bool *found)
{
	struct mw_go_frame frames[MW_GO_INLINED];
	const struct mw_go_table *table = NULL;
	struct mw_go_function function;
	size_t count;

	if (!mw_error_none(mw_go_table_of(elf, &table)))
		return false;
	*found = table && mw_go_function_find(table, code, &function);
	if (!*found)
		return true;
	count = mw_go_frames(table, &function, code, frames);
	for (size_t i = 0; i < count; i++) {
		char *name = strdup(frames[i].function);

		if (!name || !mw_frame_list_add(list, name, frames[i].file, frames[i].line, vaddr - function.start,
						i + 1 < count))
			return false;
	}
	return true;
}

// SPDX-License-Identifier: MIT
/* symbolizer_frames.c: a list of frames. */
#include "symbol/symbolizer_frames.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

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

void mw_frame_list_deinit(struct mw_frame_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free((char *)(uintptr_t)list->items[i].function);
		free((char *)(uintptr_t)list->items[i].file);
	}
	free(list->items);
	*list = (struct mw_frame_list){0};
}

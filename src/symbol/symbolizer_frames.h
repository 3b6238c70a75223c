/* SPDX-License-Identifier: MIT */
/* symbolizer_frames.h: a list of frames while it grows, with its strings. */
#ifndef MW_SYMBOL_SYMBOLIZER_FRAMES_H
#define MW_SYMBOL_SYMBOLIZER_FRAMES_H

#include "symbol/symbolizer.h"

/* Zero-initialise; the frames own their strings. */
struct mw_frame_list {
	struct mw_symbol_frame *items;
	size_t count, capacity;
};

/* Append a frame. Takes over `function` (malloc'ed or NULL, freed on failure), copies `file`. False without memory. */
bool mw_frame_list_add(struct mw_frame_list *list, char *function, const char *file, uint32_t line, uint64_t offset,
		       bool inlined);
void mw_frame_list_deinit(struct mw_frame_list *list);

#endif

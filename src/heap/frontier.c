// SPDX-License-Identifier: MIT
/* frontier.c: blocks that are to be scanned (scan.h). */
#include "heap/scan.h"

#include <stdlib.h>
#include <string.h>

struct mw_error *mw_frontier_init(struct mw_frontier *frontier, uint32_t blocks)
{
	struct mw_frontier made = {.capacity = blocks / 32 + 1024, .words = mw_bits_words(blocks)};

	made.list = calloc(made.capacity, sizeof(*made.list));
	made.bits = calloc(made.words, sizeof(*made.bits));
	if (!made.list || !made.bits) {
		mw_frontier_deinit(&made);
		return mw_error_nomem();
	}
	*frontier = made;
	return NULL;
}

void mw_frontier_deinit(struct mw_frontier *frontier)
{
	free(frontier->list);
	free((void *)frontier->bits);
	*frontier = (struct mw_frontier){0};
}

void mw_frontier_add(struct mw_frontier *frontier, uint32_t number)
{
	if (!frontier->wide && frontier->count < frontier->capacity) {
		frontier->list[frontier->count++] = number;
		return;
	}
	if (!frontier->wide) {
		frontier->wide = true;
		for (size_t i = 0; i < frontier->count; i++)
			mw_bits_set(frontier->bits, frontier->list[i]);
	}
	mw_bits_set(frontier->bits, number);
}

void mw_frontier_empty(struct mw_frontier *frontier)
{
	if (frontier->wide)
		memset((void *)frontier->bits, 0, frontier->words * sizeof(*frontier->bits));
	frontier->wide = false;
	frontier->count = 0;
}

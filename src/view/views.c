// SPDX-License-Identifier: MIT
/* views.c: what was asked, put together (views.h). */
#include "view/views.h"

#include "view/arena.h"
#include "view/group.h"
#include "view/tree.h"

#include <stdlib.h>

/* The columns that tell blocks of one stack apart, but for their types: only transient blocks have lifetimes. */
#define SPLITS_STACKS (1u << MW_COLUMN_HEAP | 1u << MW_COLUMN_THREAD | 1u << MW_COLUMN_SIZE)
/* Those that tell stacks apart. */
#define OF_STACKS (1u << MW_COLUMN_MODULE | 1u << MW_COLUMN_FUNCTION | 1u << MW_COLUMN_STACK | 1u << MW_COLUMN_API)

static enum mw_cells_lifetimes lifetimes_for(uint32_t columns)
{
	if (!(columns & SPLITS_STACKS))
		return MW_LIFETIMES_OF_STACKS;
	return columns & OF_STACKS ? MW_LIFETIMES_OF_CELLS : MW_LIFETIMES_OF_ALL;
}

bool mw_view_cells_options(const struct mw_view_question *question, struct mw_cells_options *out)
{
	uint32_t columns = question->filter ? mw_filter_columns(question->filter) : 0;

	for (size_t i = 0; i < question->by_count; i++)
		columns |= 1u << question->by[i];
	*out = (struct mw_cells_options){
		.threads = columns & 1u << MW_COLUMN_THREAD,
		.sizes = columns & 1u << MW_COLUMN_SIZE,
		.heaps = columns & 1u << MW_COLUMN_HEAP,
		.lifetimes = question->by_count > 0 ? lifetimes_for(columns) : MW_LIFETIMES_NONE,
	};
	return question->by_count > 0 || question->tree != MW_TREE_NONE;
}

void mw_views_destroy(struct mw_views *views)
{
	if (!views)
		return;
	mw_arena_destroy(views->arena);
	free(views);
}

static struct mw_error *fill(const struct mw_view_question *question, const struct mw_view_process *processes,
			     size_t count, struct mw_views *views)
{
	struct mw_arena *arena = views->arena;

	views->type = question->type;
	views->sort = question->sort;
	if (question->filter)
		views->filter = mw_arena_string(arena, mw_filter_text(question->filter));
	if (question->by_count)
		MW_TRY(mw_view_groups(question, processes, count, arena, &views->groups));
	if (question->tree != MW_TREE_NONE)
		MW_TRY(mw_view_tree(question, processes, count, arena, &views->tree));
	if (question->blocks)
		MW_TRY(mw_blocklist_rows(question, processes, count, arena, &views->blocks));
	return mw_arena_failed(arena) ? mw_error_nomem() : NULL;
}

struct mw_error *mw_views_create(const struct mw_view_question *question, const struct mw_view_process *processes,
				 size_t count, struct mw_views **out)
{
	struct mw_views *views = calloc(1, sizeof(*views));
	struct mw_error *err;

	if (!views)
		return mw_error_nomem();
	views->arena = mw_arena_create();
	err = views->arena ? fill(question, processes, count, views) : mw_error_nomem();
	if (err) {
		mw_views_destroy(views);
		return err;
	}
	*out = views;
	return NULL;
}

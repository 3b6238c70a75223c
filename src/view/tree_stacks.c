// SPDX-License-Identifier: MIT
/* tree_stacks.c: see tree_stacks.h. */
#include "view/tree_stacks.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The same number for the same function, or address where there is none. */
static bool number_frame(struct mw_tree_stacks *stacks, struct mw_tree_frame frame, uint32_t *number)
{
	size_t before = stacks->numbering.count;
	uint64_t key[4];

	frame.cut = mw_arena_string(stacks->arena, frame.cut);
	frame.function = mw_arena_string(stacks->arena, frame.function);
	frame.module = mw_arena_string(stacks->arena, frame.module);
	key[0] = (uintptr_t)frame.cut;
	key[1] = (uintptr_t)frame.function;
	key[2] = (uintptr_t)frame.module;
	key[3] = frame.offset;
	if (!mw_map_number(&stacks->numbering, XXH64(key, sizeof(key), 0), number))
		return false;
	if (stacks->numbering.count == before)
		return true;
	if (!MW_VECTOR_ROOM(stacks->frames, *number, stacks->frame_capacity))
		return false;
	stacks->frames[*number] = frame;
	return true;
}

static bool append_number(struct mw_tree_stacks *stacks, const struct mw_tree_frame *frame)
{
	if (!MW_VECTOR_ROOM(stacks->numbers, stacks->number_count, stacks->number_capacity))
		return false;
	return number_frame(stacks, *frame, &stacks->numbers[stacks->number_count++]);
}

static const char *cut_text(enum mw_stack_cut cut)
{
	switch (cut) {
	case MW_STACK_TRUNCATED:
		return "cut here: the wanted depth was reached";
	case MW_STACK_BROKEN:
		return "cut here: no unwind information";
	case MW_STACK_COMPLETE:
		break;
	}
	return NULL;
}

/* Outwards, with what cut it last; the other way round for a tree that goes down. */
static bool append_numbers(struct mw_tree_stacks *stacks, const struct mw_report_stack *stack, bool down)
{
	struct mw_tree_frame cut = {.cut = cut_text(stack->cut)};
	size_t begin = stacks->number_count;

	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *from = &stack->frames[i];
		struct mw_tree_frame frame = {.function = from->function, .module = from->module};

		if (!frame.function)
			frame.offset = from->module ? from->offset : from->address;
		if (!append_number(stacks, &frame))
			return false;
	}
	if (cut.cut && !append_number(stacks, &cut))
		return false;
	for (size_t low = begin, high = stacks->number_count; down && low + 1 < high; low++, high--) {
		uint32_t number = stacks->numbers[low];

		stacks->numbers[low] = stacks->numbers[high - 1];
		stacks->numbers[high - 1] = number;
	}
	return true;
}

static bool append_path(struct mw_tree_stacks *stacks, const struct mw_report_stack *stack, bool down,
			const struct mw_sums *sums)
{
	size_t begin = stacks->number_count;

	if (!MW_VECTOR_ROOM(stacks->paths, stacks->path_count, stacks->path_capacity))
		return false;
	if (stack && !append_numbers(stacks, stack, down))
		return false;
	stacks->paths[stacks->path_count] = (struct mw_tree_path){begin, stacks->number_count - begin, *sums};
	stacks->paths[stacks->path_count++].sums.peak_bytes = stack ? stack->peak.bytes : 0;
	return true;
}

static struct mw_error *take_process(struct mw_tree_stacks *stacks, const struct mw_view_question *question,
				     const struct mw_view_process *process)
{
	size_t count = process->report->stack_count + 1;
	struct mw_selection selection;
	struct mw_sums *sums;
	struct mw_error *err;

	if (!process->cells)
		return NULL;
	MW_TRY(mw_cells_error(process->cells));
	MW_TRY(mw_selection_init(&selection, process, question->filter, false));
	sums = calloc(count, sizeof(*sums));
	err = sums ? NULL : mw_error_nomem();
	for (size_t i = 0; i < mw_cells_count(process->cells) && !err; i++) {
		const struct mw_cell *cell = mw_cells_at(process->cells, i);

		if (mw_selection_takes(&selection, cell))
			mw_sums_add(&sums[mw_process_stack_index(process, cell->stack)], cell);
	}
	for (size_t i = 0; i < count && !err; i++) {
		const struct mw_report_stack *stack = i + 1 < count ? &process->report->stacks[i] : NULL;

		if (mw_sums_has(&sums[i], MW_FATE_ALL) &&
		    !append_path(stacks, stack, question->tree == MW_TREE_DOWN, &sums[i]))
			err = mw_error_nomem();
	}
	free(sums);
	mw_selection_deinit(&selection);
	return err;
}

struct mw_error *mw_tree_stacks_fill(struct mw_tree_stacks *stacks, const struct mw_view_question *question,
				     const struct mw_view_process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		MW_TRY(take_process(stacks, question, &processes[i]));
	return NULL;
}

void mw_tree_stacks_deinit(struct mw_tree_stacks *stacks)
{
	mw_map_deinit(&stacks->numbering);
	free(stacks->frames);
	free(stacks->numbers);
	free(stacks->paths);
	*stacks = (struct mw_tree_stacks){0};
}

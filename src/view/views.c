// SPDX-License-Identifier: MIT
/*
 * views.c: what was asked, put together; and the call tree.
 *
 * A node of the tree is a run of stacks that begin with the same frames. Only nodes that are shown are split into those
 * below them, so that each stack is looked at once a level, whatever the tree would be as a whole. What is still to be
 * split waits in a list, not on our own stack.
 */
#include "view/views.h"

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vector.h"
#include "view/arena.h"
#include "view/cells.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* --- the stacks that a call tree is made of, as rows of numbers ----------------------------------------- */

/* What a number on a path stands for. */
struct frame {
	const char *cut, *function, *module;
	uint64_t offset;
};

/* A stack, or all blocks without one: the numbers of its frames in the tree's direction, and its sums. */
struct path {
	size_t begin; /* among the numbers */
	size_t length;
	struct mw_sums sums;
};

struct stacks {
	struct mw_arena *arena; /* of the strings */
	struct mw_map numbering;
	struct frame *frames;
	size_t frame_capacity;
	uint32_t *numbers;
	size_t number_count, number_capacity;
	struct path *paths;
	size_t path_count, path_capacity;
};

/* The same number for the same function, or address where there is none. */
static bool number_frame(struct stacks *stacks, struct frame frame, uint32_t *number)
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

static bool append_number(struct stacks *stacks, const struct frame *frame)
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

/* What stands for its frames, of whatever module they are. */
#define INTERPRETER "(interpreter)"

/* Outwards, with what cut it last; the other way round for a tree that goes down. */
static bool append_numbers(struct stacks *stacks, const struct mw_report_stack *stack,
			   const struct mw_view_question *question)
{
	bool down = question->tree == MW_TREE_DOWN;
	bool scripts = question->frames == MW_FRAMES_SCRIPT && mw_report_has_script(stack->frames, stack->frame_count);
	struct frame cut = {.cut = cut_text(stack->cut)};
	size_t begin = stacks->number_count;

	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *from = &stack->frames[i];
		struct frame frame = {.function = from->function, .module = from->module};
		size_t run = mw_report_interpreter(question->frames, from, stack->frame_count - i);

		if (scripts && !mw_language_is_script(from->language))
			continue;
		if (run) {
			frame = (struct frame){.function = INTERPRETER};
			i += run - 1;
		} else if (!frame.function)
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

static bool append_path(struct stacks *stacks, const struct mw_report_stack *stack,
			const struct mw_view_question *question, const struct mw_sums *sums)
{
	size_t begin = stacks->number_count;

	if (!MW_VECTOR_ROOM(stacks->paths, stacks->path_count, stacks->path_capacity))
		return false;
	if (stack && !append_numbers(stacks, stack, question))
		return false;
	stacks->paths[stacks->path_count] = (struct path){begin, stacks->number_count - begin, *sums};
	stacks->paths[stacks->path_count++].sums.peak_bytes = stack ? stack->peak.bytes : 0;
	return true;
}

static struct mw_error *take_process(struct stacks *stacks, const struct mw_view_question *question,
				     const struct mw_view_process *process)
{
	MW_CLEANUP(mw_selection_deinit) struct mw_selection selection = {0};
	size_t count = process->report->stack_count + 1, cell_count;
	MW_FREE struct mw_sums *sums = NULL;
	const struct mw_cell *cells;

	if (!process->cells)
		return NULL;
	MW_TRY(mw_cells_list(process->cells, &cells, &cell_count));
	MW_TRY(mw_selection_init(&selection, process, question->filter, false));
	sums = calloc(count, sizeof(*sums));
	if (!sums)
		return mw_error_nomem();
	for (size_t i = 0; i < cell_count; i++)
		if (mw_selection_takes(&selection, &cells[i]))
			mw_sums_add(&sums[mw_process_stack_index(process, cells[i].stack)], &cells[i]);
	for (size_t i = 0; i < count; i++) {
		const struct mw_report_stack *stack = i + 1 < count ? &process->report->stacks[i] : NULL;

		if (mw_sums_has(&sums[i], MW_FATE_ALL) && !append_path(stacks, stack, question, &sums[i]))
			return mw_error_nomem();
	}
	return NULL;
}

/* Zeroed but for the arena. Deinit after failures too. Errors: MEMORY. */
static struct mw_error *tree_stacks_fill(struct stacks *stacks, const struct mw_view_question *question,
					 const struct mw_view_process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		MW_TRY(take_process(stacks, question, &processes[i]));
	return NULL;
}

static void tree_stacks_deinit(struct stacks *stacks)
{
	mw_map_deinit(&stacks->numbering);
	free(stacks->frames);
	free(stacks->numbers);
	free(stacks->paths);
	*stacks = (struct stacks){0};
}

/* -------------------------------------------------------------------------------------------------------- */

#define LEAST_SHARE 0.001

/* Paths [begin, end) of the order: they are the same up to `depth` frames. */
struct run {
	size_t begin, end, depth;
	size_t parent;
	uint64_t folded;
	struct mw_sums sums;
};

struct growth {
	const struct mw_view_question *question;
	struct stacks stacks;
	uint32_t *order;     /* of paths */
	double least;        /* a node that ranks lower is folded */
	struct run *waiting; /* the next one last */
	size_t waiting_count, waiting_capacity;
	struct run *children; /* of the run that is being split */
	size_t child_count, child_capacity;
	struct mw_tree_node *nodes;
	size_t node_count, node_capacity;
	size_t depth; /* that paths are being compared at */
};

static const struct path *path_at(const struct growth *growth, size_t place)
{
	return &growth->stacks.paths[growth->order[place]];
}

static uint32_t number_at(const struct growth *growth, size_t place, size_t depth)
{
	return growth->stacks.numbers[path_at(growth, place)->begin + depth];
}

/* By the frame at growth->depth, those that have none first. */
static int compare_paths(const void *left, const void *right, void *context)
{
	const struct growth *growth = context;
	const struct path *a = &growth->stacks.paths[*(const uint32_t *)left];
	const struct path *b = &growth->stacks.paths[*(const uint32_t *)right];
	bool has_a = a->length > growth->depth, has_b = b->length > growth->depth;
	uint32_t number_a, number_b;

	if (!has_a || !has_b)
		return has_a - has_b;
	number_a = growth->stacks.numbers[a->begin + growth->depth];
	number_b = growth->stacks.numbers[b->begin + growth->depth];
	return (number_a > number_b) - (number_a < number_b);
}

static void sort_run(struct growth *growth, const struct run *run)
{
	size_t at = run->begin + 1;

	growth->depth = run->depth;
	/* Most often there is nothing to do: the only caller of a function, a deep recursion. */
	while (at < run->end && compare_paths(&growth->order[at - 1], &growth->order[at], growth) == 0)
		at++;
	if (at < run->end)
		qsort_r(growth->order + run->begin, run->end - run->begin, sizeof(*growth->order), compare_paths,
			growth);
}

static struct run *append_run(struct run **runs, size_t *count, size_t *capacity)
{
	if (!MW_VECTOR_ROOM(*runs, *count, *capacity))
		return NULL;
	return memset(&(*runs)[(*count)++], 0, sizeof(**runs));
}

/* Split a run into growth->children; what ends here is added to `self`. */
static bool split(struct growth *growth, const struct run *run, size_t parent, struct mw_sums *self)
{
	size_t at = run->begin;

	growth->child_count = 0;
	sort_run(growth, run);
	for (; at < run->end && path_at(growth, at)->length == run->depth; at++)
		mw_sums_merge(self, &path_at(growth, at)->sums);
	while (at < run->end) {
		struct run *child = append_run(&growth->children, &growth->child_count, &growth->child_capacity);
		uint32_t number = number_at(growth, at, run->depth);

		if (!child)
			return false;
		*child = (struct run){.begin = at, .depth = run->depth + 1, .parent = parent};
		for (; at < run->end && number_at(growth, at, run->depth) == number; at++)
			mw_sums_merge(&child->sums, &path_at(growth, at)->sums);
		child->end = at;
		child->sums.peak_exact = child->end - child->begin == 1 && !growth->question->filter;
	}
	return true;
}

static int compare_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a == NULL) - (b == NULL);
	return strcmp(a, b);
}

static const struct frame *frame_of(const struct growth *growth, const struct run *run)
{
	return &growth->stacks.frames[number_at(growth, run->begin, run->depth - 1)];
}

static int compare_runs(const void *left, const void *right, void *context)
{
	const struct growth *growth = context;
	const struct run *a = left, *b = right;
	const struct frame *frame_a = frame_of(growth, a), *frame_b = frame_of(growth, b);
	int order = mw_sums_compare(&a->sums, &b->sums, growth->question->sort, growth->question->type);

	if (!order)
		order = compare_text(frame_a->function, frame_b->function);
	if (!order)
		order = compare_text(frame_a->module, frame_b->module);
	if (!order)
		order = compare_text(frame_a->cut, frame_b->cut);
	return order ? order : (frame_a->offset > frame_b->offset) - (frame_a->offset < frame_b->offset);
}

static bool is_worth(const struct growth *growth, const struct run *run)
{
	return mw_sums_has(&run->sums, growth->question->type) &&
	       (double)mw_sums_rank(&run->sums, growth->question->sort, growth->question->type) >= growth->least;
}

/* Put the children that are shown first, in order; gives how many. */
static size_t choose(struct growth *growth)
{
	size_t shown = 0, wanted = 0, top = growth->question->top;

	if (growth->child_count)
		qsort_r(growth->children, growth->child_count, sizeof(*growth->children), compare_runs, growth);
	for (size_t i = 0; i < growth->child_count; i++)
		wanted += is_worth(growth, &growth->children[i]);
	/* One node that is left out would take the line that tells of it. */
	if (wanted > top && !(wanted == growth->child_count && wanted - top == 1))
		wanted = top;
	for (size_t i = 0; i < growth->child_count && shown < wanted; i++) {
		struct run child = growth->children[i];

		if (!is_worth(growth, &child))
			continue;
		growth->children[i] = growth->children[shown];
		growth->children[shown++] = child;
	}
	return shown;
}

/* The children wait for their turn: the folded ones, which come last, at the bottom. */
static bool await_children(struct growth *growth, size_t parent)
{
	size_t shown = choose(growth);
	struct run folded = {.parent = parent, .folded = growth->child_count - shown};
	struct run *place;

	for (size_t i = shown; i < growth->child_count; i++)
		mw_sums_merge(&folded.sums, &growth->children[i].sums);
	if (folded.folded == 1) {
		/* It can be named, though what is below it is not shown. */
		folded = growth->children[shown];
		folded.folded = 1;
	}
	if (folded.folded) {
		place = append_run(&growth->waiting, &growth->waiting_count, &growth->waiting_capacity);
		if (!place)
			return false;
		*place = folded;
	}
	while (shown > 0) {
		place = append_run(&growth->waiting, &growth->waiting_count, &growth->waiting_capacity);
		if (!place)
			return false;
		*place = growth->children[--shown];
	}
	return true;
}

static bool put_node(struct growth *growth, const struct run *run)
{
	size_t number = growth->node_count;
	struct mw_tree_node *node;

	if (!MW_VECTOR_ROOM(growth->nodes, growth->node_count, growth->node_capacity))
		return false;
	node = &growth->nodes[growth->node_count++];
	*node = (struct mw_tree_node){.parent = run->parent, .folded = run->folded, .sums = run->sums};
	node->level = run->parent == MW_TABLE_ROOT ? 0 : growth->nodes[run->parent].level + 1;
	if (run->folded > 1)
		return true;
	node->cut = frame_of(growth, run)->cut;
	node->function = frame_of(growth, run)->function;
	node->module = frame_of(growth, run)->module;
	node->offset = frame_of(growth, run)->offset;
	if (run->folded)
		return true;
	return split(growth, run, number, &node->self) && await_children(growth, number);
}

static bool grow(struct growth *growth, struct mw_tree *tree)
{
	struct run all = {.end = growth->stacks.path_count};

	growth->order = calloc(all.end + 1, sizeof(*growth->order));
	if (!growth->order)
		return false;
	for (size_t i = 0; i < all.end; i++) {
		growth->order[i] = (uint32_t)i;
		mw_sums_merge(&tree->total, &growth->stacks.paths[i].sums);
	}
	growth->least =
		(double)mw_sums_rank(&tree->total, growth->question->sort, growth->question->type) * LEAST_SHARE;
	if (!split(growth, &all, MW_TABLE_ROOT, &tree->self) || !await_children(growth, MW_TABLE_ROOT))
		return false;
	while (growth->waiting_count) {
		struct run next = growth->waiting[--growth->waiting_count];

		if (!put_node(growth, &next))
			return false;
	}
	return true;
}

static struct mw_error *keep(const struct growth *growth, struct mw_arena *arena, struct mw_tree *tree,
			     const struct mw_tree **out)
{
	tree->nodes = mw_arena_array(arena, growth->node_count, sizeof(*tree->nodes));
	if (!tree->nodes)
		return mw_error_nomem();
	if (growth->node_count)
		memcpy(tree->nodes, growth->nodes, growth->node_count * sizeof(*tree->nodes));
	tree->node_count = growth->node_count;
	*out = tree;
	return NULL;
}

/*
 * A call tree of the cells of all processes, in the arena. A node is a function (of a module) under those that called
 * it, or that it called (MW_TREE_UP): not distinguished by place in it. Shown at each level are the first `top` nodes
 * that have any block of the question's type, and at least a thousandth of the whole of what is sorted by; the others
 * are one. Which vm-internal blocks count is as in groups. Time is linear in the stacks' frames, but for sorting;
 * stacks may be of any depth. Errors: MEMORY.
 */
static struct mw_error *make_tree(const struct mw_view_question *question, const struct mw_view_process *processes,
				  size_t count, struct mw_arena *arena, const struct mw_tree **out)
{
	struct growth growth = {.question = question, .stacks = {.arena = arena}};
	struct mw_tree *tree = mw_arena_array(arena, 1, sizeof(*tree));
	struct mw_error *err = tree_stacks_fill(&growth.stacks, question, processes, count);

	if (!err && (!tree || !grow(&growth, tree)))
		err = mw_error_nomem();
	if (!err) {
		tree->direction = question->tree;
		err = keep(&growth, arena, tree, out);
	}
	tree_stacks_deinit(&growth.stacks);
	free(growth.order);
	free(growth.waiting);
	free(growth.children);
	free(growth.nodes);
	return err;
}

/* --- what was asked ----------------------------------------------------------------------------------------- */

/* The columns that tell blocks of one stack apart, but for their types: only transient blocks have lifetimes. */
#define SPLITS_STACKS (1u << MW_COLUMN_HEAP | 1u << MW_COLUMN_THREAD | 1u << MW_COLUMN_SIZE)

static enum mw_cells_lifetimes lifetimes_for(uint32_t columns)
{
	if (!(columns & SPLITS_STACKS))
		return MW_LIFETIMES_OF_STACKS;
	return columns & MW_COLUMNS_OF_STACKS ? MW_LIFETIMES_OF_CELLS : MW_LIFETIMES_OF_ALL;
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
		MW_TRY(make_tree(question, processes, count, arena, &views->tree));
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
	views->knows_older = true;
	for (size_t i = 0; i < count; i++) {
		views->sampled |= mw_report_is_sampled(processes[i].report, MW_KIND_HEAP);
		views->knows_older &= mw_report_knows_older(processes[i].report, MW_KIND_HEAP);
	}
	err = views->arena ? fill(question, processes, count, views) : mw_error_nomem();
	if (err) {
		mw_views_destroy(views);
		return err;
	}
	*out = views;
	return NULL;
}

// SPDX-License-Identifier: MIT
/*
 * group.c: every cell goes down a tree, a level a column, and is added on its way; what is shown is cut from the tree.
 */

#include "base/cleanup.h"
#include "base/function_name.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"
#include "view/cells.h"
#include "view/views.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* --- the function that a stack is charged to ---------------------------------------------------------------- */

bool mw_view_is_library(const char *function)
{
	/* What compilers instantiate or link into everybody's code, beside the standard libraries. */
	static const char *const others[] = {"operator new", "__rust_", "__rustc::__rust", "__rdl_"};
	const char *name = function ? mw_function_bare(function) : "";

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strncmp(name, others[i], strlen(others[i])) == 0)
			return true;
	return function && mw_function_is_std(function);
}

static const struct mw_report_frame *charged_frame(const struct mw_report_stack *stack)
{
	const struct mw_report_frame *first = NULL;

	if (!stack->suspect)
		return NULL;
	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		if (!frame->module || strcmp(frame->module, stack->suspect) != 0)
			continue;
		first = first ? first : frame;
		if (!mw_view_is_library(frame->function))
			return frame;
	}
	return first;
}

/* --- groups in the making ------------------------------------------------------------------------------- */

struct value {
	const char *text, *module;
	uint64_t number;
	const struct mw_report_stack *stack;
	const struct mw_report_frame *frame;
};

struct level {
	enum mw_column column;
	struct mw_map numbering; /* of keys to values */
	struct value *values;
	size_t capacity;
	/* The last one, in a column that a stack decides alone. */
	const struct mw_report_stack *last_stack;
	uint32_t last_value;
};

struct node {
	uint32_t parent, value, level;
	uint32_t stack_count; /* distinct ones */
	const struct mw_report_stack *last_stack;
	struct mw_sums sums;
	struct mw_histogram lifetimes;
};

/* Node 0 is the root. */
struct tree {
	const struct mw_view_process *processes;
	struct mw_arena *arena;
	struct level levels[MW_COLUMN_COUNT];
	size_t level_count;
	uint32_t columns; /* bits of the levels' columns */
	struct node *nodes;
	size_t count, capacity;
	struct mw_map numbering; /* of (parent, value) to nodes */
};

struct rows {
	const struct tree *tree;
	const struct mw_view_question *question;
	uint32_t *order; /* nodes but the root, by parent and then as they are shown */
	size_t *begin;   /* by parent: its first child's place in `order` */
	struct mw_table_row *items;
	size_t count, capacity;
};

static int compare_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a == NULL) - (b == NULL);
	return strcmp(a, b);
}

static const struct value *cell_value(const struct tree *tree, const struct node *node)
{
	return &tree->levels[node->level].values[node->value];
}

static int compare_values(const struct value *a, const struct value *b)
{
	int order = compare_text(a->text, b->text);

	if (!order)
		order = compare_text(a->module, b->module);
	return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int compare_nodes(const void *left, const void *right, void *context)
{
	const struct rows *rows = context;
	uint32_t numbers[2] = {*(const uint32_t *)left, *(const uint32_t *)right};
	const struct node *a = &rows->tree->nodes[numbers[0]], *b = &rows->tree->nodes[numbers[1]];
	int order;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	order = mw_sums_compare(&a->sums, &b->sums, rows->question->sort, rows->question->type);
	if (!order)
		order = compare_values(cell_value(rows->tree, a), cell_value(rows->tree, b));
	return order ? order : (numbers[0] > numbers[1]) - (numbers[0] < numbers[1]);
}

static struct mw_error *put_in_order(struct rows *rows)
{
	size_t count = rows->tree->count;

	rows->order = calloc(count, sizeof(*rows->order));
	rows->begin = calloc(count + 1, sizeof(*rows->begin));
	if (!rows->order || !rows->begin)
		return mw_error_nomem();
	for (size_t i = 1; i < count; i++) {
		rows->order[i - 1] = (uint32_t)i;
		rows->begin[rows->tree->nodes[i].parent + 1]++;
	}
	for (size_t i = 0; i < count; i++)
		rows->begin[i + 1] += rows->begin[i];
	qsort_r(rows->order, count - 1, sizeof(*rows->order), compare_nodes, rows);
	return NULL;
}

static struct mw_table_row *append(struct rows *rows, size_t parent, uint32_t level)
{
	if (!MW_VECTOR_ROOM(rows->items, rows->count, rows->capacity))
		return NULL;
	rows->items[rows->count] = (struct mw_table_row){.level = level, .parent = parent, .number = MW_SIZE_UNKNOWN};
	return &rows->items[rows->count++];
}

static void set_lifetime(struct mw_sums *sums, const struct mw_histogram *lifetimes)
{
	sums->has_lifetime = lifetimes->count > 0;
	if (!sums->has_lifetime)
		return;
	sums->lifetime_min_ns = lifetimes->min;
	sums->lifetime_median_ns = mw_histogram_quantile(lifetimes, 50);
	sums->lifetime_max_ns = lifetimes->max;
}

static struct mw_error *put_folded(struct rows *rows, const uint32_t *nodes, size_t count, size_t parent,
				   uint32_t level)
{
	struct mw_table_row *row = append(rows, parent, level);
	struct mw_histogram lifetimes = {0};
	struct mw_error *err = NULL;

	if (!row)
		return mw_error_nomem();
	row->folded = count;
	for (size_t i = 0; i < count && !err; i++) {
		mw_sums_merge(&row->sums, &rows->tree->nodes[nodes[i]].sums);
		err = mw_histogram_merge(&lifetimes, &rows->tree->nodes[nodes[i]].lifetimes);
	}
	set_lifetime(&row->sums, &lifetimes);
	mw_histogram_deinit(&lifetimes);
	return err;
}

/* Where those of a node's children end that are shown: they have blocks of the type. The order of the others is lost.
 */
static size_t split_children(struct rows *rows, size_t begin, size_t end)
{
	uint32_t *order = rows->order;
	size_t shown = begin, wanted = 0;

	for (size_t i = begin; i < end; i++)
		wanted += mw_sums_has(&rows->tree->nodes[order[i]].sums, rows->question->type);
	/* One row that is left out would take the line that tells of it. */
	if (wanted > rows->question->top && !(wanted == end - begin && wanted - rows->question->top == 1))
		wanted = rows->question->top;
	for (size_t i = begin; i < end && shown - begin < wanted; i++) {
		uint32_t node = order[i];

		if (!mw_sums_has(&rows->tree->nodes[node].sums, rows->question->type))
			continue;
		order[i] = order[shown];
		order[shown++] = node;
	}
	return shown;
}

/* As deep as there are columns. */
static struct mw_error *put_children(struct rows *rows, uint32_t node, size_t parent, uint32_t level)
{
	size_t begin = rows->begin[node], end = rows->begin[node + 1];
	size_t shown = split_children(rows, begin, end);

	for (size_t i = begin; i < shown; i++) {
		const struct node *child = &rows->tree->nodes[rows->order[i]];
		const struct value *value = cell_value(rows->tree, child);
		struct mw_table_row *row = append(rows, parent, level);

		if (!row)
			return mw_error_nomem();
		row->text = value->text;
		row->module = value->module;
		row->number = value->number;
		row->stack = value->stack;
		row->frame = value->frame;
		row->sums = child->sums;
		if (level + 1 < rows->tree->level_count)
			MW_TRY(put_children(rows, rows->order[i], rows->count - 1, level + 1));
	}
	return shown < end ? put_folded(rows, &rows->order[shown], end - shown, parent, level) : NULL;
}

static struct mw_error *keep(const struct rows *rows, const struct mw_table **out)
{
	struct mw_arena *arena = rows->tree->arena;
	struct mw_table *table = mw_arena_array(arena, 1, sizeof(*table));
	struct mw_table_row *items = mw_arena_array(arena, rows->count, sizeof(*items));

	if (!table || !items)
		return mw_error_nomem();
	if (rows->count)
		memcpy(items, rows->items, rows->count * sizeof(*items));
	memcpy(table->by, rows->question->by, sizeof(table->by));
	table->by_count = rows->question->by_count;
	table->rows = items;
	table->row_count = rows->count;
	table->total = rows->tree->nodes[0].sums;
	*out = table;
	return NULL;
}

/* What of the tree is shown, in the arena. Errors: MEMORY. */
static struct mw_error *group_rows(const struct tree *tree, const struct mw_view_question *question,
				   const struct mw_table **out)
{
	struct rows rows = {.tree = tree, .question = question};
	struct mw_error *err = put_in_order(&rows);

	if (!err)
		err = put_children(&rows, 0, MW_TABLE_ROOT, 0);
	if (!err)
		err = keep(&rows, out);
	free(rows.order);
	free(rows.begin);
	free(rows.items);
	return err;
}

/* -------------------------------------------------------------------------------------------------------- */

/* How a mapping's heap is called. */
#define NO_HEAP "(none: a mapping)"

/* The columns that tell blocks of one stack apart. */
#define SPLITS_STACKS (1u << MW_COLUMN_HEAP | 1u << MW_COLUMN_TYPE | 1u << MW_COLUMN_THREAD | 1u << MW_COLUMN_SIZE)

static uint64_t key_of_text(struct mw_arena *arena, const char **text)
{
	*text = mw_arena_string(arena, *text);
	return (uintptr_t)*text;
}

static uint64_t function_value(struct mw_arena *arena, const struct mw_report_stack *stack, struct value *value)
{
	const struct mw_report_frame *frame = stack ? charged_frame(stack) : NULL;
	uint64_t pair[2] = {0};

	if (!frame)
		return 0;
	value->text = frame->function;
	value->module = frame->module;
	pair[0] = key_of_text(arena, &value->text);
	pair[1] = key_of_text(arena, &value->module);
	return XXH64(pair, sizeof(pair), 0);
}

/* Of code without a name each place is a line. */
static uint64_t line_value(struct mw_arena *arena, const struct mw_report_stack *stack, struct value *value)
{
	const struct mw_report_frame *frame = stack ? mw_report_line(stack) : NULL;
	const char *file;
	uint64_t parts[4];

	if (!frame)
		return 0;
	file = frame->function ? frame->file : NULL;
	value->frame = frame;
	value->text = frame->function;
	value->module = frame->module;
	value->number = frame->function ? frame->line : frame->offset;
	parts[0] = key_of_text(arena, &value->text);
	parts[1] = key_of_text(arena, &value->module);
	parts[2] = key_of_text(arena, &file);
	parts[3] = value->number;
	return XXH64(parts, sizeof(parts), 0);
}

/* Are stacks below their processes? */
static bool is_by_process(const struct tree *tree)
{
	for (size_t i = 0; i < tree->level_count && tree->levels[i].column != MW_COLUMN_STACK; i++)
		if (tree->levels[i].column == MW_COLUMN_PROCESS)
			return true;
	return false;
}

/* What a cell is in a column: its value, and a key that is the same for equal values only. */
static uint64_t value_of(const struct tree *tree, size_t process_number, const struct mw_cell *cell,
			 enum mw_column column, struct value *value)
{
	const struct mw_view_process *process = &tree->processes[process_number];
	const struct mw_report_stack *stack = mw_process_stack(process, cell->stack);
	const struct mw_view_thread *thread;
	uint64_t number;

	*value = (struct value){.number = MW_SIZE_UNKNOWN};
	switch (column) {
	case MW_COLUMN_PROCESS:
		value->number = (uint64_t)process->report->target.pid;
		value->text = mw_arena_string(tree->arena, process->report->target.comm);
		return process_number;
	case MW_COLUMN_KIND:
		return value->number = cell->kind;
	case MW_COLUMN_TYPE:
		return value->number = cell->fate;
	case MW_COLUMN_SIZE:
		return value->number = cell->bytes;
	case MW_COLUMN_HEAP:
		/* What mmap gave lies in no heap: that is known. */
		value->text = cell->kind == MW_KIND_HEAP ? mw_process_heap(process, cell->heap) : NO_HEAP;
		return key_of_text(tree->arena, &value->text);
	case MW_COLUMN_THREAD:
		thread = mw_process_thread(process, cell->thread);
		if (!thread)
			return (uint64_t)process_number << 32 | UINT32_MAX;
		value->number = (uint64_t)thread->tid;
		value->text = mw_arena_string(tree->arena, thread->name);
		return (uint64_t)process_number << 32 | cell->thread;
	case MW_COLUMN_MODULE:
		value->text = stack ? stack->suspect : NULL;
		return key_of_text(tree->arena, &value->text);
	case MW_COLUMN_FUNCTION:
		return function_value(tree->arena, stack, value);
	case MW_COLUMN_STACK:
		value->stack = stack;
		value->text = stack ? mw_arena_string(tree->arena, stack->id) : NULL;
		/* Below a process it is that process's own. */
		number = is_by_process(tree) ? process_number : 0;
		return stack ? mw_hash_mix(number) ^ strtoull(stack->id, NULL, 16) : 0;
	case MW_COLUMN_API:
		value->text = stack ? stack->api : NULL;
		return key_of_text(tree->arena, &value->text);
	case MW_COLUMN_LINE:
		return line_value(tree->arena, stack, value);
	case MW_COLUMN_LANGUAGE:
		if (!stack || !mw_report_line(stack))
			return MW_LANGUAGE_COUNT;
		value->text = mw_language_name(mw_report_line(stack)->language);
		return mw_report_line(stack)->language;
	case MW_COLUMN_COUNT:
		break;
	}
	return 0;
}

/* The value's number at its level. */
static bool number_value(struct tree *tree, size_t process, const struct mw_cell *cell, size_t level, uint32_t *number)
{
	struct level *at = &tree->levels[level];
	struct value value;
	const struct mw_report_stack *stack = mw_process_stack(&tree->processes[process], cell->stack);
	bool of_stack = stack && MW_COLUMNS_OF_STACKS & 1u << at->column;
	size_t before = at->numbering.count;
	uint64_t key;

	if (of_stack && at->last_stack == stack) {
		*number = at->last_value;
		return true;
	}
	key = value_of(tree, process, cell, at->column, &value);
	if (!mw_map_number(&at->numbering, key, number))
		return false;
	at->last_stack = of_stack ? stack : NULL;
	at->last_value = *number;
	if (at->numbering.count == before)
		return true;
	if (!MW_VECTOR_ROOM(at->values, *number, at->capacity))
		return false;
	at->values[*number] = value;
	return true;
}

static bool find_node(struct tree *tree, uint32_t parent, size_t level, uint32_t value, uint32_t *out)
{
	size_t before = tree->numbering.count;

	if (!mw_map_number(&tree->numbering, (uint64_t)parent << 32 | value, out))
		return false;
	*out += 1; /* number 0 is the root */
	if (tree->numbering.count == before)
		return true;
	if (!MW_VECTOR_ROOM(tree->nodes, *out, tree->capacity))
		return false;
	tree->nodes[*out] = (struct node){.parent = parent, .value = value, .level = (uint32_t)level};
	tree->count = (size_t)*out + 1;
	return true;
}

static bool add_cell(struct node *node, const struct mw_cells *cells, const struct mw_cell *cell,
		     const struct mw_report_stack *stack)
{
	const struct mw_histogram *lifetimes = mw_cells_lifetimes(cells, cell);
	struct mw_error *err = lifetimes ? mw_histogram_merge(&node->lifetimes, lifetimes) : NULL;

	mw_sums_add(&node->sums, cell);
	/* Cells come stack by stack. */
	if (stack && node->last_stack != stack) {
		node->last_stack = stack;
		node->stack_count++;
		node->sums.peak_bytes += stack->peak.bytes;
	}
	mw_error_destroy(err);
	return !err;
}

static bool take_cell(struct tree *tree, size_t process, const struct mw_cell *cell)
{
	const struct mw_cells *cells = tree->processes[process].cells;
	const struct mw_report_stack *stack = mw_process_stack(&tree->processes[process], cell->stack);
	uint32_t node = 0;

	if (!add_cell(&tree->nodes[0], cells, cell, stack))
		return false;
	for (size_t level = 0; level < tree->level_count; level++) {
		uint32_t value = 0;

		if (!number_value(tree, process, cell, level, &value) || !find_node(tree, node, level, value, &node) ||
		    !add_cell(&tree->nodes[node], cells, cell, stack))
			return false;
	}
	return true;
}

/* Numbers of the cells, those of one stack side by side; malloc'ed, NULL without memory. */
static uint32_t *by_stack(const struct mw_view_process *process, const struct mw_cell *cells, size_t count)
{
	size_t stacks = process->report->stack_count + 1;
	MW_FREE uint32_t *order = calloc(count + 1, sizeof(*order));
	MW_FREE size_t *next = calloc(stacks + 1, sizeof(*next));

	if (!order || !next)
		return NULL;
	for (size_t i = 0; i < count; i++)
		next[mw_process_stack_index(process, cells[i].stack) + 1]++;
	for (size_t i = 0; i < stacks; i++)
		next[i + 1] += next[i];
	for (size_t i = 0; i < count; i++)
		order[next[mw_process_stack_index(process, cells[i].stack)]++] = (uint32_t)i;
	return MW_TAKE(order);
}

static struct mw_error *take_process(struct tree *tree, size_t number, const struct mw_filter *filter)
{
	const struct mw_view_process *process = &tree->processes[number];
	MW_CLEANUP(mw_selection_deinit) struct mw_selection selection = {0};
	MW_FREE uint32_t *order = NULL;
	const struct mw_cell *cells;
	size_t count;

	if (!process->cells)
		return NULL;
	MW_TRY(mw_cells_list(process->cells, &cells, &count));
	MW_TRY(mw_selection_init(&selection, process, filter, tree->columns & 1u << MW_COLUMN_KIND));
	order = by_stack(process, cells, count);
	if (!order)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		if (mw_selection_takes(&selection, &cells[order[i]]) && !take_cell(tree, number, &cells[order[i]]))
			return mw_error_nomem();
	return NULL;
}

/* Lifetimes and peaks, when all cells are in. */
static void complete_nodes(struct tree *tree, const struct mw_filter *filter)
{
	uint32_t columns = filter ? mw_filter_columns(filter) : 0;
	bool whole[MW_COLUMN_COUNT + 1]; /* by level: no stack is split there */

	for (size_t level = 0; level < tree->level_count; level++) {
		columns |= 1u << tree->levels[level].column;
		whole[level] = !(columns & SPLITS_STACKS);
	}
	for (size_t i = 0; i < tree->count; i++) {
		struct node *node = &tree->nodes[i];

		set_lifetime(&node->sums, &node->lifetimes);
		node->sums.peak_exact = i && node->stack_count == 1 && whole[node->level];
	}
}

static void deinit(struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		mw_histogram_deinit(&tree->nodes[i].lifetimes);
	free(tree->nodes);
	mw_map_deinit(&tree->numbering);
	for (size_t i = 0; i < tree->level_count; i++) {
		mw_map_deinit(&tree->levels[i].numbering);
		free(tree->levels[i].values);
	}
}

static struct mw_error *fill(struct tree *tree, const struct mw_view_question *question, size_t count)
{
	if (!MW_VECTOR_ROOM(tree->nodes, 0, tree->capacity))
		return mw_error_nomem();
	tree->nodes[0] = (struct node){0};
	tree->count = 1;
	for (size_t i = 0; i < question->by_count; i++) {
		tree->levels[i].column = question->by[i];
		tree->columns |= 1u << question->by[i];
	}
	tree->level_count = question->by_count;
	for (size_t i = 0; i < count; i++)
		MW_TRY(take_process(tree, i, question->filter));
	complete_nodes(tree, question->filter);
	return NULL;
}

struct mw_error *mw_view_groups(const struct mw_view_question *question, const struct mw_view_process *processes,
				size_t count, struct mw_arena *arena, const struct mw_table **out)
{
	struct tree tree = {.processes = processes, .arena = arena};
	struct mw_error *err = fill(&tree, question, count);

	if (!err)
		err = group_rows(&tree, question, out);
	deinit(&tree);
	return err;
}

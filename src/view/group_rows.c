// SPDX-License-Identifier: MIT
/* group_rows.c: groups in order, each level cut, and what was cut summed up. */
#include "view/group_tree.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

struct rows {
	const struct mw_group_tree *tree;
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

static const struct mw_group_value *value_of(const struct mw_group_tree *tree, const struct mw_group_node *node)
{
	return &tree->levels[node->level].values[node->value];
}

static int compare_values(const struct mw_group_value *a, const struct mw_group_value *b)
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
	const struct mw_group_node *a = &rows->tree->nodes[numbers[0]], *b = &rows->tree->nodes[numbers[1]];
	int order;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	order = mw_sums_compare(&a->sums, &b->sums, rows->question->sort, rows->question->type);
	if (!order)
		order = compare_values(value_of(rows->tree, a), value_of(rows->tree, b));
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
	mw_sums_set_lifetime(&row->sums, &lifetimes);
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
		const struct mw_group_node *child = &rows->tree->nodes[rows->order[i]];
		const struct mw_group_value *value = value_of(rows->tree, child);
		struct mw_table_row *row = append(rows, parent, level);

		if (!row)
			return mw_error_nomem();
		row->text = value->text;
		row->module = value->module;
		row->number = value->number;
		row->stack = value->stack;
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

struct mw_error *mw_group_rows(const struct mw_group_tree *tree, const struct mw_view_question *question,
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

// SPDX-License-Identifier: MIT
/*
 * json_views.c: groups, call trees and blocks as members of the report's object (schema "memwatch.report/1"). Trees lie
 * flat, as in memwatch/table.h: readers of JSON often refuse what is nested deeply.
 *
 *     groups  {by[], type, sort, filter|null, total: S, rows[]}
 *     row     {level, parent (index, or null), column, value, more, S…}
 *     tree    {direction: "down"|"up", type, sort, filter|null, total: S, self: S, nodes[]}
 *     node    {level, parent, function|null, module|null, offset|null, cut|null, more, self: S, S…}
 *     blocks  {sort: "size"|"lifetime", type, filter|null, count, rows[]}
 *     block   {address, bytes|null, kind, type, pid, heap|null, tid|null, thread|null, stack|null, allocated_ns|null,
 *              freed_ns|null, lifetime_ns|null, resident|null}
 *     S       size, impacting, transient, aofi, aofo: {count,bytes}; aofi_unknown; lifetime_ns {min, median, max}|null;
 *             peak {bytes, exact}
 *
 * `value` is {pid, comm} of a process, {tid, name} of a thread, {function, module} of a function, a number of a size,
 * else a string. `more` is 0, or for how many rows that are not shown this one stands; it has no value then,
 * but for a node with 1, which is not shown further.
 *
 * Rows are built, written and dropped one by one.
 */
#include "output/json.h"

static json_t *lifetime_value(const struct mw_sums *sums)
{
	if (!sums->has_lifetime)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "min", mw_json_number(sums->lifetime_min_ns), "median",
			 mw_json_number(sums->lifetime_median_ns), "max", mw_json_number(sums->lifetime_max_ns));
}

static json_t *sums_value(const struct mw_sums *sums)
{
	struct mw_amount size = mw_sums_size(sums);
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:o}", "size", mw_json_amount(&size), "aofi_unknown",
		mw_json_number(sums->aofi_unknown), "lifetime_ns", lifetime_value(sums), "peak",
		json_pack("{s:o, s:b}", "bytes", mw_json_number(sums->peak_bytes), "exact", sums->peak_exact));

	for (unsigned fate = 0; object && fate < MW_FATE_COUNT; fate++) {
		json_t *amount = mw_json_amount(&sums->fates[fate]);

		mw_json_set(&object, mw_fate_name((enum mw_fate)fate), amount);
	}
	return object;
}

static json_t *place_value(uint32_t level, size_t parent, uint64_t folded)
{
	return json_pack("{s:o, s:o, s:o}", "level", mw_json_number(level), "parent",
			 parent == MW_TABLE_ROOT ? json_null() : mw_json_number(parent), "more",
			 mw_json_number(folded));
}

static json_t *row_value(const struct mw_table_row *row, enum mw_column column)
{
	if (row->folded)
		return json_null();
	switch (column) {
	case MW_COLUMN_PROCESS:
		return json_pack("{s:o, s:o}", "pid", mw_json_number(row->number), "comm", mw_json_text(row->text));
	case MW_COLUMN_THREAD:
		return json_pack("{s:o, s:o}", "tid", mw_json_number(row->number), "name", mw_json_text(row->text));
	case MW_COLUMN_FUNCTION:
		return json_pack("{s:o, s:o}", "function", mw_json_text(row->text), "module",
				 mw_json_text(row->module));
	case MW_COLUMN_KIND:
		return json_string(mw_kind_name((enum mw_kind)row->number));
	case MW_COLUMN_TYPE:
		return json_string(mw_fate_name((enum mw_fate)row->number));
	case MW_COLUMN_SIZE:
		return mw_json_number(row->number);
	case MW_COLUMN_HEAP:
	case MW_COLUMN_MODULE:
	case MW_COLUMN_STACK:
	case MW_COLUMN_API:
	case MW_COLUMN_COUNT:
		break;
	}
	return mw_json_text(row->text);
}

static json_t *table_row(const struct mw_table *table, const struct mw_table_row *row)
{
	enum mw_column column = table->by[row->level];
	json_t *what = json_pack("{s:s, s:o}", "column", mw_column_name(column), "value", row_value(row, column));

	return mw_json_join(mw_json_join(place_value(row->level, row->parent, row->folded), what),
			    sums_value(&row->sums));
}

static json_t *tree_node(const struct mw_tree_node *node)
{
	bool has_offset = node->folded <= 1 && !node->cut && !node->function;
	json_t *what =
		json_pack("{s:o, s:o, s:o, s:o, s:o}", "function", mw_json_text(node->function), "module",
			  mw_json_text(node->module), "offset", has_offset ? mw_json_number(node->offset) : json_null(),
			  "cut", mw_json_text(node->cut), "self", sums_value(&node->self));

	return mw_json_join(mw_json_join(place_value(node->level, node->parent, node->folded), what),
			    sums_value(&node->sums));
}

static json_t *block_row(const struct mw_block_row *row)
{
	json_t *what = json_pack("{s:o, s:o, s:o, s:s, s:s, s:i, s:o}", "address", mw_json_number(row->addr), "bytes",
				 mw_json_number(row->bytes), "left", mw_json_number(row->left), "kind",
				 mw_kind_name(row->kind), "type", mw_fate_name(row->fate), "pid", row->pid, "heap",
				 mw_json_text(row->heap));
	json_t *who = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tid",
				row->tid ? json_integer(row->tid) : json_null(), "thread", mw_json_text(row->thread),
				"stack", mw_json_text(row->stack ? row->stack->id : NULL), "allocated_ns",
				mw_json_number(row->born_ns), "freed_ns", mw_json_number(row->died_ns), "lifetime_ns",
				mw_json_number(row->lifetime_ns), "resident", mw_json_number(row->resident));

	return mw_json_join(what, who);
}

/* ,"KEY":{HEAD,"NAME":[ up to where items come. The head is given away. */
static bool open_view(FILE *stream, const char *key, json_t *head, const char *name)
{
	size_t count = 0;
	bool good = head;
	const char *member;
	json_t *value;

	fprintf(stream, ",\n\"%s\":{", key);
	json_object_foreach(head, member, value)
	{
		fprintf(stream, "%s\n\"%s\":", count++ ? "," : "", member);
		good = good && mw_json_put(stream, json_incref(value));
	}
	json_decref(head);
	fprintf(stream, ",\n\"%s\":[", name);
	return good;
}

static json_t *head_value(const struct mw_views *views)
{
	return json_pack("{s:s, s:s, s:o}", "type", mw_fate_name(views->type), "sort", mw_sort_name(views->sort),
			 "filter", mw_json_text(views->filter));
}

static json_t *columns_value(const struct mw_table *table)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < table->by_count; i++) {
		mw_json_append(&array, json_string(mw_column_name(table->by[i])));
	}
	return array;
}

static bool put_groups(FILE *stream, const struct mw_views *views)
{
	const struct mw_table *table = views->groups;
	json_t *head = json_pack("{s:o, s:o}", "by", columns_value(table), "total", sums_value(&table->total));
	bool good = open_view(stream, "groups", mw_json_join(head_value(views), head), "rows");

	for (size_t i = 0; i < table->row_count && good; i++) {
		fputs(i ? ",\n" : "\n", stream);
		good = mw_json_put(stream, table_row(table, &table->rows[i]));
	}
	fputs("]}", stream);
	return good;
}

static bool put_tree(FILE *stream, const struct mw_views *views)
{
	const struct mw_tree *tree = views->tree;
	json_t *head = json_pack("{s:s, s:o, s:o}", "direction", tree->direction == MW_TREE_DOWN ? "down" : "up",
				 "total", sums_value(&tree->total), "self", sums_value(&tree->self));
	bool good = open_view(stream, "tree", mw_json_join(head_value(views), head), "nodes");

	for (size_t i = 0; i < tree->node_count && good; i++) {
		fputs(i ? ",\n" : "\n", stream);
		good = mw_json_put(stream, tree_node(&tree->nodes[i]));
	}
	fputs("]}", stream);
	return good;
}

static bool put_blocks(FILE *stream, const struct mw_views *views)
{
	const struct mw_block_list *list = views->blocks;
	json_t *head = json_pack("{s:s, s:o}", "sort", list->by_age ? "lifetime" : "size", "count",
				 mw_json_number(list->count));
	bool good = open_view(stream, "blocks", mw_json_join(head_value(views), head), "rows");

	for (size_t i = 0; i < list->row_count && good; i++) {
		fputs(i ? ",\n" : "\n", stream);
		good = mw_json_put(stream, block_row(&list->rows[i]));
	}
	fputs("]}", stream);
	return good;
}

bool mw_json_views(FILE *stream, const struct mw_views *views)
{
	bool good = true;

	if (views->groups)
		good = put_groups(stream, views);
	if (good && views->tree)
		good = put_tree(stream, views);
	if (good && views->blocks)
		good = put_blocks(stream, views);
	return good;
}

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
 * Where blocks are sampled, amounts are estimates with an "error" (standard error: {count, bytes}), and aofi is null where
 * nothing is known of it; a block stands for so many others ("others").
 *
 * `value` is {pid, comm} of a process, {tid, name} of a thread, {function, module} of a function, {function, module, file, line, offset|null}
 * of a line (the offset is of code without a name), a number of a size,
 * else a string. `more` is 0, or for how many rows that are not shown this one stands; it has no value then,
 * but for a node with 1, which is not shown further.
 *
 * Rows are built, written and dropped one by one.
 */
#include "output/json.h"

static json_t *sums_value(const struct mw_views *views, const struct mw_sums *sums)
{
	json_t *lifetime = json_null(), *object;

	if (sums->has_lifetime)
		lifetime = MW_OBJECT(MW_KEY("min", sums->lifetime_min_ns), MW_KEY("median", sums->lifetime_median_ns),
				     MW_KEY("max", sums->lifetime_max_ns));
	object = MW_OBJECT(
		MW_KEY("size", mw_json_estimate(views->sampled, mw_sums_size(sums), mw_sums_spread(sums, MW_FATE_ALL))),
		MW_OF(sums, aofi_unknown), MW_KEY("lifetime_ns", lifetime),
		MW_KEY("peak", MW_OBJECT(MW_KEY("bytes", sums->peak_bytes), MW_KEY("exact", sums->peak_exact))));
	for (unsigned i = 0; object && i < MW_FATE_COUNT; i++) {
		enum mw_fate fate = (enum mw_fate)i;
		bool unknown = fate == MW_FATE_AOFI && !views->knows_older && !sums->fates[i].count;

		mw_json_set(&object, mw_fate_name(fate),
			    unknown ? json_null() : mw_json_estimate(views->sampled, sums->fates[i], sums->spreads[i]));
	}
	return object;
}

/* The first object with the second one's members; both are given away. */
static json_t *join(json_t *first, json_t *second)
{
	if (!first || !second || json_object_update(first, second) != 0) {
		json_decref(first);
		first = NULL;
	}
	json_decref(second);
	return first;
}

static json_t *parent_value(size_t parent)
{
	return parent == MW_TABLE_ROOT ? json_null() : MW_VALUE(parent);
}

static json_t *line_value(const struct mw_report_frame *frame)
{
	if (!frame)
		return json_null();
	return MW_OBJECT(MW_OF(frame, function), MW_OF(frame, module), MW_OF(frame, file),
			 MW_KEY("line", frame->line ? MW_VALUE(frame->line) : json_null()),
			 MW_KEY("offset", frame->function ? json_null() : MW_VALUE(frame->offset)));
}

static json_t *row_value(const struct mw_table_row *row, enum mw_column column)
{
	if (row->folded)
		return json_null();
	switch (column) {
	case MW_COLUMN_PROCESS:
		return MW_OBJECT(MW_KEY("pid", row->number), MW_KEY("comm", row->text));
	case MW_COLUMN_THREAD:
		return MW_OBJECT(MW_KEY("tid", row->number), MW_KEY("name", row->text));
	case MW_COLUMN_FUNCTION:
		return MW_OBJECT(MW_KEY("function", row->text), MW_OF(row, module));
	case MW_COLUMN_KIND:
		return MW_VALUE(mw_kind_name((enum mw_kind)row->number));
	case MW_COLUMN_TYPE:
		return MW_VALUE(mw_fate_name((enum mw_fate)row->number));
	case MW_COLUMN_SIZE:
		return MW_VALUE(row->number);
	case MW_COLUMN_LINE:
		return line_value(row->frame);
	case MW_COLUMN_HEAP:
	case MW_COLUMN_LANGUAGE:
	case MW_COLUMN_MODULE:
	case MW_COLUMN_STACK:
	case MW_COLUMN_API:
	case MW_COLUMN_COUNT:
		break;
	}
	return MW_VALUE(row->text);
}

static json_t *table_row(const struct mw_views *views, const struct mw_table_row *row)
{
	const struct mw_table *table = views->groups;
	enum mw_column column = table->by[row->level];
	json_t *what =
		MW_OBJECT(MW_OF(row, level), MW_KEY("parent", parent_value(row->parent)), MW_KEY("more", row->folded),
			  MW_KEY("column", mw_column_name(column)), MW_KEY("value", row_value(row, column)));

	return join(what, sums_value(views, &row->sums));
}

static json_t *tree_node(const struct mw_views *views, const struct mw_tree_node *node)
{
	bool has_offset = node->folded <= 1 && !node->cut && !node->function;
	json_t *what = MW_OBJECT(MW_OF(node, level), MW_KEY("parent", parent_value(node->parent)),
				 MW_KEY("more", node->folded), MW_OF(node, function), MW_OF(node, module),
				 MW_KEY("offset", has_offset ? MW_VALUE(node->offset) : json_null()), MW_OF(node, cut),
				 MW_KEY("self", sums_value(views, &node->self)));

	return join(what, sums_value(views, &node->sums));
}

static json_t *block_row(const struct mw_views *views, const struct mw_block_row *row)
{
	json_t *value;

	value = MW_OBJECT(MW_KEY("address", row->addr), MW_OF(row, bytes), MW_OF(row, left),
			  MW_KEY("kind", mw_kind_name(row->kind)), MW_KEY("type", mw_fate_name(row->fate)),
			  MW_OF(row, pid), MW_OF(row, heap), MW_KEY("tid", row->tid ? MW_VALUE(row->tid) : json_null()),
			  MW_OF(row, thread), MW_KEY("stack", row->stack ? row->stack->id : NULL),
			  MW_KEY("allocated_ns", row->born_ns), MW_KEY("freed_ns", row->died_ns),
			  MW_OF(row, lifetime_ns), MW_OF(row, resident));
	if (views->sampled)
		mw_json_set(&value, "others", MW_VALUE(row->others));
	return value;
}

/* ,"KEY":{HEAD…,"NAME":[ up to where items come. What the head has of its own is given away. */
static bool open_view(FILE *stream, const struct mw_views *views, const char *key, json_t *own, const char *name)
{
	json_t *head = join(MW_OBJECT(MW_KEY("type", mw_fate_name(views->type)),
				      MW_KEY("sort", mw_sort_name(views->sort)), MW_OF(views, filter)),
			    own);
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

/* Up to the view's end, each row on a line of its own; false without memory, as `good` is then. */
#define PUT_ROWS(stream, good, i, count, value)                                                                        \
	do {                                                                                                           \
		for (size_t i = 0; i < (count) && (good); i++) {                                                       \
			fputs(i ? ",\n" : "\n", stream);                                                               \
			(good) = mw_json_put(stream, value);                                                           \
		}                                                                                                      \
		fputs("]}", stream);                                                                                   \
	} while (0)

static bool put_groups(FILE *stream, const struct mw_views *views)
{
	const struct mw_table *table = views->groups;
	json_t *own = MW_OBJECT(MW_KEY("by", MW_ARRAY(i, table->by_count, MW_VALUE(mw_column_name(table->by[i])))),
				MW_KEY("total", sums_value(views, &table->total)));
	bool good = open_view(stream, views, "groups", own, "rows");

	PUT_ROWS(stream, good, i, table->row_count, table_row(views, &table->rows[i]));
	return good;
}

static bool put_tree(FILE *stream, const struct mw_views *views)
{
	const struct mw_tree *tree = views->tree;
	json_t *own = MW_OBJECT(MW_KEY("direction", tree->direction == MW_TREE_DOWN ? "down" : "up"),
				MW_KEY("total", sums_value(views, &tree->total)),
				MW_KEY("self", sums_value(views, &tree->self)));
	bool good = open_view(stream, views, "tree", own, "nodes");

	PUT_ROWS(stream, good, i, tree->node_count, tree_node(views, &tree->nodes[i]));
	return good;
}

static bool put_blocks(FILE *stream, const struct mw_views *views)
{
	const struct mw_block_list *list = views->blocks;
	json_t *own = MW_OBJECT(MW_KEY("sort", list->by_age ? "lifetime" : "size"), MW_OF(list, count));
	bool good = open_view(stream, views, "blocks", own, "rows");

	PUT_ROWS(stream, good, i, list->row_count, block_row(views, &list->rows[i]));
	return good;
}

bool mw_json_views(FILE *stream, const struct mw_views *views)
{
	bool good = !views->groups || put_groups(stream, views);

	good = good && (!views->tree || put_tree(stream, views));
	return good && (!views->blocks || put_blocks(stream, views));
}

/* SPDX-License-Identifier: MIT */
/*
 * json_views.h: groups, call trees and blocks as members of the report's object (schema "memwatch.report/1"). Trees lie
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
 */
#ifndef MW_OUTPUT_JSON_VIEWS_H
#define MW_OUTPUT_JSON_VIEWS_H

#include <memwatch/table.h>

#include <stdio.h>

/* Write what there is of the views, each as ,\n"KEY":VALUE. False without memory; write errors stay in the stream. */
bool mw_json_views(FILE *stream, const struct mw_views *views);

#endif

// SPDX-License-Identifier: MIT
/*
 * json_change.c: by what the process's memory became more or less between looks at its heap at both ends of a window, as
 * JSON: key `heap_change` of a report, which is there where there were both.
 *
 *   before, after  RSS in the looks
 *   change         after - before
 *   blocks, older_freed, allocator, mappings, rest   bytes, with their signs: they sum to change
 *   parts          [{kind: one of these five, name, detail, bytes, stack: id|null}]: the largest first, whatever their
 *                  signs; those of a kind sum to it. stack is the stack of the report that allocated or mapped it
 */
#include "output/json.h"

#include <inttypes.h>
#include <stdio.h>

static json_t *stack_value(uint64_t stack)
{
	char id[24];

	if (!stack)
		return json_null();
	snprintf(id, sizeof(id), "%016" PRIx64, stack);
	return mw_json_text(id);
}

static json_t *part_value(const struct mw_heap_change *part)
{
	return MW_OBJECT(MW_KEY("kind", mw_heap_change_name(part->kind)), MW_OF(part, name), MW_OF(part, detail),
			 MW_KEY("bytes", json_integer(part->bytes)), MW_KEY("stack", stack_value(part->stack)));
}

json_t *mw_json_heap_change(const struct mw_report_change *change)
{
	json_t *object = MW_OBJECT(MW_OF(change, before), MW_OF(change, after),
				   MW_KEY("change", mw_json_change(change->before, change->after)));

	for (unsigned i = 0; i < MW_HEAP_CHANGE_COUNT; i++)
		mw_json_set(&object, mw_heap_change_name((enum mw_heap_change_kind)i), json_integer(change->sums[i]));
	mw_json_set(&object, "parts", MW_ARRAY(i, change->part_count, part_value(&change->parts[i])));
	return object;
}

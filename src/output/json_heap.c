// SPDX-License-Identifier: MIT
/*
 * json_heap.c: a look at a heap as JSON, schema "memwatch.heap/1".
 *
 *   schema     "memwatch.heap/1"
 *   target     {pid, comm, exe, build_id|null, boot_id|null, start_ticks|null}: the last two and the pid tell a process from
 *              any other: the run of the system, and clock ticks from its boot to the process's start
 *   started    when the look began
 *   by         [texts]: what blocks are grouped by, of "class", "size", "arena"
 *   method     "fork": a copy was read; "live": the process as it ran, and `why` (null: it was asked for)
 *   pause_ns, seconds, scanned   all its pauses together, the whole look, bytes looked through for pointers
 *   unread     bytes that may hold pointers and could not be read: if any, lost blocks are called possibly lost
 *   rss, swapped, page_tables    bytes
 *   account    [{name, detail, bytes, swapped}]: the largest first; bytes sum to rss
 *   allocators [{name, version, module, walked, why, arenas, live: A, free: A, retained: {bytes}, trimmable: {bytes}|null,
 *              cached: {bytes}, pinned: {pages, bytes}, skipped: {bytes}}]   A = {count, bytes}, usable bytes
 *   leaks      {definite, indirect, possible, reachable}: A each
 *   groups     [{class, size, allocator, arena, verdict, blocks: A, stack: null, holder: [texts, root first]|null,
 *              sample: [addresses]}]: lost ones first; all, so that they sum to leaks
 *              with --show N also contents: [{address, size, hex, notes: [{offset, text}]}], of the groups that have a
 *              holder or could have one in the text: the first bytes, strings in them, what pointers point at
 *   holders    with --holders: [H], the largest first; H = {name, retained: A, own: A, children: [H]}: a root, and below it
 *              groups of blocks by class or size that nothing else holds. retained: what would be lost with it; own: of
 *              that, its own blocks. At most 8 levels, and 20 children of each: what a holder retains may be more than
 *              its own and its children's
 *   skipped    [{start, bytes, why}]: memory that was passed over, and treated as roots
 *   advice     [texts]
 */
#include "output/json.h"

#include <inttypes.h>
#include <stdio.h>

/* As in the verdict of a group. */
static const char *const verdicts[] = {"definite", "indirect", "possible", "reachable", NULL};

static json_t *address_value(mw_addr addr)
{
	char text[24];

	snprintf(text, sizeof(text), "%#" PRIx64, addr);
	return mw_json_text(text);
}

static json_t *bytes_value(uint64_t bytes)
{
	return bytes == MW_SIZE_UNKNOWN ? json_null() : MW_OBJECT(MW_KEY("bytes", bytes));
}

static json_t *line_value(const struct mw_heap_line *line)
{
	json_t *value = MW_OBJECT(MW_OF(line, name), MW_OF(line, detail), MW_OF(line, bytes), MW_OF(line, swapped));

	if (line->reserved) {
		mw_json_set(&value, "reserved", MW_VALUE(line->reserved));
		mw_json_set(&value, "committed", MW_VALUE(line->committed));
		mw_json_set(&value, "used", line->used ? MW_VALUE(line->used) : json_null());
	}
	return value;
}

static json_t *allocator_value(const struct mw_heap_figures *figures)
{
	return MW_OBJECT(
		MW_OF(figures, name), MW_OF(figures, version), MW_OF(figures, module), MW_OF(figures, walked),
		MW_OF(figures, why), MW_KEY("arenas", (uint64_t)figures->arenas), MW_OF(figures, live),
		MW_OF(figures, free), MW_KEY("retained", bytes_value(figures->retained)),
		MW_KEY("trimmable", bytes_value(figures->trimmable)), MW_KEY("cached", bytes_value(figures->cached)),
		MW_KEY("pinned", MW_OBJECT(MW_KEY("pages", figures->pinned_pages), MW_KEY("bytes", figures->pinned))),
		MW_KEY("skipped", bytes_value(figures->skipped)));
}

static json_t *note_value(const struct mw_heap_note *note)
{
	return MW_OBJECT(MW_OF(note, offset), MW_OF(note, text));
}

static json_t *hex_value(const unsigned char *bytes, size_t count)
{
	char text[2 * 256 + 1] = "";

	for (size_t i = 0; i < count && i < sizeof(text) / 2; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return mw_json_text(text);
}

static json_t *content_value(const struct mw_heap_content *content)
{
	return MW_OBJECT(MW_KEY("address", address_value(content->at)), MW_OF(content, size),
			 MW_KEY("hex", hex_value(content->bytes, content->byte_count)),
			 MW_KEY("notes", MW_ARRAY(i, content->note_count, note_value(&content->notes[i]))));
}

/* With its contents where they were asked for. */
static json_t *with_contents(json_t *value, const struct mw_heap_group *group)
{
	json_t *contents;

	if (!value || !group->contents)
		return value;
	contents = MW_ARRAY(i, group->content_count, content_value(&group->contents[i]));
	if (json_object_set_new(value, "contents", contents) == 0)
		return value;
	json_decref(value);
	return NULL;
}

static json_t *group_value(const struct mw_heap_group *group)
{
	json_t *holder = group->holder_count ? mw_json_texts((const char *const *)group->holder, group->holder_count)
					     : json_null();

	json_t *value = MW_OBJECT(MW_KEY("class", group->class_name), MW_OF(group, size), MW_OF(group, allocator),
				  MW_OF(group, arena), MW_KEY("verdict", verdicts[group->verdict]),
				  MW_OF(group, blocks), MW_KEY("stack", json_null()), MW_KEY("holder", holder),
				  MW_KEY("sample", MW_ARRAY(i, group->sample_count, address_value(group->samples[i]))));

	return with_contents(value, group);
}

static json_t *gap_value(const struct mw_heap_gap *gap)
{
	return MW_OBJECT(MW_KEY("start", address_value(gap->start)), MW_OF(gap, bytes), MW_OF(gap, why));
}

static json_t *holder_value(const struct mw_heap_holder *holder)
{
	return MW_OBJECT(MW_OF(holder, name), MW_OF(holder, retained), MW_OF(holder, own),
			 MW_KEY("children", json_array()));
}

/* Each goes to the children of the last one before it that is one level higher. */
static json_t *holders_value(const struct mw_heap_report *heap)
{
	json_t *lists[MW_HEAP_HOLDER_LEVELS] = {json_array()};
	uint32_t levels = 1;

	for (size_t i = 0; lists[0] && i < heap->holder_count; i++) {
		const struct mw_heap_holder *holder = &heap->holders[i];
		json_t *value;

		if (holder->depth >= levels)
			continue;
		value = holder_value(holder);
		if (json_array_append_new(lists[holder->depth], value) != 0) {
			json_decref(lists[0]);
			return NULL;
		}
		levels = holder->depth + 1;
		if (levels < MW_HEAP_HOLDER_LEVELS)
			lists[levels++] = json_object_get(value, "children");
	}
	return lists[0];
}

json_t *mw_json_heap_target(const struct mw_heap_report *heap)
{
	return MW_OBJECT(MW_KEY("pid", (int)heap->pid), MW_KEY("comm", (const char *)heap->comm), MW_OF(heap, exe),
			 MW_OF(heap, build_id), MW_KEY("boot_id", *heap->boot_id ? (const char *)heap->boot_id : NULL),
			 MW_KEY("start_ticks", heap->start_ticks ? heap->start_ticks : MW_SIZE_UNKNOWN));
}

json_t *mw_json_heap_by(unsigned by)
{
	static const char *const names[] = {"class", "size", "arena"};
	const char *texts[3];
	size_t count = 0;

	for (unsigned i = 0; i < 3; i++)
		if (by >> i & 1)
			texts[count++] = names[i];
	return mw_json_texts(texts, count);
}

static json_t *head_value(const struct mw_heap_report *heap)
{
	return MW_OBJECT(
		MW_KEY("schema", "memwatch.heap/1"), MW_KEY("target", mw_json_heap_target(heap)),
		MW_KEY("started", mw_json_date(heap->started_realtime_ns)), MW_KEY("by", mw_json_heap_by(heap->by)),
		MW_KEY("method", heap->forked ? "fork" : "live"), MW_OF(heap, passes), MW_OF(heap, why),
		MW_OF(heap, pause_ns), MW_OF(heap, seconds), MW_OF(heap, scanned), MW_OF(heap, unread),
		MW_OF(heap, rss), MW_OF(heap, swapped), MW_OF(heap, page_tables),
		MW_KEY("leaks", mw_json_leaks(heap->leaks)),
		MW_KEY("account", MW_ARRAY(i, heap->line_count, line_value(&heap->lines[i]))),
		MW_KEY("allocators", MW_ARRAY(i, heap->allocator_count, allocator_value(&heap->allocators[i]))),
		MW_KEY("groups", MW_ARRAY(i, heap->group_count, group_value(&heap->groups[i]))),
		MW_KEY("skipped", MW_ARRAY(i, heap->gap_count, gap_value(&heap->gaps[i]))),
		MW_KEY("advice", mw_json_texts((const char *const *)heap->advice, heap->advice_count)));
}

struct mw_error *mw_json_heap_write(const struct mw_heap_report *heap, const struct mw_output_options *options,
				    FILE *stream)
{
	json_t *value = head_value(heap);

	(void)options;
	if (heap->holders && value && json_object_set_new(value, "holders", holders_value(heap)) != 0) {
		json_decref(value);
		value = NULL;
	}
	if (!mw_json_put(stream, value))
		return mw_error_nomem();
	fputc('\n', stream);
	return NULL;
}

// SPDX-License-Identifier: MIT
/* rows_list.c: what code a file describes (rows_list.h). */
#include "unwind/rows_list.h"

#include "base/vector.h"
#include "symbol/frames.h"

#include <dwarf.h>
#include <stdlib.h>

struct bounds {
	uint64_t low, high;
};

/* Of all executable segments. */
static struct bounds code_bounds(const struct mw_elf *elf)
{
	struct bounds bounds = {.low = UINT64_MAX};
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count;

	for (size_t i = 0; i < count; i++) {
		const struct mw_elf_segment *segment = &segments[i];

		if (!segment->exec || segment->memory_size > UINT64_MAX - segment->vaddr)
			continue;
		if (segment->vaddr < bounds.low)
			bounds.low = segment->vaddr;
		if (segment->vaddr + segment->memory_size > bounds.high)
			bounds.high = segment->vaddr + segment->memory_size;
	}
	return bounds;
}

static struct mw_error *add(struct rows_list *list, uint64_t start, uint64_t length, uint64_t record)
{
	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return mw_error_nomem();
	list->items[list->count++] = (struct rows_described){start, start + length, record};
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct rows_described *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->record > y->record) - (x->record < y->record);
}

/* Linkers leave most sections sorted, and nothing to do. */
static void sort(struct rows_list *list)
{
	for (size_t i = 1; i < list->count; i++) {
		if (by_start(&list->items[i - 1], &list->items[i]) > 0) {
			qsort(list->items, list->count, sizeof(*list->items), by_start);
			return;
		}
	}
}

/* List the records that begin from `first` to `last`. */
static struct mw_error *list_records(struct rows_list *list, uint64_t first, uint64_t last)
{
	const struct mw_elf *elf = list->bytes.elf;
	struct bounds code = code_bounds(elf);
	struct mw_frame_cie cie = {0};
	struct mw_frame_record record;

	while (first <= last && mw_frame_next(&list->bytes, &first, &record)) {
		struct mw_frame_description description;

		if (!mw_frame_describe(&list->bytes, &record, &cie, &description))
			continue;
		/* Of what can be loaded anywhere, an address that isn't relative is known only when it is loaded. */
		if (!list->bytes.debug && !(cie.encoding & DW_EH_PE_pcrel) && !elf->is_executable)
			continue;
		/* 0 is left where the code that was described was thrown away. */
		if (description.start == 0 || description.start < code.low || description.start >= code.high)
			continue;
		if (description.length && description.length <= code.high - description.start)
			MW_TRY(add(list, description.start, description.length, record.vaddr));
	}
	sort(list);
	return NULL;
}

/* A file without section headers: from the first that its search table names to the last. */
static struct mw_error *list_by_table(struct rows_list *list, const struct mw_elf *elf)
{
	struct mw_frame_table table = {0};
	struct mw_frame_entry entry;
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint64_t base;

	MW_TRY(mw_frame_table_init(&table, elf));
	for (size_t i = 0; i < table.count && mw_frame_table_entry(&table, i, &entry); i++) {
		first = entry.description < first ? entry.description : first;
		last = entry.description > last ? entry.description : last;
	}
	base = table.base;
	list->bytes = table.bytes;
	mw_frame_table_deinit(&table);
	if (first > last)
		return NULL;
	return list_records(list, base + (uint64_t)first, base + (uint64_t)last);
}

struct mw_error *rows_list_eh_frame(const struct mw_elf *elf, struct rows_list *list)
{
	if (!mw_frame_bytes_init(&list->bytes, elf, ".eh_frame"))
		return list_by_table(list, elf);
	return list_records(list, list->bytes.vaddr, UINT64_MAX);
}

struct mw_error *rows_list_debug_frame(const struct mw_elf *elf, struct rows_list *list)
{
	/* Go's runtime changes stacks in the middle of functions, of which its descriptions say nothing. */
	if (mw_elf_is_go(elf) || !mw_frame_bytes_init(&list->bytes, elf, ".debug_frame"))
		return NULL;
	return list_records(list, 0, UINT64_MAX);
}

void rows_list_deinit(struct rows_list *list)
{
	free(list->items);
	mw_frame_bytes_deinit(&list->bytes);
	*list = (struct rows_list){0};
}

void rows_list_cut(struct rows_list *list, uint64_t base)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].end - base <= UINT32_MAX)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

// SPDX-License-Identifier: MIT
/* blocklist.c: binary heaps whose root is the first block to go (blocklist.h). */
#include "view/blocklist.h"

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vector.h"
#include "view/views.h"

#include <stdlib.h>

struct listed {
	struct mw_track_fate fate;
	uint64_t rank;
	uint32_t heap;
	uint8_t type; /* enum mw_fate */
	uint8_t unused[3];
	uint32_t process; /* when lists are put together */
};

/* The first blocks of what the filter can't tell apart. */
struct part {
	struct listed *items;
	size_t count, capacity;
	uint64_t seen;
};

/* Of a mapping that is still there in several: one but the first. */
struct piece {
	mw_addr addr;
	uint64_t bytes;
	uint32_t block;
};

struct mw_blocklist {
	struct mw_blocklist_options options;
	bool by_stack, by_thread, by_heap; /* the filter tells them apart */
	struct mw_map places, heaps, bits, keys;
	struct part *parts;
	size_t part_count, part_capacity;
	struct piece *pieces;
	size_t piece_count, piece_capacity;
	bool failed;
};

struct mw_error *mw_blocklist_create(const struct mw_blocklist_options *options, struct mw_blocklist **out)
{
	struct mw_blocklist *list = calloc(1, sizeof(*list));
	uint32_t columns = options->filter ? mw_filter_columns(options->filter) : 0;

	if (!list)
		return mw_error_nomem();
	list->options = *options;
	list->by_stack = columns & MW_COLUMNS_OF_STACKS;
	list->by_thread = columns & 1u << MW_COLUMN_THREAD;
	list->by_heap = columns & 1u << MW_COLUMN_HEAP;
	*out = list;
	return NULL;
}

void mw_blocklist_destroy(struct mw_blocklist *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->part_count; i++)
		free(list->parts[i].items);
	free(list->parts);
	free(list->pieces);
	mw_map_deinit(&list->places);
	mw_map_deinit(&list->heaps);
	mw_map_deinit(&list->bits);
	mw_map_deinit(&list->keys);
	free(list);
}

void mw_blocklist_end(struct mw_blocklist *list, uint64_t end_ns)
{
	list->options.end_ns = end_ns;
}

void mw_blocklist_renumber_heaps(struct mw_blocklist *list, const uint32_t *heap_of)
{
	for (size_t i = 0; i < list->part_count; i++)
		for (size_t j = 0; j < list->parts[i].count; j++)
			list->parts[i].items[j].heap = heap_of[list->parts[i].items[j].heap];
}

/* Is `a` shown before `b`? */
static bool precedes(const struct listed *a, const struct listed *b)
{
	if (a->rank != b->rank)
		return a->rank > b->rank;
	if (a->fate.born_ns != b->fate.born_ns)
		return a->fate.born_ns < b->fate.born_ns;
	if (a->process != b->process)
		return a->process < b->process;
	if (a->fate.addr != b->fate.addr)
		return a->fate.addr < b->fate.addr;
	return a->fate.died_ns < b->fate.died_ns;
}

static void sift_up(struct listed *items, size_t at)
{
	while (at && precedes(&items[(at - 1) / 2], &items[at])) {
		struct listed moved = items[at];

		items[at] = items[(at - 1) / 2];
		items[(at - 1) / 2] = moved;
		at = (at - 1) / 2;
	}
}

static void sift_down(struct listed *items, size_t count)
{
	size_t at = 0;

	for (;;) {
		size_t last = at;
		struct listed moved;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
			if (precedes(&items[last], &items[child]))
				last = child;
		if (last == at)
			return;
		moved = items[at];
		items[at] = items[last];
		items[last] = moved;
		at = last;
	}
}

static bool add(struct part *part, size_t most, const struct listed *item)
{
	if (part->items && part->count == most) {
		if (precedes(item, &part->items[0])) {
			part->items[0] = *item;
			sift_down(part->items, part->count);
		}
		return true;
	}
	if (!MW_VECTOR_ROOM(part->items, part->count, part->capacity))
		return false;
	part->items[part->count] = *item;
	sift_up(part->items, part->count++);
	return true;
}

/* The part whose blocks the filter can't tell from this one; NULL without memory. */
static struct part *part_of(struct mw_blocklist *list, const struct listed *item)
{
	const struct mw_track_fate *fate = &item->fate;
	uint32_t stack = list->by_stack ? fate->stack : 0, thread = list->by_thread ? fate->thread : 0;
	uint64_t true_terms = 0;
	uint32_t place = 0, bits = 0, number = 0;

	if (list->options.filter)
		true_terms = mw_filter_block(list->options.filter, fate->kind, (enum mw_fate)item->type, fate->size);
	if (!mw_map_number(&list->places, (uint64_t)stack << 32 | thread, &place) ||
	    !mw_map_number(&list->heaps, (uint64_t)place << 32 | (list->by_heap ? item->heap : 0), &place) ||
	    !mw_map_number(&list->bits, true_terms, &bits) ||
	    !mw_map_number(&list->keys, (uint64_t)place << 32 | bits, &number))
		return NULL;
	if (number < list->part_count)
		return &list->parts[number];
	if (!MW_VECTOR_ROOM(list->parts, list->part_count, list->part_capacity))
		return NULL;
	list->parts[list->part_count] = (struct part){0};
	return &list->parts[list->part_count++];
}

static uint64_t rank_of(const struct mw_blocklist *list, const struct mw_track_fate *fate)
{
	uint64_t rank = list->options.by_age ? mw_fate_lifetime(fate, list->options.end_ns) : fate->size;

	/* What is unknown is last. */
	return rank == UINT64_MAX ? 0 : rank + 1;
}

/* A part of a block: those that went before the last are in the block's size, those that are there in what is left. */
static bool take_piece(struct mw_blocklist *list, const struct mw_track_fate *fate)
{
	if (fate->block == UINT32_MAX)
		return true;
	if (!MW_VECTOR_ROOM(list->pieces, list->piece_count, list->piece_capacity))
		return false;
	list->pieces[list->piece_count++] = (struct piece){fate->addr, fate->bytes, fate->block};
	return true;
}

static bool take(struct mw_blocklist *list, const struct mw_track_fate *fate)
{
	const struct mw_blocklist_options *options = &list->options;
	enum mw_fate type = mw_fate_of(fate);
	bool internal = options->filter && mw_filter_names_internal(options->filter);
	struct listed item = {.fate = *fate, .rank = rank_of(list, fate), .type = (uint8_t)type};
	struct part *part;

	if ((options->type != MW_FATE_ALL && options->type != type) || (fate->kind == MW_KIND_VM_INTERNAL && !internal))
		return true;
	if (!fate->last)
		return take_piece(list, fate);
	if (options->heap_of)
		item.heap =
			options->heap_of(options->heap_context, fate->addr, fate->bytes, fate->kind, fate->pymalloc);
	part = part_of(list, &item);
	if (!part)
		return false;
	part->seen++;
	return add(part, options->count, &item);
}

bool mw_blocklist_take(void *context, const struct mw_track_fate *fate)
{
	struct mw_blocklist *list = context;

	list->failed = list->failed || !take(list, fate);
	return !list->failed;
}

static bool is_meant(const struct mw_selection *selection, const struct listed *item)
{
	struct mw_cell key = {
		.bytes = item->fate.size,
		.stack = item->fate.stack,
		.thread = item->fate.thread,
		.heap = item->heap,
		.kind = (uint8_t)item->fate.kind,
		.fate = item->type,
	};

	return mw_selection_takes(selection, &key);
}

/* The parts that are meant, into one. All blocks of a part are, or none. */
static struct mw_error *gather(const struct mw_view_question *question, const struct mw_view_process *process,
			       uint32_t number, struct part *all)
{
	const struct mw_blocklist *list = process->blocks;
	MW_CLEANUP(mw_selection_deinit) struct mw_selection selection = {0};

	if (!list)
		return NULL;
	if (list->failed)
		return mw_error_nomem();
	MW_TRY(mw_selection_init(&selection, process, question->filter, false));
	for (size_t i = 0; i < list->part_count; i++) {
		const struct part *part = &list->parts[i];

		if (!part->count || !is_meant(&selection, &part->items[0]))
			continue;
		all->seen += part->seen;
		for (size_t j = 0; j < part->count; j++) {
			struct listed item = part->items[j];

			item.process = number;
			if (!add(all, question->blocks, &item))
				return mw_error_nomem();
		}
	}
	return NULL;
}

static int compare_listed(const void *left, const void *right)
{
	return precedes(left, right) ? -1 : precedes(right, left);
}

/* A piece of a mapping is there at the interval's end. */
static void add_left(const struct mw_view_process *process, mw_addr addr, uint64_t bytes, struct mw_block_row *row)
{
	uint64_t resident = process->end ? mw_space_resident(process->end, addr, bytes) : MW_SIZE_UNKNOWN;

	if (resident == MW_SIZE_UNKNOWN || (row->left && row->resident == MW_SIZE_UNKNOWN))
		row->resident = MW_SIZE_UNKNOWN;
	else
		row->resident = resident + (row->left ? row->resident : 0);
	row->left += bytes;
}

static void fill_row(const struct mw_view_process *process, struct mw_arena *arena, const struct listed *item,
		     struct mw_block_row *row)
{
	const struct mw_view_thread *thread = mw_process_thread(process, item->fate.thread);

	*row = (struct mw_block_row){
		.addr = item->fate.addr,
		.bytes = item->fate.size,
		.others = item->fate.others,
		.kind = item->fate.kind,
		.fate = (enum mw_fate)item->type,
		.pid = process->report->target.pid,
		.heap = mw_arena_string(arena, mw_process_heap(process, item->heap)),
		.stack = mw_process_stack(process, item->fate.stack),
		.born_ns = item->fate.born_ns,
		.died_ns = item->fate.died_ns,
		.lifetime_ns = mw_fate_lifetime(&item->fate, process->blocks->options.end_ns),
		.resident = MW_SIZE_UNKNOWN,
	};
	if (item->fate.block != UINT32_MAX)
		add_left(process, item->fate.addr, item->fate.bytes, row);
	if (!thread)
		return;
	row->tid = thread->tid;
	row->thread = mw_arena_string(arena, thread->name);
}

/* A row of a mapping that is there. */
struct mapped {
	uint32_t process, block;
	struct mw_block_row *row;
};

static int compare_mapped(const void *left, const void *right)
{
	const struct mapped *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->block > b->block) - (a->block < b->block);
}

/* The other pieces, where there are any, of the blocks that have a row. */
static struct mw_error *add_pieces(const struct mw_view_process *processes, size_t process_count,
				   const struct part *all, struct mw_block_row *rows)
{
	MW_FREE struct mapped *mapped = calloc(all->count + 1, sizeof(*mapped));
	size_t count = 0;

	if (!mapped)
		return mw_error_nomem();
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].fate.block != UINT32_MAX)
			mapped[count++] = (struct mapped){all->items[i].process, all->items[i].fate.block, &rows[i]};
	qsort(mapped, count, sizeof(*mapped), compare_mapped);
	for (uint32_t i = 0; i < process_count; i++) {
		const struct mw_blocklist *list = processes[i].blocks;

		for (size_t j = 0; list && j < list->piece_count; j++) {
			const struct piece *piece = &list->pieces[j];
			struct mapped key = {.process = i, .block = piece->block};
			const struct mapped *found = bsearch(&key, mapped, count, sizeof(key), compare_mapped);

			if (found)
				add_left(&processes[i], piece->addr, piece->bytes, found->row);
		}
	}
	return NULL;
}

static struct mw_error *keep(const struct mw_view_process *processes, size_t count, struct part *all,
			     struct mw_arena *arena, struct mw_block_list *out)
{
	out->rows = mw_arena_array(arena, all->count, sizeof(*out->rows));
	if (!out->rows)
		return mw_error_nomem();
	out->row_count = all->count;
	out->count = all->seen;
	if (all->count)
		qsort(all->items, all->count, sizeof(*all->items), compare_listed);
	for (size_t i = 0; i < all->count; i++)
		fill_row(&processes[all->items[i].process], arena, &all->items[i], &out->rows[i]);
	return add_pieces(processes, count, all, out->rows);
}

struct mw_error *mw_blocklist_rows(const struct mw_view_question *question, const struct mw_view_process *processes,
				   size_t count, struct mw_arena *arena, const struct mw_block_list **out)
{
	struct mw_block_list *list = mw_arena_array(arena, 1, sizeof(*list));
	struct mw_error *err = list ? NULL : mw_error_nomem();
	struct part all = {0};

	for (size_t i = 0; i < count && !err; i++)
		err = gather(question, &processes[i], (uint32_t)i, &all);
	if (!err)
		err = keep(processes, count, &all, arena, list);
	free(all.items);
	if (err)
		return err;
	list->by_age = question->sort == MW_SORT_LIFETIME;
	*out = list;
	return NULL;
}

// SPDX-License-Identifier: MIT
/*
 * rows.c: what the recorder walks stacks by, published in the shared memory (jump.h, memwatch/ring.h).
 *
 * A new index is written behind all that is there and then pointed to, so that a thread that reads the old one is never
 * disturbed. Nothing is taken back during a window; where the space is used up, what comes then is left to the slow
 * road.
 */
#include "engine/jump/jump.h"

#include <string.h>

static struct mw_error *compile(struct jump_process *process)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(process->survey.modules, &i));) {
		struct jump_module_rows *rows = MW_VECTOR_AT(process->rows.items, process->rows.count, module->number);

		if (!rows)
			return mw_error_nomem();
		if (rows->tried)
			continue;
		rows->tried = true;
		MW_TRY(mw_rows_compile(module->elf, MW_ROWS_OF_ALL, process->survey.arch, &process->rows.dictionary,
				       &rows->compiled));
		MW_TRY(mw_generated_code_find(module->elf, &rows->generated));
	}
	return NULL;
}

/* The index of the first row that begins behind `at`. */
static size_t first_behind(const struct mw_ring_row *items, size_t count, uint32_t at)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (items[middle].pc <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct mw_error *jump_rows_compile(struct jump_process *process, uint64_t *bytes)
{
	MW_TRY(compile(process));
	*bytes = process->rows.dictionary.index.count * sizeof(uint64_t);
	for (size_t i = 0; i < process->rows.count; i++)
		*bytes += process->rows.items[i].compiled.count * sizeof(struct mw_ring_row);
	return NULL;
}

uint64_t jump_rows_find(const struct jump_process *process, mw_addr pc)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, pc - 1);
	const struct jump_module_rows *rows =
		module && module->number < process->rows.count ? &process->rows.items[module->number] : NULL;
	uint64_t none = mw_row(MW_ROW_NONE, 0, MW_ROW_FP_SAME, 0), at = module ? pc - 1 - module->bias : 0;
	const struct mw_ring_row *items;
	size_t found;
	uint32_t row;

	if (!rows || !rows->count || at < rows->base || at - rows->base > UINT32_MAX)
		return none;
	items = (const struct mw_ring_row *)(const void *)(process->recorder.shared.base + rows->offset);
	found = first_behind(items, rows->count, (uint32_t)(at - rows->base));
	/* The target may have written anything there. */
	row = found ? __atomic_load_n(&items[found - 1].row, __ATOMIC_RELAXED) : UINT32_MAX;
	return row < process->rows.dictionary.index.count ? process->rows.dictionary.rows[row] : none;
}

/* Room behind what is there, or NULL. */
static void *take(struct jump_process *process, uint64_t size, uint64_t *offset)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;
	uint64_t at = geometry->rows + process->rows.used;

	size = (size + 15) & ~(uint64_t)15;
	if (size > geometry->rows_end - at)
		return NULL;
	process->rows.used += size;
	*offset = at;
	return process->recorder.shared.base + at;
}

static void publish_dictionary(struct jump_process *process)
{
	uint64_t *rows =
		(uint64_t *)(void *)(process->recorder.shared.base + process->recorder.shared.geometry.dictionary);
	uint64_t room = process->recorder.shared.geometry.dictionary_capacity;
	uint64_t count = process->rows.dictionary.index.count < room ? process->rows.dictionary.index.count : room;

	if (count > process->rows.published)
		memcpy(rows + process->rows.published, process->rows.dictionary.rows + process->rows.published,
		       (count - process->rows.published) * sizeof(*rows));
	process->rows.published = count;
	__atomic_store_n(&jump_control(&process->recorder.shared)->dictionary_count, count, __ATOMIC_RELEASE);
}

static void publish_module(struct jump_process *process, struct jump_module_rows *rows)
{
	size_t size = rows->compiled.count * sizeof(struct mw_ring_row);
	void *room = size ? take(process, size, &rows->offset) : NULL;

	if (room) {
		memcpy(room, rows->compiled.items, size);
		rows->count = rows->compiled.count;
		rows->base = rows->compiled.base;
	}
	mw_rows_deinit(&rows->compiled);
	rows->published = true;
}

/* An index that is being written. Where it stands the target may write too: what is there is not asked for. */
struct draft {
	struct mw_ring_index *index;
	uint64_t count, capacity;
	mw_addr end; /* of the last one's code */
};

static void add_code(struct draft *draft, const struct mw_ring_code *code)
{
	if (draft->count == draft->capacity || draft->end > code->start)
		return; /* never where mappings are what they are said to be */
	draft->index->code[draft->count++] = *code;
	draft->end = code->end;
}

static struct mw_ring_code describe(const struct jump_process *process, const struct mw_mapping *mapping)
{
	struct mw_ring_code code = {.start = mapping->start, .end = mapping->end};
	const struct mw_module *module = mw_modules_find(process->survey.modules, mapping->start);

	if (jump_memory_ours(process, mapping->start)) {
		code.whole = mw_row(MW_ROW_OURS, MW_STUB_CALL_SIZE + (int32_t)sizeof(uint64_t), MW_ROW_FP_SAME, 0);
		return code;
	}
	code.whole = mw_row(module ? MW_ROW_SLOW : MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0);
	if (module && module->number < process->rows.count && process->rows.items[module->number].count) {
		const struct jump_module_rows *rows = &process->rows.items[module->number];

		code.base = rows->base + module->bias;
		code.rows = rows->offset;
		code.count = rows->count;
	}
	return code;
}

#define PIECES 3

static void add_piece(struct mw_ring_code *pieces, size_t *count, const struct mw_ring_code *code, mw_addr start,
		      mw_addr end)
{
	if (start >= end)
		return;
	pieces[*count] = *code;
	pieces[*count].start = start;
	pieces[(*count)++].end = end;
}

/* A mapping's code: generated code is a piece of its own, where each stack that no row leads on from is broken. */
static size_t describe_pieces(const struct jump_process *process, const struct mw_mapping *mapping,
			      struct mw_ring_code pieces[PIECES])
{
	struct mw_ring_code code = describe(process, mapping), inside = code;
	const struct mw_module *module = mw_modules_find(process->survey.modules, mapping->start);
	mw_addr start = code.end, end = code.end;
	size_t count = 0;

	if (module && module->number < process->rows.count && mw_row_kind(code.whole) == MW_ROW_SLOW) {
		const struct mw_generated_code *generated = &process->rows.items[module->number].generated;

		start = generated->start + module->bias;
		end = generated->end + module->bias;
	}
	if (start >= end || end <= code.start || start >= code.end)
		start = end = code.end;
	start = start < code.start ? code.start : start;
	end = end > code.end ? code.end : end;
	inside.whole = mw_row(MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0);
	add_piece(pieces, &count, &code, code.start, start);
	add_piece(pieces, &count, &inside, start, end);
	add_piece(pieces, &count, &code, end, code.end);
	return count;
}

struct mw_error *jump_rows_publish(struct jump_process *process, const struct mw_maps *maps, bool new_generation)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	struct draft draft = {.capacity = 1};
	struct mw_ring_code pieces[PIECES];
	uint64_t offset;

	MW_TRY(compile(process));
	publish_dictionary(process);
	for (size_t i = 0; i < process->rows.count; i++)
		if (!process->rows.items[i].published && process->rows.items[i].tried)
			publish_module(process, &process->rows.items[i]);
	for (size_t i = 0; i < maps->count; i++)
		draft.capacity += maps->items[i].exec ? describe_pieces(process, &maps->items[i], pieces) : 0;
	draft.index = take(process, sizeof(*draft.index) + draft.capacity * sizeof(draft.index->code[0]), &offset);
	if (!draft.index) {
		/* What is new can't be known: then nothing may be said of what was there before, either. */
		__atomic_store_n(&control->index, 0, __ATOMIC_RELEASE);
		return NULL;
	}
	for (size_t i = 0; i < maps->count; i++) {
		size_t count = maps->items[i].exec ? describe_pieces(process, &maps->items[i], pieces) : 0;

		for (size_t j = 0; j < count; j++)
			add_code(&draft, &pieces[j]);
	}
	draft.index->count = draft.count;
	__atomic_store_n(&control->index, offset, __ATOMIC_RELEASE);
	if (new_generation)
		__atomic_store_n(&control->generation, control->generation + 1, __ATOMIC_RELEASE);
	return NULL;
}

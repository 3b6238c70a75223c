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

#define AT_ONCE 2048u /* rows that are written */

/* The file's rows in the process's dictionary: `numbers` (NULL: not asked for) are theirs there. */
static struct mw_error *add_to_dictionary(struct jump_process *process, const struct mw_file_rows *file,
					  uint32_t *numbers)
{
	for (uint32_t i = 0; i < file->dictionary.index.count; i++) {
		uint32_t number;

		MW_TRY(mw_row_dictionary_add(&process->rows.dictionary, file->dictionary.rows[i], &number));
		if (numbers)
			numbers[i] = number;
	}
	return NULL;
}

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
		if (process->engine && process->engine->serve && !process->windowed)
			process->engine->serve(process->engine);
		MW_TRY(mw_file_rows_get(module->elf, process->survey.arch, &rows->compiled));
		rows->generated = rows->compiled->generated;
		MW_TRY(add_to_dictionary(process, rows->compiled, NULL));
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
		if (process->rows.items[i].compiled)
			*bytes += process->rows.items[i].compiled->rows.count * sizeof(struct mw_ring_row);
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

/* Room behind what is there, that is written then. */
static bool take(struct jump_process *process, uint64_t size, uint64_t *offset)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;
	uint64_t at = geometry->rows + process->rows.used;

	size = (size + 15) & ~(uint64_t)15;
	if (size > geometry->rows_end - at)
		return false;
	process->rows.used += size;
	*offset = at;
	return true;
}

static bool write_at(struct jump_process *process, uint64_t offset, const void *bytes, size_t size)
{
	return mw_error_none(mw_shared_memory_write(&process->recorder.memory, offset, bytes, size));
}

static void publish_dictionary(struct jump_process *process)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;
	const struct mw_row_dictionary *dictionary = &process->rows.dictionary;
	uint64_t room = geometry->dictionary_capacity, published = process->rows.published;
	uint64_t count = dictionary->index.count < room ? dictionary->index.count : room;

	if (count <= published || !write_at(process, geometry->dictionary + published * sizeof(uint64_t),
					    dictionary->rows + published, (count - published) * sizeof(uint64_t)))
		count = published;
	process->rows.published = count;
	__atomic_store_n(&jump_control(&process->recorder.shared)->dictionary_count, count, __ATOMIC_RELEASE);
}

/* The file's rows, which have the numbers of its own dictionary. */
static bool write_renumbered(struct jump_process *process, uint64_t offset, const struct mw_rows *rows,
			     const uint32_t *numbers)
{
	struct mw_ring_row some[AT_ONCE];

	for (size_t i = 0; i < rows->count; i += AT_ONCE) {
		size_t count = rows->count - i < AT_ONCE ? rows->count - i : AT_ONCE;

		for (size_t j = 0; j < count; j++)
			some[j] = (struct mw_ring_row){rows->items[i + j].pc, numbers[rows->items[i + j].row]};
		if (!write_at(process, offset + i * sizeof(some[0]), some, count * sizeof(some[0])))
			return false;
	}
	return true;
}

static void write_rows(struct jump_process *process, struct jump_module_rows *rows)
{
	const struct mw_file_rows *file = rows->compiled;
	MW_FREE uint32_t *numbers = calloc(file->dictionary.index.count + (size_t)1, sizeof(*numbers));

	if (!file->rows.count || !numbers || !mw_error_none(add_to_dictionary(process, file, numbers)) ||
	    !take(process, file->rows.count * sizeof(struct mw_ring_row), &rows->offset) ||
	    !write_renumbered(process, rows->offset, &file->rows, numbers))
		return;
	rows->count = file->rows.count;
	rows->base = file->rows.base;
}

static void publish_module(struct jump_process *process, uint32_t number)
{
	struct jump_module_rows *rows = &process->rows.items[number];
	struct mw_elf *elf;

	rows->published = true;
	if (!rows->compiled)
		return;
	write_rows(process, rows);
	rows->compiled = NULL;
	/* They are kept for those who have the image as well. */
	elf = mw_modules_get(process->survey.modules, number)->elf;
	if (elf->references == 1)
		mw_file_rows_drop(elf);
}

/* An index that is being made. */
struct draft {
	struct mw_ring_index *index;
	uint64_t count, capacity;
	mw_addr end; /* of the last one's code */
};

static uint64_t index_size(uint64_t count)
{
	return sizeof(struct mw_ring_index) + count * sizeof(struct mw_ring_code);
}

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

/* A mapping's code: generated code is a piece of its own. */
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
	inside.whole = mw_row_generated();
	add_piece(pieces, &count, &code, code.start, start);
	add_piece(pieces, &count, &inside, start, end);
	add_piece(pieces, &count, &code, end, code.end);
	return count;
}

bool jump_rows_makes_code(const struct jump_process *process)
{
	for (size_t i = 0; i < process->rows.count; i++)
		if (process->rows.items[i].generated.end)
			return true;
	return false;
}

static bool may_be_made(const struct jump_process *process, const struct mw_mapping *mapping)
{
	return !mapping->inode && !mapping->path[0] && !jump_memory_ours(process, mapping->start);
}

/*
 * What V8 makes lies in memory that it has set aside for that: what is not code there now may be so at any time. So all
 * anonymous mappings side by side are one piece, if any is code. Returns the index of the mapping behind.
 */
static size_t describe_made(const struct jump_process *process, const struct mw_maps *maps, size_t first,
			    struct draft *draft)
{
	struct mw_ring_code code = {.start = maps->items[first].start, .whole = mw_row_generated()};
	bool v8 = mw_v8_is_there(process->survey.v8);
	bool exec = false;
	size_t i = first;

	if (v8)
		code.whole = mw_row(MW_ROW_MADE, mw_row_n(code.whole), MW_ROW_FP_SAVED, mw_row_fp_at(code.whole));
	do {
		exec |= maps->items[i].exec;
		code.end = maps->items[i++].end;
	} while (i < maps->count && may_be_made(process, &maps->items[i]) && maps->items[i].start == code.end);
	if (exec)
		add_code(draft, &code);
	return i;
}

/* Memory that a Java virtual machine has set aside for code, which begins at `low`: one piece, whatever it has mapped of
 * it yet. Returns the index of the mapping behind. */
static size_t describe_java(const struct mw_maps *maps, size_t first, const struct mw_hotspot_range *range,
			    struct draft *draft)
{
	const struct mw_ring_code code = {
		.start = range->low, .end = range->high, .whole = mw_row(MW_ROW_ASK, 0, MW_ROW_FP_LOST, 0)};

	add_code(draft, &code);
	while (first < maps->count && maps->items[first].start < range->high)
		first++;
	return first;
}

static const struct mw_hotspot_range *range_of(const struct mw_hotspot_range *ranges, unsigned count, mw_addr addr)
{
	for (unsigned i = 0; i < count; i++)
		if (ranges[i].low <= addr && addr < ranges[i].high)
			return &ranges[i];
	return NULL;
}

static void describe_all(const struct jump_process *process, const struct mw_maps *maps, struct draft *draft)
{
	bool made = jump_rows_makes_code(process);
	struct mw_hotspot_range ranges[MW_HOTSPOT_RANGES];
	unsigned range_count = mw_java_ranges(&process->survey.java, ranges);
	struct mw_ring_code pieces[PIECES];

	for (size_t i = 0; i < maps->count;) {
		const struct mw_hotspot_range *java = range_of(ranges, range_count, maps->items[i].start);
		size_t count = 0;

		if (java) {
			i = describe_java(maps, i, java, draft);
			continue;
		}
		if (made && may_be_made(process, &maps->items[i])) {
			i = describe_made(process, maps, i, draft);
			continue;
		}
		if (maps->items[i].exec)
			count = describe_pieces(process, &maps->items[i], pieces);
		for (size_t j = 0; j < count; j++)
			add_code(draft, &pieces[j]);
		i++;
	}
}

static void publish_index(struct jump_process *process, const struct mw_ring_index *index, uint64_t size)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint64_t offset;

	/* What is new can't be known: then nothing may be said of what was there before, either. */
	if (!take(process, size, &offset) || !write_at(process, offset, index, size))
		offset = 0;
	__atomic_store_n(&control->index, offset, __ATOMIC_RELEASE);
}

/* `made`: only where it is another than before, and takes no space that modules may need. */
static struct mw_error *publish_codes(struct jump_process *process, const struct mw_maps *maps, bool made)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;
	const struct mw_ring_index *before = process->rows.index;
	uint64_t left = geometry->rows_end - geometry->rows - process->rows.used, size;
	struct draft draft = {.capacity = maps->count * PIECES};
	MW_FREE struct mw_ring_index *index = calloc(1, index_size(draft.capacity));

	if (!index)
		return mw_error_nomem();
	draft.index = index;
	describe_all(process, maps, &draft);
	index->count = draft.count;
	size = index_size(draft.count);
	if (made && (size > left / 2 || left < (geometry->rows_end - geometry->rows) / 2 ||
		     (before && before->count == index->count && !memcmp(before, index, size))))
		return NULL;
	publish_index(process, index, size);
	free(process->rows.index);
	process->rows.index = index;
	index = NULL;
	return NULL;
}

static void begin_generation(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);

	__atomic_store_n(&control->generation, control->generation + 1, __ATOMIC_RELEASE);
}

struct mw_error *jump_rows_publish(struct jump_process *process, const struct mw_maps *maps, bool new_generation)
{
	MW_TRY(compile(process));
	publish_dictionary(process);
	for (uint32_t i = 0; i < process->rows.count; i++)
		if (!process->rows.items[i].published && process->rows.items[i].tried)
			publish_module(process, i);
	/* Where there is no room for what it needs it is not known. */
	if (process->recorder.shared.geometry.script_ranges && mw_v8_is_there(process->survey.v8))
		jump_control(&process->recorder.shared)->script.javascript = *mw_v8_layout(process->survey.v8);
	MW_TRY(publish_codes(process, maps, false));
	if (new_generation)
		begin_generation(process);
	return NULL;
}

struct mw_error *jump_rows_look(struct jump_process *process)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	const struct mw_ring_index *before = process->rows.index;

	process->rows.stale = false;
	MW_TRY(mw_java_take_in(&process->survey.java));
	MW_TRY(mw_maps_read(mw_live_thread(process->pid), &maps));
	MW_TRY(publish_codes(process, &maps, true));
	if (process->rows.index != before)
		begin_generation(process);
	return NULL;
}

void jump_rows_met(struct jump_process *process, mw_addr pc)
{
	const struct mw_ring_index *index = process->rows.index;
	size_t count = index ? mw_vector_up_to(index->code, index->count, sizeof(index->code[0]),
					       offsetof(struct mw_ring_code, start), pc - 1)
			     : 0;

	/* Anonymous code is foreign until a Java virtual machine has said that it is its own. */
	if (process->survey.java.hotspot && mw_hotspot_is_awaited(process->survey.java.hotspot))
		process->rows.stale |= !count || mw_row_kind(index->code[count - 1].whole) == MW_ROW_FOREIGN;
	process->rows.stale |= jump_rows_makes_code(process) && (!count || pc > index->code[count - 1].end);
}

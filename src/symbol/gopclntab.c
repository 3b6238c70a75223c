// SPDX-License-Identifier: MIT
/* gopclntab.c: see gopclntab.h. Facts: runtime/symtab.go and cmd/link/internal/ld/pcln.go of Go. */
#include "symbol/gopclntab.h"

#include "symbol/frames.h"

#include <stdlib.h>
#include <string.h>

enum magic {
	MAGIC_1_16 = 0xfffffffa,
	MAGIC_1_18 = 0xfffffff0,
	MAGIC_1_20 = 0xfffffff1,
};

#define POINTER     8u
#define OUTERMOST   1u /* of a function's flags: abi.FuncFlagTopFrame */
#define DATA_INLINE 3u /* FUNCDATA_InlTree */
#define PC_INLINE   2u /* PCDATA_InlTreeIndex */
#define NO_FILE     UINT32_MAX
#define MODULE_HEAD 64u      /* words of runtime.moduledata that are looked at */
#define MOST_STEPS  1000000u /* of one list of values */

/* --- reading ------------------------------------------------------------------------------------------------ */

static struct mw_cursor cursor_at(const struct mw_go_table *table, uint64_t offset)
{
	struct mw_cursor cursor = {.ok = true};

	if (offset > table->size)
		cursor.ok = false;
	else
		cursor = (struct mw_cursor){table->bytes + offset, table->size - offset, offset, true};
	return cursor;
}

static uint64_t number_at(const struct mw_go_table *table, uint64_t offset, size_t size, bool *good)
{
	struct mw_cursor cursor = cursor_at(table, offset);
	uint64_t value = mw_cursor_take(&cursor, size);

	*good = *good && cursor.ok;
	return value;
}

/* NULL: there is none, or it is empty. */
static const char *text_at(const struct mw_go_table *table, uint64_t base, uint64_t offset)
{
	uint64_t at = base + offset;
	const char *text;

	if (at < base || at >= table->size)
		return NULL;
	text = (const char *)table->bytes + at;
	return *text && memchr(text, '\0', table->size - at) ? text : NULL;
}

/* --- the table ---------------------------------------------------------------------------------------------- */

/* A pointer in the file; in a program that may lie anywhere it is the linker that tells the loader of it. */
struct pointers {
	const uint8_t *bytes; /* Elf64_Rela */
	uint64_t count;
};

static struct pointers pointers_of(const struct mw_elf *elf)
{
	struct mw_elf_section notes = mw_elf_section(elf, ".rela.dyn");
	struct pointers pointers = {.count = 0};

	if (notes.present)
		pointers.bytes = mw_elf_file_bytes(elf, notes.offset, notes.size);
	if (pointers.bytes)
		pointers.count = notes.size / sizeof(Elf64_Rela);
	return pointers;
}

static Elf64_Rela note_at(const struct pointers *pointers, uint64_t number)
{
	Elf64_Rela note;

	memcpy(&note, pointers->bytes + number * sizeof(note), sizeof(note));
	return note;
}

/* Where the pointer at that place will point to, by its relocation; 0: there is none. */
static uint64_t relocated(const struct pointers *pointers, uint64_t vaddr)
{
	for (uint64_t i = 0; i < pointers->count; i++) {
		Elf64_Rela note = note_at(pointers, i);

		if (note.r_offset == vaddr)
			return (uint64_t)note.r_addend;
	}
	return 0;
}

static bool is_code(const struct mw_elf *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].exec && vaddr - elf->segments[i].vaddr < elf->segments[i].file_size)
			return true;
	return false;
}

/*
 * What functions' data is counted from is a word of runtime.moduledata (`gofunc`), which begins with the address of the
 * table and has no name in a stripped program.
 */
#define MODULE_TEXT   22u
#define MODULE_GOFUNC (table->start_lines ? 40u : 38u)

static uint64_t inlined_by_words(const struct mw_go_table *table, const struct mw_elf_segment *segment, uint64_t vaddr)
{
	const uint8_t *bytes =
		segment->write ? mw_elf_file_bytes(table->elf, segment->offset, segment->file_size) : NULL;

	for (uint64_t at = -segment->vaddr & (POINTER - 1); bytes && segment->file_size >= MODULE_HEAD * POINTER &&
							    at <= segment->file_size - (uint64_t)MODULE_HEAD * POINTER;
	     at += POINTER) {
		uint64_t word, found;

		memcpy(&word, bytes + at, POINTER);
		if (word != vaddr)
			continue;
		memcpy(&word, bytes + at + (size_t)MODULE_TEXT * POINTER, POINTER);
		memcpy(&found, bytes + at + (size_t)MODULE_GOFUNC * POINTER, POINTER);
		if (word == table->text)
			return found;
	}
	return 0;
}

static uint64_t inlined_by_notes(const struct mw_go_table *table, const struct pointers *pointers, uint64_t vaddr)
{
	for (uint64_t i = 0; i < pointers->count; i++) {
		Elf64_Rela note = note_at(pointers, i);

		if ((uint64_t)note.r_addend == vaddr &&
		    relocated(pointers, note.r_offset + (uint64_t)MODULE_TEXT * POINTER) == table->text)
			return relocated(pointers, note.r_offset + (uint64_t)MODULE_GOFUNC * POINTER);
	}
	return 0;
}

static uint64_t find_inlined(const struct mw_go_table *table, const struct pointers *pointers, uint64_t vaddr)
{
	uint64_t found = inlined_by_notes(table, pointers, vaddr);

	for (size_t i = 0; !found && i < table->elf->segment_count; i++)
		found = inlined_by_words(table, &table->elf->segments[i], vaddr);
	return found;
}

/* Offsets, which follow each other in the header. */
static bool take_offsets(struct mw_go_table *table, struct mw_cursor *header)
{
	uint64_t *const offsets[] = {&table->names, &table->units, &table->files, &table->pcs, &table->functions};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		*offsets[i] = mw_cursor_take(header, POINTER);
		if (*offsets[i] > table->size)
			return false;
	}
	return header->ok;
}

static bool take_header(struct mw_go_table *table, const struct pointers *pointers, uint64_t vaddr)
{
	struct mw_cursor header = cursor_at(table, 0);
	uint64_t magic = mw_cursor_take(&header, 4), entry;

	if (magic != MAGIC_1_16 && magic != MAGIC_1_18 && magic != MAGIC_1_20)
		return false;
	table->absolute = magic == MAGIC_1_16;
	table->start_lines = magic == MAGIC_1_20;
	mw_cursor_skip(&header, 2);
	table->step = mw_cursor_take(&header, 1);
	if (mw_cursor_take(&header, 1) != POINTER || !table->step)
		return false;
	table->count = mw_cursor_take(&header, POINTER);
	mw_cursor_skip(&header, POINTER); /* files */
	if (!table->absolute) {
		table->text = mw_cursor_take(&header, POINTER);
		if (!is_code(table->elf, table->text))
			table->text = relocated(pointers, vaddr + 8 + (uint64_t)2 * POINTER);
	}
	entry = table->absolute ? 2 * POINTER : 2 * sizeof(uint32_t);
	return take_offsets(table, &header) && table->count &&
	       table->count < (table->size - table->functions) / entry &&
	       (table->absolute || is_code(table->elf, table->text));
}

/* Of a program that may lie anywhere GNU's linker puts the table among what else is to be relocated. */
static bool find_table(struct mw_go_table *table, uint64_t *vaddr)
{
	static const uint32_t magics[] = {MAGIC_1_20, MAGIC_1_18, MAGIC_1_16};
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro"};
	struct mw_elf_section section = {.present = false};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !section.present; i++)
		section = mw_elf_section(table->elf, names[i]);
	if (!section.present || section.compressed || !table->elf->is_64)
		return false;
	table->bytes = mw_elf_file_bytes(table->elf, section.offset, section.size);
	for (size_t i = 0; table->bytes && i < sizeof(magics) / sizeof(magics[0]); i++) {
		uint8_t head[8] = {0, 0, 0, 0, 0, 0, 1, POINTER};
		const uint8_t *found;

		memcpy(head, &magics[i], sizeof(magics[i]));
		found = memmem(table->bytes, section.size, head, sizeof(head));
		if (!found)
			continue;
		*vaddr = section.vaddr + (uint64_t)(found - table->bytes);
		table->size = section.size - (uint64_t)(found - table->bytes);
		table->bytes = found;
		return true;
	}
	return false;
}

bool mw_go_table_init(struct mw_go_table *table, const struct mw_elf *elf)
{
	struct pointers pointers;
	uint64_t vaddr = 0;

	*table = (struct mw_go_table){.elf = elf};
	if (!mw_elf_is_go(elf) || !find_table(table, &vaddr))
		return false;
	pointers = pointers_of(elf);
	if (!take_header(table, &pointers, vaddr))
		return false;
	/* Before 1.18 each function has the address of its data. */
	if (!table->absolute)
		table->inlined = find_inlined(table, &pointers, vaddr);
	return true;
}

static struct mw_error *make_table(struct mw_elf *elf, const void *context, void **out)
{
	struct mw_go_table *table = calloc(1, sizeof(*table));

	(void)context;
	if (!table)
		return mw_error_nomem();
	if (!mw_go_table_init(table, elf))
		table->count = 0;
	*out = table;
	return NULL;
}

struct mw_error *mw_go_table_of(struct mw_elf *elf, const struct mw_go_table **out)
{
	static const struct mw_elf_fact_kind kind = {make_table, free};
	static const uint64_t key[2]; /* there is one for a file */
	const void *found = NULL;

	MW_TRY(mw_elf_fact(elf, &kind, key, NULL, &found));
	*out = ((const struct mw_go_table *)found)->count ? found : NULL;
	return NULL;
}

/* --- functions ---------------------------------------------------------------------------------------------- */

/* The start of function `number`, or where the last one ends; and its record. */
static uint64_t entry_at(const struct mw_go_table *table, uint64_t number, uint64_t *record, bool *good)
{
	size_t size = table->absolute ? POINTER : sizeof(uint32_t);
	uint64_t at = table->functions + number * 2 * size;
	uint64_t start = number_at(table, at, size, good);

	*record = 0;
	if (number < table->count)
		*record = table->functions + number_at(table, at + size, size, good);
	return table->absolute ? start : table->text + start;
}

/* Where the fields of a record stand behind its begin. */
static uint64_t field(const struct mw_go_table *table, unsigned number)
{
	return (table->absolute ? POINTER : sizeof(uint32_t)) + (uint64_t)number * sizeof(uint32_t);
}

enum { FIELD_NAME = 0, FIELD_SIZES = 3, FIELD_FILES, FIELD_LINES, FIELD_VALUES, FIELD_UNIT, FIELD_START_LINE };

static uint64_t field_at(const struct mw_go_table *table, const struct mw_go_function *function, unsigned number,
			 bool *good)
{
	return number_at(table, function->record + field(table, number), sizeof(uint32_t), good);
}

/* Behind the numbers: what kind of function it is, flags, a byte that is not used, and how much data it has. */
static uint64_t tail_of(const struct mw_go_table *table)
{
	return field(table, table->start_lines ? FIELD_START_LINE + 1 : FIELD_START_LINE);
}

/* Of 1.16, which has no flags. */
static bool is_outermost(const char *name)
{
	static const char *const names[] = {"runtime.goexit", "runtime.mstart", "runtime.rt0_go", "runtime.mcall"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

bool mw_go_function_at(const struct mw_go_table *table, uint64_t number, struct mw_go_function *out)
{
	uint64_t next;
	bool good = number < table->count;

	if (!good)
		return false;
	out->start = entry_at(table, number, &out->record, &good);
	out->end = entry_at(table, number + 1, &next, &good);
	out->name = text_at(table, table->names, field_at(table, out, FIELD_NAME, &good));
	if (!good || !out->name || out->end <= out->start || !is_code(table->elf, out->start) ||
	    !is_code(table->elf, out->end - 1))
		return false;
	out->outermost = table->absolute ? is_outermost(out->name)
					 : number_at(table, out->record + tail_of(table) + 1, 1, &good) & OUTERMOST;
	return good;
}

bool mw_go_function_find(const struct mw_go_table *table, uint64_t vaddr, struct mw_go_function *out)
{
	uint64_t low = 0, high = table->count, record;
	bool good = true;

	while (low < high && good) { /* the first that begins behind vaddr */
		uint64_t middle = low + (high - low) / 2;

		if (entry_at(table, middle, &record, &good) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return good && low && mw_go_function_at(table, low - 1, out) && vaddr - out->start < out->end - out->start;
}

uint64_t mw_go_code_size(const struct mw_go_table *table)
{
	uint64_t record;
	bool good = true;
	uint64_t start = entry_at(table, 0, &record, &good), end = entry_at(table, table->count, &record, &good);

	return good && end > start ? end - start : 0;
}

/* --- values by place ---------------------------------------------------------------------------------------- */

static struct mw_go_values values_at(const struct mw_go_table *table, const struct mw_go_function *function,
				     uint64_t offset)
{
	return (struct mw_go_values){
		.table = table,
		.at = offset ? table->pcs + offset : UINT64_MAX, /* 0: there are none */
		.start = function->start,
		.end = function->start,
		.value = -1,
	};
}

struct mw_go_values mw_go_frame_sizes(const struct mw_go_table *table, const struct mw_go_function *function)
{
	bool good = true;
	uint64_t offset = field_at(table, function, FIELD_SIZES, &good);

	return values_at(table, function, good ? offset : 0);
}

/* Pairs of how far the value is from the last, and for how long it is good; a value that stays ends them. */
bool mw_go_values_next(struct mw_go_values *values)
{
	bool first = values->start == values->end && values->value == -1;
	struct mw_cursor cursor = cursor_at(values->table, values->at);
	uint64_t change = mw_cursor_uleb(&cursor), length = mw_cursor_uleb(&cursor);

	if (!cursor.ok || (!change && !first) || change > UINT32_MAX || length > UINT32_MAX)
		return false;
	values->value += (int32_t)((uint32_t)change >> 1 ^ -((uint32_t)change & 1));
	values->at = cursor.vaddr;
	values->start = values->end;
	values->end += length * values->table->step;
	return values->end > values->start;
}

/* -1: there is none. */
static int32_t value_of(struct mw_go_values values, uint64_t vaddr)
{
	for (unsigned i = 0; i < MOST_STEPS && mw_go_values_next(&values); i++)
		if (vaddr < values.end)
			return values.value;
	return -1;
}

static int32_t field_value(const struct mw_go_table *table, const struct mw_go_function *function, unsigned number,
			   uint64_t vaddr)
{
	bool good = true;
	uint64_t offset = field_at(table, function, number, &good);

	return good ? value_of(values_at(table, function, offset), vaddr) : -1;
}

/* --- lines -------------------------------------------------------------------------------------------------- */

/* A call that was inlined, as the runtime has it: where its function's name is, and a place of the call itself. */
struct inlined {
	uint32_t name, parent;
};

/* The tree of a function's inlined calls, as vaddr; 0: it has none, or that is not known. */
static uint64_t tree_of(const struct mw_go_table *table, const struct mw_go_function *function)
{
	uint64_t tail = function->record + tail_of(table), at;
	bool good = true;
	uint64_t values = field_at(table, function, FIELD_VALUES, &good), data = number_at(table, tail + 3, 1, &good);
	uint64_t offset;

	if (!good || !table->inlined || values <= PC_INLINE || data <= DATA_INLINE)
		return 0;
	at = tail + sizeof(uint32_t) * (1 + values + DATA_INLINE);
	offset = number_at(table, at, sizeof(uint32_t), &good);
	return good && offset != UINT32_MAX ? table->inlined + offset : 0;
}

static bool inlined_at(const struct mw_go_table *table, uint64_t tree, uint32_t index, struct inlined *out)
{
	size_t size = table->start_lines ? 16 : 20, name = table->start_lines ? 4 : 12;
	const uint8_t *bytes = mw_elf_span(table->elf, tree + (uint64_t)index * size, size);

	if (!bytes)
		return false;
	memcpy(&out->name, bytes + name, sizeof(out->name));
	memcpy(&out->parent, bytes + name + sizeof(out->name), sizeof(out->parent));
	return true;
}

/* Which of them `vaddr` is in; -1: in none. */
static int32_t inlined_index(const struct mw_go_table *table, const struct mw_go_function *function, uint64_t vaddr)
{
	bool good = true;
	uint64_t at = function->record + tail_of(table) + sizeof(uint32_t) * (1 + PC_INLINE);
	uint64_t offset = number_at(table, at, sizeof(uint32_t), &good);

	return good ? value_of(values_at(table, function, offset), vaddr) : -1;
}

static void place(const struct mw_go_table *table, const struct mw_go_function *function, uint64_t vaddr,
		  struct mw_go_frame *frame)
{
	int32_t file = field_value(table, function, FIELD_FILES, vaddr), line;
	bool good = file >= 0;
	uint64_t unit = good ? field_at(table, function, FIELD_UNIT, &good) : 0, offset;

	frame->file = NULL;
	frame->line = 0;
	if (!good)
		return;
	offset = number_at(table, table->units + (unit + (uint64_t)file) * sizeof(uint32_t), sizeof(uint32_t), &good);
	if (!good || offset == NO_FILE)
		return;
	frame->file = text_at(table, table->files, offset);
	line = field_value(table, function, FIELD_LINES, vaddr);
	if (frame->file && line > 0)
		frame->line = (uint32_t)line;
}

size_t mw_go_frames(const struct mw_go_table *table, const struct mw_go_function *function, uint64_t vaddr,
		    struct mw_go_frame out[MW_GO_INLINED])
{
	uint64_t tree = tree_of(table, function);
	size_t count = 0;

	while (tree && count + 1 < MW_GO_INLINED) {
		int32_t index = inlined_index(table, function, vaddr);
		struct inlined call;

		if (index < 0 || !inlined_at(table, tree, (uint32_t)index, &call) ||
		    call.parent >= function->end - function->start)
			break;
		out[count].function = text_at(table, table->names, call.name);
		if (!out[count].function)
			break;
		place(table, function, vaddr, &out[count++]);
		vaddr = function->start + call.parent;
	}
	place(table, function, vaddr, &out[count]);
	out[count++].function = function->name;
	return count;
}

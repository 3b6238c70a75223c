// SPDX-License-Identifier: MIT
/* rows.c: a file's frame descriptions compiled to rows (rows.h). */
#include "unwind/rows.h"

#include "base/hash.h"
#include "base/vector.h"
#include "unwind/rows_cfi.h"
#include "unwind/rows_list.h"

#include <stdlib.h>
#include <string.h>

#define ROW_NONE mw_row(MW_ROW_NONE, 0, MW_ROW_FP_SAME, 0)
#define ROW_SLOW mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0)

static uint32_t hash_of_row(const void *rows, uint32_t index)
{
	return (uint32_t)mw_hash_mix(((const uint64_t *)rows)[index]);
}

struct mw_error *mw_row_dictionary_add(struct mw_row_dictionary *dictionary, uint64_t row, uint32_t *index)
{
	uint32_t hash = hash_of_row(&row, 0), found;

	MW_INDEX_EACH(&dictionary->index, hash, found) {
		if (dictionary->rows[found] == row) {
			*index = found;
			return NULL;
		}
	}
	if (!mw_index_reserve(&dictionary->index, hash_of_row, dictionary->rows) ||
	    !MW_VECTOR_ROOM(dictionary->rows, dictionary->index.count, dictionary->capacity))
		return mw_error_nomem();
	*index = mw_index_put(&dictionary->index, hash);
	dictionary->rows[*index] = row;
	return NULL;
}

void mw_row_dictionary_deinit(struct mw_row_dictionary *dictionary)
{
	free(dictionary->rows);
	mw_index_deinit(&dictionary->index);
	*dictionary = (struct mw_row_dictionary){0};
}

/* Rows being made of one section's descriptions. */
struct maker {
	const struct mw_frame_bytes *bytes;
	const struct mw_arch *arch;
	struct mw_row_dictionary *dictionary;
	struct mw_rows rows;
	size_t capacity;
	uint64_t end; /* of the code that there are rows for */

	/* The description that rows were made of last. */
	struct rows_described last;
	struct mw_frame_cie last_cie;
	struct mw_cursor last_program;

	struct mw_frame_cie cie; /* of the description at hand */
	uint64_t initial_of;     /* where the CIE begins that `initial` and `initial_good` are of; UINT64_MAX: none */
	struct rows_rules initial;
	bool initial_good;
	struct rows_run run;
};

/* From vaddr on it is this row. Equal ones that follow each other are one. */
static struct mw_error *push(struct maker *maker, uint64_t vaddr, uint32_t row)
{
	struct mw_rows *rows = &maker->rows;

	if (rows->count && rows->items[rows->count - 1].row == row)
		return NULL;
	if (!MW_VECTOR_ROOM(rows->items, rows->count, maker->capacity))
		return mw_error_nomem();
	rows->items[rows->count++] = (struct mw_ring_row){(uint32_t)(vaddr - rows->base), row};
	return NULL;
}

static struct mw_error *push_row(struct maker *maker, uint64_t vaddr, uint64_t row)
{
	uint32_t index = 0;

	MW_TRY(mw_row_dictionary_add(maker->dictionary, row, &index));
	return push(maker, vaddr, index);
}

/* Take back all that was said of `from` and what follows, and say that rows can't tell. */
static struct mw_error *make_slow(struct maker *maker, uint64_t from, uint64_t end)
{
	struct mw_rows *rows = &maker->rows;

	while (rows->count && rows->items[rows->count - 1].pc >= from - rows->base)
		rows->count--;
	if (end > maker->end)
		maker->end = end;
	rows->slow++;
	return push_row(maker, from, ROW_SLOW);
}

/* The rules that the CIE at hand begins with, or NULL. They are made once for the descriptions in a row that share it.
 */
static const struct rows_rules *initial_rules(struct maker *maker)
{
	if (maker->initial_of != maker->cie.vaddr) {
		maker->initial_of = maker->cie.vaddr;
		maker->initial_good = rows_begin(&maker->cie, maker->arch, &maker->initial);
	}
	return maker->initial_good ? &maker->initial : NULL;
}

static struct mw_error *run_program(struct maker *maker, const struct rows_described *described,
				    const struct mw_frame_description *description)
{
	const struct rows_rules *initial = initial_rules(maker);
	uint64_t at = described->start, row, next;
	bool slow = false;

	maker->end = described->end;
	if (!initial && maker->cie.signal)
		return push_row(maker, at, mw_row(MW_ROW_SIGNAL, 0, MW_ROW_FP_SAME, 0));
	if (!initial)
		return make_slow(maker, at, maker->end);
	rows_start(&maker->run, &maker->cie, maker->arch, initial, description);
	for (; at < described->end; at = next) {
		if (!rows_step(&maker->run, &row, &next))
			return make_slow(maker, described->start, maker->end);
		slow = slow || mw_row_kind(row) == MW_ROW_SLOW;
		MW_TRY(push_row(maker, at, row));
	}
	maker->rows.slow += slow;
	return NULL;
}

/* The same once more, as linkers leave it that have folded equal functions into one. */
static bool is_last_again(const struct maker *maker, const struct rows_described *described,
			  const struct mw_frame_description *description)
{
	return described->start == maker->last.start && described->end == maker->last.end &&
	       maker->cie.vaddr == maker->last_cie.vaddr && description->program.left == maker->last_program.left &&
	       memcmp(description->program.at, maker->last_program.at, maker->last_program.left) == 0;
}

static struct mw_error *make_function(struct maker *maker, const struct rows_described *described)
{
	struct mw_frame_description description;
	struct mw_frame_record record;

	if (!mw_frame_open(maker->bytes, described->record, &record) ||
	    !mw_frame_describe(maker->bytes, &record, &maker->cie, &description))
		return NULL; /* it could be read when it was listed */
	if (maker->rows.functions && is_last_again(maker, described, &description))
		return NULL;
	maker->last = *described;
	maker->last_cie = maker->cie;
	maker->last_program = description.program;
	/* Two descriptions of the same code: which of them is true can't be known. */
	maker->rows.functions++;
	if (described->start < maker->end)
		return make_slow(maker, described->start, described->end);
	if (maker->rows.count && described->start > maker->end)
		MW_TRY(push_row(maker, maker->end, ROW_NONE));
	return run_program(maker, described, &description);
}

/* Rows of all that is listed of a section. *rows has a base; on failure it has what there is by then. */
static struct mw_error *make_rows(const struct rows_list *list, const struct mw_arch *arch,
				  struct mw_row_dictionary *dictionary, struct mw_rows *rows)
{
	struct maker maker = {
		.bytes = &list->bytes,
		.arch = arch,
		.dictionary = dictionary,
		.rows = *rows,
		.initial_of = UINT64_MAX,
	};
	struct mw_error *err = NULL;

	for (size_t i = 0; i < list->count && !err; i++)
		err = make_function(&maker, &list->items[i]);
	if (!err && maker.rows.count)
		err = push_row(&maker, maker.end, ROW_NONE);
	*rows = maker.rows;
	return err;
}

/* Rows of `rows`, and of `more` where these have MW_ROW_NONE. Both have the same base. */
static struct mw_error *merge(struct mw_rows *rows, const struct mw_rows *more, uint32_t none)
{
	struct maker maker = {.rows.base = rows->base};
	uint32_t row[2] = {none, none};
	size_t i = 0, j = 0;
	struct mw_error *err = NULL;

	while (!err && (i < rows->count || j < more->count)) {
		uint32_t pc = UINT32_MAX;

		if (i < rows->count)
			pc = rows->items[i].pc;
		if (j < more->count && more->items[j].pc < pc)
			pc = more->items[j].pc;
		if (i < rows->count && rows->items[i].pc == pc)
			row[0] = rows->items[i++].row;
		if (j < more->count && more->items[j].pc == pc)
			row[1] = more->items[j++].row;
		err = push(&maker, rows->base + pc, row[0] != none ? row[0] : row[1]);
	}
	if (err) {
		mw_rows_deinit(&maker.rows);
		return err;
	}
	free(rows->items);
	rows->items = maker.rows.items;
	rows->count = maker.rows.count;
	rows->functions += more->functions;
	rows->slow += more->slow;
	return NULL;
}

/* Take out what there are rows for already. */
static void drop_known(struct rows_list *list, const struct mw_rows *rows, const struct mw_row_dictionary *dictionary)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (mw_row_kind(mw_rows_find(rows, dictionary, list->items[i].start)) == MW_ROW_NONE ||
		    mw_row_kind(mw_rows_find(rows, dictionary, list->items[i].end - 1)) == MW_ROW_NONE)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

static struct mw_error *make_all(struct rows_list *eh, struct rows_list *debug, const struct mw_arch *arch,
				 struct mw_row_dictionary *dictionary, struct mw_rows *rows)
{
	struct mw_rows more = {0};
	struct mw_error *err;
	uint32_t none;

	rows->base = eh->count ? eh->items[0].start : UINT64_MAX;
	if (debug->count && debug->items[0].start < rows->base)
		rows->base = debug->items[0].start;
	more.base = rows->base;
	rows_list_cut(eh, rows->base);
	rows_list_cut(debug, rows->base);
	MW_TRY(mw_row_dictionary_add(dictionary, ROW_NONE, &none));
	MW_TRY(make_rows(eh, arch, dictionary, rows));
	drop_known(debug, rows, dictionary);
	if (!debug->count)
		return NULL;
	err = make_rows(debug, arch, dictionary, &more);
	if (!err)
		err = merge(rows, &more, none);
	mw_rows_deinit(&more);
	return err;
}

static struct mw_error *compile(const struct mw_elf *elf, bool eh_frame, const struct mw_arch *arch,
				struct mw_row_dictionary *dictionary, struct mw_rows *out)
{
	struct rows_list eh = {0}, debug = {0};
	struct mw_rows rows = {0};
	struct mw_error *err = eh_frame ? rows_list_eh_frame(elf, &eh) : NULL;

	if (!err)
		err = rows_list_debug_frame(elf, &debug);
	if (!err && (eh.count || debug.count))
		err = make_all(&eh, &debug, arch, dictionary, &rows);
	rows_list_deinit(&eh);
	rows_list_deinit(&debug);
	if (err)
		mw_rows_deinit(&rows);
	else
		*out = rows;
	return err;
}

struct mw_error *mw_rows_compile(const struct mw_elf *elf, const struct mw_arch *arch,
				 struct mw_row_dictionary *dictionary, struct mw_rows *out)
{
	return compile(elf, true, arch, dictionary, out);
}

struct mw_error *mw_rows_compile_debug_frame(const struct mw_elf *elf, const struct mw_arch *arch,
					     struct mw_row_dictionary *dictionary, struct mw_rows *out)
{
	return compile(elf, false, arch, dictionary, out);
}

/* Bytes of what is listed, each once. */
static uint64_t described_bytes(const struct rows_list *list)
{
	uint64_t bytes = 0, end = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct rows_described *item = &list->items[i];
		uint64_t from = item->start > end ? item->start : end;

		if (item->end <= from)
			continue;
		bytes += item->end - from;
		end = item->end;
	}
	return bytes;
}

struct mw_error *mw_rows_undescribed(const struct mw_elf *elf, uint64_t *code, uint64_t *undescribed)
{
	struct rows_list eh = {0}, debug = {0};
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count;
	struct mw_error *err = rows_list_eh_frame(elf, &eh);
	uint64_t all = 0, described;

	if (!err)
		err = rows_list_debug_frame(elf, &debug);
	for (size_t i = 0; i < count; i++)
		all += segments[i].exec ? segments[i].file_size : 0;
	/* A file has one or the other for most of its code. */
	described = described_bytes(&eh);
	if (described_bytes(&debug) > described)
		described = described_bytes(&debug);
	rows_list_deinit(&eh);
	rows_list_deinit(&debug);
	MW_TRY(err);
	*code = all;
	*undescribed = all > described ? all - described : 0;
	return NULL;
}

void mw_rows_deinit(struct mw_rows *rows)
{
	free(rows->items);
	*rows = (struct mw_rows){0};
}

uint64_t mw_rows_find(const struct mw_rows *rows, const struct mw_row_dictionary *dictionary, uint64_t vaddr)
{
	size_t low = 0, high = rows->count;

	if (vaddr < rows->base || vaddr - rows->base > UINT32_MAX)
		return ROW_NONE;
	while (low < high) { /* the first row that begins behind vaddr */
		size_t middle = low + (high - low) / 2;

		if (rows->items[middle].pc <= vaddr - rows->base)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? dictionary->rows[rows->items[low - 1].row] : ROW_NONE;
}

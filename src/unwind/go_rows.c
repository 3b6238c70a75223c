// SPDX-License-Identifier: MIT
/* go_rows.c: see go_rows.h. */
#include "unwind/go_rows.h"

#include "base/vector.h"

#include <string.h>

#define WORD 8

struct maker {
	struct mw_row_dictionary *dictionary;
	struct mw_rows *rows;
	size_t capacity;
	uint64_t end; /* of the code that there are rows for */
};

static struct mw_error *push(struct maker *maker, uint64_t vaddr, uint64_t row)
{
	struct mw_rows *rows = maker->rows;
	uint32_t index = 0;

	MW_TRY(mw_row_dictionary_add(maker->dictionary, row, &index));
	if (rows->count && rows->items[rows->count - 1].row == index)
		return NULL;
	if (!MW_VECTOR_ROOM(rows->items, rows->count, maker->capacity))
		return mw_error_nomem();
	rows->items[rows->count++] = (struct mw_ring_row){(uint32_t)(vaddr - rows->base), index};
	return NULL;
}

/*
 * What runs code on another stack, and keeps the frame pointer of what called it: that of runtime.cgocall, for one, so
 * that the next frame is the one that has called cgocall.
 */
static bool switches_stack(const char *function)
{
	return strcmp(function, "runtime.asmcgocall") == 0 || strcmp(function, "runtime.systemstack") == 0;
}

/*
 * C has called back into Go: this goes on with the goroutine that has called C, as if what that had called last, a function
 * without a frame, had called it. That one's address stands there for Go's tracebacks, and has never been called: it is
 * passed over.
 */
static bool calls_back(const char *function)
{
	return strcmp(function, "runtime.cgocallback") == 0;
}

/* A function that is compiled saves the frame pointer right below the return address, as do most in assembler. */
static bool saves_frame_pointer(const char *function)
{
	return strcmp(function, "crosscall2") != 0;
}

static uint64_t row_of(const struct mw_go_function *function, int32_t size)
{
	if (size < 0 || size % WORD || size > INT32_MAX - 2 * WORD)
		return mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0);
	if (size == 0)
		return mw_row(MW_ROW_SP, WORD, MW_ROW_FP_SAME, 0);
	if (calls_back(function->name))
		return mw_row(MW_ROW_SP, size + 2 * WORD, MW_ROW_FP_LOST, 0);
	return mw_row(MW_ROW_SP, size + WORD, saves_frame_pointer(function->name) ? MW_ROW_FP_SAVED : MW_ROW_FP_LOST,
		      -2 * WORD);
}

static struct mw_error *make_function(struct maker *maker, const struct mw_go_table *table,
				      const struct mw_go_function *function)
{
	struct mw_go_values sizes = mw_go_frame_sizes(table, function);
	uint64_t end = function->start;

	maker->rows->functions++;
	if (function->outermost)
		return push(maker, function->start, mw_row(MW_ROW_END, 0, MW_ROW_FP_LOST, 0));
	if (switches_stack(function->name))
		return push(maker, function->start, mw_row(MW_ROW_SWITCH, 2 * WORD, MW_ROW_FP_SAVED, -2 * WORD));
	for (; mw_go_values_next(&sizes) && sizes.start < function->end; end = sizes.end)
		MW_TRY(push(maker, sizes.start, row_of(function, sizes.value)));
	return end < function->end ? push(maker, end, mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0)) : NULL;
}

struct mw_error *mw_go_rows(const struct mw_go_table *table, struct mw_row_dictionary *dictionary, struct mw_rows *rows)
{
	struct maker maker = {.dictionary = dictionary, .rows = rows};
	const uint64_t none = mw_row(MW_ROW_NONE, 0, MW_ROW_FP_SAME, 0);

	for (uint64_t i = 0; i < table->count; i++) {
		struct mw_go_function function;

		if (!mw_go_function_at(table, i, &function) || function.start < maker.end ||
		    function.start < rows->base || function.end - rows->base > UINT32_MAX)
			continue;
		if (maker.end && function.start > maker.end)
			MW_TRY(push(&maker, maker.end, none));
		MW_TRY(make_function(&maker, table, &function));
		maker.end = function.end;
	}
	return maker.end ? push(&maker, maker.end, none) : NULL;
}

// SPDX-License-Identifier: MIT
/* html_rows.c: see html_rows.h. */
#include "output/html_rows.h"

#define NUMBER_MAX 10u /* bytes */
#define ROW_MAX    (9u * NUMBER_MAX)

struct row_bytes {
	uint8_t bytes[ROW_MAX];
	size_t size;
};

static void put(struct row_bytes *row, uint64_t number)
{
	for (; number > 127; number >>= 7)
		row->bytes[row->size++] = (uint8_t)(number | 128);
	row->bytes[row->size++] = (uint8_t)number;
}

static void put_difference(struct row_bytes *row, uint32_t value, uint32_t before)
{
	int64_t difference = (int64_t)value - before;

	put(row, difference < 0 ? 2 * (uint64_t)-difference - 1 : 2 * (uint64_t)difference);
}

/* 0: it lives; else how many bins it lived, plus 1: from the first where it came before that. */
static uint64_t died_after(const struct mw_timeline_row *row)
{
	return row->died ? (uint64_t)row->died - (row->born ? row->born - 1u : 0) : 0;
}

static uint64_t put_bytes(const struct row_bytes *row, FILE *out)
{
	if (out)
		fwrite(row->bytes, 1, row->size, out);
	return row->size;
}

uint64_t mw_html_put_cells(const struct mw_timeline_table *cells, FILE *out)
{
	struct mw_timeline_row before = {{0}, 0, 0, 0, 0, 0, 0};
	uint64_t size = 0;

	for (size_t i = 0; i < cells->count; i++) {
		const struct mw_timeline_row *row = &cells->rows[i];
		struct row_bytes bytes = {.size = 0};

		put_difference(&bytes, row->key[0], before.key[0]);
		put(&bytes, row->key[1]);
		put(&bytes, row->key[2]);
		put_difference(&bytes, row->born, before.born);
		put(&bytes, died_after(row));
		put(&bytes, row->count);
		put(&bytes, row->bytes);
		put(&bytes, row->unknown);
		put(&bytes, row->lived_ns);
		size += put_bytes(&bytes, out);
		before = *row;
	}
	return size;
}

uint64_t mw_html_put_lifetimes(const struct mw_timeline_table *lifetimes, FILE *out)
{
	uint32_t before = 0;
	uint64_t size = 0;

	for (size_t i = 0; i < lifetimes->count; i++) {
		const struct mw_timeline_row *row = &lifetimes->rows[i];
		struct row_bytes bytes = {.size = 0};

		put_difference(&bytes, row->key[0], before);
		put(&bytes, row->key[1]);
		put(&bytes, row->key[2]);
		put(&bytes, row->born);
		put(&bytes, died_after(row));
		put(&bytes, row->count);
		put(&bytes, row->bytes);
		size += put_bytes(&bytes, out);
		before = row->key[0];
	}
	return size;
}

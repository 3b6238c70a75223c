// SPDX-License-Identifier: MIT
/* html_rows.c: see html_rows.h. A column after the other: numbers that are alike pack well. */
#include "output/html_rows.h"

#define NUMBER_MAX 10u /* bytes */
#define EACH_MOST  (UINT64_C(1) << 32)
#define COUNT_MOST (UINT64_C(1) << 20)
#define SUM_MOST   (UINT64_C(1) << 46)
#define MEAN_BITS  8u

/* A row, what stood before it, and what its blocks have on average if they are like those before them. */
struct place {
	const struct mw_timeline_row *row, *before;
	uint64_t each;
};

typedef uint64_t column_fn(const struct place *place);

static uint64_t zigzag(int64_t value)
{
	return value < 0 ? 2 * (uint64_t) - (value + 1) + 1 : 2 * (uint64_t)value;
}

static uint64_t first_key(const struct place *place)
{
	return zigzag((int64_t)place->row->key[0] - place->before->key[0]);
}

static uint64_t second_key(const struct place *place)
{
	return place->row->key[1];
}

static uint64_t third_key(const struct place *place)
{
	return place->row->key[2];
}

static uint64_t born(const struct place *place)
{
	return zigzag((int64_t)place->row->born - place->before->born);
}

/* 0: it lives; else how many bins it lived, plus 1: from the first where it came before that. */
static uint64_t died(const struct place *place)
{
	const struct mw_timeline_row *row = place->row;

	return row->died ? (uint64_t)row->died - (row->born ? row->born - 1u : 0) : 0;
}

static uint64_t count(const struct place *place)
{
	return place->row->count;
}

/* Less what is expected. The page counts in doubles: what is not exact in these is not multiplied. */
static uint64_t bytes(const struct place *place)
{
	const struct mw_timeline_row *row = place->row;
	uint64_t expected = row->count <= COUNT_MOST && place->each <= EACH_MOST ? row->count * place->each : 0;

	return zigzag((int64_t)(row->bytes - expected));
}

static uint64_t unknown(const struct place *place)
{
	return place->row->unknown;
}

/* On average, with MEAN_BITS bits: that many, and how many follow them. */
static uint64_t lived(const struct place *place)
{
	const struct mw_timeline_row *row = place->row;
	uint64_t mean = row->count ? row->lived_ns / row->count : 0;
	unsigned int shift = 0;

	while (mean >> shift >> MEAN_BITS)
		shift++;
	mean = shift ? ((mean >> (shift - 1)) + 1) >> 1 : mean;
	/* Rounded up to one bit more, it is the first of the next size. */
	return ((uint64_t)shift << (MEAN_BITS - 1)) + mean;
}

static column_fn *const cell_columns[] = {first_key, second_key, third_key, born, died, count, bytes, unknown, lived};
static column_fn *const lifetime_columns[] = {first_key, second_key, third_key, born, died, count, bytes};

static uint64_t put(uint64_t number, FILE *out)
{
	uint8_t digits[NUMBER_MAX];
	size_t size = 0;

	for (; number > 127; number >>= 7)
		digits[size++] = (uint8_t)(number | 128);
	digits[size++] = (uint8_t)number;
	if (out)
		fwrite(digits, 1, size, out);
	return size;
}

static uint64_t put_column(const struct mw_timeline_table *table, column_fn *column, FILE *out)
{
	static const struct mw_timeline_row nothing;
	struct place place = {.before = &nothing};
	uint64_t size = 0, blocks = 0, sum = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct mw_timeline_row *row = place.row = &table->rows[i];

		if (row->key[0] != place.before->key[0])
			blocks = sum = 0;
		place.each = blocks && sum < SUM_MOST ? sum / blocks : 0;
		size += put(column(&place), out);
		blocks += row->count;
		sum += row->bytes;
		place.before = row;
	}
	return size;
}

static uint64_t put_table(const struct mw_timeline_table *table, column_fn *const *columns, size_t column_count,
			  FILE *out)
{
	uint64_t size = 0;

	for (size_t i = 0; i < column_count; i++)
		size += put_column(table, columns[i], out);
	return size;
}

uint64_t mw_html_put_cells(const struct mw_timeline_table *cells, FILE *out)
{
	return put_table(cells, cell_columns, sizeof(cell_columns) / sizeof(cell_columns[0]), out);
}

uint64_t mw_html_put_lifetimes(const struct mw_timeline_table *lifetimes, FILE *out)
{
	return put_table(lifetimes, lifetime_columns, sizeof(lifetime_columns) / sizeof(lifetime_columns[0]), out);
}

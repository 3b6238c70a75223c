// SPDX-License-Identifier: MIT
/* rows_dictionary.c: rows, each once (rows.h). */
#include "unwind/rows.h"

#include <stdlib.h>

#define FIRST_BUCKETS 1024u /* a power of two */

static uint32_t bucket_of(const struct mw_row_dictionary *dictionary, uint64_t row)
{
	uint64_t hash = row * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(hash >> 32) & (dictionary->bucket_count - 1);
}

/* The bucket that has the row, or the empty one that it belongs into. */
static uint32_t *find(const struct mw_row_dictionary *dictionary, uint64_t row)
{
	uint32_t bucket = bucket_of(dictionary, row), held;

	while ((held = dictionary->buckets[bucket]) && dictionary->rows[held - 1] != row)
		bucket = (bucket + 1) & (dictionary->bucket_count - 1);
	return &dictionary->buckets[bucket];
}

/* Twice the room, or the first. Half of the buckets at most are taken. */
static struct mw_error *grow(struct mw_row_dictionary *dictionary)
{
	uint32_t bucket_count = dictionary->bucket_count ? dictionary->bucket_count * 2 : FIRST_BUCKETS;
	uint32_t *buckets;
	uint64_t *rows;

	if (dictionary->bucket_count > UINT32_MAX / 4)
		return mw_error_nomem();
	rows = realloc(dictionary->rows, bucket_count / 2 * sizeof(*rows));
	if (!rows)
		return mw_error_nomem();
	dictionary->rows = rows;
	buckets = calloc(bucket_count, sizeof(*buckets));
	if (!buckets)
		return mw_error_nomem();
	free(dictionary->buckets);
	dictionary->buckets = buckets;
	dictionary->bucket_count = bucket_count;
	dictionary->capacity = bucket_count / 2;
	for (uint32_t i = 0; i < dictionary->count; i++)
		*find(dictionary, rows[i]) = i + 1;
	return NULL;
}

struct mw_error *mw_row_dictionary_add(struct mw_row_dictionary *dictionary, uint64_t row, uint32_t *index)
{
	uint32_t *held = dictionary->bucket_count ? find(dictionary, row) : NULL;

	if (!held || (!*held && dictionary->count == dictionary->capacity)) {
		MW_TRY(grow(dictionary));
		held = find(dictionary, row);
	}
	if (!*held) {
		dictionary->rows[dictionary->count] = row;
		*held = ++dictionary->count;
	}
	*index = *held - 1;
	return NULL;
}

void mw_row_dictionary_deinit(struct mw_row_dictionary *dictionary)
{
	free(dictionary->rows);
	free(dictionary->buckets);
	*dictionary = (struct mw_row_dictionary){0};
}

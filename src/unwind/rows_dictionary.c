// SPDX-License-Identifier: MIT
/* rows_dictionary.c: rows, each once (rows.h). */
#include "unwind/rows.h"

#include "base/hash.h"
#include "base/vector.h"

#include <stdlib.h>

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

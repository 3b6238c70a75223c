// SPDX-License-Identifier: MIT
/* file_rows.c: what is compiled of a file once for all who have its image (rows.h). */
#include "unwind/rows.h"

#include <stdlib.h>

static const uint64_t key[2]; /* there is one for a file, which is of one architecture */

static void destroy(void *fact)
{
	struct mw_file_rows *rows = fact;

	mw_rows_deinit(&rows->rows);
	mw_row_dictionary_deinit(&rows->dictionary);
	free(rows);
}

static struct mw_error *make(struct mw_elf *elf, const void *context, void **out)
{
	struct mw_file_rows *rows = calloc(1, sizeof(*rows));
	struct mw_error *err;

	if (!rows)
		return mw_error_nomem();
	err = mw_rows_compile(elf, MW_ROWS_OF_ALL, context, &rows->dictionary, &rows->rows);
	if (!err)
		err = mw_generated_code_find(elf, &rows->generated);
	if (err)
		destroy(rows);
	else
		*out = rows;
	return err;
}

static const struct mw_elf_fact_kind kind = {make, destroy};

struct mw_error *mw_file_rows_get(struct mw_elf *elf, const struct mw_arch *arch, const struct mw_file_rows **out)
{
	const void *rows = NULL;

	MW_TRY(mw_elf_fact(elf, &kind, key, arch, &rows));
	*out = rows;
	return NULL;
}

void mw_file_rows_drop(struct mw_elf *elf)
{
	mw_elf_forget(elf, &kind, key);
}

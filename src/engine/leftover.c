// SPDX-License-Identifier: MIT
/* leftover.c: what killed memwatches have left, of both engines (leftover.h). */
#include "engine/leftover.h"

#include "target/journal.h"

#include <stdlib.h>
#include <string.h>

struct mw_error *mw_leftover_look(pid_t pid, struct mw_leftover *out)
{
	struct mw_leftover leftover = {.journal = calloc(1, sizeof(struct mw_journal))};
	struct mw_error *err;

	if (!leftover.journal)
		return mw_error_nomem();
	err = jump_leftover_look(pid, &leftover);
	if (!err)
		err = trap_leftover_look(pid, &leftover);
	leftover.functions = leftover.journal->count;
	if (err)
		mw_leftover_deinit(&leftover);
	else
		*out = leftover;
	return err;
}

void mw_leftover_deinit(struct mw_leftover *leftover)
{
	if (leftover->journal)
		mw_journal_deinit(leftover->journal);
	free(leftover->journal);
	*leftover = (struct mw_leftover){.found = false};
}

void mw_leftover_hide(const struct mw_leftover *leftover, mw_addr addr, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; leftover->journal && i < leftover->journal->count; i++) {
		const struct mw_patch *patch = &leftover->journal->items[i];

		for (size_t j = 0; j < patch->size; j++)
			if (patch->addr + j - addr < size)
				bytes[patch->addr + j - addr] = patch->original[j];
	}
}

struct mw_error *mw_leftover_remove(pid_t pid, char *left, size_t size)
{
	MW_TRY(jump_leftover_remove(pid, left, size));
	if (*left)
		return NULL;
	return trap_leftover_remove(pid);
}

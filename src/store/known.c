// SPDX-License-Identifier: MIT
/* known.c: which numbers a reader has been given (known.h). */
#include "store/known.h"

#include "base/vector.h"

#include <stdlib.h>

#define WORD_BITS 64u

bool mw_store_known_has(const struct mw_store_known *known, uint32_t number)
{
	return number < known->next && known->bits[number / WORD_BITS] >> number % WORD_BITS & 1;
}

struct mw_error *mw_store_known_take(struct mw_store_known *known, uint32_t number, bool used, bool *bad)
{
	if (number > known->next || (!used && number < known->next))
		*bad = true;
	if (*bad)
		return NULL;
	if (number == known->next) {
		if (number % WORD_BITS == 0) {
			if (!MW_VECTOR_ROOM(known->bits, number / WORD_BITS, known->words))
				return mw_error_nomem();
			known->bits[number / WORD_BITS] = 0;
		}
		known->next++;
		known->missing++;
	}
	if (used && !mw_store_known_has(known, number)) {
		known->bits[number / WORD_BITS] |= UINT64_C(1) << number % WORD_BITS;
		known->missing--;
	}
	return NULL;
}

void mw_store_process_deinit(struct mw_store_process *process)
{
	free(process->stacks.bits);
	free(process->threads.bits);
}

bool mw_store_knows_all(const struct mw_store_process *process, const struct mw_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!mw_store_known_has(&process->threads, events[i].thread))
			return false;
		if (events[i].stack != MW_STACK_NONE && !mw_store_known_has(&process->stacks, events[i].stack))
			return false;
	}
	return true;
}

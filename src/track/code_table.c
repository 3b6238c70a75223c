// SPDX-License-Identifier: MIT
/* code_table.c: see code_table.h. */
#include "track/code_table.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

void mw_code_table_deinit(struct mw_code_table *table)
{
	mw_map_deinit(&table->exact);
	mw_map_deinit(&table->pieces);
	free(table->frames);
	*table = (struct mw_code_table){0};
}

/* Addresses are kept in place of pointers: never 0. */
static struct mw_error *put(struct mw_map *map, uint64_t key, mw_addr addr)
{
	return mw_map_set(map, key, (void *)(uintptr_t)addr); // NOLINT(performance-no-int-to-ptr)
}

static struct mw_error *take(struct mw_code_table *table, mw_addr addr, mw_addr *out)
{
	mw_addr known;

	*out = addr;
	if (addr == 0 || addr & MW_FRAME_NEAR || mw_map_get(&table->exact, addr))
		return NULL;
	if (table->exact.count < MW_CODE_ADDRESSES)
		return put(&table->exact, addr, addr);
	known = (uintptr_t)mw_map_get(&table->pieces, addr / MW_CODE_PIECE);
	if (!known) {
		known = addr;
		MW_TRY(put(&table->pieces, addr / MW_CODE_PIECE, addr));
	}
	*out = known | MW_FRAME_NEAR;
	return NULL;
}

static bool has_code(const struct mw_raw_stack *stack)
{
	for (uint32_t i = stack->count; i-- > 0;)
		if (stack->frames[i].module == MW_MODULE_NONE)
			return true;
	return false;
}

struct mw_error *mw_code_table_take(struct mw_code_table *table, struct mw_raw_stack *stack)
{
	if (!has_code(stack))
		return NULL;
	if (!MW_VECTOR_ROOM(table->frames, stack->count, table->capacity))
		return mw_error_nomem();
	memcpy(table->frames, stack->frames, stack->count * sizeof(*stack->frames));
	for (uint32_t i = 0; i < stack->count; i++)
		if (table->frames[i].module == MW_MODULE_NONE)
			MW_TRY(take(table, table->frames[i].addr, &table->frames[i].addr));
	stack->frames = table->frames;
	return NULL;
}

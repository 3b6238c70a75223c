// SPDX-License-Identifier: MIT
/* stack_table.c: interned stacks (stack_table.h). */
#include "track/stack_table.h"

#include "base/hash.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

/* --- addresses of code in no file ------------------------------------------------------------------------ */

/* Addresses are kept in place of pointers: never 0. */
static struct mw_error *put(struct mw_map *map, uint64_t key, mw_addr addr)
{
	return mw_map_set(map, key, (void *)(uintptr_t)addr); // NOLINT(performance-no-int-to-ptr)
}

static struct mw_error *take_address(struct mw_code_table *table, mw_addr addr, mw_addr *out)
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

/* Gives the stack other frames (good until the next call) where it has addresses that are not kept. */
static struct mw_error *take_code(struct mw_code_table *table, struct mw_raw_stack *stack)
{
	if (!has_code(stack))
		return NULL;
	if (!MW_VECTOR_ROOM(table->frames, stack->count, table->capacity))
		return mw_error_nomem();
	memcpy(table->frames, stack->frames, stack->count * sizeof(*stack->frames));
	for (uint32_t i = 0; i < stack->count; i++)
		if (table->frames[i].module == MW_MODULE_NONE)
			MW_TRY(take_address(table, table->frames[i].addr, &table->frames[i].addr));
	stack->frames = table->frames;
	return NULL;
}

/* --- stacks ---------------------------------------------------------------------------------------------- */

static uint32_t hash_of_node(const struct mw_stack_node *node)
{
	uint64_t above = (uint64_t)node->parent << 32 | node->module;

	return (uint32_t)mw_hash_mix(mw_hash_add(node->addr, above));
}

static uint32_t node_hash(const void *pool, uint32_t id)
{
	return hash_of_node(mw_pool_at(pool, id));
}

static uint32_t record_hash(const void *pool, uint32_t id)
{
	return ((const struct mw_stack_record *)mw_pool_at(pool, id))->hash;
}

static uint32_t hash_of_stack(const struct mw_raw_stack *stack)
{
	uint64_t hash = (uint64_t)stack->hook << 32 | (uint64_t)stack->kind << 8 | (uint64_t)stack->cut;

	for (uint32_t i = 0; i < stack->count; i++)
		hash = mw_hash_add(hash, stack->frames[i].addr + ((uint64_t)stack->frames[i].module << 40));
	return (uint32_t)mw_hash_mix(hash);
}

/* Frame by frame through the trie: a hash alone proves nothing. */
static bool record_is(const struct mw_stack_table *table, uint32_t id, const struct mw_raw_stack *stack)
{
	const struct mw_stack_record *record = mw_stack_table_at(table, id);
	uint32_t at = record->node;

	if (record->frame_count != stack->count || record->hook != stack->hook ||
	    mw_stack_table_kind(table, id) != stack->kind || record->tally.cut != stack->cut)
		return false;
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct mw_stack_node *node = mw_pool_at(&table->nodes, at);

		if (node->addr != stack->frames[i].addr || node->module != stack->frames[i].module)
			return false;
		at = node->parent;
	}
	return true;
}

void mw_stack_table_deinit(struct mw_stack_table *table)
{
	for (uint32_t i = 0; i < table->records.used; i++) {
		struct mw_stack_record *record = mw_stack_table_at(table, i);

		mw_series_deinit(&record->tally.series);
		mw_series_deinit(&record->tally.births);
		mw_histogram_deinit(&record->lifetimes);
	}
	mw_map_deinit(&table->code.exact);
	mw_map_deinit(&table->code.pieces);
	free(table->code.frames);
	free(table->kinds);
	mw_index_deinit(&table->record_index);
	mw_index_deinit(&table->node_index);
	mw_pool_deinit(&table->records);
	mw_pool_deinit(&table->nodes);
}

static struct mw_error *intern_node(struct mw_stack_table *table, const struct mw_stack_node *node, uint32_t *id)
{
	uint32_t hash = hash_of_node(node), found;

	MW_INDEX_EACH(&table->node_index, hash, found) {
		const struct mw_stack_node *other = mw_pool_at(&table->nodes, found);

		if (other->addr == node->addr && other->parent == node->parent && other->module == node->module) {
			*id = found;
			return NULL;
		}
	}
	MW_TRY(mw_pool_reserve(&table->nodes, 1));
	if (!mw_index_reserve(&table->node_index, node_hash, &table->nodes))
		return mw_error_nomem();
	found = mw_pool_take(&table->nodes);
	*(struct mw_stack_node *)mw_pool_at(&table->nodes, found) = *node;
	*id = mw_index_put(&table->node_index, hash);
	return NULL;
}

static struct mw_error *intern(struct mw_stack_table *table, const struct mw_raw_stack *stack, uint32_t *id)
{
	uint32_t hash = hash_of_stack(stack), found;
	uint32_t node = MW_POOL_NONE;
	struct mw_stack_record *record;

	MW_INDEX_EACH(&table->record_index, hash, found) {
		if (record_is(table, found, stack)) {
			*id = found;
			return NULL;
		}
	}
	for (uint32_t i = stack->count; i-- > 0;) {
		struct mw_stack_node wanted = {stack->frames[i].addr, stack->frames[i].module, node};

		MW_TRY(intern_node(table, &wanted, &node));
	}
	MW_TRY(mw_pool_reserve(&table->records, 1));
	if (!mw_index_reserve(&table->record_index, record_hash, &table->records) ||
	    !MW_VECTOR_ROOM(table->kinds, table->records.used, table->kind_capacity))
		return mw_error_nomem();
	table->kinds[table->records.used] = (uint8_t)stack->kind;
	record = mw_stack_table_at(table, mw_pool_take(&table->records));
	record->node = node;
	record->frame_count = stack->count;
	record->hook = stack->hook;
	record->hash = hash;
	record->tally.cut = (uint8_t)stack->cut;
	*id = mw_index_put(&table->record_index, hash);
	return NULL;
}

struct mw_error *mw_stack_table_intern(struct mw_stack_table *table, const struct mw_raw_stack *stack, uint32_t *id)
{
	struct mw_raw_stack taken = *stack;

	MW_TRY(take_code(&table->code, &taken));
	return intern(table, &taken, id);
}

// SPDX-License-Identifier: MIT
/* thread_table.c: numbers and names of threads (thread_table.h). */
#include "track/thread_table.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_of_tid(pid_t tid)
{
	return (uint32_t)mw_hash_mix((uint64_t)tid);
}

static uint32_t thread_hash(const void *context, uint32_t number)
{
	return hash_of_tid(mw_thread_table_at(context, number)->tid);
}

static bool thread_matches(const void *context, uint32_t number, const void *key)
{
	return mw_thread_table_at(context, number)->tid == *(const pid_t *)key;
}

void mw_thread_table_init(struct mw_thread_table *table)
{
	static const struct mw_index_type type = {thread_hash, thread_matches};

	mw_pool_init(&table->records, sizeof(struct mw_thread_record));
	mw_index_init(&table->index, &type, table);
	table->name_bytes = 0;
}

static void free_names(struct mw_thread_name *name)
{
	while (name) {
		struct mw_thread_name *older = name->older;

		free(name);
		name = older;
	}
}

void mw_thread_table_deinit(struct mw_thread_table *table)
{
	for (uint32_t i = 0; i < table->records.used; i++)
		free_names(mw_thread_table_at(table, i)->names);
	mw_index_deinit(&table->index);
	mw_pool_deinit(&table->records);
}

static struct mw_error *set_name(struct mw_thread_table *table, struct mw_thread_record *thread, const char *text)
{
	size_t size = sizeof(struct mw_thread_name) + strlen(text) + 1;
	struct mw_thread_name *name = thread->names;

	while (name && strcmp(name->text, text) != 0)
		name = name->older;
	if (!name) {
		name = malloc(size);
		if (!name)
			return mw_error_nomem();
		name->older = thread->names;
		strcpy(name->text, text);
		thread->names = name;
		table->name_bytes += size;
	}
	thread->name = name->text;
	return NULL;
}

static struct mw_error *add_thread(struct mw_thread_table *table, pid_t tid, uint32_t old, uint32_t *number)
{
	uint32_t hash = hash_of_tid(tid);
	struct mw_thread_record *thread;
	uint32_t found;

	if (table->records.used >= MW_THREAD_OLDER)
		return mw_error_nomem();
	MW_TRY(mw_pool_reserve(&table->records, 1));
	if (old == MW_INDEX_NONE)
		MW_TRY(mw_index_reserve(&table->index, hash));
	found = mw_pool_take(&table->records);
	thread = mw_thread_table_at(table, found);
	thread->tid = tid;
	thread->name = "";
	for (uint32_t i = 0; i < MW_LIMBO_FAMILIES; i++)
		thread->limbo[i] = MW_POOL_NONE;
	if (old == MW_INDEX_NONE)
		mw_index_put(&table->index, hash, found);
	else
		mw_index_replace(&table->index, hash, &tid, found);
	*number = found;
	return NULL;
}

struct mw_error *mw_thread_table_name(struct mw_thread_table *table, pid_t tid, const char *name, bool fresh,
				      uint32_t *number)
{
	uint32_t found = mw_index_find(&table->index, hash_of_tid(tid), &tid);

	if (fresh || found == MW_INDEX_NONE)
		MW_TRY(add_thread(table, tid, found, &found));
	if (name)
		MW_TRY(set_name(table, mw_thread_table_at(table, found), name));
	*number = found;
	return NULL;
}

uint64_t mw_thread_table_memory(const struct mw_thread_table *table)
{
	return mw_pool_memory(&table->records) + mw_index_memory(&table->index) + table->name_bytes;
}

// SPDX-License-Identifier: MIT
/* thread_table.c: numbers and names of threads (thread_table.h). */
#include "track/thread_table.h"

#include <stdlib.h>
#include <string.h>

void mw_thread_table_init(struct mw_thread_table *table)
{
	*table = (struct mw_thread_table){.name_bytes = 0};
	mw_pool_init(&table->records, sizeof(struct mw_thread_record));
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
	mw_map_deinit(&table->latest);
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

static struct mw_error *add_thread(struct mw_thread_table *table, pid_t tid, uint32_t *number)
{
	uint32_t found = table->records.used; /* none is ever given back */
	struct mw_thread_record *thread;

	if (found >= MW_THREAD_OLDER)
		return mw_error_nomem();
	MW_TRY(mw_pool_reserve(&table->records, 1));
	MW_TRY(mw_map_set(&table->latest, (uint64_t)tid,
			  (void *)(uintptr_t)(found + 1))); // NOLINT(performance-no-int-to-ptr)
	thread = mw_thread_table_at(table, mw_pool_take(&table->records));
	thread->tid = tid;
	thread->name = "";
	for (uint32_t i = 0; i < MW_PENDING_FAMILIES; i++)
		thread->pending[i] = MW_POOL_NONE;
	*number = found;
	return NULL;
}

struct mw_error *mw_thread_table_name(struct mw_thread_table *table, pid_t tid, const char *name, bool fresh,
				      uint32_t *number)
{
	uint32_t found = (uint32_t)(uintptr_t)mw_map_get(&table->latest, (uint64_t)tid);

	if (found && !fresh)
		found--;
	else
		MW_TRY(add_thread(table, tid, &found));
	if (name)
		MW_TRY(set_name(table, mw_thread_table_at(table, found), name));
	*number = found;
	return NULL;
}

uint64_t mw_thread_table_memory(const struct mw_thread_table *table)
{
	return mw_pool_memory(&table->records) + mw_map_memory(&table->latest) + table->name_bytes;
}

/* SPDX-License-Identifier: MIT */
/* thread_table.h: the threads of a process, by number, and what each has allocated. */
#ifndef MW_TRACK_THREAD_TABLE_H
#define MW_TRACK_THREAD_TABLE_H

#include "base/map.h"
#include "track/pool.h"

#include <memwatch/types.h>

#include <sys/types.h>

/* A name that a thread has or had; names handed out stay good, so the old ones are kept. */
struct mw_thread_name {
	struct mw_thread_name *older;
	char text[];
};

/* Calls that take something away, and may fail after that (pending.h). */
enum mw_pending_family {
	MW_PENDING_REALLOC,
	MW_PENDING_UNMAP,
	MW_PENDING_REMAP,
	MW_PENDING_FAMILIES,
};

struct mw_thread_record {
	struct mw_amount impacting, transient;
	struct mw_thread_name *names; /* every name once, in no order */
	const char *name;             /* the present one */
	pid_t tid;
	uint32_t pending[MW_PENDING_FAMILIES]; /* its newest call of each that has not ended, or MW_POOL_NONE */
};

/* Numbers leave this bit free: it is set in that of a block which was allocated before the interval. */
#define MW_THREAD_OLDER (UINT32_C(1) << 31)

struct mw_thread_table {
	struct mw_pool records;
	struct mw_map latest; /* tid to its latest number + 1 */
	uint64_t name_bytes;
};

void mw_thread_table_init(struct mw_thread_table *table);
void mw_thread_table_deinit(struct mw_thread_table *table);
/* Give `tid` its number, a new one where it is fresh or unknown, and its name (NULL: as it was). */
struct mw_error *mw_thread_table_name(struct mw_thread_table *table, pid_t tid, const char *name, bool fresh,
				      uint32_t *number) MW_MUST_CHECK;
/* Bytes behind the table, names included. */
uint64_t mw_thread_table_memory(const struct mw_thread_table *table);

static inline struct mw_thread_record *mw_thread_table_at(const struct mw_thread_table *table, uint32_t number)
{
	return mw_pool_at(&table->records, number);
}

#endif

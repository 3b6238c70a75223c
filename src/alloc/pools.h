/* SPDX-License-Identifier: MIT */
/*
 * pools.h: pools that programs keep on top of malloc, which hide who uses a block; and who does, where the block's head
 * tells.
 *
 *      PostgreSQL 12 to 17   a block of malloc's is a memory context, or leads to it; that has a name and a parent
 *      talloc 2.2 and later  a chunk has a name and a parent
 *
 * A new one is a row. All that is read is the process's, and may be anything: what does not fit has no name.
 */
#ifndef MW_ALLOC_POOLS_H
#define MW_ALLOC_POOLS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

/* How the process's memory is read. */
struct mw_pool_memory {
	/* Copy up to `size` bytes from `addr` on; how many there were. */
	size_t (*read)(void *context, mw_addr addr, void *out, size_t size);
	/* Is that address in a file's memory that can't be written? */
	bool (*is_constant)(void *context, mw_addr addr);
	void *context;
};

#define MW_POOL_NAME_MAX 96 /* bytes */

/* Texts are printable ASCII. */
struct mw_pool_user {
	const struct mw_pool_user *part_of; /* NULL: of none, or that is not known */
	char name[MW_POOL_NAME_MAX];
	char example[MW_POOL_NAME_MAX]; /* what one of that name is for, as an SQL statement; or "" */
};

struct mw_pools;

struct mw_pool {
	const char *name;   /* "PostgreSQL's memory contexts" */
	const char *one;    /* "memory context": what a user is */
	const char *module; /* what the name of the file begins with that has these, where `user` is not NULL */
	const char *const *functions; /* that get its memory, as mw_function_is_of() takes them */
	bool maps; /* it maps its memory: blocks of malloc's are no pool's, but who asked for one of it (USE_ZEND_ALLOC=0) */
	/* NULL: nothing tells whose a block is. */
	const struct mw_pool_user *(*user)(struct mw_pools *pools, mw_addr block, uint64_t size, uint64_t slack);
	const char *hint; /* a sentence: what is not known where no user is, and what tells more */
};

extern const struct mw_pool mw_pool_rows[]; /* ends with a NULL name */

/* `memory` is borrowed. Errors: MEMORY. */
struct mw_error *mw_pools_create(const struct mw_pool_memory *memory, struct mw_pools **out) MW_MUST_CHECK;
void mw_pools_destroy(struct mw_pools *pools);
/* Whose is the block that malloc gave at `block`? `size` is what was asked for, or up to `slack` bytes more than that. NULL: not
 * known. Equal users are one pointer, which is good as long as `pools`. */
static inline const struct mw_pool_user *mw_pool_user_of(const struct mw_pool *pool, struct mw_pools *pools,
							 mw_addr block, uint64_t size, uint64_t slack)
{
	return pool->user ? pool->user(pools, block, size, slack) : NULL;
}

#endif

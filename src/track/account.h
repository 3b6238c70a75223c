/* SPDX-License-Identifier: MIT */
/*
 * account.h: puts what happened to a block on the accounts of its kind, its stack and its thread.
 *
 * All three at once, so that sums over stacks and threads equal the totals at every moment.
 */
#ifndef MW_TRACK_ACCOUNT_H
#define MW_TRACK_ACCOUNT_H

#include <memwatch/error.h>
#include <memwatch/types.h>

struct mw_track;

/* Whose a block is. */
struct mw_account {
	enum mw_kind kind;
	uint32_t stack;
	uint32_t thread; /* with MW_THREAD_OLDER where the block was allocated before the interval */
};

/* The stack to attribute to: `stack` itself, or for MW_STACK_NONE the kind's stack without frames. */
struct mw_error *mw_account_stack(struct mw_track *track, enum mw_kind kind, uint32_t stack,
				  uint32_t *out) MW_MUST_CHECK;
/* A block came to be. Where memory for its series is wanting all else is counted; so it is with the next two. */
struct mw_error *mw_account_add(struct mw_track *track, const struct mw_account *account, uint64_t bytes,
				uint64_t time_ns) MW_MUST_CHECK;
/* Part of a block went, but not the last. */
struct mw_error *mw_account_shrink(struct mw_track *track, const struct mw_account *account,
				   uint64_t bytes) MW_MUST_CHECK;
/* A block, or what was left of it, went. */
struct mw_error *mw_account_end(struct mw_track *track, const struct mw_account *account, uint64_t bytes,
				uint64_t born_ns, uint64_t died_ns) MW_MUST_CHECK;
/* Something from before the window went; `bytes` may be MW_SIZE_UNKNOWN, `stack` MW_STACK_NONE. */
struct mw_error *mw_account_aofi(struct mw_track *track, enum mw_kind kind, uint32_t stack,
				 uint64_t bytes) MW_MUST_CHECK;

#endif

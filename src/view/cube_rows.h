/* SPDX-License-Identifier: MIT */
/*
 * cube_rows.h: sums by a key and two bins of time, within a number of rows.
 *
 * Where there would be more rows, or more bins, bins are made twice as long and rows merged. That is done a part at a
 * time, so that whoever feeds it never waits for long. Additions come quicker than memory: some wait for their row, so
 * that it is there when it is looked at.
 */
#ifndef MW_VIEW_CUBE_ROWS_H
#define MW_VIEW_CUBE_ROWS_H

#include "base/index.h"

#include <memwatch/error.h>
#include <memwatch/timeline.h>

#define MW_CUBE_SHARDS  64u
#define MW_CUBE_WAITING 64u
#define MW_CUBE_NO_BIN  UINT64_MAX

/* What is added: blocks of a row, whose bins are as short as can be. */
struct mw_cube_addition {
	struct mw_timeline_row row; /* but its bins */
	uint64_t born, died;        /* bins, or MW_CUBE_NO_BIN */
	uint32_t shard, hash;
	/* What `hash` and the row's key and bins were made with. */
	uint8_t shift;
	bool coarse;
};

struct mw_cube_shard {
	struct mw_timeline_row *rows;
	size_t capacity;
	struct mw_index index; /* of the rows */
	unsigned int shift;    /* a bin of its rows is 2^shift of the shortest */
};

/* Zero-initialise but for `budget`. */
struct mw_cube_rows {
	size_t budget; /* rows; not kept where they can't be merged any more */
	struct mw_cube_shard shards[MW_CUBE_SHARDS];
	size_t count;       /* of rows */
	unsigned int shift; /* to which shards are to be brought … */
	unsigned int next;  /* … those before that one have been */
	uint64_t last;      /* the latest bin of all */
	/* Where bins would become fewer than `least_bins` keys are made coarser: their second part is 1 then where it
	 * was not 0, the third 0. The rows as they were go to `owners`, which must be empty, and so does all that is
	 * added from then on. 0, NULL: never. */
	uint64_t least_bins;
	struct mw_cube_rows *owners;
	bool coarse;
	/* Where bins would become fewer than that, rows are given up. 0: never. */
	uint64_t worth_bins;
	bool given_up;
	struct mw_cube_addition waiting[MW_CUBE_WAITING];
	size_t waiting_count;
};

void mw_cube_rows_deinit(struct mw_cube_rows *rows);
/* Add those that wait. False without memory: then nothing more may be added. */
bool mw_cube_rows_settle(struct mw_cube_rows *rows);
/* Add those that wait, and keep to the budget, as far as that can be. False without memory. */
bool mw_cube_rows_finish(struct mw_cube_rows *rows);
/* Have bins of at least 2^shift of the shortest, all the same. Nothing may wait. */
void mw_cube_rows_fold(struct mw_cube_rows *rows, unsigned int shift);
/* Take all rows out, which have been settled and folded, in no order; malloc'ed. NULL without memory. */
struct mw_timeline_row *mw_cube_rows_take(struct mw_cube_rows *rows);

/* What is to be filled in: its row, but the bins of that, and its bins. */
static inline struct mw_cube_addition *mw_cube_rows_next(struct mw_cube_rows *rows)
{
	return &rows->waiting[rows->waiting_count];
}

/* It is filled in: add it. False without memory. */
static inline bool mw_cube_rows_add(struct mw_cube_rows *rows)
{
	return ++rows->waiting_count < MW_CUBE_WAITING || mw_cube_rows_settle(rows);
}

#endif

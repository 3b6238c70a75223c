/* SPDX-License-Identifier: MIT */
/* quiesce_bodies.h: what the children do that the tests of quiesce make stand still (quiet_start). */
#ifndef MW_TESTS_UNIT_TRACEE_QUIESCE_BODIES_H
#define MW_TESTS_UNIT_TRACEE_QUIESCE_BODIES_H

#include "quiet_child.h"
#include "tracee/quiesce.h"

#include <stdlib.h>

/* Each kind of round comes in four. scripts/soak does more of them. */
#define ROUNDS (getenv("MEMWATCH_SOAK") ? 20U : 4U)

/* Count ticks; returns never. For pthread_create. */
void *tick_forever(void *board);
int sleep_forever(void);

int body_tick(struct board *board);
/* 50 threads at any time, each of which makes its successor and dies. */
int body_churn(struct board *board);
/* 400 threads, of which ten tick. */
int body_many(struct board *board);
/* Forks, one child after the other, or makes them by vfork; a tick for each. */
int body_fork(struct board *board);
int body_vfork(struct board *board);

/* All stand: nothing is counted. */
void assert_standing(const struct mw_quiesce *quiesce, struct board *board);

#endif

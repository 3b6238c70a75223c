/* SPDX-License-Identifier: MIT */
/* history_steps.h: what histories are made of. */
#ifndef TEST_VIEW_HISTORY_STEPS_H
#define TEST_VIEW_HISTORY_STEPS_H

#include "histories.h"

#include <math.h>

#define NEVER INFINITY

/* Seconds, of the history that is being made. */
extern double window_length;

/* In (0, 1]. */
double any(void);
double between(double low, double high);
/* Until the next event of so many a second, which come at random. */
double pause_of(double rate);

/* A block, which may be from before the window, and of a size that is not known then; freed by a thread. */
void block_of(uint8_t stack, double born, double died, double bytes, uint8_t freer);
/* The same, of the subject and freed by the thread that allocated it. */
void block(double born, double died, double bytes);

/* Of which some are forgotten, or none. */
void sessions_but(double forgotten);
void expired_at_once(double forgotten);
void expired_beside_others(double forgotten);
void by_jobs(double forgotten);
void load_of(double forgotten, double rate, double (*load)(double part));
double rising(double part);
double wave(double part);
void collected(double forgotten);
void collected_ring(double forgotten);
void made_room(double forgotten);
void lived(double forgotten);
/* A ring whose entries are ever another size. */
void resized_ring(double forgotten);
/* A ring that fills, while less and less comes. */
void ring_as_less_comes(double forgotten);
/* What is needed at a time comes from a pool, which is given back now and then. */
void given_back(double forgotten);
/* Entries of a cache go one for each that comes. */
void evicted_each(double forgotten);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * counter.h: a thread that counts what is known of events' blocks (state.h), while the blocks of later events are found.
 *
 * Steps are counted in the order in which they are given, so all figures are the same as without it. It works only within
 * mw_event_sink.events(), which waits for it: nobody else need know that it is there.
 */
#ifndef MW_TRACK_COUNTER_H
#define MW_TRACK_COUNTER_H

#include "track/state.h"

#define MW_COUNTER_EVENTS 1024u /* for fewer it takes too long to wake the thread up */

/* The tracker's counter, which is made when it is first of use; NULL: it would be of none for so many events, or can't be had. */
struct mw_counter *mw_counter_of(struct mw_track *track, size_t events);
void mw_counter_destroy(struct mw_counter *counter);
/* Steps to be filled in and given. Waits until there is room. */
struct mw_steps *mw_counter_room(struct mw_counter *counter);
/* Give what mw_counter_room() returned last. */
void mw_counter_give(struct mw_counter *counter);
/* Wait until all that was given is counted, where there is a counter. Errors stay for mw_counter_wait(). */
void mw_counter_drain(struct mw_counter *counter);
/* The same. Errors: the first one of mw_steps_count(). */
struct mw_error *mw_counter_wait(struct mw_counter *counter) MW_MUST_CHECK;

#endif

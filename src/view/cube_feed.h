/* SPDX-License-Identifier: MIT */
/*
 * cube_feed.h: hands what becomes of blocks on to a thread that adds it up, so that who tells it need not wait for
 * that. Where no thread can be had it is added up at once.
 */
#ifndef MW_VIEW_CUBE_FEED_H
#define MW_VIEW_CUBE_FEED_H

#include <memwatch/types.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define MW_CUBE_ROOM  512u /* items that are handed over at a time */
#define MW_CUBE_ROOMS 8u

/* What counts of a fate (track/track.h). */
struct mw_cube_item {
	mw_addr addr;
	uint64_t bytes, size, since_ns, until_ns;
	uint64_t lifetime_ns; /* MW_TIME_UNKNOWN: it did not end, or its begin is not known */
	uint32_t stack, thread;
	uint8_t kind;
	bool before; /* the window */
	bool older;  /* … or the interval */
	bool last;
};

struct mw_cube_feed {
	void (*take)(void *context, const struct mw_cube_item *items, size_t count);
	void *context;
	struct mw_cube_item *room; /* that is being filled */
	size_t count;              /* items in it */
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	unsigned int full, filled; /* rooms that wait, or are being taken; the number of the one being filled */
	bool stopping;
	struct mw_cube_item rooms[MW_CUBE_ROOMS][MW_CUBE_ROOM];
};

/* Begin; `take` is called by one thread at a time, also by mw_cube_feed_stop() and put(). Zero-initialised before. */
void mw_cube_feed_start(struct mw_cube_feed *feed,
			void (*take)(void *context, const struct mw_cube_item *items, size_t count), void *context);
/* All has been reported, and is taken when this returns. Nothing may be reported after it; fine to be called again. */
void mw_cube_feed_stop(struct mw_cube_feed *feed);
void mw_cube_feed_hand_over(struct mw_cube_feed *feed);

/* The next item is to be filled in here. */
static inline struct mw_cube_item *mw_cube_feed_next(struct mw_cube_feed *feed)
{
	return &feed->room[feed->count];
}

/* It is filled in. */
static inline void mw_cube_feed_put(struct mw_cube_feed *feed)
{
	if (++feed->count == MW_CUBE_ROOM)
		mw_cube_feed_hand_over(feed);
}

#endif

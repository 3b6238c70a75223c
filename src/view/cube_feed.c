// SPDX-License-Identifier: MIT
/* cube_feed.c: a ring of rooms that one thread fills and another empties (cube_feed.h). */
#include "view/cube_feed.h"

#include <signal.h>

/* Wait for the next room that is full. False: there are no more. */
static bool await_room(struct mw_cube_feed *feed)
{
	bool there;

	pthread_mutex_lock(&feed->lock);
	while (feed->full == 0 && !feed->stopping)
		pthread_cond_wait(&feed->changed, &feed->lock);
	there = feed->full > 0;
	pthread_mutex_unlock(&feed->lock);
	return there;
}

static void *run(void *context)
{
	struct mw_cube_feed *feed = context;

	pthread_setname_np(pthread_self(), "memwatch-cube");
	for (unsigned int next = 0; await_room(feed); next = (next + 1) % MW_CUBE_ROOMS) {
		feed->take(feed->context, feed->rooms[next], MW_CUBE_ROOM);
		pthread_mutex_lock(&feed->lock);
		feed->full--;
		pthread_cond_signal(&feed->changed);
		pthread_mutex_unlock(&feed->lock);
	}
	return NULL;
}

void mw_cube_feed_start(struct mw_cube_feed *feed,
			void (*take)(void *context, const struct mw_cube_item *items, size_t count), void *context)
{
	sigset_t all, before;

	feed->take = take;
	feed->context = context;
	feed->room = feed->rooms[0];
	pthread_mutex_init(&feed->lock, NULL);
	pthread_cond_init(&feed->changed, NULL);
	/* Signals are others' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	feed->threaded = pthread_create(&feed->thread, NULL, run, feed) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mw_cube_feed_hand_over(struct mw_cube_feed *feed)
{
	feed->count = 0;
	if (!feed->threaded) {
		feed->take(feed->context, feed->room, MW_CUBE_ROOM);
		return;
	}
	pthread_mutex_lock(&feed->lock);
	feed->full++;
	pthread_cond_signal(&feed->changed);
	/* The one that is to be filled next must have been emptied. */
	while (feed->full == MW_CUBE_ROOMS)
		pthread_cond_wait(&feed->changed, &feed->lock);
	pthread_mutex_unlock(&feed->lock);
	feed->filled = (feed->filled + 1) % MW_CUBE_ROOMS;
	feed->room = feed->rooms[feed->filled];
}

void mw_cube_feed_stop(struct mw_cube_feed *feed)
{
	if (!feed->room)
		return;
	if (feed->threaded) {
		pthread_mutex_lock(&feed->lock);
		feed->stopping = true;
		pthread_cond_signal(&feed->changed);
		pthread_mutex_unlock(&feed->lock);
		pthread_join(feed->thread, NULL);
	}
	feed->take(feed->context, feed->room, feed->count);
	pthread_cond_destroy(&feed->changed);
	pthread_mutex_destroy(&feed->lock);
	feed->room = NULL;
}

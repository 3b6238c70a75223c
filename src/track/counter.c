// SPDX-License-Identifier: MIT
/* counter.c: see counter.h. */
#include "track/counter.h"

#include "base/thread.h"

#include <stdatomic.h>

#define SLOTS 16u /* a power of two */
#define WAKE  4u  /* slots that are worth that */
#define SPINS 50u /* looks, before whoever waits sleeps: some microseconds */

struct mw_counter {
	struct mw_track *track;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	_Atomic uint32_t want_work, want_turn; /* who sleeps until there is some, or until nobody counts */
	_Atomic bool ends;
	char before_given[MW_CACHE_LINE];
	_Atomic uint32_t given; /* slots, ever */
	char before_counted[MW_CACHE_LINE];
	_Atomic uint32_t counted;
	_Atomic bool busy;    /* somebody counts: it may do so, and use … */
	struct mw_error *err; /* … the first one */
	char before_slots[MW_CACHE_LINE];
	struct mw_steps slots[SLOTS];
};

/* At least so many slots were to be counted a moment ago. */
static uint32_t waiting(const struct mw_counter *counter)
{
	uint32_t counted = atomic_load(&counter->counted);

	return atomic_load(&counter->given) - counted;
}

static bool has_work(const struct mw_counter *counter)
{
	return waiting(counter) > 0 || atomic_load(&counter->ends);
}

static bool is_idle(const struct mw_counter *counter)
{
	return !atomic_load(&counter->busy);
}

/* Wait until it is so. `sleepers` are woken when it may be: wake(). */
static void wait_until(struct mw_counter *counter, bool (*is_so)(const struct mw_counter *counter),
		       _Atomic uint32_t *sleepers)
{
	for (uint32_t i = 0; i < SPINS; i++) {
		if (is_so(counter))
			return;
		sched_yield();
	}
	pthread_mutex_lock(&counter->mutex);
	atomic_fetch_add(sleepers, 1);
	while (!is_so(counter))
		pthread_cond_wait(&counter->changed, &counter->mutex);
	atomic_fetch_sub(sleepers, 1);
	pthread_mutex_unlock(&counter->mutex);
}

static void wake(struct mw_counter *counter, const _Atomic uint32_t *sleepers)
{
	if (atomic_load(sleepers) == 0)
		return;
	pthread_mutex_lock(&counter->mutex);
	pthread_cond_broadcast(&counter->changed);
	pthread_mutex_unlock(&counter->mutex);
}

/* Count a slot, if there is one. False: the other thread does. */
static bool count_one(struct mw_counter *counter)
{
	uint32_t number;

	if (atomic_exchange(&counter->busy, true))
		return false;
	number = atomic_load(&counter->counted);
	if (number != atomic_load(&counter->given)) {
		counter->err = mw_track_first_error(counter->err,
						    mw_steps_count(counter->track, &counter->slots[number % SLOTS]));
		atomic_store(&counter->counted, number + 1);
	}
	atomic_store(&counter->busy, false);
	wake(counter, &counter->want_turn);
	return true;
}

static void *run(void *context)
{
	struct mw_counter *counter = context;

	for (;;) {
		wait_until(counter, has_work, &counter->want_work);
		if (atomic_load(&counter->ends))
			return NULL;
		/* The other thread may have counted it meanwhile. */
		if (!count_one(counter))
			wait_until(counter, is_idle, &counter->want_turn);
	}
}

static struct mw_counter *create(struct mw_track *track)
{
	struct mw_counter *counter = calloc(1, sizeof(*counter));

	if (!counter)
		return NULL;
	counter->track = track;
	pthread_mutex_init(&counter->mutex, NULL);
	pthread_cond_init(&counter->changed, NULL);
	if (mw_thread_create(&counter->thread, NULL, run, counter) == 0)
		return counter;
	pthread_cond_destroy(&counter->changed);
	pthread_mutex_destroy(&counter->mutex);
	free(counter);
	return NULL;
}

struct mw_counter *mw_counter_of(struct mw_track *track, size_t events)
{
	if (events < track->counter_from)
		return NULL;
	if (!track->counter && !track->alone) {
		if (mw_thread_cpus() > 1)
			track->counter = create(track);
		track->alone = !track->counter;
	}
	return track->counter;
}

void mw_counter_destroy(struct mw_counter *counter)
{
	if (!counter)
		return;
	atomic_store(&counter->ends, true);
	wake(counter, &counter->want_work);
	pthread_join(counter->thread, NULL);
	pthread_cond_destroy(&counter->changed);
	pthread_mutex_destroy(&counter->mutex);
	mw_error_destroy(counter->err);
	free(counter);
}

/* Until no more slots than that wait. The caller counts them itself where the thread does not do so now. */
static void drain(struct mw_counter *counter, uint32_t most)
{
	while (waiting(counter) > most)
		if (!count_one(counter))
			wait_until(counter, is_idle, &counter->want_turn);
}

void mw_counter_drain(struct mw_counter *counter)
{
	if (counter)
		drain(counter, 0);
}

struct mw_steps *mw_counter_room(struct mw_counter *counter)
{
	drain(counter, SLOTS - 1);
	return &counter->slots[atomic_load(&counter->given) % SLOTS];
}

void mw_counter_give(struct mw_counter *counter)
{
	atomic_fetch_add(&counter->given, 1);
	if (waiting(counter) == WAKE)
		wake(counter, &counter->want_work);
}

struct mw_error *mw_counter_wait(struct mw_counter *counter)
{
	struct mw_error *err;

	drain(counter, 0);
	err = counter->err;
	counter->err = NULL;
	return err;
}

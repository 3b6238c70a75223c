// SPDX-License-Identifier: MIT
/* looks.c: see looks.h. */
#include "session/looks.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define TURN_NS UINT64_C(2000000) /* that the engine runs for, until it is asked whether all is looked at */

struct looks {
	struct mw_recorder_look *items;
	size_t count;
	atomic_bool done;
};

/* The engine's thread may have gone to the idle class, and to a CPU where others run. */
static void leave_idle(void)
{
	const struct sched_param none = {.sched_priority = 0};
	cpu_set_t all;

	CPU_ZERO(&all);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	(void)sched_setaffinity(0, sizeof(all), &all);
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
}

static void *take_all(void *context)
{
	struct looks *looks = context;

	for (size_t i = 0; i < looks->count; i++)
		mw_recorder_look_take(&looks->items[i]);
	atomic_store(&looks->done, true);
	return NULL;
}

static void *take_beside(void *context)
{
	leave_idle();
	return take_all(context);
}

/* Signals are for memwatch's first thread. Without a thread for it, it is done here and now. */
static bool start(struct looks *looks, pthread_t *thread)
{
	sigset_t all, before;
	bool there;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	there = pthread_create(thread, NULL, take_beside, looks) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!there)
		(void)take_all(looks);
	return there;
}

struct mw_error *mw_looks_take(struct mw_recorder *recorders, size_t count, struct mw_engine *engine)
{
	struct looks looks = {.items = calloc(count + 1, sizeof(*looks.items))};
	struct mw_error *err = NULL;
	pthread_t thread;
	bool beside;

	if (!looks.items)
		return NULL; /* it matters to the report, not to the watching */
	for (size_t i = 0; i < count; i++) {
		const struct mw_window_info *window = engine->ops->window(engine, recorders[i].pid);

		if (window && !window->over)
			mw_recorder_look_begin(&recorders[i], &looks.items[looks.count++]);
	}
	beside = start(&looks, &thread);
	while (!err && !atomic_load(&looks.done))
		err = engine->ops->run(engine, mw_clock_ns() + TURN_NS, NULL);
	if (beside)
		pthread_join(thread, NULL);
	for (size_t i = 0; i < looks.count; i++)
		mw_recorder_look_end(&looks.items[i]);
	free(looks.items);
	return err;
}

// SPDX-License-Identifier: MIT
/*
 * heart.c: memwatch's sign of life in the shared memory (jump.h).
 *
 * It has a thread of its own, as the one that drains may be at something long. Where it stops, because memwatch was
 * killed or stopped, threads of the target no longer wait for room in their rings.
 */
#include "engine/jump/recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BEAT_NS 20000000

static void beat(struct jump_engine *engine)
{
	for (size_t i = 0; i < engine->heart.count; i++)
		__atomic_store_n(&engine->heart.controls[i]->heartbeat, jump_clock_tick(), __ATOMIC_RELEASE);
}

static void *beat_on(void *context)
{
	struct jump_engine *engine = context;

	/* It does next to nothing, and must not be late where the machine is busy. Best effort. */
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), -20);
	pthread_mutex_lock(&engine->heart.lock);
	while (!engine->heart.stop) {
		struct timespec until;

		beat(engine);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += BEAT_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&engine->heart.wake, &engine->heart.lock, &until);
	}
	pthread_mutex_unlock(&engine->heart.lock);
	return NULL;
}

/* Signals are for memwatch's first thread. */
static struct mw_error *start(struct jump_engine *engine)
{
	pthread_condattr_t attributes;
	sigset_t all, before;
	int errnum;

	pthread_mutex_init(&engine->heart.lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->heart.wake, &attributes);
	pthread_condattr_destroy(&attributes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&engine->heart.thread, NULL, beat_on, engine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum)
		return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot start a thread");
	engine->heart.beating = true;
	return NULL;
}

struct mw_error *jump_heart_add(struct jump_engine *engine, struct mw_ring_control *control)
{
	struct mw_ring_control **controls;

	if (!engine->heart.beating)
		MW_TRY(start(engine));
	pthread_mutex_lock(&engine->heart.lock);
	controls = realloc(engine->heart.controls, (engine->heart.count + 1) * sizeof(struct mw_ring_control *));
	if (controls) {
		engine->heart.controls = controls;
		controls[engine->heart.count++] = control;
		beat(engine);
	}
	pthread_mutex_unlock(&engine->heart.lock);
	return controls ? NULL : mw_error_nomem();
}

void jump_heart_remove(struct jump_engine *engine, const struct mw_ring_control *control)
{
	if (!engine->heart.beating)
		return;
	pthread_mutex_lock(&engine->heart.lock);
	for (size_t i = 0; i < engine->heart.count; i++)
		if (engine->heart.controls[i] == control)
			engine->heart.controls[i--] = engine->heart.controls[--engine->heart.count];
	pthread_mutex_unlock(&engine->heart.lock);
}

void jump_heart_stop(struct jump_engine *engine)
{
	if (!engine->heart.beating)
		return;
	pthread_mutex_lock(&engine->heart.lock);
	engine->heart.stop = true;
	pthread_cond_signal(&engine->heart.wake);
	pthread_mutex_unlock(&engine->heart.lock);
	pthread_join(engine->heart.thread, NULL);
	pthread_cond_destroy(&engine->heart.wake);
	pthread_mutex_destroy(&engine->heart.lock);
	free(engine->heart.controls);
	engine->heart.beating = false;
}

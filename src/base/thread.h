/* SPDX-License-Identifier: MIT */
/* thread.h: memwatch's own threads. */
#ifndef MW_BASE_THREAD_H
#define MW_BASE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* pthread_create() of a thread that gets no signals: they are for memwatch's first one. */
static inline int mw_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *context),
				   void *context)
{
	sigset_t all, before;
	int errnum;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(thread, attributes, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return errnum;
}

/* How many processors they may run on, 1 or more. */
static inline unsigned mw_thread_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* pthread_join() of one that may hang. False: it has not ended within so many seconds. */
static inline bool mw_thread_join_within(pthread_t thread, unsigned seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

#endif

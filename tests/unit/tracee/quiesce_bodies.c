// SPDX-License-Identifier: MIT
/* quiesce_bodies.c: what those children do (quiesce_bodies.h). */
#include "quiesce_bodies.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

void *tick_forever(void *context)
{
	struct board *board = context;

	for (;;)
		board->ticks++;
	return NULL;
}

int sleep_forever(void)
{
	while (pause() < 0)
		;
	return 0;
}

static void *thread_sleep(void *context)
{
	(void)context;
	sleep_forever();
	return NULL;
}

int body_tick(struct board *board)
{
	board->ready = 1;
	tick_forever(board);
	return 0;
}

static void *spawn_next(void *context)
{
	struct board *board = context;
	pthread_attr_t attr;
	pthread_t next;

	board->ticks++;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 65536);
	while (pthread_create(&next, &attr, spawn_next, board))
		sched_yield();
	return NULL;
}

int body_churn(struct board *board)
{
	for (unsigned i = 0; i < 50; i++)
		spawn_next(board);
	board->ready = 1;
	return sleep_forever();
}

int body_many(struct board *board)
{
	for (unsigned i = 0; i < 400; i++) {
		pthread_t thread;
		pthread_attr_t attr;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 65536);
		if (pthread_create(&thread, &attr, i % 40 ? thread_sleep : tick_forever, board))
			return 1;
	}
	board->ready = 1;
	return sleep_forever();
}

int body_fork(struct board *board)
{
	board->ready = 1;
	for (;;) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		board->ticks++;
		waitpid(pid, NULL, 0);
	}
	return 0;
}

int body_vfork(struct board *board)
{
	static struct board *shared;

	shared = board;
	for (;;) {
		if (vfork() == 0) {
			shared->ready = 1;
			syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 200000}, NULL);
			_exit(0);
		}
		shared->ticks++;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return 0;
}

void assert_standing(const struct mw_quiesce *quiesce, struct board *board)
{
	long ticks;

	assert_true(quiesce->standing);
	for (size_t i = 0; i < quiesce->count; i++)
		assert_true(quiesce->threads[i].stopped);
	ticks = board->ticks;
	usleep(500);
	assert_int_equal(board->ticks, ticks);
}

/* SPDX-License-Identifier: MIT */
/*
 * threads_waiting [THREADS [PAIRS]]: very many threads. Half of them sleep, each in one of several kinds of waits,
 * which must end by what they wait for and by nothing else; the others allocate, check what they have, and leak one
 * block each.
 */
#include "target.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define MOST  4000
#define STACK (128u << 10)

static pthread_t threads[MOST];
static pthread_barrier_t begin, finish;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t awake;
static int closed[2], hooked[2]; /* pipes: one is only ever closed */
static bool over;                /* under the lock */
static _Atomic bool resting = true;
static _Atomic size_t asleep;
static size_t pairs = 20;

static KEEP void multitude_leak(void)
{
	void *block = malloc(87);

	OPAQUE(block);
}

static KEEP unsigned char *multitude_alloc(size_t size, unsigned char mark)
{
	return target_filled(size, mark);
}

static void check_and_free(unsigned char *block, size_t size, unsigned char mark)
{
	if (block[0] != mark || block[size / 2] != mark || block[size - 1] != mark)
		target_fail("memory changed under a thread");
	free(block);
}

static void *work(void *argument)
{
	size_t number = (size_t)argument;
	unsigned char mark = (unsigned char)number;
	unsigned char *last = NULL;
	size_t last_size = 0;

	pthread_barrier_wait(&begin);
	for (size_t i = 0; i < pairs; i++) {
		size_t size = 1 + (number * 37 + i * 101) % 3000;
		unsigned char *block = multitude_alloc(size, mark);

		if (last)
			check_and_free(last, last_size, mark);
		last = block;
		last_size = size;
	}
	if (last)
		check_and_free(last, last_size, mark);
	multitude_leak();
	pthread_barrier_wait(&finish); /* all work done */
	pthread_barrier_wait(&finish); /* the window is over */
	return NULL;
}

static void expect(bool good, const char *what)
{
	if (!good)
		target_fail(what);
}

static void wait_for_change(void)
{
	pthread_mutex_lock(&lock);
	while (!over)
		expect(pthread_cond_wait(&changed, &lock) == 0, "a wait for a condition failed");
	pthread_mutex_unlock(&lock);
}

static void nap(void)
{
	const struct timespec length = {.tv_nsec = 200000000};

	while (atomic_load(&resting))
		expect(nanosleep(&length, NULL) == 0, "a nap was cut short");
}

static void wait_by_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	expect(fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, closed[0], &event) == 0, "epoll_create1");
	expect(epoll_wait(fd, &event, 1, -1) == 1, "an epoll_wait was cut short");
	close(fd);
}

static void *rest(void *argument)
{
	struct pollfd fd = {.fd = hooked[0], .events = POLLIN};
	char byte;

	atomic_fetch_add(&asleep, 1);
	switch ((size_t)argument % 6) {
	case 0:
		wait_for_change();
		break;
	case 1:
		nap();
		break;
	case 2:
		expect(poll(&fd, 1, -1) == 1, "a poll was cut short");
		break;
	case 3:
		expect(read(closed[0], &byte, 1) == 0, "a read was cut short");
		break;
	case 4:
		wait_by_epoll();
		break;
	default:
		expect(sem_wait(&awake) == 0, "a wait for a semaphore was cut short");
	}
	return NULL;
}

static void start(size_t count, size_t workers)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (size_t i = 0; i < count; i++)
		expect(pthread_create(&threads[i], &attributes, i < workers ? work : rest, (void *)i) == 0,
		       "pthread_create");
	pthread_attr_destroy(&attributes);
	while (atomic_load(&asleep) < count - workers)
		usleep(1000);
}

static void wake(size_t count)
{
	atomic_store(&resting, false);
	close(closed[1]);
	close(hooked[1]);
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < count; i++)
		sem_post(&awake);
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	size_t workers;

	if (argc > 2)
		pairs = strtoul(argv[2], NULL, 10);
	if (count > MOST)
		count = MOST;
	workers = count / 2;
	expect(pipe(closed) == 0 && pipe(hooked) == 0 && sem_init(&awake, 0, 0) == 0, "pipe");
	pthread_barrier_init(&begin, NULL, (unsigned)workers + 1);
	pthread_barrier_init(&finish, NULL, (unsigned)workers + 1);
	start(count, workers);
	target_ready();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&finish);
	target_say("multitude_alloc.transient.count", workers * pairs);
	target_say("multitude_leak.impacting.count", workers);
	target_say("multitude_leak.impacting.bytes", workers * 87);
	target_say("heap.size.count", workers * (pairs + 1));
	target_say("heap.impacting.count", workers);
	target_say("heap.aofi.count", 0);
	target_done();
	pthread_barrier_wait(&finish);
	wake(count);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

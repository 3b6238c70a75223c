/* SPDX-License-Identifier: MIT */
/*
 * undescribed: threads that allocate through a library without unwind information, whose frames and this program's take
 * turns. `undescribed ROUNDS THREADS`: each of PATHS paths of DEPTH calls ends in an allocation of a size of its own,
 * so many times a thread; first those of the sizes from WARM on, a moment later others from FIRST on. What each path is
 * made of is said: path.SIZE=KINDS, a letter a call, the outermost first.
 */
#include "undescribed.h"

#include "target.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define PATHS 96
#define DEPTH 6
#define WARM  20000
#define FIRST 30000

struct walk {
	unsigned path, base;
};

static __thread struct walk now;
static unsigned rounds = 10;

static unsigned kind_of(unsigned path, unsigned level)
{
	uint32_t mixed = (path * 31 + level * 7 + 1) * 2654435761u;

	/* Each kind alone first, so that none depends on another to be seen. */
	return level == 0 && path < undescribed_kinds() ? path : (mixed >> 16) % undescribed_kinds();
}

static unsigned depth_of(unsigned path)
{
	return path < undescribed_kinds() ? 1 : 2 + path % (DEPTH - 1);
}

KEEP static void take(void)
{
	void *block = malloc(now.base + now.path);

	OPAQUE(block);
	free(block);
}

KEEP static void down(unsigned level)
{
	if (level == depth_of(now.path))
		take();
	else
		undescribed_go(down, kind_of(now.path, level), level + 1);
	OPAQUE(level);
}

KEEP static void work(unsigned base)
{
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned path = 0; path < PATHS; path++) {
			now = (struct walk){path, base};
			down(0);
		}
	}
}

static pthread_barrier_t begin, middle, end;

static void *run(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&begin);
	work(WARM);
	pthread_barrier_wait(&middle);
	pthread_barrier_wait(&middle);
	work(FIRST);
	pthread_barrier_wait(&end);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	char line[64];

	rounds = argc > 1 ? (unsigned)atoi(argv[1]) : rounds;
	pthread_barrier_init(&begin, NULL, threads + 1);
	pthread_barrier_init(&middle, NULL, threads + 1);
	pthread_barrier_init(&end, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, NULL) != 0)
			target_fail("pthread_create");
	}
	target_ready();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&middle);
	usleep(500000);
	pthread_barrier_wait(&middle);
	pthread_barrier_wait(&end);
	for (unsigned path = 0; path < PATHS; path++) {
		int length = snprintf(line, sizeof(line), "path.%u=", path);

		for (unsigned level = 0; level < depth_of(path); level++)
			line[length++] = (char)('a' + kind_of(path, level));
		line[length] = '\0';
		target_say_text(line);
	}
	target_say("calls", (uint64_t)rounds * threads);
	target_done();
	return 0;
}

// SPDX-License-Identifier: MIT
/*
 * gaps BOARD THREADS: one thread watches the clock and shows the longest time (ns) that it was not let run on the
 * board's first line; the reader sets it back to 0. The other threads sleep. The second line counts its looks.
 */
#include "board.h"

#include <pthread.h>
#include <time.h>

static void *nap(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	struct board_line *board;
	unsigned threads;

	if (argc != 3) {
		fprintf(stderr, "usage: gaps BOARD THREADS\n");
		return 2;
	}
	board = board_open(argv[1]);
	threads = (unsigned)strtoul(argv[2], NULL, 10);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (unsigned i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &attributes, nap, NULL))
			return 1;
	}
	for (uint64_t last = now();; board[1].value++) {
		uint64_t time = now();

		if (time - last > board[0].value)
			board[0].value = time - last;
		last = time;
	}
}

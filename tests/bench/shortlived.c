// SPDX-License-Identifier: MIT
/*
 * shortlived BOARD: makes threads, eight at a time, as fast as it can, each of which allocates a few blocks, frees them
 * and ends. Line 0 of the board counts those that were joined.
 */
#include "board.h"

#include <pthread.h>

#define AT_ONCE 8
#define BLOCKS  8
#define STACK   65536

static void *work(void *unused)
{
	void *blocks[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(16 + i * 64);
		__asm__ volatile("" : "+r"(blocks[i]) : : "memory");
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return unused;
}

int main(int argc, char **argv)
{
	struct board_line *board;
	pthread_attr_t attr;

	if (argc != 2) {
		fprintf(stderr, "usage: shortlived BOARD\n");
		return 2;
	}
	board = board_open(argv[1]);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (;;) {
		pthread_t threads[AT_ONCE];

		for (size_t i = 0; i < AT_ONCE; i++)
			if (pthread_create(&threads[i], &attr, work, NULL))
				return 1;
		for (size_t i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
		board->value += AT_ONCE;
	}
}

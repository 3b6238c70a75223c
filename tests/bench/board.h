/* SPDX-License-Identifier: MIT */
/*
 * board.h: numbers that a program shows while it runs, in a file that scripts/bench maps as well. Reading them costs
 * the program nothing and lets it have no other threads than those that work.
 */
#ifndef MW_BENCH_BOARD_H
#define MW_BENCH_BOARD_H

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BOARD_SIZE 4096
#define BOARD_LIFE 300 /* seconds, should nobody end the program */

/* One number a cache line. */
struct board_line {
	volatile uint64_t value;
	uint64_t unused[7];
};

static inline struct board_line *board_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *board = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, BOARD_SIZE) == 0)
		board = mmap(NULL, BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(BOARD_LIFE);
	return board;
}

#endif

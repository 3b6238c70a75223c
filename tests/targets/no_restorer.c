/* SPDX-License-Identifier: MIT */
/*
 * no_restorer BOARD: allocates and frees until it is told to stop, and counts its rounds in that file. It handles no
 * signals: linked statically with musl it has no code that returns from a handler.
 */
#include "target.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BLOCKS 64
#define LIFE   240 /* s */

static void once(void)
{
	unsigned char *blocks[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = target_filled(i * 37 + 1, (unsigned char)i);
	for (size_t i = 0; i < BLOCKS; i++) {
		for (size_t j = 0; j < i * 37 + 1; j++)
			if (blocks[i][j] != (unsigned char)i)
				target_fail("a block has another content");
		free(blocks[i]);
	}
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	volatile uint64_t *rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (rounds == MAP_FAILED)
		target_fail("no board");
	/* At work from the start. */
	prctl(PR_SET_PDEATHSIG, 9);
	alarm(LIFE);
	dprintf(STDOUT_FILENO, "ready %d\n", getpid());
	while (poll(&input, 1, 0) != 1) {
		once();
		++*rounds;
	}
	target_wait();
	target_done();
	return 0;
}

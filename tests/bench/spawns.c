// SPDX-License-Identifier: MIT
/*
 * spawns COUNT ROUNDS: starts a short program by posix_spawn, COUNT times in each round, and waits for its end each time.
 * Prints the rate of each round, as a line at once.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int spawn(void)
{
	char *arguments[] = {"true", NULL};
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, "true", NULL, NULL, arguments, environ) || waitpid(pid, &status, 0) != pid)
		return 1;
	return status;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: spawns COUNT ROUNDS\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < atoi(argv[2]); i++) {
		double begin = now();

		for (int j = 0; j < atoi(argv[1]); j++)
			if (spawn())
				return 1;
		printf("%.1f\n", atoi(argv[1]) / (now() - begin));
		fflush(stdout);
	}
	return 0;
}

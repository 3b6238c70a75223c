// SPDX-License-Identifier: MIT
/*
 * reference ROUNDS: what this machine takes for things that every machine does, in ns: a round trip through two pipes
 * between two processes on one CPU (two switches, as a stop has) and a trivial system call. The best of ROUNDS.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRIPS 4000
#define CALLS 500 /* so few that some are made without another process in between */
#define TIMES 400

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void pin(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : (size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void answer(int in, int out)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(in, &byte, 1) == 1)
		if (write(out, &byte, 1) != 1)
			break;
	_exit(0);
}

static double time_pipe(int in, int out)
{
	double begun = now();
	char byte = 0;

	for (int i = 0; i < TRIPS; i++)
		if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
			exit(1);
	return (now() - begun) / TRIPS;
}

static double time_call(void)
{
	double best = 0;

	for (int times = 0; times < TIMES; times++) {
		double begun = now(), took;

		for (int i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		took = (now() - begun) / CALLS;
		if (times == 0 || took < best)
			best = took;
	}
	return best;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
	double trip = 0, call = 0;
	int there[2], back[2];
	pid_t child;

	pin();
	if (pipe(there) || pipe(back))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0)
		answer(there[0], back[1]);
	for (unsigned long i = 0; i < rounds; i++) {
		double trip_now = time_pipe(back[0], there[1]);
		double call_now = time_call();

		if (i == 0 || trip_now < trip)
			trip = trip_now;
		if (i == 0 || call_now < call)
			call = call_now;
	}
	printf("pipe_ns=%.1f syscall_ns=%.1f\n", trip, call);
	kill(child, SIGKILL);
	return 0;
}

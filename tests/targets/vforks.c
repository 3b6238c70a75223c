/* SPDX-License-Identifier: MIT */
/*
 * vforks [ROUNDS [THREADS [leaderless|alone [MS]]]]: threads that make children which live in their memory: vforked
 * ones that allocate and end, or allocate and run another program, and spawned ones. A child's blocks are the
 * process's: it frees some, its maker others, some nobody. Leaderless: the first thread ends when the work begins;
 * alone: it is the only one and does it. MS: of CPU time that children take before they end.
 */
#include "target.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 8

static size_t rounds = 20, count = 1;
static uint64_t labour_ns;
static bool leaderless, alone;
static char *const true_argv[] = {(char[]){"true"}, NULL};
static char *const no_environment[] = {NULL};
static pthread_barrier_t begin, finish;

static KEEP void *vforks_child(size_t size, int mark)
{
	void *block = malloc(size);

	if (!block)
		_exit(91);
	memset(block, mark, size);
	OPAQUE(block);
	return block;
}

static KEEP void *vforks_maker(size_t size, int mark)
{
	void *block = malloc(size);

	memset(block, mark, size);
	OPAQUE(block);
	return block;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void toil(void)
{
	uint64_t end = cpu_ns() + labour_ns;

	while (labour_ns && cpu_ns() < end)
		;
}

static void expect_status(pid_t pid, int status, const char *what)
{
	int got = 0;

	if (pid < 0)
		target_fail(what);
	while (waitpid(pid, &got, 0) < 0)
		if (errno != EINTR)
			target_fail("waitpid");
	if (!WIFEXITED(got) || WEXITSTATUS(got) != status) {
		target_say("wait_status", (uint64_t)got);
		target_fail(what);
	}
}

static void check_and_free(unsigned char *block, size_t size, unsigned char mark, const char *what)
{
	for (size_t i = 0; i < size; i++)
		if (block[i] != mark)
			target_fail(what);
	free(block);
}

/* One block freed by the child, one by its maker, one by nobody. */
static void ends(unsigned char mark)
{
	unsigned char *mine = vforks_maker(400, mark);
	unsigned char *volatile given = NULL;
	pid_t pid = vfork();

	if (pid == 0) {
		free(vforks_child(300, mark));
		given = vforks_child(301, mark);
		vforks_child(302, mark);
		toil();
		_exit(5);
	}
	expect_status(pid, 5, "a vforked child that allocates and ends");
	check_and_free(given, 301, mark, "what a child allocated has changed");
	check_and_free(mine, 400, mark, "memory changed under a thread");
}

static void execs(unsigned char mark)
{
	unsigned char *volatile given = NULL;
	pid_t pid = vfork();

	if (pid == 0) {
		given = vforks_child(303, mark);
		free(vforks_child(304, mark));
		execve("/bin/true", true_argv, no_environment);
		_exit(96);
	}
	expect_status(pid, 0, "a vforked child that allocates and runs a program");
	check_and_free(given, 303, mark, "what a child allocated has changed");
}

static void spawns(unsigned char mark)
{
	unsigned char *mine = vforks_maker(401, mark);
	pid_t pid = -1;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, no_environment) != 0)
		target_fail("posix_spawn");
	expect_status(pid, 0, "a spawned child");
	check_and_free(mine, 401, mark, "memory changed under a thread");
}

static void go_round(size_t number)
{
	for (size_t i = 0; i < rounds; i++) {
		unsigned char mark = (unsigned char)(number * 64 + i);

		ends(mark);
		execs(mark);
		spawns(mark);
	}
}

static void *work(void *number)
{
	pthread_barrier_wait(&begin);
	go_round((size_t)number);
	pthread_barrier_wait(&finish);
	pthread_barrier_wait(&finish);
	return NULL;
}

static void *lead(void *unused)
{
	pthread_t threads[MOST];
	uint64_t all = rounds * count;

	for (size_t i = 0; i < count && !alone; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
			target_fail("pthread_create");
	target_ready();
	if (alone)
		go_round(0);
	else
		pthread_barrier_wait(&begin);
	if (!alone)
		pthread_barrier_wait(&finish);
	target_say("vforks_maker.transient.count", all * 2);
	target_say("vforks_maker.impacting.count", 0);
	target_say("vforks_child.transient.count", all * 4);
	target_say("vforks_child.impacting.count", all);
	target_say("vforks_child.impacting.bytes", all * 302);
	/* Its end takes some memory, which stays. */
	if (!leaderless)
		target_say("heap.impacting.count", all);
	target_say("heap.aofi.count", 0);
	target_done();
	if (!alone)
		pthread_barrier_wait(&finish);
	for (size_t i = 0; i < count && !alone; i++)
		pthread_join(threads[i], NULL);
	exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t leader;

	if (argc > 1)
		rounds = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		count = strtoul(argv[2], NULL, 10);
	leaderless = argc > 3 && strcmp(argv[3], "leaderless") == 0;
	alone = argc > 3 && strcmp(argv[3], "alone") == 0;
	labour_ns = argc > 4 ? strtoul(argv[4], NULL, 10) * 1000000 : 0;
	if (count > MOST)
		count = MOST;
	pthread_barrier_init(&begin, NULL, (unsigned)count + 1 + leaderless);
	pthread_barrier_init(&finish, NULL, (unsigned)count + 1);
	if (!leaderless)
		lead(NULL);
	if (pthread_create(&leader, NULL, lead, NULL) != 0)
		target_fail("pthread_create");
	pthread_barrier_wait(&begin);
	pthread_exit(NULL);
}

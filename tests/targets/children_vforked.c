/* SPDX-License-Identifier: MIT */
/*
 * children_vforked [nested|alone]: threads whose vforked children live in the process's memory before anybody attaches,
 * and go on after that: they allocate, set masks and ask for actions. One runs another program, the others end; nested,
 * one has a child of the same sort itself, and waits for that. Each leaves BLOCKS blocks. Alone, there is but one
 * thread, which waits for one child.
 */
#include "target.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAKERS 3
#define BLOCKS 20

static volatile int inside, go_on;
static int nested, alone;
static char *const true_argv[] = {(char[]){"true"}, NULL};
static char *const no_environment[] = {NULL};
static pthread_barrier_t finish;

static void await(const volatile int *value, int least)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < least)
		nanosleep(&moment, NULL);
}

static KEEP void tenant_allocates(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		target_filled(100, 1);
		free(target_filled(50, 2));
	}
}

static KEEP void tenant_works(void)
{
	struct sigaction action;
	sigset_t all, before;

	__atomic_add_fetch(&inside, 1, __ATOMIC_ACQ_REL);
	await(&go_on, 1);
	tenant_allocates();
	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, &before) != 0)
		_exit(92);
	tenant_allocates();
	if (sigprocmask(SIG_SETMASK, &before, NULL) != 0 || sigismember(&before, SIGTRAP) != 0)
		_exit(93);
	if (sigaction(SIGTRAP, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
		_exit(94);
}

static void expect_status(pid_t pid, int status)
{
	int got = 0;

	if (pid < 0)
		target_fail("vfork");
	while (waitpid(pid, &got, 0) < 0)
		if (errno != EINTR)
			target_fail("waitpid");
	if (!WIFEXITED(got) || WEXITSTATUS(got) != status) {
		target_say("wait_status", (uint64_t)got);
		target_fail("a child has ended in another way than it should");
	}
}

static KEEP pid_t tenant(int sort)
{
	pid_t pid = vfork();

	if (pid != 0)
		return pid;
	alarm(60);
	if (alone) {
		target_ready();
		go_on = 1;
	}
	if (sort == 2 && nested)
		expect_status(tenant(0), 5);
	tenant_works();
	if (sort == 1)
		execve("/bin/true", true_argv, no_environment);
	_exit(5);
}

static void *make(void *number)
{
	int sort = (int)(size_t)number;

	expect_status(tenant(sort), sort == 1 ? 0 : 5);
	tenant_allocates();
	pthread_barrier_wait(&finish);
	pthread_barrier_wait(&finish);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t left;
	pthread_t threads[MAKERS];

	nested = argc > 1 && strcmp(argv[1], "nested") == 0;
	alone = argc > 1 && strcmp(argv[1], "alone") == 0;
	if (alone) {
		expect_status(tenant(0), 5);
		tenant_allocates();
		target_done();
		return 0;
	}
	pthread_barrier_init(&finish, NULL, MAKERS + 1);
	for (size_t i = 0; i < MAKERS; i++)
		if (pthread_create(&threads[i], NULL, make, (void *)i) != 0)
			target_fail("pthread_create");
	await(&inside, MAKERS);
	target_ready();
	__atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
	pthread_barrier_wait(&finish);
	/* The children twice, and their makers. */
	left = (uint64_t)(2 * (MAKERS + nested) + MAKERS) * BLOCKS;
	target_say("heap.impacting.count", left);
	target_say("heap.impacting.bytes", left * 100);
	target_say("heap.aofi.count", 0);
	target_done();
	pthread_barrier_wait(&finish);
	for (size_t i = 0; i < MAKERS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

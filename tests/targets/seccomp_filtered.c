/* SPDX-License-Identifier: MIT */
/*
 * seccomp_filtered MODE [PAIRS]: a program that has put itself under seccomp before memwatch comes, works, and at its
 * end does what is forbidden: it must die of that then, as nobody has changed its filters.
 *   strict       mode 1: read, write, exit and sigreturn only
 *   few          a filter that kills at all but read, write, exit, sigreturn, futex, restart
 *   deaf         a filter that kills at changes of signal actions and masks
 *   errno        a filter that has all but a few calls fail
 *   service      one that kills at what services don't do, and a second one that has new code fail
 *   container    one that has fail what containers may not
 *   sleeper      kills at restart_syscall, and a thread waits for long with what goes on by that
 *   later        `few`, but only when it is told to go on for the first time
 *   one-thread   `few` for one thread; the first one is free, and the process does not die
 *   first-thread `few` for the first thread; another is free
 *   none         no filter, but no new privileges: ends well
 */
#include "filters.h"
#include "target.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t pairs = 1000;
static pthread_barrier_t caught, begin, finish;
static bool in_thread;

/* `listed` for these system calls, `other` for all others. */
static void filter(const int *calls, size_t count, uint32_t listed, uint32_t other)
{
	struct filter filter = {.count = 0};

	filter_load(&filter, offsetof(struct seccomp_data, nr));
	filter_list(&filter, calls, count, listed);
	filter_answer(&filter, other);
	filter_install(&filter);
}

static void lock_up(const char *mode)
{
	static const int few[] = {SYS_read,         SYS_write, SYS_exit,           SYS_exit_group,
				  SYS_rt_sigreturn, SYS_futex, SYS_restart_syscall};
	static const int restart[] = {SYS_restart_syscall};
	static const int deaf[] = {SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack};

	if (strcmp(mode, "strict") == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		target_fail("seccomp");
	if (strcmp(mode, "few") == 0)
		filter(few, COUNT(few), SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
	if (strcmp(mode, "deaf") == 0)
		filter(deaf, COUNT(deaf), SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
	if (strcmp(mode, "errno") == 0)
		filter(few, COUNT(few), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EXDEV);
	if (strcmp(mode, "service") == 0) {
		filter_service(SECCOMP_RET_KILL_PROCESS);
		filter_no_new_code();
	}
	if (strcmp(mode, "container") == 0)
		filter_container(false);
	if (strcmp(mode, "sleeper") == 0)
		filter(restart, COUNT(restart), SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
	if (strcmp(mode, "none") == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		target_fail("prctl");
}

static KEEP void seccomp_filtered_pair(size_t i)
{
	unsigned char *block = malloc(1 + i % 900);

	if (!block)
		target_fail("there is no memory any more");
	memset(block, (int)(i & 0xff), 1 + i % 900);
	OPAQUE(block);
	if (block[i % 900] != (i & 0xff))
		target_fail("a block lost what was written there");
	free(block);
}

static KEEP void seccomp_filtered_leak(void)
{
	void *block = malloc(88);

	OPAQUE(block);
}

static void work(void)
{
	for (size_t i = 0; i < pairs; i++) {
		seccomp_filtered_pair(i);
		if (i % 10 == 0)
			seccomp_filtered_leak();
	}
}

static void *other(void *mode)
{
	free(malloc(1000000)); /* an arena of its own, large enough for all that comes */
	if (in_thread)
		lock_up(mode);
	pthread_barrier_wait(&caught);
	pthread_barrier_wait(&begin);
	if (strcmp(mode, "later") == 0)
		lock_up("few");
	work();
	pthread_barrier_wait(&finish);
	pthread_barrier_wait(&finish);
	return NULL;
}

/* In a wait that is gone on with by restart_syscall when somebody has interrupted it. */
static void *sleep_long(void *mode)
{
	const struct timespec long_time = {.tv_sec = 1000};

	lock_up(mode);
	pthread_barrier_wait(&caught);
	nanosleep(&long_time, NULL);
	target_fail("the wait was not gone on with");
}

/* The end of it: forbidden, but for who is free. */
static void break_out(const char *mode)
{
	if (strcmp(mode, "strict") == 0 || strcmp(mode, "few") == 0 || strcmp(mode, "later") == 0 ||
	    strcmp(mode, "service") == 0)
		syscall(SYS_getppid);
	if (strcmp(mode, "container") == 0 && (syscall(SYS_getppid) != -1 || errno != EPERM))
		target_fail("the container is open");
	if (strcmp(mode, "deaf") == 0)
		signal(SIGUSR1, SIG_IGN);
	if (strcmp(mode, "errno") == 0 && (syscall(SYS_getppid) != -1 || errno != EXDEV))
		target_fail("the filter is off");
	if (strcmp(mode, "none") == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		target_fail("there may be new privileges");
}

int main(int argc, char **argv)
{
	char *mode = argc > 1 ? argv[1] : (char[]){"none"};
	bool alone = strcmp(mode, "strict") == 0;
	char few[] = "few", ready[32], byte;
	uint64_t workers = alone ? 1 : 2;
	bool later = strcmp(mode, "later") == 0;
	pthread_t thread, sleeper;

	if (argc > 2)
		pairs = strtoul(argv[2], NULL, 10);
	in_thread = strcmp(mode, "first-thread") != 0;
	/* No system call for memory later. */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	free(malloc(1000000));
	pthread_barrier_init(&caught, NULL, 2);
	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&finish, NULL, 2);
	if (!alone && pthread_create(&thread, NULL, other, strcmp(mode, "one-thread") ? mode : few) != 0)
		target_fail("pthread_create");
	if (!alone)
		pthread_barrier_wait(&caught);
	if (strcmp(mode, "sleeper") == 0) {
		if (pthread_create(&sleeper, NULL, sleep_long, mode) != 0)
			target_fail("pthread_create");
		pthread_barrier_wait(&caught);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(120);
	snprintf(ready, sizeof(ready), "ready %d", (int)getpid());
	lock_up(strcmp(mode, "first-thread") ? mode : few);
	target_say_text(ready);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		_exit(98);
	if (!alone)
		pthread_barrier_wait(&begin);
	if (later)
		lock_up("few");
	work();
	if (!alone)
		pthread_barrier_wait(&finish);
	target_say("seccomp_filtered_pair.transient.count", workers * pairs);
	target_say("seccomp_filtered_leak.impacting.count", workers * ((pairs + 9) / 10));
	target_say("seccomp_filtered_leak.impacting.bytes", workers * ((pairs + 9) / 10) * 88);
	target_say("heap.size.count", workers * (pairs + (pairs + 9) / 10));
	target_done();
	break_out(mode);
	_exit(0);
}

/* SPDX-License-Identifier: MIT */
/*
 * caged MODE [PAIRS]: a program that has put itself under seccomp before memwatch comes, works, and at its end does
 * what is forbidden: it must die of that then, as nobody has opened its cage.
 *   strict       mode 1: read, write, exit and sigreturn only
 *   few          a filter that kills at all but read, write, exit, sigreturn, futex
 *   deaf         a filter that kills at changes of signal actions and masks
 *   errno        a filter that has all but a few calls fail
 *   one-thread   `few` for one thread; the first one is free, and the process does not die
 *   first-thread `few` for the first thread; another is free
 *   none         no cage, but no new privileges: ends well
 */
#include "target.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t pairs = 1000;
static pthread_barrier_t caught, begin, finish;
static bool in_thread;

static struct sock_filter load = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));

/* `listed` for these system calls, `other` for all others. */
static void filter(const int *calls, size_t count, uint32_t listed, uint32_t other)
{
	struct sock_filter code[32];
	struct sock_fprog program = {.filter = code};
	size_t n = 0;

	code[n++] = load;
	for (size_t i = 0; i < count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		target_fail("seccomp");
}

static void lock_up(const char *mode)
{
	static const int few[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_futex};
	static const int deaf[] = {SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack};

	if (strcmp(mode, "strict") == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		target_fail("seccomp");
	if (strcmp(mode, "few") == 0)
		filter(few, COUNT(few), SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
	if (strcmp(mode, "deaf") == 0)
		filter(deaf, COUNT(deaf), SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
	if (strcmp(mode, "errno") == 0)
		filter(few, COUNT(few), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EXDEV);
	if (strcmp(mode, "none") == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		target_fail("prctl");
}

static KEEP void caged_pair(size_t i)
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

static KEEP void caged_leak(void)
{
	void *block = malloc(88);

	OPAQUE(block);
}

static void work(void)
{
	for (size_t i = 0; i < pairs; i++) {
		caged_pair(i);
		if (i % 10 == 0)
			caged_leak();
	}
}

static void *other(void *mode)
{
	free(malloc(1000000)); /* an arena of its own, large enough for all that comes */
	if (in_thread)
		lock_up(mode);
	pthread_barrier_wait(&caught);
	pthread_barrier_wait(&begin);
	work();
	pthread_barrier_wait(&finish);
	pthread_barrier_wait(&finish);
	return NULL;
}

/* The end of it: forbidden, but for who is free. */
static void break_out(const char *mode)
{
	if (strcmp(mode, "strict") == 0 || strcmp(mode, "few") == 0)
		syscall(SYS_getppid);
	if (strcmp(mode, "deaf") == 0)
		signal(SIGUSR1, SIG_IGN);
	if (strcmp(mode, "errno") == 0 && (syscall(SYS_getppid) != -1 || errno != EXDEV))
		target_fail("the cage is open");
	if (strcmp(mode, "none") == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		target_fail("there may be new privileges");
}

int main(int argc, char **argv)
{
	char *mode = argc > 1 ? argv[1] : (char[]){"none"};
	bool alone = strcmp(mode, "strict") == 0;
	char few[] = "few", ready[32], byte;
	uint64_t workers = alone ? 1 : 2;
	pthread_t thread;

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
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(120);
	snprintf(ready, sizeof(ready), "ready %d", (int)getpid());
	lock_up(strcmp(mode, "first-thread") ? mode : few);
	target_say_text(ready);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		_exit(98);
	if (!alone)
		pthread_barrier_wait(&begin);
	work();
	if (!alone)
		pthread_barrier_wait(&finish);
	target_say("caged_pair.transient.count", workers * pairs);
	target_say("caged_leak.impacting.count", workers * ((pairs + 9) / 10));
	target_say("caged_leak.impacting.bytes", workers * ((pairs + 9) / 10) * 88);
	target_say("heap.size.count", workers * (pairs + (pairs + 9) / 10));
	target_done();
	break_out(mode);
	_exit(0);
}

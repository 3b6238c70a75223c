/* SPDX-License-Identifier: MIT */
/*
 * cleared: children as posix_spawn() of newer C libraries makes them: in the maker's memory, without its actions for
 * signals (CLONE_CLEAR_SIGHAND), they set their mask and run another program. One waits inside until it is told to go
 * on, CHILDREN more come after that. Another thread blocks all signals. Says how many did not end well.
 */
#include "target.h"

#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 50

static volatile int begin, inside, go_on;
static unsigned failed;
static char child_stack[65536] __attribute__((aligned(64)));
static char *const true_argv[] = {(char[]){"true"}, NULL};
static char *const no_environment[] = {NULL};

static void await(const volatile int *value)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	while (!__atomic_load_n(value, __ATOMIC_ACQUIRE))
		nanosleep(&moment, NULL);
}

static KEEP void cleared_child(void)
{
	sigset_t none;

	sigemptyset(&none);
	__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
	await(&go_on);
	if (sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execve("/bin/true", true_argv, no_environment);
	_exit(91);
}

/* The maker's stack is in use until the child is another program, so this one has one of its own. */
static KEEP pid_t make_child(void)
{
	struct clone_args arguments = {.flags = CLONE_VM | CLONE_VFORK | CLONE_CLEAR_SIGHAND,
				       .exit_signal = SIGCHLD,
				       .stack = (uintptr_t)child_stack,
				       .stack_size = sizeof(child_stack)};
	long pid;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "call *%[child]\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(pid)
			 : "0"((long)SYS_clone3), "D"(&arguments), "S"(sizeof(arguments)), [child] "r"(cleared_child)
			 : "rcx", "r11", "memory");
	return (pid_t)pid;
}

static void spawn(void)
{
	int status = -1;
	pid_t pid = make_child();

	if (pid < 0)
		target_fail("clone3");
	if (waitpid(pid, &status, 0) != pid || status != 0)
		failed++;
}

static void *make(void *unused)
{
	await(&begin);
	spawn();
	for (int i = 0; i < CHILDREN; i++) {
		free(target_filled(100, 1));
		spawn();
	}
	return unused;
}

static void *block(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, NULL) != 0)
		target_fail("pthread_sigmask");
	for (;;)
		pause();
	return unused;
}

int main(void)
{
	pthread_t maker, blocker;

	if (pthread_create(&maker, NULL, make, NULL) != 0 || pthread_create(&blocker, NULL, block, NULL) != 0)
		target_fail("pthread_create");
	target_ready();
	begin = 1;
	await(&inside);
	target_say_text("inside");
	target_wait();
	go_on = 1;
	if (pthread_join(maker, NULL) != 0)
		target_fail("pthread_join");
	target_say("failed", failed);
	target_done();
	return 0;
}

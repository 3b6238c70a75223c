// SPDX-License-Identifier: MIT
/* free_trace.c: a breakpoint lifted and put back around each call; one thread runs at a time, so none slips by. */
#include "free_trace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define INT3 0xcc

struct tracer {
	long address, text; /* free, and the word that stands there */
	const volatile bool *ending;
	struct free_call *calls;
	int count;
};

static void run_child(void *(*body)(void *), void *argument)
{
	pthread_t thread;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	if (pthread_create(&thread, NULL, body, argument) == 0)
		pthread_join(thread, NULL);
	_exit(0);
}

static void plant(const struct tracer *tracer, pid_t tid)
{
	ptrace(PTRACE_POKETEXT, tid, tracer->address, (tracer->text & ~0xffL) | INT3);
}

/* Note the call at the breakpoint and step over it. False where the thread is gone. */
static bool handle_hit(struct tracer *tracer, pid_t tid)
{
	struct user_regs_struct regs;
	int status;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return false;
	if ((long)regs.rip != tracer->address + 1)
		return true;
	if (tracer->count < FREE_CALLS_MAX)
		tracer->calls[tracer->count++] = (struct free_call){
			regs.rdi, (mw_addr)ptrace(PTRACE_PEEKDATA, tid, regs.rsp, 0), *tracer->ending};
	regs.rip--;
	ptrace(PTRACE_SETREGS, tid, 0, &regs);
	ptrace(PTRACE_POKETEXT, tid, tracer->address, tracer->text);
	ptrace(PTRACE_SINGLESTEP, tid, 0, 0);
	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return false;
	plant(tracer, tid);
	return true;
}

/* Serve the child and its threads until it ends. */
static int serve(struct tracer *tracer, pid_t child)
{
	for (;;) {
		int status, signal;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0)
			return errno == ECHILD ? tracer->count : -1;
		if (!WIFSTOPPED(status)) {
			if (tid == child)
				return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? tracer->count : -1;
			continue;
		}
		signal = WSTOPSIG(status);
		if (signal == SIGTRAP && !(status >> 16) && !handle_hit(tracer, tid))
			continue;
		if (signal == SIGTRAP || signal == SIGSTOP) /* ours, or a new thread's first stop */
			signal = 0;
		ptrace(PTRACE_CONT, tid, 0, signal);
	}
}

int free_trace(void *(*body)(void *), void *argument, const volatile bool *ending, struct free_call *calls)
{
	struct tracer tracer = {.address = (long)(uintptr_t)free, .ending = ending, .calls = calls};
	pid_t child = fork();
	int status;

	if (child == 0)
		run_child(body, argument);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return -1;
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
	tracer.text = ptrace(PTRACE_PEEKTEXT, child, tracer.address, 0);
	plant(&tracer, child);
	ptrace(PTRACE_CONT, child, 0, 0);
	return serve(&tracer, child);
}

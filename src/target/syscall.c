// SPDX-License-Identifier: MIT
/*
 * syscall.c: a system call in a target (syscall.h).
 *
 *     stop (any)      save registers and mask, block all signals, point the pc at a syscall instruction
 *     PTRACE_SYSCALL  to the call's entry
 *     PTRACE_SYSCALL  to its exit: the result
 *     interrupt, CONT to an interrupt's stop: the only one from which the kernel restarts a call that was
 *                     interrupted before all this
 *     restore
 */
#include "target/syscall.h"

#include "target/tracee.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STOPS 64

static struct mw_error *failed(const char *what, pid_t tid)
{
	return mw_error_create(errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errno, "cannot %s thread %d", what,
			       tid);
}

/*
 * Resume by `request` until a stop that `wanted` accepts. With everything blocked only SIGSTOP can come between; it
 * is put back for later.
 */
static struct mw_error *resume_until(pid_t tid, enum __ptrace_request request, bool (*wanted)(int status))
{
	for (int i = 0; i < MAX_STOPS; i++) {
		int status;
		pid_t got;

		if (ptrace(request, tid, NULL, NULL))
			return failed("resume", tid);
		do
			got = waitpid(tid, &status, __WALL);
		while (got < 0 && errno == EINTR);
		if (got < 0)
			return failed("wait for", tid);
		if (!WIFSTOPPED(status))
			return mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", tid);
		if (wanted(status))
			return NULL;
		if (status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP)
			syscall(SYS_tkill, tid, SIGSTOP);
		else if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
			break; /* a fault of its own making: not to be gone on with */
	}
	return mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d does not get to a system call", tid);
}

static bool at_syscall(int status)
{
	return status >> 16 == 0 && WSTOPSIG(status) == (SIGTRAP | MW_SYSCALL_STOP);
}

static bool at_interrupt(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

static struct mw_error *perform(pid_t tid, struct mw_tracee_regs *regs, int64_t *result)
{
	MW_TRY(mw_tracee_set_regs(tid, regs));
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall));
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall));
	MW_TRY(mw_tracee_get_regs(tid, regs));
	*result = mw_regs_syscall_result(&regs->general);
	MW_TRY(mw_tracee_interrupt(tid));
	return resume_until(tid, PTRACE_CONT, at_interrupt);
}

struct mw_error *mw_remote_syscall(pid_t tid, mw_addr insn, long number, const uint64_t arguments[6], int64_t *result)
{
	struct mw_tracee_regs before, regs;
	struct mw_error *err, *after;
	uint64_t mask;
	int64_t returned = 0;

	MW_TRY(mw_tracee_get_sigmask(tid, &mask));
	MW_TRY(mw_tracee_get_regs(tid, &before));
	MW_TRY(mw_tracee_set_sigmask(tid, UINT64_MAX));
	regs = before;
	mw_regs_set_syscall(&regs.general, insn, number, arguments);
	err = perform(tid, &regs, &returned);
	after = mw_tracee_set_regs(tid, &before);
	if (!after)
		after = mw_tracee_set_sigmask(tid, mask);
	else
		mw_error_destroy(mw_tracee_set_sigmask(tid, mask));
	if (err) {
		mw_error_destroy(after);
		return err;
	}
	if (after)
		return after;
	*result = returned;
	return NULL;
}

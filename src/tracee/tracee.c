// SPDX-License-Identifier: MIT
/* tracee.c: the ptrace requests (tracee.h). */
#include "tracee/tracee.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACE_OPTIONS                                                                                                  \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT |    \
	 PTRACE_O_TRACESYSGOOD)

static struct mw_error *failed(const char *what, pid_t tid)
{
	enum mw_error_kind kind = MW_ERROR_SYSTEM;

	if (errno == ESRCH)
		kind = MW_ERROR_GONE;
	else if (errno == EPERM || errno == EACCES)
		kind = MW_ERROR_DENIED;
	return mw_error_create(kind, errno, "cannot %s thread %d", what, tid);
}

struct mw_error *mw_tracee_request(int request, pid_t tid, size_t address, void *data, const char *what)
{
	return ptrace((enum __ptrace_request)request, tid, address, data) ? failed(what, tid) : NULL;
}

struct mw_error *mw_tracee_seize(pid_t tid)
{
	return mw_tracee_request(PTRACE_SEIZE, tid, 0, (void *)TRACE_OPTIONS, "attach to");
}

pid_t mw_tracee_wait_for(pid_t tid, int *status, int flags, bool ends)
{
	siginfo_t info = {.si_pid = 0};
	bool stop;

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | flags))
		return -1;
	if (info.si_pid != tid)
		return 0;
	stop = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
	/* Events have more bits. */
	if (stop && info.si_status > 0 && info.si_status < MW_SYSCALL_STOP) {
		*status = W_STOPCODE(info.si_status);
		return tid;
	}
	if (ends)
		return waitpid(tid, status, __WALL | WNOHANG);
	/* Its end may have come since. */
	info.si_pid = 0;
	if (stop && waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL) == 0) {
		*status = W_STOPCODE(info.si_status);
		return info.si_pid;
	}
	errno = ESRCH;
	return -1;
}

void mw_tracee_take_signal(pid_t tid)
{
	siginfo_t info;

	/* Only a stop: if it was killed meanwhile, its end is to be heard of as any. */
	(void)waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL);
}

bool mw_tracee_is_group_stopped(pid_t tid)
{
	siginfo_t info;

	return ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0 && info.si_code >> 8 == PTRACE_EVENT_STOP &&
	       mw_tracee_is_group_stop(info.si_code & 0xff);
}

void mw_tracee_requeue(pid_t pid, pid_t tid, siginfo_t *info)
{
	if (syscall(SYS_rt_tgsigqueueinfo, pid, tid, info->si_signo, info))
		syscall(SYS_tgkill, pid, tid, info->si_signo);
}

struct mw_error *mw_tracee_to_border(pid_t tid)
{
	int status;

	for (;;) {
		siginfo_t info;
		pid_t got;

		/* Anew each time: another stop takes an interrupt along that came before it. */
		MW_TRY(mw_tracee_interrupt(tid));
		MW_TRY(mw_tracee_resume(tid, 0));
		do
			got = mw_tracee_wait_stop(tid, &status, 0);
		while (got == 0 || (got < 0 && errno == EINTR));
		if (got < 0)
			return failed("wait for", tid);
		if (!WIFSTOPPED(status))
			return mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", tid);
		if (status >> 16 == PTRACE_EVENT_STOP)
			return NULL;
		if (status >> 16 == 0) {
			MW_TRY(mw_tracee_siginfo(tid, &info));
			mw_tracee_requeue(tid, tid, &info);
		}
	}
}

bool mw_tracee_trap_queued(pid_t tid)
{
	struct __ptrace_peeksiginfo_args args = {.off = 0, .flags = 0, .nr = 32};
	siginfo_t infos[32];
	long count = ptrace(PTRACE_PEEKSIGINFO, tid, &args, infos);

	for (long i = 0; i < count; i++)
		if (infos[i].si_signo == SIGTRAP && infos[i].si_code == SI_KERNEL)
			return true;
	return false;
}

struct mw_error *mw_tracee_suspend_seccomp(pid_t tid, bool suspended)
{
	/* The options are set as a whole. */
	unsigned long options = TRACE_OPTIONS | (suspended ? PTRACE_O_SUSPEND_SECCOMP : 0);

	return mw_tracee_request(PTRACE_SETOPTIONS, tid, 0, (void *)options, "suspend the seccomp filter of");
}

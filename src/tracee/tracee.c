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

/* glibc's ptrace() takes an enum for requests that its header may not have yet. */
static long request(int what, pid_t tid, unsigned long address, unsigned long data)
{
	return ptrace((enum __ptrace_request)what, tid, address, data);
}

static struct mw_error *failed(const char *what, pid_t tid)
{
	enum mw_error_kind kind = MW_ERROR_SYSTEM;

	if (errno == ESRCH)
		kind = MW_ERROR_GONE;
	else if (errno == EPERM || errno == EACCES)
		kind = MW_ERROR_DENIED;
	return mw_error_create(kind, errno, "cannot %s thread %d", what, tid);
}

struct mw_error *mw_tracee_seize(pid_t tid)
{
	return request(PTRACE_SEIZE, tid, 0, TRACE_OPTIONS) ? failed("attach to", tid) : NULL;
}

static pid_t wait_for(pid_t tid, int *status, int flags, bool ends)
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

pid_t mw_tracee_wait(pid_t tid, int *status, int flags)
{
	return wait_for(tid, status, flags, true);
}

pid_t mw_tracee_wait_stop(pid_t tid, int *status, int flags)
{
	return wait_for(tid, status, flags, false);
}

void mw_tracee_take_signal(pid_t tid)
{
	siginfo_t info;

	/* Only a stop: if it was killed meanwhile, its end is to be heard of as any. */
	(void)waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL);
}

struct mw_error *mw_tracee_interrupt(pid_t tid)
{
	return request(PTRACE_INTERRUPT, tid, 0, 0) ? failed("stop", tid) : NULL;
}

struct mw_error *mw_tracee_resume(pid_t tid, int signal)
{
	return request(PTRACE_CONT, tid, 0, (unsigned long)signal) ? failed("resume", tid) : NULL;
}

struct mw_error *mw_tracee_listen(pid_t tid)
{
	return request(PTRACE_LISTEN, tid, 0, 0) ? failed("leave stopped", tid) : NULL;
}

bool mw_tracee_is_group_stopped(pid_t tid)
{
	siginfo_t info;

	return ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0 && info.si_code >> 8 == PTRACE_EVENT_STOP &&
	       mw_tracee_is_group_stop(info.si_code & 0xff);
}

struct mw_error *mw_tracee_detach(pid_t tid, int signal)
{
	return request(PTRACE_DETACH, tid, 0, (unsigned long)signal) ? failed("detach from", tid) : NULL;
}

struct mw_error *mw_tracee_get_regs(pid_t tid, struct mw_tracee_regs *out)
{
	if (ptrace(PTRACE_GETREGS, tid, NULL, &out->raw))
		return failed("read the registers of", tid);
	mw_regs_from_kernel(&out->raw, &out->general);
	return NULL;
}

struct mw_error *mw_tracee_set_regs(pid_t tid, struct mw_tracee_regs *regs)
{
	mw_regs_to_kernel(&regs->general, &regs->raw);
	return ptrace(PTRACE_SETREGS, tid, NULL, &regs->raw) ? failed("set the registers of", tid) : NULL;
}

struct mw_error *mw_tracee_set_pc(pid_t tid, mw_addr pc)
{
	return request(PTRACE_POKEUSER, tid, mw_machine.pc, pc) ? failed("set the pc of", tid) : NULL;
}

struct mw_error *mw_tracee_siginfo(pid_t tid, siginfo_t *out)
{
	return ptrace(PTRACE_GETSIGINFO, tid, NULL, out) ? failed("read the signal of", tid) : NULL;
}

struct mw_error *mw_tracee_set_siginfo(pid_t tid, const siginfo_t *info)
{
	return ptrace(PTRACE_SETSIGINFO, tid, NULL, info) ? failed("change the signal of", tid) : NULL;
}

struct mw_error *mw_tracee_event_message(pid_t tid, unsigned long *out)
{
	return ptrace(PTRACE_GETEVENTMSG, tid, NULL, out) ? failed("read the event of", tid) : NULL;
}

struct mw_error *mw_tracee_get_sigmask(pid_t tid, uint64_t *out)
{
	uint64_t mask;

	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask))
		return failed("read the signal mask of", tid);
	*out = mask;
	return NULL;
}

struct mw_error *mw_tracee_set_sigmask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask) ? failed("set the signal mask of", tid) : NULL;
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

	return request(PTRACE_SETOPTIONS, tid, 0, options) ? failed("suspend the seccomp filter of", tid) : NULL;
}

struct mw_error *mw_tracee_mend_interrupted_call(pid_t tid)
{
	struct mw_tracee_regs regs;

	MW_TRY(mw_tracee_get_regs(tid, &regs));
	if (!mw_regs_restart(&regs.general, EINTR))
		return NULL;
	return mw_tracee_set_regs(tid, &regs);
}

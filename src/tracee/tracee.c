// SPDX-License-Identifier: MIT
/* tracee.c: the ptrace requests, and a target's memory (tracee.h). */
#include "tracee/tracee.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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
	/* Not all kernels refuse it. */
	if (mw_stat_kernel_worker(tid))
		return mw_error_create(MW_ERROR_DENIED, EPERM, "thread %d is one of the kernel's", (int)tid);
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

/* --- memory --------------------------------------------------------------------------------------------------------- */

struct mw_error *mw_remote_read_all(pid_t tid, mw_addr addr, void *out, size_t size)
{
	size_t got = mw_remote_read(tid, addr, out, size);

	if (got == size)
		return NULL;
	return mw_error_create(MW_ERROR_DATA, 0, "cannot read %zu bytes at 0x%llx of thread %d", size,
			       (unsigned long long)addr, tid);
}

static ssize_t write_by_call(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	const struct iovec here = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	/* The kernel takes the address as a pointer; it is never followed here. */
	const struct iovec there = {.iov_base = (void *)(uintptr_t)addr, .iov_len = size};

	return process_vm_writev(tid, &here, 1, &there, 1, 0);
}

struct mw_error *mw_remote_write(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	ssize_t done;

	/* A page that is not there yet may not be waited for, as when it is read (mw_peek_some). */
	if (mw_peek_is_careful())
		return mw_remote_poke(tid, addr, bytes, size);
	done = write_by_call(tid, addr, bytes, size);
	if (done == (ssize_t)size)
		return NULL;
	if (done < 0 && errno == EPERM && mw_peek_kept_write(tid, addr, bytes, size))
		return NULL;
	return mw_error_create(done < 0 && errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_DATA, done < 0 ? errno : 0,
			       "cannot write %zu bytes at 0x%llx of thread %d", size, (unsigned long long)addr, tid);
}

/* The way in that needs no stop; kernels of 6.12 and later may be set up to forbid it. */
static bool write_by_file(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	MW_CLOSE int fd = open(mw_path("/proc/%d/mem", tid).text, O_RDWR | O_CLOEXEC);

	return fd >= 0 && pwrite(fd, bytes, size, (off_t)addr) == (ssize_t)size;
}

static bool in_one_word(mw_addr addr, size_t size)
{
	return addr / sizeof(long) == (addr + size - 1) / sizeof(long);
}

struct mw_error *mw_remote_poke(pid_t tid, mw_addr addr, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	int errnum;

	/* In one go if it can be: a memwatch that is killed must not leave half an instruction. */
	if (size > 0 && !in_one_word(addr, size) && write_by_file(tid, addr, bytes, size))
		return NULL;
	while (size > 0) {
		mw_addr word_addr = addr & ~(mw_addr)(sizeof(long) - 1);
		size_t skip = (size_t)(addr - word_addr);
		size_t length = sizeof(long) - skip;
		long word;

		if (length > size)
			length = size;
		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)word_addr, NULL);
		if (word == -1 && errno)
			break;
		memcpy((char *)&word + skip, from, length);
		if (ptrace(PTRACE_POKEDATA, tid, (void *)(uintptr_t)word_addr, (void *)word))
			break;
		addr += length;
		from += length;
		size -= length;
	}
	errnum = errno;
	if (size == 0 || (errnum == ESRCH && write_by_file(tid, addr, from, size)))
		return NULL;
	/* To a tracer of a process that has become another's (setuid), the kernel says EIO. */
	if (mw_peek_kept_write(tid, addr, from, size))
		return NULL;
	return mw_error_create(errnum == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errnum,
			       "cannot write to address 0x%llx of thread %d", (unsigned long long)addr, tid);
}

// SPDX-License-Identifier: MIT
/*
 * syscall.c: a system call in a target (syscall.h).
 *
 *     stop (any)      save registers and mask, lay a way back, point the pc at a syscall instruction, block all signals
 *     PTRACE_SYSCALL  to the call's entry
 *     PTRACE_SYSCALL  to its exit: the result
 *     interrupt, CONT to an interrupt's stop: the only one from which the kernel restarts a call that was
 *                     interrupted before all this
 *     restore         the mask, then the registers, then what the way back lies on: whenever memwatch is killed, what
 *                     there is leads back to the thread's own work
 */
#include "target/syscall.h"

#include "proc/status.h"
#include "target/tracee.h"
#include "target/way_back.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STOPS 64
#define YIELDS    1000u /* a stop comes within microseconds, as a rule */
#define NAP_US    100
#define CONT_BIT  (UINT64_C(1) << (SIGCONT - 1))

static struct mw_error *failed(const char *what, pid_t tid)
{
	return mw_error_create(errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errno, "cannot %s thread %d", what,
			       tid);
}

/*
 * Wait for the thread's next stop. A first thread that was killed tells of its end only when all others have been
 * waited for, which is not done here: it is dead when /proc says so.
 */
static struct mw_error *await(pid_t tid, int *status)
{
	for (unsigned i = 0;; i++) {
		pid_t got = mw_tracee_wait_stop(tid, status, WNOHANG);
		struct mw_status state;
		struct mw_error *err;
		bool dead;

		if (got == tid)
			return NULL;
		if (got < 0 && errno != EINTR)
			return failed("wait for", tid);
		if (i < YIELDS) {
			sched_yield();
			continue;
		}
		usleep(NAP_US);
		err = mw_status_read(tid, &state);
		dead = err ? mw_error_kind(err) == MW_ERROR_GONE : state.state == 'Z' || state.state == 'X';
		mw_error_destroy(err);
		if (dead)
			return mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", tid);
	}
}

static bool at_syscall(int status)
{
	return status >> 16 == 0 && WSTOPSIG(status) == (SIGTRAP | MW_SYSCALL_STOP);
}

static bool at_interrupt(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

/* Resume by `request` until a stop that `wanted` accepts. With everything blocked only SIGSTOP can come between: then
 * `*put_off` is set. */
static struct mw_error *resume_until(pid_t tid, enum __ptrace_request request, bool (*wanted)(int status),
				     bool *put_off)
{
	for (int i = 0; i < MAX_STOPS; i++) {
		int status;

		/* Anew each time: another stop takes an interrupt along that came before it. */
		if (wanted == at_interrupt)
			MW_TRY(mw_tracee_interrupt(tid));
		if (ptrace(request, tid, NULL, NULL))
			return failed("resume", tid);
		MW_TRY(await(tid, &status));
		if (!WIFSTOPPED(status))
			return mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", tid);
		if (wanted(status))
			return NULL;
		if (status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP) {
			*put_off = true;
		} else if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP) {
			/* A fault of its own making, which is no signal of the program's: not to be gone on with. */
			mw_tracee_take_signal(tid);
			break;
		}
	}
	return mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d does not get to a system call", tid);
}

static struct mw_error *go_through(pid_t tid, struct mw_tracee_regs *regs, int64_t *result, bool *put_off)
{
	MW_TRY(mw_tracee_set_regs(tid, regs));
	MW_TRY(mw_tracee_set_sigmask(tid, UINT64_MAX));
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall, put_off));
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall, put_off));
	MW_TRY(mw_tracee_get_regs(tid, regs));
	*result = mw_regs_syscall_result(&regs->general);
	return resume_until(tid, PTRACE_CONT, at_interrupt, put_off);
}

/* A SIGCONT that is still to come came after any SIGSTOP: a SIGSTOP takes it away. */
static bool is_continued(pid_t tid)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);
	bool continued = !err && (status.sig_pending | status.shared_pending) & CONT_BIT;

	mw_error_destroy(err);
	return continued;
}

/* A SIGSTOP that came is sent again when all is done: nothing blocks it, so before that it would come each time. */
static struct mw_error *perform(pid_t tid, struct mw_tracee_regs *regs, int64_t *result)
{
	bool put_off = false;
	struct mw_error *err = go_through(tid, regs, result, &put_off);

	if (put_off && !is_continued(tid))
		syscall(SYS_tkill, tid, SIGSTOP);
	return err;
}

static struct mw_error *perform_and_restore(pid_t tid, mw_addr insn, long number, const uint64_t arguments[6],
					    mw_addr restorer, struct mw_way_back *way, int64_t *result)
{
	const struct mw_arch *arch = mw_arch_find(mw_target_machine());
	struct mw_tracee_regs before, regs;
	struct mw_error *err;
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(tid, &mask));
	MW_TRY(mw_tracee_get_regs(tid, &before));
	if (restorer)
		MW_TRY(mw_way_back_lay(tid, &before, mask, restorer, way));
	regs = before;
	mw_regs_set_syscall(&regs.general, insn, number, arguments);
	if (way->size)
		regs.general.gpr[arch->dwarf_sp] = way->sp;
	err = perform(tid, &regs, result);
	err = mw_error_first(err, mw_tracee_set_sigmask(tid, mask));
	err = mw_error_first(err, mw_tracee_set_regs(tid, &before));
	mw_way_back_take_up(tid, way);
	return err;
}

struct mw_error *mw_remote_syscall(pid_t tid, mw_addr insn, mw_addr restorer, long number, const uint64_t arguments[6],
				   int64_t *result)
{
	/* Not of the heap: what was done must be taken back where memwatch has no memory left. */
	struct mw_way_back way = {.size = 0};
	int64_t returned = 0;
	struct mw_error *err = perform_and_restore(tid, insn, number, arguments, restorer, &way, &returned);

	if (!err)
		*result = returned;
	return err;
}

// SPDX-License-Identifier: MIT
/*
 * syscall.c: a system call in a target (syscall.h).
 *
 *     stop (any)      save registers and mask, lay a sigframe, point the pc at a syscall instruction, block all signals
 *                     but SIGSYS: the kernel would drop its action to kill by it, where it is blocked and comes of the
 *                     call
 *     PTRACE_SYSCALL  to the call's entry
 *     PTRACE_SYSCALL  to its exit: the result
 *     interrupt, CONT to an interrupt's stop: the only one from which the kernel restarts a call that was
 *                     interrupted before all this
 *     restore         the mask, then the registers, then what the sigframe lies on: whenever memwatch is killed, what
 *                     there is leads back to the thread's own work
 */
#include "tracee/syscall.h"

#include "base/clock.h"
#include "base/fault.h"
#include "proc/status.h"
#include "tracee/remote.h"
#include "tracee/sigframe.h"
#include "tracee/tracee.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STOPS              64
#define FINISH_STOPS           4     /* entry and exit of the call, entry and exit of rt_sigreturn */
#define YIELDS                 1000u /* a stop comes within microseconds, as a rule */
#define NAP_US                 100
#define BIT(signal)            (UINT64_C(1) << ((signal)-1))
#define FROZEN_NS              UINT64_C(2000000000)
#define STOP_NS                UINT64_C(2000000000)
#define GET_RSEQ_CONFIGURATION 0x420f

struct rseq_configuration {
	uint64_t pointer;
	uint32_t size, signature, flags, pad;
};

/* struct rseq: cpu_id_start and cpu_id of 32 bits each come first. */
#define SEQUENCE 8

struct sequence {
	uint32_t version, flags;
	uint64_t start, length, abort;
};

/*
 * A thread that is stopped inside a restartable sequence is to begin it anew: the kernel sees to that when it goes on,
 * unless it finds it elsewhere then, as one that performs a system call for us. So `regs`, which are to be put back
 * later, are led to the sequence's abort handler here. Nothing else is changed; before Linux 5.13 nothing at all.
 */
static void rseq_abort(pid_t tid, struct mw_tracee_regs *regs)
{
	struct rseq_configuration known = {.pointer = 0};
	struct sequence sequence;
	uint32_t signature;
	uint64_t at = 0;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, tid, sizeof(known), &known) < (long)sizeof(known) ||
	    !known.pointer)
		return;
	if (mw_remote_read(tid, known.pointer + SEQUENCE, &at, sizeof(at)) != sizeof(at) || !at)
		return;
	if (mw_remote_read(tid, at, &sequence, sizeof(sequence)) != sizeof(sequence) || sequence.version != 0)
		return;
	if (regs->general.pc - sequence.start >= sequence.length)
		return;
	/* What the kernel would end the program for is left to it. */
	if (mw_remote_read(tid, sequence.abort - sizeof(signature), &signature, sizeof(signature)) ==
		    sizeof(signature) &&
	    signature == known.signature)
		regs->general.pc = sequence.abort;
}

static struct mw_error *failed(const char *what, pid_t tid)
{
	return mw_error_create(errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errno, "cannot %s thread %d", what,
			       tid);
}

static bool is_dead(pid_t tid, char *state)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);
	bool dead = err ? mw_error_kind(err) == MW_ERROR_GONE : mw_state_is_end(status.state);

	*state = err ? '\0' : status.state;
	mw_error_destroy(err);
	return dead;
}

/* It sleeps on its way: none of our calls waits for anything, so somebody keeps it from running. */
static struct mw_error *stop_frozen(pid_t tid)
{
	uint64_t begin = mw_clock_ns();
	int status;

	MW_TRY(mw_tracee_interrupt(tid));
	while (mw_clock_ns() - begin < STOP_NS) {
		pid_t got = mw_tracee_wait_stop(tid, &status, WNOHANG);

		if (got == tid)
			break;
		if (got < 0 && errno != EINTR)
			return failed("wait for", tid);
		usleep(NAP_US);
	}
	return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d makes no progress", tid),
			     "Is its control group frozen (docker pause, systemctl freeze)? Thaw it first");
}

/*
 * Wait for the thread's next stop. A first thread that was killed tells of its end only when all others have been
 * waited for, which is not done here: it is dead when /proc says so.
 */
static struct mw_error *await(pid_t tid, int *status)
{
	uint64_t asleep_since = 0;

	for (unsigned i = 0;; i++) {
		pid_t got = mw_tracee_wait_stop(tid, status, WNOHANG);
		char state;

		if (got == tid)
			return NULL;
		if (got < 0 && errno != EINTR)
			return failed("wait for", tid);
		if (i < YIELDS) {
			sched_yield();
			continue;
		}
		usleep(NAP_US);
		if (is_dead(tid, &state))
			return mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", tid);
		if (state != 'S')
			asleep_since = 0;
		else if (!asleep_since)
			asleep_since = mw_clock_ns();
		else if (mw_clock_ns() - asleep_since > FROZEN_NS)
			return stop_frozen(tid);
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

/* Signals that came while a call was made: the only ones that can. They are sent again when all is done: nothing blocks
 * them, so before that they would come each time. */
struct put_off {
	bool stop;
	siginfo_t sys; /* si_signo 0: none */
};

/* One that was sent, not of the call's making? Then it is put off. */
static bool is_sent(pid_t tid, int signal, struct put_off *put_off)
{
	siginfo_t info = {.si_code = 0};

	if (signal == SIGSTOP) {
		put_off->stop = true;
		return true;
	}
	mw_error_destroy(mw_tracee_siginfo(tid, &info));
	if (signal != SIGSYS || info.si_signo != SIGSYS || info.si_code > 0)
		return false;
	put_off->sys = info;
	mw_tracee_take_signal(tid);
	return true;
}

/* Resume by `request` until a stop that `wanted` accepts. */
static struct mw_error *resume_until(pid_t tid, enum __ptrace_request request, bool (*wanted)(int status),
				     struct put_off *put_off)
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
		if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP && !is_sent(tid, WSTOPSIG(status), put_off)) {
			/* A fault of its own making, which is no signal of the program's: not to be gone on with. */
			mw_tracee_take_signal(tid);
			break;
		}
	}
	return mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d does not reach a system call", tid);
}

/* Of Linux 6.4 on (PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG): which calls the program has handed to it as SIGSYS. */
#define GET_DISPATCH_CONFIG 0x4211

struct dispatch_config {
	uint64_t on, selector, offset, size;
};

/*
 * All is blocked; where the kernel can't tell what becomes of the call, all but a SIGSYS that it may make. Errors:
 * UNSUPPORTED where the call would not be made, or one is pending, which is the program's own.
 */
static struct mw_error *mask_for_call(pid_t tid, mw_addr insn, uint64_t mask, uint64_t *out)
{
	struct dispatch_config config = {.on = 0};
	struct mw_status status;
	size_t length;

	*out = UINT64_MAX;
	mw_regs_syscall_insn(&length);
	if (ptrace((enum __ptrace_request)GET_DISPATCH_CONFIG, tid, sizeof(config), &config) == 0) {
		if (config.on && insn + length - config.offset >= config.size)
			return mw_error_create(
				MW_ERROR_UNSUPPORTED, 0,
				"thread %d uses syscall user dispatch: no system call can be injected into it", tid);
		return NULL;
	}
	MW_TRY(mw_status_read(tid, &status));
	if ((status.sig_pending | status.shared_pending) & BIT(SIGSYS))
		return mw_error_hint(
			mw_error_create(MW_ERROR_UNSUPPORTED, 0, "thread %d has a pending SIGSYS to handle first", tid),
			"Try again in a moment");
	*out = mask | ~BIT(SIGSYS);
	return NULL;
}

static struct mw_error *go_through(pid_t tid, struct mw_tracee_regs *regs, uint64_t mask, int64_t *result,
				   struct put_off *put_off)
{
	MW_TRY(mask_for_call(tid, regs->general.pc, mask, &mask));
	MW_TRY(mw_tracee_set_regs(tid, regs));
	MW_TRY(mw_tracee_set_sigmask(tid, mask));
	MW_TRY(mw_fault("call.begin"));
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall, put_off));
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall, put_off));
	MW_TRY(mw_tracee_get_regs(tid, regs));
	*result = mw_regs_syscall_result(&regs->general);
	MW_TRY(mw_fault("call.result"));
	return resume_until(tid, PTRACE_CONT, at_interrupt, put_off);
}

/* A SIGCONT that is still to come came after any SIGSTOP: a SIGSTOP takes it away. */
static bool is_continued(const struct mw_status *status)
{
	return (status->sig_pending | status->shared_pending) & BIT(SIGCONT);
}

static void send_again(pid_t tid, struct put_off *put_off)
{
	struct mw_status status;
	struct mw_error *err;

	if (!put_off->stop && !put_off->sys.si_signo)
		return;
	err = mw_status_read(tid, &status);
	if (!err && put_off->stop && !is_continued(&status))
		syscall(SYS_tkill, tid, SIGSTOP);
	if (!err && put_off->sys.si_signo)
		mw_tracee_requeue(status.tgid, tid, &put_off->sys);
	mw_error_destroy(err);
}

static struct mw_error *perform(pid_t tid, struct mw_tracee_regs *regs, uint64_t mask, int64_t *result)
{
	struct put_off put_off = {.stop = false, .sys = {.si_signo = 0}};
	struct mw_error *err = go_through(tid, regs, mask, result, &put_off);

	send_again(tid, &put_off);
	return err;
}

static struct mw_error *perform_and_restore(pid_t tid, const struct mw_way_code *code, const struct mw_room *room,
					    long number, const uint64_t arguments[6], struct mw_sigframe *way,
					    int64_t *result)
{
	const struct mw_arch *arch = mw_arch_find(mw_target_machine());
	struct mw_tracee_regs before, regs;
	struct mw_error *err;
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(tid, &mask));
	MW_TRY(mw_tracee_get_regs(tid, &before));
	rseq_abort(tid, &before);
	MW_TRY(mw_sigframe_lay(tid, &before, mask, code, room, way));
	regs = before;
	mw_regs_set_machine(&regs.raw);
	mw_regs_set_syscall(&regs.general, code->insn, number, arguments);
	if (way->size)
		regs.general.gpr[arch->dwarf_sp] = way->sp;
	err = perform(tid, &regs, mask, result);
	err = mw_error_first(err, mw_tracee_set_sigmask(tid, mask));
	err = mw_error_first(err, mw_tracee_set_regs(tid, &before));
	mw_sigframe_take_up(tid, way);
	return err;
}

struct mw_error *mw_remote_syscall(pid_t tid, const struct mw_way_code *code, const struct mw_room *room, long number,
				   const uint64_t arguments[6], int64_t *result)
{
	/* Not of the heap: what was done must be taken back where memwatch has no memory left. */
	struct mw_sigframe way = {.size = 0};
	int64_t returned = 0;
	struct mw_error *err = perform_and_restore(tid, code, room, number, arguments, &way, &returned);

	if (!err)
		*result = returned;
	return err;
}

struct mw_error *mw_remote_syscall_finish(pid_t tid)
{
	struct put_off put_off = {.stop = false, .sys = {.si_signo = 0}};
	struct mw_tracee_regs regs;
	struct mw_error *err = NULL;
	unsigned stops = 0;

	for (; !err && stops <= FINISH_STOPS; stops++) {
		err = mw_tracee_get_regs(tid, &regs);
		if (err || !mw_sigframe_is_at(tid, &regs.general))
			break;
		err = resume_until(tid, PTRACE_SYSCALL, at_syscall, &put_off);
	}
	if (!err && stops > FINISH_STOPS)
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d does not return from an injected system call",
				      tid);
	if (!err && stops > 0)
		err = resume_until(tid, PTRACE_CONT, at_interrupt, &put_off);
	send_again(tid, &put_off);
	return err;
}

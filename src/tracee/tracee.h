/* SPDX-License-Identifier: MIT */
/*
 * tracee.h: one traced thread: seize, stop, look, resume, let go; its registers and memory.
 *
 * All calls must come from the thread that seized it. Unless said otherwise the tracee must be in a
 * ptrace stop; a tracee that was killed meanwhile gives MW_ERROR_GONE, and its end is still to
 * be waited for.
 */
#ifndef MW_TRACEE_TRACEE_H
#define MW_TRACEE_TRACEE_H

#include "proc/peek.h"

#include <memwatch/arch.h>
#include <memwatch/error.h>

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#define MW_SYSCALL_STOP 0x80 /* in the stop signal of a system call's stop */

/* Registers as the kernel has them and as the rest of memwatch sees them. */
struct mw_tracee_regs {
	struct mw_regs general;
	struct user_regs_struct raw;
};

/* What differs by architecture: regs_ARCHITECTURE.c. */

struct mw_machine_code {
	uint8_t size;
	uint8_t bytes[15];
};

/* The ELF machine that this memwatch can trace, and where things are on it. */
struct mw_machine {
	uint16_t elf;
	uint8_t result; /* the register that a system call's result is in, by DWARF number */
	uint8_t sp;     /* … the stack pointer */
	size_t pc;      /* where the pc stands in the kernel's user area */
	/* Of a signal's frame: where the mask is that is put back, from the stack pointer that its handler returns
	 * with; and four words that nobody reads. */
	size_t frame_mask, frame_spare;
	size_t frame_align;                                  /* of its address */
	struct mw_machine_code syscall_insn, syscall_return; /* the latter with a return behind it */
	struct mw_machine_code restorer;                     /* performs rt_sigreturn */
	struct mw_machine_code sigreturn_gadget; /* takes the number of a system call from the stack and returns */
};
extern const struct mw_machine mw_machine;

static inline uint16_t mw_target_machine(void)
{
	return mw_machine.elf;
}

static inline const uint8_t *mw_regs_syscall_insn(size_t *size)
{
	*size = mw_machine.syscall_insn.size;
	return mw_machine.syscall_insn.bytes;
}

#define MW_ERESTART_RESTARTBLOCK 516 /* the kernel's own result of a call that it goes on with by restart_syscall */

void mw_regs_from_kernel(const struct user_regs_struct *raw, struct mw_regs *out);
void mw_regs_to_kernel(const struct mw_regs *regs, struct user_regs_struct *raw);
/* If the registers stand at the end of a system call with this error: have it begin anew, or end with EINTR where a
 * handler is to run. False: they do not. */
bool mw_regs_restart(struct mw_regs *regs, int errnum);
/* Make the registers those of a thread about to execute the system call instruction at `insn`. */
void mw_regs_set_syscall(struct mw_tracee_regs *regs, mw_addr insn, long number, const uint64_t arguments[6]);
#define MW_SIGFRAME_MAX 16384u
/* Write the frame that is to lie below `below` into `out` (MW_SIGFRAME_MAX bytes); *at is its address. Returns its
 * size, 0 where the thread's registers can't be had. */
size_t mw_regs_signal_frame(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask, mw_addr restorer,
			    mw_addr below, uint8_t *out, mw_addr *at);

#define MW_CALL_FRAME_SIZE 312u
/* Write the frame of a thread that is about to perform a system call, all signals blocked, its other registers 0, into
 * `out` (MW_CALL_FRAME_SIZE bytes, which it returns): wherever that is put, it is taken when `restorer` is returned to. */
size_t mw_regs_call_frame(long number, const uint64_t arguments[6], mw_addr insn, mw_addr sp, mw_addr restorer,
			  uint8_t *out);
/* All words but 0 that its registers hold, each once: general ones, segment bases, vectors. Errors: GONE, SYSTEM. */
#define MW_REGS_WORDS 368u
struct mw_error *mw_regs_words(pid_t tid, const struct mw_tracee_regs *regs, uint64_t *out, size_t room,
			       size_t *count) MW_MUST_CHECK;

/* One ptrace request that gives 0. Errors: "cannot WHAT thread TID", GONE, DENIED, SYSTEM. */
struct mw_error *mw_tracee_request(int request, pid_t tid, size_t address, void *data, const char *what) MW_MUST_CHECK;

/* Seize a thread that need not be stopped; it runs on. New threads and children will be seized too. Errors: GONE, DENIED
 * (also one of the kernel's, which would be at no place where it could be made to do anything), SYSTEM. */
struct mw_error *mw_tracee_seize(pid_t tid) MW_MUST_CHECK;
/*
 * Hear of a thread's next stop or end, as waitpid() tells it; `flags`: WNOHANG or 0. A stop for a signal is looked at,
 * but not waited for: what is waited for the kernel takes for the tracer's business, and if memwatch is killed then,
 * the signal is lost. So such a stop is reported again and again until the thread is resumed, or
 * mw_tracee_take_signal(). Returns the thread's id, 0 where there is nothing (also without WNOHANG: ask again), -1 with
 * errno.
 */
pid_t mw_tracee_wait_for(pid_t tid, int *status, int flags, bool ends);

static inline pid_t mw_tracee_wait(pid_t tid, int *status, int flags)
{
	return mw_tracee_wait_for(tid, status, flags, true);
}

/* … but not of its end, which is still to be waited for, by whoever knows what it means: -1 with ESRCH. */
static inline pid_t mw_tracee_wait_stop(pid_t tid, int *status, int flags)
{
	return mw_tracee_wait_for(tid, status, flags, false);
}

/* The signal that a thread has stopped for is ours: should memwatch be killed now, nobody is to get it. */
void mw_tracee_take_signal(pid_t tid);
/* Ask a seized, running thread to stop; the stop is to be waited for. */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_interrupt(pid_t tid)
{
	return mw_tracee_request(PTRACE_INTERRUPT, tid, 0, NULL, "stop");
}

/* Resume, delivering `signal` (0: none). */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_resume(pid_t tid, int signal)
{
	return mw_tracee_request(PTRACE_CONT, tid, 0, (void *)(intptr_t)signal, "resume");
}

/* Leave a group-stopped thread stopped, but hear of its SIGCONT. */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_listen(pid_t tid)
{
	return mw_tracee_request(PTRACE_LISTEN, tid, 0, NULL, "leave stopped");
}

/* Does this signal stop a whole process? */
static inline bool mw_tracee_is_group_stop(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* Is a thread in the stop of an interrupt or a group stop to be left stopped? What its last stop says: the stop that
 * was reported may be older (mw_inject_call), and a SIGCONT or SIGSTOP have come since. */
bool mw_tracee_is_group_stopped(pid_t tid);
/* Let go, delivering `signal` (0: none). */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_detach(pid_t tid, int signal)
{
	return mw_tracee_request(PTRACE_DETACH, tid, 0, (void *)(intptr_t)signal, "detach from");
}

MW_MUST_CHECK static inline struct mw_error *mw_tracee_get_regs(pid_t tid, struct mw_tracee_regs *out)
{
	MW_TRY(mw_tracee_request(PTRACE_GETREGS, tid, 0, &out->raw, "read the registers of"));
	mw_regs_from_kernel(&out->raw, &out->general);
	return NULL;
}

/* Writes what `regs->general` says, the rest as it was read. */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_set_regs(pid_t tid, struct mw_tracee_regs *regs)
{
	mw_regs_to_kernel(&regs->general, &regs->raw);
	return mw_tracee_request(PTRACE_SETREGS, tid, 0, &regs->raw, "set the registers of");
}

/* The pc alone, at less than half the cost of all registers. */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_set_pc(pid_t tid, mw_addr pc)
{
	return mw_tracee_request(PTRACE_POKEUSER, tid, mw_machine.pc, (void *)(uintptr_t)pc, "set the pc of");
}

MW_MUST_CHECK static inline struct mw_error *mw_tracee_siginfo(pid_t tid, siginfo_t *out)
{
	return mw_tracee_request(PTRACE_GETSIGINFO, tid, 0, out, "read the signal of");
}

/* What the signal says that the thread is stopped for. Nothing is changed where it is stopped for something else. */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_set_siginfo(pid_t tid, const siginfo_t *info)
{
	return mw_tracee_request(PTRACE_SETSIGINFO, tid, 0, (void *)(uintptr_t)info, "change the signal of");
}

MW_MUST_CHECK static inline struct mw_error *mw_tracee_event_message(pid_t tid, unsigned long *out)
{
	return mw_tracee_request(PTRACE_GETEVENTMSG, tid, 0, out, "read the event of");
}

/* The thread's blocked signals; bit n-1 is signal n. */
MW_MUST_CHECK static inline struct mw_error *mw_tracee_get_sigmask(pid_t tid, uint64_t *out)
{
	return mw_tracee_request(PTRACE_GETSIGMASK, tid, sizeof(*out), out, "read the signal mask of");
}

MW_MUST_CHECK static inline struct mw_error *mw_tracee_set_sigmask(pid_t tid, uint64_t mask)
{
	return mw_tracee_request(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask, "set the signal mask of");
}

/* Queue a signal anew that was taken off the thread's queue. Who sent it is kept where the kernel allows. */
void mw_tracee_requeue(pid_t pid, pid_t tid, siginfo_t *info);
/* Is a breakpoint trap queued for the thread that it has not reported yet? */
bool mw_tracee_trap_queued(pid_t tid);
/*
 * For a thread in the stop that an interrupt made. It may make a system call return EINTR that no signal would have
 * ended (epoll_wait, semop, sigtimedwait, …): let the kernel restart it, or end it with EINTR after all if a signal is
 * to be handled. And with a timed wait the kernel goes on by a call of its own (restart_syscall): where a seccomp filter
 * does not let that pass, or can't be read, have the wait begin anew. Errors: GONE. (seccomp_policy.c)
 */
struct mw_error *mw_tracee_mend_interrupted_call(pid_t tid) MW_MUST_CHECK;

/*
 * Get a thread in any stop that ends a system call (an exec's) to the border to user mode, into the stop of an
 * interrupt, from which it can perform system calls for us. It executes nothing on the way. A signal that comes
 * meanwhile is put off; should memwatch be killed just then it may come twice, which matters to nobody as an exec
 * leaves no handlers. Errors: GONE, SYSTEM.
 */
struct mw_error *mw_tracee_to_border(pid_t tid) MW_MUST_CHECK;

/*
 * Have the thread's seccomp filters not asked, or asked again. Errors: DENIED without CAP_SYS_ADMIN or where memwatch
 * is under a filter itself, SYSTEM where the kernel can't do this (EINVAL).
 */
struct mw_error *mw_tracee_suspend_seccomp(pid_t tid, bool suspended) MW_MUST_CHECK;

/* --- memory --------------------------------------------------------------------------------------------------------- */

/* Read as much of a target's memory as there is (proc/peek.h). */
static inline size_t mw_remote_read(pid_t tid, mw_addr addr, void *out, size_t size)
{
	return mw_peek_some(tid, addr, out, size);
}

/* All or nothing. Errors: DATA where any byte can't be read. */
struct mw_error *mw_remote_read_all(pid_t tid, mw_addr addr, void *out, size_t size) MW_MUST_CHECK;

/* Write into memory that the target itself may write; nothing need be stopped. All or an error: DATA where any byte
 * can't be written, GONE. */
struct mw_error *mw_remote_write(pid_t tid, mw_addr addr, const void *bytes, size_t size) MW_MUST_CHECK;

/*
 * Write bytes, into read-only memory as well (what a debugger may). `tid` is in a ptrace stop as a rule; where it is
 * not, /proc/TID/mem is tried, which some kernels forbid. All in one go where the kernel allows it, else word by word;
 * a concurrent reader of a byte that does not change never sees another value.
 */
struct mw_error *mw_remote_poke(pid_t tid, mw_addr addr, const void *bytes, size_t size) MW_MUST_CHECK;

#endif

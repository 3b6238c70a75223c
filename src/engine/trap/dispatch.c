// SPDX-License-Identifier: MIT
/* dispatch.c: why did a thread stop, and what is to be done (trap.h). */
#include "base/clock.h"
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "tracee/remote.h"
#include "tracee/syscall.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static bool is_group_stop(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* Resume, or keep where the process is being held. */
static struct mw_error *go_on(struct trap_engine *engine, struct trap_thread *thread)
{
	struct trap_process *process = thread->process;

	if (process->holding || thread->awaited)
		return NULL;
	MW_TRY(trap_resume(thread));
	trap_account_stop(process, engine->stop_ns, mw_clock_ns());
	return NULL;
}

/*
 * Has this thread executed a breakpoint of ours? The kernel's own word for it is the signal's code. But where a SIGTRAP
 * sent by somebody was pending already, the kernel drops the breakpoint's for it: then the pc tells, as nothing else
 * leads there except our own emulation of a one-byte instruction.
 */
static bool executed_breakpoint(const struct trap_thread *thread, const struct mw_regs *regs, const siginfo_t *info)
{
	if (info->si_code == SI_KERNEL || info->si_code == TRAP_BRKPT)
		return true;
	return thread->resumed_at != regs->pc;
}

/*
 * Where the pc is in the middle of the program's own instruction, it can't stand there but by executing the breakpoint,
 * and the signal need not be looked at to know that.
 */
static bool surely_executed(const struct trap_thread *thread, const struct trap_breakpoint *breakpoint)
{
	return breakpoint->plan.length > thread->process->arch->breakpoint_advance;
}

/* May another's SIGTRAP be pending? One that is not blocked would have ended a program that has no action for it. */
static bool another_may_be_pending(const struct trap_thread *thread)
{
	return !trap_disposition_is_default(thread->process) || thread->trap_blocked;
}

/* Is the breakpoint instruction at `addr` one that we know nothing of: the program's own, or another tool's? */
static bool foreign_breakpoint(const struct trap_thread *thread, const struct trap_breakpoint *breakpoint)
{
	const struct mw_arch *arch = thread->process->arch;
	uint8_t now[sizeof(arch->breakpoint)];

	return !breakpoint->standing &&
	       mw_remote_read(thread->tid, breakpoint->addr, now, arch->breakpoint_length) == arch->breakpoint_length &&
	       memcmp(now, arch->breakpoint, arch->breakpoint_length) == 0;
}

/* A SIGTRAP that is the program's own affair. */
static struct mw_error *pass_trap_on(struct trap_thread *thread)
{
	siginfo_t info;

	MW_TRY(mw_tracee_siginfo(thread->tid, &info));
	MW_TRY(trap_leave_slot(thread));
	if (info.si_code <= 0 && trap_disposition_ignores(thread->process))
		return NULL;
	if (info.si_code <= 0 && thread->trap_blocked)
		return trap_mask_put_off(thread, &info);
	thread->signal = SIGTRAP;
	return NULL;
}

/* Another's SIGTRAP was pending when the breakpoint was hit. */
static struct mw_error *put_back_signal(struct trap_thread *thread, siginfo_t *info)
{
	bool queued;

	if (thread->trap_blocked)
		return trap_mask_put_off(thread, info);
	MW_TRY(trap_rescue_queue(thread, info, &queued));
	if (!queued)
		mw_tracee_requeue(thread->process->pid, thread->tid, info);
	return NULL;
}

/* A trap: ours, if a breakpoint instruction of ours has just been executed. */
static struct mw_error *on_trap(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	struct trap_breakpoint *breakpoint;
	struct mw_tracee_regs regs;
	siginfo_t info;

	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	breakpoint = mw_map_get(&process->planted.breakpoints, regs.general.pc - process->arch->breakpoint_advance);
	if (!breakpoint)
		return pass_trap_on(thread);
	info.si_code = SI_KERNEL;
	if (!surely_executed(thread, breakpoint))
		MW_TRY(mw_tracee_siginfo(thread->tid, &info));
	if (!executed_breakpoint(thread, &regs.general, &info) || foreign_breakpoint(thread, breakpoint))
		return pass_trap_on(thread);
	if (surely_executed(thread, breakpoint) && another_may_be_pending(thread))
		MW_TRY(mw_tracee_siginfo(thread->tid, &info));
	MW_TRY(trap_mask_on_hit(thread, breakpoint->addr));
	/* The signal whose place the breakpoint's took is still to come. */
	if (info.si_code != SI_KERNEL && info.si_code != TRAP_BRKPT) {
		MW_TRY(mw_tracee_set_pc(thread->tid, breakpoint->addr));
		MW_TRY(put_back_signal(thread, &info));
	}
	if (!breakpoint->standing || process->planted.lifted || (process->holding && process->windowed)) {
		/* Lifted meanwhile, or about to be: let it execute what stands, or will stand, there. */
		regs.general.pc = breakpoint->addr;
		MW_TRY(trap_mark_served(thread, &regs.general));
		return mw_tracee_set_regs(thread->tid, &regs);
	}
	return trap_hit(process->engine, thread, breakpoint, &regs);
}

static struct mw_error *on_interrupt(struct trap_thread *thread, int signal)
{
	bool ours = thread->interrupt_due;

	/* Whatever the reason for the stop, an interrupt that was on its way has arrived with it. */
	thread->interrupt_due = false;
	thread->group_stopped = is_group_stop(signal);
	/* Its registers and its mask are those of its own work, not of a call that a killed memwatch has left it in. */
	MW_TRY(mw_remote_syscall_finish(thread->tid));
	MW_TRY(trap_mask_look(thread));
	if (ours && !thread->group_stopped) {
		MW_TRY(mw_tracee_mend_interrupted_call(thread->tid));
		MW_TRY(mw_seccomp_policy_mend(thread->tid));
	}
	return trap_leave_slot(thread);
}

static struct mw_error *on_stop(struct trap_thread *thread, int status)
{
	int signal = WSTOPSIG(status);

	thread->in_event = status >> 16 != 0 && status >> 16 != PTRACE_EVENT_STOP;
	switch (status >> 16) {
	case 0:
		if (signal == SIGTRAP)
			return on_trap(thread);
		thread->signal = signal;
		return trap_leave_slot(thread);
	case PTRACE_EVENT_STOP:
		return on_interrupt(thread, signal);
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		return trap_child_born(thread, status >> 16);
	case PTRACE_EVENT_EXEC:
		return trap_exec(thread);
	case PTRACE_EVENT_EXIT:
		return trap_thread_exiting(thread);
	default:
		return NULL;
	}
}

/* A process whose first thread had ended before it was attached to runs another program, and has one again. */
static struct mw_error *take_first_thread(struct trap_engine *engine, pid_t pid, struct trap_thread **out)
{
	for (size_t i = 0; i < engine->process_count && !*out; i++)
		if (engine->processes[i]->pid == pid && !engine->processes[i]->ended)
			MW_TRY(trap_thread_add(engine->processes[i], pid, TRAP_THREAD, out));
	return NULL;
}

struct mw_error *trap_dispatch(struct trap_engine *engine, pid_t tid, int status)
{
	struct trap_thread *thread = mw_map_get(&engine->threads, (uint64_t)tid);
	struct mw_error *err;

	if (!thread && WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXEC)
		MW_TRY(take_first_thread(engine, tid, &thread));
	if (!thread)
		return trap_orphan_keep(engine, tid, status);
	if (WIFEXITED(status) || WIFSIGNALED(status))
		return trap_thread_ended(thread, status);
	if (!WIFSTOPPED(status))
		return NULL;
	thread->stopped = true;
	thread->interrupted = false;
	thread->signal = 0;
	thread->group_stopped = false;
	if (thread->relation == TRAP_NEWBORN)
		MW_TRY(trap_newborn_stopped(thread));
	/* It may have been let go, or may be another process's by now. */
	thread = mw_map_get(&engine->threads, (uint64_t)tid);
	if (!thread)
		return NULL;
	err = mw_error_unless_gone(on_stop(thread, status));
	thread = mw_map_get(&engine->threads, (uint64_t)tid);
	if (!err && thread && thread->stopped)
		err = go_on(engine, thread);
	return err;
}

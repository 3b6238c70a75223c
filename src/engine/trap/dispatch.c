// SPDX-License-Identifier: MIT
/* dispatch.c: why did a thread stop, and what is to be done (trap.h). */
#include "base/clock.h"
#include "engine/trap/trap.h"

#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static bool is_group_stop(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static void account(struct trap_engine *engine, struct trap_process *process)
{
	uint64_t stopped = mw_clock_ns() - engine->stop_ns;

	process->stats.stops++;
	process->stats.stopped_ns += stopped;
	if (stopped > process->stats.longest_stop_ns)
		process->stats.longest_stop_ns = stopped;
}

struct mw_error *trap_ignore_gone(struct mw_error *err)
{
	if (err && mw_error_kind(err) == MW_ERROR_GONE) {
		mw_error_destroy(err);
		return NULL;
	}
	return err;
}

struct mw_error *trap_resume(struct trap_thread *thread)
{
	int signal = thread->signal;

	thread->stopped = false;
	thread->signal = 0;
	if (thread->group_stopped) {
		thread->group_stopped = false;
		return trap_ignore_gone(mw_tracee_listen(thread->tid));
	}
	return trap_ignore_gone(mw_tracee_resume(thread->tid, signal));
}

/* Resume, or keep where the process is being held. */
static struct mw_error *go_on(struct trap_engine *engine, struct trap_thread *thread)
{
	struct trap_process *process = thread->process;

	if (process->holding)
		return NULL;
	MW_TRY(trap_resume(thread));
	account(engine, process);
	return NULL;
}

struct mw_error *trap_leave_slot(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	struct trap_breakpoint *breakpoint;
	struct mw_tracee_regs regs;
	mw_addr pc;

	if (process->slots.count == 0)
		return NULL;
	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	pc = regs.general.pc;
	breakpoint = mw_map_get(&process->slots, pc & ~(mw_addr)(MW_OOL_MAX - 1));
	if (!breakpoint)
		return NULL;
	if (pc == breakpoint->slot) {
		/* Not executed yet: it will come to the breakpoint again. */
		regs.general.pc = breakpoint->addr;
		thread->last_free.again = breakpoint->hook == thread->last_free.hook;
	} else if (pc == breakpoint->slot + breakpoint->copy_length) {
		regs.general.pc = breakpoint->addr + breakpoint->plan.length;
	} else {
		return NULL;
	}
	return mw_tracee_set_regs(thread->tid, &regs);
}

#define TRAP_BIT (1ull << (SIGTRAP - 1))

/* Note a mask that blocks SIGTRAP, seen where no breakpoint of ours had a part in it. */
static void note_mask(struct trap_process *process, uint64_t mask)
{
	if (!(mask & TRAP_BIT))
		return;
	for (size_t i = 0; i < process->mask_count; i++)
		if (process->masks[i] == mask)
			return;
	process->masks[process->next_mask++ % TRAP_MASKS] = mask;
	if (process->mask_count < TRAP_MASKS)
		process->mask_count++;
}

struct mw_error *trap_mask_look(struct trap_thread *thread)
{
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	note_mask(thread->process, mask);
	return NULL;
}

static bool blocked_trap_before(const struct trap_process *process, uint64_t mask)
{
	/* What nobody can block, and what the C library keeps for itself. */
	const uint64_t never = (1ull << (SIGKILL - 1)) | (1ull << (SIGSTOP - 1)) | (3ull << 31);

	if ((mask | TRAP_BIT | never) == UINT64_MAX)
		return true;
	for (size_t i = 0; i < process->mask_count; i++)
		if (process->masks[i] == (mask | TRAP_BIT))
			return true;
	return false;
}

/*
 * A breakpoint whose trap is blocked makes the kernel unblock the trap. Block it again where it was: a mask that
 * blocks everything else, or is otherwise one that was seen to block it.
 */
static struct mw_error *mend_sigmask(struct trap_thread *thread)
{
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	if ((mask & TRAP_BIT) || mask == 0 || !blocked_trap_before(thread->process, mask))
		return NULL;
	thread->process->trap_forced = true;
	return mw_tracee_set_sigmask(thread->tid, mask | TRAP_BIT);
}

/* A trap: ours, if a breakpoint instruction of ours has just been executed. */
static struct mw_error *on_trap(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	struct trap_breakpoint *breakpoint;
	struct mw_tracee_regs regs;
	siginfo_t info;

	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	breakpoint = mw_map_get(&process->breakpoints, regs.general.pc - process->arch->breakpoint_advance);
	if (breakpoint)
		MW_TRY(mw_tracee_siginfo(thread->tid, &info));
	if (!breakpoint || (info.si_code != SI_KERNEL && info.si_code != TRAP_BRKPT)) {
		thread->signal = trap_disposition_ignores(process) ? 0 : SIGTRAP;
		return trap_leave_slot(thread);
	}
	MW_TRY(mend_sigmask(thread));
	if (!breakpoint->standing || (process->holding && process->windowed)) {
		/* Lifted meanwhile, or about to be: let it execute what stands, or will stand, there. */
		regs.general.pc = breakpoint->addr;
		return mw_tracee_set_regs(thread->tid, &regs);
	}
	return trap_hit(process->engine, thread, breakpoint, &regs);
}

static struct mw_error *on_interrupt(struct trap_thread *thread, int signal)
{
	thread->group_stopped = is_group_stop(signal);
	MW_TRY(trap_mask_look(thread));
	if (thread->interrupted && !thread->group_stopped) {
		thread->interrupted = false;
		MW_TRY(mw_tracee_mend_interrupted_call(thread->tid));
	}
	return trap_leave_slot(thread);
}

static struct mw_error *on_stop(struct trap_engine *engine, struct trap_thread *thread, int status)
{
	int signal = WSTOPSIG(status);

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
		return trap_exec(engine, thread);
	case PTRACE_EVENT_EXIT:
		return trap_thread_exiting(thread);
	default:
		return NULL;
	}
}

/* A stop of a tid that no event has announced: the news of its birth may still come. */
static struct mw_error *keep_orphan(struct trap_engine *engine, pid_t tid, int status)
{
	struct trap_orphan *orphan = mw_map_get(&engine->orphans, (uint64_t)tid);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		free(mw_map_remove(&engine->orphans, (uint64_t)tid));
		return NULL;
	}
	if (!orphan) {
		orphan = calloc(1, sizeof(*orphan));
		if (!orphan)
			return mw_error_nomem();
		orphan->tid = tid;
		orphan->since_ns = engine->stop_ns;
	}
	orphan->status = status;
	return mw_map_set(&engine->orphans, (uint64_t)tid, orphan);
}

struct mw_error *trap_dispatch(struct trap_engine *engine, pid_t tid, int status)
{
	struct trap_thread *thread = mw_map_get(&engine->threads, (uint64_t)tid);
	struct mw_error *err;

	if (!thread)
		return keep_orphan(engine, tid, status);
	if (WIFEXITED(status) || WIFSIGNALED(status))
		return trap_thread_ended(thread, status);
	if (!WIFSTOPPED(status))
		return NULL;
	thread->stopped = true;
	thread->signal = 0;
	thread->group_stopped = false;
	if (thread->relation == TRAP_NEWBORN)
		MW_TRY(trap_newborn_stopped(thread));
	/* It may have been let go, or may be another process's by now. */
	thread = mw_map_get(&engine->threads, (uint64_t)tid);
	if (!thread)
		return NULL;
	err = trap_ignore_gone(on_stop(engine, thread, status));
	thread = mw_map_get(&engine->threads, (uint64_t)tid);
	if (!err && thread && thread->stopped)
		err = go_on(engine, thread);
	return err;
}

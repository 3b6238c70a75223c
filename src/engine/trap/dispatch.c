// SPDX-License-Identifier: MIT
/* dispatch.c: why did a thread stop, and what is to be done; a breakpoint of ours is served (trap.h). */
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

#define SNAPSHOT_SLACK 64u

/* Show the unwinder the true return addresses where the trampoline's stand on the stack. */
static void show_true_returns(struct trap_hit *hit)
{
	const struct trap_thread *thread = hit->thread;

	for (size_t i = 0; i < thread->call_count; i++)
		if (thread->calls[i].exchanged)
			mw_snapshot_override(&hit->engine->snapshot, thread->calls[i].sp - sizeof(mw_addr),
					     hit->process->planted.trampoline, thread->calls[i].ret);
}

static bool read_return(struct trap_hit *hit)
{
	mw_addr sp = hit->regs.general.gpr[hit->process->arch->dwarf_sp];

	hit->sp = sp + sizeof(mw_addr);
	return mw_remote_read(hit->thread->tid, sp, &hit->ret, sizeof(hit->ret)) == sizeof(hit->ret);
}

/* Copy the stack and find out who called. */
static bool read_caller(struct trap_hit *hit)
{
	struct mw_snapshot *snapshot = &hit->engine->snapshot;
	struct trap_thread *thread = hit->thread;
	mw_addr sp = hit->regs.general.gpr[hit->process->arch->dwarf_sp];

	mw_snapshot_take(snapshot, thread->tid, sp, thread->snapshot_size);
	show_true_returns(hit);
	hit->memory = mw_snapshot_view(snapshot);
	hit->sp = sp + sizeof(mw_addr);
	return hit->memory.read(hit->memory.context, sp, &hit->ret, sizeof(hit->ret));
}

/*
 * The free of a block that is known, or of none, in a process with one such function: of who calls nothing matters but
 * where it returns to, which tells what it does itself from what the caller does next. That is nearly every free, and
 * saves it a copy of the stack.
 */
static bool needs_no_stack(const struct trap_hit *hit)
{
	const struct trap_process *process = hit->process;
	mw_addr pointer;

	if (hit->hook->info.role != MW_ROLE_FREE || process->freeing_hooks != 1 || hit->thread->call_count > 0)
		return false;
	pointer = process->arch->argument(&hit->regs.general, hit->hook->entry->pointer);
	return pointer == 0 || process->sink.knows(process->sink.context, pointer);
}

static struct mw_error *on_entry(struct trap_hit *hit)
{
	struct trap_thread *thread = hit->thread;
	const struct mw_snapshot *snapshot = &hit->engine->snapshot;

	hit->hook = &hit->process->survey.hooks.items[hit->breakpoint->hook];
	/* Without a stack to return to the program is about to fault; that is its own affair. */
	if (needs_no_stack(hit) ? !read_return(hit) : !read_caller(hit))
		return NULL;
	MW_TRY(trap_entry(hit));
	if (hit->walked) {
		size_t used = (size_t)(snapshot->highest - snapshot->base) + SNAPSHOT_SLACK;

		/* Follow growth at once and shrinking slowly. */
		if (used > thread->snapshot_size)
			thread->snapshot_size = used;
		else
			thread->snapshot_size -= (thread->snapshot_size - used) / 16;
	}
	return NULL;
}

static struct mw_error *on_return(struct trap_hit *hit, bool exchanged, bool *returned)
{
	mw_addr sp = hit->regs.general.gpr[hit->process->arch->dwarf_sp];
	struct trap_call call;

	MW_TRY(trap_call_returning(hit->thread, hit->breakpoint->addr, sp, exchanged, &call, returned));
	if (!*returned)
		return NULL;
	hit->hook = &hit->process->survey.hooks.items[call.hook];
	hit->ret = call.ret;
	hit->sp = sp;
	MW_TRY(trap_return(hit, &call));
	if (exchanged)
		hit->process->stats.returns_exchanged++;
	else
		hit->process->stats.returns_site++;
	return NULL;
}

/* Serve the hit; `*moved` where the registers say already where to go on. */
static struct mw_error *serve(struct trap_hit *hit, bool *moved)
{
	struct trap_breakpoint *breakpoint = hit->breakpoint;
	bool returned = false;

	if (!hit->thread->numbered)
		MW_TRY(trap_thread_number(hit->thread));
	if (breakpoint->trampoline) {
		MW_TRY(on_return(hit, true, &returned));
		if (returned) {
			hit->regs.general.pc = hit->ret;
			*moved = true;
			return NULL;
		}
	}
	if (breakpoint->site) {
		MW_TRY(on_return(hit, false, &returned));
		if (returned)
			breakpoint->returns++;
		else
			MW_TRY(trap_site_stray(hit));
	}
	if (breakpoint->mask)
		MW_TRY(trap_mask_set(hit, moved));
	if (breakpoint->action) {
		trap_disposition_act(hit);
		*moved = true;
	}
	if (*moved)
		return NULL;
	if (breakpoint->loader)
		MW_TRY(trap_modules_changed(hit->process, hit->thread->tid));
	if (breakpoint->hook != TRAP_NO_HOOK && !returned)
		MW_TRY(on_entry(hit));
	return NULL;
}

/* Will the rescue's handler know by the pc that the breakpoint has been served? */
static bool shows_served(const struct trap_breakpoint *breakpoint, mw_addr pc)
{
	return (breakpoint->slot && pc == breakpoint->slot) ||
	       (breakpoint->plan.length > 1 && pc == breakpoint->addr + breakpoint->plan.length);
}

/* An instruction that is run out of line changes nothing but the pc. */
static struct mw_error *write_regs(struct trap_hit *hit, const struct mw_tracee_regs *before)
{
	const struct mw_regs *now = &hit->regs.general, *then = &before->general;

	if (!shows_served(hit->breakpoint, now->pc))
		MW_TRY(trap_mark_served(hit->thread, now));
	if (now->flags == then->flags && now->syscall == then->syscall &&
	    memcmp(now->gpr, then->gpr, sizeof(now->gpr)) == 0)
		return mw_tracee_set_pc(hit->thread->tid, now->pc);
	return mw_tracee_set_regs(hit->thread->tid, &hit->regs);
}

static struct mw_error *trap_hit(struct trap_engine *engine, struct trap_thread *thread,
				 struct trap_breakpoint *breakpoint, const struct mw_tracee_regs *regs)
{
	struct trap_hit hit = {.engine = engine,
			       .process = thread->process,
			       .thread = thread,
			       .breakpoint = breakpoint,
			       .regs = *regs};
	bool moved = false;

	hit.regs.general.pc = breakpoint->addr;
	thread->stops++;
	/* Whatever goes wrong inside memwatch: the thread must stand where it can go on. */
	struct mw_error *err = serve(&hit, &moved);
	struct mw_error *after = moved ? NULL : trap_breakpoint_pass(&hit);

	if (!after)
		after = write_regs(&hit, regs);
	thread->resumed_at = hit.regs.general.pc;
	trap_pace_stop(engine, thread);
	if (err) {
		mw_error_destroy(after);
		return err;
	}
	return after;
}

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

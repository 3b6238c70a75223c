// SPDX-License-Identifier: MIT
/*
 * dispatch.c: why did a thread stop, and what is to be done: a breakpoint of ours is served, births, execs and ends are
 * followed (trap.h).
 */
#include "engine/trap/trap.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The process, or a thread of it, was stopped for us, inside its window: for stats.stood_ns alone, and a stop at an
 * event. */
static void stood(struct trap_process *process, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t length = trap_window_length(process);

	if (length && end_ns > process->start_ns + length)
		end_ns = process->start_ns + length;
	/* Threads that stand at once are served one after the other: no time counts twice. */
	if (begin_ns < process->standstill.until_ns)
		begin_ns = process->standstill.until_ns;
	if (end_ns <= begin_ns)
		return;
	process->stats.stood_ns += end_ns - begin_ns;
	process->standstill.until_ns = end_ns;
}

static void account_stop(struct trap_process *process, uint64_t begin_ns, uint64_t end_ns)
{
	struct mw_engine_stats *stats = &process->stats;

	stats->stops++;
	stats->stopped_ns += end_ns - begin_ns;
	if (end_ns - begin_ns > stats->longest_stop_ns)
		stats->longest_stop_ns = end_ns - begin_ns;
	stood(process, begin_ns, end_ns);
}

static struct mw_error *thread_ended(struct trap_thread *thread, int status)
{
	struct trap_process *process = thread->process;
	bool leader = thread->tid == process->pid && thread->relation == TRAP_THREAD;
	struct mw_error *err = trap_calls_drop(thread, 0);

	trap_thread_remove(thread);
	if (leader) {
		process->window.has_exit_status = true;
		process->window.exit_status = status;
	}
	/* The leader's end is heard of last, when no thread is left. */
	if (!leader && process->threads.count > 0)
		return err;
	/* A vfork child may live on in the memory: it is not to run into breakpoints that nobody serves. */
	return mw_error_first(err, trap_process_detach(process, MW_END_EXIT));
}

/* Does all of the process end with the thread, which is about to? Others may not be heard of before they are gone. */
static bool whole_process_ends(const struct trap_thread *thread)
{
	struct mw_tracee_regs regs;
	void *other;

	/* Killed, or the one that ends the process: it is not in the call by which a thread ends alone. */
	if (mw_error_none(mw_tracee_get_regs(thread->tid, &regs)) && regs.general.syscall != SYS_exit)
		return true;
	for (size_t i = 0; mw_map_next(&thread->process->threads, &i, &other);)
		if (!((const struct trap_thread *)other)->ending)
			return false;
	return true;
}

/* The thread will be gone: its name is final, and its memory can be looked at for the last time. */
static struct mw_error *thread_exiting(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	const struct mw_engine_options *options = &process->engine->options;
	bool is_first;
	uint64_t now;

	thread->ending = true;
	/* Its number may be another's soon. */
	if (thread->relation == TRAP_SHARING_CHILD)
		return mw_error_unless_gone(trap_rescue_resets(process, thread, &(bool){false}));
	if (thread->relation != TRAP_THREAD || !process->windowed)
		return NULL;
	if (thread->numbered)
		MW_TRY(trap_thread_number(thread));
	now = trap_now(process);
	is_first = !process->ends && whole_process_ends(thread);
	process->ends |= is_first;
	if (options->sample && (thread->tid == process->pid || process->threads.count == 1 || is_first)) {
		options->sample(options->sample_context, process->pid, thread->tid, now, true);
		process->last_sample_ns = now;
	}
	return NULL;
}

static struct mw_error *child_born(struct trap_thread *parent, int event)
{
	struct trap_engine *engine = parent->process->engine;
	struct trap_thread *child = NULL;
	unsigned long tid;
	int status;

	MW_TRY(mw_tracee_event_message(parent->tid, &tid));
	if (tid == 0 || mw_map_get(&engine->threads, tid))
		return NULL;
	MW_TRY(trap_thread_add(parent->process, (pid_t)tid, TRAP_NEWBORN, &child));
	child->vfork_child = event == PTRACE_EVENT_VFORK;
	memcpy(child->calls, parent->calls, sizeof(child->calls));
	/* It begins with everything blocked, and gets its maker's mask then. */
	child->trap_blocked = parent->trap_blocked;
	child->call_count = parent->call_count;
	return trap_orphan_take(engine, (pid_t)tid, &status) ? trap_dispatch(engine, (pid_t)tid, status) : NULL;
}

/* A copy of the process: take our breakpoints and exchanged return addresses out of it and let it go. */
static struct mw_error *clean_child(struct trap_thread *child)
{
	struct trap_process *process = child->process;
	const struct mw_engine_options *options = &process->engine->options;
	pid_t tid = child->tid;
	struct mw_error *err = mw_journal_clean_copy(&process->journal, tid);

	for (size_t i = 0; i < child->call_count && !err; i++)
		if (child->calls[i].exchanged)
			err = mw_remote_poke(tid, child->calls[i].sp - sizeof(mw_addr), &child->calls[i].ret,
					     sizeof(child->calls[i].ret));
	if (!err)
		err = mw_journal_clean_copy(&process->acts.journal, tid);
	if (!err)
		err = trap_rescue_clean_child(process, tid);
	if (!err)
		err = trap_mask_restore(child);
	trap_thread_remove(child);
	mw_error_keep_first(&err, mw_tracee_detach(tid, 0));
	if (!err && options->forked)
		options->forked(options->forked_context, tid, process->pid);
	err = mw_error_unless_gone(err);
	return err ? mw_error_prefix(err, "child %d", tid) : NULL;
}

static enum trap_relation relation_of(const struct trap_thread *newborn)
{
	const struct trap_process *process = newborn->process;
	int shares;

	if (mw_is_thread_of(process->pid, newborn->tid))
		return TRAP_THREAD;
	shares = mw_shares_memory(trap_live_tid(process), newborn->tid);
	if (shares < 0)
		shares = newborn->vfork_child;
	return shares ? TRAP_SHARING_CHILD : TRAP_FORKED_CHILD;
}

static struct mw_error *newborn_stopped(struct trap_thread *thread)
{
	thread->relation = relation_of(thread);
	if (thread->relation == TRAP_FORKED_CHILD)
		return clean_child(thread);
	thread->call_count = 0;
	MW_TRY(mw_error_unless_gone(trap_mask_look(thread)));
	return thread->relation == TRAP_SHARING_CHILD ? mw_error_unless_gone(trap_rescue_lead_cleared(thread)) : NULL;
}

/* The first exec of a launched command: its window begins with its first instruction. */
static struct mw_error *begin_launched(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	const struct mw_engine_options *options = &process->engine->options;

	/* From the exec's own stop no system call can be made. */
	MW_TRY(mw_tracee_to_border(thread->tid));
	MW_TRY(trap_rescue_install(process, thread->tid));
	MW_TRY(trap_plant(process, thread->tid));
	process->start_ns = mw_clock_ns();
	process->window.started_realtime_ns = mw_clock_realtime_ns();
	process->windowed = true;
	if (options->sample)
		options->sample(options->sample_context, process->pid, thread->tid, 0, false);
	return NULL;
}

/* Forget all threads of the process itself. */
static struct mw_error *drop_threads(struct trap_process *process)
{
	struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (thread->relation != TRAP_THREAD)
			continue;
		MW_TRY(trap_calls_drop(thread, 0));
		trap_thread_remove(thread);
		i = 0; /* that has changed the map */
	}
	return NULL;
}

/* The thread that runs another program has the first one's id from then on, and its own mask. */
static struct mw_error *take_over_mask(struct trap_thread *thread)
{
	const struct trap_thread *former;
	unsigned long tid;

	MW_TRY(mw_tracee_event_message(thread->tid, &tid));
	former = mw_map_get(&thread->process->threads, tid);
	if (former)
		thread->trap_blocked = former->trap_blocked;
	return NULL;
}

static struct mw_error *on_exec(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	pid_t tid = thread->tid;
	bool sharing = thread->relation == TRAP_SHARING_CHILD;

	if (!sharing && process->launched && !process->windowed)
		return begin_launched(thread);
	/* It has memory of its own now, but keeps its mask. */
	if (!sharing)
		MW_TRY(mw_error_unless_gone(take_over_mask(thread)));
	MW_TRY(mw_error_unless_gone(trap_mask_restore(thread)));
	MW_TRY(mw_error_unless_gone(trap_disposition_after_exec(thread)));
	if (sharing) {
		trap_thread_remove(thread);
		return mw_error_unless_gone(mw_tracee_detach(tid, 0));
	}
	/* All threads are gone but this one, which is the leader now. */
	MW_TRY(drop_threads(process));
	MW_TRY(mw_error_unless_gone(mw_tracee_detach(tid, 0)));
	/* Others may live on in the memory that it left, with our breakpoints in it. */
	return trap_process_detach(process, MW_END_EXEC);
}

/* A thread stands before a system call that sets a signal's action: sends it where that is carried out (sets the
 * registers). */
static void send_to_act(struct trap_hit *hit)
{
	struct trap_process *process = hit->process;
	const struct mw_arch *arch = process->arch;
	struct mw_regs *regs = &hit->regs.general;

	process->signals.trap_action_changes |= (int)arch->argument(regs, 0) == SIGTRAP && arch->argument(regs, 1) != 0;
	arch->spare(regs, hit->breakpoint->addr + hit->breakpoint->plan.length, 0);
	regs->pc = process->rescue.act;
}

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

void trap_see_stack(struct trap_hit *hit)
{
	struct mw_snapshot *snapshot = &hit->engine->snapshot;

	mw_snapshot_take(snapshot, hit->thread->tid, hit->sp - sizeof(mw_addr), hit->thread->snapshot_size);
	show_true_returns(hit);
	hit->memory = mw_snapshot_view(snapshot);
}

/* Find out who called, and copy the stack. */
static bool read_caller(struct trap_hit *hit, bool with_stack)
{
	mw_addr sp = hit->regs.general.gpr[hit->process->arch->dwarf_sp];

	hit->sp = sp + sizeof(mw_addr);
	if (!with_stack)
		return mw_remote_read(hit->thread->tid, sp, &hit->ret, sizeof(hit->ret)) == sizeof(hit->ret);
	trap_see_stack(hit);
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

	if (hit->thread->call_count > 0)
		return false;
	/* Nor of what is not sampled; what is, is looked at later. */
	if (process->interval && hit->hook->info.kind == MW_KIND_HEAP)
		return true;
	if (hit->hook->info.role != MW_ROLE_FREE || process->freeing_hooks != 1)
		return false;
	pointer = process->arch->argument(&hit->regs.general, hit->hook->entry->pointer);
	return pointer == 0 || process->sink.knows(process->sink.context, pointer);
}

static struct mw_error *on_entry(struct trap_hit *hit)
{
	struct trap_thread *thread = hit->thread;
	const struct mw_snapshot *snapshot = &hit->engine->snapshot;

	hit->hook = &hit->process->survey.hooks.items[hit->breakpoint->hook];
	if (hit->engine->settling && trap_entry_is_quiet(hit))
		return NULL;
	/* Without a stack to return to the program is about to fault; that is its own affair. */
	if (!read_caller(hit, !needs_no_stack(hit)))
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
		send_to_act(hit);
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

static bool emulate(struct trap_hit *hit)
{
	const struct mw_arch *arch = hit->process->arch;
	const struct mw_insn_plan *plan = &hit->breakpoint->plan;
	struct mw_regs regs = hit->regs.general;
	uint64_t word = 0;
	size_t size = plan->memory == MW_MEMORY_DATA ? plan->width : sizeof(word);

	if (plan->memory == MW_MEMORY_POP || plan->memory == MW_MEMORY_LOAD || plan->memory == MW_MEMORY_DATA)
		if (mw_remote_read(hit->thread->tid, arch->memory_address(plan, &regs), &word, size) != size)
			return false;
	arch->emulate(plan, &regs, &word);
	if (plan->memory == MW_MEMORY_PUSH && !trap_write_word(hit->thread->tid, regs.gpr[arch->dwarf_sp], word))
		return false;
	hit->regs.general = regs;
	return true;
}

/* Carry out the displaced instruction: sets the registers (not written yet) to go on. */
static struct mw_error *carry_out(struct trap_hit *hit)
{
	struct trap_breakpoint *breakpoint = hit->breakpoint;

	if (breakpoint->slot) {
		hit->regs.general.pc = breakpoint->slot;
		return NULL;
	}
	if (breakpoint->standing && emulate(hit))
		return NULL;
	/*
	 * Its memory can't be had: the instruction faults, or makes the kernel grow the stack. Only the processor can
	 * do that right, in place. What this breakpoint would have caught from now on is lost, and counted.
	 */
	hit->regs.general.pc = breakpoint->addr;
	if (!breakpoint->standing)
		return NULL;
	if (breakpoint->hook != TRAP_NO_HOOK)
		hit->process->stats.lost_events++;
	breakpoint->exchange = true;
	return trap_breakpoint_lift(hit->process, hit->thread->tid, breakpoint);
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

static struct mw_error *serve_hit(struct trap_engine *engine, struct trap_thread *thread,
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
	struct mw_error *after = moved ? NULL : carry_out(&hit);

	if (!after)
		after = write_regs(&hit, regs);
	thread->resumed_at = hit.regs.general.pc;
	trap_pace_stop(thread);
	return mw_error_first(err, after);
}

/* Resume, or keep where the process is being held. */
static struct mw_error *go_on(struct trap_engine *engine, struct trap_thread *thread)
{
	struct trap_process *process = thread->process;

	if (process->holding || thread->awaited)
		return NULL;
	MW_TRY(trap_resume(thread));
	account_stop(process, engine->stop_ns, mw_clock_ns());
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
	const struct trap_signals *signals = &thread->process->signals;

	return !signals->trap_action_known || signals->trap_action_changes || signals->trap_action.handler != 0 ||
	       thread->trap_blocked;
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
	if (info.si_code <= 0) {
		trap_disposition_look(thread->process);
		if (trap_ignored_by(thread->process))
			return NULL;
		if (thread->trap_blocked)
			return trap_signal_put_back(thread, &info);
	}
	thread->signal = SIGTRAP;
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
		MW_TRY(trap_signal_put_back(thread, &info));
	}
	if (!breakpoint->standing || process->planted.lifted || (process->holding && process->windowed)) {
		/* Lifted meanwhile, or about to be: let it execute what stands, or will stand, there. */
		regs.general.pc = breakpoint->addr;
		MW_TRY(trap_mark_served(thread, &regs.general));
		return mw_tracee_set_regs(thread->tid, &regs);
	}
	return serve_hit(process->engine, thread, breakpoint, &regs);
}

static struct mw_error *on_interrupt(struct trap_thread *thread, int signal)
{
	bool ours = thread->interrupt_due;

	/* Whatever the reason for the stop, an interrupt that was on its way has arrived with it. */
	thread->interrupt_due = false;
	thread->group_stopped = mw_tracee_is_group_stop(signal);
	/* Its registers and its mask are those of its own work, not of a call that a killed memwatch has left it in. */
	MW_TRY(mw_remote_syscall_finish(thread->tid));
	MW_TRY(trap_mask_look(thread));
	if (ours && !thread->group_stopped)
		MW_TRY(mw_tracee_mend_interrupted_call(thread->tid));
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
		return child_born(thread, status >> 16);
	case PTRACE_EVENT_EXEC:
		return on_exec(thread);
	case PTRACE_EVENT_EXIT:
		return thread_exiting(thread);
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
		return thread_ended(thread, status);
	if (!WIFSTOPPED(status))
		return NULL;
	thread->stopped = true;
	thread->interrupted = false;
	thread->signal = 0;
	thread->group_stopped = false;
	if (thread->relation == TRAP_NEWBORN)
		MW_TRY(newborn_stopped(thread));
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

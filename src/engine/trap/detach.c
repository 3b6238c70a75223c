// SPDX-License-Identifier: MIT
/* detach.c: leave a process as it was (trap.h). */
#include "engine/trap/trap.h"

/*
 * Threads that were to stop and have not. One that waits in the kernel, for a disk or a vforked child,
 * has not moved: where it goes on can be read. One that gets no CPU, as others have it, may be anywhere: in an
 * out-of-line copy, on the trampoline, in what rescue.c has put in.
 */

/* Will a thread that waits in the kernel go on in code of ours, or come back to it? */
static bool leads_to_ours(const struct trap_process *process, pid_t tid, mw_addr sp, mw_addr pc)
{
	struct mw_regs regs = {.pc = pc};

	if (pc == process->planted.trampoline || mw_map_get(&process->planted.slots, pc & ~(mw_addr)(MW_OOL_MAX - 1)))
		return true;
	regs.gpr[process->arch->dwarf_sp] = sp;
	return process->rescue.base &&
	       trap_leads_inside(tid, process->arch, &regs, process->rescue.base, true, process->shadow_stack);
}

static bool is_starved(const struct trap_thread *thread)
{
	mw_addr sp, pc;
	char state;

	if (!trap_is_to_stop(thread))
		return false;
	state = mw_state_read(thread->tid);
	if (mw_state_is_end(state))
		return false;
	return state != 'D' || !mw_waiting_read(thread->tid, &sp, &pc) ||
	       leads_to_ours(thread->process, thread->tid, sp, pc);
}

bool trap_any_starved(const struct trap_process *process)
{
	return trap_any(process, is_starved);
}

#define STRAGGLER_PATIENCE_NS 5000000000u
#define STARVED_PATIENCE_NS   UINT64_C(60000000000)

static bool is_as_long_as_wanted(const struct trap_process *process)
{
	uint64_t wanted = process->engine->options.duration_ns;

	return process->windowed && wanted && trap_now(process) >= wanted;
}

void trap_window_hear(struct trap_process *process)
{
	if (process->closed_ns)
		return;
	trap_hear_all(process->engine);
	process->closed_ns = mw_clock_ns();
}

void trap_window_close(struct trap_process *process)
{
	if (!process->windowed || process->window.length_ns)
		return;
	trap_window_hear(process);
	process->window.length_ns =
		is_as_long_as_wanted(process) ? process->engine->options.duration_ns : trap_now(process);
}

static void process_end(struct trap_process *process, enum mw_window_end end)
{
	struct trap_thread *thread;

	process->ended = process->window.over = true;
	process->holding = false;
	process->window.gone = end == MW_END_EXIT || end == MW_END_EXEC;
	/* What became of it after its window is not why that ended. */
	process->window.ended = process->window.length_ns && process->engine->windows_ended ? process->engine->end
				: is_as_long_as_wanted(process)                             ? MW_END_DURATION
											    : end;
	trap_window_close(process);
	for (size_t i = 0; (thread = trap_thread_next(process, &i)); i = 0)
		trap_thread_remove(thread);
	mw_map_deinit(&process->threads);
}

/* The return addresses that were exchanged, back where they still stand. */
static struct mw_error *restore_returns(struct trap_process *process, pid_t tid)
{
	struct mw_error *first = NULL;
	const struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		MW_EACH(call, thread->calls, thread->call_count) {
			mw_addr slot = call->sp - sizeof(mw_addr), now;

			if (call->exchanged && mw_remote_read(tid, slot, &now, sizeof(now)) == sizeof(now) &&
			    now == process->planted.trampoline)
				mw_error_keep_first(&first, mw_remote_poke(tid, slot, &call->ret, sizeof(call->ret)));
		}
	}
	return first;
}

/* A thread that has just returned into the trampoline, and has not trapped yet or had its trap taken back. */
static struct mw_error *leave_trampoline(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	struct mw_tracee_regs regs;
	struct trap_call call;
	bool found;

	if (!process->planted.trampoline)
		return NULL;
	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	if (regs.general.pc != process->planted.trampoline)
		return NULL;
	MW_TRY(trap_call_returning(thread, process->planted.trampoline, regs.general.gpr[process->arch->dwarf_sp], true,
				   &call, &found));
	if (!found)
		return NULL;
	regs.general.pc = call.ret;
	return mw_tracee_set_regs(thread->tid, &regs);
}

static void let_go(struct trap_process *process, struct mw_error **first)
{
	struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (!thread->stopped)
			continue;
		mw_error_keep_first(first, trap_mask_restore(thread));
		mw_error_keep_first(first, mw_tracee_detach(thread->tid, thread->signal));
		trap_thread_remove(thread);
		i = 0; /* that has changed the map */
	}
}

/* Is it to be waited for? So are those that are about to end: nobody else would hear of it. A first thread that has ended
 * is heard of when none is left. */
static bool is_left(const struct trap_thread *thread)
{
	struct mw_status status;

	return !thread->ending || thread->tid != thread->process->pid ||
	       !mw_error_none(mw_status_read(thread->tid, &status)) || status.threads <= 1;
}

static struct mw_error *serve_next(struct trap_engine *engine)
{
	int status;
	pid_t tid;

	MW_TRY(trap_wait(engine, &tid, &status));
	return tid ? trap_dispatch(engine, tid, status) : NULL;
}

/* Threads in waits that nothing interrupts: hear of their stop when it comes, so that it is a short one. */
static void await_stragglers(struct trap_process *process, struct mw_error **first)
{
	uint64_t begin = mw_clock_ns();

	while (trap_any(process, is_left) && mw_clock_ns() - begin < STRAGGLER_PATIENCE_NS) {
		mw_error_keep_first(first, serve_next(process->engine));
		if (process->ended)
			return;
		let_go(process, first);
	}
}

/* Threads may have changed their names since they were first seen. */
static void read_names(struct trap_process *process)
{
	struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		if (thread->numbered)
			mw_error_destroy(trap_thread_number(thread));
}

/* The last sample is taken when nothing waits for it any more: for a large process it takes its time. */
static void last_sample(struct trap_process *process, pid_t tid)
{
	const struct mw_engine_options *options = &process->engine->options;

	if (options->sample && process->windowed)
		options->sample(options->sample_context, process->pid, tid, process->window.length_ns, true);
}

/* All but that of the trampoline: somebody may stand before it. Last those that keep SIGTRAP out of masks. */
static struct mw_error *lift_breakpoints(struct trap_process *process, pid_t tid)
{
	struct mw_error *first = NULL;
	void *value;

	for (int mask = 0; mask <= 1; mask++) {
		for (size_t i = 0; mw_map_next(&process->planted.breakpoints, &i, &value);) {
			struct trap_breakpoint *breakpoint = value;

			if (!breakpoint->trampoline && breakpoint->mask == mask)
				mw_error_keep_first(&first, trap_breakpoint_lift(process, tid, breakpoint));
		}
	}
	return first;
}

/*
 * No breakpoint stands, and nobody is on a way that leads to one or comes from one. Before anything is waited for: a
 * vforked child that is held at a breakpoint never gets on to where its maker goes on. Where it is not known of all
 * that they have left the copies, these stay.
 */
static void lift(struct trap_process *process, struct mw_error **first)
{
	pid_t tid = trap_stopped_tid(process);
	struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (!thread->stopped)
			continue;
		mw_error_keep_first(first, trap_leave_slot(thread));
		mw_error_keep_first(first, leave_trampoline(thread));
	}
	/* Where no thread could be stopped (all wait for a disk), the text is put back while they do. */
	if (!tid)
		tid = trap_live_tid(process);
	if (process->threads.count == 0)
		return;
	process->planted.lifted = true;
	/* What has come by where none of ours stood any more, nobody knows. */
	process->stats.lost_events += mw_journal_disturbed(&process->journal, tid);
	mw_error_keep_first(first, restore_returns(process, tid));
	mw_error_keep_first(first, trap_any_starved(process) ? lift_breakpoints(process, tid)
							     : mw_journal_rollback(&process->journal, tid));
}

static bool is_awaited(const struct trap_thread *thread)
{
	return thread->awaited && !thread->stopped && !thread->ending;
}

/* Those that got no CPU stop before they run any code of the program's; until then the others go on. */
static struct mw_error *await_starved(struct trap_process *process, uint64_t until_ns)
{
	struct mw_error *err = NULL;
	struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		thread->awaited = is_starved(thread);
	MW_TRY(trap_release(process));
	while (!err && !process->ended && trap_any(process, is_awaited) && mw_clock_ns() < until_ns)
		err = serve_next(process->engine);
	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		thread->awaited = false;
	return err;
}

/* Everybody stands, has left what is ours, and all of it but the rescue has been taken out. */
static struct mw_error *clear(struct trap_process *process)
{
	struct mw_error *first = trap_hold(process);

	if (process->ended)
		return first;
	lift(process, &first);
	mw_error_keep_first(&first, trap_rescue_settle(process));
	return first;
}

/* The process has stood since `begin_ns`, and goes on. */
static void account(struct trap_process *process, uint64_t begin_ns)
{
	uint64_t now = mw_clock_ns(), stood_ns = now - begin_ns;

	process->stats.detach_ns += stood_ns;
	process->stats.stood_ns += stood_ns;
	if (stood_ns > process->stats.longest_stop_ns)
		process->stats.longest_stop_ns = stood_ns;
}

struct mw_error *trap_process_detach(struct trap_process *process, enum mw_window_end end)
{
	struct mw_error *first = NULL;
	uint64_t begin = mw_clock_ns(), until = begin + STARVED_PATIENCE_NS;
	pid_t live;

	if (process->ended)
		return NULL;
	if (process->threads.count == 0) {
		process_end(process, end);
		return NULL;
	}
	trap_window_close(process);
	mw_peek_look(process->pid);
	for (;;) {
		uint64_t now;

		mw_error_keep_first(&first, clear(process));
		now = mw_clock_ns();
		if (first || process->ended || now > until || !trap_any_starved(process))
			break;
		account(process, begin);
		mw_error_keep_first(&first, await_starved(process, until));
		begin = mw_clock_ns();
	}
	if (process->ended)
		return first;
	live = trap_live_tid(process);
	read_names(process);
	if (process->threads.count > 0)
		mw_error_keep_first(&first, trap_rescue_remove(process));
	let_go(process, &first);
	account(process, begin);
	await_stragglers(process, &first);
	last_sample(process, live);
	if (!process->ended)
		process_end(process, end);
	return first ? mw_error_prefix(first, "detaching from process %d", process->pid) : NULL;
}

// SPDX-License-Identifier: MIT
/* hit.c: a breakpoint of ours was executed (trap.h). */
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"

#include "tracee/remote.h"

#include <string.h>

#define SNAPSHOT_SLACK 64u

void trap_hit_walk(struct trap_hit *hit)
{
	struct trap_process *process = hit->process;
	struct mw_regs caller = hit->regs.general;

	if (hit->walked)
		return;
	hit->walked = true;
	caller.pc = hit->ret;
	caller.gpr[process->arch->dwarf_sp] = hit->sp;
	process->unwinder->ops->walk(process->unwinder, &caller, &hit->memory, hit->engine->frames,
				     hit->engine->options.depth, &hit->frame_count, &hit->cut);
	hit->serial = process->unwinder->serial;
}

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

struct mw_error *trap_hit(struct trap_engine *engine, struct trap_thread *thread, struct trap_breakpoint *breakpoint,
			  const struct mw_tracee_regs *regs)
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

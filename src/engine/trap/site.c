// SPDX-License-Identifier: MIT
/*
 * site.c: hearing of a call's return (trap.h).
 *
 * A breakpoint at the place that the call returns to leaves the thread's stack as it is: exceptions, backtraces and
 * profilers inside the target find it whole, and a jump out of the call leaves nothing behind. Where there can be
 * none (code in no file, which may be rewritten; an instruction that can't be displaced; a place that is
 * passed much more often than returned to) the return address on the stack is exchanged for the trampoline's.
 */
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "tracee/remote.h"

#include <string.h>

#define BEFORE 8 /* longest call instruction, rounded up */

#define STRAYS_AT_LEAST 256
#define STRAYS_FACTOR   4

/* Look at the code around a return address; true where a breakpoint may stand there. */
static bool plan_site(struct trap_process *process, pid_t tid, struct trap_breakpoint *site)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, site->addr);
	uint8_t code[BEFORE + MW_INSN_MAX];
	uint8_t now;

	if (!module || !module->elf ||
	    !mw_elf_read(module->elf, site->addr - module->bias - BEFORE, code, sizeof(code)))
		return false;
	if (!process->arch->is_call_before(code, BEFORE))
		return false;
	/* Somebody else's breakpoint, or code that differs from its file. */
	if (mw_remote_read(tid, site->addr, &now, 1) != 1 || now != code[BEFORE])
		return false;
	process->arch->plan(code + BEFORE, MW_INSN_MAX, site->addr, &site->plan);
	return site->plan.how != MW_INSN_REFUSE;
}

static struct mw_error *make_site(struct trap_hit *hit, struct trap_breakpoint *site)
{
	struct trap_process *process = hit->process;
	pid_t tid = hit->thread->tid;
	bool possible = false;

	if (!site->standing) {
		if (plan_site(process, tid, site))
			MW_TRY(trap_breakpoint_prepare(process, tid, site, &possible));
		if (!possible) {
			site->exchange = true;
			return NULL;
		}
		MW_TRY(trap_breakpoint_plant(process, tid, site));
		site->exchange = !site->standing;
	}
	site->site = site->standing;
	return NULL;
}

struct mw_error *trap_return_arrange(struct trap_hit *hit, bool may_throw, bool *exchanged, bool *possible)
{
	struct trap_process *process = hit->process;
	struct trap_breakpoint *site;

	*possible = true;
	*exchanged = false;
	MW_TRY(trap_breakpoint_get(process, hit->ret, &site));
	site->may_throw |= may_throw;
	if (!site->site && !site->exchange)
		MW_TRY(make_site(hit, site));
	if (site->site && site->standing)
		return NULL;
	if (!process->planted.trampoline || process->shadow_stack || may_throw) {
		*possible = false;
		return NULL;
	}
	MW_TRY(trap_rescue_exchange(process, hit->thread->tid, hit->sp, hit->ret, possible));
	if (!*possible)
		return NULL;
	*exchanged = true;
	return mw_error_unless_gone(mw_remote_poke(hit->thread->tid, hit->sp - sizeof(mw_addr),
						   &process->planted.trampoline, sizeof(process->planted.trampoline)));
}

/* Does any thread have a call in flight that returns here? */
static bool awaited(const struct trap_process *process, const struct trap_breakpoint *site)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		for (size_t j = 0; j < thread->call_count; j++)
			if (thread->calls[j].ret == site->addr && !thread->calls[j].exchanged)
				return true;
	}
	return false;
}

struct mw_error *trap_site_stray(struct trap_hit *hit)
{
	struct trap_breakpoint *site = hit->breakpoint;

	site->strays++;
	if (site->strays < STRAYS_AT_LEAST || site->strays < site->returns * STRAYS_FACTOR || site->may_throw ||
	    site->hook != TRAP_NO_HOOK || !hit->process->planted.trampoline || hit->process->shadow_stack ||
	    awaited(hit->process, site))
		return NULL;
	site->site = false;
	site->exchange = true;
	return trap_breakpoint_lift(hit->process, hit->thread->tid, site);
}

// SPDX-License-Identifier: MIT
/*
 * starved.c: threads that were to stand still and have not stopped (trap.h). One that waits in the kernel, for a disk
 * or a vforked child, has not moved: where it goes on can be read. One that gets no CPU, as others have it, may be
 * anywhere: in an out-of-line copy, on the trampoline, in what rescue.c has put in.
 */
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "proc/status.h"

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

bool trap_is_starved(const struct trap_thread *thread)
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
	bool any = false;
	void *value;

	for (size_t i = 0; !any && mw_map_next(&process->threads, &i, &value);)
		any = trap_is_starved(value);
	return any;
}

// SPDX-License-Identifier: MIT
/*
 * inside.c: does a thread still need the code that rescue.c has put in (trap.h)?
 *
 * Its pc may be there; or another signal has interrupted it there, and that one's handler is at work: the kernel lays
 * the frames of several signals that come together one on top of the other, before the first instruction of any
 * handler. What the code counts of itself is not enough: a handler that interrupts it may never come back (siglongjmp),
 * and has been counted, and the first and the last instructions are not.
 */
#include "engine/trap/rescues.h"
#include "proc/peek.h"

#define STACK 16384 /* bytes that are looked through: the handlers' own, as a rule */
#define MOST  65536 /* … where somebody is known to be in it */

size_t trap_read_stack(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, uint64_t *words, size_t size,
		       mw_addr *sp)
{
	mw_addr own = regs->thread_pointer;

	*sp = regs->gpr[arch->dwarf_sp] & ~(mw_addr)(sizeof(*words) - 1);
	/* A pthread's control block lies above its stack, and other threads' stacks behind that. */
	if (own > *sp && own - *sp < size)
		size = (size_t)(own - *sp);
	return mw_touched_peek(tid, *sp, words, size) / sizeof(*words);
}

bool trap_leads_inside(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, mw_addr base, bool counted,
		       bool shadow_stack)
{
	uint64_t words[MOST / sizeof(uint64_t)];
	mw_addr sp;
	size_t got;

	if (regs->pc - base < MW_RESCUE_CODE)
		return true;
	got = trap_read_stack(tid, arch, regs, words, counted ? MOST : STACK, &sp);
	for (size_t i = 0; i < got; i++)
		if (words[i] - base < MW_RESCUE_CODE &&
		    (shadow_stack || arch->is_kept_pc(sp + i * sizeof(*words), words, got, i)))
			return true;
	return false;
}

bool trap_is_inside(pid_t tid, const struct mw_arch *arch, mw_addr base, bool counted, bool shadow_stack)
{
	struct mw_tracee_regs regs;
	struct mw_error *err = mw_tracee_get_regs(tid, &regs);
	bool inside = !err && trap_leads_inside(tid, arch, &regs.general, base, counted, shadow_stack);

	mw_error_destroy(err);
	return inside;
}

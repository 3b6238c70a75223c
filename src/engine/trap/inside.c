// SPDX-License-Identifier: MIT
/*
 * inside.c: does a thread still need the code that rescue.c has put in (trap.h)?
 *
 * Its pc may be there; or another signal has struck it there, and that one's handler is at work: the kernel lays the
 * frames of several signals that come together one on top of the other, before the first instruction of any handler.
 * What the code counts of itself is not enough: a handler that interrupts it may never come back (siglongjmp), and has
 * been counted, and the first and the last instructions are not.
 */
#include "engine/trap/trap.h"
#include "target/remote.h"

#define STACK 16384 /* bytes that are looked through: the handlers' own, as a rule */
#define MOST  65536 /* … where somebody is known to be in it */

bool trap_is_inside(pid_t tid, const struct mw_arch *arch, mw_addr base, bool counted, bool shadow_stack)
{
	uint64_t words[MOST / sizeof(uint64_t)];
	struct mw_tracee_regs regs;
	struct mw_error *err = mw_tracee_get_regs(tid, &regs);
	mw_addr sp;
	size_t got;

	if (err) {
		mw_error_destroy(err);
		return false;
	}
	if (regs.general.pc - base < MW_RESCUE_CODE)
		return true;
	sp = regs.general.gpr[arch->dwarf_sp] & ~(mw_addr)(sizeof(*words) - 1);
	got = mw_remote_read(tid, sp, words, counted ? MOST : STACK) / sizeof(*words);
	for (size_t i = 0; i < got; i++)
		if (words[i] - base < MW_RESCUE_CODE &&
		    (shadow_stack || arch->is_kept_pc(sp + i * sizeof(*words), words, got, i)))
			return true;
	return false;
}

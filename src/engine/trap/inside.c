// SPDX-License-Identifier: MIT
/*
 * inside.c: does a thread still need the code that rescue.c has put in (trap.h)?
 *
 * The code counts the threads that are in it. A handler of the program's that interrupts it may never come back
 * (siglongjmp), and what has been counted stays: so the count alone says only that it is worth looking. A thread comes
 * back by an address on its stack: a return address, or the pc in a signal's frame, be it on another stack.
 */
#include "engine/trap/trap.h"
#include "target/remote.h"

#define STACK 65536 /* bytes that are looked through */

bool trap_leads_inside(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, mw_addr base)
{
	uint64_t words[STACK / sizeof(uint64_t)];
	mw_addr sp = regs->gpr[arch->dwarf_sp] & ~(mw_addr)(sizeof(*words) - 1);
	size_t got = mw_remote_read(tid, sp, words, sizeof(words)) / sizeof(*words);

	for (size_t i = 0; i < got; i++)
		if (words[i] - base < MW_RESCUE_CODE)
			return true;
	return false;
}

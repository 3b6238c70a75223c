/* SPDX-License-Identifier: MIT */
/*
 * way_back.h: how a thread that performs a system call for us gets back to its own work where nobody puts its registers
 * back: memwatch can be killed (SIGKILL) at any moment, and what it has stopped runs on from where it stands.
 *
 *      stack pointer           what the thread is at
 *      - some room             used by those who write names and the like below the stack pointer
 *      frame                   as the kernel lays one for a signal: all registers, the signal mask
 *      [pc → syscall; ret]     returns into the frame's restorer (rt_sigreturn), which puts all of it back
 *
 * A program that has no restorer, as it handles no signals, has other code that does: it returns to what pops a number
 * and returns, with that of rt_sigreturn, and from there to the system call instruction once more.
 *
 * Memory below the stack pointer is nobody's, but for stacks that end there and lie beside something else; so what
 * stood there is put back when all goes well.
 */
#ifndef MW_TARGET_WAY_BACK_H
#define MW_TARGET_WAY_BACK_H

#include "target/tracee.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_WAY_BACK_MAX   16384u
#define MW_WAY_BACK_FIRST 16u /* bytes of what is popped */

/* The target's code that leads back: one of the two. */
struct mw_way_code {
	mw_addr restorer; /* performs rt_sigreturn; or 0 */
	mw_addr popper;   /* takes the number of a system call from the stack and returns; or 0 */
	mw_addr insn;     /* a system call instruction and a return */
};

/* What stood where the frame is. size 0: there is none. */
struct mw_way_back {
	mw_addr sp; /* the stack pointer that leads into it */
	size_t size;
	uint8_t before[MW_WAY_BACK_FIRST + MW_WAY_BACK_MAX];
};

/*
 * Lay a frame with the registers and the mask given; the thread is in a ptrace stop. `out->size` is 0 where it can't be
 * done (no such code, no room on the stack): then it is to go without. Errors: none but GONE.
 */
struct mw_error *mw_way_back_lay(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask,
				 const struct mw_way_code *code, struct mw_way_back *out) MW_MUST_CHECK;
/* Put back what stood there. */
void mw_way_back_take_up(pid_t tid, const struct mw_way_back *way);

/* Architecture's own. */
/* Write the frame that is to lie below `below` into `out` (MW_WAY_BACK_MAX bytes); *at is its address. Returns its
 * size, 0 where the thread's registers can't be had. */
size_t mw_regs_signal_frame(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask, mw_addr restorer,
			    mw_addr below, uint8_t *out, mw_addr *at);
/* A system call instruction with a return behind it, a restorer's code, and a popper's. */
const uint8_t *mw_regs_syscall_return(size_t *size);
const uint8_t *mw_regs_restorer(size_t *size);
const uint8_t *mw_regs_popper(size_t *size);

#endif

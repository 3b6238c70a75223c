/* SPDX-License-Identifier: MIT */
/*
 * sigframe.h: how a thread that performs a system call for us gets back to its own work where nobody puts its registers
 * back: memwatch can be killed (SIGKILL) at any moment, and what it has stopped runs on from where it stands.
 *
 *      room.high               memory that only this thread writes (own_stack.h), or that memwatch has mapped
 *      scratch                 bytes that a call is to be given, such as a name
 *      frame                   as the kernel lays one for a signal: all registers, the signal mask
 *      [pc → syscall; ret]     returns into the frame's restorer (rt_sigreturn), which puts all of it back
 *      room.low
 *
 * Nothing is written below the thread's own stack pointer, which may lead into a stack of 2 KiB with other objects
 * right below it.
 *
 * A program that has no restorer, as it handles no signals, has other code that does: it returns to what pops a number
 * and returns, with that of rt_sigreturn, and from there to the system call instruction once more.
 *
 * What stood in the room is put back when all goes well. Frame and scratch carry a mark, their own address and their
 * bounds: what a killed memwatch has left of them can be found, and a thread that is still returning by its sigframe be
 * seen.
 */
#ifndef MW_TRACEE_SIGFRAME_H
#define MW_TRACEE_SIGFRAME_H

#include "tracee/own_stack.h"
#include "tracee/tracee.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_SIGFRAME_MAX   16384u
#define MW_SIGFRAME_FIRST 16u  /* bytes of what is popped */
#define MW_SCRATCH_MAX    160u /* bytes */
#define MW_SCRATCH_SIZE   192u /* … with the mark */
#define MW_ROOM_MAX       (MW_SIGFRAME_FIRST + MW_SIGFRAME_MAX + 64u + MW_SCRATCH_SIZE)

/* The target's code that leads back: one of the two. */
struct mw_way_code {
	mw_addr restorer; /* performs rt_sigreturn; or 0 */
	mw_addr gadget;   /* takes the number of a system call from the stack and returns; or 0 */
	mw_addr insn;     /* a system call instruction and a return */
};

/* What stood where the frame is. size 0: there is none. */
struct mw_sigframe {
	mw_addr sp; /* the stack pointer that leads into it */
	size_t size;
	uint8_t before[MW_SIGFRAME_FIRST + MW_SIGFRAME_MAX];
};

/*
 * Lay a frame with the registers and the mask given into `room`; the thread is in a ptrace stop. `out->size` is 0 where
 * it can't be done (no such code, no room): then it is to go without. Errors: none but GONE.
 */
struct mw_error *mw_sigframe_lay(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask,
				 const struct mw_way_code *code, const struct mw_room *room,
				 struct mw_sigframe *out) MW_MUST_CHECK;
/* How large a room the frame and the scratch of a thread in a ptrace stop take, as it is now; 0: it can't be known. */
size_t mw_sigframe_room(pid_t tid);
/* Put back what stood there. */
void mw_sigframe_take_up(pid_t tid, const struct mw_sigframe *way);

/* Bytes for a call to read or write, in a thread's room. */
struct mw_scratch {
	mw_addr at; /* of the bytes */
	uint8_t before[MW_SCRATCH_SIZE];
};

/* Put up to MW_SCRATCH_MAX bytes there, and put back what was there before. Errors: DATA, GONE. */
struct mw_error *mw_scratch_put(pid_t tid, const struct mw_room *room, const void *bytes, size_t size,
				struct mw_scratch *out) MW_MUST_CHECK;
struct mw_error *mw_scratch_take_up(pid_t tid, const struct mw_scratch *scratch) MW_MUST_CHECK;

/* Are these the registers of a thread that performs a call, or returns from one by its frame? */
bool mw_sigframe_is_at(pid_t tid, const struct mw_regs *regs);
/* The first frame or scratch that a killed memwatch has left from `from` on, where nothing but zeros lies in between.
 */
bool mw_sigframe_find_remains(pid_t tid, mw_addr from, mw_addr limit, mw_addr *start, size_t *size);

/* Architecture's own. */
/* Write the frame that is to lie below `below` into `out` (MW_SIGFRAME_MAX bytes); *at is its address. Returns its
 * size, 0 where the thread's registers can't be had. */
size_t mw_regs_signal_frame(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask, mw_addr restorer,
			    mw_addr below, uint8_t *out, mw_addr *at);
/* Where that frame has four words that nobody reads. */
size_t mw_regs_signal_frame_spare(void);
/* The frame, rounded as it lies in memory, that a stack pointer in its first bytes, or right before them, leads into.
 */
mw_addr mw_regs_signal_frame_at(mw_addr sp);
/* A system call instruction with a return behind it, a restorer's code, and a sigreturn gadget's. */
const uint8_t *mw_regs_syscall_return(size_t *size);
const uint8_t *mw_regs_restorer(size_t *size);
const uint8_t *mw_regs_sigreturn_gadget(size_t *size);

#endif

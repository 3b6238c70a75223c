/* SPDX-License-Identifier: MIT */
/*
 * rescue.h: what engine trap puts into a target so that it lives on when memwatch is killed (SIGKILL): a handler of
 * SIGTRAP for breakpoints that nobody serves any more, and what it has to know of them. Integers only: memwatch writes
 * it, code without a C library reads it in the target.
 *
 *      base                code, read-execute: a mark, the handler, its way back to the kernel
 *      + MW_RESCUE_CODE    struct mw_rescue, read-write
 *
 * Nothing of it runs while memwatch serves the breakpoints, but for signals that are the program's own affair.
 */
#ifndef MEMWATCH_RESCUE_H
#define MEMWATCH_RESCUE_H

#include <memwatch/arch.h>

#define MW_RESCUE_MAGIC  UINT64_C(0x6575637365722f77) /* first in the code */
#define MW_RESCUE_LAYOUT 1u                           /* another number is another memwatch's */
#define MW_RESCUE_CODE   16384u                       /* bytes of the code's mapping */

#define MW_RESCUE_BREAKPOINTS 32768u
#define MW_RESCUE_INDEX       65536u /* a power of 2, more than there are breakpoints */
#define MW_RESCUE_RETURNS     4096u  /* a power of 2 */
#define MW_RESCUE_BLOCKED     1024u  /* threads */
#define MW_RESCUE_CHANGES     64u

/* The code begins with it. */
struct mw_rescue_header {
	uint64_t magic;
	uint32_t layout;
	uint32_t handler;  /* offset of the handler of SIGTRAP */
	uint32_t restorer; /* … of what it returns to: rt_sigreturn */
	uint32_t call;     /* … of a system call instruction with a return behind it */
	uint32_t size;     /* of the code, bytes */
	uint32_t unused;
};

enum mw_rescue_kind {
	MW_RESCUE_PLAIN,
	MW_RESCUE_PAD,    /* exchanged return addresses lead there */
	MW_RESCUE_MASK,   /* entry of a function like pthread_sigmask() */
	MW_RESCUE_ACTION, /* entry of sigaction() */
};

struct mw_rescue_breakpoint {
	struct mw_insn_plan plan; /* of the instruction; plan.pc is the breakpoint's address, 0: free */
	uint64_t slot;            /* its out-of-line copy, 0: it is to be emulated */
	uint32_t kind;
	uint8_t copy_length, slot_size; /* of the copied instruction, of all that stands there */
	uint16_t unused;
	uint8_t there[MW_OOL_MAX]; /* what stood there before */
};

/* Bytes that were changed and are neither a breakpoint nor a copy. */
struct mw_rescue_bytes {
	uint64_t addr;
	uint8_t size, unused[7];
	uint8_t before[8], after[8];
};

/* A return address that was exchanged for the pad's. */
struct mw_rescue_return {
	uint64_t sp;  /* the stack pointer after the return; 0: never used */
	uint64_t ret; /* 0: no more */
};

/* The kernel's struct sigaction. */
struct mw_rescue_action {
	uint64_t handler, flags, restorer, mask;
};

struct mw_rescue {
	uint32_t inside;       /* threads in the handler */
	uint32_t may_call;     /* it may make system calls: no seccomp filter would kill for them */
	uint32_t shadow_stack; /* return addresses on the stack are checked */
	uint32_t healing;      /* a thread is at it, or has been and could not */
	uint32_t healed;       /* the breakpoints are out, but for the pad's */
	uint32_t hits;         /* breakpoints that memwatch has not served, for tests */
	uint32_t count;        /* breakpoints, the free ones among them too */
	uint32_t blocked_count;
	struct mw_rescue_action own; /* what the program wants done with SIGTRAP */
	uint32_t change_count, unused;
	struct mw_rescue_bytes changes[MW_RESCUE_CHANGES];
	uint32_t index[MW_RESCUE_INDEX]; /* by address: number of a breakpoint plus 1, 0: none */
	struct mw_rescue_return returns[MW_RESCUE_RETURNS];
	/* Threads whose mask would hold SIGTRAP if memwatch had not taken it out. */
	uint32_t blocked[MW_RESCUE_BLOCKED];
	struct mw_rescue_breakpoint breakpoints[MW_RESCUE_BREAKPOINTS];
};

/* Where an address is looked for first in an index of `size` places, a power of 2; then in the following ones. */
static inline uint32_t mw_rescue_place(uint64_t addr, uint32_t size)
{
	uint64_t hash = addr * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(hash >> 40) & (size - 1);
}

#endif

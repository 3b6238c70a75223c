/* SPDX-License-Identifier: MIT */
/*
 * rescue.h: what engine trap puts into a target so that it lives on when memwatch is killed (SIGKILL): a handler of
 * SIGTRAP for breakpoints that nobody serves any more, and what it has to know of them. Integers only: memwatch writes
 * it, code without a C library reads it in the target.
 *
 *      base                code, read-execute: a mark, the handler, its return to the kernel; at the end trampolines
 *                          that the C library's system calls rt_sigaction jump to (mw_arch.action_jump)
 *      + MW_RESCUE_CODE    struct mw_rescue, read-write
 *
 * Beside that there may be areas, read-execute: MW_RESCUE_AREA bytes each for out-of-line copies of instructions.
 *
 * Nothing of it runs while memwatch serves the breakpoints, but for signals that are the program's own affair.
 */
#ifndef MEMWATCH_RESCUE_H
#define MEMWATCH_RESCUE_H

#include <memwatch/arch.h>

#define MW_RESCUE_MAGIC  UINT64_C(0x6575637365722f77) /* first in the code */
#define MW_RESCUE_LAYOUT 4u                           /* another number is another memwatch's */
#define MW_RESCUE_CODE   16384u                       /* bytes of the code's mapping */

#define MW_RESCUE_BREAKPOINTS 32768u
#define MW_RESCUE_INDEX       65536u /* a power of 2, more than there are breakpoints */
#define MW_RESCUE_RETURNS     4096u  /* a power of 2 */
#define MW_RESCUE_BLOCKED     1024u  /* threads */
#define MW_RESCUE_CHANGES     64u
#define MW_RESCUE_RESETS      64u
#define MW_RESCUE_SIGNALS     64u
#define MW_RESCUE_PAGE        4096
#define MW_RESCUE_ROOM        20480u /* bytes */
#define MW_RESCUE_AREAS       8u
#define MW_RESCUE_AREA        (1u << 20) /* bytes, most of which are never touched */

/*
 * What memwatch leaves in a thread's spare registers (mw_arch.spare) before it begins to carry out a function that sets
 * a mask, for whoever has to begin anew if it is killed meanwhile: the first is the mask that the program believes
 * the thread to have before the call, the second is this.
 */
#define MW_RESCUE_BEGUN UINT64_C(0x6e756765622d776d)

/*
 * The signal of a breakpoint that memwatch serves gets this errno, and mw_rescue_served() as pid (low half) and uid,
 * before the thread gets the registers with which it goes on: by the pc alone nobody can tell that (a return address, a
 * jump's target, the second byte of an instruction of one byte).
 */
#define MW_RESCUE_SERVED 0x6d77

/* The code begins with it. */
struct mw_rescue_header {
	uint64_t magic;
	uint32_t layout;
	uint32_t handler;  /* offset of the handler of SIGTRAP */
	uint32_t restorer; /* … of what it returns to: rt_sigreturn */
	uint32_t call;     /* … of a system call instruction with a return behind it */
	uint32_t size;     /* of the code, bytes */
	uint32_t act;      /* where a thread goes for a system call rt_sigaction */
};

enum mw_rescue_kind {
	MW_RESCUE_PLAIN,
	MW_RESCUE_TRAMPOLINE, /* exchanged return addresses lead there */
	MW_RESCUE_MASK,       /* entry of a function like pthread_sigmask() */
	/* The C library's system call rt_sigaction. memwatch sends the thread to `act` for it, with where to go on in
	 * the first of the spare registers. */
	MW_RESCUE_ACTION,
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
	uint8_t size;
	uint8_t last; /* to be put back after the actions of signals only */
	uint8_t unused[6];
	uint8_t before[8], after[8];
};

/* A return address that was exchanged for the trampoline's. */
struct mw_rescue_return {
	uint64_t sp;  /* the stack pointer after the return; 0: never used */
	uint64_t ret; /* 0: no more */
};

/* The kernel's struct sigaction. */
struct mw_rescue_action {
	uint64_t handler, flags, restorer, mask;
};

/*
 * Other signals whose action has SIGTRAP in its mask, for all that the program knows, and not in truth: by number less
 * 1, the mark of what the kernel has; 0: none. `coming` may be what it has already.
 */
struct mw_rescue_marks {
	uint64_t stripped[MW_RESCUE_SIGNALS], coming[MW_RESCUE_SIGNALS];
};

/* Its last page is one of its own. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct mw_rescue {
	uint32_t inside;       /* threads in the handler */
	uint32_t may_call;     /* it may make system calls: no seccomp filter would kill for them */
	uint32_t shadow_stack; /* return addresses on the stack are checked */
	uint32_t healing;      /* a thread is at it, or has been and could not */
	uint32_t healed;       /* the breakpoints are out, but for the trampoline's */
	uint32_t hits;         /* breakpoints that memwatch has not served, for tests */
	uint32_t count;        /* breakpoints, the free ones among them too */
	uint32_t blocked_count;
	uint32_t masking; /* threads whose mask memwatch sets just now */
	uint32_t clears;  /* the C library spawns children that have no actions: the breakpoints for masks kill them */
	/* What the program wants done with SIGTRAP: own[own_at % 2]. The other one is written, and then it is that. */
	uint32_t own_at;
	uint32_t led; /* the kernel leads SIGTRAP here, or is about to; else actions are the kernel's affair */
	struct mw_rescue_action own[2];
	struct mw_rescue_marks marks;
	uint64_t areas[MW_RESCUE_AREAS]; /* where they are, or are about to be; 0: none */
	uint32_t change_count, unused_too;
	struct mw_rescue_bytes changes[MW_RESCUE_CHANGES];
	uint32_t index[MW_RESCUE_INDEX]; /* by address: number of a breakpoint plus 1, 0: none */
	struct mw_rescue_return returns[MW_RESCUE_RETURNS];
	/* Threads whose mask would hold SIGTRAP if memwatch had not taken it out; 0: free. */
	uint32_t blocked[MW_RESCUE_BLOCKED];
	/* Other processes that live in the memory (vfork) and do not ignore SIGTRAP, whatever their maker does; 0:
	 * free. */
	uint32_t resets[MW_RESCUE_RESETS];
	struct mw_rescue_breakpoint breakpoints[MW_RESCUE_BREAKPOINTS];
	/* What a thread gets back by from a system call that it performs for memwatch, and what such a call is given.
	 */
	uint8_t room[MW_RESCUE_ROOM] __attribute__((aligned(MW_RESCUE_PAGE)));
	/* A page of its own, which the kernel empties in a forked copy: the process as it sees itself. Another one
	 * lives in its memory (vfork), and has actions of its own. */
	uint32_t pid __attribute__((aligned(MW_RESCUE_PAGE)));
	uint8_t rest[MW_RESCUE_PAGE - sizeof(uint32_t)];
};

/* Where an address is looked for first in an index of `size` places, a power of 2; then in the following ones. */
static inline uint32_t mw_rescue_place(uint64_t addr, uint32_t size)
{
	uint64_t hash = addr * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(hash >> 40) & (size - 1);
}

/* Of the registers with which a thread goes on. */
static inline uint64_t mw_rescue_served(uint64_t pc, uint64_t sp)
{
	return pc + sp * UINT64_C(0x9e3779b97f4a7c15);
}

#define MW_RESCUE_TRAP_BIT (UINT64_C(1) << 4) /* SIGTRAP in a mask */

/* Linux's SA_ flags as far as every kernel keeps them. */
enum {
	MW_RESCUE_SIGINFO = 0x4,
	MW_RESCUE_RESTORER = 0x4000000,
	MW_RESCUE_ONSTACK = 0x8000000,
	MW_RESCUE_RESTART = 0x10000000,
	MW_RESCUE_NODEFER = 0x40000000,
};
#define MW_RESCUE_RESETHAND UINT64_C(0x80000000)

/*
 * What an action is known by again, never 0: the same with SIGTRAP in its mask and without, and also after the kernel
 * has reset the handler of one that is for one time.
 */
static inline uint64_t mw_rescue_mark(const struct mw_rescue_action *action)
{
	const uint64_t kept = MW_RESCUE_RESETHAND | 0xdc000007u, never = UINT64_C(1) << 8 | UINT64_C(1) << 18;
	uint64_t flags = action->flags & kept;
	uint64_t mark = (action->mask & ~(never | MW_RESCUE_TRAP_BIT)) * UINT64_C(0x9e3779b97f4a7c15);

	mark = (mark ^ mark >> 29 ^ flags) * UINT64_C(0xbf58476d1ce4e5b9);
	if (!(flags & MW_RESCUE_RESETHAND))
		mark = (mark ^ mark >> 31 ^ action->handler) * UINT64_C(0x94d049bb133111eb);
	return mark | 1;
}

/* Is this one that was stripped of SIGTRAP? */
static inline int mw_rescue_is_stripped(const struct mw_rescue_action *now, uint64_t stripped, uint64_t coming)
{
	uint64_t mark = mw_rescue_mark(now);

	return !(now->mask & MW_RESCUE_TRAP_BIT) && (mark == stripped || mark == coming);
}

/* The kernel's action for SIGTRAP: as the program wants it done, but by the handler in the code at `base`. */
static inline struct mw_rescue_action mw_rescue_led(const struct mw_rescue_action *own, uint64_t base,
						    const struct mw_rescue_header *header)
{
	const uint64_t flags = MW_RESCUE_RESTART | MW_RESCUE_ONSTACK;
	int handled = own->handler > 1; /* neither SIG_DFL nor SIG_IGN */
	struct mw_rescue_action led;

	led.handler = base + header->handler;
	led.flags = (uint64_t)(MW_RESCUE_SIGINFO | MW_RESCUE_NODEFER | MW_RESCUE_RESTORER) |
		    (handled ? own->flags & flags : flags);
	led.restorer = base + header->restorer;
	led.mask = handled ? own->mask & ~MW_RESCUE_TRAP_BIT : 0;
	return led;
}

#endif

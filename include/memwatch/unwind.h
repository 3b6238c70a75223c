/* SPDX-License-Identifier: MIT */
/*
 * unwind.h: from a thread's registers to its stack.
 *
 * An unwinder reads the target's memory only through the view it is given, so the same code
 * serves a live process, a stack snapshot and a test's made-up memory. To add one: a file in
 * src/unwind/ that fills this vtable and a constructor in src/unwind/unwind.h.
 */
#ifndef MEMWATCH_UNWIND_H
#define MEMWATCH_UNWIND_H

#include <memwatch/arch.h>
#include <memwatch/event.h>
#include <memwatch/javascript.h>

/* Remote memory as an unwinder sees it. */
struct mw_memory_view {
	void *context;
	/* Copy `size` bytes at `addr` to `out`; false where they can't be read. */
	bool (*read)(void *context, mw_addr addr, void *out, size_t size);
	/* Is there no memory at `addr`, for certain? NULL: that can't be said. */
	bool (*ends)(void *context, mw_addr addr);
};

/* What a frame of HotSpot's interpreter runs: the method, and its bytecode (0 in a native one), as addresses. */
struct mw_interpreted {
	mw_addr method, at;
	bool is; /* it is such a frame */
};

/* One frame as an unwinder sees it, beyond what is kept of it. */
struct mw_unwound_frame {
	mw_addr pc;  /* the return address (frame 0: as given) */
	mw_addr cfa; /* the stack pointer after this frame has returned; 0 where unknown */
	uint32_t module;
	bool signal;      /* a signal frame: its pc is where the signal interrupted, not a return address */
	bool undescribed; /* a return address in code without unwind information */
	struct mw_interpreted interpreted;
	struct mw_javascript javascript;
};

struct mw_unwinder;

struct mw_unwinder_ops {
	const char *name;
	/*
	 * Walk from `regs`, whose pc is a return address (the caller's) and whose stack pointer is the
	 * one after the return, outwards. Writes at most `capacity` frames, frame 0 for regs itself.
	 * Never fails: what could not be walked is in `*cut`.
	 */
	void (*walk)(struct mw_unwinder *unwinder, const struct mw_regs *regs, const struct mw_memory_view *memory,
		     struct mw_unwound_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut);
	/*
	 * Does a function begin at `pc` that nothing has called, though `pc` stands where a return address does? There
	 * is no call right before it, nor any part of the function: it was put there, as the first thing to return to
	 * on a stack that the program has made (a coroutine's). A walk ends with it, and has pc + 1 for it. `inner` is
	 * the pc of the frame that returns there, or 0. NULL: that can't be said.
	 */
	bool (*begins)(struct mw_unwinder *unwinder, mw_addr pc, mw_addr inner);
	/* The process's module table has changed. */
	void (*flush)(struct mw_unwinder *unwinder);
	void (*destroy)(struct mw_unwinder *unwinder);
};

struct mw_unwinder {
	const struct mw_unwinder_ops *ops;
	/* Set by walk(): bit n, the walk looked at register n of the regs it was given (the program counter and the
	 * stack pointer always count as looked at). */
	uint32_t registers_used;
	/* Set by walk(): where not 0, an equal number on another walk means an equal result. */
	uint64_t serial;
	/* Set by walk(): the place of the last frame where that is a function that nothing has called (see begins), so
	 * that every walk that comes to it ends there; else 0. It need not be reported every time. */
	mw_addr dead_end;
};

#endif

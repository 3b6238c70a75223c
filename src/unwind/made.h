/* SPDX-License-Identifier: MIT */
/*
 * made.h: a step through code that a runtime makes as it runs, and of which it says itself what the frames are.
 */
#ifndef MW_UNWIND_MADE_H
#define MW_UNWIND_MADE_H

#include "unwind/fallback.h"

/* Where that is known. */
struct mw_made_code {
	void *context;
	/* Is `addr` in memory that is set aside for such code? */
	bool (*holds)(void *context, mw_addr addr);
	/* The row (memwatch/ring.h) of a return address there: SP, CALLED, INTERPRETED or DEOPTIMIZED; FOREIGN: there is no
	 * code. */
	uint64_t (*row)(void *context, mw_addr pc);
};

static inline bool mw_made_code_holds(const struct mw_made_code *made, mw_addr addr)
{
	return made && made->holds && made->holds(made->context, addr);
}

/* Step from `regs` (its pc a return address there) to the caller: pc, stack pointer and frame pointer. `interpreted`: of
 * an interpreter's frame the method and where in it; else 0. `*pc`: the return address that the frame had before it was to
 * go on in the interpreter. */
enum mw_fallback_step mw_made_step(const struct mw_made_code *made, const struct mw_arch *arch,
				   const struct mw_memory_view *memory, const struct mw_regs *regs, struct mw_regs *out,
				   struct mw_interpreted *interpreted, mw_addr *pc);

#endif

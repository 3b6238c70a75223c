/* SPDX-License-Identifier: MIT */
/*
 * fallback.h: one step outwards through code that has no .eh_frame description.
 */
#ifndef MW_UNWIND_FALLBACK_H
#define MW_UNWIND_FALLBACK_H

#include "symbol/modules.h"

#include <memwatch/unwind.h>

enum mw_fallback {
	MW_FALLBACK_FOUND, /* `out` is the caller */
	MW_FALLBACK_END,   /* this is where the thread starts */
	MW_FALLBACK_LOST,
};

/*
 * Step from `regs` (its pc a return address) to the caller by what the code itself says: its instructions from the
 * function's start to the pc tell how far the return address lies above the stack pointer. Sets pc, stack pointer and
 * the registers that were saved on the way.
 */
enum mw_fallback mw_fallback_step(const struct mw_modules *modules, const struct mw_arch *arch,
				  const struct mw_memory_view *memory, const struct mw_regs *regs, struct mw_regs *out);

#endif

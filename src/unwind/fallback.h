/* SPDX-License-Identifier: MIT */
/*
 * fallback.h: one step outwards through code that has no .eh_frame description.
 */
#ifndef MW_UNWIND_FALLBACK_H
#define MW_UNWIND_FALLBACK_H

#include "symbol/generated_code.h"
#include "symbol/modules.h"

#include <memwatch/unwind.h>

enum mw_fallback {
	MW_FALLBACK_FOUND, /* `out` is the caller */
	MW_FALLBACK_END,   /* this is where the thread starts */
	MW_FALLBACK_LOST,
	MW_FALLBACK_ALWAYS_END,  /* the same, and so it is whatever the registers and the stack hold, */
	MW_FALLBACK_ALWAYS_LOST, /* … as the code alone says */
};

/* What was looked up in modules, so that it is once: made by zeroing. */
struct mw_fallback_cache {
	struct mw_function_starts *items; /* by module number */
	size_t count;
};

void mw_fallback_cache_deinit(struct mw_fallback_cache *cache);

/* Is there code of a module at `addr`, and right before it a call? */
bool mw_fallback_is_return(const struct mw_modules *modules, const struct mw_arch *arch, mw_addr addr);

/*
 * Step from `regs` (its pc a return address) to the caller by what the code itself says: its instructions from the
 * function's start to the pc tell how far the return address lies above the stack pointer. Sets pc, stack pointer and
 * the registers that were saved on the way. Numbers of modules in one cache are those of one table.
 */
enum mw_fallback mw_fallback_step(struct mw_fallback_cache *cache, const struct mw_modules *modules,
				  const struct mw_arch *arch, const struct mw_memory_view *memory,
				  const struct mw_regs *regs, struct mw_regs *out);

#endif

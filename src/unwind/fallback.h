/* SPDX-License-Identifier: MIT */
/*
 * fallback.h: one step outwards through code that has no .eh_frame description.
 */
#ifndef MW_UNWIND_FALLBACK_H
#define MW_UNWIND_FALLBACK_H

#include "base/map.h"
#include "symbol/elf_image.h"
#include "symbol/modules.h"
#include "unwind/function_starts.h"

#include <memwatch/unwind.h>

enum mw_fallback {
	MW_FALLBACK_FOUND, /* `out` is the caller */
	MW_FALLBACK_END,   /* this is where the thread starts */
	MW_FALLBACK_LOST,
};

struct mw_fallback_module;

/* What was looked up in modules, so that it is once: made by zeroing. */
struct mw_fallback_cache {
	struct mw_fallback_module *items; /* by module number */
	size_t count;
	struct mw_map rows;
};

void mw_fallback_cache_deinit(struct mw_fallback_cache *cache);

/*
 * The row (memwatch/ring.h) of a return address in code without frame descriptions, as the code alone says. SP, FP: it
 * is certain. END: nothing has called it. FOREIGN: no walk leads on. SLOW: it can't be known for certain; NONE: there
 * is no code that could say.
 */
uint64_t mw_fallback_row(struct mw_fallback_cache *cache, const struct mw_modules *modules, const struct mw_arch *arch,
			 mw_addr pc);

/* Can something return to `addr`: is there code of a module, and right before it a call, or what a signal handler
 * returns to? */
bool mw_fallback_is_return(const struct mw_modules *modules, const struct mw_arch *arch, mw_addr addr);

/*
 * Step from `regs` (its pc a return address) to the caller by that row, or where it can't be known for certain by what
 * the stack shows besides: the one way out of the function that leads to what looks like a return address. Sets pc,
 * stack pointer and the registers that were saved on the way. Numbers of modules in one cache are those of one table.
 */
enum mw_fallback mw_fallback_step(struct mw_fallback_cache *cache, const struct mw_modules *modules,
				  const struct mw_arch *arch, const struct mw_memory_view *memory,
				  const struct mw_regs *regs, struct mw_regs *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * debug_frames.h: one step outwards through code that only .debug_frame describes: what has been compiled without
 * unwind tables, but with debug information.
 */
#ifndef MW_UNWIND_DEBUG_FRAMES_H
#define MW_UNWIND_DEBUG_FRAMES_H

#include "symbol/modules.h"
#include "unwind/rows.h"

#include <memwatch/unwind.h>

/* What .debug_frame says of each module, read when it is first asked for. Zero-initialise. */
struct mw_debug_frames {
	struct mw_row_dictionary dictionary;
	struct mw_rows *rows; /* by module number; none where `tried` and there is nothing */
	bool *tried;
	size_t count;
};

void mw_debug_frames_deinit(struct mw_debug_frames *frames);

enum mw_debug_frames_step {
	MW_DEBUG_FRAMES_NOTHING, /* it does not describe this code, or in a way that rows can't say */
	MW_DEBUG_FRAMES_FOUND,   /* `out` is the caller: pc, stack pointer and frame pointer, the rest as in `regs` */
	MW_DEBUG_FRAMES_END,     /* this is the outermost frame */
};

/* Step from `regs`, in code whose instruction at `at` was executed last, to the caller. */
enum mw_debug_frames_step mw_debug_frames_step(struct mw_debug_frames *frames, const struct mw_modules *modules,
					       const struct mw_arch *arch, const struct mw_memory_view *memory,
					       mw_addr at, const struct mw_regs *regs, struct mw_regs *out);

#endif

/* SPDX-License-Identifier: MIT */
/* unwind.h: the unwinders there are, and what they read from. */
#ifndef MW_UNWIND_UNWIND_H
#define MW_UNWIND_UNWIND_H

#include "symbol/modules.h"

#include <memwatch/unwind.h>

/*
 * libunwind, with tables from the module table's files. `modules` must outlive it; call flush when that changes. One
 * unwinder serves all threads of one process, one at a time.
 */
struct mw_error *mw_unwinder_libunwind(const struct mw_modules *modules, const struct mw_arch *arch,
				       struct mw_unwinder **out) MW_MUST_CHECK;

/*
 * Code of memwatch's own in the target that calls may pass through: its frames are walked over and not kept. `table` is
 * a search table as in .eh_frame_hdr, `entries` long, offsets from `base`: all in the target's memory.
 */
struct mw_unwinder_code {
	mw_addr start, end, base, table;
	size_t entries;
};
/* For an unwinder of the kind above. */
void mw_unwinder_libunwind_pass_over(struct mw_unwinder *unwinder, const struct mw_unwinder_code *code);

struct mw_fallback;
/* … what it goes by where nothing describes the code (fallback.h). Good as long as the unwinder. */
struct mw_fallback *mw_unwinder_libunwind_fallback(struct mw_unwinder *unwinder);

/*
 * A cache before another unwinder, which it owns. It keeps what each walk read (memory words and registers) and gives
 * the same answer again only after it has compared every one of them with what is there now: an unwinder is a function
 * of what it reads, so the answer can't differ. Frees `inner` on failure too.
 */
struct mw_error *mw_unwinder_memo(struct mw_unwinder *inner, const struct mw_arch *arch,
				  struct mw_unwinder **out) MW_MUST_CHECK;

static inline void mw_unwinder_destroy(struct mw_unwinder *unwinder)
{
	if (unwinder)
		unwinder->ops->destroy(unwinder);
}

#endif

// SPDX-License-Identifier: MIT
/* made.c: a step through code that a runtime makes as it runs (made.h). */
#include "unwind/made.h"

#include <memwatch/ring.h>

#define LARGEST (1u << 20) /* frame, in bytes */

static bool read_word(const struct mw_memory_view *memory, mw_addr at, uint64_t *word)
{
	return memory->read(memory->context, at, word, sizeof(*word));
}

static mw_addr add(mw_addr base, int32_t offset)
{
	return base + (uint64_t)(int64_t)offset;
}

static enum mw_fallback_step step_interpreted(const struct mw_arch *arch, const struct mw_memory_view *memory,
					      const struct mw_regs *regs, struct mw_regs *out,
					      struct mw_interpreted *interpreted)
{
	mw_addr sp = regs->gpr[arch->dwarf_sp], fp = regs->gpr[arch->dwarf_fp], pc;

	if (fp % sizeof(fp) || fp < sp || fp - sp < MW_INTERPRETED_SIZE || fp - sp > LARGEST ||
	    !read_word(memory, add(fp, MW_INTERPRETED_METHOD), &interpreted->method) ||
	    !read_word(memory, add(fp, MW_INTERPRETED_AT), &interpreted->at) ||
	    !read_word(memory, add(fp, MW_INTERPRETED_SP), &sp) || !read_word(memory, add(fp, sizeof(fp)), &pc) ||
	    sp % sizeof(sp) || sp < add(fp, sizeof(fp)) || sp - fp > LARGEST ||
	    !read_word(memory, fp, &out->gpr[arch->dwarf_fp]))
		return MW_FALLBACK_LOST;
	interpreted->is = true;
	/* A method handle has taken its last argument away before it went on. */
	out->gpr[arch->dwarf_sp] = sp > add(fp, 2 * sizeof(fp)) ? sp : add(fp, 2 * sizeof(fp));
	out->pc = pc;
	return pc ? MW_FALLBACK_FOUND : MW_FALLBACK_END;
}

enum mw_fallback_step mw_made_step(const struct mw_made_code *made, const struct mw_arch *arch,
				   const struct mw_memory_view *memory, const struct mw_regs *regs, struct mw_regs *out,
				   struct mw_interpreted *interpreted, mw_addr *pc)
{
	uint64_t row = made->row(made->context, regs->pc);
	enum mw_row_kind kind = mw_row_kind(row);
	mw_addr sp = regs->gpr[arch->dwarf_sp], cfa;

	*interpreted = (struct mw_interpreted){0};
	*out = *regs;
	if (kind == MW_ROW_INTERPRETED)
		return step_interpreted(arch, memory, regs, out, interpreted);
	if (kind == MW_ROW_DEOPTIMIZED) {
		if (!read_word(memory, add(sp, mw_row_fp_at(row)), pc))
			return MW_FALLBACK_LOST;
		row = mw_row(MW_ROW_SP, mw_row_n(row), MW_ROW_FP_SAVED, MW_DEOPTIMIZED_FP);
		kind = MW_ROW_SP;
	}
	if (kind != MW_ROW_SP && kind != MW_ROW_CALLED)
		return MW_FALLBACK_LOST;
	cfa = add(kind == MW_ROW_SP ? sp : regs->gpr[arch->dwarf_fp], mw_row_n(row));
	if (cfa % sizeof(cfa) || cfa < add(sp, sizeof(cfa)) || cfa - sp > LARGEST ||
	    !read_word(memory, cfa - sizeof(cfa), &out->pc) ||
	    !read_word(memory, add(cfa, mw_row_fp_at(row)), &out->gpr[arch->dwarf_fp]))
		return MW_FALLBACK_LOST;
	out->gpr[arch->dwarf_sp] = cfa;
	return out->pc ? MW_FALLBACK_FOUND : MW_FALLBACK_END;
}

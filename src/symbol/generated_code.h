/* SPDX-License-Identifier: MIT */
/*
 * generated_code.h: code that stands in a file and that no compiler has made: V8's built-in functions, which its own
 * code generator writes when V8 is built (its "embedded blob"). Nothing describes its frames, and they look like no
 * compiler's: a stack that comes to it ends there.
 */
#ifndef MW_SYMBOL_GENERATED_CODE_H
#define MW_SYMBOL_GENERATED_CODE_H

#include "symbol/elf_image.h"

/* [start, end): vaddr; empty where there is none. */
struct mw_generated_code {
	uint64_t start, end;
};

/* What the file's symbols say of it. Errors: MEMORY; *out is as it was then. */
struct mw_error *mw_generated_code_find(struct mw_elf *elf, struct mw_generated_code *out) MW_MUST_CHECK;

static inline bool mw_generated_code_holds(const struct mw_generated_code *code, uint64_t vaddr)
{
	return vaddr - code->start < code->end - code->start;
}

#endif

/* SPDX-License-Identifier: MIT */
/* x86_code.h: questions about a function's x86-64 code, answered by disassembling it. */
#ifndef MW_ALLOC_X86_CODE_H
#define MW_ALLOC_X86_CODE_H

#include "alloc/families.h"

/* What is looked for in a function's code. */
struct mw_x86_wanted {
	uint64_t data;           /* an address that is taken (lea), 0: none */
	const uint64_t *callees; /* functions that are called (or jumped to as a last act) */
	size_t callee_count;
	struct mw_code_range target; /* code that is branched to; empty: none */
};

/* How often each was seen. */
struct mw_x86_seen {
	unsigned data, calls, branches;
	unsigned tls_flags; /* a byte of the thread's own storage is set to 1 */
};

/* Read the whole of `range`. False where its bytes are missing or aren't code from end to end. */
bool mw_x86_inspect(const struct mw_elf *elf, struct mw_code_range range, const struct mw_x86_wanted *wanted,
		    struct mw_x86_seen *seen);

#endif

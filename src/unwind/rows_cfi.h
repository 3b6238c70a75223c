/* SPDX-License-Identifier: MIT */
/* rows_cfi.h: runs a frame description's program and says each of its steps as a row. For the files rows*.c only. */
#ifndef MW_UNWIND_ROWS_CFI_H
#define MW_UNWIND_ROWS_CFI_H

#include "symbol/frames.h"

#include <memwatch/arch.h>

#define ROWS_STATES 8 /* DW_CFA_remember_state in each other; compilers need one */

enum rows_cfa {
	ROWS_CFA_UNSET,
	ROWS_CFA_REGISTER, /* register + offset */
	ROWS_CFA_DEREF,    /* word at register + offset */
	ROWS_CFA_OTHER,
};

enum rows_how {
	ROWS_UNSPECIFIED,
	ROWS_SAME,
	ROWS_UNDEFINED,
	ROWS_AT_CFA, /* saved at CFA + n */
	ROWS_IS_CFA, /* is CFA + n */
	ROWS_AT_SP,  /* saved at stack pointer + n */
	ROWS_AT_FP,  /* saved at frame pointer + n */
	ROWS_OTHERWISE,
};

struct rows_rule {
	enum rows_how how;
	int64_t n;
};

/* What is known at one place of a function. */
struct rows_rules {
	enum rows_cfa cfa;
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct rows_rule fp, sp, return_address;
};

/* A program being run. */
struct rows_run {
	const struct mw_arch *arch;
	const struct mw_frame_cie *cie;
	const struct rows_rules *initial; /* NULL: it is these that are being made */
	struct mw_cursor program;
	uint64_t pc;
	struct rows_rules rules;
	struct rows_rules remembered[ROWS_STATES];
	unsigned depth;
};

/* The rules that descriptions with that CIE begin with. False where they make no sense, or can't be said in rows. */
bool rows_begin(const struct mw_frame_cie *cie, const struct mw_arch *arch, struct rows_rules *initial);
/* Start on a description. */
void rows_start(struct rows_run *run, const struct mw_frame_cie *cie, const struct mw_arch *arch,
		const struct rows_rules *initial, const struct mw_frame_description *description);
/* The row from where the last one ended (at first, the description's beginning) to *end, which is UINT64_MAX for the
 * last. False where the program makes no sense. */
bool rows_step(struct rows_run *run, uint64_t *row, uint64_t *end);

#endif

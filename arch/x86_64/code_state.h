/* SPDX-License-Identifier: MIT */
/* code_state.h: what the instructions of a function make of its stack and frame pointer, one after the other. */
#ifndef MW_ARCH_X86_64_CODE_STATE_H
#define MW_ARCH_X86_64_CODE_STATE_H

#include "arch/x86_64/decode.h"

enum mw_x86_fp { MW_X86_FP_CALLERS, MW_X86_FP_FRAME, MW_X86_FP_OTHER };

/* What is known before an instruction. Distances are from the CFA down. */
struct mw_x86_state {
	bool sp_known, fp_saved;
	uint8_t fp; /* enum mw_x86_fp */
	int32_t sp_below, fp_below, saved_below;
};

/* Where two paths meet: what both know. True where `into` knows less than before. */
bool mw_x86_state_merge(struct mw_x86_state *into, const struct mw_x86_state *from);
/* The stack pointer moves down by so many bytes. */
void mw_x86_state_move(struct mw_x86_state *state, int64_t down);
/* What an instruction that goes on to the next one makes of it; calls leave all as it is. */
void mw_x86_state_apply(struct mw_x86_state *state, const struct mw_x86_insn *insn);

#endif

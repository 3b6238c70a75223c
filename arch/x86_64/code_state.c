// SPDX-License-Identifier: MIT
/* code_state.c: stack and frame pointer, instruction by instruction (code_state.h). */
#include "arch/x86_64/code_state.h"

#include "arch/x86_64/operand.h"

#define WORD      8
#define MAX_BELOW (1 << 24) /* no frame is larger */

bool mw_x86_state_merge(struct mw_x86_state *into, const struct mw_x86_state *from)
{
	struct mw_x86_state was = *into;

	if (into->sp_known && (!from->sp_known || from->sp_below != into->sp_below))
		into->sp_known = false;
	if (into->fp != from->fp || (into->fp == MW_X86_FP_FRAME && into->fp_below != from->fp_below))
		into->fp = MW_X86_FP_OTHER;
	if (into->fp_saved && (!from->fp_saved || from->saved_below != into->saved_below))
		into->fp_saved = false;
	return was.sp_known != into->sp_known || was.fp != into->fp || was.fp_saved != into->fp_saved;
}

static bool is_register(const cs_x86_op *operand, uint8_t wanted)
{
	uint8_t code, width;

	return operand->type == X86_OP_REG && mw_x86_register(operand->reg, &code, &width) &&
	       (code & ~MW_X86_HIGH) == wanted && !(code & MW_X86_HIGH);
}

static bool is_whole(const cs_x86_op *operand, uint8_t wanted)
{
	uint8_t code, width;

	return operand->type == X86_OP_REG && mw_x86_register(operand->reg, &code, &width) && code == wanted &&
	       width == WORD;
}

static bool has_register(const struct mw_x86_insn *insn, unsigned from, uint8_t wanted)
{
	for (unsigned i = from; i < insn->x86.op_count; i++)
		if (is_register(&insn->x86.operands[i], wanted))
			return true;
	return false;
}

/* How far below the CFA an operand's address is, where it is a stack or frame pointer and a constant. */
static bool address_below(const struct mw_x86_state *state, const cs_x86_op *operand, int32_t *below)
{
	int64_t value;

	if (operand->type != X86_OP_MEM || operand->mem.index != X86_REG_INVALID ||
	    operand->mem.segment != X86_REG_INVALID)
		return false;
	if (operand->mem.base == X86_REG_RSP && state->sp_known)
		value = state->sp_below - operand->mem.disp;
	else if (operand->mem.base == X86_REG_RBP && state->fp == MW_X86_FP_FRAME)
		value = state->fp_below - operand->mem.disp;
	else
		return false;
	if (value < -MAX_BELOW || value > MAX_BELOW)
		return false;
	*below = (int32_t)value;
	return true;
}

void mw_x86_state_move(struct mw_x86_state *state, int64_t down)
{
	if (!state->sp_known)
		return;
	/* No function gives up its return address but by returning: that is not this function's path. */
	if (down < -MAX_BELOW || down > MAX_BELOW || state->sp_below + down > MAX_BELOW ||
	    state->sp_below + down < WORD) {
		state->sp_known = false;
		return;
	}
	state->sp_below += (int32_t)down;
	/* What was saved is given up. */
	if (state->fp_saved && state->saved_below > state->sp_below)
		state->fp_saved = false;
}

static void push(struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	mw_x86_state_move(state, insn->opsize ? 2 : WORD);
	if (insn->x86.op_count == 1 && is_whole(&insn->x86.operands[0], MW_X86_RBP) && state->sp_known &&
	    state->fp == MW_X86_FP_CALLERS && !state->fp_saved) {
		state->fp_saved = true;
		state->saved_below = state->sp_below;
	}
}

static void pop(struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operand = &insn->x86.operands[0];

	if (insn->x86.op_count == 1 && is_register(operand, MW_X86_RBP))
		state->fp = is_whole(operand, MW_X86_RBP) && state->fp_saved && state->sp_known &&
					    state->sp_below == state->saved_below
				    ? MW_X86_FP_CALLERS
				    : MW_X86_FP_OTHER;
	if (insn->x86.op_count == 1 && is_register(operand, MW_X86_RSP))
		state->sp_known = false;
	mw_x86_state_move(state, insn->opsize ? -2 : -WORD);
}

/* push %rbp; mov %rsp,%rbp; sub $n,%rsp */
static void enter(struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	bool simple = insn->x86.op_count == 2 && insn->x86.operands[1].imm == 0;

	mw_x86_state_move(state, WORD);
	if (!simple || !state->sp_known || state->fp != MW_X86_FP_CALLERS || state->fp_saved) {
		state->sp_known = false;
		state->fp = MW_X86_FP_OTHER;
		return;
	}
	state->fp_saved = true;
	state->saved_below = state->sp_below;
	state->fp = MW_X86_FP_FRAME;
	state->fp_below = state->sp_below;
	mw_x86_state_move(state, insn->x86.operands[0].imm);
}

static void leave(struct mw_x86_state *state)
{
	state->sp_known = state->fp == MW_X86_FP_FRAME;
	state->sp_below = state->fp_below;
	state->fp = state->sp_known && state->fp_saved && state->saved_below == state->fp_below ? MW_X86_FP_CALLERS
												: MW_X86_FP_OTHER;
	mw_x86_state_move(state, -WORD);
}

/* An instruction whose first operand is the stack pointer. */
static void set_sp(struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operands = insn->x86.operands;
	int32_t below;

	if (insn->x86.op_count == 2 && is_whole(&operands[0], MW_X86_RSP)) {
		if ((insn->id == X86_INS_SUB || insn->id == X86_INS_ADD) && operands[1].type == X86_OP_IMM) {
			mw_x86_state_move(state, insn->id == X86_INS_SUB ? operands[1].imm : -operands[1].imm);
			return;
		}
		if (insn->id == X86_INS_LEA && address_below(state, &operands[1], &below)) {
			state->sp_known = true;
			state->sp_below = below;
			mw_x86_state_move(state, 0);
			return;
		}
		if (insn->id == X86_INS_MOV && is_whole(&operands[1], MW_X86_RBP) && state->fp == MW_X86_FP_FRAME) {
			state->sp_known = true;
			state->sp_below = state->fp_below;
			mw_x86_state_move(state, 0);
			return;
		}
	}
	state->sp_known = false;
}

/* … is the frame pointer. */
static void set_fp(struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operands = insn->x86.operands;
	int32_t below;

	if (insn->x86.op_count == 2 && is_whole(&operands[0], MW_X86_RBP)) {
		if (insn->id == X86_INS_MOV && is_whole(&operands[1], MW_X86_RSP) && state->sp_known) {
			state->fp = MW_X86_FP_FRAME;
			state->fp_below = state->sp_below;
			return;
		}
		if (insn->id == X86_INS_LEA && address_below(state, &operands[1], &below)) {
			state->fp = MW_X86_FP_FRAME;
			state->fp_below = below;
			return;
		}
		if (insn->id == X86_INS_MOV && state->fp_saved && address_below(state, &operands[1], &below) &&
		    below == state->saved_below) {
			state->fp = MW_X86_FP_CALLERS;
			return;
		}
	}
	state->fp = MW_X86_FP_OTHER;
}

/* A word of the stack is written: the frame pointer put aside, or the place of it taken. */
static void write_memory(struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operands = insn->x86.operands;
	int32_t below;

	if (!address_below(state, &operands[0], &below))
		return;
	if (insn->id == X86_INS_MOV && is_whole(&operands[1], MW_X86_RBP) && state->fp == MW_X86_FP_CALLERS) {
		if (!state->fp_saved && below > WORD) {
			state->fp_saved = true;
			state->saved_below = below;
		}
	} else if (state->fp_saved && below > state->saved_below - WORD &&
		   below - operands[0].size < state->saved_below) {
		state->fp_saved = false;
	}
}

static bool only_reads(const struct mw_x86_insn *insn)
{
	return insn->id == X86_INS_CMP || insn->id == X86_INS_TEST || insn->id == X86_INS_BT ||
	       insn->id == X86_INS_PUSH || mw_x86_in_group(insn, X86_GRP_CALL) || mw_x86_in_group(insn, X86_GRP_JUMP);
}

/* What an instruction that goes on to the next one makes of the state. */
void mw_x86_state_apply(struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	switch (insn->id) {
	case X86_INS_PUSH:
		push(state, insn);
		return;
	case X86_INS_PUSHFQ:
		mw_x86_state_move(state, WORD);
		return;
	case X86_INS_POPFQ:
		mw_x86_state_move(state, -WORD);
		return;
	case X86_INS_POP:
		pop(state, insn);
		return;
	case X86_INS_LEAVE:
		leave(state);
		return;
	case X86_INS_ENTER:
		enter(state, insn);
		return;
	case X86_INS_SYSCALL: /* may be on another stack when it returns */
		state->sp_known = false;
		return;
	default:
		break;
	}
	if (only_reads(insn) || insn->x86.op_count == 0)
		return;
	if (insn->x86.operands[0].type == X86_OP_MEM && insn->x86.op_count > 1)
		write_memory(state, insn);
	if (is_register(&insn->x86.operands[0], MW_X86_RSP))
		set_sp(state, insn);
	else if (is_register(&insn->x86.operands[0], MW_X86_RBP))
		set_fp(state, insn);
	/* Few write to another operand than the first. */
	if (insn->id == X86_INS_XCHG || insn->id == X86_INS_XADD || insn->id == X86_INS_MULX) {
		state->sp_known = state->sp_known && !has_register(insn, 1, MW_X86_RSP);
		if (has_register(insn, 1, MW_X86_RBP))
			state->fp = MW_X86_FP_OTHER;
	}
}

// SPDX-License-Identifier: MIT
/* emulate.c: carry out an instruction on a register set (memwatch/arch.h, emulate). */
#include "arch/x86_64/flags.h"
#include "arch/x86_64/operand.h"
#include "arch/x86_64/ops.h"

static uint64_t source(const struct mw_insn_plan *plan, const struct mw_regs *regs, uint8_t width)
{
	if (plan->src == MW_X86_NO_REG)
		return (uint64_t)plan->imm & mw_x86_mask(width);
	return mw_x86_get(regs, plan->src, width);
}

static uint64_t sign_extend(uint64_t value, uint8_t width)
{
	unsigned shift = 64U - width * 8U;

	return (uint64_t)((int64_t)(value << shift) >> shift);
}

static void emulate_arithmetic(const struct mw_insn_plan *plan, struct mw_regs *regs, const uint64_t *word)
{
	uint8_t width = plan->width;
	uint64_t memory = *word & mw_x86_mask(width);
	uint64_t a = plan->dst == MW_X86_MEMORY ? memory : mw_x86_get(regs, plan->dst, width);
	uint64_t b = plan->src == MW_X86_MEMORY ? memory : source(plan, regs, width);

	switch (plan->op) {
	case MW_X86_OP_ADD:
		regs->flags = mw_x86_flags_add(regs->flags, a, b, width);
		mw_x86_set(regs, plan->dst, width, a + b);
		break;
	case MW_X86_OP_SUB:
		regs->flags = mw_x86_flags_sub(regs->flags, a, b, width);
		mw_x86_set(regs, plan->dst, width, a - b);
		break;
	case MW_X86_OP_CMP:
		regs->flags = mw_x86_flags_sub(regs->flags, a, b, width);
		break;
	case MW_X86_OP_AND:
		regs->flags = mw_x86_flags_logic(regs->flags, a & b, width);
		mw_x86_set(regs, plan->dst, width, a & b);
		break;
	case MW_X86_OP_OR:
		regs->flags = mw_x86_flags_logic(regs->flags, a | b, width);
		mw_x86_set(regs, plan->dst, width, a | b);
		break;
	case MW_X86_OP_XOR:
		regs->flags = mw_x86_flags_logic(regs->flags, a ^ b, width);
		mw_x86_set(regs, plan->dst, width, a ^ b);
		break;
	case MW_X86_OP_TEST:
		regs->flags = mw_x86_flags_logic(regs->flags, a & b, width);
		break;
	}
}

/* inc and dec are add and sub of 1 that leave the carry alone. */
static void emulate_step(const struct mw_insn_plan *plan, struct mw_regs *regs)
{
	uint64_t a = mw_x86_get(regs, plan->dst, plan->width);
	uint64_t carry = regs->flags & MW_X86_CF;
	bool up = plan->op == MW_X86_OP_INC;
	uint64_t flags = up ? mw_x86_flags_add(regs->flags, a, 1, plan->width)
			    : mw_x86_flags_sub(regs->flags, a, 1, plan->width);

	regs->flags = (flags & ~MW_X86_CF) | carry;
	mw_x86_set(regs, plan->dst, plan->width, up ? a + 1 : a - 1);
}

static void emulate_lea(const struct mw_insn_plan *plan, struct mw_regs *regs)
{
	uint64_t address = (uint64_t)plan->imm;

	if (plan->src != MW_X86_NO_REG)
		address += mw_x86_get(regs, plan->src, 8);
	if (plan->cond != MW_X86_NO_REG)
		address += mw_x86_get(regs, plan->cond & 0xf, 8) << (plan->cond >> 4);
	mw_x86_set(regs, plan->dst, plan->width, address);
}

static void emulate_move(const struct mw_insn_plan *plan, struct mw_regs *regs)
{
	uint64_t value;

	switch (plan->op) {
	case MW_X86_OP_MOV:
		mw_x86_set(regs, plan->dst, plan->width, source(plan, regs, plan->width));
		break;
	case MW_X86_OP_MOVZX:
		mw_x86_set(regs, plan->dst, plan->width, source(plan, regs, plan->cond));
		break;
	case MW_X86_OP_MOVSX:
		mw_x86_set(regs, plan->dst, plan->width, sign_extend(source(plan, regs, plan->cond), plan->cond));
		break;
	case MW_X86_OP_SIGN:
		value = sign_extend(source(plan, regs, plan->width), plan->width);
		mw_x86_set(regs, plan->dst, plan->width, value >> 63 ? UINT64_MAX : 0);
		break;
	case MW_X86_OP_CMOV:
		/* A cmov whose condition is false still clears the upper half of a 32-bit destination. */
		value = mw_x86_get(regs, mw_x86_condition(plan->cond, regs->flags) ? plan->src : plan->dst,
				   plan->width);
		mw_x86_set(regs, plan->dst, plan->width, value);
		break;
	case MW_X86_OP_SET:
		mw_x86_set(regs, plan->dst, 1, mw_x86_condition(plan->cond, regs->flags));
		break;
	}
}

/* pc is that of the following instruction already. */
static void emulate_branch(const struct mw_insn_plan *plan, struct mw_regs *regs, uint64_t *word)
{
	mw_addr target = plan->src == MW_X86_NO_REG ? plan->target : mw_x86_get(regs, plan->src, 8);

	switch (plan->op) {
	case MW_X86_OP_JMP:
		regs->pc = target;
		break;
	case MW_X86_OP_JCC:
		if (mw_x86_condition(plan->cond, regs->flags))
			regs->pc = target;
		break;
	case MW_X86_OP_CALL:
		*word = regs->pc;
		regs->gpr[MW_X86_RSP] -= 8;
		regs->pc = target;
		break;
	case MW_X86_OP_RET:
		regs->pc = *word;
		regs->gpr[MW_X86_RSP] += 8 + (uint64_t)plan->imm;
		break;
	}
}

static void emulate_stack(const struct mw_insn_plan *plan, struct mw_regs *regs, uint64_t *word)
{
	switch (plan->op) {
	case MW_X86_OP_PUSH:
		/* push rsp writes the value before the push. */
		*word = source(plan, regs, 8);
		regs->gpr[MW_X86_RSP] -= 8;
		break;
	case MW_X86_OP_POP:
		/* pop rsp ends with the value read. */
		regs->gpr[MW_X86_RSP] += 8;
		mw_x86_set(regs, plan->dst, 8, *word);
		break;
	case MW_X86_OP_LOAD:
		mw_x86_set(regs, plan->dst, plan->width, *word);
		break;
	}
}

void mw_x86_emulate(const struct mw_insn_plan *plan, struct mw_regs *regs, uint64_t *word)
{
	regs->pc = plan->pc + plan->length;
	switch (plan->op) {
	case MW_X86_OP_LEA:
		emulate_lea(plan, regs);
		break;
	case MW_X86_OP_MOV:
	case MW_X86_OP_MOVZX:
	case MW_X86_OP_MOVSX:
	case MW_X86_OP_SIGN:
	case MW_X86_OP_CMOV:
	case MW_X86_OP_SET:
		emulate_move(plan, regs);
		break;
	case MW_X86_OP_INC:
	case MW_X86_OP_DEC:
		emulate_step(plan, regs);
		break;
	case MW_X86_OP_JMP:
	case MW_X86_OP_JCC:
	case MW_X86_OP_CALL:
	case MW_X86_OP_RET:
		emulate_branch(plan, regs, word);
		break;
	case MW_X86_OP_PUSH:
	case MW_X86_OP_POP:
	case MW_X86_OP_LOAD:
		emulate_stack(plan, regs, word);
		break;
	case MW_X86_OP_NOP:
		break;
	default:
		emulate_arithmetic(plan, regs, word);
		break;
	}
}

mw_addr mw_x86_memory_address(const struct mw_insn_plan *plan, const struct mw_regs *regs)
{
	uint64_t sp = regs->gpr[MW_X86_RSP];

	switch (plan->memory) {
	case MW_MEMORY_POP:
		return sp;
	case MW_MEMORY_PUSH:
		return sp - 8;
	case MW_MEMORY_LOAD:
		return sp + (uint64_t)plan->imm;
	case MW_MEMORY_DATA:
		return plan->target;
	case MW_MEMORY_NONE:
		break;
	}
	return 0;
}

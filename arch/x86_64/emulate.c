// SPDX-License-Identifier: MIT
/* emulate.c: carry out an instruction on a register set (memwatch/arch.h, emulate). */
#include "arch/x86_64/x86_64.h"

#include <stdbool.h>
#include <stdint.h>

#define MW_X86_CF    0x001ULL
#define MW_X86_PF    0x004ULL
#define MW_X86_AF    0x010ULL
#define MW_X86_ZF    0x040ULL
#define MW_X86_SF    0x080ULL
#define MW_X86_OF    0x800ULL
#define MW_X86_ARITH (MW_X86_CF | MW_X86_PF | MW_X86_AF | MW_X86_ZF | MW_X86_SF | MW_X86_OF)

/* SF, ZF and PF depend on the result alone. PF looks at its lowest byte only, whatever the width. */
static uint64_t result_flags(uint64_t result, uint8_t width)
{
	uint64_t flags = 0;

	if (result >> (width * 8 - 1) & 1)
		flags |= MW_X86_SF;
	if (result == 0)
		flags |= MW_X86_ZF;
	if (!__builtin_parity((unsigned)(result & 0xff)))
		flags |= MW_X86_PF;
	return flags;
}

/* `flags` after a + b or, with `minus`, a - b (sub, cmp), operands of `width` bytes. */
static uint64_t flags_add(uint64_t flags, uint64_t a, uint64_t b, bool minus, uint8_t width)
{
	uint64_t mask = mw_x86_mask(width);
	uint64_t result = (minus ? a - b : a + b) & mask;

	a &= mask;
	b &= mask;
	flags = (flags & ~MW_X86_ARITH) | result_flags(result, width);
	if (minus ? a < b : result < a)
		flags |= MW_X86_CF;
	if ((a ^ b ^ result) & 0x10)
		flags |= MW_X86_AF;
	/* Overflow: the result has not the sign of `a`, though what was added (the negative of `b`) has. */
	if (((a ^ result) & (minus ? a ^ b : b ^ result)) >> (width * 8 - 1) & 1)
		flags |= MW_X86_OF;
	return flags;
}

/* `flags` after and, or, xor, test with this result. AF, which is undefined, is cleared as processors do. */
static uint64_t flags_logic(uint64_t flags, uint64_t result, uint8_t width)
{
	return (flags & ~MW_X86_ARITH) | result_flags(result & mw_x86_mask(width), width);
}

/* Is the condition `cc` (the low four bits of a jcc, cmovcc or setcc opcode) true? */
static bool condition(uint8_t cc, uint64_t flags)
{
	bool cf = flags & MW_X86_CF, pf = flags & MW_X86_PF, zf = flags & MW_X86_ZF;
	bool sf = flags & MW_X86_SF, of = flags & MW_X86_OF;
	/* o, b, e, be, s, p, l, le: the lowest bit of the code turns the condition round. */
	const bool holds[8] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};

	return holds[cc >> 1 & 7] != (cc & 1);
}

/* The value of a register operand, zero-extended. */
static uint64_t get_operand(const struct mw_regs *regs, uint8_t code, uint8_t width)
{
	uint64_t value = regs->gpr[code % MW_REG_COUNT];

	if (code & MW_X86_HIGH)
		value >>= 8;
	return value & mw_x86_mask(width);
}

/* Write a register operand: 4 bytes clear the upper half, 1 and 2 bytes leave the rest alone. */
static void set_operand(struct mw_regs *regs, uint8_t code, uint8_t width, uint64_t value)
{
	uint64_t *slot = &regs->gpr[code % MW_REG_COUNT];
	unsigned shift = code & MW_X86_HIGH ? 8 : 0;
	uint64_t mask = mw_x86_mask(width);

	if (width >= 4)
		*slot = value & mask;
	else
		*slot = (*slot & ~(mask << shift)) | ((value & mask) << shift);
}

static uint64_t source(const struct mw_insn_plan *plan, const struct mw_regs *regs, uint8_t width)
{
	if (plan->src == MW_X86_NO_REG)
		return (uint64_t)plan->imm & mw_x86_mask(width);
	return get_operand(regs, plan->src, width);
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
	uint64_t a = plan->dst == MW_X86_MEMORY ? memory : get_operand(regs, plan->dst, width);
	uint64_t b = plan->src == MW_X86_MEMORY ? memory : source(plan, regs, width);
	uint64_t result;

	switch (plan->op) {
	case MW_X86_OP_ADD:
		result = a + b;
		break;
	case MW_X86_OP_SUB:
	case MW_X86_OP_CMP:
		result = a - b;
		break;
	case MW_X86_OP_AND:
	case MW_X86_OP_TEST:
		result = a & b;
		break;
	case MW_X86_OP_OR:
		result = a | b;
		break;
	case MW_X86_OP_XOR:
		result = a ^ b;
		break;
	default:
		return;
	}
	if (plan->op == MW_X86_OP_ADD || plan->op == MW_X86_OP_SUB || plan->op == MW_X86_OP_CMP)
		regs->flags = flags_add(regs->flags, a, b, plan->op != MW_X86_OP_ADD, width);
	else
		regs->flags = flags_logic(regs->flags, result, width);
	if (plan->op != MW_X86_OP_CMP && plan->op != MW_X86_OP_TEST)
		set_operand(regs, plan->dst, width, result);
}

/* inc and dec are add and sub of 1 that leave the carry alone. */
static void emulate_step(const struct mw_insn_plan *plan, struct mw_regs *regs)
{
	uint64_t a = get_operand(regs, plan->dst, plan->width);
	uint64_t carry = regs->flags & MW_X86_CF;
	bool up = plan->op == MW_X86_OP_INC;
	uint64_t flags = flags_add(regs->flags, a, 1, !up, plan->width);

	regs->flags = (flags & ~MW_X86_CF) | carry;
	set_operand(regs, plan->dst, plan->width, up ? a + 1 : a - 1);
}

static void emulate_lea(const struct mw_insn_plan *plan, struct mw_regs *regs)
{
	uint64_t address = (uint64_t)plan->imm;

	if (plan->src != MW_X86_NO_REG)
		address += get_operand(regs, plan->src, 8);
	if (plan->cond != MW_X86_NO_REG)
		address += get_operand(regs, plan->cond & 0xf, 8) << (plan->cond >> 4);
	set_operand(regs, plan->dst, plan->width, address);
}

static void emulate_move(const struct mw_insn_plan *plan, struct mw_regs *regs)
{
	uint64_t value;

	switch (plan->op) {
	case MW_X86_OP_MOV:
		set_operand(regs, plan->dst, plan->width, source(plan, regs, plan->width));
		break;
	case MW_X86_OP_MOVZX:
		set_operand(regs, plan->dst, plan->width, source(plan, regs, plan->cond));
		break;
	case MW_X86_OP_MOVSX:
		set_operand(regs, plan->dst, plan->width, sign_extend(source(plan, regs, plan->cond), plan->cond));
		break;
	case MW_X86_OP_SIGN:
		value = sign_extend(source(plan, regs, plan->width), plan->width);
		set_operand(regs, plan->dst, plan->width, value >> 63 ? UINT64_MAX : 0);
		break;
	case MW_X86_OP_CMOV:
		/* A cmov whose condition is false still clears the upper half of a 32-bit destination. */
		value = get_operand(regs, condition(plan->cond, regs->flags) ? plan->src : plan->dst, plan->width);
		set_operand(regs, plan->dst, plan->width, value);
		break;
	case MW_X86_OP_SET:
		set_operand(regs, plan->dst, 1, condition(plan->cond, regs->flags));
		break;
	}
}

/* pc is that of the following instruction already. */
static void emulate_branch(const struct mw_insn_plan *plan, struct mw_regs *regs, uint64_t *word)
{
	mw_addr target = plan->src == MW_X86_NO_REG ? plan->target : get_operand(regs, plan->src, 8);

	switch (plan->op) {
	case MW_X86_OP_JMP:
		regs->pc = target;
		break;
	case MW_X86_OP_JCC:
		if (condition(plan->cond, regs->flags))
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
		set_operand(regs, plan->dst, 8, *word);
		break;
	case MW_X86_OP_LOAD:
		set_operand(regs, plan->dst, plan->width, *word);
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
